//! Runs NVRTC in worker processes of this program.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cubinder_nvrtc::nvrtc::shared::{EXECUTE, execute};
use cubinder_nvrtc::nvrtc::workers::{WORKER, serve};
use cubinder_nvrtc::toolkit::Overrides;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

pub(super) fn overrides(nvrtc: Option<PathBuf>) -> Overrides {
    // Valid even if the program's file was replaced.
    let program = Path::new("/proc/self/exe");
    let program = if program.exists() { Some(program.to_owned()) } else { std::env::current_exe().ok() };
    Overrides { workers: program, ..Overrides::from_env(nvrtc) }
}

/// Compiles for a parent or a server if this process is a worker.
pub(super) fn as_worker() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    if first == EXECUTE {
        return Some(match run_action(arguments.next()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(message) => {
                // The server may have closed the log.
                let _ = writeln!(std::io::stderr(), "{message}");
                ExitCode::FAILURE
            }
        });
    }
    let nvrtc = Some(first).filter(|argument| argument == WORKER).and_then(|_| arguments.next())?;
    Some(match work(Path::new(&nvrtc)) {
        Ok(()) => ExitCode::SUCCESS,
        // The parent has exited.
        Err(_) => ExitCode::FAILURE,
    })
}

fn run_action(count: Option<std::ffi::OsString>) -> Result<(), String> {
    let count =
        count.and_then(|count| count.to_str()?.parse().ok()).ok_or("expected a number of compiles")?;
    let root = std::env::current_dir().map_err(|error| error.to_string())?;
    let program = overrides(None).workers.ok_or("the program has no path")?;
    execute(&root, &program, count)
}

fn work(nvrtc: &Path) -> std::io::Result<()> {
    // NVRTC prints to stdout.
    let answers: File = std::io::stdout().as_fd().try_clone_to_owned()?.into();
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    // Without the thread, the worker exits after the compile.
    let _ = std::thread::Builder::new().name("parent watch".to_owned()).spawn(end_with_who_asks);
    serve(nvrtc, std::io::stdin(), answers)
}

/// Exits when the parent closes stdin, since a compile may never return. `PR_SET_PDEATHSIG` would already fire when
/// the parent's *thread* exits (prctl(2)).
fn end_with_who_asks() {
    let jobs = std::io::stdin();
    loop {
        // Polls only for hang-up; the compiling thread reads the data.
        let mut polled = [PollFd::new(&jobs, PollFlags::empty())];
        match poll(&mut polled, None) {
            Err(Errno::INTR) => {}
            Ok(_) if polled.iter().any(|end| end.revents().intersects(PollFlags::HUP | PollFlags::ERR)) => {
                // NVRTC may run in another thread, so no orderly exit.
                let _ = kill_process(getpid(), Signal::KILL);
            }
            _ => return,
        }
    }
}
