//! `cargo xtask docs`: the generated tables of the reference. A test of the compiler crate generates them.

use anyhow::Result;

use crate::{process, workspace};

pub(crate) fn run(check: bool) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "cubinder", "--test", "it", "docs::"]);
    command.env("CUBINDER_UPDATE_DOCS", if check { "0" } else { "1" });
    process::inherit(&mut command)
}
