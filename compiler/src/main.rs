//! The command line.
//!
//! Owns arguments, terminal and exit codes: 0 done, 1 a mistake of the user's or of the world's, 2 wrong usage. What a command
//! does is in the library.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
