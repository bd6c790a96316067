//! Compiles this repository's plugins in both forms.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// Inputs of a compile.
#[derive(Clone, Copy, Debug)]
pub struct Recipe<'a> {
    /// Relative to the repository; empty: those of `cubinder.toml`.
    pub manifests: &'a [&'a str],
    /// Targets of the kernels.
    pub targets: &'a [&'a str],
}

/// A plugin library and its runtime library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The plugin library, for ONNX models.
    pub plugins: PathBuf,
    /// The runtime library, for engines.
    pub runtime: PathBuf,
}

/// Compiled libraries.
#[derive(Debug)]
pub struct Compiled {
    /// Plugin libraries with their runtime libraries.
    pub libraries: Vec<Pair>,
    _folder: Option<TempDir>,
}

impl Compiled {
    /// Returns the libraries in `CUBINDER_TEST_LIBRARIES`, otherwise compiles `recipe`, if possible.
    pub fn from_environment(recipe: Recipe<'_>) -> Result<Option<Compiled>> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let generic = variable("CUBINDER_RUNTIME_LIBRARY");
        if let Some(folder) = variable("CUBINDER_TEST_LIBRARIES") {
            let generic = generic.unwrap_or_else(|| folder.join("libcubinder.so"));
            return Ok(Some(Compiled { libraries: libraries_in(&folder, &generic)?, _folder: None }));
        }
        Compiled::by(recipe)
    }

    /// Compiles `recipe`; `None` without compiler or runtime library.
    pub fn by(recipe: Recipe<'_>) -> Result<Option<Compiled>> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        match (variable("CUBINDER_BIN"), variable("CUBINDER_RUNTIME_LIBRARY")) {
            (Some(compiler), Some(generic)) => compile(&compiler, &generic, recipe).map(Some),
            _ => Ok(None),
        }
    }
}

fn compile(compiler: &Path, generic: &Path, recipe: Recipe<'_>) -> Result<Compiled> {
    let folder = tempfile::tempdir()?;
    let mut libraries = Vec::new();
    for form in [None, Some("--embed")] {
        let output = folder.path().join(form.map_or("fields", |_| "embedded"));
        let mut command = Command::new(compiler);
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        command.arg("compile").arg("--out-dir").arg(&output).args(["--name", "conformance"]);
        command.args(form).args(recipe.manifests);
        for target in recipe.targets {
            command.args(["--target", target]);
        }
        let done = command.output().with_context(|| format!("cannot run `{}`", compiler.display()))?;
        if !done.status.success() {
            bail!("`{}` failed\n{}", compiler.display(), String::from_utf8_lossy(&done.stderr));
        }
        libraries.extend(libraries_in(&output, generic)?);
    }
    Ok(Compiled { libraries, _folder: Some(folder) })
}

/// Finds every `lib<name>.so` with its `lib<name>-code.so`, otherwise `generic`.
fn libraries_in(folder: &Path, generic: &Path) -> Result<Vec<Pair>> {
    let mut libraries = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))? {
        let plugins = entry?.path();
        let name = plugins.file_name().and_then(|name| name.to_str());
        let Some(stem) = name.and_then(|name| name.strip_prefix("lib")?.strip_suffix(".so")) else {
            continue;
        };
        if stem == "cubinder" || stem.ends_with("-code") {
            continue;
        }
        let code = folder.join(format!("lib{stem}-code.so"));
        let runtime = if code.is_file() { code } else { generic.to_owned() };
        libraries.push(Pair { plugins, runtime });
    }
    libraries.sort_by(|a, b| a.plugins.cmp(&b.plugins));
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_library_runs_the_engines_of_its_own_plugins() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["liba.so", "liba-code.so", "libb.so", "libcubinder.so", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let in_folder = |name: &str| folder.path().join(name);
        let generic = Path::new("generic.so");
        assert_eq!(
            libraries_in(folder.path(), generic).unwrap(),
            [
                Pair { plugins: in_folder("liba.so"), runtime: in_folder("liba-code.so") },
                Pair { plugins: in_folder("libb.so"), runtime: generic.to_owned() },
            ]
        );
    }
}
