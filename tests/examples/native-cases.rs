//! Writes a native library's test cases: `native-cases LIBRARY MANIFEST OUT.toml`. Without arguments, prints all native
//! manifests as JSON.

use std::path::Path;
use std::process::ExitCode;

use cubinder_tests::{native_cases, native_route};

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [] => {
            println!("{}", serde_json::json!(native_route::MANIFESTS));
            ExitCode::SUCCESS
        }
        [library, manifest, output] => {
            match native_cases::write(Path::new(library), Path::new(manifest), Path::new(output)) {
                Ok(count) => {
                    println!("{count}");
                    ExitCode::SUCCESS
                }
                Err(error) => {
                    eprintln!("error: {error:#}");
                    ExitCode::FAILURE
                }
            }
        }
        _ => {
            eprintln!("usage: native-cases [LIBRARY MANIFEST OUT.toml]");
            ExitCode::from(2)
        }
    }
}
