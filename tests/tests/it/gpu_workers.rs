//! `cubinder test` and `tune` on BuildBox's workers with a stand-in driver, compared with runs on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use cubinder_skip::does_not_apply;
use cubinder_tests::fake_driver::{self, Age};
use serde_json::Value;

use crate::buildbox::Server;
use crate::command::{self, Run, finish, root};

/// Nanoseconds, for `tests/data/testing/planted.cu`.
const TIMES: &str = "plantedILi4E=3000,plantedILi1E=2000";

const CASES: &str = r#"manifest = "../manifests/planted.toml"
reference = "references.py:right"

[[cases]]
name = "a vector"
shapes = { x = [1000] }

[[cases]]
name = "a file outside of the project"
inputs = { x = "../../data/x.npy" }
"#;

const REFERENCES: &str = "from helper import twice

def right(x, fault):
    return twice(x)

def wrong(x, fault):
    return x * 3
";

/// A project and a server with workers `first`, `second` (another GPU), `twin` (the GPU of `first`) and `bare` (no
/// GPU).
struct Farm {
    folder: tempfile::TempDir,
    _server: Option<Server>,
}

fn npy(values: &[f32]) -> Vec<u8> {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len());
    let header = format!("{header:<117}\n");
    let length = u16::try_from(header.len()).unwrap();
    let data = values.iter().flat_map(|value| value.to_le_bytes());
    b"\x93NUMPY\x01\x00"
        .iter()
        .copied()
        .chain(length.to_le_bytes())
        .chain(header.bytes())
        .chain(data)
        .collect()
}

impl Farm {
    fn new() -> Option<Farm> {
        command::command(&[])?;
        let drivers = fake_driver::driver_folder(Age::New).unwrap();
        let python = PathBuf::from(std::env::var_os("CUBINDER_TEST_PYTHON")?);
        let prefix = python.canonicalize().unwrap().ancestors().nth(2).unwrap().to_owned();
        let modules = std::env::var_os("CUBINDER_TEST_PYTHONPATH").unwrap_or_default();
        let modules: Vec<PathBuf> = std::env::split_paths(&modules).collect();
        let same = modules.iter().chain([&prefix]).filter(|path| !path.starts_with("/usr"));
        let mut folders: Vec<(&Path, &str)> =
            same.map(|path| (path.as_path(), path.to_str().unwrap())).collect();
        folders.push((&drivers, "/drivers"));
        let server = Server::with_workers(&folders)?;
        let common = format!(
            "LD_LIBRARY_PATH = \"/drivers\", FAKE_TIMES = \"{TIMES}\", CUBINDER_PYTHON = \"{}\", PYTHONPATH = \"{}\"",
            python.canonicalize().unwrap().display(),
            std::env::join_paths(&modules).unwrap().display(),
        );
        let farm = Farm::at(&server.url, &common);
        Some(Farm { _server: Some(server), ..farm })
    }

    fn at(url: &str, common: &str) -> Farm {
        let farm = Farm { folder: tempfile::tempdir().unwrap(), _server: None };
        let data = root().join("tests/data/testing");
        for name in ["planted.toml", "planted.cu"] {
            farm.write(&format!("project/manifests/{name}"), &std::fs::read(data.join(name)).unwrap());
        }
        farm.write("project/tests/cases.toml", CASES.as_bytes());
        farm.write("project/tests/references.py", REFERENCES.as_bytes());
        farm.write("project/tests/helper.py", b"def twice(x):\n    return x * 2\n");
        farm.write("data/x.npy", &npy(&[1.0, -2.5, 3.0]));
        let config = format!(
            r#"[library]
name = "planted"
targets = ["sm_89"]

[remote]
cache = "{url}"
executor = "{url}"

[remote.workers]
first = {{ environment = {{ {common} }} }}
second = {{ environment = {{ {common}, FAKE_GPU_NAME = "Stand-In 4080" }} }}
twin = {{ environment = {{ {common} }} }}
bare = {{ platform = {{ OSFamily = "linux" }} }}
"#
        );
        farm.write("project/cubinder.toml", config.as_bytes());
        farm
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), bytes).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command::command(arguments).unwrap();
        command.current_dir(self.path("project")).env("FAKE_TIMES", TIMES);
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        finish(&mut self.command(arguments))
    }
}

fn records(run: &Run, worker: &str) -> Vec<Value> {
    let all = run.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own = all.filter(|record| record["worker"] == worker);
    own.map(|mut record| {
        record.as_object_mut().unwrap().remove("worker");
        record
    })
    .collect()
}

#[test]
fn workers_report_what_this_machine_reports() {
    let Some(farm) = Farm::new() else { return };
    let local = farm.run(&["test", "tests/cases.toml"]);
    local.assert_code(0);
    let remote = farm.run(&["test", "tests/cases.toml", "--workers", "first,second"]);
    remote.assert_code(0);
    let other = local.stdout.replace("4090", "4080");
    assert_eq!(remote.stdout, format!("first: {}\nsecond: {other}\n", local.stdout), "{}", remote.stderr);
    let wrong = ["test", "manifests/planted.toml", "--shape", "x=7", "--json"];
    let wrong = [&wrong[..], &["--reference", "tests/references.py:wrong", "--attr", "fault=0"]].concat();
    let local = farm.run(&wrong);
    local.assert_code(1);
    let remote = farm.run(&[&wrong[..], &["--workers", "first,first"]].concat());
    remote.assert_code(1);
    assert_eq!(records(&remote, "first"), [local.report()], "{}", remote.stderr);
    // A library is sent unchanged, and an absolute path becomes a relative one.
    farm.run(&["compile"]).assert_code(0);
    let cases = farm.path("project/tests/cases.toml");
    let library = ["test", cases.to_str().unwrap(), "--on", "../project/build/libplanted.so", "--workers"];
    let mut library = farm.command(&[&library[..], &["second", "--case", "outside", "--json"]].concat());
    let library = finish(library.current_dir(farm.path("data")));
    library.assert_code(0);
    assert_eq!(library.report()["passed"], 1);
}

#[test]
fn times_of_workers_are_merged_as_those_of_this_machine() {
    let Some(farm) = Farm::new() else { return };
    farm.run(&["tune", "tests/cases.toml"]).assert_code(0);
    let file = farm.path("project/tuning/stand-in-4090.toml");
    let local = std::fs::read_to_string(&file).unwrap();
    let others = local.replace("test::planted", "test::another").replacen("schema = 1\n", "", 1);
    let points = others.find("[[points]]").unwrap();
    std::fs::write(&file, format!("{local}\n{}", &others[points..])).unwrap();
    let remote = farm.run(&["tune", "tests/cases.toml", "--workers", "first,second,twin"]);
    remote.assert_code(1);
    let merged = std::fs::read_to_string(&file).unwrap();
    assert_eq!(merged.matches("test::another").count(), local.matches("test::planted").count());
    assert!(merged.starts_with(&local), "{merged}");
    let second = std::fs::read_to_string(farm.path("project/tuning/stand-in-4080.toml")).unwrap();
    assert_eq!(second, local.replace("4090", "4080"));
    let wrote = "wrote tuning/stand-in-4090.toml (2 points; kept 2 others)\n";
    assert!(remote.stdout.contains(wrote), "{}", remote.stdout);
    assert!(!remote.stdout.contains(".cubinder"), "{}", remote.stdout);
    let same = "workers `twin` and `first` measured the same GPU: Stand-In 4090";
    assert!(remote.stderr.contains(same), "{}", remote.stderr);
    let part = ["tune", "tests/cases.toml", "--case", "vector", "--workers", "second", "--json"];
    let part = farm.run(&part);
    part.assert_code(0);
    let report = part.report();
    assert_eq!((&report["result"], &report["worker"]), (&"tuned".into(), &"second".into()));
    assert_eq!(report["written"], "tuning/stand-in-4080.toml");
    assert!(report["notes"].to_string().contains("does not list the file"), "{report}");
    let dry = farm.run(&["tune", "tests/cases.toml", "--workers", "second,twin", "--dry-run"]);
    dry.assert_code(0);
    assert!(!dry.stdout.contains("wrote"), "{}", dry.stdout);
}

#[test]
fn failures_of_workers_are_reported_for_their_names() {
    let Some(farm) = Farm::new() else { return };
    let test = ["test", "tests/cases.toml", "--case", "vector", "--workers"];
    let bare = farm.run(&[&test[..], &["bare,first"]].concat());
    if bare.code == Some(0) {
        does_not_apply("there is a GPU here");
        return;
    }
    bare.assert_code(3);
    assert!(bare.stderr.contains("a worker of `bare` has no GPU"), "{}", bare.stderr);
    assert!(!bare.stderr.contains("--allow-no-gpu"), "{}", bare.stderr);
    assert!(bare.stdout.starts_with("first: "), "{}", bare.stdout);
    let json = farm.run(&[&test[..], &["bare", "--json"]].concat());
    json.assert_code(3);
    assert_eq!(json.report()["result"], "no_gpu");
    let node = ["test", "manifests/planted.toml", "--shape", "x=64", "--attr", "fault=10"];
    let slow = farm.run(&[&node[..], &["--worker-timeout", "3", "--workers", "first"]].concat());
    slow.assert_code(1);
    assert!(slow.stderr.contains("cannot run on workers `first`: "), "{}", slow.stderr);
    assert!(slow.stderr.contains("raise `--worker-timeout`"), "{}", slow.stderr);
}

#[test]
fn nothing_runs_here_if_the_server_cannot() {
    if command::command(&[]).is_none() {
        return;
    }
    let farm = Farm::at("grpc://127.0.0.1:9", "LC_ALL = \"C\"");
    let run = |workers: &str| farm.run(&["test", "tests/cases.toml", "--workers", workers]);
    let unreachable = run("first");
    unreachable.assert_code(1);
    assert_eq!(unreachable.stdout, "");
    assert!(unreachable.stderr.contains("cannot run on workers `first`: GetCapabilities failed"));
    insta::assert_snapshot!("unknown", run("frist").stderr);
    let config = std::fs::read_to_string(farm.path("project/cubinder.toml")).unwrap();
    farm.write("project/cubinder.toml", config.replace("executor = \"grpc://127.0.0.1:9\"\n", "").as_bytes());
    insta::assert_snapshot!("executor", run("first").stderr);
    let data = farm.path("data/x.npy");
    let absolute = CASES.replace("../../data/x.npy", data.to_str().unwrap());
    farm.write("project/tests/cases.toml", absolute.as_bytes());
    farm.write("project/cubinder.toml", config.as_bytes());
    let absolute = run("first");
    absolute.assert_code(1);
    let message = format!("workers cannot read `{}`: the path is absolute", data.display());
    assert!(absolute.stderr.contains(&message), "{}", absolute.stderr);
}
