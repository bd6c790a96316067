//! Plugin libraries in full TensorRT's lean runtimes, which without a GPU load libraries, list creators and create
//! plugins. `CUBINDER_TEST_TENSORRT`: 11.4 in `cargo xtask test`, others in `cargo xtask matrix`.

use std::path::{Path, PathBuf};
use std::process::Command;

use cubinder_skip::skip;
use cubinder_tests::cxx;
use cubinder_tests::registry::{self, Registry, Session};

struct Bench {
    folder: tempfile::TempDir,
    generic: PathBuf,
    registry: Registry,
    releases: Vec<PathBuf>,
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

fn bench(names: &[&str]) -> Option<Bench> {
    let releases = registry::libraries();
    let (Some(compiler), Some(generic), false) =
        (variable("CUBINDER_BIN"), variable("CUBINDER_RUNTIME_LIBRARY"), releases.is_empty())
    else {
        let libraries = registry::LIBRARIES;
        skip(&format!("`CUBINDER_BIN`, `CUBINDER_RUNTIME_LIBRARY` or `{libraries}` is not set"));
        return None;
    };
    let bench = Bench {
        folder: tempfile::tempdir().unwrap(),
        generic,
        registry: Registry::build().unwrap(),
        releases,
    };
    bench.write_manifests();
    let pads = "manifests/circ_pad_plugin.toml";
    let written = ["pad1.toml", "pad2.toml", "native.toml"].map(|name| bench.file(name));
    let [one, two, native] = written.each_ref().map(|path| path.to_str().unwrap());
    for name in names {
        let (manifests, options): (Vec<&str>, &[&str]) = match *name {
            "pads" => (vec![pads], &[]),
            "carried" => (vec![pads], &["--embed"]),
            "native" => (vec![native], &[]),
            "one" => (vec![one], &[]),
            "two" => (vec![two], &[]),
            "both" => (vec![one, two], &[]),
            "routes" => (vec![one, native], &[]),
            other => panic!("unknown library `{other}`"),
        };
        bench.compile(&compiler, name, &manifests, options);
    }
    Some(bench)
}

impl Bench {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write_manifests(&self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |name: &str| {
            let text = std::fs::read_to_string(root.join("manifests").join(name)).unwrap();
            let lines =
                text.lines().filter(|line| !line.starts_with("tune = ")).map(|line| format!("{line}\n"));
            lines.collect::<String>().replace("../kernels", root.join("kernels").to_str().unwrap())
        };
        let pads = read("circ_pad_plugin.toml").replace("\"circ_pad_plugin\"", "\"versions\"");
        for version in ["1", "2"] {
            let text = pads.replace("version = \"1\"", &format!("version = \"{version}\""));
            std::fs::write(self.file(&format!("pad{version}.toml")), text).unwrap();
        }
        let adds = read("elemwise_add_plugin.toml") + "\n[compile]\nroute = \"native\"\n";
        std::fs::write(self.file("native.toml"), adds).unwrap();
    }

    fn compile(&self, compiler: &Path, name: &str, manifests: &[&str], options: &[&str]) {
        let mut command = Command::new(compiler);
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).arg("compile").args(manifests);
        command
            .args(["--target", "compute_80", "--name", name])
            .args(options)
            .arg("--out-dir")
            .arg(self.folder.path());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Replaces `{name}` by a library, `{cubinder}` by the generic one.
    fn run(&self, tensorrts: &[(&str, &Path)], commands: &str) -> Session {
        let mut text = String::new();
        for (name, file) in tensorrts {
            text.push_str(&format!("open {name} {}\n", file.display()));
        }
        let mut commands = commands.replace("{cubinder}", self.generic.to_str().unwrap());
        for name in ["pads", "carried-code", "carried", "native", "one", "two", "both", "routes"] {
            let file = self.file(&format!("lib{name}.so"));
            commands = commands.replace(&format!("{{{name}}}"), file.to_str().unwrap());
        }
        text.push_str(&commands);
        self.registry.run(&text).unwrap()
    }

    fn ask(&self, release: &Path, commands: &str) -> (Vec<String>, String) {
        let mut session = self.run(&[("T", release)], commands);
        assert_eq!(session.signal, None, "{}: {:?}\n{}", release.display(), session.answers, session.errors);
        session.answers.remove(0);
        (session.answers, session.errors)
    }
}

const LOAD: &str = "load T pads {pads}\nload T native {native}\nload T cubinder {cubinder}\n";

#[test]
fn libraries_of_both_routes_load_beside_each_other_and_leave_nothing() {
    let Some(bench) = bench(&["pads", "native"]) else { return };
    for release in &bench.releases {
        let unload = "list T\nload T again {pads}\nunload T pads\nlist T\nunload T cubinder\nunload T native\nlist T\n";
        let (answers, errors) = bench.ask(release, &format!("{LOAD}{unload}{LOAD}close T\n"));
        let loaded = ["pads: loaded", "native: loaded", "cubinder: loaded"];
        let pads = "V3ONE sample::circ_pad_plugin:1";
        let rest = [
            "V3ONE cubinder::Kernel2:2",
            "V3ONE cubinder::Kernel:1",
            "V3QUICK sample::elemwise_add_plugin:1",
        ];
        let mut all = rest.to_vec();
        all.insert(2, pads);
        let expected: Vec<&str> = loaded
            .into_iter()
            .chain(all)
            .chain(["again: rejected", "pads: unloaded"])
            .chain(rest)
            .chain(["cubinder: unloaded", "native: unloaded"])
            .chain(loaded)
            .chain(["T: gone"])
            .collect();
        assert_eq!(answers, expected, "{}: {errors}", release.display());
        assert_eq!(errors, "", "{}", release.display());
    }
}

#[test]
fn plugins_are_created_in_both_phases_cloned_and_restored() {
    let Some(bench) = bench(&["pads", "native"]) else { return };
    for release in &bench.releases {
        let commands = "\
            create T p sample::circ_pad_plugin:1 build pads=1,1,1,1\nclone p q\ndelete p\nconfigure q 1x3x8x8 -- 1x3x10x10\n\
            restore T q r\nclone r s\ndelete q\ndelete r\nrestore T s t\ndelete s\ndelete t\n\
            create T n sample::elemwise_add_plugin:1 build block_size=128\nclone n m\ndelete n\ndelete m\n\
            unload T pads\nunload T native\nunload T cubinder\nlist T\nclose T\n";
        let (answers, errors) = bench.ask(release, &format!("{LOAD}{commands}"));
        let kernel = ["p", "q"].map(|name| format!("{name}: cubinder::Kernel2:2"));
        let restored = ["r", "s"].map(|name| format!("{name}: cubinder::Kernel2:2"));
        let quick = ["n", "m"].map(|name| format!("{name}: sample::elemwise_add_plugin:1"));
        let word = |text: &str| vec![text.to_owned()];
        let expected: Vec<String> = [
            &kernel[..],
            &word("p: deleted"),
            &word("q: configured, 0, build interface 2"),
            &restored,
            &["q: deleted".to_owned(), "r: deleted".to_owned()],
            &word("t: cubinder::Kernel2:2"),
            &["s: deleted".to_owned(), "t: deleted".to_owned()],
            &quick,
            &[
                "n: deleted",
                "m: deleted",
                "pads: unloaded",
                "native: unloaded",
                "cubinder: unloaded",
                "T: gone",
            ]
            .map(str::to_owned),
        ]
        .concat();
        assert_eq!(answers[3..], expected, "{}: {errors}", release.display());
        assert_eq!(errors, "", "{}", release.display());
    }
}

#[test]
fn a_code_library_restores_what_its_ops_serialize() {
    let Some(bench) = bench(&["carried"]) else { return };
    for release in &bench.releases {
        let commands = "\
            load T ops {carried}\ncreate T p sample::circ_pad_plugin:1 build pads=1,1,1,1\nconfigure p 1x3x8x8 -- 1x3x10x10\n\
            restore T p early\nload T code {carried-code}\nrestore T p r\ndelete r\nunload T code\nunload T ops\nlist T\n";
        let (answers, errors) =
            bench.ask(release, &commands.replace("unload T code", "delete p\nunload T code"));
        let core = answers[1].strip_prefix("p: cubinder::Kernel-").unwrap_or_else(|| panic!("{answers:?}"));
        let expected = [
            "ops: loaded",
            &format!("p: cubinder::Kernel-{core}"),
            "p: configured, 0, build interface 2",
            "early: no creator",
            "code: loaded",
            &format!("r: cubinder::Kernel-{core}"),
            "r: deleted",
            "p: deleted",
            "code: unloaded",
            "ops: unloaded",
        ];
        assert_eq!(answers, expected, "{}: {errors}", release.display());
    }
}

/// Registries have no logger before a runtime, which needs a GPU.
#[test]
fn wrong_fields_and_phases_are_rejected_with_messages_though_there_is_no_logger_yet() {
    let Some(bench) = bench(&["pads", "native"]) else { return };
    for release in &bench.releases {
        let commands = "\
            create T p sample::circ_pad_plugin:1 build pads=1,1,1\ncreate T p sample::circ_pad_plugin:1 build pads=1.5f,2f\n\
            create T p sample::circ_pad_plugin:1 build pads=abc'\ncreate T p sample::circ_pad_plugin:1 build\n\
            create T p sample::circ_pad_plugin:1 run pads=1,1\ncreate T p cubinder::Kernel2:2 run pads=1,1\n\
            create T p cubinder::Kernel:1 run node=1\ncreate T p sample::elemwise_add_plugin:1 build block_size=1.5f\n\
            create T p sample::elemwise_add_plugin:1 run block_size=128\ncreate T p sample::circ_pad_plugin:1 build pads=1,1\n";
        let (answers, errors) = bench.ask(release, &format!("{LOAD}{commands}"));
        let mut expected = vec!["p: null"; 9];
        expected.push("p: cubinder::Kernel2:2");
        assert_eq!(answers[3..], expected, "{}: {errors}", release.display());
        let note = "(TensorRT has no logger yet; until it has one, warnings and errors of this plugin library go to stderr)";
        let (notes, messages): (Vec<&str>, Vec<&str>) = errors.lines().partition(|line| *line == note);
        assert_eq!((notes.len(), messages.len()), (3, 9), "{errors}");
        let parts = [
            "`len(pads) % 2 == 0` is false",
            "the attribute `pads` contains floats, expected `i32[]`",
            "the attribute `pads` contains",
            "missing attribute `pads`",
            "this library only builds engines",
            "expected only \"node\"",
            "has format version 1,",
            "the attribute `block_size` contains",
            "TensorRT launches the kernel of this plugin",
        ];
        for (message, part) in messages.iter().zip(parts) {
            assert!(message.starts_with("cubinder: ") && message.contains(part), "`{part}`: {message}");
        }
    }
}

/// The second TensorRT sets its finder last and is closed; then the first logs a rejected plugin.
#[test]
fn a_tensorrt_that_is_closed_is_not_asked_for_its_logger() {
    let Some(bench) = bench(&[]) else { return };
    let copy = bench.file("copied.so");
    std::fs::copy(&bench.releases[0], &copy).unwrap();
    let mut pairs = vec![(bench.releases[0].as_path(), copy.as_path())];
    for a in &bench.releases {
        pairs.extend(bench.releases.iter().filter(|b| *b != a).map(|b| (a.as_path(), b.as_path())));
    }
    for (a, b) in pairs {
        let reject = "create A p cubinder::Kernel2:2 run\n";
        let commands = format!(
            "load A l {{cubinder}}\nload B m {{cubinder}}\n{reject}unload B m\nclose B\n{reject}unload A l\nclose A\n"
        );
        let session = bench.run(&[("A", a), ("B", b)], &commands);
        let pair = format!("{} and {}", a.display(), b.display());
        assert_eq!(session.signal, None, "{pair}: {:?}\n{}", session.answers, session.errors);
        let expected = [
            "l: loaded",
            "m: loaded",
            "p: null",
            "m: unloaded",
            "B: gone",
            "p: null",
            "l: unloaded",
            "A: gone",
        ];
        assert_eq!(session.answers[2..], expected, "{pair}\n{}", session.errors);
        assert_eq!(
            session.errors.matches("the node in the engine has the fields []").count(),
            2,
            "{}",
            session.errors
        );
    }
}

#[test]
fn versions_of_one_op_are_unloaded_backward() {
    let Some(bench) = bench(&["one", "two", "both"]) else { return };
    let find = "create T p sample::versions:1 build pads=1,1\ncreate T q sample::versions:2 build pads=1,1\ndelete p\ndelete q\n";
    for release in &bench.releases {
        let twice = format!("load T v {{both}}\n{find}unload T v\nlist T\n").repeat(2);
        let (answers, errors) = bench.ask(release, &twice);
        let once = [
            "v: loaded",
            "p: cubinder::Kernel2:2",
            "q: cubinder::Kernel2:2",
            "p: deleted",
            "q: deleted",
            "v: unloaded",
        ];
        assert_eq!(answers, once.repeat(2), "{}: {errors}", release.display());
        let both = "load T one {one}\nload T two {two}\n";
        let again = format!("{both}unload T two\nunload T one\nlist T\n").repeat(2);
        let (answers, errors) = bench.ask(release, &again);
        let once = ["one: loaded", "two: loaded", "two: unloaded", "one: unloaded"];
        assert_eq!(answers, once.repeat(2), "{}: {errors}", release.display());
        // Since 10.16, other orders leave dangling creators.
        let session = bench.run(&[("T", release)], &format!("{both}unload T one\n{find}"));
        let is_right = session.answers[0].starts_with("T: version 1015");
        let signal = (!is_right).then_some(11);
        assert_eq!(session.signal, signal, "{}: {:?}", release.display(), session.answers);
    }
}

struct Linked {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Linked {
    fn build() -> Option<Self> {
        if cxx::compiler_version().is_none() {
            skip("no C compiler");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("linked");
        let linked = Self { folder, program };
        let eleven = linked.stand_in("eleven", &["-DVERSION=110400", "-DBASE"]);
        let link = format!("-Wl,--no-as-needed,-rpath,$ORIGIN,{}", eleven.display());
        compile(&[&link], &linked.program, "registry/linked.c");
        Some(linked)
    }

    fn stand_in(&self, name: &str, options: &[&str]) -> PathBuf {
        let file = self.folder.path().join(format!("lib{name}.so"));
        let options = [&["-shared", "-fPIC"], options].concat();
        compile(&options, &file, "../runtime-plugin/abi/src/tests/tensorrt.c");
        file
    }

    fn run(&self, arguments: &[&Path]) -> [String; 2] {
        let output = Command::new(&self.program).args(arguments).output().unwrap();
        let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert_eq!(output.status.code(), Some(0), "{}: {texts:?}", output.status);
        texts
    }
}

fn compile(options: &[&str], out: &Path, source: &str) {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command
        .args(options)
        .arg("-o")
        .arg(out)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source))
        .arg("-ldl");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A linked TensorRT 10 has another layout than the shared TensorRT 11, whose version `dlsym` finds.
#[test]
fn a_tensorrt_linked_into_the_program_is_not_taken_for_a_shared_one() {
    let (Some(generic), Some(linked)) = (variable("CUBINDER_RUNTIME_LIBRARY"), Linked::build()) else {
        skip("no C compiler, or `CUBINDER_RUNTIME_LIBRARY` is not set");
        return;
    };
    let [printed, errors] = linked.run(&[&generic]);
    assert_eq!(printed, "found version 110400, 2 creators, logged 0\ncreated nothing, logged 0\n");
    assert!(errors.contains("TensorRT's logger cannot be reached"), "{errors}");
}

/// Older ones lack the interfaces: the creator is omitted and logged.
#[test]
fn creators_of_the_native_route_are_offered_from_10_9_on() {
    let (Some(bench), Some(linked)) = (bench(&["routes"]), Linked::build()) else { return };
    for (version, creators, logged) in [("100801", 1, 1), ("100900", 2, 0), ("101501", 2, 0)] {
        let tensorrt = linked.stand_in("other", &[&format!("-DVERSION={version}")]);
        let [printed, errors] = linked.run(&[&bench.file("libroutes.so"), &tensorrt]);
        let expected = format!(
            "found version 110400, {creators} creators, logged {logged}\ncreated nothing, logged {}\n",
            logged + 1
        );
        assert_eq!((printed, errors), (expected, String::new()), "{version}");
    }
}

#[test]
fn a_registry_keeps_no_creators_after_an_older_release_loaded_the_library() {
    let (Some(bench), Some(linked)) = (bench(&["routes"]), Linked::build()) else { return };
    let older = linked.stand_in("older", &["-DVERSION=100801"]);
    for release in &bench.releases {
        let load = "load T l {routes}\n";
        let offer = format!("offer {{routes}} {}\n", older.display());
        let (answers, errors) =
            bench.ask(release, &format!("{load}{offer}unload T l\nlist T\n{load}list T\n"));
        let expected = [
            "l: loaded",
            "offered 1",
            "l: unloaded",
            "l: loaded",
            "V3ONE sample::versions:1",
            "V3QUICK sample::elemwise_add_plugin:1",
        ];
        assert_eq!(answers, expected, "{}: {errors}", release.display());
    }
}
