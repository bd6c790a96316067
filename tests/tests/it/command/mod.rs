//! The command with a stand-in driver for `tests/data/testing`.

#![allow(unreachable_pub)]

use std::path::{Path, PathBuf};
use std::process::Command;

use cubinder_skip::skip;
use cubinder_tests::cxx;
use cubinder_tests::fake_driver::{self, Age};
use serde_json::Value;

pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Run {
    #[track_caller]
    pub fn report(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    #[track_caller]
    pub fn assert_code(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
    }
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

pub fn command(arguments: &[&str]) -> Option<Command> {
    if cxx::compiler_version().is_none() {
        skip("no C++ compiler; install g++, or set `CXX`");
        return None;
    }
    let (Some(program), Some(python)) =
        (std::env::var_os("CUBINDER_BIN"), std::env::var_os("CUBINDER_TEST_PYTHON"))
    else {
        skip("`CUBINDER_BIN` or `CUBINDER_TEST_PYTHON` is not set; `cargo xtask test` sets both");
        return None;
    };
    let driver = fake_driver::driver_folder(Age::New).expect("the fake driver is built");
    let mut command = Command::new(program);
    command.current_dir(root()).args(arguments);
    command.env("LD_LIBRARY_PATH", driver).env("CUBINDER_PYTHON", python);
    command.envs(std::env::var_os("CUBINDER_TEST_PYTHONPATH").map(|path| ("PYTHONPATH", path)));
    Some(command)
}

pub fn finish(command: &mut Command) -> Run {
    let output = command.output().expect("the command starts");
    Run {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
