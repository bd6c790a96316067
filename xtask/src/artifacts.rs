use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use cargo_metadata::{Artifact, Message};

use crate::{process, workspace};

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Artifacts {
    pub(crate) compiler: PathBuf,
    pub(crate) runtime_library: PathBuf,
    /// `libcubinder_torch.so`.
    pub(crate) torch_kernels: PathBuf,
}

/// With `CUBINDER_PREBUILT`, returns the files named by `CUBINDER_BIN`, `CUBINDER_RUNTIME_LIBRARY` and
/// `CUBINDER_TORCH_KERNELS`.
pub(crate) fn build(mut on_line: impl FnMut(&str)) -> Result<Artifacts> {
    if std::env::var_os(PREBUILT).is_some() {
        return Artifacts::prebuilt(&|name| std::env::var_os(name).map(PathBuf::from));
    }
    let mut built = Vec::new();
    for build in BUILDS {
        built.extend(messages(workspace::cargo().args(build), &mut on_line)?);
    }
    Artifacts::among(&built)
}

/// cargo applies link-time optimization only if it builds no `rlib` of the package.
pub(crate) const BUILDS: [&[&str]; 3] = [
    &["build", "--package", "cubinder-torch", "--profile", "runtime"],
    &["rustc", "--package", "cubinder-plugin", "--profile", "runtime", "--lib", "--crate-type", "cdylib"],
    &["build", "--package", "cubinder", "--profile", "release"],
];

pub(crate) const PREBUILT: &str = "CUBINDER_PREBUILT";

pub(crate) fn messages(command: &mut Command, on_line: &mut impl FnMut(&str)) -> Result<Vec<Artifact>> {
    command.args(["--message-format", "json-render-diagnostics"]);
    let mut messages = Vec::new();
    process::follow(command, |line| match serde_json::from_str(line) {
        Ok(Message::CompilerArtifact(artifact)) => messages.push(artifact),
        Ok(_) => {}
        Err(_) => on_line(line),
    })?;
    Ok(messages)
}

impl Artifacts {
    fn prebuilt(variables: &dyn Fn(&str) -> Option<PathBuf>) -> Result<Self> {
        let named = |name: &str| {
            variables(name)
                .with_context(|| format!("`{PREBUILT}` is set, but `{name}` does not name an existing file"))
        };
        Ok(Self {
            compiler: named("CUBINDER_BIN")?,
            runtime_library: named("CUBINDER_RUNTIME_LIBRARY")?,
            torch_kernels: named("CUBINDER_TORCH_KERNELS")?,
        })
    }

    pub(crate) fn among(artifacts: &[Artifact]) -> Result<Self> {
        let of =
            |target: &'static str| artifacts.iter().filter(move |artifact| artifact.target.name == target);
        let library = |target: &'static str| {
            let files = of(target).flat_map(|artifact| &artifact.filenames);
            let library = files.filter(|path| path.extension() == Some("so")).map(PathBuf::from).next();
            library.with_context(|| format!("cargo built no library `lib{target}.so`"))
        };
        let compiler = of("cubinder").find_map(|artifact| artifact.executable.clone());
        Ok(Self {
            compiler: compiler.context("cargo built no program `cubinder`")?.into(),
            runtime_library: library("cubinder")?,
            torch_kernels: library("cubinder_torch")?,
        })
    }

    pub(crate) fn environment(&self) -> [(&'static str, &Path); 3] {
        [
            ("CUBINDER_BIN", &self.compiler),
            ("CUBINDER_RUNTIME_LIBRARY", &self.runtime_library),
            ("CUBINDER_TORCH_KERNELS", &self.torch_kernels),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prebuilt_files_are_named_by_the_environment() {
        let all = |name: &str| Some(PathBuf::from("/t").join(name));
        assert_eq!(Artifacts::prebuilt(&all).unwrap().compiler, Path::new("/t/CUBINDER_BIN"));
        let error = Artifacts::prebuilt(&|_| None).unwrap_err().to_string();
        assert_eq!(error, "`CUBINDER_PREBUILT` is set, but `CUBINDER_BIN` does not name an existing file");
    }

    #[test]
    fn cargo_reports_the_files() {
        let artifact = |name: &str, kind: &str, files: &str, executable: &str| {
            let line = format!(
                r#"{{"reason":"compiler-artifact","package_id":"x","manifest_path":"/x","target":{{"kind":["{kind}"],"crate_types":["{kind}"],
                "name":"{name}","src_path":"/x","edition":"2024"}},"profile":{{"opt_level":"3","debuginfo":0,"debug_assertions":false,
                "overflow_checks":false,"test":false}},"features":[],"filenames":{files},"executable":{executable},"fresh":true}}"#
            );
            match serde_json::from_str(&line).unwrap() {
                Message::CompilerArtifact(artifact) => artifact,
                other => panic!("{other:?}"),
            }
        };
        let messages = [
            artifact("cubinder", "cdylib", r#"["/t/libcubinder.rlib", "/t/libcubinder.so"]"#, "null"),
            artifact("cubinder_torch", "cdylib", r#"["/t/libcubinder_torch.so"]"#, "null"),
            artifact("cubinder_compiler", "lib", r#"["/t/l.rlib"]"#, "null"),
            artifact("cubinder", "bin", r#"["/t/cubinder"]"#, "\"/t/cubinder\""),
        ];
        let expected = Artifacts {
            compiler: "/t/cubinder".into(),
            runtime_library: "/t/libcubinder.so".into(),
            torch_kernels: "/t/libcubinder_torch.so".into(),
        };
        assert_eq!(Artifacts::among(&messages).unwrap(), expected);
        let error = Artifacts::among(&messages[..1]).unwrap_err().to_string();
        assert_eq!(error, "cargo built no program `cubinder`");
    }
}
