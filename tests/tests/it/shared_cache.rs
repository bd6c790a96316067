//! Two machines share a cache: servers of the Remote Execution API on this machine; each has its home, local cache and
//! copy of the project.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cubinder_skip::skip;
use serde_json::Value;

use crate::buildbox::Server;

struct Machine {
    home: tempfile::TempDir,
    project: PathBuf,
    program: PathBuf,
    runtime: PathBuf,
}

struct Compiled {
    json: Value,
    said: String,
    library: Vec<u8>,
}

impl Compiled {
    fn figures(&self) -> [u64; 3] {
        ["nvrtc_calls", "cache_hits", "shared_hits"].map(|name| self.json[name].as_u64().unwrap())
    }
}

impl Machine {
    fn new(folder: &str) -> Option<Machine> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        let named = variable("CUBINDER_BIN").zip(variable("CUBINDER_RUNTIME_LIBRARY"));
        let Some((program, runtime)) = named else {
            skip("`CUBINDER_BIN` or `CUBINDER_RUNTIME_LIBRARY` is not set; `cargo xtask test` sets both");
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join(folder);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for folder in ["kernels", "manifests"] {
            copy(&root.join(folder), &project.join(folder));
        }
        let config = "[library]\nname = \"x\"\ntargets = [\"sm_89\", \"compute_80\"]\nmanifests = [\"manifests/elemwise*.toml\", \"manifests/non_zero*.toml\"]\n";
        std::fs::write(project.join("cubinder.toml"), config).unwrap();
        // The machines have equal CUDA packages.
        let toolkit = variable("CUBINDER_CACHE").or_else(|| Some(variable("HOME")?.join(".cache/cubinder")));
        std::os::unix::fs::symlink(toolkit?.join("toolkit"), home.path().join("toolkit")).unwrap();
        Some(Machine { home, project, program, runtime })
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.project);
        command.env("HOME", self.home.path()).env("CUBINDER_CACHE", self.home.path());
        command
            .env("CUBINDER_RUNTIME_LIBRARY", &self.runtime)
            .env_remove("CUBINDER_NVRTC")
            .env_remove("CUDA_HOME");
        command.output().unwrap()
    }

    /// Returns whether it succeeded, and its last line of JSON and messages.
    fn cache(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.run(&[&["cache"], arguments, &["--json"]].concat());
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    fn compile(&self, arguments: &[&str]) -> Compiled {
        let output = self.run(&[&["compile", "--json"], arguments].concat());
        let (printed, said) = (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned());
        let printed = String::from_utf8(printed).unwrap();
        assert!(output.status.success(), "{printed}{said}");
        let last = printed.lines().next_back().unwrap();
        let library = std::fs::read(self.project.join("build/libx.so")).unwrap();
        Compiled { json: serde_json::from_str(last).unwrap(), said: printed.clone() + &said, library }
    }

    fn empty_cache(&self) {
        std::fs::remove_dir_all(self.home.path().join("code")).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            let _ = std::fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn a_second_machine_calls_nvrtc_never() {
    let (Some(server), Some(first), Some(second)) =
        (Server::buildbox(), Machine::new("project"), Machine::new("other/deep/folder"))
    else {
        return;
    };
    let url = server.url.clone();
    let remote = ["--remote-cache", url.as_str()];
    let reader = second.compile(&remote);
    let [calls, _, shared] = reader.figures();
    assert!(calls > 0 && shared == 0);
    second.empty_cache();
    let filled = first.compile(&[remote[0], remote[1], "--remote-upload"]);
    assert_eq!(filled.figures(), [calls, 0, 0], "a reader stores nothing");
    assert!(filled.library == reader.library);
    let found = second.compile(&remote);
    let [calls, local, shared] = found.figures();
    assert!((calls, local) == (0, 0) && shared > 10, "{:?}", found.figures());
    assert!(found.library == filled.library, "equal bytes");
    assert_eq!(found.json["unshared"], 0);
    assert_eq!(second.compile(&remote).figures(), [0, shared, 0], "the local cache has them");
    // An entry of another header, and a server that stops.
    std::fs::write(second.project.join("kernels/unused.h"), "").unwrap();
    assert_eq!(second.compile(&remote).figures(), [0, shared, 0]);
    second.empty_cache();
    drop(server);
    let alone = second.compile(&[remote[0], remote[1], "--deny-warnings"]);
    assert!(alone.figures()[0] > 0 && alone.library == filled.library);
    let is_warning = |line: &&str| line.contains("failed: GetCapabilities failed: ");
    assert_eq!(alone.said.lines().filter(is_warning).count(), 1);
}

#[test]
fn a_damaged_server_is_not_believed() {
    let (Some(server), Some(machine)) = (Server::buildbox(), Machine::new("project")) else { return };
    let url = server.url.clone();
    let remote = ["--remote-cache", url.as_str()];
    let filled = machine.compile(&[remote[0], remote[1], "--remote-upload"]);
    machine.empty_cache();
    let mut waiting = vec![server.folder.path().to_owned()];
    while let Some(folder) = waiting.pop() {
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                waiting.push(path);
            } else if let Ok(mut bytes) = std::fs::read(&path)
                && let Some(byte) = bytes.last_mut()
            {
                *byte ^= 1;
                let _ = std::fs::remove_file(&path);
                let _ = std::fs::write(&path, bytes);
            }
        }
    }
    let found = machine.compile(&remote);
    assert!(found.library == filled.library);
}

#[test]
fn workers_return_the_code_that_this_machine_compiles() {
    let (Some(server), Some(machine)) = (Server::with_workers(&[]), Machine::new("project")) else { return };
    let here = machine.compile(&[]);
    machine.empty_cache();
    let remote = ["--remote-executor", server.url.as_str(), "--jobs", "2", "--remote-only"];
    let executed = machine.compile(&remote);
    assert_eq!(executed.figures(), [0, 0, 0], "{}", executed.said);
    assert!(executed.json["executed"].as_u64().unwrap() > 10);
    assert!(executed.library == here.library, "equal bytes");
    assert!(!executed.json["workers"].as_object().unwrap().is_empty(), "{}", executed.said);
    machine.empty_cache();
    let again = machine.compile(&remote);
    assert_eq!(again.json["executed"], executed.json["executed"]);
    assert!(again.json["workers"].as_object().unwrap().is_empty(), "the server keeps results of its workers");
    // With `--remote-upload`, machines without workers have them, too.
    machine.empty_cache();
    machine.compile(&[&remote[..], &["--remote-upload"]].concat());
    machine.empty_cache();
    let [calls, _, shared] = machine.compile(&["--remote-cache", server.url.as_str()]).figures();
    assert!(calls == 0 && shared > 10);
    let kernel = machine.project.join("kernels/elemwise_add.cu");
    let text = std::fs::read_to_string(&kernel).unwrap();
    std::fs::write(&kernel, text + "\n#error no\n").unwrap();
    let failed = machine.run(&[&["compile"], &remote[..]].concat());
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && said.contains("no server returned a result"), "{said}");
    assert!(said.contains("#error directive: no"), "{said}");
    let failed = machine.run(&["compile", remote[0], remote[1]]);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && said.contains("#error directive: no"), "{said}");
}

#[test]
fn results_are_copied_to_a_machine_without_a_network() {
    let (Some(first), Some(second)) = (Machine::new("project"), Machine::new("other/deep/folder")) else {
        return;
    };
    let file = first.home.path().join("results.zip");
    let file = file.to_str().unwrap();
    let (succeeded, said) = first.cache(&["export", file]);
    assert!(!succeeded && said.contains("the local cache lacks ") && !Path::new(file).exists(), "{said}");
    let compiled = first.compile(&[]);
    let (succeeded, exported) = first.cache(&["export", file]);
    assert!(succeeded && exported.contains(r#""unshared":0"#), "{exported}");
    let bytes = std::fs::read(file).unwrap();
    assert_eq!(second.cache(&["import", file]), (true, exported.clone()));
    let (succeeded, said) = second.cache(&["import", file]);
    assert!(succeeded && said.contains(r#""copied":0"#), "{said}");
    let (succeeded, said) = first.cache(&["export", "cubinder.toml"]);
    assert!(!succeeded && said.contains("is not a file of results"), "{said}");
    let found = second.compile(&[]);
    assert_eq!(found.figures()[0], 0, "{}", found.said);
    assert!(found.library == compiled.library, "equal bytes");
    // What was imported can be exported again.
    assert_eq!(second.cache(&["export", file]), (true, exported));
    assert!(std::fs::read(file).unwrap() == bytes, "equal bytes");
    std::fs::write(second.project.join("kernels/elemwise_add.cu"), "// Changed.\n").unwrap();
    second.empty_cache();
    let (succeeded, said) = second.cache(&["import", file]);
    assert!(!succeeded && said.contains("lacks"), "{said}");
    let (succeeded, said) = second.cache(&["prune", "--all"]);
    assert!(succeeded && said.contains(r#""left":{"bytes":0,"entries":0}"#), "{said}");
    let (_, said) = second.cache(&["stats"]);
    assert!(said.contains(r#""entries":0"#), "{said}");
}

#[test]
fn a_local_cache_is_pushed_and_pulled() {
    let (Some(server), Some(first), Some(second)) =
        (Server::buildbox(), Machine::new("project"), Machine::new("other/deep/folder"))
    else {
        return;
    };
    let url = server.url.clone();
    let remote = ["--remote-cache", url.as_str()];
    let compiled = first.compile(&[]);
    let (succeeded, said) = second.cache(&["pull", remote[0], remote[1]]);
    assert!(!succeeded && said.contains("the shared cache lacks "), "{said}");
    let pushed = first.cache(&["push", remote[0], remote[1]]);
    assert!(pushed.0 && pushed.1.contains(r#""unshared":0"#), "{pushed:?}");
    assert_eq!(second.cache(&["pull", remote[0], remote[1]]), pushed);
    drop(server);
    let (succeeded, said) = first.cache(&["push", remote[0], remote[1]]);
    assert!(!succeeded && said.contains("GetCapabilities failed"), "{said}");
    let found = second.compile(&[]);
    assert_eq!(found.figures()[0], 0, "{}", found.said);
    assert!(found.library == compiled.library, "equal bytes");
}

const SCALE: &str = r#"schema = 1
[plugin]
name = "NAME"
namespace = "mine"
[[inputs]]
name = "x"
type = "f32"
[[outputs]]
name = "y"
type = "f32"
shape = "x.shape"
VARIANTS
[[launches]]
source = "../kernels/NAME.cu"
kernel = "KERNEL"
grid = ["ceil_div(numel(y), 256)"]
block = [256]
[launches.args]
x = "x"
y = "y"
count = "numel(y)"
"#;

/// Kernels of one folder: computed includes, two spellings of a header's path, a warning for each instance.
#[test]
fn workers_compile_different_kernels_together() {
    let (Some(server), Some(machine)) = (Server::with_workers(&[]), Machine::new("project")) else { return };
    let write = |path: &str, text: &str| {
        let path = machine.project.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let plugin = |name: &str, kernel: &str, variants: &str, text: &str| {
        let manifest = SCALE.replace("NAME", name).replace("KERNEL", kernel).replace("VARIANTS", variants);
        write(&format!("mixed/{name}.toml"), &manifest);
        write(&format!("kernels/{name}.cu"), text);
    };
    let kernel = |name: &str, body: &str| {
        format!("__global__ void {name}(const float* x, float* y, long long count) {{ {body} }}\n")
    };
    write("include/one.h", "#define ONE 1\n");
    plugin(
        "spelled",
        "spelled",
        "",
        &format!("#include \"../include/one.h\"\n{}", kernel("spelled", "y[0] = x[0] + ONE;")),
    );
    plugin("angled", "angled", "", &format!("#include <one.h>\n{}", kernel("angled", "y[0] = x[0] - ONE;")));
    let standard = kernel("standard", "y[0] = cuda::std::numeric_limits<float>::max();");
    plugin("standard", "standard", "", &format!("#include <cuda/std/limits>\n{standard}"));
    let variants = "[[variants]]\nid = 1\nconstants = { K = 1 }\nguard = \"numel(x) < 100\"\n[[variants]]\nid = 2\nconstants = { K = 2 }\n";
    let warning = kernel("warned", "int never = K; y[0] = x[0];");
    plugin("warned", "warned<K>", variants, &format!("template <int K>\n{warning}"));
    let config = "[library]\nname = \"x\"\ntargets = [\"sm_89\", \"compute_80\"]\nmanifests = [\"mixed/*.toml\"]\ninclude = [\"include\"]\n";
    write("cubinder.toml", config);
    let here = machine.compile(&[]);
    assert!(here.said.contains("never"), "{}", here.said);
    machine.empty_cache();
    let remote = ["--remote-executor", server.url.as_str(), "--remote-only"];
    let executed = machine.compile(&remote);
    assert_eq!(executed.figures()[0], 0);
    assert!(executed.library == here.library && executed.said.contains("never"), "{}", executed.said);
    // One text that does not compile does not hide the results of others.
    machine.empty_cache();
    write("kernels/angled.cu", &format!("#error no\n{}", kernel("angled", "y[0] = 0;")));
    let failed = machine.run(&["compile", remote[0], remote[1]]);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert!(!failed.status.success() && said.contains("#error directive: no"), "{said}");
    write("kernels/angled.cu", &format!("#include <one.h>\n{}", kernel("angled", "y[0] = x[0] - ONE;")));
    let repaired = machine.compile(&[]);
    assert!(repaired.library == here.library && repaired.figures()[0] <= 3, "{:?}", repaired.figures());
}
