use clap::Args;
use cubinder_compiler::doctor::{Check, Status, checks};
use cubinder_nvrtc::installation::Installation;
use cubinder_source::columns::columns;
use cubinder_source::diagnostic::{Diagnostic, harmless};
use cubinder_tensorrt::Search;

use super::output::{print, print_report};
use super::{nvrtc, paths};

/// Check what Cubinder uses on this machine: NVRTC, CUDA headers, TensorRT and TensorRT-RTX, CUDA driver, GPU, cache.
///
/// Each part is `ok`, a `problem`, or `not found`, with the command that fixes it. NVRTC is loaded, and the Python modules of TensorRT are imported, in
/// other processes. The libraries are those that `cubinder compile` and `cubinder build` would use.
///
/// Exit code 1 if a part has a problem, 0 otherwise. A missing runtime library or NVRTC is a problem; the other parts are optional.
#[derive(Args)]
pub(super) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let installation = Installation::of_this_program();
    let program = installation.program.as_deref();
    let search = Search::from_env(program.and_then(std::path::Path::parent));
    let library = paths::runtime_library(&installation);
    let checks = checks(program, library, &nvrtc::overrides(None), &search);
    let is_ok = checks.iter().all(|check| check.status != Status::Problem);
    if arguments.json {
        #[derive(serde::Serialize)]
        struct Report<'c> {
            checks: &'c [Check],
        }
        print_report(if is_ok { "ok" } else { "problem" }, &Report { checks: &checks })?;
    } else {
        print(&text(&checks));
    }
    Ok(is_ok)
}

fn text(checks: &[Check]) -> String {
    let mut rows = Vec::new();
    for check in checks {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Problem => "problem",
            Status::NotFound => "not found",
        };
        let place = check.path.as_ref().map(ToString::to_string);
        let first: Vec<String> = check.version.iter().cloned().chain(place).collect();
        let first = Some(first.join("  ")).filter(|first| !first.is_empty());
        let fix = check.fix.as_ref().filter(|_| check.status != Status::Ok).map(|fix| format!("fix: {fix}"));
        let mut names = [check.subject, status];
        for line in first.into_iter().chain(check.found.iter().cloned()).chain(fix) {
            rows.push(vec![names[0].to_owned(), names[1].to_owned(), line]);
            names = [""; 2];
        }
    }
    harmless(&columns(&rows, 0, &[]), false)
}
