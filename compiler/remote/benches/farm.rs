//! The client against a farm in another process, whose workers sleep. `cargo xtask bench farm` runs it.

#![allow(dead_code, missing_docs, unreachable_pub, unused_imports)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../src/compression.rs"]
mod compression;
#[path = "../src/digest.rs"]
mod digest;
#[path = "../src/fake_execution.rs"]
mod fake_execution;
#[path = "../src/fake_server.rs"]
mod fake_server;
#[path = "../src/proto.rs"]
mod proto;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cubinder_remote::{Action, Blob, Credentials, Digest, InputRoot, Inputs, Node, Remote, Settings};

use fake_server::{FakeServer, Options};

/// Run times of units: the mean NVRTC call (`nvrtc_ms / nvrtc_calls`) of `cubinder compile --no-cache --jobs 1 --json` of
/// each shipped manifest for `sm_80` and `sm_90`, the shortest of three on the machine of the table.
const TIMES: &[Duration] = &[
    Duration::from_millis(302),
    Duration::from_millis(102),
    Duration::from_millis(83),
    Duration::from_millis(174),
    Duration::from_millis(390),
    Duration::from_millis(110),
    Duration::from_millis(64),
    Duration::from_millis(186),
];

/// Bytes of a unit's code.
const CODE: usize = 20_000;
/// Headers that all units include, and their sizes in bytes.
const HEADERS: (u32, usize) = (1_000, 4_000);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|it| it != "--bench").collect();
    let numbers: Vec<usize> = arguments.iter().filter_map(|it| it.parse().ok()).collect();
    match (arguments.first().map(String::as_str), numbers.as_slice()) {
        (Some("server"), [workers]) => serve(*workers),
        (_, [units, workers, threads]) => measure(*units, *workers, *threads),
        _ => eprintln!("usage: farm UNITS WORKERS THREADS"),
    }
}

/// Serves until stdin ends, and then prints the share of the time in which workers were busy.
fn serve(workers: usize) {
    let options = Options { workers, times: TIMES, max_batch: 4 << 20, ..Options::default() };
    let server = FakeServer::start(options);
    server.state().written = vec![("code".to_owned(), vec![7; CODE]), ("log".to_owned(), b"text".to_vec())];
    println!("{}", server.authority);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    let state = server.state();
    let first = state.busy.iter().map(|(start, _)| *start).min().unwrap();
    let last = state.busy.iter().map(|(_, end)| *end).max().unwrap();
    let busy: f64 = state.busy.iter().map(|(start, end)| (*end - *start).as_secs_f64()).sum();
    println!("{}", busy / (last - first).as_secs_f64() / workers as f64);
}

struct Server {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start(workers: usize) -> (Server, String) {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["server", &workers.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut server = Server { process, output };
        let authority = server.line();
        (server, authority)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn busy(mut self) -> f64 {
        drop(self.process.stdin.take());
        let busy = self.line().parse().unwrap();
        self.process.wait().unwrap();
        busy
    }
}

fn measure(units: usize, workers: usize, threads: usize) {
    let (server, authority) = Server::start(workers);
    let remote = Remote::new(Settings {
        authority,
        tls: None,
        instance: String::new(),
        credentials: Credentials::None,
        timeout: Duration::from_secs(60),
        can_upload: true,
        on_signal: None,
    });
    let headers = headers();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (start, before) = (Instant::now(), processor_time());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= units {
                        return;
                    }
                    let (action, inputs) = unit(number, &headers);
                    if remote.execute(&action, &inputs).is_none() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let wall = start.elapsed().as_secs_f64();
    let cpu = processor_time() - before;
    let (failed, executed) = (failed.into_inner(), remote.executed());
    assert!(failed == 0, "{failed} units failed: {:?}", remote.take_failure());
    assert_eq!(executed.by_worker.values().sum::<u64>(), units as u64);
    let result = BTreeMap::from([
        ("units", units as f64),
        ("workers", workers as f64),
        ("threads", threads as f64),
        ("wall", wall),
        ("cpu", cpu),
        ("peak", peak_megabytes()),
        ("busy", server.busy()),
        ("mean", TIMES.iter().sum::<Duration>().as_secs_f64() / TIMES.len() as f64),
    ]);
    println!("{}", serde_json::to_string(&result).unwrap());
}

fn headers() -> (InputRoot, Inputs) {
    let (mut root, mut inputs) = (InputRoot::default(), Inputs::new());
    for number in 0..HEADERS.0 {
        let mut bytes = number.to_le_bytes().to_vec();
        bytes.resize(HEADERS.1, b'/');
        let digest = Digest::compute(&bytes);
        root.insert(&format!("{number}.h"), Node::File { digest, is_executable: false }).unwrap();
        inputs.insert(digest, Blob::Bytes(bytes.into()));
    }
    (root, inputs)
}

/// The headers are encoded once, as `cubinder compile` does.
fn unit(number: usize, headers: &(InputRoot, Inputs)) -> (Action, Inputs) {
    static FOLDER: std::sync::OnceLock<cubinder_remote::EncodedTree> = std::sync::OnceLock::new();
    let folder = FOLDER.get_or_init(|| headers.0.encode());
    let text = format!("// {number}\n{}", " ".repeat(4_000)).into_bytes();
    let digest = Digest::compute(&text);
    let mut root = InputRoot::default();
    root.insert("include", Node::Directory(folder.root)).unwrap();
    root.insert("unit.cu", Node::File { digest, is_executable: false }).unwrap();
    let tree = root.encode();
    let command = cubinder_remote::Command {
        arguments: vec!["compile".to_owned(), "unit.cu".to_owned()],
        outputs: vec!["code".to_owned(), "log".to_owned()],
        ..Default::default()
    };
    let action = Action::new(&command, tree.root);
    let mut inputs = headers.1.clone();
    inputs.insert(digest, Blob::Bytes(text.into()));
    let messages = folder.blobs.iter().chain(&tree.blobs).chain(&action.blobs);
    inputs.extend(messages.map(|(digest, bytes)| (*digest, Blob::Bytes(bytes.clone().into()))));
    (action, inputs)
}

/// In seconds.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn peak_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}
