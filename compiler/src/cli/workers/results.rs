//! Shows workers' reports, each with the name of its workers.

use std::io::Write as _;
use std::process::ExitCode;

use cubinder_compiler::remote::gpu::{GpuResult, properties};
use cubinder_manifest::config::WorkerPool;
use cubinder_source::diagnostic::{Diagnostic, harmless, to_json_lines};
use serde_json::Value;

use crate::cli::obligations::failed_json;
use crate::cli::output::{MessageFormat, print, show};

const FAILED: u8 = 1;
const NO_GPU: u8 = 3;

cubinder_source::diagnostics! {
    struct WorkerWithoutGpu { pool: String, properties: String }
    error "a worker of `{pool}` has no GPU" {
        note: "the properties of `{pool}` are {properties}";
        help: "check that they select workers with a GPU, and that `LD_LIBRARY_PATH` in `environment` has the folder of `libcuda.so.1` (docs/gpu-workers.md)";
    }

    struct UnexpectedExit { pool: String, code: i32, log: String }
    error "the command on a worker of `{pool}` exited with code {code}" {
        note: "its messages: {log}";
        help: "run the same command on the worker, or report this as a bug of cubinder";
    }

    struct NoReport { pool: String }
    error "the report of a worker of `{pool}` is incomplete" {
        help: "run the command again; the worker may lack disk space";
    }
}

pub(in crate::cli) struct PoolResult {
    name: String,
    properties: String,
    result: Result<GpuResult, Diagnostic>,
}

impl PoolResult {
    pub(super) fn new(pool: &WorkerPool, result: Result<GpuResult, Diagnostic>) -> PoolResult {
        let (name, properties) = (pool.name.clone(), properties(pool));
        let result = result.and_then(|result| match result.code {
            0 | 1 | 3 => Ok(result),
            code => {
                let log = harmless(result.log.trim(), false);
                Err(UnexpectedExit { pool: name.clone(), code, log }.into())
            }
        });
        PoolResult { name, properties, result }
    }

    pub(in crate::cli) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::cli) fn tuning(&self) -> Option<&str> {
        let result = self.result.as_ref().ok().filter(|result| result.code == 0)?;
        Some(result.tuning.as_str()).filter(|tuning| !tuning.is_empty())
    }

    /// Shows the report and returns its exit code. `errors`, `text` and `amend`'s changes are about this machine.
    pub(in crate::cli) fn show(
        &self,
        json: bool,
        mut errors: Vec<Diagnostic>,
        text: &str,
        amend: impl Fn(&mut Value),
    ) -> u8 {
        let (report, log, mut code) = match &self.result {
            Ok(GpuResult { report, log, code, .. }) => {
                (report.as_str(), log.as_str(), u8::try_from(*code).unwrap_or(FAILED))
            }
            Err(error) => {
                errors.push(error.clone());
                ("", "", FAILED)
            }
        };
        if code == NO_GPU {
            let (pool, properties) = (self.name.clone(), self.properties.clone());
            errors.push(WorkerWithoutGpu { pool, properties }.into());
        } else if !errors.is_empty() {
            code = FAILED;
        }
        self.show_log(log);
        if json {
            let is_complete = self.show_json(report, errors, amend);
            return if is_complete { code } else { FAILED };
        }
        if !report.is_empty() {
            print(&harmless(&format!("{}: {report}{text}\n", self.name), false));
        }
        show(&mut errors, MessageFormat::Human);
        code
    }

    fn show_log(&self, log: &str) {
        let lines = log.lines().map(|line| format!("{}: {line}\n", self.name));
        let _ = std::io::stderr().write_all(harmless(&lines.collect::<String>(), false).as_bytes());
    }

    /// Returns whether the report ends with a result.
    fn show_json(&self, report: &str, mut errors: Vec<Diagnostic>, amend: impl Fn(&mut Value)) -> bool {
        let mut records = objects(report);
        let mut last = records.pop().filter(|last| last["result"].is_string());
        let is_complete = last.is_some();
        if !is_complete && self.result.is_ok() {
            errors.push(NoReport { pool: self.name.clone() }.into());
        }
        last.as_mut().into_iter().for_each(amend);
        records.extend(objects(&to_json_lines(&errors).unwrap_or_default()));
        records.push(last.unwrap_or_else(|| failed_json(&errors)));
        for mut record in records {
            record["worker"] = self.name.as_str().into();
            print(&(record.to_string() + "\n"));
        }
        is_complete
    }
}

fn objects(lines: &str) -> Vec<Value> {
    let values = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
    values.filter(Value::is_object).collect()
}

/// Failures precede missing GPUs.
pub(in crate::cli) fn exit_code(codes: &[u8]) -> ExitCode {
    match codes.iter().all(|code| matches!(*code, 0 | NO_GPU)) {
        true => ExitCode::from(codes.iter().copied().max().unwrap_or(0)),
        false => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn failures_precede_missing_gpus() {
        for (codes, expected) in
            [(&[][..], 0), (&[0, 0], 0), (&[0, 3], 3), (&[3, 1, 0], 1), (&[1], 1), (&[3, 7], 1)]
        {
            assert_eq!(exit_code(codes), ExitCode::from(expected), "{codes:?}");
        }
    }

    #[test]
    fn only_objects_are_records() {
        let lines = "{\"result\":\"passed\"}\n5\nno JSON\n[1]\n{\"a\":1}\n";
        assert_eq!(objects(lines), [serde_json::json!({"result": "passed"}), serde_json::json!({"a": 1})]);
    }

    #[test]
    fn exit_codes_that_the_command_does_not_have_are_failures() {
        let pool =
            WorkerPool { name: "l4".to_owned(), platform: BTreeMap::new(), environment: BTreeMap::new() };
        let text = |text: &str| text.to_owned();
        let result = |code| GpuResult { code, report: text("r"), log: text("log\n"), tuning: text("t") };
        assert_eq!(PoolResult::new(&pool, Ok(result(0))).tuning(), Some("t"));
        assert_eq!(PoolResult::new(&pool, Ok(result(1))).tuning(), None);
        let error = PoolResult::new(&pool, Ok(result(101))).result.unwrap_err();
        assert_eq!(error.message, "the command on a worker of `l4` exited with code 101");
        assert_eq!(error.notes, ["its messages: log"]);
    }
}
