//! `cargo xtask docs`: the generated tables of the reference.
//!
//! The tables are made by a test of the compiler crate, which is where their data is; this only runs it.

use anyhow::Result;

use crate::{process, workspace};

/// The help of the command.
pub(crate) const LONG_ABOUT: &str = "\
Write the tables of docs/manifest.md anew: keys, types, operators, functions and rules, made from the program itself; and those of docs/plugins.md and docs/plugins/*.md, made from the manifests and the cases that hold their plugins against a reference.

With --check nothing is written, and the command fails where the tables are out of date; `cargo xtask test` fails then too.";

/// Runs the test that compares the tables, or writes them.
///
/// # Errors
/// When the tables are out of date and `check` is set, or a marker of the document is missing.
pub(crate) fn run(check: bool) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "cubinder", "--test", "it", "docs::"]);
    command.env("CUBINDER_UPDATE_DOCS", if check { "0" } else { "1" });
    process::inherit(&mut command)
}
