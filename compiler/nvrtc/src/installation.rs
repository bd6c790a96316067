//! Locates an installed `cubinder`'s files from the program's path. Must not read other parts of the environment.
//!
//! `cargo xtask dist` and pip install `bin/cubinder`, `lib/libcubinder.so`, `lib/cmake/cubinder` and
//! `share/doc/cubinder`; Python packages are beside `cubinder`.

use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;

/// File name of the prebuilt runtime library.
pub const RUNTIME_LIBRARY: &str = "libcubinder.so";

cubinder_source::diagnostics! {
    struct NoRuntimeLibrary { places: String }
    error "cannot find the prebuilt runtime library `{RUNTIME_LIBRARY}`" {
        note: "{places}";
        note: "plugin libraries are built from it";
        help: "specify it with `--runtime-library FILE` or `CUBINDER_RUNTIME_LIBRARY`; in a checkout, run `cargo build --release \
               -p cubinder-plugin`";
    }

    struct NotInstalled<'a> { missing: &'a str, place: String }
    error "{missing}" {
        note: "{place}";
        help: "install cubinder from its wheel or its archive; in a checkout, `cargo xtask dist` builds both";
    }
}

/// Installed program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installation {
    /// Program's resolved path, if known.
    pub program: Option<PathBuf>,
}

impl Installation {
    /// Returns the running program's installation.
    #[must_use]
    pub fn of_this_program() -> Installation {
        let program = std::env::current_exe().ok();
        Installation { program: program.map(|path| std::fs::canonicalize(&path).unwrap_or(path)) }
    }

    fn folder(&self) -> Option<&Path> {
        self.program.as_deref().and_then(Path::parent)
    }

    /// The folder above `bin`; `None` in build folders.
    fn prefix(&self) -> Option<&Path> {
        self.folder().filter(|folder| folder.ends_with("bin")).and_then(Path::parent)
    }

    /// Returns the runtime library, beside the program or in `../lib`.
    pub fn runtime_library(&self) -> Result<PathBuf, Diagnostic> {
        let places = self.folder().map_or_else(Vec::new, |folder| {
            let lib = self.prefix().map_or_else(|| folder.join("../lib"), |prefix| prefix.join("lib"));
            vec![folder.join(RUNTIME_LIBRARY), lib.join(RUNTIME_LIBRARY)]
        });
        places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
            let shown: Vec<String> = places.iter().map(|path| format!("`{}`", path.display())).collect();
            let places = match shown.as_slice() {
                [] => "the path of this program is unknown".to_owned(),
                _ => format!("searched {}", shown.join(" and ")),
            };
            NoRuntimeLibrary { places }.into()
        })
    }

    /// Returns the CMake package's folder.
    pub fn cmake_package(&self) -> Result<PathBuf, Diagnostic> {
        self.packed("cannot find the CMake package", "lib/cmake/cubinder", "cubinder-config.cmake")
    }

    /// Returns the folder that messages call `docs/...`.
    pub fn documentation(&self) -> Result<PathBuf, Diagnostic> {
        self.packed("cannot find the documentation", "share/doc/cubinder", "manifest.md")
    }

    /// Returns the folder of the included plugins' manifests.
    pub fn plugins(&self) -> Result<PathBuf, Diagnostic> {
        let folder = "share/cubinder/manifests";
        self.packed("cannot find the included plugins", folder, "circ_pad_plugin.toml")
    }

    fn packed(&self, missing: &str, folder: &str, file: &str) -> Result<PathBuf, Diagnostic> {
        let place = self.prefix().map(|prefix| prefix.join(folder));
        let found = place.clone().filter(|folder| folder.join(file).is_file());
        found.ok_or_else(|| {
            let place = match place {
                Some(place) => format!("expected `{}`", place.join(file).display()),
                None => "this program is not in a folder `bin`, so it is not installed".to_owned(),
            };
            NotInstalled { missing, place }.into()
        })
    }

    /// Returns the folder of Python packages with this installation's `cubinder`.
    #[must_use]
    pub fn python_packages(&self) -> Option<PathBuf> {
        let prefix = self.prefix()?;
        // `pip install --target` puts `bin` beside the packages.
        let mut places = vec![prefix.to_owned()];
        for lib in ["lib", "lib64"] {
            let entries = std::fs::read_dir(prefix.join(lib)).into_iter().flatten().flatten();
            let mut pythons: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            pythons.retain(|path| {
                path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
            });
            pythons.sort();
            let packages =
                |python: &PathBuf| ["site-packages", "dist-packages"].map(|name| python.join(name));
            places.extend(pythons.iter().flat_map(packages));
        }
        places.into_iter().find(|place| place.join("cubinder/__init__.py").is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        (folder, root)
    }

    fn at(root: &Path, program: &str) -> Installation {
        Installation { program: Some(root.join(program)) }
    }

    #[test]
    fn an_archive_has_everything_beside_the_program() {
        let (_folder, root) =
            tree(&["bin/cubinder", "lib/libcubinder.so", "lib/cmake/cubinder/cubinder-config.cmake"]);
        let installation = at(&root, "bin/cubinder");
        assert_eq!(installation.runtime_library().unwrap(), root.join("lib/libcubinder.so"));
        assert_eq!(installation.cmake_package().unwrap(), root.join("lib/cmake/cubinder"));
        assert_eq!(installation.python_packages(), None);
        std::fs::write(root.join("bin/libcubinder.so"), "").unwrap();
        assert_eq!(installation.runtime_library().unwrap(), root.join("bin/libcubinder.so"));
    }

    #[test]
    fn python_packages_are_those_that_the_program_came_with() {
        for place in [
            "lib/python3.11/site-packages",
            "lib64/python3.9/site-packages",
            "lib/python3.12/dist-packages",
            "",
        ] {
            let (_folder, root) = tree(&["bin/cubinder", "lib/python3.10/site-packages/nvidia/x"]);
            let installation = at(&root, "bin/cubinder");
            assert_eq!(installation.python_packages(), None);
            let packages = if place.is_empty() { root.clone() } else { root.join(place) };
            std::fs::create_dir_all(packages.join("cubinder")).unwrap();
            std::fs::write(packages.join("cubinder/__init__.py"), "").unwrap();
            assert_eq!(installation.python_packages().unwrap(), packages);
        }
    }

    #[test]
    fn a_build_folder_is_no_installation() {
        let (_folder, root) =
            tree(&["release/cubinder", "lib/python3.11/site-packages/cubinder/__init__.py"]);
        let installation = at(&root, "release/cubinder");
        assert_eq!(installation.python_packages(), None);
        let error = installation.cmake_package().unwrap_err();
        assert_eq!(error.notes, ["this program is not in a folder `bin`, so it is not installed"]);
        let error = installation.runtime_library().unwrap_err();
        let root = root.display();
        assert_eq!(
            error.notes[0],
            format!("searched `{root}/release/libcubinder.so` and `{root}/release/../lib/libcubinder.so`")
        );
    }
}
