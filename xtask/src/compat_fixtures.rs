//! `cargo xtask compat-fixtures`: the files of the current format version. A test of the compiler crate
//! writes them.

use anyhow::Result;

use crate::{process, workspace};

pub(crate) const LONG_ABOUT: &str = "\
Write tests/data/compat/<format version>/ anew, for the version of the format that this checkout writes: a bundle, a node's field and a reference.

Only before a release: what a release has written must be read, or refused by name, by all that come after it.";

pub(crate) fn run() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "cubinder", "--test", "it", "compat::"]);
    command.envs([("CUBINDER_WRITE_COMPAT", "1"), ("INSTA_UPDATE", "always")]);
    process::inherit(&mut command)
}
