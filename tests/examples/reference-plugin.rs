//! Builds the hand-written C++ plugin: `cargo run -p cubinder-tests --example reference-plugin -- CODE_FOLDER OUT.so`.

use std::process::ExitCode;

use cubinder_tests::{headers, reference_plugin};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [code, out] = arguments.as_slice() else {
        eprintln!(
            "usage: reference-plugin CODE_FOLDER OUT.so\nthe folder holds {}",
            reference_plugin::CODE.join(" and ")
        );
        return ExitCode::from(2);
    };
    match reference_plugin::build(headers::RTX_1_7, code.as_ref(), out.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
