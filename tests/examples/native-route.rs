//! Builds the program in full TensorRT's role: `cargo run -p cubinder-tests --example native-route`.

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
