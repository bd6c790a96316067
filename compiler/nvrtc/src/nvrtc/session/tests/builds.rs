use std::collections::BTreeMap;

use cubinder_expr::DataType;

use super::*;
use crate::nvrtc::tests::{SCALE, target};
use crate::test_support::{show, toolkit, unit};

fn session(toolkit: &Toolkit, cache: &Path) -> Session {
    Session::new(toolkit.clone(), Settings::default(), Cache::open(cache)).unwrap()
}

#[test]
fn the_second_build_does_not_call_nvrtc() {
    let Some(toolkit) = toolkit("the_second_build_does_not_call_nvrtc") else { return };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let build = |text: &str, toolkit: &Toolkit| {
        let session = session(toolkit, cache.path());
        let prepared = session.prepare(unit(folder.path(), text, "scale<__half, 8>", &[DataType::F16]));
        let signature = session.signature(&prepared, target("sm_89")).unwrap();
        let code: Vec<CompiledKernel> = ["sm_89", "sm_90", "compute_80"]
            .into_iter()
            .map(|name| {
                session
                    .compile(&prepared, target(name))
                    .map_err(diagnostics)
                    .unwrap_or_else(|errors| panic!("{}", show(&errors)))
            })
            .collect();
        assert_eq!(session.take_cache_warning(), None);
        (signature, code, session.statistics())
    };
    let (signature, code, first) = build(SCALE, &toolkit);
    assert_eq!((first.nvrtc_calls, first.cache_hits), (4, 0));
    let (again, same, second) = build(SCALE, &toolkit);
    assert_eq!((second.nvrtc_calls, second.cache_hits), (0, 4));
    assert_eq!(signature, again);
    assert!(same.iter().all(|compiled| compiled.cached));
    assert!(code.iter().zip(&same).all(|(one, two)| one.object == two.object && one.symbol == two.symbol));
    let (_, _, changed) = build(
        &SCALE.replace("factor)", "factor) + T(1)").replace("float factor) + T(1)", "float factor)"),
        &toolkit,
    );
    assert_eq!(changed.nvrtc_calls, 4);
}

#[test]
fn kernels_of_a_program_share_its_code() {
    let Some(toolkit) = toolkit("kernels_of_a_program_share_its_code") else { return };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = "template <int N> __global__ void __launch_bounds__(32 * N) k(int* x) { x[N] = N; }\n";
    let compile = |kernels: &[&str], name: &str| {
        let session = session(&toolkit, cache.path());
        let units = kernels.iter().map(|kernel| session.prepare(unit(folder.path(), text, kernel, &[])));
        let units: Vec<PreparedUnit> = units.collect();
        let compiled = session.compile_program(&units.iter().collect::<Vec<_>>(), target(name));
        let compiled = compiled.map_err(diagnostics).unwrap_or_else(|errors| panic!("{}", show(&errors)));
        (compiled, session.statistics().nvrtc_calls)
    };
    for name in ["sm_89", "compute_80"] {
        let (both, calls) = compile(&["k<1>", "k<2>"], name);
        assert_eq!((both.len(), calls), (2, 1));
        let threads = both.iter().map(|compiled| {
            let kernels = &compiled.object.kernels;
            kernels.iter().find(|kernel| kernel.symbol == compiled.symbol).unwrap().max_threads
        });
        assert_eq!(threads.collect::<Vec<_>>(), [Some(32), Some(64)]);
        assert!(both.iter().all(|compiled| compiled.object.kernels.len() == 2 && !compiled.cached));
        assert_eq!(both[0].object.digest, both[1].object.digest);
        let (again, calls) = compile(&["k<1>", "k<2>"], name);
        assert!(calls == 0 && again.iter().all(|compiled| compiled.cached));
        assert_eq!(again[1].object, both[1].object);
        for others in [&["k<1>"][..], &["k<2>", "k<1>"], &["k<1>", "k<2>", "k<3>"], &["k<1>", "k<1>"]] {
            assert_eq!(compile(others, name).1, 1, "{others:?}");
        }
    }
    assert_eq!(compile(&[], "sm_89"), (Vec::new(), 0));
}

#[test]
fn warnings_name_their_kernel() {
    let log = log::parse(
        "ptxas warning : Value of threads per SM for entry k2 is out of range\n\nk.cu(3): warning #174-D: k1\n",
    );
    let symbols = ["k1".to_owned(), "k2".to_owned(), "k".to_owned()];
    let numbers = symbols.each_ref().map(|symbol| log.of_kernel(symbol, &symbols).messages.len());
    assert_eq!(numbers, [1, 2, 1]);
}

#[test]
fn signatures_of_one_text_come_from_one_compile() {
    let Some(toolkit) = toolkit("signatures_of_one_text_come_from_one_compile") else { return };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = "template <typename T, int N> __global__ void k(T* x, int n) { static_assert(N < 4, \"N is large\"); x[n] = N; }\n";
    let prepared = |session: &Session, kernels: &[&str]| -> Vec<PreparedUnit> {
        kernels.iter().map(|kernel| session.prepare(unit(folder.path(), text, kernel, &[]))).collect()
    };
    let all = |session: &Session, kernels: &[&str]| {
        let prepared = prepared(session, kernels);
        session.signatures(&prepared.iter().collect::<Vec<_>>(), target("sm_89"))
    };
    let alone = Session::new(toolkit.clone(), Settings::default(), Cache::disabled()).unwrap();
    let kernels = ["k<float, 1>", "k<int, 2>", "k<float, 2 - 1>"];
    let expected: Vec<_> = prepared(&alone, &kernels)
        .iter()
        .map(|prepared| alone.signature(prepared, target("sm_89")).unwrap())
        .collect();

    let cold = session(&toolkit, cache.path());
    let found: Vec<_> = all(&cold, &kernels).into_iter().map(Option::unwrap).collect();
    assert_eq!(found, expected);
    assert_eq!((cold.statistics().nvrtc_calls, cold.statistics().cache_hits), (1, 0));
    let warm = session(&toolkit, cache.path());
    let found = all(&warm, &["k<int, 2>", "k<float, 4>", "k<int, 3>"]);
    assert_eq!(found, [Some(expected[1].clone()), None, None]);
    assert_eq!((warm.statistics().nvrtc_calls, warm.statistics().cache_hits), (1, 1));
    assert_eq!(all(&warm, &["k<int, 3>"])[0].as_ref().unwrap().params, expected[1].params);
    let unknown = warm
        .signature(&prepared(&warm, &["k<float, 4>"])[0], target("sm_89"))
        .map_err(diagnostics)
        .unwrap_err();
    assert!(unknown[0].message.contains("N is large"), "{unknown:?}");
}

#[test]
fn a_header_that_changes_is_compiled_again() {
    let Some(toolkit) = toolkit("a_header_that_changes_is_compiled_again") else { return };
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let header = folder.path().join("kernels/h.h");
    std::fs::create_dir_all(header.parent().unwrap()).unwrap();
    let build = |value: &str| {
        std::fs::write(&header, format!("#define VALUE {value}\n")).unwrap();
        let session = session(&toolkit, cache.path());
        let text = "#include \"h.h\"\n__global__ void k(int* x) { *x = VALUE; }\n";
        let compiled =
            session.compile(&session.prepare(unit(folder.path(), text, "k", &[])), target("sm_89")).unwrap();
        (compiled.object.digest, session.statistics().nvrtc_calls)
    };
    let (one, calls) = build("1");
    assert_eq!(calls, 1);
    let (two, calls) = build("2");
    assert_eq!(calls, 1);
    assert_ne!(one, two);
    assert_eq!(build("1"), (one, 0));
}

#[test]
fn options_that_tell_the_time_are_not_kept() {
    let Some(toolkit) = toolkit("options_that_tell_the_time_are_not_kept") else { return };
    let cache = tempfile::tempdir().unwrap();
    let text = "__global__ void k(char* x) { *x = STAMP[threadIdx.x]; }\n";
    for (option, second) in [("-DSTAMP=\"now\"", 0), ("-DSTAMP=__TIME__", 1)] {
        for calls in [1, second] {
            let settings = Settings { include: Vec::new(), options: vec![option.to_owned()] };
            let session = Session::new(toolkit.clone(), settings, Cache::open(cache.path())).unwrap();
            let unit = unit(Path::new("."), text, "k", &[]);
            session.compile(&session.prepare(unit), target("sm_89")).unwrap();
            assert_eq!(session.statistics().nvrtc_calls, calls, "{option}");
        }
    }
}

#[test]
fn warnings_are_kept_with_the_code() {
    let Some(toolkit) = toolkit("warnings_are_kept_with_the_code") else { return };
    let cache = tempfile::tempdir().unwrap();
    let build = || {
        let session = session(&toolkit, cache.path());
        let unit = unit(Path::new("."), "__global__ void k(int* x) {\n  x[0];\n}\n", "k", &[]);
        session.compile(&session.prepare(unit), target("sm_89")).unwrap().warnings
    };
    let first: Vec<Diagnostic> = build();
    insta::assert_snapshot!("a_warning", show(&first));
    assert_eq!(first, build());
}

#[test]
fn a_session_refuses_options_that_are_not_the_users() {
    let Some(toolkit) = toolkit("a_session_refuses_options_that_are_not_the_users") else { return };
    let settings =
        Settings { include: Vec::new(), options: vec!["-G".to_owned(), "-w".to_owned(), "-arch".to_owned()] };
    assert_eq!(Session::new(toolkit, settings, Cache::disabled()).unwrap_err().len(), 2);
}

#[test]
fn a_toolkit_that_is_no_nvrtc_is_said_with_the_commands_that_help() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libnvrtc.so.13");
    std::fs::write(&library, "not a library").unwrap();
    let toolkit = Toolkit { nvrtc: library, include: Vec::new(), is_pinned: false, without_headers: None };
    let session = Session::new(toolkit, Settings::default(), Cache::disabled()).unwrap();
    let errors = session
        .compile(&session.prepare(unit(folder.path(), SCALE, "k", &[])), target("sm_89"))
        .map_err(diagnostics)
        .unwrap_err();
    assert!(errors[0].message.starts_with("cannot use NVRTC: cannot load `"), "{errors:?}");
    assert!(
        errors[0].message.ends_with("/libnvrtc.so.13`: file too short"),
        "in the loader's words: {errors:?}"
    );
    assert!(errors[0].help.is_some());
}

#[test]
fn without_headers_what_needs_none_is_compiled_and_the_rest_is_told() {
    let Some(whole) = toolkit("without_headers_what_needs_none_is_compiled_and_the_rest_is_told") else {
        return;
    };
    let why = Diagnostic::error("cannot find the CUDA headers").note("what they have").help("fetch them");
    let bare =
        Toolkit { include: Vec::new(), is_pinned: false, without_headers: Some(Box::new(why)), ..whole };
    let folder = tempfile::tempdir().unwrap();
    let session = Session::new(bare, Settings::default(), Cache::disabled()).unwrap();
    let compile = |text: &str| {
        session
            .compile(&session.prepare(unit(folder.path(), text, "k", &[])), target("sm_89"))
            .map_err(diagnostics)
    };
    compile("__global__ void k(float* x) { *x = sqrtf(*x); }").unwrap();
    let errors =
        compile("#include <cuda_fp16.h>\n__global__ void k(__half* x) { *x = *x + *x; }").unwrap_err();
    assert_eq!(errors[0].message, "cannot open source file `cuda_fp16.h`");
    assert_eq!(errors[0].notes, ["cannot find the CUDA headers", "what they have"]);
    assert_eq!(errors[0].help.as_deref(), Some("fetch them"));
    let errors = compile("#include \"mine.h\"\n__global__ void k(float* x) {}").unwrap_err();
    assert_eq!(errors[0].notes, [""; 0], "a file of the author's");
    // `f16` needs a CUDA header.
    let half = unit(folder.path(), "__global__ void k(float* x) { }", "k", &[DataType::F16]);
    let errors = session.compile(&session.prepare(half), target("sm_89")).map_err(diagnostics).unwrap_err();
    assert_eq!(errors[0].help.as_deref(), Some("fetch them"), "{errors:?}");
    let errors = compile("#include <vector>\n__global__ void k(float* x) { }").unwrap_err();
    assert!(errors[0].notes.is_empty() && errors[0].help.is_some(), "{errors:?}");
    let errors = compile("__global__ void k(float* x) { *y = 1; }").unwrap_err();
    assert!(errors.iter().all(|error| error.notes.is_empty()), "{errors:?}");
}

#[test]
fn code_that_uses_the_cuda_library_is_kept_with_any_toolkit() {
    let Some(pinned) = toolkit("code_that_uses_the_cuda_library_is_kept_with_any_toolkit") else { return };
    let installed = Toolkit { is_pinned: false, ..pinned.clone() };
    let cache = tempfile::tempdir().unwrap();
    let text =
        "#include <cuda/std/array>\n__global__ void k(cuda::std::array<int, 2> a, int* x) { *x = a[1]; }\n";
    for toolkit in [pinned, installed] {
        for calls in [1, 0] {
            let session = session(&toolkit, cache.path());
            let compiled =
                session.compile(&session.prepare(unit(Path::new("."), text, "k", &[])), target("sm_89"));
            assert_eq!(compiled.unwrap().object.kernels[0].params.len(), 2);
            assert_eq!(session.statistics().nvrtc_calls, calls);
        }
    }
}

#[test]
fn headers_are_named_from_the_toolkit_on_wherever_it_lies() {
    let found = |folders: [&str; 2], inner: &str| {
        let folder = tempfile::tempdir().unwrap();
        let include = folders.map(|name| folder.path().join(name));
        let write = |path: &Path, text: &str| {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(&folder.path().join("libnvrtc.so.13"), "none");
        write(&include[0].join("outer.h"), "#include <nv/inner.h>\n");
        write(&include[1].join("nv/inner.h"), inner);
        write(&folder.path().join("own.h"), "");
        let toolkit = Toolkit {
            nvrtc: folder.path().join("libnvrtc.so.13"),
            include: include.to_vec(),
            is_pinned: false,
            without_headers: None,
        };
        let session = Session::new(toolkit, Settings::default(), Cache::disabled()).unwrap();
        let text = "#include <outer.h>\n#include \"own.h\"\n";
        let prepared = session.prepare(unit(folder.path(), text, "k", &[]));
        let found = session.found_headers(&prepared);
        found.map(|(name, digest)| (name.display().to_string(), digest)).collect::<BTreeMap<_, _>>()
    };
    let installed = found(["include", "include/cccl"], "1");
    assert_eq!(installed.keys().collect::<Vec<_>>(), ["nv/inner.h", "outer.h"]);
    assert_eq!(found(["one/include", "other/include/cccl"], "1"), installed);
    let changed = found(["include", "include/cccl"], "2");
    assert_ne!(changed["nv/inner.h"], installed["nv/inner.h"]);
    assert_eq!(changed["outer.h"], installed["outer.h"]);
}
