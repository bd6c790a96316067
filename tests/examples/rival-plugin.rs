//! Builds the library of handwritten plugins: `rival-plugin OPS CODE OUT.so`.

use std::path::Path;
use std::process::ExitCode;

use cubinder_tests::rival_plugin;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [ops, code, out] = arguments.as_slice() else {
        eprintln!("usage: rival-plugin OPS CODE OUT.so");
        return ExitCode::from(2);
    };
    match rival_plugin::build(Path::new(ops), Path::new(code), Path::new(out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
