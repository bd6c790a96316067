//! A file of tuning on disk: its name, what new measurements replace in it, and writing it whole or not at all.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Device, File, Point, Tuning, read, write};
use crate::config;
use crate::diagnostic::Diagnostic;
use crate::project::kind::{self, Kind};

/// The name of the file for a GPU: `nvidia-h200.toml`.
#[must_use]
pub fn file_name(device: &Device) -> String {
    let mut words: Vec<String> = vec![String::new()];
    for character in device.name.chars() {
        if character.is_ascii_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.push(character.to_ascii_lowercase());
            }
        } else {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    let name = if words.is_empty() { "gpu".to_owned() } else { words.join("-") };
    name + ".toml"
}

/// Reads a file.
///
/// # Errors
/// Where it cannot be read, or is no file of tuning; and its mistakes of form.
pub fn open(path: &Path) -> Result<File, Vec<Diagnostic>> {
    let source = config::open(path)?;
    kind::expect(Kind::Tuning, path, &source.text).map_err(|error| vec![error])?;
    read(&source)
}

/// What a file says of the GPU; none where there is no file.
///
/// # Errors
/// As those of [`open`], and where it is of another GPU.
pub fn known(path: &Path, device: &Device) -> Result<Option<Tuning>, Vec<Diagnostic>> {
    // A link to nothing is no place for a file.
    if !path.exists() && !path.is_symlink() {
        return Ok(None);
    }
    let known = open(path)?.tuning;
    let own = &known.device;
    // What GPUs of one kind share decides which points count, not how long a variant takes: their memory differs.
    if !own.is_alike(device) || own.name != device.name {
        return Err(vec![of_another(path, own, device)]);
    }
    Ok(Some(known))
}

fn of_another(path: &Path, found: &Device, device: &Device) -> Diagnostic {
    let text = |device: &Device| {
        format!("{} (compute capability {}, {} multiprocessors)", device.name, device.capability, device.sms)
    };
    Diagnostic::error(format!("`{}` is of another GPU", config::shown(path).display()))
        .note(format!("it is of {}, and the GPU at hand is {}", text(found), text(device)))
        .help("name another file with `--out`")
}

/// What a file says once `new` is in it: of its plugins the new points stand in the place of the old ones, of all where `is_whole`, else of
/// those of the same nodes. Those of other plugins stay.
#[must_use]
pub fn merged(known: Option<Tuning>, new: Tuning, is_whole: bool) -> Tuning {
    let Some(known) = known else { return new };
    let is_replaced = |old: &Point| {
        new.points.iter().any(|point| {
            let is_of_plugin = (&point.plugin, &point.version) == (&old.plugin, &old.version);
            is_of_plugin && (is_whole || is_same_node(point, old))
        })
    };
    let place = known.points.iter().position(is_replaced);
    let before = place.unwrap_or(known.points.len());
    let mut points: Vec<Point> = Vec::new();
    for (index, old) in known.points.iter().enumerate() {
        if index == before {
            points.extend(new.points.iter().cloned());
        }
        if !is_replaced(old) {
            points.push(old.clone());
        }
    }
    if before == known.points.len() {
        points.extend(new.points.iter().cloned());
    }
    Tuning { device: new.device, points }
}

/// Whether two points are of one node with its shapes.
#[must_use]
pub fn is_same_node(one: &Point, other: &Point) -> bool {
    let node = |point: &Point| Point { case: None, code: None, microseconds: Vec::new(), ..point.clone() };
    node(one) == node(other)
}

/// Writes a file: whole, or not at all. Its folder is made where it is not there.
///
/// # Errors
/// Where it cannot be written. What was there before is there still, then.
pub fn save(path: &Path, tuning: &Tuning) -> Result<(), Diagnostic> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let save = || {
        fs::create_dir_all(&folder)?;
        let new = fs::Permissions::from_mode(0o666);
        let mut file = tempfile::Builder::new().prefix(".cubinder-").permissions(new).tempfile_in(&folder)?;
        file.write_all(write(tuning).as_bytes())?;
        file.persist(&place).map_err(|error| error.error)
    };
    save().map(drop).map_err(|error: std::io::Error| {
        Diagnostic::error(format!("cannot write `{}`: {error}", config::shown(path).display()))
    })
}

#[cfg(test)]
mod tests {
    use cubinder_bundle::fit::ComputeCapability;

    use super::*;

    fn device(name: &str, sms: u32) -> Device {
        let capability = ComputeCapability { major: 9, minor: 0 };
        Device { name: name.to_owned(), capability, sms, driver: Some(13000) }
    }

    fn point(plugin: &str, version: &str, rows: i64, time: f64) -> Point {
        Point {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            case: Some(format!("{rows} rows")),
            shapes: vec![("x".to_owned(), vec![rows, 8])],
            microseconds: vec![(1, time)],
            ..Point::default()
        }
    }

    fn tuning(points: Vec<Point>) -> Tuning {
        Tuning { device: device("NVIDIA H200", 132), points }
    }

    #[test]
    fn files_are_called_as_gpus_are() {
        for (name, expected) in [
            ("NVIDIA H200", "nvidia-h200.toml"),
            ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090.toml"),
            ("NVIDIA A100-SXM4-80GB", "nvidia-a100-sxm4-80gb.toml"),
            (" ../x ", "x.toml"),
            ("", "gpu.toml"),
        ] {
            assert_eq!(file_name(&device(name, 1)), expected);
        }
    }

    #[test]
    fn new_points_take_the_place_of_old_ones() {
        let known = tuning(vec![
            point("a", "1", 1, 1.0),
            point("b", "1", 1, 1.0),
            point("b", "2", 1, 1.0),
            point("b", "1", 2, 1.0),
            point("c", "1", 1, 1.0),
        ]);
        let new = tuning(vec![point("b", "1", 2, 5.0), point("b", "1", 3, 5.0)]);
        let told = |tuning: Tuning| {
            let text = |point: &Point| {
                let times: Vec<f64> = point.microseconds.iter().map(|(_, time)| *time).collect();
                format!("{} {} {} {times:?}", point.plugin, point.version, point.shapes[0].1[0])
            };
            tuning.points.iter().map(text).collect::<Vec<_>>()
        };
        let whole = told(merged(Some(known.clone()), new.clone(), true));
        assert_eq!(whole, ["a 1 1 [1.0]", "b 1 2 [5.0]", "b 1 3 [5.0]", "b 2 1 [1.0]", "c 1 1 [1.0]"]);
        let part = told(merged(Some(known), new.clone(), false));
        let expected =
            ["a 1 1 [1.0]", "b 1 1 [1.0]", "b 2 1 [1.0]", "b 1 2 [5.0]", "b 1 3 [5.0]", "c 1 1 [1.0]"];
        assert_eq!(part, expected);
        let other = told(merged(Some(tuning(vec![point("a", "1", 1, 1.0)])), new.clone(), true));
        assert_eq!(other, ["a 1 1 [1.0]", "b 1 2 [5.0]", "b 1 3 [5.0]"]);
        assert_eq!(told(merged(None, new.clone(), true)), told(new));
    }

    #[test]
    fn a_file_of_another_gpu_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuning/nvidia-h200.toml");
        let own = device("NVIDIA H200", 132);
        assert_eq!(known(&path, &own), Ok(None));
        let written = tuning(vec![point("a", "1", 1, 1.0)]);
        save(&path, &written).unwrap();
        assert_eq!(known(&path, &own), Ok(Some(written)));
        for other in [device("NVIDIA H100", 114), device("NVIDIA H200", 114), device("NVIDIA H100", 132)] {
            let errors = known(&path, &other).unwrap_err();
            assert!(errors[0].message.ends_with("is of another GPU"), "{errors:?}");
        }
        fs::write(&path, "manifest = \"a.toml\"\n[[cases]]\nname = \"a\"\n").unwrap();
        assert!(known(&path, &own).is_err());
    }
}
