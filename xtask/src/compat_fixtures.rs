//! `cargo xtask compat-fixtures`: the files of the current format version. A test of the compiler crate
//! writes them.

use anyhow::Result;

use crate::{process, workspace};

pub(crate) fn run() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "cubinder", "--test", "it", "compat::"]);
    command.envs([("CUBINDER_WRITE_COMPAT", "1"), ("INSTA_UPDATE", "always")]);
    process::inherit(&mut command)
}
