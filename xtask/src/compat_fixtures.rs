//! `cargo xtask compat-fixtures`: the files that say what this version of the format is.
//!
//! They are made by a test of the compiler crate; this only runs it.

use anyhow::Result;

use crate::{process, workspace};

/// The help of the command.
pub(crate) const LONG_ABOUT: &str = "\
Write tests/data/compat/<format version>/ anew, for the version of the format that this checkout writes: a bundle, a node's field and a reference.

Only before a release: what a release has written must be read, or refused by name, by all that come after it.";

/// Runs the test that writes and then reads the files.
///
/// # Errors
/// When what was written does not read.
pub(crate) fn run() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["test", "--package", "cubinder", "--test", "it", "compat::"]);
    command.envs([("CUBINDER_WRITE_COMPAT", "1"), ("INSTA_UPDATE", "always")]);
    process::inherit(&mut command)
}
