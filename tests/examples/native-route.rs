//! Builds the program in full TensorRT's role.

use std::process::ExitCode;

fn main() -> ExitCode {
    match cubinder_tests::native_route::build() {
        Ok(program) => {
            println!("{}", program.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
