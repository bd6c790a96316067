use std::fmt::Write as _;

use super::paths::in_ptx;
use super::*;
use crate::test_support::{show, toolkit, unit};

#[derive(Debug, Default)]
struct Memory {
    results: Mutex<HashMap<String, Outputs>>,
    rejected: Mutex<Vec<String>>,
    /// Workers' results, which the cache lacks.
    workers: Option<Arc<Memory>>,
    /// Overwrites every result.
    replacement: Mutex<Outputs>,
    is_read_only: bool,
}

struct MemoryEntry<'c>(&'c Memory, String);

impl SharedCache for Memory {
    fn entry<'c>(&'c self, action: CompileAction) -> Result<Box<dyn SharedEntry + 'c>, String> {
        // A batch of one has one more argument.
        let mut key = format!("{:?} {:?}", action.arguments[1], action.outputs);
        write!(key, "{:?}", action.folders).unwrap();
        for (path, input) in &action.inputs {
            let contents = match input {
                Input::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Input::File(path, Some(_)) => std::fs::read_to_string(path).unwrap(),
                Input::File(..) | Input::Program(_) | Input::Folder(_) => "given".to_owned(),
            };
            write!(key, "\n{path}: {contents}").unwrap();
        }
        Ok(Box::new(MemoryEntry(self, key)))
    }

    fn executes(&self) -> bool {
        self.workers.is_some()
    }

    fn stores(&self) -> bool {
        !self.is_read_only
    }

    fn activity(&self) -> shared::Activity {
        shared::Activity::default()
    }

    fn take_warnings(&self) -> Vec<Diagnostic> {
        Vec::new()
    }
}

impl SharedEntry for MemoryEntry<'_> {
    fn get(&self) -> Option<Outputs> {
        let mut found = self.0.results.lock().unwrap().get(&self.1)?.clone();
        found.extend(self.0.replacement.lock().unwrap().clone());
        Some(found)
    }

    fn execute(&self) -> Option<Outputs> {
        MemoryEntry(self.0.workers.as_ref()?, self.1.clone()).get()
    }

    fn put(&self, outputs: &Outputs) {
        self.0.results.lock().unwrap().insert(self.1.clone(), outputs.clone());
    }

    fn reject(&self, reason: &str) {
        self.0.rejected.lock().unwrap().push(reason.to_owned());
    }
}

fn of_code(unit: &PreparedUnit, target: Target) -> Compile<'_> {
    Compile { units: vec![unit], target, is_signatures: false }
}

fn of_signatures(unit: &PreparedUnit, target: Target) -> Compile<'_> {
    Compile { is_signatures: true, ..of_code(unit, target) }
}

const TEXT: &str = "#include \"a.h\"\n#include <b.h>\n__global__ void k(int* x) { x[0] = A + B; }\n";

struct Machine {
    toolkit: Toolkit,
    home: tempfile::TempDir,
    shared: Arc<Memory>,
    options: Vec<String>,
    replacement: Replacement,
}

impl Machine {
    fn new(toolkit: &Toolkit, shared: &Arc<Memory>) -> Machine {
        let home = tempfile::tempdir().unwrap();
        let machine = Machine {
            toolkit: toolkit.clone(),
            home,
            shared: Arc::clone(shared),
            options: Vec::new(),
            replacement: Replacement::Compiles,
        };
        machine.write("project/kernels/a.h", "#define A 1\n");
        machine.write("project/include/b.h", "#define B 2\n");
        machine
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn session(&self) -> Session {
        let cache = Cache::open(&self.home.path().join("cache"));
        let root = self.home.path().join("project");
        let settings = Settings { include: vec![root.join("include")], options: self.options.clone() };
        let session = Session::new(self.toolkit.clone(), settings, cache).unwrap();
        session.sharing(Arc::<Memory>::clone(&self.shared), &root, self.replacement)
    }

    /// Returns the code, and the numbers of NVRTC calls, local and shared results.
    fn build(&self, text: &str, target: &str) -> (Arc<CodeObject>, [u64; 3]) {
        let session = self.session();
        let target = target.parse().unwrap();
        let prepared = session.prepare(unit(&self.home.path().join("project"), text, "k", &[]));
        let compiled = session.compile(&prepared, target).map_err(diagnostics);
        let compiled = compiled.unwrap_or_else(|errors| panic!("{}", show(&errors)));
        let signature = session.signature(&prepared, target).map_err(diagnostics).unwrap();
        assert_eq!(signature.params.len(), 1);
        let Statistics { nvrtc_calls, cache_hits, shared_hits, .. } = session.statistics();
        (compiled.object, [nvrtc_calls, cache_hits, shared_hits])
    }

    fn unshared(&self, text: &str) -> Vec<&'static str> {
        let session = self.session();
        let prepared = session.prepare(unit(&self.home.path().join("project"), text, "k", &[]));
        let compiled = session.compile(&prepared, "sm_89".parse().unwrap()).map_err(diagnostics);
        compiled.unwrap_or_else(|errors| panic!("{}", show(&errors)));
        session.unshared().into_keys().collect()
    }
}

#[test]
fn a_machine_uses_the_results_of_another() {
    let Some(toolkit) = toolkit("a_machine_uses_the_results_of_another") else { return };
    let shared = Arc::new(Memory::default());
    let (first, second) = (Machine::new(&toolkit, &shared), Machine::new(&toolkit, &shared));
    let (code, counts) = first.build(TEXT, "sm_89");
    assert_eq!((counts, shared.results.lock().unwrap().len()), ([2, 0, 0], 2));
    assert_eq!(second.build(TEXT, "sm_89"), (Arc::clone(&code), [0, 0, 2]));
    assert_eq!(second.build(TEXT, "sm_89"), (Arc::clone(&code), [0, 2, 0]), "the local cache has them");
    let fetching = Machine::new(&toolkit, &shared);
    let session = fetching.session();
    let prepared = session.prepare(unit(&fetching.home.path().join("project"), TEXT, "k", &[]));
    let target: Target = "sm_89".parse().unwrap();
    for _ in 0..2 {
        session.fetch(&of_code(&prepared, target));
        session.fetch(&of_signatures(&prepared, target));
    }
    assert_eq!(session.compile(&prepared, target).unwrap().object, code);
    let Statistics { nvrtc_calls, cache_hits, shared_hits, .. } = session.statistics();
    assert_eq!([nvrtc_calls, cache_hits, shared_hits], [0, 0, 2]);
    assert!(shared.rejected.lock().unwrap().is_empty());
}

#[test]
fn workers_compile_what_the_cache_lacks() {
    let Some(toolkit) = toolkit("workers_compile_what_the_cache_lacks") else { return };
    let farm = Arc::new(Memory::default());
    let (expected, _) = Machine::new(&toolkit, &farm).build(TEXT, "sm_89");
    let shared = Arc::new(Memory { workers: Some(Arc::clone(&farm)), ..Memory::default() });
    let machine = Machine::new(&toolkit, &shared);
    let session = machine.session();
    let prepared = session.prepare(unit(&machine.home.path().join("project"), TEXT, "k", &[]));
    let target: Target = "sm_89".parse().unwrap();
    assert!(session.can_execute());
    for compile in [of_code(&prepared, target), of_signatures(&prepared, target)] {
        assert_eq!(session.fetch(&compile), Copied::Missing);
        session.batches(vec![compile.clone()]).iter().for_each(|batch| session.execute(batch));
        assert_eq!(session.fetch(&compile), Copied::Present);
        assert!(session.batches(vec![compile]).is_empty());
    }
    assert_eq!(session.compile(&prepared, target).unwrap().object, expected);
    assert!(session.signature(&prepared, target).is_ok());
    let Statistics { nvrtc_calls, cache_hits, shared_hits, executed, .. } = session.statistics();
    assert_eq!([nvrtc_calls, cache_hits, shared_hits, executed], [0, 0, 0, 2]);
    for memory in [&farm, &shared] {
        memory.results.lock().unwrap().clear();
    }
    let (again, [calls, ..]) = Machine::new(&toolkit, &shared).build(TEXT, "sm_89");
    assert_eq!((again, calls), (expected, 2), "compiled here");
    let nothing = Arc::new(Memory::default());
    let alone = Machine { replacement: Replacement::Errors, ..Machine::new(&toolkit, &nothing) };
    let session = alone.session();
    let prepared = session.prepare(unit(&alone.home.path().join("project"), TEXT, "k", &[]));
    let errors = diagnostics(session.compile(&prepared, target).unwrap_err());
    assert_eq!(errors[0].message, "no server returned a result of `k` for `sm_89`");
    assert_eq!(session.statistics().nvrtc_calls, 0);
}

#[test]
fn kernels_of_a_text_share_an_action() {
    let Some(toolkit) = toolkit("kernels_of_a_text_share_an_action") else { return };
    let shared = Arc::new(Memory::default());
    let text = "__global__ void one(int* x) {}\n__global__ void two(char* x, int n) {}\n";
    let target: Target = "sm_89".parse().unwrap();
    let signatures = |kernels: &[&str]| {
        let machine = Machine::new(&toolkit, &shared);
        let session = machine.session();
        let root = machine.home.path().join("project");
        let units: Vec<PreparedUnit> =
            kernels.iter().map(|kernel| session.prepare(unit(&root, text, kernel, &[]))).collect();
        let units: Vec<&PreparedUnit> = units.iter().collect();
        let found = session.signatures(&units, target);
        let counts = found.iter().map(|it| it.as_ref().unwrap().params.len()).collect::<Vec<_>>();
        let Statistics { nvrtc_calls, shared_hits, .. } = session.statistics();
        (counts, nvrtc_calls, shared_hits)
    };
    assert_eq!(signatures(&["one", "two"]), (vec![1, 2], 1, 0));
    let of_both: Vec<Outputs> = shared.results.lock().unwrap().values().cloned().collect();
    assert_eq!(of_both.len(), 1);
    assert_eq!(signatures(&["one", "two"]), (vec![1, 2], 0, 2));
    assert_eq!(signatures(&["two"]), (vec![2], 1, 0));
    *shared.replacement.lock().unwrap() = of_both[0].clone();
    assert_eq!(signatures(&["two"]), (vec![2], 1, 0), "a result for other kernels");
    assert_eq!(shared.rejected.lock().unwrap().len(), 1);
}

#[test]
fn results_of_the_local_cache_are_pushed() {
    let Some(toolkit) = toolkit("results_of_the_local_cache_are_pushed") else { return };
    let nothing = Arc::new(Memory { is_read_only: true, ..Memory::default() });
    let mut first = Machine::new(&toolkit, &nothing);
    let (code, _) = first.build(TEXT, "sm_89");
    let shared = Arc::new(Memory::default());
    first.shared = Arc::clone(&shared);
    let session = first.session();
    let prepared = session.prepare(unit(&first.home.path().join("project"), TEXT, "k", &[]));
    let push = |target: &str| {
        let target = target.parse().unwrap();
        (session.push(&of_code(&prepared, target)), session.push(&of_signatures(&prepared, target)))
    };
    assert_eq!(push("sm_90"), (Copied::Missing, Copied::Missing));
    assert_eq!(push("sm_89"), (Copied::Complete, Copied::Complete));
    assert_eq!(Machine::new(&toolkit, &shared).build(TEXT, "sm_89"), (code, [0, 0, 2]));
    assert!(shared.rejected.lock().unwrap().is_empty());
}

#[test]
fn a_failed_batch_is_executed_one_by_one() {
    let Some(toolkit) = toolkit("a_failed_batch_is_executed_one_by_one") else { return };
    // It has results of single compiles only.
    let farm = Arc::new(Memory::default());
    Machine::new(&toolkit, &farm).build(TEXT, "sm_89");
    let shared = Arc::new(Memory { workers: Some(farm), ..Memory::default() });
    let machine = Machine::new(&toolkit, &shared);
    let session = machine.session();
    let prepared = session.prepare(unit(&machine.home.path().join("project"), TEXT, "k", &[]));
    let target: Target = "sm_89".parse().unwrap();
    let compiles = vec![of_code(&prepared, target), of_signatures(&prepared, target)];
    let batches = session.batches(compiles.clone());
    assert_eq!(batches.iter().map(Batch::count).collect::<Vec<_>>(), [2]);
    session.execute(&batches[0]);
    assert_eq!(session.statistics().executed, 2);
    assert!(compiles.iter().all(|compile| session.fetch(compile) == Copied::Present));
}

#[test]
fn long_compiles_are_not_batched() {
    let Some(toolkit) = toolkit("long_compiles_are_not_batched") else { return };
    let shared = Arc::new(Memory { workers: Some(Arc::default()), ..Memory::default() });
    let machine = Machine::new(&toolkit, &shared);
    let session = machine.session();
    let root = machine.home.path().join("project");
    let sizes = |count: usize, length: usize| {
        let text =
            |number| format!("__global__ void k(int* x) {{ x[0] = {number}; }} //{}", "-".repeat(length));
        let units: Vec<PreparedUnit> =
            (0..count).map(|number| session.prepare(unit(&root, &text(number), "k", &[]))).collect();
        let compiles = units.iter().map(|unit| of_code(unit, "sm_89".parse().unwrap())).collect();
        session.batches(compiles).iter().map(Batch::count).collect::<Vec<usize>>()
    };
    assert_eq!(sizes(150, 0), [67, 67, 16]);
    assert_eq!(sizes(4, 6_000_000), [2, 2]);
    assert_eq!(sizes(3, 10_000_000), [1, 1, 1]);
}

#[test]
fn other_inputs_are_other_actions() {
    let Some(toolkit) = toolkit("other_inputs_are_other_actions") else { return };
    let shared = Arc::new(Memory::default());
    Machine::new(&toolkit, &shared).build(TEXT, "sm_89");
    let is_shared = |change: &dyn Fn(&mut Machine), text: &str, target: &str| {
        let mut machine = Machine::new(&toolkit, &shared);
        change(&mut machine);
        let session = machine.session();
        let prepared = session.prepare(unit(&machine.home.path().join("project"), text, "k", &[]));
        session.fetch(&of_code(&prepared, target.parse().unwrap()));
        session.statistics().shared_hits > 0
    };
    assert!(is_shared(&|_| {}, TEXT, "sm_89"));
    assert!(is_shared(&|machine| machine.write("project/kernels/other.h", ""), TEXT, "sm_89"));
    assert!(!is_shared(&|_| {}, TEXT, "sm_90"));
    assert!(!is_shared(&|_| {}, &TEXT.replace('A', "2 * A"), "sm_89"));
    assert!(!is_shared(&|machine| machine.options.push("--use_fast_math".to_owned()), TEXT, "sm_89"));
    assert!(!is_shared(&|machine| machine.write("project/include/b.h", "#define B 3\n"), TEXT, "sm_89"));
    assert!(!is_shared(&|machine| machine.write("project/kernels/b.h", "#define B 2\n"), TEXT, "sm_89"));
}

#[test]
fn results_that_do_not_fit_are_compiled_here() {
    let Some(toolkit) = toolkit("results_that_do_not_fit_are_compiled_here") else { return };
    let shared = Arc::new(Memory::default());
    let (code, _) = Machine::new(&toolkit, &shared).build(TEXT, "sm_89");
    let others = Arc::new(Memory::default());
    Machine::new(&toolkit, &others).build(TEXT, "sm_90");
    let is_code = |outputs: &&Outputs| outputs.contains_key(&shared::path(0, CODE));
    let other =
        others.results.lock().unwrap().values().find(is_code).unwrap()[&shared::path(0, CODE)].clone();
    let result = |text: &str| (RESULT, text.as_bytes().to_vec());
    let wrong = [
        ((CODE, other.clone()), "an architecture"),
        ((CODE, b"no code".to_vec()), "no code"),
        ((CODE, other[..other.len() / 2].to_vec()), "half"),
        ((CODE, Vec::new()), "empty"),
        ((LOG, vec![0xff]), "log"),
        (result("{}"), "no result"),
        (result("no JSON"), "no JSON"),
        (result(r#"{"nvrtc":[13,0],"symbols":[],"included":null}"#), "no symbols"),
        (result(r#"{"nvrtc":[13,0],"symbols":["_Z5otherPi"],"included":null}"#), "another kernel"),
        (result(r#"{"nvrtc":[13,0],"symbols":["_Z1kPi"],"included":["include/c.h"]}"#), "another header"),
    ];
    for ((path, bytes), what) in wrong {
        shared.rejected.lock().unwrap().clear();
        *shared.replacement.lock().unwrap() = Outputs::from([(shared::path(0, path), bytes)]);
        let machine = Machine::new(&toolkit, &shared);
        let session = machine.session();
        let prepared = session.prepare(unit(&machine.home.path().join("project"), TEXT, "k", &[]));
        let compiled = session.compile(&prepared, "sm_89".parse().unwrap()).unwrap();
        assert_eq!((&compiled.object, session.statistics().nvrtc_calls), (&code, 1), "{what}");
        assert_eq!(shared.rejected.lock().unwrap().len(), 1, "{what}");
    }
}

#[test]
fn results_with_paths_of_the_machine_are_not_shared() {
    let Some(toolkit) = toolkit("results_with_paths_of_the_machine_are_not_shared") else { return };
    let shared = Arc::new(Memory::default());
    let mut machine = Machine::new(&toolkit, &shared);
    let kernel = |before: &str| format!("{before}__global__ void k(char* x) {{ x[0] = 1; }}\n");
    machine.write("project/include/file.h", "__device__ const char* name() { return __FILE__; }\n");
    let named = "#include <file.h>\n__global__ void k(char* x) { x[0] = name()[threadIdx.x]; }\n";
    assert_eq!(machine.unshared(named), [MACHINE_PATH]);
    machine.write("project/include/warns.h", "__device__ int unused() { int never = 0; return 1; }\n");
    assert_eq!(machine.unshared(&kernel("#include <warns.h>\n")), [MACHINE_PATH]);
    assert_eq!(machine.unshared(&kernel("#define H <file.h>\n#include H\n")), [OPEN_INCLUDES]);
    machine.write("beside.h", "");
    assert_eq!(machine.unshared(&kernel("#include \"../../beside.h\"\n")), [OUTSIDE]);
    assert!(shared.results.lock().unwrap().is_empty());
    assert_eq!(machine.unshared(&kernel("")), [""; 0]);
    assert_eq!(shared.results.lock().unwrap().len(), 1);
    machine.options.push("--generate-line-info".to_owned());
    assert_eq!(machine.unshared(&kernel("")), [LINE_INFORMATION]);
    assert_eq!(shared.results.lock().unwrap().len(), 1);
}

#[test]
fn names_of_folders_do_not_depend_on_the_machine() {
    let toolkit = [PathBuf::from("/opt/cuda/include"), PathBuf::from("/opt/cuda/include/cccl")];
    let of = |root: &str, include: &[&str]| {
        let include: Vec<PathBuf> = include.iter().map(PathBuf::from).chain(toolkit.clone()).collect();
        folders(Path::new(root), &include, 2)
    };
    let found = of("/a/p", &["/a/p/kernels", "/a/p", "/a/lib", "/srv/x", "/a/p/.cubinder"]);
    let named: Vec<&str> = found.iter().map(|folder| folder.name.as_str()).collect();
    let expected = ["kernels", ".", ".cubinder/include/2", ".cubinder/include/3", ".cubinder/include/4"];
    assert_eq!(named[..5], expected);
    assert_eq!(named[5..], [".cubinder/toolkit/0", ".cubinder/toolkit/1"]);
    let root = Path::new("/a/p");
    let names = |path: &str| names(root, &found, Path::new(path));
    assert_eq!(names("/a/p/kernels/x.h").unwrap(), ["kernels/x.h", "kernels/x.h"]);
    assert_eq!(names("/a/p/kernels/../y.h").unwrap(), ["y.h"]);
    assert_eq!(names("/srv/x/z.h").unwrap(), [".cubinder/include/3/z.h"]);
    assert_eq!(
        names("/opt/cuda/include/cccl/v").unwrap(),
        [".cubinder/toolkit/0/cccl/v", ".cubinder/toolkit/1/v"]
    );
    assert_eq!(names("/etc/passwd"), Err(OUTSIDE));
    for (path, name) in [("/a/p/kernels/x.h", "kernels/x.h"), ("/srv/x/z.h", ".cubinder/include/3/z.h")] {
        assert_eq!(local_path(&found, name), Path::new(path));
    }
}

/// A project with an NVRTC that is not needed.
struct Project {
    home: tempfile::TempDir,
    session: Session,
    include: Vec<PathBuf>,
}

impl Project {
    fn new(shared: Memory, include: &[&str], files: &[&str]) -> Project {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("project");
        let write = |path: PathBuf| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, path.strip_prefix(&root).unwrap_or(&path).to_str().unwrap()).unwrap();
        };
        for library in ["lib/libnvrtc.so.13", "lib/libnvrtc-builtins.so.13.0", "cuda/c.h"] {
            write(home.path().join(library));
        }
        for file in files {
            match file.strip_suffix('/') {
                Some(folder) => std::fs::create_dir_all(root.join(folder)).unwrap(),
                None => write(root.join(file)),
            }
        }
        let toolkit = Toolkit {
            nvrtc: home.path().join("lib/libnvrtc.so.13"),
            include: vec![home.path().join("cuda")],
            is_pinned: false,
            without_headers: None,
        };
        let own: Vec<PathBuf> = include.iter().map(|folder| root.join(folder)).collect();
        let settings = Settings { include: own.clone(), options: Vec::new() };
        let session = Session::new(toolkit.clone(), settings, Cache::disabled()).unwrap();
        let session = session.sharing(Arc::new(shared), &root, Replacement::Compiles);
        let include = [vec![root.join("kernels")], own, toolkit.include].concat();
        Project { home, session, include }
    }

    fn root(&self) -> PathBuf {
        self.home.path().join("project")
    }

    fn prepare(&self, text: &str) -> PreparedUnit {
        self.session.prepare(unit(&self.root(), text, "k", &[]))
    }

    fn action(&self, name: &str) -> Result<(CompileAction, Vec<Folder>), &'static str> {
        let prepared = self.prepare(&format!("#include \"{name}\"\n"));
        self.session.action(&self.root(), &[&prepared], Purpose::Code(target()), 0)
    }
}

fn target() -> Target {
    "sm_89".parse().unwrap()
}

fn first_text(folders: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<String> {
    folders.into_iter().find_map(|folder| std::fs::read_to_string(folder.join(name)).ok())
}

#[test]
fn workers_include_the_same_files() {
    let layouts: [(&[&str], &[&str], &str, &str); 5] = [
        (
            &["include/sub"],
            &["kernels/", "include/sub/", "common/x.h", "include/common/x.h"],
            "../common/x.h",
            "common/x.h",
        ),
        (&[], &["kernels/k.cu", "include/a.h"], "../include/a.h", "include/a.h"),
        (&[], &["kernels/sub/", "kernels/a.h"], "sub/../a.h", "kernels/a.h"),
        (&["include"], &["include/a.h", "a.h"], "../a.h", "a.h"),
        (&["include"], &["kernels/", "include/a.h"], "a.h", "include/a.h"),
    ];
    for (include, files, name, expected) in layouts {
        let project = Project::new(Memory::default(), include, files);
        let (action, _) = project.action(name).unwrap();
        let worker = tempfile::tempdir().unwrap();
        for folder in &action.folders {
            std::fs::create_dir_all(worker.path().join(folder)).unwrap();
        }
        for (path, input) in &action.inputs {
            let path = worker.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            match input {
                Input::Bytes(bytes) => std::fs::write(path, bytes).unwrap(),
                Input::File(from, _) => drop(std::fs::copy(from, path).unwrap()),
                Input::Program(_) | Input::Folder(_) => {}
            }
        }
        let Input::Bytes(request) = &action.inputs[".cubinder/0/request.json"] else { panic!() };
        let request: Request = serde_json::from_slice(request).unwrap();
        let folders = request.include.iter().map(|folder| worker.path().join(folder));
        assert_eq!(first_text(project.include.clone(), name).as_deref(), Some(expected), "{name}");
        assert_eq!(first_text(folders, name).as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn headers_that_workers_would_not_find_are_not_shared() {
    let error = |project: &Project, name: &str| project.action(name).map(|_| ()).unwrap_err();
    let project =
        Project::new(Memory::default(), &["../srv", "../srv/x"], &["kernels/", "../srv/x/", "../srv/a.h"]);
    assert_eq!(error(&project, "../../srv/a.h"), OUTSIDE, "outside of the project on a worker");
    let project = Project::new(Memory::default(), &[], &["kernels/a.h", "other/sub/", "other/a.h"]);
    std::os::unix::fs::symlink("../other/sub", project.root().join("kernels/sub")).unwrap();
    assert_eq!(error(&project, "sub/../a.h"), OUTSIDE, "the link leads to `other/a.h`");
    let name = project.root().join("other/a.h");
    assert_eq!(error(&project, name.to_str().unwrap()), OUTSIDE);
}

#[test]
fn results_of_other_files_are_rejected() {
    let files = ["kernels/", "include/sub/", "common/x.h", "include/common/x.h"];
    let project = Project::new(Memory::default(), &["include/sub"], &files);
    let prepared = project.prepare("#include \"../common/x.h\"\n");
    let (_, folders) = project.action("../common/x.h").unwrap();
    let accept = |file: &str| {
        let included = Some(vec![file.to_owned()]);
        project.session.accept(&prepared, &Digest::compute(b"key"), &1_u32, included.as_deref(), &folders)
    };
    assert_eq!(accept("kernels/../common/x.h"), Ok(()));
    let error = accept("include/sub/../common/x.h").unwrap_err();
    assert!(error.starts_with("a compile here would not read `/"), "{error}");
}

#[test]
fn results_with_other_paths_than_here_are_not_used() {
    let include = ["/p/kernels", "/p/include", "/p"].map(PathBuf::from);
    let there = folders(Path::new("/p"), &include, 0);
    let here: Vec<Folder> =
        there.iter().map(|folder| Folder { local: PathBuf::from(&folder.name), ..folder.clone() }).collect();
    let check = |folders: &[Folder], target: &str, text: &str, log: &str| {
        let target: Target = target.parse().unwrap();
        let code = if target.kind == TargetKind::Cubin { text.to_owned() } else { in_ptx(text) };
        let included = ["include/a.h".to_owned(), "beside.h".to_owned()];
        check_paths("kernels/k.cu", folders, target, code.as_bytes(), log, Some(&included))
    };
    for target in ["sm_89", "compute_89"] {
        assert_eq!(check(&there, target, "a kernels/k.cu b", "kernels/k.cu(1): warning"), Ok(()));
        for text in ["a include/a.h", "./include/other.h", "a beside.h b", "kernels/k.h"] {
            assert_eq!(check(&there, target, text, ""), Err(Unusable::OtherPaths), "{text}");
            assert_eq!(check(&there, target, "", text), Err(Unusable::OtherPaths), "{text}");
            assert_eq!(check(&here, target, text, text), Ok(()), "{text}");
        }
    }
    let toolkit = folders(Path::new("/p"), &[PathBuf::from("/cuda")], 1);
    assert_eq!(check(&toolkit, "sm_89", ".cubinder/toolkit/0/x.h", ""), Err(Unusable::OtherPaths));
}

#[test]
fn a_cache_that_stores_nothing_needs_no_action() {
    for is_read_only in [true, false] {
        let project = Project::new(Memory { is_read_only, ..Memory::default() }, &[], &["kernels/a.h"]);
        let prepared = project.prepare("#include \"a.h\"\n");
        let mut is_built = false;
        project.session.share("code", &[&prepared], Purpose::Code(target()), |_| {
            is_built = true;
            Err(UNREADABLE)
        });
        assert_eq!(is_built, !is_read_only);
    }
}

#[test]
fn threads_that_wait_for_workers_do_not_all_compile_here() {
    let workers = Some(Arc::new(Memory::default()));
    let project = Project::new(Memory { workers, ..Memory::default() }, &[], &[]);
    let count = std::thread::available_parallelism().unwrap().get();
    let mut compiles: Vec<_> = (0..count).map(|_| project.session.local_compile().unwrap()).collect();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _compile = project.session.local_compile();
            sender.send(()).unwrap();
        });
        let wait = std::time::Duration::from_millis(100);
        assert!(receiver.recv_timeout(wait).is_err());
        compiles.pop();
        receiver.recv().unwrap();
    });
    let project = Project::new(Memory::default(), &[], &[]);
    assert!(project.session.local_compile().is_none(), "rayon's threads are the limit");
}
