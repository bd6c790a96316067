//! Files for a worker, in the layout of this machine: paths relative to the current folder stay valid.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use cubinder_compiler::remote::gpu::GpuRun;
use cubinder_nvrtc::nvrtc::shared::Input;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::path::is_same_file;

use crate::cli::output::current_folder;

cubinder_source::diagnostics! {
    struct AbsolutePath { path: String }
    error "workers cannot read `{path}`: the path is absolute" {
        help: "write a path relative to the file that names it";
    }

    struct TwoFiles { path: String }
    error "cannot send `{path}` to workers: it and another input have one path there" {
        note: "workers have no links: `a/../b` is `b`";
        help: "write the path without `..` behind a link";
    }

    struct PathNotUtf8 { path: String }
    error "cannot send `{path}` to workers: the path is not UTF-8" {
        help: "rename the file or its folders";
    }
}

/// Files by absolute path, without `..`.
#[derive(Debug)]
pub(in crate::cli) struct Snapshot {
    here: PathBuf,
    inputs: BTreeMap<PathBuf, Input>,
    folders: BTreeSet<PathBuf>,
}

impl Snapshot {
    pub(in crate::cli) fn new() -> Result<Snapshot, Diagnostic> {
        current_folder().map(Snapshot::at)
    }

    fn at(here: PathBuf) -> Snapshot {
        Snapshot { folders: [here.clone()].into(), here, inputs: BTreeMap::new() }
    }

    pub(in crate::cli) fn relative(&self, path: &Path) -> PathBuf {
        if path.is_relative() {
            return path.to_owned();
        }
        let common = self.here.components().zip(path.components()).take_while(|(own, other)| own == other);
        let common = common.count();
        let up = self.here.components().skip(common).map(|_| Component::ParentDir);
        up.chain(path.components().skip(common)).collect()
    }

    /// Ignores missing files; returns the path as an argument.
    pub(in crate::cli) fn add(&mut self, path: &Path) -> Result<String, Diagnostic> {
        if path.is_absolute() {
            return Err(AbsolutePath { path: path.display().to_string() }.into());
        }
        let place = self.place(path);
        let file = self.here.join(path);
        if path_exists(&file) {
            let same = |known: &Input| matches!(known, Input::File(known, _) if is_same_file(known, &file));
            if self.inputs.get(&place).is_some_and(|known| !same(known)) {
                return Err(TwoFiles { path: path.display().to_string() }.into());
            }
            self.inputs.insert(place, Input::File(file, None));
        }
        utf8(path).map(str::to_owned)
    }

    /// Adds a Python file, and all others in its folder and in packages below, which it may import.
    pub(in crate::cli) fn add_python(&mut self, path: &Path) -> Result<String, Diagnostic> {
        let argument = self.add(path)?;
        let mut waiting = vec![path.parent().unwrap_or(Path::new("")).to_owned()];
        while let Some(folder) = waiting.pop() {
            let entries = std::fs::read_dir(self.here.join(&folder)).into_iter().flatten().flatten();
            for entry in entries {
                let path = folder.join(entry.file_name());
                let is_package = || self.here.join(&path).join("__init__.py").is_file();
                // Links could multiply folders.
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_package() {
                    waiting.push(path);
                } else if path.extension().is_some_and(|extension| extension == "py") {
                    self.add(&path)?;
                }
            }
        }
        Ok(argument)
    }

    /// Adds an input of Cubinder, named relative to the current folder.
    pub(in crate::cli) fn add_own(&mut self, name: &str, input: Input) {
        self.inputs.insert(self.here.join(name), input);
    }

    /// Returns where a file is on the worker. Without links, `a/..` is a folder only if `a` exists.
    fn place(&mut self, path: &Path) -> PathBuf {
        let mut place = self.here.clone();
        for component in path.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    self.folders.insert(place.clone());
                    place.pop();
                }
                other => place.push(other),
            }
        }
        self.folders.extend(place.parent().map(Path::to_owned));
        place
    }

    /// Returns the files relative to their nearest common folder, without arguments and limit.
    pub(in crate::cli) fn finish(self) -> Result<GpuRun, Diagnostic> {
        let is_above = |root: &&Path| self.folders.iter().all(|folder| folder.starts_with(root));
        let root = self.here.ancestors().find(is_above).unwrap_or(Path::new("/"));
        let below = |path: &Path| utf8(path.strip_prefix(root).unwrap_or(path)).map(str::to_owned);
        let inputs = self.inputs.iter().map(|(path, input)| Ok((below(path)?, input.clone())));
        let folders = self.folders.iter().filter(|folder| *folder != root).map(|folder| below(folder));
        Ok(GpuRun {
            arguments: Vec::new(),
            inputs: inputs.collect::<Result<_, Diagnostic>>()?,
            folders: folders.collect::<Result<_, Diagnostic>>()?,
            folder: below(&self.here)?,
            limit: Duration::ZERO,
        })
    }
}

fn path_exists(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| !facts.is_dir())
}

fn utf8(path: &Path) -> Result<&str, Diagnostic> {
    path.to_str().ok_or_else(|| PathNotUtf8 { path: path.display().to_string() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(run: &GpuRun) -> Vec<&str> {
        run.inputs.keys().map(String::as_str).collect()
    }

    #[test]
    fn paths_stay_valid_on_the_worker() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        for path in
            ["a/project/tests/c.toml", "a/project/tests/r.py", "a/project/tests/helper.py", "a/data/x.npy"]
        {
            write(path);
        }
        for path in [
            "a/project/tests/package/__init__.py",
            "a/project/tests/package/m.py",
            "a/project/tests/other/n.py",
        ] {
            write(path);
        }
        let here = folder.path().join("a/project");
        let mut snapshot = Snapshot::at(here.clone());
        assert_eq!(snapshot.relative(&here.join("tests/c.toml")), Path::new("tests/c.toml"));
        assert_eq!(snapshot.relative(&folder.path().join("a/data/x.npy")), Path::new("../data/x.npy"));
        assert_eq!(snapshot.add(Path::new("tests/c.toml")).unwrap(), "tests/c.toml");
        assert_eq!(snapshot.add(Path::new("tests/missing.npy")).unwrap(), "tests/missing.npy");
        snapshot.add_python(Path::new("tests/r.py")).unwrap();
        snapshot.add_own(".cubinder/plugin", Input::Bytes(Vec::new()));
        let tests = [
            "tests/c.toml",
            "tests/helper.py",
            "tests/package/__init__.py",
            "tests/package/m.py",
            "tests/r.py",
        ];
        let run = Snapshot { here, ..snapshot }.finish().unwrap();
        assert_eq!((names(&run), run.folder.as_str()), ([&[".cubinder/plugin"], &tests[..]].concat(), ""));

        std::fs::create_dir(folder.path().join("a/project/gone")).unwrap();
        let mut snapshot = Snapshot::at(folder.path().join("a/project"));
        snapshot.add(Path::new("gone/../../data/x.npy")).unwrap();
        let run = snapshot.finish().unwrap();
        assert_eq!((names(&run), run.folder.as_str()), (vec!["data/x.npy"], "project"));
        let folders: Vec<&str> = run.folders.iter().map(String::as_str).collect();
        assert_eq!(folders, ["data", "project", "project/gone"]);
    }

    #[test]
    fn paths_that_workers_cannot_read_are_rejected() {
        use std::os::unix::ffi::OsStrExt as _;
        let mut snapshot = Snapshot::at("/a".into());
        let error = snapshot.add(Path::new("/data/x.npy")).unwrap_err();
        assert_eq!(error.message, "workers cannot read `/data/x.npy`: the path is absolute");
        let error = snapshot.add(Path::new(std::ffi::OsStr::from_bytes(b"\xff.npy"))).unwrap_err();
        assert!(error.message.ends_with("the path is not UTF-8"), "{error:?}");
    }
}
