use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use cubinder_source::atomic_file::{self, AtomicFile, parent_folder};

use super::{Device, File, Point, Tuning, read, write};
use crate::diagnostic::Diagnostic;
use crate::errors::OtherGpu;
use crate::eval::{Subject, resolve_query};
use crate::file_kind::{self, Kind};
use crate::path;
use crate::source;

/// Returns the file name for a GPU: `nvidia-h200.toml`.
#[must_use]
pub fn file_name(device: &Device) -> String {
    let name = device.name.to_ascii_lowercase();
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    format!("{}.toml", if name.is_empty() { "gpu" } else { &name })
}

/// Reads a file.
pub fn open(path: &Path) -> Result<File, Vec<Diagnostic>> {
    let source = source::text(path)?;
    file_kind::expect(Kind::Tuning, path, &source.text).map_err(|error| vec![error])?;
    read(&source)
}

/// Reads a GPU's file, if it exists; fails for another GPU's.
pub fn read_for_device(path: &Path, device: &Device) -> Result<Option<Tuning>, Vec<Diagnostic>> {
    if !path.exists() && !path.is_symlink() {
        return Ok(None);
    }
    let known = open(path)?.tuning;
    let own = &known.device;
    // GPUs that are alike may differ in memory.
    if !own.is_alike(device) || own.name != device.name {
        let (path, found) = (path::shown(path).display().to_string(), own.to_string());
        return Err(vec![OtherGpu { path, found, device: device.to_string() }.into()]);
    }
    Ok(Some(known))
}

/// Points that new ones replace.
#[derive(Debug, Clone, Copy)]
pub enum ReplacedPoints<'s> {
    /// All of their version and, if existing versions are given, of others.
    All(Option<&'s [String]>),
    /// Points whose node equals that of a new point.
    SameNodes(&'s Subject),
}

/// Merges `new` into a file, first: among equally near points the first wins.
#[must_use]
pub fn merged(known: Option<Tuning>, new: Tuning, replaced: ReplacedPoints<'_>) -> Tuning {
    let Some(known) = known else { return new };
    let is_of_plugin = |old: &Point| {
        new.points.iter().any(|point| (&point.plugin, &point.version) == (&old.plugin, &old.version))
    };
    let is_replaced = |old: &Point| match replaced {
        ReplacedPoints::All(versions) => {
            is_of_plugin(old) || versions.is_some_and(|all| is_gone(&new, old, all))
        }
        ReplacedPoints::SameNodes(subject) => {
            is_of_plugin(old) && new.points.iter().any(|point| means_same(subject, point, old))
        }
    };
    let before = known.points.iter().position(is_of_plugin).unwrap_or(known.points.len());
    let stays = |old: &&Point| !is_replaced(old);
    let (before, after) = known.points.split_at(before);
    let before: Vec<Point> = before.iter().filter(stays).cloned().collect();
    let after: Vec<Point> = after.iter().filter(stays).cloned().collect();
    Tuning { device: new.device, points: [before, new.points, after].concat() }
}

fn is_gone(new: &Tuning, old: &Point, versions: &[String]) -> bool {
    new.points.iter().any(|point| point.plugin == old.plugin) && !versions.contains(&old.version)
}

/// Returns whether two points have the same query.
#[must_use]
pub fn is_same_node(one: &Point, other: &Point) -> bool {
    let node = |point: &Point| Point { case: None, code: None, microseconds: Vec::new(), ..point.clone() };
    node(one) == node(other)
}

/// Considers defaults and rounding.
fn means_same(subject: &Subject, one: &Point, other: &Point) -> bool {
    let resolved = |point: &Point| resolve_query(subject, &point.query).ok();
    is_same_node(one, other) || resolved(one).is_some_and(|node| resolved(other) == Some(node))
}

/// Creates the folder; checks that the file is writable.
pub fn prepare(path: &Path) -> Result<(), Diagnostic> {
    draft(path).map(drop)
}

/// Writes atomically, keeping permissions; on failure the old content remains.
pub fn save(path: &Path, tuning: &Tuning) -> Result<(), Diagnostic> {
    let (mut draft, place) = draft(path)?;
    let written = draft.file_mut().write_all(write(tuning).as_bytes());
    written.and_then(|()| draft.persist(&place)).map_err(|error| unwritten(path, &error))
}

fn draft(path: &Path) -> Result<(AtomicFile, PathBuf), Diagnostic> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let permissions =
        fs::metadata(&place).ok().filter(fs::Metadata::is_file).map(|facts| facts.permissions());
    atomic_file::check_replaceable(&place, &path::shown(path), "`--out`")?;
    let create = || {
        fs::create_dir_all(parent_folder(&place))?;
        let draft = AtomicFile::beside(&place)?;
        permissions.map_or(Ok(()), |permissions| draft.file().set_permissions(permissions))?;
        Ok(draft)
    };
    let draft = create().map_err(|error| unwritten(path, &error))?;
    Ok((draft, place))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Diagnostic {
    atomic_file::file_error("write", &path::shown(path), error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use cubinder_expr::Value;
    use cubinder_model::fit::ComputeCapability;

    use super::super::code::subject_of;
    use super::*;
    use crate::diagnostic::Source;
    use crate::query::{Query, RawAttributeValue};

    fn device(name: &str, sms: u32) -> Device {
        let capability = ComputeCapability { major: 9, minor: 0 };
        Device { name: name.to_owned(), capability, sms, driver: Some(13000) }
    }

    fn point(plugin: &str, version: &str, rows: i64, time: f64) -> Point {
        Point {
            plugin: plugin.to_owned(),
            version: version.to_owned(),
            case: Some(format!("{rows} rows")),
            query: Query { shapes: vec![("x".to_owned(), vec![rows, 8])], ..Query::default() },
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

    fn b() -> Subject {
        let text = r#"schema = 1
[plugin]
name = "b"
version = "1"
[attributes.epsilon]
type = "f32"
default = 1e-5
[attributes.exact]
type = "bool"
default = false
[[inputs]]
name = "x"
type = "f32"
rank = 2
[[outputs]]
name = "y"
type = "f32"
shape = "x.shape"
[[launches]]
source = "k.cu"
kernel = "k"
grid = [1]
block = [256]
[launches.args]
x = "x"
y = "y"
"#;
        match crate::resolve::compile(&Source::new("b.toml", text)) {
            Ok(resolved) => subject_of(&resolved.draft.plugin),
            Err(errors) => panic!("{errors:?}"),
        }
    }

    fn lines(tuning: &Tuning) -> Vec<String> {
        let text = |point: &Point| {
            let times: Vec<f64> = point.microseconds.iter().map(|(_, time)| *time).collect();
            format!("{} {} {} {times:?}", point.plugin, point.version, point.query.shapes[0].1[0])
        };
        tuning.points.iter().map(text).collect()
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
        let whole = lines(&merged(Some(known.clone()), new.clone(), ReplacedPoints::All(None)));
        assert_eq!(whole, ["a 1 1 [1.0]", "b 1 2 [5.0]", "b 1 3 [5.0]", "b 2 1 [1.0]", "c 1 1 [1.0]"]);
        let part = lines(&merged(Some(known), new.clone(), ReplacedPoints::SameNodes(&b())));
        let expected =
            ["a 1 1 [1.0]", "b 1 2 [5.0]", "b 1 3 [5.0]", "b 1 1 [1.0]", "b 2 1 [1.0]", "c 1 1 [1.0]"];
        assert_eq!(part, expected, "the first of equally near points is used");
        let other = lines(&merged(
            Some(tuning(vec![point("a", "1", 1, 1.0)])),
            new.clone(),
            ReplacedPoints::All(None),
        ));
        assert_eq!(other, ["a 1 1 [1.0]", "b 1 2 [5.0]", "b 1 3 [5.0]"]);
        assert_eq!(lines(&merged(None, new.clone(), ReplacedPoints::All(None))), lines(&new));
    }

    #[test]
    fn what_was_measured_of_versions_that_are_gone_goes() {
        let known = tuning(vec![
            point("b", "0", 1, 1.0),
            point("a", "0", 1, 1.0),
            point("b", "1", 1, 1.0),
            point("b", "2", 1, 1.0),
            point("b", "3", 1, 1.0),
        ]);
        let new = tuning(vec![point("b", "1", 2, 5.0)]);
        let after = |versions: &[&str]| {
            let versions: Vec<String> = versions.iter().map(|version| (*version).to_owned()).collect();
            lines(&merged(Some(known.clone()), new.clone(), ReplacedPoints::All(Some(&versions))))
        };
        assert_eq!(after(&["1", "3"]), ["a 0 1 [1.0]", "b 1 2 [5.0]", "b 3 1 [1.0]"]);
        assert_eq!(after(&[]), ["a 0 1 [1.0]", "b 1 2 [5.0]"], "measured versions exist");
    }

    #[test]
    fn a_node_is_the_same_however_it_is_written() {
        let with = |rows: i64, time: f64, attributes: &[(&str, Value)]| {
            let given = attributes.iter();
            let given =
                given.map(|(name, value)| ((*name).to_owned(), RawAttributeValue::Value(value.clone())));
            let mut point = point("b", "1", rows, time);
            point.query.attributes = given.collect();
            point
        };
        let epsilon = ("epsilon", Value::Float(f64::from(1e-5_f32)));
        let exact = |value: bool| ("exact", Value::Bool(value));
        let new = tuning(vec![with(1, 5.0, &[epsilon.clone(), exact(false)])]);
        let known = tuning(vec![
            with(1, 1.0, &[]),
            with(1, 2.0, &[("epsilon", Value::Float(1e-5))]),
            with(1, 3.0, &[exact(false), epsilon]),
            with(1, 4.0, &[exact(true)]),
            with(1, 6.0, &[("gone", Value::Int(1))]),
        ]);
        let merged = lines(&merged(Some(known), new, ReplacedPoints::SameNodes(&b())));
        assert_eq!(merged, ["b 1 1 [5.0]", "b 1 1 [4.0]", "b 1 1 [6.0]"]);
    }

    #[test]
    fn who_may_read_and_write_a_file_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h200.toml");
        let written = tuning(vec![point("a", "1", 1, 1.0)]);
        save(&path, &written).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for known in [0o600, 0o666, 0o664] {
            fs::set_permissions(&path, fs::Permissions::from_mode(known)).unwrap();
            save(&path, &tuning(Vec::new())).unwrap();
            assert_eq!(mode(&path), known);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        let before = fs::read(&path).unwrap();
        let link = folder.path().join("link.toml");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for path in [&path, &link] {
            for refused in [prepare(path), save(path, &written)] {
                let error = refused.unwrap_err();
                assert!(error.message.ends_with("it is read-only"), "{error:?}");
                assert!(error.help.unwrap_or_default().starts_with("make it writable with `chmod u+w "));
            }
        }
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (before, 0o444));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no other files remain");
    }

    #[test]
    fn a_file_of_another_gpu_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuning/nvidia-h200.toml");
        let own = device("NVIDIA H200", 132);
        assert_eq!(read_for_device(&path, &own), Ok(None));
        let written = tuning(vec![point("a", "1", 1, 1.0)]);
        save(&path, &written).unwrap();
        assert_eq!(read_for_device(&path, &own), Ok(Some(written)));
        for other in [device("NVIDIA H100", 114), device("NVIDIA H200", 114), device("NVIDIA H100", 132)] {
            let errors = read_for_device(&path, &other).unwrap_err();
            assert!(errors[0].message.ends_with("is for another GPU"), "{errors:?}");
        }
        fs::write(&path, "manifest = \"a.toml\"\n[[cases]]\nname = \"a\"\n").unwrap();
        assert!(read_for_device(&path, &own).is_err());
    }
}
