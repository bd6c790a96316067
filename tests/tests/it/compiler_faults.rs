//! Every writing command with a fault at each call: no space, no permission, read-only, SIGKILL (`tests/fault-shim`).
//! Files are old or new, byte for byte; errors report what, where, why, fix; an unwritable cache causes a warning; the
//! next run succeeds and removes leftovers.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cubinder_skip::skip;
use cubinder_tests::faults::{DAMAGED, DENIED, FULL, Fault, Kind, READ_ONLY, Shim, Streams, Who};

use crate::command::{self};

const ALL: [Kind; 5] =
    [Kind::Killed, Kind::Once(FULL), Kind::Lasting(FULL), Kind::Lasting(READ_ONLY), Kind::Once(DENIED)];

type Tree = BTreeMap<PathBuf, Vec<u8>>;

fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                true => waiting.push(path),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_owned();
                    found.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
    }
    found
}

fn restore(root: &Path, files: &Tree) {
    std::fs::remove_dir_all(root).unwrap();
    std::fs::create_dir_all(root).unwrap();
    for (name, bytes) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

struct Scene {
    _folder: tempfile::TempDir,
    root: PathBuf,
    shim: Shim,
    program: PathBuf,
    arguments: Vec<String>,
    more: Vec<(String, PathBuf)>,
    who: Who,
    /// Stops before the first call whose path contains this.
    until: Option<&'static str>,
    before: Tree,
}

const CACHE: &str = "cache";

impl Scene {
    fn new(arguments: &[&str], prepare: impl FnOnce(&Scene)) -> Option<Scene> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let named = variable("CUBINDER_BIN").zip(variable("CUBINDER_RUNTIME_LIBRARY"));
        let Some((program, runtime)) = named else {
            skip("`CUBINDER_BIN` or `CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets both");
            return None;
        };
        let nvrtc = nvrtc()?;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let mut scene = Scene {
            shim: Shim::build().unwrap(),
            program,
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            more: vec![
                ("CUBINDER_RUNTIME_LIBRARY".to_owned(), runtime),
                ("CUBINDER_NVRTC".to_owned(), nvrtc),
                ("CUBINDER_CACHE".to_owned(), root.join(CACHE)),
            ],
            who: Who::Program,
            until: None,
            before: Tree::new(),
            root,
            _folder: folder,
        };
        prepare(&scene);
        scene.before = tree(&scene.root);
        Some(scene)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn plugin(&self, factor: &str) {
        self.write("scale.toml", MANIFEST);
        self.write("scale.cu", KERNEL.replace("FACTOR", factor));
    }

    fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.root).args(arguments).env_remove("CUDA_HOME");
        command.envs(self.more.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
        let output = self.command(&arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn sweep(&self, kinds: &[Kind]) {
        let count = match self.who {
            Who::Program => {
                self.sweep_calls(kinds, Streams::Spared, |_| true)
                    + self.sweep_calls(kinds, Streams::Counted, is_stream)
            }
            Who::Workers => self.sweep_calls(kinds, Streams::Counted, |_| true),
        };
        assert!(count > 0, "the shim sees no call");
        println!("{:?}: {count} calls", self.arguments);
    }

    fn sweep_calls(&self, kinds: &[Kind], streams: Streams, is_tried: fn(&str) -> bool) -> usize {
        restore(&self.root, &self.before);
        let fault = |at, kind| Fault { who: self.who, streams, at, kind };
        let done = self.shim.run(&mut self.command(&self.arguments), fault(0, Kind::Killed)).unwrap();
        assert!(done.output.status.success(), "{}", String::from_utf8_lossy(&done.output.stderr));
        let after = tree(&self.root);
        let is_last = |call: &String| self.until.is_some_and(|until| call.contains(until));
        let count = done.calls.iter().position(is_last).unwrap_or(done.calls.len());
        assert_no_drafts(&after, "without a fault");
        let tried: Vec<usize> = (1..=count).filter(|at| is_tried(&done.calls[at - 1])).collect();
        for &at in &tried {
            for kind in kinds {
                self.try_one(fault(at, *kind), &after);
            }
        }
        tried.len()
    }

    fn try_one(&self, fault: Fault, after: &Tree) {
        let Fault { at, kind, .. } = fault;
        restore(&self.root, &self.before);
        let done = self.shim.run(&mut self.command(&self.arguments), fault).unwrap();
        let (output, calls) = (done.output, done.calls);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let call = calls.get(at - 1).map_or("no such call", String::as_str);
        let place =
            format!("{:?}, {kind:?} at call {at}, `{call}`: {:?}\n{said}", self.arguments, output.status);
        let now = tree(&self.root);
        assert_old_or_new(&self.before, after, &now, &place);
        match (kind, output.status.code()) {
            (Kind::Killed, _) => {
                let is_killed = output.status.signal() == Some(9) || self.who == Who::Workers;
                assert!(is_killed, "{place}");
            }
            (_, Some(0)) => {
                assert_no_drafts_but_stuck(&now, kind, &place);
                assert_outputs(after, &now, &place);
                let is_cached = now.keys().filter(|name| name.starts_with(CACHE)).eq(cached(after));
                // Without NVRTC's include trace code is not cached.
                let has_no_trace = self.who == Who::Workers && call == "say 2";
                let is_warned = said.contains("warning: cannot cache compiled code: ");
                assert!(is_cached || is_warned || has_no_trace, "{place}");
            }
            (_, Some(1)) => {
                assert_no_drafts_but_stuck(&now, kind, &place);
                let is_old = outputs(&now).eq(outputs(&self.before));
                // The second rename on: the first cannot be undone.
                let is_old = is_old || (matches!(kind, Kind::Lasting(_)) && call.starts_with("rename"));
                assert!(is_old || is_stream(call), "{place}");
                // The report itself cannot be written.
                let is_mute = is_stream(call) && (call == "say 2" || matches!(kind, Kind::Lasting(_)));
                assert!(said.starts_with("error: ") || (is_mute && said.is_empty()), "{place}");
                // Pipe errors have no path and fix.
                let is_of_files = !is_stream(call) || call == "say 1";
                if self.who == Who::Program && is_of_files && !said.is_empty() {
                    assert_told(&said, kind, &place);
                }
            }
            _ => panic!("{place}"),
        }
        if now == self.before && matches!(kind, Kind::Once(_) | Kind::Lasting(_)) {
            return;
        }
        let again = self.command(&self.arguments).output().unwrap();
        let said = String::from_utf8_lossy(&again.stderr);
        let is_there = said.contains("already exists") && outputs(&now).eq(outputs(after));
        let is_there =
            is_there || (said.contains("are never overwritten") && outputs(&now).eq(outputs(after)));
        assert!(again.status.success() || is_there, "{place}\nagain: {said}");
        let then = tree(&self.root);
        assert_outputs(after, &then, &format!("{place}\nagain"));
        assert_no_drafts(&then, &place);
        for (name, bytes) in then.iter().filter(|(name, _)| name.starts_with(CACHE)) {
            assert_eq!(after.get(name), Some(bytes), "{}: {place}", name.display());
        }
    }
}

fn cached(tree: &Tree) -> impl Iterator<Item = &PathBuf> {
    tree.keys().filter(|name| name.starts_with(CACHE))
}

fn outputs(tree: &Tree) -> impl Iterator<Item = (&PathBuf, &Vec<u8>)> {
    tree.iter().filter(|(name, _)| !name.starts_with(CACHE) && !is_draft(name))
}

fn is_stream(call: &str) -> bool {
    call.starts_with("say ")
}

fn is_draft(name: &Path) -> bool {
    let name = name.file_name().unwrap().to_string_lossy();
    name.starts_with(".cubinder-")
}

#[track_caller]
fn assert_no_drafts(tree: &Tree, place: &str) {
    let left: Vec<_> = tree.keys().filter(|name| is_draft(name)).collect();
    assert!(left.is_empty(), "{left:?} is left: {place}");
}

#[track_caller]
fn assert_no_drafts_but_stuck(tree: &Tree, kind: Kind, place: &str) {
    if !matches!(kind, Kind::Lasting(_)) && !place.contains("`unlink") {
        assert_no_drafts(tree, place);
    }
}

#[track_caller]
fn assert_outputs(after: &Tree, now: &Tree, place: &str) {
    let names = |tree: &Tree| outputs(tree).map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(after), names(now), "{place}");
    for (name, bytes) in outputs(now) {
        assert!(after.get(name) == Some(bytes), "`{}` is not as expected: {place}", name.display());
    }
}

#[track_caller]
fn assert_old_or_new(before: &Tree, after: &Tree, now: &Tree, place: &str) {
    for (name, bytes) in now.iter().filter(|(name, _)| !is_draft(name)) {
        let is_whole = before.get(name) == Some(bytes) || after.get(name) == Some(bytes);
        assert!(is_whole, "`{}` has neither the old nor the new content: {place}", name.display());
    }
    for name in before.keys() {
        assert!(now.contains_key(name) || !after.contains_key(name), "`{}` is gone: {place}", name.display());
    }
}

#[track_caller]
fn assert_told(said: &str, kind: Kind, place: &str) {
    let (Kind::Once(number) | Kind::Lasting(number)) = kind else { return };
    let why = std::io::Error::from_raw_os_error(number).to_string();
    let first = said.lines().next().unwrap_or_default();
    assert!(first.contains(&why), "{place}");
    let is_place_named = first.contains('`') || first.contains("standard output");
    assert!(is_place_named && said.contains("help: ") && !said.contains("panicked"), "{place}");
}

fn nvrtc() -> Option<PathBuf> {
    let overrides = cubinder_nvrtc::toolkit::Overrides::from_env(None);
    match cubinder_nvrtc::toolkit::Toolkit::locate(&overrides) {
        Ok(toolkit) => Some(toolkit.nvrtc),
        Err(error) => {
            skip(&error.message);
            None
        }
    }
}

const MANIFEST: &str = r#"schema = 1

[plugin]
name = "scale"
namespace = "test"
version = "1"

[[inputs]]
name = "x"
type = "f32"
rank = 1

[[outputs]]
name = "y"
type = "f32"
shape = "x.shape"

[[launches]]
source = "scale.cu"
kernel = "scale"
grid = ["ceil_div(numel(y), 256)"]
block = [256]

[launches.args]
x = "x"
y = "y"
count = "numel(y)"
"#;

const KERNEL: &str = r#"extern "C" __global__ void scale(const float* x, float* y, unsigned count) {
    unsigned i = blockIdx.x * 256 + threadIdx.x;
    if (i < count) y[i] = x[i] * FACTOR;
}
"#;

const TUNING: &str = r#"schema = 1

[device]
name = "NVIDIA Test"
capability = "8.9"
sms = 100

[[points]]
plugin = "test::scale"
version = "1"
shapes = { x = [512] }
microseconds = { 1 = 3.02 }
"#;

const COMPILE: [&str; 9] =
    ["compile", "scale.toml", "--target", "sm_89", "--out-dir", "out", "--jobs", "1", "--embed"];

const NEW: [&str; 2] = ["new", "scale"];
const IMPORT: [&str; 7] = ["import", "ptx", "scale.ptx", "--kernel", "scale_f32_1", "--output", "scale.toml"];

fn write_ptx(scene: &Scene) {
    scene.write("scale.ptx", std::fs::read(command::root().join("tests/data/code/scale.ptx")).unwrap());
}

#[test]
fn a_first_compile_keeps_whole_code_or_none() {
    let Some(mut scene) = Scene::new(&COMPILE, |scene| scene.plugin("2")) else { return };
    scene.until = Some("/out/");
    scene.sweep(&[Kind::Killed, Kind::Once(FULL), Kind::Lasting(READ_ONLY)]);
}

#[test]
fn processes_that_compile_may_lose_their_answers() {
    let Some(mut scene) = Scene::new(&COMPILE, |scene| scene.plugin("2")) else { return };
    scene.who = Who::Workers;
    scene.sweep(&[Kind::Killed, Kind::Once(DAMAGED)]);
}

#[test]
fn libraries_and_the_depfile_take_the_place_of_old_ones_together() {
    let arguments = [&COMPILE[..], &["--depfile", "out/scale.d", "--tuning", "gpu.toml"]].concat();
    let Some(scene) = Scene::new(&arguments, |scene| {
        scene.write("gpu.toml", TUNING);
        scene.plugin("2");
        scene.run(&arguments);
        std::fs::rename(scene.root.join("out"), scene.root.join("old")).unwrap();
        scene.plugin("4");
        scene.run(&arguments);
        std::fs::remove_dir_all(scene.root.join("out")).unwrap();
        std::fs::rename(scene.root.join("old"), scene.root.join("out")).unwrap();
    }) else {
        return;
    };
    scene.sweep(&ALL);
}

#[test]
fn thin_changes_both_libraries_or_none() {
    let Some(scene) = Scene::new(&["thin", "out/libscale.so", "--arch", "sm_89", "--no-ptx"], |scene| {
        scene.plugin("2");
        scene.run(&[&COMPILE[..], &["--target", "compute_80"]].concat());
    }) else {
        return;
    };
    scene.sweep(&ALL);
}

#[test]
fn new_writes_all_files_or_none() {
    let Some(scene) = Scene::new(&NEW, |_| ()) else { return };
    scene.sweep(&ALL);
}

#[test]
fn import_writes_a_whole_manifest_or_none() {
    let Some(scene) = Scene::new(&IMPORT, write_ptx) else { return };
    scene.sweep(&ALL);
}

const NO_LINKS: (&str, &str) = ("FAULT_REFUSED", "renameat2=22,link=1,linkat=1");

#[test]
fn import_and_new_write_new_files_on_any_file_system() {
    for (words, refused) in [(&NEW[..], "already exists"), (&IMPORT, "are never overwritten")] {
        let Some(mut scene) = Scene::new(words, write_ptx) else { return };
        scene.more.push((NO_LINKS.0.to_owned(), NO_LINKS.1.into()));
        scene.sweep(&[Kind::Once(FULL), Kind::Once(DENIED)]);
        for _ in 0..10 {
            restore(&scene.root, &scene.before);
            let fault = Fault { who: Who::Program, streams: Streams::Spared, at: 0, kind: Kind::Killed };
            let run = || scene.shim.run(&mut scene.command(&scene.arguments), fault).unwrap().output;
            let outputs = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            });
            assert_eq!(outputs.iter().filter(|output| output.status.success()).count(), 1, "{outputs:?}");
            for output in outputs.iter().filter(|output| !output.status.success()) {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(said.contains(refused) || said.contains("File exists"), "{said}");
            }
            assert!(tree(&scene.root).values().all(|bytes| !bytes.is_empty()));
        }
    }
}

#[test]
fn annotate_writes_a_whole_model_or_none() {
    // `ir_version` 8, opset 17, an empty graph.
    let model = [0x08, 0x08, 0x42, 0x04, 0x0a, 0x00, 0x10, 0x11, 0x3a, 0x03, 0x12, 0x01, b'g'];
    let arguments = ["onnx", "annotate", "model.onnx", "--plugins", "scale.toml", "--output", "out.onnx"];
    let Some(scene) = Scene::new(&arguments, |scene| {
        scene.plugin("2");
        scene.write("model.onnx", model);
    }) else {
        return;
    };
    scene.sweep(&ALL);
}

#[test]
fn manual_pages_are_whole() {
    let Some(scene) = Scene::new(&["man", "pages"], |_| ()) else { return };
    scene.sweep(&[Kind::Once(FULL), Kind::Lasting(READ_ONLY)]);
}

#[test]
fn what_does_not_get_to_standard_output_is_no_success() {
    let Some(scene) = Scene::new(&["schema"], |_| ()) else { return };
    scene.sweep(&ALL);
}

#[test]
fn a_measurement_is_kept_whole_or_not_at_all() {
    let Some(driver) = command::command(&[]) else { return };
    let Some(mut scene) = Scene::new(&["tune", "planted.toml"], |scene| {
        let data = command::root().join("tests/data/testing");
        for name in ["planted.toml", "planted.cu"] {
            scene.write(name, std::fs::read(data.join(name)).unwrap());
        }
    }) else {
        return;
    };
    let manifest = std::fs::read_to_string(scene.root.join("planted.toml")).unwrap();
    scene.write(
        "planted.toml",
        manifest.replace("version = \"1\"\n", "version = \"1\"\ntune = \"sizes.toml\"\n"),
    );
    scene.write(
        "sizes.toml",
        "manifest = \"planted.toml\"\n[[cases]]\nname = \"7\"\nshapes = { x = [7, 4] }\n",
    );
    let variables = driver.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?)));
    scene.more.extend(variables.map(|(name, value)| (name.to_owned(), value.into())));
    scene.more.push(("FAKE_TIMES".to_owned(), "plantedILi4E=3000,plantedILi1E=2000".into()));
    scene.run(&["tune", "planted.toml"]);
    scene.before = tree(&scene.root);
    scene.sweep(&[Kind::Killed, Kind::Once(FULL), Kind::Lasting(READ_ONLY)]);
}

/// `ulimit -u` does not apply to root, hence the shim.
#[test]
fn manifests_are_checked_where_no_thread_can_be_started() {
    let Some(program) = std::env::var_os("CUBINDER_BIN") else {
        skip("`cargo xtask test` names the compiler");
        return;
    };
    let shim = Shim::build().unwrap();
    let run = |folder: &Path, words: &[&str], threads: Option<usize>| {
        let mut command = Command::new(&program);
        command.args(words).current_dir(folder);
        threads.iter().for_each(|threads| shim.limit_threads(&mut command, *threads));
        command.output().unwrap()
    };
    let wrong = tempfile::tempdir().unwrap();
    for (name, found, put) in [("a.toml", "x.shape", "z.shape"), ("b.toml", "numel(y)", "numel(w)")] {
        std::fs::write(wrong.path().join(name), MANIFEST.replace(found, put)).unwrap();
    }
    std::fs::write(wrong.path().join("scale.cu"), KERNEL.replace("FACTOR", "2")).unwrap();
    let root = command::root();
    for (folder, words, code) in
        [(root.as_path(), &["check"][..], 0), (wrong.path(), &["check", "a.toml", "b.toml"], 1)]
    {
        let all = run(folder, words, None);
        assert_eq!(all.status.code(), Some(code), "{all:?}");
        for threads in [0, 1] {
            assert_eq!(run(folder, words, Some(threads)), all, "{threads}");
        }
    }
    let compile = run(&root, &["compile", "--out-dir", "/dev/null/out"], Some(0));
    let said = String::from_utf8_lossy(&compile.stderr);
    assert_eq!(compile.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: cannot start threads: Resource temporarily unavailable"), "{said}");
    assert!(said.contains("help: "), "{said}");
}

#[test]
fn eight_share_a_cache_while_some_are_killed() {
    let Some(scene) = Scene::new(&COMPILE, |scene| scene.plugin("2")) else { return };
    scene.run(&COMPILE);
    let after = tree(&scene.root);
    let is_spared = |number: usize| number.is_multiple_of(2);
    let run = |folder: &str, at: usize| {
        let arguments = COMPILE.map(|word| if word == "out" { folder } else { word }.to_owned());
        let fault = Fault { who: Who::Program, streams: Streams::Counted, at, kind: Kind::Killed };
        scene.shim.run(&mut scene.command(&arguments), fault).unwrap()
    };
    let calls = run("out-warm", 0).calls.len();
    for round in 0..4 {
        restore(&scene.root, &scene.before);
        let compile = |number: usize| {
            let at = if is_spared(number) { 0 } else { 1 + (round * 12 + number) % calls };
            let done = run(&format!("out{number}"), at);
            assert_eq!(done.output.status.success(), is_spared(number), "{number}: {:?}", done.output);
        };
        std::thread::scope(|scope| {
            (0..8).for_each(|number| drop(scope.spawn(move || compile(number))));
        });
        scene.run(&COMPILE);
        let now = tree(&scene.root);
        for (name, bytes) in after.iter().filter(|(name, _)| name.starts_with("out")) {
            assert!(now.get(name) == Some(bytes), "{}", name.display());
            for number in (0..8).step_by(2) {
                let other = Path::new(&format!("out{number}")).join(name.strip_prefix("out").unwrap());
                assert!(now.get(&other) == Some(bytes), "{}", other.display());
            }
        }
        for name in cached(&now).filter(|name| !is_draft(name)) {
            assert_eq!(now.get(name), after.get(name), "{}", name.display());
        }
    }
}
