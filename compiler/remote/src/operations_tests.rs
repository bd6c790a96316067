use std::os::unix::process::ExitStatusExt as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::execution_tests::{executing, messages};
use super::tests::{TIMEOUT, action, settings};
use super::*;
use crate::fake_server::Options;

const LONG: &[Duration] = &[Duration::from_secs(60)];

fn wait_for(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT * 5);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn progress_and_workers_are_reported() {
    const TIMES: &[Duration] = &[Duration::from_millis(300)];
    let server = executing(Options { workers: 1, times: TIMES, ..Options::default() });
    let remote = Remote::new(settings(&server.authority));
    assert_eq!((remote.progress(), remote.executed()), (Progress::default(), Executed::default()));
    std::thread::scope(|scope| {
        let execute = || scope.spawn(|| assert!(remote.execute(&action(), &messages()).is_some()));
        let threads = [execute(), execute()];
        wait_for(|| remote.progress() == Progress { queued: 1, running: 1 });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    server.state().faults.is_cached = true;
    assert!(remote.execute(&action(), &messages()).is_some());
    assert_eq!(remote.progress(), Progress::default());
    let by_worker = ["worker-0", "worker-1"].map(|name| (name.to_owned(), 1)).into();
    assert_eq!(remote.executed(), Executed { by_worker, cached: 1 });
}

#[test]
fn an_execution_past_its_deadline_is_cancelled() {
    let server = executing(Options { times: LONG, ..Options::default() });
    let remote = Remote::new(settings(&server.authority));
    let action = action();
    let action = &action;
    let result = remote.try_run(|client, deadline| async move {
        let capabilities = client.capabilities(deadline).await?;
        let deadline = Deadline::after(Duration::from_millis(500));
        let execution = Execution { action, skips_cache: false, deadline, queue: None, start: TIMEOUT };
        client.execute(execution, capabilities).await
    });
    let expected = Error::Timeout { call: "Execute", limit: Duration::from_millis(500) };
    assert_eq!((result, server.calls("CancelOperation")), (Err(expected), 1));
    assert_eq!(remote.progress(), Progress::default());
}

#[test]
fn all_operations_are_cancelled_together() {
    let server = executing(Options { times: LONG, workers: 150, ..Options::default() });
    let remote = Remote::new(settings(&server.authority));
    std::thread::scope(|scope| {
        (0..150).for_each(|_| drop(scope.spawn(|| remote.execute(&action(), &messages()))));
        wait_for(|| remote.progress() == Progress { queued: 0, running: 150 });
        let (sender, done) = mpsc::channel();
        remote.operations().unwrap().cancel_all(&sender);
        drop(sender);
        assert_eq!(done.recv_timeout(TIMEOUT), Err(mpsc::RecvTimeoutError::Disconnected));
        assert_eq!(server.calls("CancelOperation"), 150);
        // The process ends before the caller sees the failures.
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(remote.take_failure(), None);
    });
}

/// The child process of [`a_signal_cancels_and_ends_the_process`].
fn execute_in_child(authority: &str) {
    fn end(signal: i32) {
        signal_hook::low_level::emulate_default_handler(signal).unwrap();
    }
    let remote = Remote::new(Settings { on_signal: Some(end), ..settings(authority) });
    let _ = remote.execute(&action(), &messages());
    println!("the execution ended");
}

#[test]
fn a_signal_cancels_and_ends_the_process() {
    const SERVER: &str = "CUBINDER_TEST_SERVER";
    if let Ok(authority) = std::env::var(SERVER) {
        return execute_in_child(&authority);
    }
    let server = executing(Options { times: LONG, ..Options::default() });
    let cases = [(Signal::TERM, None), (Signal::TERM, Some("CancelOperation")), (Signal::INT, None)];
    // Shells start background processes with SIGINT ignored, and children inherit that.
    let cases = cases.into_iter().filter(|(signal, _)| !crate::signals::is_ignored(signal.as_raw()));
    for (number, (signal, hanging)) in (1..).zip(cases) {
        server.state().faults.hanging = hanging;
        let name = "remote::operations_tests::a_signal_cancels_and_ends_the_process";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", name]).env(SERVER, &server.authority);
        let mut child = child.spawn().unwrap();
        wait_for(|| server.state().operations.len() == number);
        // The client reads the operation's name.
        std::thread::sleep(Duration::from_millis(300));
        let start = Instant::now();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}");
        assert!(start.elapsed() < Duration::from_millis(1_300), "{:?}", start.elapsed());
        assert_eq!(server.calls("CancelOperation"), number);
    }
}
