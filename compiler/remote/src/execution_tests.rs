use tonic::Code;

use super::tests::{action, outputs_with, settings};
use super::*;
use crate::action::{Command, InputRoot};
use crate::fake_server::{FakeServer, Faults, Options};

pub(super) fn messages() -> Inputs {
    let blobs = action().blobs.into_iter();
    blobs.map(|(digest, bytes)| (digest, Blob::Bytes(bytes.into()))).collect()
}

pub(super) fn executing(options: Options) -> FakeServer {
    let server = FakeServer::start(options);
    server.state().written = outputs_with(10_000).into_iter().collect();
    server
}

fn execute(server: &FakeServer, faults: Faults) -> (Option<Outputs>, Option<Error>) {
    execute_with(server, faults, 100_000, 1)
}

fn execute_with(
    server: &FakeServer,
    faults: Faults,
    length: usize,
    threads: u32,
) -> (Option<Outputs>, Option<Error>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let bytes = vec![7; length];
    std::fs::write(&file, &bytes).unwrap();
    let action = action();
    let mut inputs = messages();
    inputs.insert(Digest::compute(&bytes), Blob::File(file));
    {
        let mut state = server.state();
        state.faults = faults;
        state.calls.clear();
    }
    let remote = Remote::new(settings(&server.authority));
    let found = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| remote.execute(&action, &inputs))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Option<Vec<_>>>()
    });
    let found = found.and_then(|mut found| found.pop());
    let is_stored = |digest: &Digest| server.state().blobs.contains_key(&digest.to_string());
    assert!(found.is_none() || inputs.keys().all(is_stored));
    (found, remote.take_failure().map(|(error, _)| error))
}

#[test]
fn a_worker_executes_an_action() {
    let server = executing(Options::default());
    let expected = (Some(outputs_with(10_000)), None);
    assert_eq!(execute(&server, Faults::default()), expected);
    assert_eq!((server.calls("Write"), server.calls("BatchUpdateBlobs")), (1, 1));
    assert_eq!(execute(&server, Faults::default()), expected);
    let uploads = (server.calls("Write"), server.calls("BatchUpdateBlobs"));
    assert_eq!(uploads, (0, 0), "the server has the inputs");
    assert_eq!(execute(&server, Faults { broken_executions: 3, ..Faults::default() }), expected);
    assert_eq!((server.calls("Execute"), server.calls("WaitExecution")), (1, 3));
    let failing = Some(("WaitExecution", 1, Code::NotFound));
    assert_eq!(execute(&server, Faults { broken_executions: 1, failing, ..Faults::default() }), expected);
    assert_eq!((server.calls("Execute"), server.calls("WaitExecution")), (2, 1), "the operation was lost");
    assert_eq!(execute(&server, Faults { losing_executions: 1, ..Faults::default() }), expected);
    assert_eq!(server.calls("Write"), 1, "the inputs were lost");
}

#[test]
fn failures_of_executions_are_reported_once() {
    let server = executing(Options::default());
    let (found, error) = execute(&server, Faults { exit_code: 137, ..Faults::default() });
    let expected = Error::Command { exit_code: 137, stderr: "out ofmemory".to_owned() };
    assert_eq!((found, error), (None, Some(expected)));
    let code = |faults: Faults| match execute(&server, faults) {
        (None, Some(error)) => error.code(),
        other => panic!("{other:?}"),
    };
    assert_eq!(code(Faults { losing_executions: 9, ..Faults::default() }), Some(Code::FailedPrecondition));
    assert_eq!(code(Faults { broken_executions: 99, ..Faults::default() }), Some(Code::Unavailable));
    let printed = Some(b"killed".to_vec());
    let (_, error) = execute(&server, Faults { exit_code: 137, printed, ..Faults::default() });
    assert_eq!(error, Some(Error::Command { exit_code: 137, stderr: "killed".to_owned() }));
    let printed = Some(vec![b'a'; (64 << 10) + 1]);
    let (_, error) = execute(&server, Faults { exit_code: 137, printed, ..Faults::default() });
    assert_eq!(error, Some(Error::Command { exit_code: 137, stderr: String::new() }));
    let (found, error) = execute(&server, Faults { corrupts: true, ..Faults::default() });
    assert!(found.is_none() && matches!(error, Some(Error::Invalid(_))));
    let server = executing(Options { executes: false, ..Options::default() });
    assert_eq!(execute(&server, Faults::default()), (None, Some(Error::Unsupported("execution".into()))));
}

#[test]
fn the_time_of_an_upload_is_not_that_of_other_calls() {
    let server = executing(Options::default());
    let start = std::time::Instant::now();
    let faults = Faults { slow_writes: Duration::from_millis(180), ..Faults::default() };
    assert_eq!(execute_with(&server, faults, 6 << 20, 4), (Some(outputs_with(10_000)), None));
    assert!(start.elapsed() > super::tests::TIMEOUT * 2, "{:?}", start.elapsed());
    assert_eq!(server.calls("Write"), 1);
}

#[test]
fn a_server_must_accept_an_action_in_time() {
    let server = executing(Options::default());
    let start = std::time::Instant::now();
    let (_, error) = execute(&server, Faults { hanging: Some("Execute"), ..Faults::default() });
    assert_eq!(error, Some(Error::Timeout { call: "Execute", limit: super::tests::TIMEOUT }));
    assert!(start.elapsed() < super::tests::TIMEOUT * 3);
}

#[test]
fn transient_statuses_of_operations_are_retried() {
    let server = executing(Options::default());
    let status = |code: Code| tonic_types::Status { code: code.into(), ..Default::default() };
    for code in [Code::Unavailable, Code::Aborted, Code::ResourceExhausted, Code::Internal] {
        let (errors, statuses) = (vec![status(code)], vec![status(code)]);
        let faults = Faults { errors, statuses, ..Faults::default() };
        assert_eq!(execute(&server, faults), (Some(outputs_with(10_000)), None), "{code:?}");
        assert_eq!((server.calls("Execute"), server.calls("WaitExecution")), (3, 0));
    }
    for code in [Code::DeadlineExceeded, Code::Cancelled, Code::InvalidArgument] {
        for faults in [
            Faults { errors: vec![status(code)], ..Faults::default() },
            Faults { statuses: vec![status(code)], ..Faults::default() },
        ] {
            let (found, error) = execute(&server, faults);
            assert_eq!((found, error.unwrap().code(), server.calls("Execute")), (None, Some(code), 1));
        }
    }
    let faults = Faults { statuses: vec![status(Code::Internal); 9], ..Faults::default() };
    assert_eq!(execute(&server, faults).1.unwrap().code(), Some(Code::Internal));
    assert_eq!((server.calls("Execute"), server.calls("CancelOperation")), (5, 0));
}

#[test]
fn only_inputs_that_a_worker_misses_are_stored_again() {
    let server = executing(Options::default());
    let (action, inputs) = (action(), messages());
    let remote = Remote::new(settings(&server.authority));
    assert!(remote.execute(&action, &inputs).is_some());
    server.state().faults.lost_input = inputs.keys().next().map(ToString::to_string);
    assert!(remote.execute(&action, &inputs).is_some());
    assert_eq!(server.state().asked, [2, 1]);
    assert_eq!((server.calls("Execute"), server.calls("BatchUpdateBlobs")), (3, 2));
}

#[test]
fn a_rejected_result_is_not_taken_from_the_cache() {
    let server = executing(Options::default());
    let (action, inputs) = (action(), messages());
    let remote = Remote::new(settings(&server.authority));
    assert!(remote.execute(&action, &inputs).is_some());
    remote.skip_cached(&action);
    assert!(remote.execute(&action, &inputs).is_some());
    assert_eq!(server.state().skipped_cache, [false, true]);
}

#[test]
fn uploads_wait_only_for_uploads_of_their_inputs() {
    let server = executing(Options::default());
    server.state().faults.slow_writes = Duration::from_millis(180);
    let (action, small) = (action(), messages());
    let mut large = small.clone();
    let bytes = vec![7; 4 << 20];
    large.insert(Digest::compute(&bytes), Blob::Bytes(bytes.into()));
    let remote = Remote::new(settings(&server.authority));
    let start = std::time::Instant::now();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| remote.execute(&action, &large).is_some());
        while server.calls("Write") == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The large input's caller stored the messages, or still has to.
        let _ = remote.execute(&action, &small);
        let quick = start.elapsed();
        assert!(slow.join().unwrap());
        assert!(quick * 2 < start.elapsed(), "{quick:?} of {:?}", start.elapsed());
    });
    assert_eq!(remote.take_failure(), None);
    assert_eq!(server.calls("BatchUpdateBlobs"), 1);
}

#[test]
fn a_run_that_is_not_cached_leaves_the_queue_at_its_limit() {
    let run = |workers, queue| {
        let server = executing(Options { workers, ..Options::default() });
        let outputs = action().outputs;
        let timeout = Duration::from_secs(60);
        let command = Command { outputs, queue, timeout, do_not_cache: true, ..Command::default() };
        let action = Action::new(&command, InputRoot::default().encode().root);
        let result = Remote::new(settings(&server.authority)).try_execute(&action, &Inputs::new());
        assert_eq!(server.state().skipped_cache, [true]);
        (result, server.calls("CancelOperation"))
    };
    let limit = Duration::from_millis(50);
    assert_eq!(run(1, Some(limit * 100)), (Ok(Some(outputs_with(10_000))), 0));
    assert_eq!(run(0, Some(limit)), (Err(Error::NoWorker { limit }), 1));
}

#[test]
fn a_silent_server_must_answer_other_calls() {
    const LONG: &[Duration] = &[Duration::from_secs(5)];
    let server = executing(Options { times: LONG, ..Options::default() });
    let remote = Remote::new(settings(&server.authority));
    assert!(remote.execute(&action(), &messages()).is_some(), "it works for longer than a call may take");
    server.state().faults.hanging = Some("GetCapabilities");
    let start = std::time::Instant::now();
    assert_eq!(remote.execute(&action(), &messages()), None);
    assert!(start.elapsed() < LONG[0], "{:?}", start.elapsed());
    let (error, is_off) = remote.take_failure().unwrap();
    assert!(is_off && matches!(error, Error::Timeout { call: "GetCapabilities", .. }), "{error}");
}
