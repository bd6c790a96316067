use std::fs;
use std::path::{Path, PathBuf};

use cubinder_compiler::compile::{CompiledLibraries, Request, compile};
use cubinder_compiler::project::{Project, ProjectOptions};
use cubinder_model::container::{self, Container};
use cubinder_model::{Bundle, Digest};
use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
use cubinder_skip::skip;
use cubinder_source::diagnostic::Diagnostic;
use indicatif::ProgressBar;
use tempfile::TempDir;

use super::judge::CONFIG;

pub(crate) struct Tools {
    runtime_library: PathBuf,
    cache: TempDir,
}

impl Tools {
    pub(crate) fn find() -> Option<Tools> {
        let overrides = Overrides::from_env(None);
        if let Err(error) = Toolkit::locate(&overrides) {
            skip(&format!("no NVRTC: {} {:?}", error.message, error.notes));
            return None;
        }
        let Some(runtime_library) = std::env::var_os("CUBINDER_RUNTIME_LIBRARY").map(PathBuf::from) else {
            skip("`CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets it");
            return None;
        };
        let cache = tempfile::tempdir().expect("a folder");
        let toolkit = overrides.cache.expect("a cache folder").join("toolkit");
        if toolkit.is_dir() {
            std::os::unix::fs::symlink(toolkit, cache.path().join("toolkit")).expect("a link");
        }
        Some(Tools { runtime_library, cache })
    }
}

pub(crate) struct Workshop<'t> {
    tools: &'t Tools,
    folder: TempDir,
}

const FOLDERS: [&str; 9] = [
    "tests/data/ok",
    "tests/data/code",
    "tests/data/kernels",
    "tests/data/include",
    "tests/data/tuning",
    "manifests",
    "manifests/cases",
    "kernels",
    "kernels/cubinder",
];

impl<'t> Workshop<'t> {
    pub(crate) fn new(tools: &'t Tools) -> Workshop<'t> {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for name in FOLDERS {
            let copy = folder.path().join(name);
            fs::create_dir_all(&copy).expect("a folder");
            for entry in fs::read_dir(root.join(name)).expect("the folder exists") {
                let path = entry.expect("an entry").path();
                if path.is_file() {
                    fs::copy(&path, copy.join(path.file_name().expect("a name"))).expect("it is copied");
                }
            }
        }
        fs::write(folder.path().join("cubinder.toml"), CONFIG).expect("it is written");
        Workshop { tools, folder }
    }

    pub(crate) fn place_of(&self, manifest: &Path) -> PathBuf {
        let name = manifest.file_name().expect("a name");
        let is_shipped = manifest.parent().is_some_and(|folder| folder.ends_with("manifests"));
        self.folder.path().join(if is_shipped { "manifests" } else { "tests/data/ok" }).join(name)
    }

    pub(crate) fn compile(&self, place: &Path, text: &str) -> Result<Digest, Vec<Diagnostic>> {
        self.outcome(place, text).map(|outcome| outcome.digest)
    }

    pub(crate) fn bundle(&self, place: &Path, text: &str) -> Bundle {
        let outcome = self.outcome(place, text).expect("the manifest is valid");
        assert_eq!(outcome.compiled.warnings, [], "{}", place.display());
        let library = &outcome.libraries.first().expect("a library").path;
        let attached = cubinder_library::read(library).expect("a library").expect("it has a bundle");
        let bytes = fs::read(library).expect("it exists");
        let range = attached.range.start as usize..attached.range.end as usize;
        match container::read(&bytes[range]).expect("a container").container {
            Container::Bundle(bundle) => bundle,
            _ => panic!("no bundle"),
        }
    }

    fn outcome(&self, place: &Path, text: &str) -> Result<CompiledLibraries, Vec<Diagnostic>> {
        fs::write(place, text).expect("it is written");
        let asked = ProjectOptions {
            manifests: vec![place.to_owned()],
            config: Some(self.folder.path().join("cubinder.toml")),
            ..ProjectOptions::default()
        };
        let request = Request {
            project: Project::open(asked, self.folder.path())?,
            library: self.folder.path().join("out/libmutants.so"),
            embed: false,
            depfile: None,
            runtime_library: self.tools.runtime_library.clone(),
            overrides: Overrides {
                cache: Some(self.tools.cache.path().to_owned()),
                ..Overrides::from_env(None)
            },
            use_cache: true,
            deny_warnings: false,
        };
        compile(&request, &ProgressBar::hidden())
    }
}
