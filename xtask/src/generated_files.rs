//! Files written by the compiler's tests: tables (`cargo xtask docs`), and the current format
//! (`cargo xtask compat-fixtures`).

use anyhow::Result;

use crate::{process, workspace};

pub(crate) fn docs(check: bool) -> Result<()> {
    run_tests("docs::", &[("CUBINDER_UPDATE_DOCS", if check { "0" } else { "1" })])
}

pub(crate) fn compat_fixtures() -> Result<()> {
    run_tests("compat::", &[("CUBINDER_WRITE_COMPAT", "1"), ("INSTA_UPDATE", "always")])
}

fn run_tests(filter: &str, variables: &[(&str, &str)]) -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "cubinder", "--test", "it", filter]);
    process::inherit(command.envs(variables.iter().copied()))
}
