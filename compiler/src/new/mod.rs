//! Creates a plugin: a valid manifest, kernel and test. Writes all files or none, never over existing ones.

use std::path::{Path, PathBuf};

use cubinder_manifest::config::{self, FILE_NAME};
use cubinder_manifest::manifest::toml_reader::is_identifier;
use cubinder_source::atomic_file::{self, AtomicFile, file_error, parent_folder};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::path::is_same_file;
use cubinder_source::source;

/// Maximum name length, for file names and symbols.
const LONGEST_NAME: usize = 64;

const CONFIG: &str = include_str!("templates/cubinder.toml");

/// What a new plugin computes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// Each output element from one input element
    #[default]
    Elementwise,
    /// The sum of each row
    Reduction,
    /// An output in the memory of its input
    Inplace,
    /// An output whose size depends on the data
    DataDependent,
}

macro_rules! files {
    ($folder:literal) => {
        TemplateFiles {
            manifest: include_str!(concat!("templates/", $folder, "/manifest.toml")),
            kernel: include_str!(concat!("templates/", $folder, "/kernel.cu")),
            cases: include_str!(concat!("templates/", $folder, "/cases.toml")),
            reference: include_str!(concat!("templates/", $folder, "/reference.py")),
        }
    };
}

struct TemplateFiles {
    manifest: &'static str,
    kernel: &'static str,
    cases: &'static str,
    reference: &'static str,
}

impl Template {
    fn files(self) -> TemplateFiles {
        match self {
            Template::Elementwise => files!("elementwise"),
            Template::Reduction => files!("reduction"),
            Template::Inplace => files!("inplace"),
            Template::DataDependent => files!("data_dependent"),
        }
    }

    /// Returns an attribute with a value, as `cubinder eval` reads it.
    #[must_use]
    pub fn attribute(self) -> Option<&'static str> {
        match self {
            Template::Elementwise => Some("factor=2"),
            Template::Reduction => None,
            Template::Inplace => Some("delta=2"),
            Template::DataDependent => Some("threshold=2"),
        }
    }
}

/// The files to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The project's folder.
    pub folder: PathBuf,
    /// Whether the project exists.
    pub is_added: bool,
    /// Paths and texts.
    pub files: Vec<(PathBuf, String)>,
}

/// Plans plugin `name` in a new or existing project `folder`; default: the project around `here`, else a new folder
/// `name`.
///
/// # Errors
/// An invalid name.
pub fn plan(name: &str, template: Template, folder: Option<&Path>, here: &Path) -> Result<Plan, Diagnostic> {
    check_name(name)?;
    let TemplateFiles { manifest, kernel, cases, reference } = template.files();
    let text = |template: &str| template.replace("@NAME@", name);
    let (project, is_added) = match folder {
        Some(folder) => (folder.to_path_buf(), folder.join(FILE_NAME).is_file()),
        None => match around(here) {
            Some(project) => (project, true),
            None => (PathBuf::from(name), false),
        },
    };
    let mut files = Vec::new();
    if !is_added {
        files.push((project.join(FILE_NAME), text(CONFIG)));
    }
    files.push((project.join("manifests").join(format!("{name}.toml")), text(manifest)));
    files.push((project.join("kernels").join(format!("{name}.cu")), text(kernel)));
    files.push((project.join("tests").join(format!("{name}.toml")), text(cases)));
    files.push((project.join("tests").join(format!("{name}_reference.py")), text(reference)));
    Ok(Plan { folder: project, is_added, files })
}

fn check_name(name: &str) -> Result<(), Diagnostic> {
    let error = |why: &str| Diagnostic::error(format!("invalid plugin name `{name}`")).note(why);
    if !is_identifier(name) {
        return Err(error(
            "expected an identifier: ASCII letters, digits and `_`, not starting with a digit",
        ));
    }
    if name.len() > LONGEST_NAME {
        return Err(error(&format!("it has {} characters, expected at most {LONGEST_NAME}", name.len())));
    }
    if name == "cubinder" {
        return Err(error("`libcubinder.so` is the name of the runtime library"));
    }
    Ok(())
}

/// Returns the relative path up to the project: `../..`, or empty.
fn around(here: &Path) -> Option<PathBuf> {
    let above = here.ancestors().position(|folder| folder.join(FILE_NAME).is_file())?;
    Some(std::iter::repeat_n("..", above).collect())
}

/// Writes files and folders. Accepts identical files of an interrupted run, unless all exist.
///
/// # Errors
/// Existing files (before any write); I/O errors.
pub fn write(plan: &Plan) -> Result<(), Vec<Diagnostic>> {
    let (there, missing): (Vec<_>, Vec<_>) =
        plan.files.iter().partition(|(path, _)| path.symlink_metadata().is_ok());
    let is_as_planned = |(path, text): &&&(PathBuf, String)| {
        source::read(path, text.len()).is_ok_and(|bytes| bytes == text.as_bytes())
    };
    let is_unfinished = !missing.is_empty() && there.iter().all(|file| is_as_planned(&file));
    if !there.is_empty() && !is_unfinished {
        return Err(there_already(&there));
    }
    let mut drafts = Vec::new();
    for (path, text) in missing {
        let folder = parent_folder(path);
        std::fs::create_dir_all(folder).map_err(|error| file_error("create the folder", folder, &error))?;
        let draft = AtomicFile::with_bytes(path, text.as_bytes())
            .map_err(|error| file_error("write", path, &error))?;
        drafts.push((draft, path));
    }
    // Another process may have created one meanwhile.
    Ok(atomic_file::persist_all_new(drafts).map_err(Diagnostic::from)?)
}

fn there_already(there: &[&(PathBuf, String)]) -> Vec<Diagnostic> {
    let last = there.len().saturating_sub(1);
    let tell = |(index, (path, _)): (usize, &&(PathBuf, String))| {
        let error = Diagnostic::error(format!("`{}` already exists", path.display()));
        if index == last { error.help("choose another name; nothing was written") } else { error }
    };
    there.iter().enumerate().map(tell).collect()
}

/// Returns whether `cubinder.toml` names the new manifest.
#[must_use]
pub fn is_named(plan: &Plan, name: &str) -> bool {
    let config = config::load(&plan.folder.join(FILE_NAME));
    let paths = config.and_then(|config| config.manifest_paths()).unwrap_or_default();
    let manifest = plan.folder.join("manifests").join(format!("{name}.toml"));
    paths.iter().any(|path| is_same_file(path, &manifest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_are_refused() {
        let plan = |name: &str| plan(name, Template::default(), None, Path::new("/srv/nothing"));
        for name in ["", "1x", "a-b", "a b", "../x", "ä", "cubinder", &"x".repeat(65)] {
            assert!(plan(name).is_err(), "{name}");
        }
        assert!(plan("new").is_ok());
    }

    #[test]
    fn a_plugin_is_added_to_the_project_around() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("manifests");
        let files = |plan: Plan| -> Vec<String> {
            let shown = |(path, _): &(PathBuf, String)| {
                path.display().to_string().replace(&folder.path().display().to_string(), "[TEMP]")
            };
            plan.files.iter().map(shown).collect()
        };
        let fresh = files(plan("scale", Template::default(), None, &inner).unwrap());
        assert_eq!(fresh[0], "scale/cubinder.toml");
        assert_eq!(fresh[1], "scale/manifests/scale.toml");
        std::fs::write(folder.path().join(FILE_NAME), "").unwrap();
        let added = files(plan("scale", Template::default(), None, &inner).unwrap());
        assert_eq!(
            added,
            [
                "../manifests/scale.toml",
                "../kernels/scale.cu",
                "../tests/scale.toml",
                "../tests/scale_reference.py"
            ]
        );
        let here = files(plan("scale", Template::default(), None, folder.path()).unwrap());
        assert_eq!(
            here,
            ["manifests/scale.toml", "kernels/scale.cu", "tests/scale.toml", "tests/scale_reference.py"]
        );
        assert_eq!(
            files(plan("scale", Template::default(), Some(folder.path()), &inner).unwrap())[0],
            "[TEMP]/manifests/scale.toml"
        );
        assert_eq!(
            files(plan("scale", Template::default(), Some(&inner), folder.path()).unwrap())[0],
            "[TEMP]/manifests/cubinder.toml"
        );
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let plan = || plan("scale", Template::default(), Some(folder.path()), folder.path()).unwrap();
        let made = plan();
        write(&made).unwrap();
        assert!(is_named(&made, "scale"));
        let kernel = folder.path().join("kernels/scale.cu");
        std::fs::write(&kernel, "mine").unwrap();
        std::fs::remove_file(folder.path().join("manifests/scale.toml")).unwrap();
        let errors = write(&plan()).unwrap_err();
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert_eq!(std::fs::read_to_string(&kernel).unwrap(), "mine");
        assert!(!folder.path().join("manifests/scale.toml").exists());
    }

    #[test]
    fn what_a_killed_run_began_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan("scale", Template::default(), Some(folder.path()), folder.path()).unwrap();
        write(&plan).unwrap();
        std::fs::remove_file(&plan.files[2].0).unwrap();
        std::fs::remove_file(&plan.files[4].0).unwrap();
        write(&plan).unwrap();
        assert!(plan.files.iter().all(|(path, text)| std::fs::read_to_string(path).unwrap() == *text));
        assert_eq!(write(&plan).unwrap_err().len(), 5);
    }
}
