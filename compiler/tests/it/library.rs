//! Bundles in a shared library, mapped by the dynamic linker: `library/probe.rs` with the runtime's `slot.rs` and
//! `descriptor.rs`, loaded by `library/load.py`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use cubinder_library::{Attached, LibraryError, Mode, Problem, detach, inject, read, read_bytes};
use cubinder_source::diagnostic::Diagnostic;
use proptest::prelude::*;
use tempfile::TempDir;

fn probe() -> &'static Path {
    static PROBE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let build = || {
        let folder = tempfile::tempdir().unwrap();
        let library = build_probe(folder.path(), "libprobe.so", &[]).unwrap();
        (folder, library)
    };
    &PROBE.get_or_init(build).1
}

fn build_probe(folder: &Path, name: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/library/probe.rs");
    let library = folder.join(name);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition=2024", "--crate-type=cdylib", "--crate-name=probe", "-Cstrip=symbols", "-O"])
        .args(arguments)
        .arg("-o")
        .args([&library, &source])
        .output()
        .unwrap();
    if output.status.success() { Ok(library) } else { Err(text(&output.stderr)) }
}

fn load(steps: &[&str]) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/library/load.py");
    let output = Command::new("python3").arg(script).args(steps).output().unwrap();
    assert!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn bundle(length: usize, seed: u32) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 13) as u8).collect()
}

fn told(mode: u32, bundle: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bundle).unwrap();
    let program = "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())";
    let output = Command::new("python3").args(["-c", program]).arg(file.path()).output().unwrap();
    format!("{mode} {} {}", bundle.len(), text(&output.stdout).trim())
}

fn tool(name: &str, arguments: &[&str], file: &Path) -> bool {
    match Command::new(name).args(arguments).arg(file).output() {
        Ok(Output { status, stderr, .. }) => {
            assert!(status.success(), "{name}: {}", text(&stderr));
            true
        }
        Err(_) => {
            eprintln!("SKIPPED: `{name}` is not installed");
            false
        }
    }
}

struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Scene {
        Scene { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn inject(&self, name: &str, bundle: &[u8], mode: Mode) -> String {
        inject(probe(), bundle, mode, &self.path(name)).unwrap();
        self.name(name)
    }
}

fn bytes_at(path: &Path, found: &Attached) -> Vec<u8> {
    let file = fs::read(path).unwrap();
    file[found.range.start as usize..found.range.end as usize].to_vec()
}

#[test]
fn a_library_without_a_bundle_finds_none() {
    assert_eq!(read(probe()).unwrap(), None);
    assert_eq!(load(&["load", "a", probe().to_str().unwrap(), "tell", "a"]), [told(0, &[])]);
}

#[test]
fn a_library_finds_its_bundle() {
    let scene = Scene::new();
    for (length, mode) in [(1, Mode::Ops), (4096, Mode::OpsForLibrary), (3 << 20, Mode::CodeLibrary)] {
        let bundle = bundle(length, 1);
        let library = scene.inject("lib.so", &bundle, mode);
        let found = read(Path::new(&library)).unwrap().unwrap();
        assert_eq!((found.mode, bytes_at(Path::new(&library), &found)), (mode, bundle.clone()));
        assert_eq!(read_bytes(Path::new("x"), &fs::read(&library).unwrap()).unwrap(), Some(found));
        assert_eq!(load(&["load", "a", &library, "tell", "a"]), [told(mode.code(), &bundle)]);
    }
}

#[test]
fn the_same_inputs_give_the_same_bytes_and_permissions() {
    let scene = Scene::new();
    let base = scene.path("base.so");
    fs::copy(probe(), &base).unwrap();
    for bits in [0o755, 0o444, 0o640] {
        fs::set_permissions(&base, fs::Permissions::from_mode(bits)).unwrap();
        inject(&base, &bundle(5000, 1), Mode::Ops, &scene.path("a.so")).unwrap();
        inject(&base, &bundle(5000, 1), Mode::Ops, &scene.path("b.so")).unwrap();
        assert_eq!(fs::read(scene.path("a.so")).unwrap(), fs::read(scene.path("b.so")).unwrap());
        assert_eq!(fs::metadata(scene.path("a.so")).unwrap().permissions().mode() & 0o777, bits);
    }
    let left: Vec<_> = fs::read_dir(scene.folder.path()).unwrap().collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn a_bundle_goes_out_without_a_trace() {
    let scene = Scene::new();
    for length in [1, 4095, 4096, 70_000] {
        let library = scene.inject("lib.so", &bundle(length, 1), Mode::Ops);
        detach(Path::new(&library), &scene.path("undone.so")).unwrap();
        assert_eq!(fs::read(scene.path("undone.so")).unwrap(), fs::read(probe()).unwrap());
    }
    let error = detach(probe(), &scene.path("undone.so")).unwrap_err();
    assert!(matches!(error.problem, Problem::NoBundle), "{error}");
}

#[test]
fn replacing_a_bundle_gives_what_a_fresh_library_gets() {
    let scene = Scene::new();
    for (first, second) in [(10, 90_000), (90_000, 10), (4096, 4096)] {
        let library = scene.inject("lib.so", &bundle(first, 1), Mode::Ops);
        inject(Path::new(&library), &bundle(second, 2), Mode::CodeLibrary, Path::new(&library)).unwrap();
        let fresh = scene.inject("fresh.so", &bundle(second, 2), Mode::CodeLibrary);
        assert_eq!(fs::read(library).unwrap(), fs::read(fresh).unwrap());
    }
}

#[test]
fn a_loaded_library_survives_its_replacement_and_its_deletion() {
    let scene = Scene::new();
    let (old, new) = (bundle(200_000, 1), bundle(300_000, 2));
    let (a, b) = (scene.inject("a.so", &old, Mode::Ops), scene.inject("b.so", &new, Mode::Ops));
    let told = load(&["load", "a", &a, "move", &b, &a, "tell", "a", "delete", &a, "tell", "a"]);
    assert_eq!(told, [self::told(1, &old), self::told(1, &old)]);
}

#[test]
fn copies_in_one_process_each_find_their_own() {
    let scene = Scene::new();
    let (one, two) = (bundle(100_000, 1), bundle(50_000, 2));
    let (a, b) = (scene.inject("a.so", &one, Mode::Ops), scene.inject("b.so", &two, Mode::CodeLibrary));
    let generic = probe().to_str().unwrap();
    let steps = ["load", "a", &a, "load", "b", &b, "load", "c", generic, "memfd", "d", &b];
    let tell = ["tell", "a", "tell", "b", "tell", "c", "tell", "d", "unload", "a", "tell", "b"];
    let told_b = told(3, &two);
    assert_eq!(
        load(&[steps.as_slice(), tell.as_slice()].concat()),
        [told(1, &one), told_b.clone(), told(0, &[]), told_b.clone(), told_b]
    );
}

#[test]
fn unloading_leaves_no_mapping() {
    let scene = Scene::new();
    let library = scene.inject("libcycle.so", &bundle(1 << 20, 1), Mode::Ops);
    assert_eq!(load(&["cycle", "50", &library]), ["0 mappings left"]);
}

#[test]
fn a_bundle_survives_tools() {
    let tools: &[(&str, &[&str])] = &[
        ("strip", &[]),
        ("eu-strip", &[]),
        ("llvm-strip", &[]),
        ("objcopy", &["--strip-all"]),
        ("patchelf", &["--set-rpath", "/a/rather/long/path/that/does/not/fit/into/the/old/table"]),
        ("patchelf", &["--set-soname", "libanother.so"]),
    ];
    for (name, arguments) in tools {
        let scene = Scene::new();
        let (old, new) = (bundle(70_000, 1), bundle(90_000, 2));
        let library = scene.inject("lib.so", &old, Mode::Ops);
        let path = Path::new(&library);
        if !tool(name, arguments, path) {
            continue;
        }
        let found = read(path).unwrap().unwrap();
        assert_eq!((found.mode, bytes_at(path, &found)), (Mode::Ops, old.clone()), "{name}");
        assert_eq!(load(&["load", "a", &library, "tell", "a"]), [told(1, &old)], "{name}");

        let undone = detach(path, &scene.path("undone.so"));
        inject(path, &new, Mode::OpsForLibrary, path).unwrap();
        assert_eq!(load(&["load", "a", &library, "tell", "a"]), [told(2, &new)], "{name}");
        if let Err(error) = undone {
            assert!(matches!(error.problem, Problem::Changed(_)), "{name}: {error}");
            let error = detach(path, &scene.path("undone.so")).unwrap_err();
            assert!(matches!(error.problem, Problem::Changed(_)), "{name}: {error}");
            inject(path, &old, Mode::Ops, path).unwrap();
            assert!(tool(name, arguments, path));
            assert_eq!(load(&["load", "a", &library, "tell", "a"]), [told(1, &old)], "{name}, twice");
        }
    }
}

#[test]
fn rewritten_libraries_take_a_bundle() {
    let tools: &[(&str, &[&str])] = &[
        ("strip", &[]),
        ("llvm-objcopy", &["--strip-sections"]),
        ("patchelf", &["--set-rpath", "/a/rather/long/path/that/does/not/fit/into/the/old/table"]),
    ];
    for (name, arguments) in tools {
        let scene = Scene::new();
        let base = scene.path("base.so");
        fs::copy(probe(), &base).unwrap();
        if !tool(name, arguments, &base) {
            continue;
        }
        let (library, bundle) = (scene.name("lib.so"), bundle(70_000, 1));
        inject(&base, &bundle, Mode::Ops, Path::new(&library)).unwrap();
        assert_eq!(load(&["load", "a", &library, "tell", "a"]), [told(1, &bundle)], "{name}");
        detach(Path::new(&library), &scene.path("undone.so")).unwrap();
        assert_eq!(fs::read(scene.path("undone.so")).unwrap(), fs::read(base).unwrap(), "{name}");
    }
}

fn message(result: Result<(), LibraryError>) -> String {
    let said = result.unwrap_err().problem.to_string();
    let words = said.split(' ').map(|word| match word.len() {
        3.. if word.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') => "#",
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn mistakes_are_named_and_leave_nothing_behind() {
    let scene = Scene::new();
    let out = scene.path("out.so");
    let with = |bytes: &[u8]| {
        let base = scene.path("base.so");
        fs::write(&base, bytes).unwrap();
        let said = message(inject(&base, b"bundle", Mode::Ops, &out));
        assert!(!out.exists());
        said
    };
    let file = fs::read(probe()).unwrap();
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        with(&file)
    };
    insta::assert_snapshot!(
        [
            with(b""),
            with(&[7; 100]),
            patched(4, &[1]),
            patched(16, &[2]),
            patched(54, &[57]),
            patched(32, &[0xff; 8]),
            with(&file[..file.len() - 1]),
            message(inject(probe(), b"", Mode::Ops, &out)),
            message(inject(&scene.path("absent.so"), b"x", Mode::Ops, &out)),
            message(inject(probe(), b"x", Mode::Ops, &scene.path("absent/out.so"))),
            message(inject(scene.folder.path(), b"x", Mode::Ops, &out)),
        ]
        .join("\n"),
        @r#"
        unsupported shared library: 0 bytes are too short for ELF
        unsupported shared library: it is not an ELF file
        unsupported shared library: ELF class 1, byte order 1, version 1; expected 64 bit (2), little endian (1), 1
        unsupported shared library: ELF type 2, expected a shared object (3)
        damaged ELF file: header and program headers of 64 and 57 bytes, expected 64 and 56
        damaged ELF file: the table of program headers should be # bytes from byte # but the file has # bytes
        damaged ELF file: the table of section headers should be # bytes from byte # but the file has # bytes
        the bundle is empty
        cannot open it: No such file or directory (os error 2)
        cannot open its folder: No such file or directory (os error 2)
        unsupported shared library: it is a folder
        "#
    );
    assert!(!out.exists());
}

#[test]
fn merged_notes_and_foreign_libraries_are_refused() {
    let scene = Scene::new();
    let file = fs::read(probe()).unwrap();
    let note = file.windows(16).position(|window| window == cubinder_model::slot::NOTE).unwrap();
    let slot = file.windows(16).position(|window| window == cubinder_model::slot::MAGIC).unwrap();
    // Four more bytes, as when a linker merges notes.
    let header = file.windows(8).position(|window| window == (note as u64).to_le_bytes()).unwrap() - 8;
    let said = |at: usize, bytes: &[u8]| {
        let mut file = file.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        let base = scene.path("base.so");
        fs::write(&base, &file).unwrap();
        let error = inject(&base, b"bundle", Mode::Ops, &scene.path("out.so")).unwrap_err();
        let problem = error.problem.to_string();
        format!("{problem}\n  help: {}", Diagnostic::from(error).help.unwrap())
    };
    insta::assert_snapshot!(
        [
            said(header + 32, &20_u64.to_le_bytes()),
            said(note + 12, b"XYZ"),
            said(slot, b"?").replace(&format!("byte {slot}"), "byte [slot]"),
            said(slot + 16, &[2]).replace(&format!("byte {slot}"), "byte [slot]"),
            said(slot + 30, &[2]).replace(&format!("byte {slot}"), "byte [slot]"),
        ]
        .join("\n"),
        @r#"
        the linker merged the note `.note.cubinder` with other notes: its segment has 20 bytes, expected 16
          help: link the runtime library with rust-lld, lld, GNU ld or gold, or with mold and `-C link-arg=-Wl,--build-id=none`
        it has no separate note (section `.note.cubinder`) whose program header the bundle can use
          help: link the runtime library with rust-lld, lld, GNU ld or gold, or with mold and `-C link-arg=-Wl,--build-id=none`
        the descriptor at byte [slot] is damaged: it does not start with the magic bytes
          help: use a new copy of the runtime library of this release
        the descriptor at byte [slot] is damaged: its layout has version 2; this compiler supports version 1
          help: use a new copy of the runtime library of this release
        the descriptor at byte [slot] is damaged: its field `mode` has an invalid value
          help: use a new copy of the runtime library of this release
        "#
    );
}

#[derive(Debug, Clone)]
enum Damage {
    Bytes { at: prop::sample::Index, region: usize, with: Vec<u8> },
    Word { at: prop::sample::Index, region: usize, with: u64 },
    Cut(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let words = prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        Just(i64::MAX as u64),
        Just(0xfff),
        Just(0x1000),
        0_u64..0x60_000,
        any::<u64>()
    ];
    let at = || (any::<prop::sample::Index>(), 0_usize..7);
    prop_oneof![
        6 => (at(), proptest::collection::vec(any::<u8>(), 1..4))
            .prop_map(|((at, region), with)| Damage::Bytes { at, region, with }),
        6 => (at(), words).prop_map(|((at, region), with)| Damage::Word { at, region, with }),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
    ]
}

fn regions(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let half = |at: usize| usize::from(u16::from_le_bytes(file[at..at + 2].try_into().unwrap()));
    let find = |bytes: &[u8]| file.windows(bytes.len()).position(|window| window == bytes).unwrap();
    let (slot, note) = (find(&cubinder_model::slot::MAGIC), find(&cubinder_model::slot::NOTE));
    let names = word(40) + 64 * half(62);
    vec![
        0..64,
        word(32)..word(32) + 56 * half(56),
        note..note + 16,
        slot..slot + 160,
        word(40)..word(40) + 64 * half(60),
        word(names + 24)..word(names + 24) + word(names + 32),
        0..file.len(),
    ]
}

fn apply(file: &mut Vec<u8>, regions: &[std::ops::Range<usize>], damage: &Damage) {
    let (at, region, with) = match damage {
        Damage::Bytes { at, region, with } => (at, region, with.clone()),
        Damage::Word { at, region, with } => (at, region, with.to_le_bytes().to_vec()),
        Damage::Cut(at) => return file.truncate(at.index(file.len() + 1)),
    };
    let region = &regions[*region];
    let step = if with.len() == 8 { 4 } else { 1 };
    let start = region.start + at.index(region.len() / step) * step;
    file.iter_mut().skip(start).zip(with).for_each(|(to, from)| *to = from);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_libraries_are_refused_or_work(damages in proptest::collection::vec(damage(), 1..4)) {
        let scene = Scene::new();
        let mut file = fs::read(probe()).unwrap();
        let regions = regions(&file);
        damages.iter().for_each(|damage| apply(&mut file, &regions, damage));
        let (base, out) = (scene.path("base.so"), scene.path("out.so"));
        fs::write(&base, &file).unwrap();
        if inject(&base, b"some bundle", Mode::Ops, &out).is_ok() {
            let found = read(&out).unwrap().unwrap();
            prop_assert_eq!(bytes_at(&out, &found), b"some bundle");
            detach(&out, &out).unwrap();
            prop_assert_eq!(fs::read(&out).unwrap(), file);
        } else {
            prop_assert!(!out.exists());
        }
    }

    #[test]
    fn damaged_libraries_with_a_bundle_are_refused_or_work(damages in proptest::collection::vec(damage(), 1..4)) {
        let scene = Scene::new();
        let library = scene.path("lib.so");
        inject(probe(), &bundle(5000, 1), Mode::Ops, &library).unwrap();
        let mut file = fs::read(&library).unwrap();
        let regions = regions(&file);
        damages.iter().for_each(|damage| apply(&mut file, &regions, damage));
        fs::write(&library, &file).unwrap();
        let _ = read(&library);
        let (undone, replaced) = (scene.path("undone.so"), scene.path("replaced.so"));
        if detach(&library, &undone).is_ok() {
            prop_assert_eq!(fs::read(&undone).unwrap(), fs::read(probe()).unwrap());
        }
        if inject(&library, b"another", Mode::CodeLibrary, &replaced).is_ok() {
            let found = read(&replaced).unwrap().unwrap();
            prop_assert_eq!((found.mode, bytes_at(&replaced, &found)), (Mode::CodeLibrary, b"another".to_vec()));
        }
    }
}
