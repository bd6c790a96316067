//! The client against a server with faults: no wrong byte, no hang, one failure reported.

use std::time::{Duration, Instant};

use tonic::Code;

use super::*;
use crate::action::{Command, InputRoot};
use crate::credentials::Credentials;
use crate::fake_server::{FakeServer, Faults, Options};
use crate::proto::reapi::digest_function;

pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn settings(authority: &str) -> Settings {
    Settings {
        authority: authority.to_owned(),
        tls: None,
        instance: String::new(),
        credentials: Credentials::None,
        timeout: TIMEOUT,
        can_upload: true,
        on_signal: None,
    }
}

fn remote(server: &FakeServer) -> Remote {
    Remote::new(settings(&server.authority))
}

pub(super) fn action() -> Action {
    let command = Command {
        outputs: vec!["log".to_owned(), "code".to_owned(), "empty".to_owned()],
        ..Default::default()
    };
    Action::new(&command, InputRoot::default().encode().root)
}

fn outputs() -> Outputs {
    outputs_with(150_000)
}

/// A small, a large and an empty file.
pub(super) fn outputs_with(words: u32) -> Outputs {
    let code: Vec<u8> = (0..words).flat_map(|number| (number / 3).to_le_bytes()).collect();
    Outputs::from([
        ("code".to_owned(), code),
        ("log".to_owned(), b"text".to_vec()),
        ("empty".to_owned(), Vec::new()),
    ])
}

fn filled(options: Options) -> FakeServer {
    let server = FakeServer::start(options);
    let remote = remote(&server);
    remote.store(&action(), &outputs());
    assert_eq!(remote.take_failure(), None);
    assert_eq!(server.state().results.len(), 1);
    server.state().calls.clear();
    server
}

fn all_options() -> [Options; 4] {
    let all = [(false, false), (true, false), (false, true), (true, true)];
    all.map(|(has_zstd, is_inline)| Options { has_zstd, is_inline, ..Options::default() })
}

fn with_faults(server: &FakeServer, faults: Faults) -> (bool, Option<(Error, bool)>) {
    server.state().faults = faults;
    let (remote, start) = (remote(server), Instant::now());
    let found = remote.look_up(&action());
    assert!(start.elapsed() < TIMEOUT + Duration::from_secs(30), "{:?}", start.elapsed());
    assert!(found.as_ref().is_none_or(|found| *found == outputs()));
    (found.is_some(), remote.take_failure())
}

#[test]
fn results_are_stored_and_found() {
    for options in all_options() {
        let is_inline = options.is_inline;
        let server = filled(options);
        assert_eq!(with_faults(&server, Faults::default()), (true, None));
        let other = Action::new(&Command::default(), InputRoot::default().encode().root);
        assert_eq!(remote(&server).look_up(&other), None);
        assert_eq!(server.calls("BatchReadBlobs"), usize::from(!is_inline));
        assert_eq!(server.calls("Read"), usize::from(!is_inline));
        // The server has all blobs already.
        server.state().calls.clear();
        remote(&server).store(&action(), &outputs());
        assert_eq!((server.calls("BatchUpdateBlobs"), server.calls("Write")), (0, 0));
        // Blobs that the server deleted are a miss.
        server.state().blobs.clear();
        assert_eq!(with_faults(&server, Faults::default()), (false, None));
    }
}

#[test]
fn transient_failures_are_retried() {
    let server = filled(Options::default());
    for code in [Code::Unavailable, Code::Aborted, Code::ResourceExhausted] {
        for call in ["GetCapabilities", "GetActionResult", "BatchReadBlobs", "Read"] {
            let failing = |count| Faults { failing: Some((call, count, code)), ..Faults::default() };
            assert_eq!(with_faults(&server, failing(2)), (true, None), "{call} {code:?}");
        }
    }
    let always =
        Faults { failing: Some(("GetActionResult", u32::MAX, Code::Unavailable)), ..Faults::default() };
    server.state().calls.clear();
    let (is_found, failure) = with_faults(&server, always);
    let expected = "GetActionResult failed: not now (Unavailable)";
    assert_eq!((is_found, failure.unwrap().0.to_string().as_str()), (false, expected));
    assert_eq!(server.calls("GetActionResult"), 5);
    let once = Faults { failing: Some(("GetActionResult", 1, Code::Internal)), ..Faults::default() };
    assert!(!with_faults(&server, once).0, "other errors are not repeated");
}

#[test]
fn the_server_names_the_time_of_a_retry() {
    let server = filled(Options::default());
    let failing = Some(("GetActionResult", 1, Code::ResourceExhausted));
    let wait = |milliseconds| Faults {
        failing,
        retry_after: Some(Duration::from_millis(milliseconds)),
        ..Faults::default()
    };
    let start = Instant::now();
    assert_eq!(with_faults(&server, wait(700)), (true, None));
    assert!(start.elapsed() >= Duration::from_millis(700));
    let start = Instant::now();
    assert!(!with_faults(&server, wait(60_000)).0);
    assert!(start.elapsed() < TIMEOUT, "a wait above the limit is not started");
    let longest = Faults { failing, retry_after: Some(Duration::MAX), ..Faults::default() };
    assert!(!with_faults(&server, longest).0);
}

#[test]
fn a_server_that_hangs_costs_the_time_limit_once() {
    for call in ["GetCapabilities", "GetActionResult", "BatchReadBlobs"] {
        let server = filled(Options::default());
        server.state().faults.hanging = Some(call);
        let (remote, start) = (remote(&server), Instant::now());
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| assert_eq!(remote.look_up(&action()), None));
            }
        });
        assert!(start.elapsed() < TIMEOUT * 2, "{call}: {:?}", start.elapsed());
        let start = Instant::now();
        assert_eq!(remote.look_up(&action()), None);
        assert!(start.elapsed() < Duration::from_millis(50), "{call}: the breaker is open");
        let (error, is_off) = remote.take_failure().unwrap();
        assert_eq!((error, is_off), (Error::Timeout { call, limit: TIMEOUT }, true));
        assert_eq!(remote.take_failure(), None, "reported once");
    }
}

#[test]
fn an_unreachable_server_costs_little_time() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (remote, start) = (Remote::new(settings(&port.to_string())), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert_eq!(remote.look_up(&action()), None));
        }
    });
    assert!(start.elapsed() < TIMEOUT, "{:?}", start.elapsed());
    let (error, is_off) = remote.take_failure().unwrap();
    assert!(is_off && error.to_string().starts_with("GetCapabilities failed: "), "{error}");
}

#[test]
fn damaged_data_is_not_used() {
    for options in all_options() {
        let is_inline = options.is_inline;
        let server = filled(options);
        let invalid = |faults: Faults| match with_faults(&server, faults) {
            (false, Some((Error::Invalid(reason), false))) => reason,
            other => panic!("{other:?}"),
        };
        let corrupt = invalid(Faults { corrupts: true, ..Faults::default() });
        assert!(corrupt.ends_with("differs from its digest"), "{corrupt}");
        let other = invalid(Faults { path: Some("other"), ..Faults::default() });
        assert!(other.starts_with("a result lacks the file"), "{other}");
        // Each of the three files is within the limit.
        for length in [i64::MAX, -1, 100 << 20] {
            let reason = invalid(Faults { length: Some(length), ..Faults::default() });
            let expected = "the files of a result exceed 268435456 bytes";
            assert!(is_inline || length < 0 || reason == expected, "{reason}");
        }
        if !is_inline {
            let endless = invalid(Faults { endless: true, ..Faults::default() });
            assert!(endless == "a stream exceeds its blob" || endless.ends_with("its digest"), "{endless}");
        }
    }
}

#[test]
fn broken_streams_are_resumed() {
    for has_zstd in [false, true] {
        let server = filled(Options { has_zstd, ..Options::default() });
        assert_eq!(
            with_faults(&server, Faults { short_reads: 2, broken_reads: 2, ..Faults::default() }),
            (true, None)
        );
        let (is_found, failure) = with_faults(&server, Faults { short_reads: 9, ..Faults::default() });
        let expected = Some((Error::Invalid("a stream ends early".to_owned()), false));
        assert_eq!((is_found, failure), (false, expected));
        let server = FakeServer::start(Options { has_zstd, ..Options::default() });
        server.state().faults.broken_writes = 3;
        let remote = remote(&server);
        remote.store(&action(), &outputs());
        assert_eq!(remote.take_failure(), None);
        assert_eq!((server.calls("Write"), server.calls("QueryWriteStatus")), (4, 3));
        assert_eq!(with_faults(&server, Faults::default()), (true, None));
    }
}

#[test]
fn interrupted_writes_continue_where_the_server_says() {
    use crate::proto::bytestream::QueryWriteStatusResponse;
    for (committed_size, complete, writes) in
        [(0, true, 1), (-1, false, 1), (-7, false, 2), (1 << 40, false, 2)]
    {
        let server = FakeServer::start(Options::default());
        server.state().faults.broken_writes = 1;
        server.state().faults.progress = Some(QueryWriteStatusResponse { committed_size, complete });
        let digest = Digest::compute(&outputs()["code"]).to_string();
        let remote = remote(&server);
        if writes == 1 {
            server.state().blobs.insert(digest.clone(), Vec::new());
            let other = Outputs::from([("code".to_owned(), vec![1; 20_000])]);
            let digest = Digest::compute(&other["code"]);
            let result = remote.try_run(|client, deadline| async move {
                client.write_stream(digest, &[1; 20_000], false, deadline).await
            });
            assert_eq!(result, Ok(()), "{committed_size} {complete}");
        } else {
            remote.store(&action(), &outputs());
            assert!(server.state().blobs.contains_key(&digest));
        }
        assert_eq!(remote.take_failure(), None, "{committed_size} {complete}");
        assert_eq!(server.calls("Write"), writes);
    }
}

#[test]
fn a_transfer_that_pauses_ends() {
    let server = filled(Options::default());
    let start = Instant::now();
    let (is_found, failure) = with_faults(&server, Faults { stalls: true, ..Faults::default() });
    let expected = Error::Timeout { call: "ByteStream.Read", limit: TIMEOUT };
    assert_eq!((is_found, failure), (false, Some((expected, false))));
    server.state().faults.hanging = Some("Write");
    server.state().blobs.clear();
    let writer = remote(&server);
    writer.store(&action(), &outputs());
    let expected = Error::Timeout { call: "ByteStream.Write", limit: TIMEOUT };
    assert_eq!(writer.take_failure(), Some((expected, false)));
    assert!(start.elapsed() < TIMEOUT * 4, "{:?}", start.elapsed());
}

#[test]
fn results_that_cannot_be_used_open_the_breaker() {
    let server = filled(Options::default());
    let remote = remote(&server);
    for _ in 0..3 {
        assert!(remote.look_up(&action()).is_some());
        remote.report_invalid("no code");
    }
    assert_eq!(remote.look_up(&action()), None);
    assert_eq!(remote.take_failure(), Some((Error::Invalid("no code".to_owned()), true)));
}

#[test]
fn a_client_that_must_not_upload_reads() {
    for call in ["FindMissingBlobs", "BatchUpdateBlobs", "UpdateActionResult"] {
        let server = filled(Options::default());
        let remote = remote(&server);
        let other = Action::new(&Command::default(), InputRoot::default().encode().root);
        server.state().faults.failing = Some((call, 9, Code::PermissionDenied));
        for _ in 0..4 {
            remote.store(&other, &Outputs::from([("code".to_owned(), vec![2])]));
        }
        assert!(remote.look_up(&action()).is_some());
        assert!(!remote.can_store());
        let (error, is_off) = remote.take_failure().unwrap();
        assert_eq!((error.code(), is_off, server.calls(call)), (Some(Code::PermissionDenied), false, 1));
    }
}

#[test]
fn blobs_that_the_server_lost_are_stored_again() {
    let server = filled(Options::default());
    server.state().faults.losing_updates = 1;
    let first = remote(&server);
    first.store(&action(), &outputs());
    assert_eq!(first.take_failure(), None);
    assert_eq!(with_faults(&server, Faults::default()), (true, None));
    server.state().faults.losing_updates = 9;
    let second = remote(&server);
    second.store(&action(), &outputs());
    let (error, _) = second.take_failure().unwrap();
    assert_eq!(error.to_string(), "UpdateActionResult failed: missing blobs (FailedPrecondition)");
}

#[test]
fn servers_without_needed_features_are_not_used() {
    let server = FakeServer::start(Options { accepts_results: false, ..Options::default() });
    let read_only = remote(&server);
    read_only.store(&action(), &outputs());
    read_only.store(&action(), &outputs());
    assert_eq!(read_only.take_failure(), Some((Error::ReadOnly, false)));
    assert_eq!(server.state().blobs.len(), 0);
    let server = FakeServer::start(Options { function: digest_function::Value::Md5, ..Options::default() });
    let other = remote(&server);
    assert_eq!(other.look_up(&action()), None);
    assert_eq!(other.take_failure(), Some((Error::Unsupported("SHA-256 digests".into()), true)));
    for (versions, range) in
        [([None, Some(3), Some(4)], "3.1 to 4.1"), ([Some(1), None, Some(1)], "1.1 to 1.1")]
    {
        let server = FakeServer::start(Options { versions, ..Options::default() });
        let other = remote(&server);
        assert_eq!(other.look_up(&action()), None);
        let expected = format!("the server does not support version 2 of the protocol, but {range}");
        let (error, is_off) = other.take_failure().unwrap();
        assert_eq!((error.to_string(), is_off), (expected, true));
    }
    for versions in [[None; 3], [None, None, Some(2)], [Some(2), Some(3), Some(3)], [None, Some(1), Some(2)]]
    {
        let server = FakeServer::start(Options { versions, ..Options::default() });
        let other = remote(&server);
        assert_eq!((other.look_up(&action()), other.take_failure()), (None, None), "{versions:?}");
    }
    for code in [Code::Unauthenticated, Code::PermissionDenied] {
        let server = filled(Options::default());
        let faults = Faults { failing: Some(("GetActionResult", 9, code)), ..Faults::default() };
        let (_, failure) = with_faults(&server, faults);
        assert!(failure.unwrap().1, "the same answer is expected of the next call");
    }
}

#[test]
fn a_reader_does_not_upload() {
    let server = FakeServer::start(Options::default());
    let reader = Remote::new(Settings { can_upload: false, ..settings(&server.authority) });
    reader.store(&action(), &outputs());
    assert_eq!(server.state().calls.len(), 0);
}

#[test]
fn calls_have_the_headers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headers");
    std::fs::write(&path, "authorization: Bearer abc\n").unwrap();
    let server = FakeServer::start(Options::default());
    let credentials = Credentials::HeadersFile(path);
    let with_token = Remote::new(Settings { credentials, ..settings(&server.authority) });
    with_token.store(&action(), &outputs());
    assert!(!format!("{with_token:?}").contains("abc"));
    let state = server.state();
    assert!(
        state.tokens.len() == state.calls.len() && state.tokens.iter().all(|token| token == "Bearer abc")
    );
}
