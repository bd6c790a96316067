//! Builds the shim that fails driver calls: `driver-faults OUT.so`.

use std::path::Path;
use std::process::ExitCode;

use cubinder_tests::driver_faults;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [out] = arguments.as_slice() else {
        eprintln!("usage: driver-faults OUT.so");
        return ExitCode::from(2);
    };
    match driver_faults::build(Path::new(out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
