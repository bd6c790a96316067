//! Builds the library in TensorRT's role: `player OUT`.

use std::path::Path;
use std::process::ExitCode;

use cubinder_tests::player;

fn main() -> ExitCode {
    let Some(out) = std::env::args_os().nth(1) else {
        eprintln!("usage: player OUT");
        return ExitCode::from(2);
    };
    match player::build(Path::new(&out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
