//! Runs NVRTC in processes, one per concurrent compile: NVRTC serializes compiles within a process (13.0, tested), and
//! a crash ends only one. Owns both ends of their messages ([`Workers`], [`serve`]). Must not interpret what is
//! compiled.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use nvrtc_sys::{CompileError, Nvrtc, Output, Program};
use rustix::fs::MemfdFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{BUILT_IN, in_a_thread};

/// A worker's first argument; NVRTC's path is the second.
pub const WORKER: &str = "--nvrtc-worker";

/// In bytes, far above real texts and code.
const MAX_MESSAGE: u32 = 1 << 30;

/// Makes glibc (mallopt(3)) keep freed memory. NVRTC allocates tens of megabytes per program; their page faults cost a
/// short kernel 6 % processor time (13.0).
const MEMORY: [(&str, &str); 3] = [
    // Threads compile in turn.
    ("MALLOC_ARENA_MAX", "1"),
    // Effectively no limit.
    ("MALLOC_TRIM_THRESHOLD_", "1099511627776"),
    // glibc's maximum; larger blocks are mapped and unmapped.
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
];

/// Variables of NVRTC 13.0.88: options, NVVM versions, module folders, debug output.
const READ_BY_NVRTC: [&str; 5] = ["NVRTC", "NV_NVVM", "NVVM_", "EDG_", "DUMP_KNOBS"];

pub(super) fn is_read_by_nvrtc(name: &OsStr) -> bool {
    READ_BY_NVRTC.iter().any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WorkerOutput {
    pub(super) output: Output,
    /// NVRTC's standard error, if captured.
    pub(super) printed: Option<Vec<u8>>,
}

/// Worker processes, one per concurrent compile.
#[derive(Debug)]
pub struct Workers {
    program: PathBuf,
    nvrtc: PathBuf,
    /// Loading NVRTC.
    starting: Mutex<Vec<Worker>>,
    idle: Mutex<Vec<Worker>>,
    /// Killed, not yet reaped.
    ending: Mutex<Vec<Worker>>,
    /// Set after the first compile that fails only with [`super::TRACE_INCLUDES`]: each failure costs a process.
    pub(super) cannot_trace: AtomicBool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NvrtcInfo {
    pub(super) version: (i32, i32),
    /// Supported architectures, or why they are unknown.
    pub(super) archs: Result<Vec<u32>, String>,
}

impl NvrtcInfo {
    pub(super) fn query(nvrtc: &Nvrtc) -> NvrtcInfo {
        let archs = nvrtc.supported_archs().map_err(|error| error.to_string());
        NvrtcInfo { version: nvrtc.version(), archs }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorkerFailure {
    Start(String),
    Ended(Ending),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ending {
    /// Exit status, or error of the exchange.
    pub(super) reason: String,
    pub(super) printed: Vec<String>,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        self.printed.iter().try_for_each(|line| write!(f, "; it printed `{line}`"))
    }
}

/// Lines of [`Ending::printed`], and characters of each.
const MAX_LINES: usize = 5;
const MAX_CHARACTERS: usize = 300;

/// Bytes read from the end.
const MAX_OUTPUT: u64 = 8 << 10;

/// Omits the include trace.
fn last_lines(mut output: &File) -> io::Result<Vec<String>> {
    let length = output.metadata()?.len();
    output.seek(SeekFrom::Start(length.saturating_sub(MAX_OUTPUT)))?;
    let mut bytes = Vec::new();
    output.take(MAX_OUTPUT).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let is_traced = |line: &str| BUILT_IN.contains(&line) || Path::new(line).is_file();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !is_traced(line));
    let mut lines: Vec<String> =
        lines.rev().take(MAX_LINES).map(|line| line.chars().take(MAX_CHARACTERS).collect()).collect();
    lines.reverse();
    Ok(lines)
}

type Greeting = Result<NvrtcInfo, String>;

type Answer = Result<WorkerOutput, CompileError>;

impl Workers {
    pub(super) fn new(program: &Path, nvrtc: &Path) -> Workers {
        Workers {
            program: program.to_owned(),
            nvrtc: nvrtc.to_owned(),
            starting: Mutex::default(),
            idle: Mutex::default(),
            ending: Mutex::default(),
            cannot_trace: AtomicBool::new(false),
        }
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Starts a process without waiting, as loading NVRTC takes as long as a short compile. Failures are reported on use.
    pub(super) fn start(&self) {
        if let Ok(worker) = Worker::start(&self.program, &self.nvrtc) {
            push(&self.starting, worker);
        }
    }

    pub(super) fn about(&self) -> Result<NvrtcInfo, String> {
        let (worker, about) = self.started()?;
        push(&self.idle, worker);
        Ok(about)
    }

    fn started(&self) -> Result<(Worker, NvrtcInfo), String> {
        let starting = pop(&self.starting).map_or_else(|| Worker::start(&self.program, &self.nvrtc), Ok);
        let cannot = |error: io::Error| format!("cannot start `{}`: {error}", self.program.display());
        starting.map_err(cannot)?.ready(&self.nvrtc)
    }

    /// Compiles in an idle or new process; retries in a new one if an idle one is lost.
    pub(super) fn compile(&self, program: &Program) -> Result<Answer, WorkerFailure> {
        if let Some(worker) = pop(&self.idle)
            && let Ok(answer) = self.ask(worker, program)
        {
            return Ok(answer);
        }
        let (worker, _) = self.started().map_err(WorkerFailure::Start)?;
        self.ask(worker, program)
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.starting.lock().unwrap().len() + self.idle.lock().unwrap().len()
    }

    pub(super) fn stop_idle(&self) {
        for mut worker in std::iter::from_fn(|| pop(&self.starting).or_else(|| pop(&self.idle))) {
            let _ = worker.child.kill();
            push(&self.ending, worker);
        }
    }

    fn ask(&self, mut worker: Worker, program: &Program) -> Result<Answer, WorkerFailure> {
        let answer = send(&mut worker.jobs, program).and_then(|()| receive::<Answer>(&mut worker.answers));
        match answer {
            Ok(result) => {
                // NVRTC keeps state of a failed compile.
                if result.is_ok() {
                    push(&self.idle, worker);
                }
                Ok(result)
            }
            Err(error) => Err(WorkerFailure::Ended(worker.end(&error))),
        }
    }
}

impl Drop for Workers {
    /// Processes exit in parallel.
    fn drop(&mut self) {
        self.stop_idle();
    }
}

fn pop<T>(list: &Mutex<Vec<T>>) -> Option<T> {
    list.lock().ok()?.pop()
}

fn push<T>(list: &Mutex<Vec<T>>, item: T) {
    if let Ok(mut list) = list.lock() {
        list.push(item);
    }
}

#[derive(Debug)]
struct Worker {
    child: Child,
    jobs: ChildStdin,
    answers: ChildStdout,
    /// Standard error.
    printed: File,
}

impl Worker {
    fn start(program: &Path, nvrtc: &Path) -> io::Result<Worker> {
        // This process's memory file survives a crash of the worker.
        let printed = File::from(rustix::fs::memfd_create("nvrtc", MemfdFlags::CLOEXEC)?);
        let mut command = Command::new(program);
        command.arg(WORKER).arg(nvrtc).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(printed.try_clone()?).envs(MEMORY);
        // The cache key does not cover the environment.
        std::env::vars_os().filter(|(name, _)| is_read_by_nvrtc(name)).for_each(|(name, _)| {
            command.env_remove(name);
        });
        let mut child = command.spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (jobs, answers) = pipes.ok_or_else(|| io::Error::other("the process has no pipes"))?;
        Ok(Worker { child, jobs, answers, printed })
    }

    fn ready(mut self, nvrtc: &Path) -> Result<(Worker, NvrtcInfo), String> {
        match receive::<Greeting>(&mut self.answers) {
            Ok(greeting) => greeting.map(|about| (self, about)),
            Err(error) => Err(format!("cannot load `{}`: {}", nvrtc.display(), self.end(&error))),
        }
    }

    /// `error` is the reason if the process has not exited.
    fn end(mut self, error: &io::Error) -> Ending {
        let is_over = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe);
        if !is_over {
            // Its messages are invalid.
            let _ = self.child.kill();
        }
        let reason = match self.child.wait() {
            Ok(status) if is_over => describe(status),
            _ => error.to_string(),
        };
        Ending { reason, printed: last_lines(&self.printed).unwrap_or_default() }
    }
}

impl Drop for Worker {
    /// Kills the process: a closed pipe does not end a compile that never returns.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("the process was terminated by signal {signal}"),
        (None, Some(code)) => format!("the process exited with code {code}"),
        (None, None) => "the process exited".to_owned(),
    }
}

/// Serves compiles until the input closes, or one fails: exiting removes its state in NVRTC. Fails if the caller
/// exited, or standard error is not the file of [`Workers`].
pub fn serve(
    nvrtc: &Path,
    jobs: impl Read + Send + 'static,
    mut answers: impl Write + Send + 'static,
) -> io::Result<()> {
    let printed = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let nvrtc = match Nvrtc::load(nvrtc) {
        Ok(nvrtc) => nvrtc,
        Err(error) => return send(&mut answers, &Greeting::Err(error.to_string())),
    };
    send(&mut answers, &Greeting::Ok(NvrtcInfo::query(&nvrtc)))?;
    // One thread reads, compiles and answers: handovers may idle a processor.
    in_a_thread(move || match answer(&nvrtc, jobs, answers, printed) {
        Ok(has_failed) => (Ok(()), has_failed),
        Err(error) => (Err(error), true),
    })?
}

/// Returns whether the last compile failed.
fn answer(
    nvrtc: &Nvrtc,
    mut jobs: impl Read,
    mut answers: impl Write,
    mut printed: File,
) -> io::Result<bool> {
    loop {
        let program: Program = match receive(&mut jobs) {
            Ok(program) => program,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        };
        // All descriptors of the file share one position.
        printed.set_len(0)?;
        printed.rewind()?;
        let result = nvrtc.compile(&program);
        let has_failed = result.is_err();
        let mut bytes = Vec::new();
        printed.rewind()?;
        printed.read_to_end(&mut bytes)?;
        send(&mut answers, &result.map(|output| WorkerOutput { output, printed: Some(bytes) }))?;
        if has_failed {
            return Ok(true);
        }
    }
}

/// Sends a little-endian `u32` length and postcard in one write: the reader wakes once.
fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let mut bytes = postcard::to_extend(message, vec![0; 4]).map_err(io::Error::other)?;
    let length = bytes.len() - 4;
    let length = u32::try_from(length).ok().filter(|length| *length <= MAX_MESSAGE);
    let length = length.ok_or_else(|| io::Error::other("the message is too long"))?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&bytes)?;
    to.flush()
}

fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_MESSAGE {
        return Err(io::Error::other("the process sent an invalid response"));
    }
    // Allocates only the bytes that arrive.
    let mut bytes = Vec::new();
    from.take(u64::from(length)).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    postcard::from_bytes(&bytes).map_err(|_| io::Error::other("the process sent an invalid response"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_through_and_what_is_none_is_refused() {
        let failed = || CompileError::Failed {
            call: "f".into(),
            code: 3,
            reason: "r".to_owned(),
            log: "l".to_owned(),
        };
        let output = Output {
            log: "w".to_owned(),
            lowered_names: vec!["_Z1k".to_owned()],
            cubin: vec![1],
            ptx: vec![],
        };
        let all = [
            Ok(WorkerOutput { output: output.clone(), printed: None }),
            Ok(WorkerOutput { output, printed: Some(b"d/a.h\n".to_vec()) }),
            Err(CompileError::Rejected("no".to_owned())),
            Err(CompileError::Option("no".to_owned())),
            Err(CompileError::Nul("source".into())),
            Err(failed()),
        ];
        for result in all {
            let mut bytes = Vec::new();
            send(&mut bytes, &result).unwrap();
            for length in 0..bytes.len() {
                let error = receive::<Answer>(&mut &bytes[..length]).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length}");
            }
            assert_eq!(receive::<Answer>(&mut bytes.as_slice()).unwrap(), result);
        }
        assert!(receive::<Answer>(&mut &[255u8; 8][..]).is_err());
        assert!(receive::<Answer>(&mut &[1u8, 0, 0, 0, 99][..]).is_err());
    }

    #[test]
    fn the_last_lines_of_a_process_are_kept_without_its_trace() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(last_lines(file.as_file()).unwrap(), [""; 0]);
        let header = file.path().display().to_string();
        writeln!(file, "__nv_nvrtc_builtin_header.h\n {header}\n  {header}\n\nfirst").unwrap();
        assert_eq!(last_lines(file.as_file()).unwrap(), ["first"]);
        (0..10_000).for_each(|number| writeln!(file, "line {number}").unwrap());
        let expected: Vec<String> = (9_995..10_000).map(|number| format!("line {number}")).collect();
        assert_eq!(last_lines(file.as_file()).unwrap(), expected);
        write!(file, "{}", "é".repeat(100_000)).unwrap();
        let [line] = last_lines(file.as_file()).unwrap().try_into().unwrap();
        assert_eq!(line.chars().count(), 300);
    }

    #[test]
    fn a_process_gets_no_variable_that_nvrtc_reads() {
        for name in [
            "NVRTC_APPEND_FLAGS",
            "NVRTCWIZ",
            "NV_NVVM_VERSION",
            "NVVM_IR_VER_CHK",
            "EDG_BASE",
            "DUMP_KNOBS_TO_FILE",
        ] {
            assert!(is_read_by_nvrtc(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "HOME", "CUBINDER_NVRTC", "LD_LIBRARY_PATH", "NV"] {
            assert!(!is_read_by_nvrtc(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_program_that_is_no_worker_is_said() {
        let nvrtc = Path::new("/no/such/libnvrtc.so.13");
        let error = Workers::new(Path::new("/no/such/program"), nvrtc).about().unwrap_err();
        assert!(error.starts_with("cannot start `/no/such/program`: "), "{error}");
        for processes in 0..3 {
            let workers = Workers::new(Path::new("/bin/true"), nvrtc);
            (0..processes).for_each(|_| workers.start());
            let expected = "cannot load `/no/such/libnvrtc.so.13`: the process exited with code 0";
            assert_eq!(workers.about().unwrap_err(), expected);
        }
    }
}
