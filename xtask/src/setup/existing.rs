//! Tools that are already on the machine and named in the environment.
//!
//! Owns the variables `CUDA_HOME`, `CUBINDER_NVRTC` and `TENSORRT_RTX_HOME`; the compiler reads the first two in the same way
//! (its `toolkit` module). A named tool that is not there is an error, never
//! a reason to fetch another. Never writes into a named folder.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The environment, as a function so that tests can bring their own.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// What is named in the environment and there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Existing {
    pub(crate) nvrtc: Option<Nvrtc>,
    /// Folders for the compiler's include path: of `CUDA_HOME`, or beside the library that was named.
    pub(crate) include: Option<Vec<PathBuf>>,
    pub(crate) tensorrt: Option<TensorRt>,
}

/// The library that compiles kernels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Nvrtc {
    pub(crate) library: PathBuf,
    /// The variable that named it.
    pub(crate) variable: &'static str,
}

/// An installation of TensorRT-RTX.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TensorRt {
    /// The folder with `libtensorrt_rtx.so.1` or `libtensorrt_rtx.so`.
    pub(crate) libs: PathBuf,
    /// The folder that holds the Python package `tensorrt_rtx_bindings`, if there is one inside or beside.
    pub(crate) bindings: Option<PathBuf>,
}

impl Existing {
    /// Reads the variables and looks at what they name.
    ///
    /// # Errors
    /// When a variable names something that is not what it should be; the message names the variable.
    pub(crate) fn find(variables: Variables<'_>) -> Result<Self> {
        let named = |variable: &str| variables(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let (cuda, library) = (named("CUDA_HOME"), named("CUBINDER_NVRTC"));
        let nvrtc = match (&library, &cuda) {
            (Some(named), _) => Some(named_nvrtc(named)?),
            (None, Some(home)) => Some(cuda_nvrtc(home)?),
            (None, None) => None,
        };
        let include = match (&cuda, &nvrtc) {
            (Some(home), _) => Some(cuda_include(home)?),
            (None, Some(nvrtc)) => include_beside(&nvrtc.library),
            (None, None) => None,
        };
        let tensorrt = named("TENSORRT_RTX_HOME").as_deref().map(tensorrt).transpose()?;
        Ok(Self { nvrtc, include, tensorrt })
    }
}

/// Where an installed CUDA toolkit keeps NVRTC. This list and the next are the compiler's too (its `toolkit` module), in the
/// same order.
const HOME_FOLDERS: [&str; 3] = ["lib64", "targets/x86_64-linux/lib", "lib"];
/// Where NVRTC is looked for in a folder that was named for it.
const NAMED_FOLDERS: [&str; 5] = ["", "lib64", "lib", "targets/x86_64-linux/lib", "nvidia/cu13/lib"];

fn named_nvrtc(named: &Path) -> Result<Nvrtc> {
    let library =
        if named.is_file() { Some(named.to_path_buf()) } else { nvrtc_below(named, &NAMED_FOLDERS) };
    let library = library.with_context(|| {
        format!(
            "`CUBINDER_NVRTC` names `{}`, which is neither a file nor a folder with `libnvrtc.so.*`\n  \
             help: name the library, or unset the variable to have NVRTC fetched",
            named.display()
        )
    })?;
    Ok(Nvrtc { library: followed(&library)?, variable: "CUBINDER_NVRTC" })
}

fn cuda_nvrtc(home: &Path) -> Result<Nvrtc> {
    let library = nvrtc_below(home, &HOME_FOLDERS).with_context(|| {
        format!(
            "`CUDA_HOME` names `{}`, which has no `libnvrtc.so.*` in `lib64`, `targets/x86_64-linux/lib` or `lib`\n  \
             help: name the folder of a CUDA toolkit, or unset the variable to have NVRTC fetched",
            home.display()
        )
    })?;
    Ok(Nvrtc { library: followed(&library)?, variable: "CUDA_HOME" })
}

fn nvrtc_below(root: &Path, folders: &[&str]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| nvrtc_in(&root.join(folder)))
}

/// The file itself, links followed, as the compiler does: headers are looked for beside it.
fn followed(library: &Path) -> Result<PathBuf> {
    fs::canonicalize(library)
        .with_context(|| format!("`{}` cannot be followed to its file", library.display()))
}

/// The library of the highest version in `folder`; the unversioned name, a link to one of the others, counts as lowest.
fn nvrtc_in(folder: &Path) -> Option<PathBuf> {
    let version = |name: &str| -> Option<Vec<u32>> {
        let rest = name.strip_prefix("libnvrtc.so")?;
        if rest.is_empty() {
            return Some(Vec::new());
        }
        rest.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect()
    };
    let names = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let libraries = names.filter_map(|name| Some((version(&name)?, folder.join(&name))));
    libraries.filter(|(_, library)| library.is_file()).max().map(|(_, library)| library)
}

fn cuda_include(home: &Path) -> Result<Vec<PathBuf>> {
    include_folders(&home.join("include"))?.with_context(|| {
        format!(
            "`CUDA_HOME` names `{}`, which has no `include/cuda_fp16.h`\n  \
             help: install the headers of that toolkit (the CUDA runtime's development package), or unset the variable to \
             have them fetched",
            home.display()
        )
    })
}

/// Headers of the toolkit that a named library lies in; where there are none, the pinned ones serve.
fn include_beside(library: &Path) -> Option<Vec<PathBuf>> {
    let include = library.parent()?.parent()?.join("include");
    include_folders(&include).ok().flatten()
}

fn include_folders(include: &Path) -> Result<Option<Vec<PathBuf>>> {
    if !include.join("cuda_fp16.h").is_file() {
        return Ok(None);
    }
    let include = absolute(include)?;
    // CUDA 13 moved the C++ headers into a folder of their own.
    let cccl = include.join("cccl");
    Ok(Some(if cccl.is_dir() { vec![include, cccl] } else { vec![include] }))
}

fn tensorrt(home: &Path) -> Result<TensorRt> {
    let folders = ["", "lib", "tensorrt_rtx_libs"].map(|folder| home.join(folder));
    let has_library = |folder: &&PathBuf| {
        ["libtensorrt_rtx.so.1", "libtensorrt_rtx.so"].iter().any(|name| folder.join(name).is_file())
    };
    let libs = folders.iter().find(has_library).with_context(|| {
        format!(
            "`TENSORRT_RTX_HOME` names `{}`, which has no `libtensorrt_rtx.so.1` in itself or in `lib`\n  \
             help: name the folder of an unpacked TensorRT-RTX, or unset the variable to have it fetched",
            home.display()
        )
    })?;
    let libs = absolute(libs)?;
    let home = absolute(home)?;
    let beside = libs.parent().map(Path::to_path_buf);
    let places =
        [Some(home.clone()), Some(home.join("python")), beside, home.parent().map(Path::to_path_buf)];
    let has_bindings = |folder: &PathBuf| folder.join("tensorrt_rtx_bindings/__init__.py").is_file();
    Ok(TensorRt { bindings: places.into_iter().flatten().find(has_bindings), libs })
}

fn absolute(path: &Path) -> Result<PathBuf> {
    // `components` drops the empty end that joining "" leaves.
    let path: PathBuf = path.components().collect();
    std::path::absolute(&path).with_context(|| format!("`{}` has no absolute form", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with these empty files.
    fn tree(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn find(variables: &[(&str, &Path)]) -> Result<Existing, String> {
        let lookup = |name: &str| Some(variables.iter().find(|(key, _)| *key == name)?.1.into());
        Existing::find(&lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_named_nothing_found() {
        assert_eq!(find(&[]).unwrap(), Existing::default());
        assert_eq!(find(&[("CUDA_HOME", Path::new(""))]).unwrap(), Existing::default());
    }

    #[test]
    fn a_toolkit_gives_library_and_headers() {
        let cuda =
            tree(&["lib64/libnvrtc.so.12", "lib64/libnvrtc.so.13", "include/cuda_fp16.h", "include/cccl/x"]);
        let found = find(&[("CUDA_HOME", cuda.path())]).unwrap();
        let nvrtc = found.nvrtc.unwrap();
        assert_eq!((nvrtc.library, nvrtc.variable), (cuda.path().join("lib64/libnvrtc.so.13"), "CUDA_HOME"));
        assert_eq!(found.include.unwrap(), [cuda.path().join("include"), cuda.path().join("include/cccl")]);
        assert_eq!(found.tensorrt, None);
    }

    #[test]
    fn a_named_library_goes_before_the_toolkits() {
        let cuda = tree(&["lib/libnvrtc.so", "include/cuda_fp16.h", "mine/libnvrtc.so.13"]);
        let mine = cuda.path().join("mine/libnvrtc.so.13");
        let found = find(&[("CUDA_HOME", cuda.path()), ("CUBINDER_NVRTC", &mine)]).unwrap();
        let nvrtc = found.nvrtc.unwrap();
        assert_eq!((nvrtc.library, nvrtc.variable), (mine, "CUBINDER_NVRTC"));
        assert_eq!(found.include.unwrap(), [cuda.path().join("include")]);
    }

    #[test]
    fn a_named_library_or_folder_brings_the_headers_beside_it() {
        let cuda = tree(&["lib64/libnvrtc.so.13.0.88", "include/cuda_fp16.h"]);
        let library = cuda.path().join("lib64/libnvrtc.so.13.0.88");
        for named in [&library, &cuda.path().join("lib64"), cuda.path()] {
            let found = find(&[("CUBINDER_NVRTC", named)]).unwrap();
            assert_eq!(found.nvrtc.unwrap().library, library);
            assert_eq!(found.include.unwrap(), [cuda.path().join("include")]);
        }
        let alone = tree(&["lib/libnvrtc.so.13", "include/nvrtc.h"]);
        assert_eq!(find(&[("CUBINDER_NVRTC", alone.path())]).unwrap().include, None);
    }

    /// The compiler has to find the same: its `toolkit` module has this test too.
    #[test]
    fn the_folders_of_a_toolkit_have_an_order() {
        let folder = tree(&["include/cuda_fp16.h"]);
        let root = folder.path().canonicalize().unwrap();
        for (added, of_home, of_named) in [
            ("nvidia/cu13/lib", None, "nvidia/cu13/lib"),
            ("lib", Some("lib"), "lib"),
            ("targets/x86_64-linux/lib", Some("targets/x86_64-linux/lib"), "lib"),
            ("lib64", Some("lib64"), "lib64"),
            ("", Some("lib64"), ""),
        ] {
            fs::create_dir_all(root.join(added)).unwrap();
            fs::write(root.join(added).join("libnvrtc.so.13"), "").unwrap();
            let library = |folder: &str| root.join(folder).join("libnvrtc.so.13");
            let home = find(&[("CUDA_HOME", &root)]).ok().map(|found| found.nvrtc.unwrap().library);
            assert_eq!(home, of_home.map(library), "{added}");
            let named = find(&[("CUBINDER_NVRTC", &root)]).unwrap().nvrtc.unwrap().library;
            assert_eq!(named, library(of_named), "{added}");
        }
    }

    /// Headers lie beside the file that a link leads to; in the compiler as well.
    #[test]
    fn a_link_to_nvrtc_is_followed() {
        let folder = tree(&["cuda/lib64/libnvrtc.so.13", "cuda/include/cuda_fp16.h"]);
        let root = folder.path().canonicalize().unwrap();
        let link = root.join("libnvrtc.so");
        std::os::unix::fs::symlink(root.join("cuda/lib64/libnvrtc.so.13"), &link).unwrap();
        let found = find(&[("CUBINDER_NVRTC", &link)]).unwrap();
        assert_eq!(found.nvrtc.unwrap().library, root.join("cuda/lib64/libnvrtc.so.13"));
        assert_eq!(found.include.unwrap(), [root.join("cuda/include")]);
    }

    #[test]
    fn an_unpacked_tensorrt_is_found_in_its_shapes() {
        let archive = tree(&["lib/libtensorrt_rtx.so", "python/tensorrt_rtx_bindings/__init__.py"]);
        let found = find(&[("TENSORRT_RTX_HOME", archive.path())]).unwrap().tensorrt.unwrap();
        assert_eq!(found.libs, archive.path().join("lib"));
        assert_eq!(found.bindings, Some(archive.path().join("python")));

        let site = tree(&["tensorrt_rtx_libs/libtensorrt_rtx.so.1", "tensorrt_rtx_bindings/__init__.py"]);
        let libs = site.path().join("tensorrt_rtx_libs");
        for home in [site.path(), &libs] {
            let found = find(&[("TENSORRT_RTX_HOME", home)]).unwrap().tensorrt.unwrap();
            assert_eq!((found.libs, found.bindings), (libs.clone(), Some(site.path().to_path_buf())));
        }

        let bare = tree(&["a/b/libtensorrt_rtx.so.1"]);
        let found = find(&[("TENSORRT_RTX_HOME", &bare.path().join("a/b/"))]).unwrap().tensorrt.unwrap();
        assert_eq!((found.libs, found.bindings), (bare.path().join("a/b"), None));
    }

    #[test]
    fn a_named_thing_that_is_not_there_is_an_error_naming_the_variable() {
        let empty = tree(&["lib64/libnvrtc-builtins.so.13.0"]);
        for variable in ["CUDA_HOME", "CUBINDER_NVRTC", "TENSORRT_RTX_HOME"] {
            let error = find(&[(variable, empty.path())]).unwrap_err();
            assert!(
                error.starts_with(&format!("`{variable}` names `{}`, which ", empty.path().display())),
                "{error}"
            );
        }
        let no_headers = tree(&["lib64/libnvrtc.so.13"]);
        let error = find(&[("CUDA_HOME", no_headers.path())]).unwrap_err();
        assert!(error.contains("which has no `include/cuda_fp16.h`"), "{error}");
    }
}
