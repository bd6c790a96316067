//! Builds the program that times `enqueue` and a bare launch: `own-time OUT`.

use std::path::Path;
use std::process::ExitCode;

use cubinder_tests::own_time;

fn main() -> ExitCode {
    let Some(out) = std::env::args_os().nth(1) else {
        eprintln!("usage: own-time OUT");
        return ExitCode::from(2);
    };
    match own_time::build(Path::new(&out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
