//! Executions by a server with faults.

use tonic::Code;

use super::tests::{action, outputs_with, settings};
use super::*;
use crate::fake_server::{FakeServer, Faults, Options};

/// Executes the action with its messages and a large file as inputs.
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
    let mut inputs: Inputs =
        action.blobs.iter().map(|(digest, bytes)| (*digest, Blob::Bytes(bytes.clone().into()))).collect();
    inputs.insert(Digest::compute(&bytes), Blob::File(file));
    {
        let mut state = server.state();
        state.faults = faults;
        state.written = outputs_with(10_000).into_iter().collect();
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
    let server = FakeServer::start(Options::default());
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
    let server = FakeServer::start(Options::default());
    let failed_command = execute(&server, Faults { exit_code: 65, ..Faults::default() });
    assert_eq!(failed_command, (None, None), "the caller reports errors of the command");
    let (found, error) = execute(&server, Faults { exit_code: 137, ..Faults::default() });
    let expected = Error::Command { exit_code: 137, stderr: "out ofmemory".to_owned() };
    assert_eq!((found, error), (None, Some(expected)));
    let code = |faults: Faults| match execute(&server, faults) {
        (None, Some(error)) => error.code(),
        other => panic!("{other:?}"),
    };
    assert_eq!(code(Faults { losing_executions: 9, ..Faults::default() }), Some(Code::FailedPrecondition));
    assert_eq!(code(Faults { broken_executions: 99, ..Faults::default() }), Some(Code::Unavailable));
    let (found, error) = execute(&server, Faults { corrupts: true, ..Faults::default() });
    assert!(found.is_none() && matches!(error, Some(Error::Invalid(_))));
    let server = FakeServer::start(Options { executes: false, ..Options::default() });
    assert_eq!(execute(&server, Faults::default()), (None, Some(Error::Unsupported("execution"))));
}

#[test]
fn the_time_of_an_upload_is_not_that_of_other_calls() {
    let server = FakeServer::start(Options::default());
    let start = std::time::Instant::now();
    let faults = Faults { slow_writes: Duration::from_millis(180), ..Faults::default() };
    assert_eq!(execute_with(&server, faults, 6 << 20, 4), (Some(outputs_with(10_000)), None));
    assert!(start.elapsed() > super::tests::TIMEOUT * 2, "{:?}", start.elapsed());
    assert_eq!(server.calls("Write"), 1);
}

#[test]
fn a_server_must_accept_an_action_in_time() {
    let server = FakeServer::start(Options::default());
    let start = std::time::Instant::now();
    let (_, error) = execute(&server, Faults { hanging: Some("Execute"), ..Faults::default() });
    assert_eq!(error, Some(Error::Timeout { call: "Execute", limit: super::tests::TIMEOUT }));
    assert!(start.elapsed() < super::tests::TIMEOUT * 3);
}
