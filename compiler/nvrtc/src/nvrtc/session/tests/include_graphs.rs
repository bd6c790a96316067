use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use nvrtc_sys::CompileError;

use super::*;
use crate::diagnostic::{Source, Span};
use crate::nvrtc_option::check_options;
use crate::test_support::toolkit;

/// Non-UTF-8 bytes, a blank and folders.
const NAMES: [&[u8]; 7] =
    [b"a.h", b"b.h", b"caf\xe9.h", b"sub/c.h", b"sub/d.h", b"two words.h", b"../inc/e.h"];

const NOT_UTF_8: usize = 2;

const FOLDERS: [&str; 3] = ["own", "inc", "more"];

struct Project {
    root: tempfile::TempDir,
    rng: Rng,
    options: Vec<String>,
    text: String,
}

impl Project {
    fn new(seed: u64) -> Project {
        // Uses memory, because the test creates thousands of projects.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        for folder in FOLDERS {
            std::fs::create_dir_all(root.path().join(folder).join("sub")).unwrap();
        }
        let mut project =
            Project { root, rng: Rng::with_seed(seed), options: Vec::new(), text: String::new() };
        for _ in 0..project.rng.usize(2..6) {
            project.write_header();
        }
        project.write_text();
        project.choose_options();
        project
    }

    fn place(&mut self, name: usize) -> PathBuf {
        let folder = self.root.path().join(self.rng.choice(FOLDERS).unwrap());
        folder.join(OsStr::from_bytes(NAMES[name]))
    }

    fn name(&mut self, first: usize) -> usize {
        match first <= NOT_UTF_8 && self.rng.u8(..3) == 0 {
            true => NOT_UTF_8,
            false => self.rng.usize(first..NAMES.len()),
        }
    }

    fn write_header(&mut self) {
        let name = self.name(0);
        let place = self.place(name);
        let bytes = self.header(name);
        if place.is_dir() {
            std::fs::remove_dir(&place).unwrap();
        }
        std::fs::write(place, bytes).unwrap();
    }

    /// Includes later headers only, so the graph is acyclic.
    fn header(&mut self, name: usize) -> Vec<u8> {
        let mut lines = Vec::new();
        for _ in 0..self.rng.usize(1..4) {
            lines.extend(self.line(name + 1));
        }
        lines
    }

    fn write_text(&mut self) {
        let mut text = "extern \"C\" __global__ void k(volatile int* x) {\n".to_owned();
        for _ in 0..self.rng.usize(1..4) {
            text += &loop {
                match String::from_utf8(self.line(0)) {
                    Ok(line) => break line,
                    Err(_) => continue,
                }
            };
        }
        self.text = text + "}\n";
    }

    fn line(&mut self, first: usize) -> Vec<u8> {
        let number = self.rng.u32(1..1000);
        let statement = format!("x[{}] = {number};\n", self.rng.u32(..8)).into_bytes();
        if first >= NAMES.len() || self.rng.u8(..5) == 0 {
            return statement;
        }
        let name = NAMES[self.name(first)];
        let name = match self.rng.u8(..3) {
            0 => [b"<", name, b">"].concat(),
            _ => [b"\"", name, b"\""].concat(),
        };
        let asked = |operator: &str| {
            let other = format!("\n#else\nx[9] = {number};\n#endif\n");
            [b"#if ", operator.as_bytes(), b"(", &name, b")\nx[8] = 1;", other.as_bytes()].concat()
        };
        let included = |directive: &str| {
            let directive = directive.as_bytes();
            [b"#if __has_include(", &name[..], b")\n", directive, &name, b"\n#endif\n"].concat()
        };
        match self.rng.u8(..16) {
            0..6 => included("#include "),
            6 => included("#include"),
            7 => included(" # /* a */ include /* b\n */ "),
            8 => included("%:inc\\\nlude "),
            9 => [b"#define H ", &name[..], b"\n#if __has_include(H)\n#include H\n#endif\n"].concat(),
            10 => asked("__has_include"),
            11 => asked("__has_\\\ninclude "),
            12 => [b"#define HI __has_include\n", &asked("HI")[..]].concat(),
            13 => [b"#define C(a, b) a ## b\n", &asked("C(__has_, include)")[..]].concat(),
            14 => [b"#define C(a, b) a ## b\n", &asked("C(_, _has_include)")[..]].concat(),
            _ => b"#ifdef HAS\n#if HAS\nx[10] = 1;\n#endif\n#endif\n".to_vec(),
        }
    }

    fn choose_options(&mut self) {
        let file = self.root.path().join("own/a.h").display().to_string();
        self.options = match self.rng.u8(..12) {
            0 => vec!["-DHAS=__has_include(\"a.h\")".to_owned()],
            1 => vec!["-D".to_owned(), "HAS=__has_include(<b.h>)".to_owned()],
            2 => vec!["-w".to_owned(), " --pre-include=a.h".to_owned()],
            3 => vec!["-w".to_owned(), " -include".to_owned(), "a.h".to_owned()],
            4 => vec![format!("-Xptxas=--options-file={file}")],
            5 => vec!["--ptxas-options".to_owned(), format!("-optf={file}")],
            6 => vec!["-DHAS=0".to_owned(), "-Xptxas=-v".to_owned()],
            _ => Vec::new(),
        };
    }

    fn edit(&mut self) {
        let name = self.name(0);
        let place = self.place(name);
        match self.rng.u8(..8) {
            0..4 => self.write_header(),
            4 => drop(std::fs::remove_file(&place)),
            5 => drop(std::fs::create_dir(&place)),
            6 => {
                let (other, _) = (self.place(name), std::fs::remove_file(&place));
                drop(std::os::unix::fs::symlink(other, &place));
            }
            _ => self.choose_options(),
        }
    }

    fn unit(&self) -> TranslationUnit {
        let folder = self.root.path().join(FOLDERS[0]);
        let source = Source::new(folder.join("k.cu"), self.text.clone());
        TranslationUnit {
            name: "k.cu".to_owned(),
            text: self.text.clone(),
            prelude: Source::new(codegen::PRELUDE_NAME, String::new()),
            source: Arc::clone(&source),
            folder,
            kernel: "k".to_owned(),
            kernel_span: Span { source, range: 0..0 },
        }
    }

    fn settings(&self) -> Option<Settings> {
        let is_allowed = check_options(self.options.iter().map(String::as_str)).is_empty();
        let include = FOLDERS[1..].iter().map(|folder| self.root.path().join(folder)).collect();
        is_allowed.then(|| Settings { include, options: self.options.clone() })
    }
}

type Result = std::result::Result<(Digest, bool), ()>;

struct Run<'r> {
    toolkit: &'r Toolkit,
    compiler: Compiler,
}

impl Run<'_> {
    fn compile(&self, project: &Project, settings: &Settings, cache: Cache) -> Result {
        let session = Session::new(self.toolkit.clone(), settings.clone(), cache).unwrap();
        session.compiler.set(Ok(self.compiler.clone())).unwrap();
        let prepared = session.prepare(project.unit());
        let compiled = session.compile(&prepared, "compute_80".parse().unwrap());
        compiled.map(|compiled| (compiled.object.digest, compiled.cached)).map_err(drop)
    }

    fn check(&self, seed: u64, meanwhile: bool) -> bool {
        let mut project = Project::new(seed);
        let cache = project.root.path().join("cache");
        if let Some(settings) = project.settings() {
            if meanwhile && project.rng.u8(..8) == 0 {
                let name = project.rng.usize(..NAMES.len());
                let written = (project.rng.bool(), project.place(name), project.header(name));
                preprocessor::WRITTEN_MEANWHILE.set(Some(written));
            }
            let _ = self.compile(&project, &settings, Cache::open(&cache));
            preprocessor::WRITTEN_MEANWHILE.set(None);
        }
        if project.rng.u8(..4) > 0 {
            project.edit();
        }
        let Some(settings) = project.settings() else { return false };
        let warm = self.compile(&project, &settings, Cache::open(&cache));
        let cold = self.compile(&project, &settings, Cache::disabled());
        let is_hit = matches!(warm, Ok((_, true)));
        let digests = [warm, cold].map(|result| result.map(|(digest, _)| digest));
        assert_eq!(digests[0], digests[1], "seed {seed}, {:?}\n{}", settings.options, project.text);
        is_hit
    }
}

#[test]
fn what_is_cached_is_what_a_stand_in_makes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let toolkit = Toolkit {
        nvrtc: file.path().to_owned(),
        include: Vec::new(),
        is_pinned: false,
        without_headers: None,
    };
    let run = Run { toolkit: &toolkit, compiler: Compiler::StandIn(preprocessor::compile) };
    let hits = (0..10_000).filter(|seed| run.check(*seed, true)).count();
    assert!(hits > 2_000, "{hits}");
}

#[test]
fn what_is_cached_is_what_nvrtc_makes() {
    let Some(toolkit) = toolkit("what_is_cached_is_what_nvrtc_makes") else { return };
    let nvrtc = Arc::new(Nvrtc::load(&toolkit.nvrtc).unwrap());
    let run = Run { toolkit: &toolkit, compiler: Compiler::InProcess(nvrtc) };
    let hits = (0..200).filter(|seed| run.check(*seed, false)).count();
    assert!(hits > 40, "{hits}");
}

#[test]
fn the_stand_in_reads_as_nvrtc_does() {
    let Some(toolkit) = toolkit("the_stand_in_reads_as_nvrtc_does") else { return };
    let nvrtc = Arc::new(Nvrtc::load(&toolkit.nvrtc).unwrap());
    let compilers = [Compiler::InProcess(nvrtc), Compiler::StandIn(preprocessor::compile)];
    let runs = compilers.map(|compiler| Run { toolkit: &toolkit, compiler });
    for seed in 0..40 {
        let mut project = Project::new(seed);
        project.options.clear();
        let settings = project.settings().unwrap();
        let results =
            |project: &Project| runs.each_ref().map(|run| run.compile(project, &settings, Cache::disabled()));
        let before = results(&project);
        while project.rng.u8(..3) > 0 {
            project.write_header();
        }
        let after = results(&project);
        assert_eq!(before[0].is_ok(), before[1].is_ok(), "seed {seed}\n{}", project.text);
        assert_eq!(after[0].is_ok(), after[1].is_ok(), "seed {seed}\n{}", project.text);
        // Ineffective statements may differ.
        if before[1] == after[1] {
            assert_eq!(before[0], after[0], "seed {seed}\n{}", project.text);
        }
    }
}

#[test]
fn what_reads_a_file_that_the_key_does_not_have_is_not_cached() {
    fn reads(name: &'static str, program: &nvrtc_sys::Program) -> WorkerOutput {
        let mut compiled = preprocessor::compile(program).unwrap();
        let folder = program
            .options
            .iter()
            .find_map(|option| option.to_str()?.strip_prefix("--include-path="))
            .unwrap();
        let trace = format!("__nv_nvrtc_builtin_header.h\n{folder}/a.h\n {folder}/{name}\n__nv_name_map\n");
        compiled.printed = Some(trace.into_bytes());
        compiled
    }
    fn prints(printed: &[u8], program: &nvrtc_sys::Program) -> WorkerOutput {
        WorkerOutput { printed: Some(printed.to_vec()), ..preprocessor::compile(program).unwrap() }
    }
    let cases: [(Compiler, bool); 5] = [
        (Compiler::StandIn(|program| Ok(reads("sub/../b.h", program))), true),
        (Compiler::StandIn(|program| Ok(reads("unknown.h", program))), false),
        (Compiler::StandIn(|program| Ok(reads("other.h", program))), false),
        (Compiler::StandIn(|program| Ok(prints(b"", program))), false),
        (Compiler::StandIn(|program| Ok(prints(b"something else\n", program))), false),
    ];
    let file = tempfile::NamedTempFile::new().unwrap();
    let toolkit = Toolkit {
        nvrtc: file.path().to_owned(),
        include: Vec::new(),
        is_pinned: false,
        without_headers: None,
    };
    for (compiler, is_cached) in cases {
        let mut project = Project::new(0);
        let own = project.root.path().join(FOLDERS[0]);
        std::fs::write(own.join("a.h"), "#include \"b.h\"\n").unwrap();
        std::fs::write(own.join("b.h"), "").unwrap();
        std::fs::write(own.join("other.h"), "").unwrap();
        project.text = "#include \"a.h\"\n".to_owned();
        project.options.clear();
        let settings = project.settings().unwrap();
        let run = Run { toolkit: &toolkit, compiler };
        let cache = project.root.path().join("cache");
        for expected in [false, is_cached] {
            let (_, cached) = run.compile(&project, &settings, Cache::open(&cache)).unwrap();
            assert_eq!(cached, expected);
        }
    }
}

/// A macro selects a toolkit header until the project has a file of that name.
#[test]
fn a_file_before_a_computed_include_of_the_toolkit_is_compiled() {
    fn traced(program: &nvrtc_sys::Program) -> std::result::Result<WorkerOutput, CompileError> {
        let mut compiled = preprocessor::compile(program)?;
        let options = program.options.iter().filter_map(|option| option.to_str());
        let folders: Vec<&str> =
            options.filter_map(|option| option.strip_prefix("--include-path=")).collect();
        let chosen = folders.iter().map(|folder| format!("{folder}/part/chosen.h"));
        let chosen = chosen.into_iter().find(|path| Path::new(path).is_file()).unwrap();
        let toolkit = folders.last().unwrap();
        let trace = format!("__nv_nvrtc_builtin_header.h\n{toolkit}/computes.h\n {chosen}\n");
        compiled.printed = Some(trace.into_bytes());
        Ok(compiled)
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    for folder in &FOLDERS[..2] {
        let mut project = Project::new(0);
        let include = ["toolkit", "toolkit/inner"].map(|name| project.root.path().join(name));
        std::fs::create_dir_all(include[1].join("part")).unwrap();
        std::fs::write(include[1].join("computes.h"), "#define CHOSEN <part/chosen.h>\n#include CHOSEN\n")
            .unwrap();
        std::fs::write(include[1].join("part/chosen.h"), "int of_toolkit;\n").unwrap();
        project.text = "#include <computes.h>\n".to_owned();
        project.options.clear();
        let toolkit = Toolkit {
            nvrtc: file.path().to_owned(),
            include: include.to_vec(),
            is_pinned: true,
            without_headers: None,
        };
        let run = Run { toolkit: &toolkit, compiler: Compiler::StandIn(traced) };
        let (settings, cache) = (project.settings().unwrap(), project.root.path().join("cache"));
        let compile = || run.compile(&project, &settings, Cache::open(&cache)).unwrap();
        let (of_toolkit, is_hit) = compile();
        assert!(!is_hit);
        assert_eq!(compile(), (of_toolkit, true));
        let before = project.root.path().join(folder).join("part");
        std::fs::create_dir(&before).unwrap();
        std::fs::write(before.join("chosen.h"), "int of_project;\n").unwrap();
        let (of_project, is_hit) = compile();
        assert!(!is_hit && of_project != of_toolkit, "{folder}");
        assert_eq!(compile(), (of_project, false));
        std::fs::remove_file(before.join("chosen.h")).unwrap();
        assert_eq!(compile(), (of_toolkit, true));
    }
}

#[test]
fn the_trace_of_nvrtc_names_files() {
    let printed = b"__nv_nvrtc_builtin_header.h\ncubinder.h\nd/a.h\n  d/caf\xe9.h\n\n__nv_name_map\nwhat else is printed\n";
    let expected = [&b"d/a.h"[..], b"d/caf\xe9.h", b"what else is printed"];
    let expected = expected.map(|name| Path::new(OsStr::from_bytes(name)).to_owned());
    assert_eq!(ReadFiles::parse(Some(printed)), ReadFiles::Traced(expected.to_vec()));
    let header = b"__nv_nvrtc_builtin_header.h\n";
    assert_eq!(ReadFiles::parse(Some(header)), ReadFiles::Traced(Vec::new()));
    for printed in [&b""[..], b"\n", b"d/a.h\n", b"d/__nv_nvrtc_builtin_header.h\n"] {
        assert_eq!(ReadFiles::parse(Some(printed)), ReadFiles::Unknown);
    }
    assert_eq!(ReadFiles::parse(None), ReadFiles::NotAsked);
}
