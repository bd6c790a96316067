//! Runs the conformance oracle: `oracle rtx-1.7 --library LIB.so [--runtime-library LIB2.so] [--case CASE]`.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use cubinder_tests::headers;
use cubinder_tests::oracle::Oracle;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let asked = arguments.next();
    let generations = headers::generations()?;
    let found =
        generations.iter().find(|generation| asked.as_ref().is_some_and(|name| name == generation.name));
    let generation = *found.with_context(|| {
        let names: Vec<&str> = generations.iter().map(|generation| generation.name).collect();
        format!("the first argument is one of {}", names.join(", "))
    })?;
    let status = Command::new(Oracle::build(generation)?.program()).args(arguments).status()?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
