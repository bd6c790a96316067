//! `cargo xtask docs`: the generated tables of the reference. A test of the compiler crate generates them.

use anyhow::Result;

use crate::{process, workspace};

pub(crate) const LONG_ABOUT: &str = "\
Write the tables of docs/manifest.md anew: keys, types, operators, functions and rules, made from the program itself; and those of docs/plugins.md and docs/plugins/*.md, made from the manifests and the cases that hold their plugins against a reference.

With --check nothing is written, and the command fails where the tables are out of date; `cargo xtask test` fails then too.";

pub(crate) fn run(check: bool) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "cubinder", "--test", "it", "docs::"]);
    command.env("CUBINDER_UPDATE_DOCS", if check { "0" } else { "1" });
    process::inherit(&mut command)
}
