//! Builds the handwritten C++ plugin and its kernel: `reference-plugin CODE_FOLDER OUT.so`.

use std::path::Path;
use std::process::ExitCode;

use cubinder_tests::{headers, reference_plugin};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [code, out] = arguments.as_slice() else {
        eprintln!("usage: reference-plugin CODE_FOLDER OUT.so");
        return ExitCode::from(2);
    };
    let (code, out) = (Path::new(code), Path::new(out));
    let built = reference_plugin::compile_code(code)
        .and_then(|()| reference_plugin::build(headers::RTX_1_7, code, out));
    match built {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
