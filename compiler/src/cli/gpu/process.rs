use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use cubinder_gpu::DeviceInfo;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Stopped;
use super::protocol::{Greeting, send};

/// Exit timeout of an idle process: the driver frees memory, Python exits.
const GRACE: Duration = Duration::from_secs(5);

const SHOWN: usize = 80;

pub(in crate::cli) struct Process {
    child: Child,
    jobs: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Reaped, so its process number may be reused.
    is_over: bool,
    /// For messages: `runs kernels`.
    purpose: &'static str,
}

pub(in crate::cli) enum Lost {
    Silent,
    Ended,
    Garbled(String),
}

impl Process {
    pub(in crate::cli) fn start(
        purpose: &'static str,
        timeout: Duration,
    ) -> Result<(Process, DeviceInfo), Stopped> {
        let program = std::env::current_exe()
            .map_err(|error| Stopped::failed(format!("cannot find the path of this program: {error}")))?;
        // The subcommand must stay the first argument.
        let mut rest = std::env::args_os().skip(1);
        let name = rest.next();
        let mut child = Command::new(program)
            .args(name)
            .arg("--worker")
            .args(rest)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its children end with it.
            .process_group(0)
            .spawn()
            .map_err(|error| Stopped::failed(format!("cannot start the worker process: {error}")))?;
        let (jobs, out) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = channel();
        let reader = std::thread::Builder::new().spawn(move || {
            let Some(out) = out else { return };
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut process = Process { child, jobs, lines, is_over: false, purpose };
        reader.map_err(|error| Stopped::failed(format!("cannot start a thread: {error}")))?;
        let did_not = "the worker process did not start";
        match process.next(timeout.saturating_mul(10)) {
            Ok(Greeting::Ready(gpu)) => Ok((process, gpu)),
            Ok(Greeting::NoGpu(why)) => Err(Stopped::NoGpu(why)),
            Ok(Greeting::Failed(messages)) => Err(Stopped::Failed(messages)),
            Err(Lost::Ended | Lost::Silent) => Err(Stopped::failed(process.end(did_not))),
            Err(Lost::Garbled(why)) => Err(Stopped::failed(format!("{did_not}: {why}"))),
        }
    }

    pub(in crate::cli) fn send(&mut self, job: &impl Serialize) -> Result<(), String> {
        match &mut self.jobs {
            Some(jobs) => send(jobs, job),
            None => Err("the worker process has no standard input".to_owned()),
        }
    }

    pub(in crate::cli) fn next<E: DeserializeOwned>(&mut self, timeout: Duration) -> Result<E, Lost> {
        match self.lines.recv_timeout(timeout) {
            Ok(line) => parse(&line).map_err(Lost::Garbled),
            Err(RecvTimeoutError::Timeout) => Err(Lost::Silent),
            Err(RecvTimeoutError::Disconnected) => Err(Lost::Ended),
        }
    }

    pub(in crate::cli) fn end_after(&mut self, lost: Lost, timeout: Duration) -> String {
        match lost {
            // The exit status would be of Cubinder's own signal.
            Lost::Silent => {
                self.end("");
                format!("timed out after {} s", timeout.as_secs())
            }
            Lost::Ended => self.end(&format!("the process that {} exited", self.purpose)),
            Lost::Garbled(why) => self.end(&why),
        }
    }

    pub(in crate::cli) fn end(&mut self, why: &str) -> String {
        self.kill();
        match self.wait() {
            Ok(status) => format!("{why} ({status})"),
            Err(error) => format!("{why} ({error})"),
        }
    }

    fn kill(&self) {
        if self.is_over {
            return;
        }
        // The group may be empty.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.is_over = true;
        self.child.wait()
    }

    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&self.child)), options).map_or(true, |status| status.is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // The worker exits when its job stream closes.
        self.jobs = None;
        let start = Instant::now();
        while !self.has_ended() && start.elapsed() < GRACE {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill();
        let _ = self.wait();
    }
}

fn parse<E: DeserializeOwned>(line: &str) -> Result<E, String> {
    serde_json::from_str(line).map_err(|_| {
        let shown: String = line.chars().take(SHOWN).collect();
        format!("invalid output of the worker process: `{shown}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_event_is_not_passed_over() {
        assert_eq!(parse("{\"no_gpu\":\"none\"}"), Ok(Greeting::NoGpu("none".to_owned())));
        for line in ["", "1.5 {\"no_gpu\":\"none\"}", "{\"no_gpu\":", "printed by somebody"] {
            assert!(parse::<Greeting>(line).is_err(), "{line}");
        }
    }
}
