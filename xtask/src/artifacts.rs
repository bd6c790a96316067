//! The release build of the compiler and of the runtime library.
//!
//! Owns how they are built and where cargo put them: cargo itself says where, so a target folder or a target triple from the
//! user's configuration is respected. Never builds anything else.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{process, workspace};

/// Built files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Artifacts {
    /// The program `cubinder`.
    pub(crate) compiler: PathBuf,
    /// The runtime library without a bundle, `libcubinder.so`.
    pub(crate) runtime_library: PathBuf,
}

/// Builds them; `on_line` sees what cargo and the compiler say. Where `CUBINDER_PREBUILT` is set, what `CUBINDER_BIN` and
/// `CUBINDER_RUNTIME_LIBRARY` name is taken instead: `cargo xtask test` has every step use what it has built once.
///
/// # Errors
/// When the build fails.
pub(crate) fn build(mut on_line: impl FnMut(&str)) -> Result<Artifacts> {
    if std::env::var_os(PREBUILT).is_some() {
        return Artifacts::prebuilt(&|name| std::env::var_os(name).map(PathBuf::from));
    }
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--package", "cubinder-plugin", "--package", "cubinder"]);
    Artifacts::among(&messages(&mut command, &mut on_line)?)
}

/// Says that nothing is to be built.
pub(crate) const PREBUILT: &str = "CUBINDER_PREBUILT";

/// Runs a build of cargo's and gives what it says about the files that it made.
///
/// # Errors
/// When the build fails.
pub(crate) fn messages(command: &mut Command, on_line: &mut impl FnMut(&str)) -> Result<Vec<Message>> {
    command.args(["--message-format", "json-render-diagnostics"]);
    let mut messages = Vec::new();
    let status = process::stream(command, |line| match Message::parse(line) {
        Some(message) => messages.push(message),
        None => on_line(line),
    })?;
    if !status.success() {
        bail!("`{}` failed ({status})", process::command_line(command));
    }
    Ok(messages)
}

/// One of cargo's messages, of which only those about finished artifacts matter here.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    target: Target,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Message {
    /// A line of cargo's JSON; `None` for text meant for people.
    fn parse(line: &str) -> Option<Self> {
        line.starts_with("{\"reason\":").then(|| serde_json::from_str(line).ok()).flatten()
    }

    fn is(&self, name: &str, kind: &str) -> bool {
        self.target.name == name && self.target.kind.iter().any(|found| found == kind)
    }
}

impl Artifacts {
    /// What the environment names.
    fn prebuilt(variables: &dyn Fn(&str) -> Option<PathBuf>) -> Result<Self> {
        let named = |name: &str| {
            variables(name)
                .with_context(|| format!("`{PREBUILT}` is set, and `{name}` names no file that was built"))
        };
        Ok(Self { compiler: named("CUBINDER_BIN")?, runtime_library: named("CUBINDER_RUNTIME_LIBRARY")? })
    }

    /// The program and the library among what was built.
    ///
    /// # Errors
    /// When one of them is missing.
    pub(crate) fn among(messages: &[Message]) -> Result<Self> {
        let compiler = messages.iter().find(|message| message.is("cubinder", "bin"));
        let compiler = compiler.and_then(|message| message.executable.clone());
        let library = messages.iter().find(|message| message.is("cubinder", "cdylib"));
        let is_library = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "so");
        let library = library.and_then(|message| message.filenames.iter().find(is_library).cloned());
        let missing = |what: &str| format!("cargo built no {what}");
        Ok(Self {
            compiler: compiler.with_context(|| missing("program `cubinder`"))?,
            runtime_library: library.with_context(|| missing("library `libcubinder.so`"))?,
        })
    }

    /// Variables under which tests and the compiler find the built files.
    pub(crate) fn environment(&self) -> [(&'static str, &Path); 2] {
        [("CUBINDER_BIN", &self.compiler), ("CUBINDER_RUNTIME_LIBRARY", &self.runtime_library)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_already_is_named_by_the_environment() {
        let all = |name: &str| Some(PathBuf::from("/t").join(name));
        assert_eq!(Artifacts::prebuilt(&all).unwrap().compiler, Path::new("/t/CUBINDER_BIN"));
        let error = Artifacts::prebuilt(&|_| None).unwrap_err().to_string();
        assert_eq!(error, "`CUBINDER_PREBUILT` is set, and `CUBINDER_BIN` names no file that was built");
    }

    #[test]
    fn cargo_says_where_the_files_are() {
        let lines = [
            r#"{"reason":"compiler-artifact","target":{"kind":["cdylib","rlib"],"name":"cubinder"},"filenames":["/t/libcubinder.so","/t/libcubinder.rlib"],"executable":null,"fresh":true}"#,
            r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"cubinder_compiler"},"filenames":["/t/l.rlib"],"executable":null}"#,
            r#"{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"cubinder"},"filenames":["/t/cubinder"],"executable":"/t/cubinder"}"#,
            r#"{"reason":"build-finished","success":true}"#,
            "   Compiling cubinder v0.1.0",
        ];
        let messages: Vec<_> = lines.iter().filter_map(|line| Message::parse(line)).collect();
        assert_eq!(messages.len(), 4);
        let expected =
            Artifacts { compiler: "/t/cubinder".into(), runtime_library: "/t/libcubinder.so".into() };
        assert_eq!(Artifacts::among(&messages).unwrap(), expected);
        let error = Artifacts::among(&messages[..1]).unwrap_err().to_string();
        assert_eq!(error, "cargo built no program `cubinder`");
    }
}
