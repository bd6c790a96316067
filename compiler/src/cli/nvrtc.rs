//! NVRTC in processes of this program.
//!
//! Owns their command line, which is none of a user's: no help names it.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cubinder_compiler::nvrtc::workers::{WORKER, serve};
use cubinder_compiler::toolkit::Overrides;

/// Where NVRTC and the cache are; NVRTC is called in processes of this program.
pub(super) fn overrides(nvrtc: Option<PathBuf>) -> Overrides {
    // This program, also where its file has been replaced since it was started.
    let program = Path::new("/proc/self/exe");
    let program = if program.exists() { Some(program.to_owned()) } else { std::env::current_exe().ok() };
    Overrides { workers: program, ..Overrides::from_env(nvrtc) }
}

/// Compiles for another process, where this one was started for that.
pub(super) fn as_worker() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let nvrtc = arguments.next().filter(|argument| argument == WORKER).and_then(|_| arguments.next())?;
    Some(match work(Path::new(&nvrtc)) {
        Ok(()) => ExitCode::SUCCESS,
        // Who asked is gone: there is nobody to be told.
        Err(_) => ExitCode::FAILURE,
    })
}

fn work(nvrtc: &Path) -> std::io::Result<()> {
    // Standard output is for answers alone; what NVRTC prints goes to standard error.
    let answers: File = std::io::stdout().as_fd().try_clone_to_owned()?.into();
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    serve(nvrtc, std::io::stdin(), answers)
}
