//! NVRTC in processes of this program.
//!
//! Owns their command line, which is none of a user's: no help names it.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cubinder_nvrtc::nvrtc::workers::{WORKER, serve};
use cubinder_nvrtc::toolkit::Overrides;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

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
    // Without a thread it ends after the compile.
    let _ = std::thread::Builder::new().name("who asks".to_owned()).spawn(end_with_who_asks);
    serve(nvrtc, std::io::stdin(), answers)
}

/// Ends this process when the other end of its standard input is gone: who asked has ended, and nobody knows whether a compile does. A signal at the
/// parent's death would not do: it comes when the thread ends that started this process (prctl(2), `PR_SET_PDEATHSIG`), and threads hand such
/// processes to each other.
fn end_with_who_asks() {
    let jobs = std::io::stdin();
    loop {
        // No more than that the other end is gone: what is there to read is for who compiles.
        let mut polled = [PollFd::new(&jobs, PollFlags::empty())];
        match poll(&mut polled, None) {
            Err(Errno::INTR) => {}
            Ok(_) if polled.iter().any(|end| end.revents().intersects(PollFlags::HUP | PollFlags::ERR)) => {
                // NVRTC may be at work in another thread: nothing of it is to be taken down in order.
                let _ = kill_process(getpid(), Signal::KILL);
            }
            // It cannot be asked.
            _ => return,
        }
    }
}
