//! Tests from data: `cargo test -p cubinder --test cases NAME`.
//!
//! - `ok/NAME`, `manifests/NAME`, `bad/...`: [`manifests`].
//! - `rules/CODE`: rules' pages and examples ([`rules`]).
//! - `mistakes/NAME`, `accepted/NAME`: changes of one plugin ([`mistakes`]).
//!
//! `INSTA_UPDATE=always` rewrites changed snapshots. A separate program: the tests need a common current folder.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

mod manifests;
mod mistakes;
mod rules;
#[path = "../support/mod.rs"]
mod support;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Trial};
use support::Project;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = manifests::trials();
    trials.extend(rules::trials());
    trials.extend(mistakes::trials());
    for prefix in
        ["ok/", "manifests/", "bad/", "bad/several/", "bad/compiled/", "rules/", "mistakes/", "accepted/"]
    {
        assert!(
            trials.iter().any(|trial| trial.name().starts_with(prefix)),
            "no test case starts with `{prefix}`"
        );
    }
    assert!(trials.len() > 100, "only {} cases", trials.len());
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn with_project(name: String, test: impl FnOnce(&Project) + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || {
        let Some(project) = Project::new() else {
            return Ok(Completion::ignored_with("no NVRTC or runtime library"));
        };
        test(&project);
        Ok(Completion::Completed)
    })
}
