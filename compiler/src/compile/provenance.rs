//! Builds a bundle's provenance record ([`cubinder_model::provenance`]) with file names relative to the project.

use std::path::Path;

use cubinder_manifest::resolve::{ForeignCode, Unit};
use cubinder_model::provenance::{Compiler, File, Headers, Origin, Read};
use cubinder_model::{Digest, Provenance};
use cubinder_node::tuning;
use cubinder_nvrtc::codegen::{self, display_name};
use cubinder_nvrtc::nvrtc::{PreparedUnit, Session};
use cubinder_source::diagnostic::{Diagnostic, Source};
use cubinder_source::source;

use crate::check_plugins::CheckedPlugin;
use crate::project::Project;

/// `origins` are per code object.
pub(super) fn record(
    project: &Project,
    plugins: &[CheckedPlugin],
    tuning: &[tuning::File],
    compiler: Option<Compiler>,
    origins: Vec<Vec<Origin>>,
) -> Provenance {
    let file = |source: &Source| File {
        path: name(&source.path, &project.root, &[]),
        digest: digest(&source.path, source.text.as_bytes()),
    };
    let mut record = Provenance {
        cubinder: env!("CARGO_PKG_VERSION").to_owned(),
        compiler,
        manifests: plugins.iter().map(|plugin| file(&plugin.resolved.source)).collect(),
        tuning: tuning.iter().map(|tuning| file(&tuning.source)).collect(),
        ..Provenance::default()
    };
    origins.into_iter().for_each(|origins| record.add(origins));
    record
}

pub(super) fn producer(nvrtc: Option<(i32, i32)>, plugins: &[CheckedPlugin]) -> String {
    let mut producer = format!("cubinder {}", env!("CARGO_PKG_VERSION"));
    if let Some((major, minor)) = nvrtc {
        producer.push_str(&format!(", NVRTC {major}.{minor}"));
    }
    let units = plugins.iter().flat_map(|plugin| &plugin.resolved.draft.units);
    let mut others: Vec<String> = Vec::new();
    for code in units.filter_map(|unit| unit.foreign.as_ref()) {
        let compiler = if code.made_by.is_empty() { "another compiler" } else { &code.made_by };
        let other = format!("; {} by {compiler}", code.name);
        if !others.contains(&other) {
            others.push(other);
        }
    }
    producer + &others.concat()
}

pub(super) fn compiler(session: Option<&Session>, release: Option<(i32, i32)>) -> Option<Compiler> {
    let (session, (major, minor)) = session.zip(release)?;
    let identity = session.toolkit().nvrtc_identity().ok()?;
    Some(Compiler { name: format!("NVRTC {major}.{minor}"), identity })
}

pub(super) fn of_source(
    project: &Project,
    session: &Session,
    unit: &Unit,
    prepared: &PreparedUnit,
) -> Origin {
    let root = project.root.as_path();
    let translation = &prepared.unit;
    let folders = prepared.settings.include.as_slice();
    let included = session.found_files(prepared);
    let mut read: Vec<File> =
        included.map(|(path, digest)| File { path: name(path, root, folders), digest }).collect();
    let tables = codegen::tables(unit, &translation.source.text).into_iter();
    for (table, file) in tables.filter_map(|table| Some((table, table.file.as_ref()?))) {
        // The elements are the file's bytes.
        let digest = Digest::compute(&table.data);
        read.push(File { path: name(&file.path, root, &[]), digest });
    }
    let headers = session.found_headers(prepared);
    let headers = headers.map(|(name, digest)| File { path: plain(&name.to_string_lossy()), digest });
    let headers = Headers::from_files(in_order(headers.collect()));
    let read = in_order(read);
    let text = &translation.source.text;
    Origin::Source {
        file: File { path: name(&unit.source, root, &[]), digest: digest(&unit.source, text.as_bytes()) },
        read: Read::Files(read),
        headers,
        is_open: prepared.has_computed_includes(),
        options: prepared.settings.options.iter().map(|option| plain(option)).collect(),
    }
}

fn in_order(mut files: Vec<File>) -> Vec<File> {
    files.sort_by(|one, other| (&one.path, one.digest).cmp(&(&other.path, other.digest)));
    files.dedup();
    files
}

pub(super) fn doubt_of_headers(
    session: Option<&Session>,
    release: Option<(i32, i32)>,
    origins: &[Vec<Origin>],
) -> Option<Diagnostic> {
    let needs_headers = |origin: &Origin| matches!(origin, Origin::Source { headers: Some(_), .. });
    let (session, release) = session.zip(release)?;
    origins.iter().flatten().any(needs_headers).then(|| session.toolkit().doubt_of_headers(release)).flatten()
}

pub(super) fn of_foreign(root: &Path, code: &ForeignCode, index: usize) -> Option<Origin> {
    let file = code.files.get(index)?;
    let loaded = file.loaded.as_ref()?;
    Some(Origin::Imported {
        file: File { path: name(&file.path, root, &[]), digest: digest(&file.path, &loaded.bytes) },
        made_by: plain(&code.made_by),
    })
}

/// Names a file relative to the project or an include folder, else by file name.
fn name(path: &Path, root: &Path, include: &[std::path::PathBuf]) -> String {
    let way = display_name(path, root);
    if is_below(&way) {
        return plain(&way);
    }
    let mut outside = include.iter().filter(|folder| !is_below(&display_name(folder, root)));
    if let Some(rest) = outside.find_map(|folder| path.strip_prefix(folder).ok()) {
        return plain(&format!("<{}>", rest.display()));
    }
    match Path::new(&way).is_relative() {
        true => plain(&way),
        false => plain(&path.file_name().unwrap_or_default().to_string_lossy()),
    }
}

fn is_below(way: &str) -> bool {
    Path::new(way).is_relative() && !way.starts_with("..")
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Returns the digest of a file that contains `used` (ignoring a UTF-8 mark and trailing NULs), else of `used`.
fn digest(path: &Path, used: &[u8]) -> Digest {
    let bytes = source::read(path, source::LARGEST_BINARY).unwrap_or_default();
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    let rest = text.strip_prefix(used);
    match rest.is_some_and(|rest| rest.iter().all(|byte| *byte == 0)) {
        true => Digest::compute(&bytes),
        false => Digest::compute(used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_the_project_and_not_of_the_machine() {
        let named = |path: &str, root: &str, include: &[&str]| {
            let include: Vec<_> = include.iter().map(std::path::PathBuf::from).collect();
            name(Path::new(path), Path::new(root), &include)
        };
        assert_eq!(named("/srv/p/manifests/../kernels/k.cu", "/srv/p", &[]), "kernels/k.cu");
        assert_eq!(named("kernels/k.cu", "", &[]), "kernels/k.cu");
        assert_eq!(named("../shared/k.cu", ".", &[]), "../shared/k.cu");
        assert_eq!(named("/srv/shared/k.cu", "/srv/p", &[]), "../shared/k.cu");
        assert_eq!(named("/opt/lib/include/lib/a.h", "/srv/p", &["/opt/lib/include"]), "<lib/a.h>");
        assert_eq!(named("/opt/lib/include/lib/a.h", "p", &["include", "/opt/lib/include"]), "<lib/a.h>");
        assert_eq!(named("/srv/lib/a.h", "/srv/p", &["/srv/lib"]), "<a.h>");
        assert_eq!(named("../lib/a.h", ".", &["../lib"]), "<a.h>");
        assert_eq!(named("/srv/p/include/a.h", "/srv/p", &["/srv/p/include"]), "include/a.h");
        assert_eq!(named("/elsewhere/k.cu", "/srv/p", &[]), "k.cu");
        assert_eq!(named("a\nb.cu", ".", &[]), "a?b.cu");
    }

    #[test]
    fn digests_are_of_the_files_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.cu");
        for (bytes, used) in [("\u{feff}text", "text"), ("text", "text"), ("text\0", "text")] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(digest(&path, used.as_bytes()), Digest::compute(bytes.as_bytes()));
        }
        std::fs::write(&path, "changed since").unwrap();
        assert_eq!(digest(&path, b"text"), Digest::compute(b"text"));
        assert_eq!(digest(&folder.path().join("none"), b"text"), Digest::compute(b"text"));
    }
}
