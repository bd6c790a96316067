mod builds;
mod include_graphs;
mod preprocessor;

use std::ffi::OsStr;

use super::*;
use crate::test_support::{show, toolkit, unit};

const KERNEL: &str = "__global__ void k(int* x) { x[0] = 1; }\n";

#[test]
fn an_entry_whose_code_cannot_be_read_is_compiled_again_and_replaced() {
    let Some(toolkit) = toolkit("an_entry_whose_code_cannot_be_read_is_compiled_again_and_replaced") else {
        return;
    };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let target: Target = "sm_89".parse().unwrap();
    let session = || Session::new(toolkit.clone(), Settings::default(), Cache::open(cache.path())).unwrap();
    let prepared = session().prepare(unit(folder.path(), KERNEL, "k", &[]));
    let build = || {
        let session = session();
        let compiled = session
            .compile(&prepared, target)
            .map_err(diagnostics)
            .unwrap_or_else(|errors| panic!("{}", show(&errors)));
        let Statistics { nvrtc_calls, cache_hits, .. } = session.statistics();
        (compiled, nvrtc_calls, cache_hits)
    };
    let (right, calls, hits) = build();
    assert_eq!((right.cached, calls, hits), (false, 1, 0));

    let entry = |bytes: &[u8]| {
        let (lowered_names, cubin) = (vec![right.symbol.clone()], bytes.to_vec());
        let output = nvrtc_sys::Output { log: String::new(), lowered_names, cubin, ptx: Vec::new() };
        CodeEntry::new(output, right.nvrtc, target).unwrap()
    };
    let whole = right.object.bytes.unpack(right.object.digest).unwrap().to_vec();
    let as_no_code_is = CodeEntry { unpacked: Some(1), stored: Vec::new(), ..entry(&whole) };
    let of_other_code = CodeEntry { digest: Digest::compute(b"other"), ..entry(&whole) };
    for wrong in [entry(b"no code"), entry(&whole[..whole.len() / 2]), as_no_code_is, of_other_code] {
        let session = session();
        let key = session.key("code", &[&prepared], Purpose::Code(target));
        session.store(&prepared, &key, &wrong, &ReadFiles::NotAsked);
        let Err(reason) = wrong.code(target, 1) else { panic!("readable") };
        let (again, calls, hits) = build();
        assert_eq!((again.cached, calls, hits), (false, 1, 0), "{reason}");
        assert_eq!(again.object, right.object);
        let (kept, calls, hits) = build();
        assert_eq!((kept.cached, calls, hits), (true, 0, 1), "{reason}");
        assert_eq!(kept.object, right.object);
    }
}

/// NVRTC accepts raw bytes, and the key covers such headers.
#[test]
fn the_name_of_an_include_folder_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt as _;
    let Some(toolkit) = toolkit("the_name_of_an_include_folder_need_not_be_utf_8") else { return };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let include = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&include).unwrap();
    let target: Target = "sm_89".parse().unwrap();
    let build = |number: u32| {
        std::fs::write(include.join("a.h"), format!("#define NUMBER {number}\n")).unwrap();
        let settings = Settings { include: vec![include.clone()], options: Vec::new() };
        let session = Session::new(toolkit.clone(), settings, Cache::open(cache.path())).unwrap();
        let text = "#include \"a.h\"\n__global__ void k(int* x) { x[0] = NUMBER; }\n";
        let prepared = session.prepare(unit(folder.path(), text, "k", &[]));
        let compiled = session.compile(&prepared, target);
        compiled.map_err(diagnostics).unwrap_or_else(|errors| panic!("{}", show(&errors)))
    };
    let first = build(1);
    assert!(!first.cached);
    assert!(build(1).cached);
    let second = build(2);
    assert!(!second.cached && second.object != first.object);
}

#[test]
fn a_variable_that_nvrtc_reads_bypasses_the_cache() {
    const CACHE: &str = "CUBINDER_TEST_CACHE_OF_A_CHILD";
    let test = "a_variable_that_nvrtc_reads_bypasses_the_cache";
    let Some(toolkit) = toolkit(test) else { return };
    if let Some(cache) = std::env::var_os(CACHE) {
        let cache = Cache::open(Path::new(&cache));
        let session = Session::new(toolkit, Settings::default(), cache).unwrap();
        let prepared = session.prepare(unit(Path::new("."), KERNEL, "k", &[]));
        let target = "sm_89".parse().unwrap();
        session.compile(&prepared, target).unwrap();
        session.signature(&prepared, target).unwrap();
        let Statistics { nvrtc_calls, cache_hits, .. } = session.statistics();
        println!("{nvrtc_calls} calls, {cache_hits} hits");
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let steps = [
        (Some("-w"), "2 calls, 0 hits\n", "the cache is empty"),
        (None, "2 calls, 0 hits\n", "the first run stored nothing"),
        (Some("-w"), "2 calls, 0 hits\n", "the entries were compiled without the variable"),
        (None, "0 calls, 2 hits\n", "the entries of the second run are still there"),
    ];
    for (value, expected, why) in steps {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &format!("nvrtc::session::tests::{test}"), "--nocapture"]);
        command.env(CACHE, cache.path()).env_remove("NVRTC_APPEND_FLAGS");
        command.envs(value.map(|value| ("NVRTC_APPEND_FLAGS", value)));
        let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(printed.contains(expected), "{why}: {printed}");
    }
}

#[test]
fn whatever_decides_the_bytes_is_in_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let toolkit = |name: &str, library: &str, built_in_headers: &str| {
        let lib = folder.path().join(name);
        std::fs::create_dir(&lib).unwrap();
        std::fs::write(lib.join("libnvrtc.so.13"), library).unwrap();
        std::fs::write(lib.join("libnvrtc-builtins.so.13.0"), built_in_headers).unwrap();
        let overrides = crate::toolkit::Overrides { nvrtc: Some(lib), ..Default::default() };
        Toolkit::locate(&overrides).unwrap()
    };
    let key = |toolkit: &Toolkit, text: &str, kernel: &str, options: &[&str], target: &str| {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let settings = Settings { include: Vec::new(), options };
        let session = Session::new(toolkit.clone(), settings, Cache::disabled()).unwrap();
        let prepared = session.prepare(unit(folder.path(), text, kernel, &[]));
        session.key("code", &[&prepared], Purpose::Code(target.parse().unwrap()))
    };
    let first = toolkit("first", "one", "one");
    let expected = key(&first, KERNEL, "k", &[], "sm_89");
    assert_eq!(key(&toolkit("copy", "one", "one"), KERNEL, "k", &[], "sm_89"), expected);
    let changed_text = KERNEL.replace('1', "2");
    let others = [
        ("another NVRTC", key(&toolkit("other", "two", "one"), KERNEL, "k", &[], "sm_89")),
        ("other built-in headers", key(&toolkit("headers", "one", "two"), KERNEL, "k", &[], "sm_89")),
        ("another text", key(&first, &changed_text, "k", &[], "sm_89")),
        ("another kernel", key(&first, KERNEL, "other", &[], "sm_89")),
        ("another option", key(&first, KERNEL, "k", &["--use_fast_math"], "sm_89")),
        ("another architecture", key(&first, KERNEL, "k", &[], "sm_90")),
        ("PTX", key(&first, KERNEL, "k", &[], "compute_89")),
    ];
    for (what, other) in others {
        assert_ne!(other, expected, "{what}");
    }
}

/// The current folder is per process, hence child processes.
#[test]
fn keys_hold_the_current_folder_for_line_information() {
    const FOLDER: &str = "CUBINDER_TEST_FOLDER_OF_A_CHILD";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let target: Target = "sm_89".parse().unwrap();
        for (what, options, purpose) in [
            ("plain", &[][..], Purpose::Code(target)),
            ("lines", &["-lineinfo"], Purpose::Code(target)),
            ("signature", &["-lineinfo"], Purpose::Signature(target.arch)),
        ] {
            let options = options.iter().map(|option: &&str| (*option).to_owned()).collect();
            let settings = Settings { include: Vec::new(), options };
            let session = Session::new(toolkit_in(folder), settings, Cache::disabled()).unwrap();
            let key = session.key("code", &[&session.prepare(unit(folder, KERNEL, "k", &[]))], purpose);
            println!("\n{what}: {key:?}");
        }
        return;
    }
    let (folder, _toolkit) = without_nvrtc();
    let keys = |current: &str| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "nvrtc::session::tests::keys_hold_the_current_folder_for_line_information"]);
        child.arg("--nocapture").env(FOLDER, folder.path()).current_dir(folder.path().join(current));
        let printed = String::from_utf8(child.output().unwrap().stdout).unwrap();
        ["plain", "lines", "signature"].map(|what| {
            let mut keys = printed.lines().filter_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
            keys.next().unwrap_or_else(|| panic!("{printed}")).to_owned()
        })
    };
    let ([plain, lines, signature], others) = (keys("own"), keys("cuda"));
    assert_eq!((&plain, &signature), (&others[0], &others[2]));
    assert_ne!(lines, others[1]);
}

fn without_nvrtc() -> (tempfile::TempDir, Toolkit) {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib/libnvrtc.so.13", "one");
    write("lib/libnvrtc-builtins.so.13.0", "one");
    write("own/a.h", "");
    write("own/b.h", "");
    write("cuda/computed.h", "#include CHOSEN\n");
    write("cuda/other.h", "");
    write("cuda/beside.h", "#include \"b.h\"\n");
    write("cuda/b.h", "");
    let toolkit = toolkit_in(folder.path());
    (folder, toolkit)
}

fn toolkit_in(folder: &Path) -> Toolkit {
    let (nvrtc, include) = (folder.join("lib/libnvrtc.so.13"), vec![folder.join("cuda")]);
    Toolkit { nvrtc, include, is_pinned: false, without_headers: None }
}

#[test]
fn a_result_is_stored_only_if_its_key_has_every_file_that_was_read() {
    let (folder, toolkit) = without_nvrtc();
    let settings = Settings { include: vec![folder.path().join("own")], options: Vec::new() };
    let is_stored = |text: &str, read: ReadFiles| {
        let cache = tempfile::tempdir().unwrap();
        let session = Session::new(toolkit.clone(), settings.clone(), Cache::open(cache.path())).unwrap();
        let prepared = session.prepare(unit(folder.path(), text, "k", &[]));
        let key = Digest::compute(b"key");
        session.store(&prepared, &key, &1_u32, &read);
        session.cache.get(&key).is_some()
    };
    let after_reading = |text: &str, names: &[&str]| {
        let read = names.iter().map(|name| folder.path().join(name)).collect();
        is_stored(text, ReadFiles::Traced(read))
    };
    let (plain, computed) = ("#include \"a.h\"\n", "#include \"a.h\"\n#include \"computed.h\"\n");
    assert!(is_stored(plain, ReadFiles::NotAsked));
    assert!(!is_stored(plain, ReadFiles::Unknown));
    assert!(after_reading(plain, &["own/a.h"]));
    assert!(!after_reading(plain, &["own/a.h", "own/b.h"]));
    assert!(!after_reading(plain, &["cuda/other.h"]));
    // A computed include makes the key cover the whole toolkit.
    assert!(after_reading(computed, &["own/a.h", "cuda/computed.h", "cuda/other.h"]));
    assert!(!after_reading(computed, &["own/b.h"]));
    assert!(!is_stored("#include NAME\n", ReadFiles::NotAsked));
    assert!(after_reading(plain, &["own/../own/a.h"]));
    let beside = format!("{computed}#include \"beside.h\"\n");
    assert!(after_reading(&beside, &["own/a.h", "cuda/computed.h", "cuda/beside.h", "cuda/b.h"]));
    assert!(!after_reading(computed, &["cuda/b.h"]));
}

#[test]
fn options_that_may_read_a_file_bypass_the_cache() {
    let (folder, toolkit) = without_nvrtc();
    let is_cached = |option: &str| {
        let settings =
            Settings { include: vec![folder.path().join("own")], options: vec![option.to_owned()] };
        let session = Session::new(toolkit.clone(), settings, Cache::disabled()).unwrap();
        session.prepare(unit(folder.path(), KERNEL, "k", &[])).dependencies.complete
    };
    assert!(is_cached("-w"));
    assert!(!is_cached("--new-option"));
}

#[test]
fn a_session_knows_what_a_unit_includes() {
    let (folder, toolkit) = without_nvrtc();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("own/a.h"), "int n = manifest::N;").unwrap();
    let settings = Settings { include: vec![at("own")], options: vec!["-w".to_owned()] };
    let session = Session::new(toolkit, settings.clone(), Cache::disabled()).unwrap();
    let prepare = |text: &str| session.prepare(unit(folder.path(), text, "k", &[]));
    let plain = prepare("#include \"a.h\"\n#include <other.h>\nint m = manifest::M;\n");
    assert_eq!(*plain.settings, settings);
    assert!(!plain.has_computed_includes());
    let names = session.names_taken(&plain).unwrap().into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(names, "M N");
    assert_eq!(session.included_files(&plain), Some(vec![at("own/a.h").as_path()]));
    let digest = Digest::compute(b"int n = manifest::N;");
    assert_eq!(session.found_files(&plain).collect::<Vec<_>>(), [(at("own/a.h").as_path(), digest)]);
    assert_eq!(
        session.found_headers(&plain).collect::<Vec<_>>(),
        [(Path::new("other.h"), Digest::compute(b""))]
    );
    let computed = prepare("#include NAME\n#include \"a.h\"\n");
    assert!(computed.has_computed_includes());
    assert_eq!((session.included_files(&computed), session.names_taken(&computed)), (None, None));
    assert_eq!(session.found_files(&computed).map(|(file, _)| file).collect::<Vec<_>>(), [at("own/a.h")]);
    assert_eq!(session.release(), Ok((13, 0)));
}

#[test]
fn a_file_that_changes_while_something_is_compiled_is_an_error() {
    let (folder, toolkit) = without_nvrtc();
    let settings = Settings { include: vec![folder.path().join("own")], options: Vec::new() };
    let session = Session::new(toolkit, settings, Cache::disabled()).unwrap();
    let _ = session.prepare(unit(folder.path(), "#include \"a.h\"\n", "k", &[]));
    std::fs::write(folder.path().join("own/a.h"), "changed").unwrap();
    assert_eq!(session.check_unchanged(), Ok(()), "nothing was compiled");
    session.count(|statistics| statistics.nvrtc_calls = 1);
    let error = session.check_unchanged().unwrap_err();
    assert!(error.message.contains("own/a.h` changed while kernels were compiled"), "{}", error.message);
}

#[test]
fn the_warning_of_the_cache_is_that_of_the_session() {
    let (folder, toolkit) = without_nvrtc();
    let cache = Cache::open(&folder.path().join("own/a.h"));
    let session = Session::new(toolkit, Settings::default(), cache).unwrap();
    assert_eq!(session.take_cache_warning(), None);
    let prepared = session.prepare(unit(folder.path(), KERNEL, "k", &[]));
    session.store(&prepared, &Digest::compute(b"key"), &1_u32, &ReadFiles::NotAsked);
    assert!(session.take_cache_warning().is_some());
}

#[test]
fn processes_that_have_nothing_to_do_end_when_the_session_rests() {
    let (_folder, toolkit) = without_nvrtc();
    let session = Session::new(toolkit, Settings::default(), Cache::disabled()).unwrap();
    let session = session.in_processes_of(Some(PathBuf::from("/bin/cat")));
    let workers = session.workers.as_ref().unwrap();
    workers.start();
    assert_eq!(workers.waiting(), 1);
    session.stop_idle();
    assert_eq!(workers.waiting(), 0);
}
