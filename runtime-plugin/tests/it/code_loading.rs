use crate::support::{self, Device, Mock, cubin};
use crate::the_plugin;
use cubinder::code::{Candidate, CodeTable, LoadError, LoadedKernel, Loading, Reason, candidates};
use cubinder::driver::Driver;
use cubinder_model::{CodeBytes, CodeObject, CodeRef, Digest, KernelFacts, KernelParam, Target, TargetKind};

/// A code object's label is its target.
struct Carried(Vec<(Target, Digest, CodeBytes)>);

impl Carried {
    fn new(targets: &str) -> Carried {
        let bytes = |target: Target| match target.kind {
            TargetKind::Cubin => cubin(&target.to_string()),
            TargetKind::Ptx | TargetKind::Native => target.to_string().into_bytes(),
        };
        let targets = targets.split_whitespace().map(|text| text.parse::<Target>().unwrap());
        let stored = |target, bytes: Vec<u8>| (target, Digest::compute(&bytes), CodeBytes::from(bytes));
        Carried(targets.map(|target| stored(target, bytes(target))).collect())
    }

    fn candidates(&self) -> Vec<Candidate<'_>> {
        let mut candidates = Vec::new();
        for (target, digest, bytes) in &self.0 {
            let (target, digest) = (*target, *digest);
            candidates.push(Candidate { target, digest, bytes, symbol: "kernel", facts: None });
        }
        candidates
    }

    fn load(&self, table: &CodeTable, driver: &Driver) -> Result<Loading, LoadError> {
        table.load(driver, "circ_pad<float, 4>", &self.candidates())
    }

    fn loaded(&self, table: &CodeTable, driver: &Driver) -> LoadedKernel {
        match self.load(table, driver) {
            Ok(Loading::Loaded(kernel)) => kernel,
            other => panic!("{other:?}"),
        }
    }
}

fn refusing(
    call: &'static str,
    labels: &[&'static str],
    code: i32,
) -> Vec<(&'static str, &'static str, i32)> {
    labels.iter().map(|label| (call, *label, code)).collect()
}

#[test]
fn everything_is_done_at_once_in_relaxed_mode() {
    let mock = Mock::new(Device::default());
    let table = CodeTable::new();
    let kernel = Carried::new("sm_80 sm_86 compute_80").loaded(&table, &mock.driver);
    assert_eq!(kernel.target.to_string(), "sm_86");
    assert_eq!((kernel.limits.max_threads, kernel.limits.max_shared_bytes), (512, 100_352));
    assert_eq!(kernel.params.as_deref(), Some(&[8, 8, 4][..]));
    assert!(kernel.refused.is_empty());
    assert_eq!(
        mock.work(),
        [
            "cuThreadExchangeStreamCaptureMode",
            "cuLibraryLoadData sm_86",
            "cuLibraryGetKernel sm_86",
            "cuKernelGetFunction sm_86",
            "cuFuncLoad sm_86",
            "cuThreadExchangeStreamCaptureMode",
        ]
    );
    assert_eq!(mock.capture_mode(), 0);
}

#[test]
fn code_that_the_device_cannot_run_is_not_tried_first() {
    for (targets, loaded) in [
        ("sm_89 sm_90 sm_120 compute_80", "sm_90"),
        ("sm_89 sm_100 compute_80", "compute_80"),
        ("sm_80 sm_90a sm_90 compute_90", "sm_90a"),
    ] {
        let mock = Mock::new(Device { capability: (9, 0), ..Device::default() });
        let kernel = Carried::new(targets).loaded(&CodeTable::new(), &mock.driver);
        assert_eq!(kernel.target.to_string(), loaded);
        assert_eq!(mock.ever_loaded(), [loaded], "the driver got no other code");
    }
}

#[test]
fn what_the_driver_refuses_is_followed_by_the_next() {
    // Reported as 8.9, behaves as 9.0.
    let mock = Mock::new(Device {
        capability: (8, 9),
        refuses: [
            refusing("cuLibraryLoadData", &["sm_89"], 209),
            refusing("cuKernelGetFunction", &["sm_86"], 209),
            refusing("cuFuncLoad", &["sm_80"], 209),
            refusing("cuLibraryLoadData", &["compute_80"], 222),
        ]
        .concat(),
        ..Device::default()
    });
    let table = CodeTable::new();
    let carried = Carried::new("compute_80 sm_80 sm_86 sm_89 sm_90 sm_120");
    let kernel = carried.loaded(&table, &mock.driver);
    assert_eq!(kernel.target.to_string(), "sm_90");
    let tried: Vec<String> = kernel.refused.iter().map(|refused| refused.target.to_string()).collect();
    assert_eq!(tried, ["sm_89", "sm_86", "sm_80", "compute_80"]);

    let before = mock.call_count();
    mock.change(|_| {});
    assert!(before > 0);
    assert_eq!(carried.loaded(&table, &mock.driver).handle, kernel.handle);
    assert_eq!(mock.count("cuLibraryLoadData"), 0);
    assert_eq!(mock.count("cuKernelGetFunction"), 1);
    assert_eq!(mock.count("cuFuncLoad"), 1);
}

#[test]
fn where_nothing_loads_the_error_names_device_targets_and_command() {
    let labels = ["sm_80", "sm_90", "compute_80"];
    let mock = Mock::new(Device {
        capability: (12, 0),
        refuses: [
            refusing("cuLibraryLoadData", &labels[..2], 209),
            refusing("cuLibraryLoadData", &labels[2..], 222),
        ]
        .concat(),
        ..Device::default()
    });
    let table = CodeTable::new();
    let mut carried = Carried::new("sm_80 sm_90 compute_80 compute_90");
    carried.0[3].2 = CodeBytes::from(b"a\0b".to_vec());
    let error = carried.load(&table, &mock.driver).unwrap_err();
    insta::assert_snapshot!("nothing_fits", told(&error));
    assert!(mock.living().is_empty());

    let none = Carried::new("").load(&table, &mock.driver).unwrap_err();
    insta::assert_snapshot!("nothing_carried", told(&none));

    mock.change(|device| device.refuses = refusing("cuKernelGetFunction", &["*"], 209));
    let exact = Carried::new("sm_120").load(&table, &mock.driver).unwrap_err();
    insta::assert_snapshot!("exact_refused", told(&exact));
}

#[test]
fn trouble_that_is_not_the_codes_ends_the_search() {
    for (code, call) in [
        (2, "cuLibraryLoadData"),
        (719, "cuKernelGetFunction"),
        (900, "cuFuncLoad"),
        // Another kernel's sticky errors.
        (700, "cuLibraryLoadData"),
        (721, "cuLibraryLoadData"),
        (911, "cuKernelGetFunction"),
    ] {
        let mock = Mock::new(Device { refuses: refusing(call, &["*"], code), ..Device::default() });
        let table = CodeTable::new();
        let carried = Carried::new("sm_86 compute_80");
        let error = carried.load(&table, &mock.driver).unwrap_err();
        assert!(
            matches!(&error, LoadError::Driver { error, .. } if error.code == code && error.call == call)
        );
        assert_eq!(mock.capture_mode(), 0);
        if code == 2 {
            insta::assert_snapshot!("out_of_memory", told(&error));
        }
        mock.change(|device| device.refuses.clear());
        assert_eq!(carried.loaded(&table, &mock.driver).target.to_string(), "sm_86");
    }
}

#[test]
fn an_error_of_unknown_meaning_is_tried_again_next_time() {
    let mock =
        Mock::new(Device { refuses: refusing("cuLibraryLoadData", &["sm_86"], 999), ..Device::default() });
    let table = CodeTable::new();
    let carried = Carried::new("sm_86 compute_80");
    assert_eq!(carried.loaded(&table, &mock.driver).target.to_string(), "compute_80");
    mock.change(|device| device.refuses.clear());
    assert_eq!(carried.loaded(&table, &mock.driver).target.to_string(), "sm_86");
}

#[test]
fn without_a_context_nothing_is_loaded_and_nothing_fails() {
    for context in [Ok(false), Err(3)] {
        let mock = Mock::new(Device { context, ..Device::default() });
        let table = CodeTable::new();
        let carried = Carried::new("sm_86");
        assert!(matches!(carried.load(&table, &mock.driver), Ok(Loading::NoContext)));
        assert_eq!(mock.call_count(), 1);
        mock.change(|device| device.context = Ok(true));
        carried.loaded(&table, &mock.driver);
    }
}

#[test]
fn sixteen_threads_load_each_code_object_once() {
    let mock = Mock::new(Device::default());
    let table = CodeTable::new();
    let carried = [Carried::new("sm_86"), Carried::new("sm_80"), Carried::new("compute_86")];
    let start = std::sync::Barrier::new(16);
    std::thread::scope(|scope| {
        for index in 0..16 {
            let (table, driver, carried, start, mock) = (&table, &mock.driver, &carried, &start, &mock);
            scope.spawn(move || {
                start.wait();
                for round in 0..20 {
                    carried[(index + round) % 3].loaded(table, driver);
                    assert_eq!(mock.capture_mode(), 0);
                }
            });
        }
    });
    assert_eq!(mock.count("cuLibraryLoadData"), 3);
    assert_eq!(mock.count("cuLibraryGetKernel"), 3);
    let mut loaded = mock.ever_loaded();
    loaded.sort();
    assert_eq!(loaded, ["compute_86", "sm_80", "sm_86"]);
    // SAFETY: no kernel is in use.
    unsafe { table.unload_all(&mock.driver) }.unwrap();
    assert!(mock.living().is_empty());
}

#[test]
fn slow_loading_holds_up_nobody_who_needs_other_code() {
    let mock = Mock::new(Device { slow: Some(("compute_80", "sm_86")), ..Device::default() });
    let table = CodeTable::new();
    let known = Carried::new("sm_80").loaded(&table, &mock.driver);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| Carried::new("compute_80").loaded(&table, &mock.driver));
        }
        assert!(support::wait_for(|| mock.count("compiling") == 1));
        table.allow_shared(&mock.driver, &known, 60_000).unwrap();
        Carried::new("sm_86").loaded(&table, &mock.driver);
    });
    assert_eq!(mock.ever_loaded(), ["sm_80", "sm_86", "compute_80"]);
}

#[test]
fn a_failure_at_any_call_leaves_nothing_behind() {
    for code in [2, 209, 999] {
        for at in 1.. {
            let mock = Mock::new(Device { fail_at: Some((at, code)), ..Device::default() });
            let table = CodeTable::new();
            let carried = Carried::new("sm_86 sm_80 compute_80");
            let result = carried.load(&table, &mock.driver);
            let calls = mock.call_count();
            if calls < at {
                assert!(matches!(result, Ok(Loading::Loaded(_))));
                assert!(at > 15, "every call failed once");
                break;
            }
            let restoring_failed = calls == at && mock.last_call() == "cuThreadExchangeStreamCaptureMode";
            if restoring_failed {
                assert!(matches!(result, Err(LoadError::Driver { .. })), "call {at}: {result:?}");
            } else {
                assert_eq!(mock.capture_mode(), 0, "call {at} fails with {code}");
            }
            mock.change(|device| device.fail_at = None);
            let kernel = carried.loaded(&table, &mock.driver);
            assert_eq!(kernel.params.as_deref(), Some(&[8, 8, 4][..]), "after call {at}");
            let mut loaded = mock.ever_loaded();
            let count = loaded.len();
            loaded.sort();
            loaded.dedup();
            assert_eq!(loaded.len(), count, "call {at} fails with {code}");
            // SAFETY: as above.
            unsafe { table.unload_all(&mock.driver) }.unwrap();
            assert!(mock.living().is_empty() && !mock.unloaded_twice());
        }
    }
}

#[test]
fn the_capture_mode_is_restored_where_the_work_panics() {
    let mock = Mock::new(Device::default());
    let panicking = std::panic::AssertUnwindSafe(|| {
        cubinder::driver::in_relaxed_capture_mode::<(), cubinder::driver::DriverError>(&mock.driver, || {
            assert_eq!(mock.capture_mode(), 2);
            panic!("as a test")
        })
    });
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!(mock.capture_mode(), 0);
}

fn filled(mock: &Mock) -> CodeTable {
    let table = CodeTable::new();
    for target in ["sm_86", "sm_80", "compute_80"] {
        Carried::new(target).loaded(&table, &mock.driver);
    }
    table
}

#[test]
fn unloading_is_done_in_relaxed_mode() {
    let mock = Mock::new(Device::default());
    let table = filled(&mock);
    mock.change(|_| {});
    // SAFETY: as above.
    unsafe { table.unload_all(&mock.driver) }.unwrap();
    let calls = mock.work();
    assert_eq!(calls.first().map(String::as_str), Some("cuThreadExchangeStreamCaptureMode"));
    assert_eq!(calls.last().map(String::as_str), Some("cuThreadExchangeStreamCaptureMode"));
    assert_eq!((calls.len(), mock.count("cuLibraryUnload")), (5, 3));
    assert!(mock.living().is_empty());
    assert_eq!(mock.capture_mode(), 0);
    // SAFETY: as above.
    unsafe { table.unload_all(&mock.driver) }.unwrap();
    assert_eq!(mock.call_count(), 5, "an empty table calls nothing");
}

#[test]
fn code_that_the_driver_refuses_to_unload_is_kept_and_tried_again() {
    let mock = Mock::new(Device::default());
    let table = filled(&mock);
    mock.change(|device| device.refuses = refusing("cuLibraryUnload", &["sm_80"], 1));
    // SAFETY: as above.
    let error = unsafe { table.unload_all(&mock.driver) }.unwrap_err();
    assert_eq!((error.code, error.call), (1, "cuLibraryUnload"));
    assert_eq!((mock.count("cuLibraryUnload"), mock.living()), (3, vec!["sm_80".to_owned()]));

    mock.change(|_| {});
    assert!(!Carried::new("sm_80").loaded(&table, &mock.driver).is_first);
    assert_eq!(mock.count("cuLibraryLoadData"), 0);

    mock.change(|device| device.refuses.clear());
    // SAFETY: as above.
    unsafe { table.unload_all(&mock.driver) }.unwrap();
    assert_eq!(mock.count("cuLibraryUnload"), 1);
    assert!(mock.living().is_empty() && !mock.unloaded_twice());
}

#[test]
fn a_process_has_one_table() {
    assert!(std::ptr::eq(CodeTable::process(), CodeTable::process()));
}

#[test]
fn closing_a_table_tries_refused_code_once_more() {
    for (code, calls) in [(1, 4), (4, 1)] {
        let mock = Mock::new(Device::default());
        let table = filled(&mock);
        let refused = if code == 1 { "sm_80" } else { "*" };
        mock.change(|device| device.refuses = refusing("cuLibraryUnload", &[refused], code));
        // SAFETY: as above.
        unsafe { table.close(&mock.driver) };
        assert_eq!(mock.count("cuLibraryUnload"), calls, "{code}");
        mock.change(|device| device.refuses.clear());
        // SAFETY: as above.
        unsafe { table.unload_all(&mock.driver) }.unwrap();
        assert_eq!(mock.call_count(), 0, "a closed table is empty");
    }
}

#[test]
fn code_is_unloaded_where_the_capture_mode_cannot_be_changed() {
    const EXCHANGE: &str = "cuThreadExchangeStreamCaptureMode";
    let mock = Mock::new(Device::default());
    let table = filled(&mock);
    mock.change(|device| {
        device.other_captures = false;
        device.refuses = refusing(EXCHANGE, &[""], 700);
        device.refuses.extend(refusing("cuLibraryUnload", &["sm_80"], 700));
    });
    // SAFETY: as above.
    let error = unsafe { table.unload_all(&mock.driver) }.unwrap_err();
    assert_eq!((error.code, error.call), (700, "cuLibraryUnload"));
    assert_eq!((mock.count("cuLibraryUnload"), mock.living()), (3, vec!["sm_80".to_owned()]));

    mock.change(|device| device.refuses = refusing(EXCHANGE, &[""], 700));
    // SAFETY: as above.
    let error = unsafe { table.unload_all(&mock.driver) }.unwrap_err();
    assert_eq!((error.code, error.call), (700, EXCHANGE));
    assert_eq!((mock.count("cuLibraryUnload"), mock.living()), (1, Vec::new()));

    mock.change(|device| device.refuses.clear());
    let table = filled(&mock);
    mock.change(|device| {
        device.other_captures = true;
        device.fail_at = Some((1, 999));
    });
    // SAFETY: as above.
    unsafe { table.unload_all(&mock.driver) }.unwrap();
    assert_eq!((mock.count(EXCHANGE), mock.count("cuLibraryUnload"), mock.living()), (3, 3, Vec::new()));
    mock.change(|device| device.fail_at = None);

    mock.change(|device| device.refuses.clear());
    let table = filled(&mock);
    mock.change(|device| device.refuses = refusing(EXCHANGE, &[""], 4));
    // SAFETY: as above.
    let error = unsafe { table.unload_all(&mock.driver) }.unwrap_err();
    assert_eq!((error.code, mock.count("cuLibraryUnload")), (4, 0));
}

#[test]
fn a_driver_that_has_shut_down_is_asked_once() {
    let mock = Mock::new(Device::default());
    let table = filled(&mock);
    mock.change(|device| device.refuses = refusing("cuLibraryUnload", &["*"], 4));
    // SAFETY: as above.
    let error = unsafe { table.unload_all(&mock.driver) }.unwrap_err();
    assert_eq!((error.code, mock.count("cuLibraryUnload")), (4, 1));
    assert_eq!(mock.capture_mode(), 0);
}

#[test]
fn shared_memory_is_only_ever_raised() {
    let mock = Mock::new(Device::default());
    let table = CodeTable::new();
    let kernel = Carried::new("sm_86").loaded(&table, &mock.driver);
    for bytes in [0, 47 * 1024, 60_000, 50_000, 60_000, 60_001] {
        table.allow_shared(&mock.driver, &kernel, bytes).unwrap();
    }
    assert_eq!(mock.shared(), [60_000, 60_001]);
    mock.change(|device| device.refuses = refusing("cuKernelSetAttribute", &["*"], 1));
    let error = table.allow_shared(&mock.driver, &kernel, u32::MAX).unwrap_err();
    assert_eq!(error.code, 1);
    assert_eq!(mock.capture_mode(), 0);
    mock.change(|device| device.refuses.clear());
    table.allow_shared(&mock.driver, &kernel, 60_002).unwrap();
    assert_eq!(mock.shared(), [60_000, 60_001, 60_002], "a rejected value is not treated as allowed");
}

#[test]
fn an_older_driver_leaves_the_parameters_to_the_model() {
    let mock = Mock::new(Device::default());
    // SAFETY: the mock's functions before CUDA 12.4.
    let old = unsafe {
        Driver::from_lookup(|name| match name.to_bytes() {
            b"cuFuncLoad" | b"cuKernelGetParamInfo" => std::ptr::null_mut(),
            _ => support::lookup(name),
        })
    }
    .unwrap();
    let facts = KernelFacts {
        symbol: "kernel".to_owned(),
        registers: None,
        shared_bytes: None,
        local_bytes: None,
        max_threads: None,
        params: vec![KernelParam { offset: 0, size: 8 }, KernelParam { offset: 8, size: 4 }],
    };
    let load = |table: &CodeTable, target: &str, facts: Option<&KernelFacts>| {
        let carried = Carried::new(target);
        let mut candidates = carried.candidates();
        candidates[0].facts = facts;
        table.load(&old, "k", &candidates)
    };
    for target in ["sm_86", "compute_86"] {
        let table = CodeTable::new();
        let mut facts = facts.clone();
        for expected in [&[8_u32, 4][..], &[]] {
            let Ok(Loading::Loaded(kernel)) = load(&table, target, Some(&facts)) else { panic!("{target}") };
            assert_eq!(kernel.params.as_deref(), Some(expected), "{target}");
            facts.params.clear();
        }
        let error = load(&table, target, None).unwrap_err();
        let LoadError::NothingFits { refused, .. } = error else { panic!("{error}") };
        assert_eq!(refused[0].reason, Reason::UnknownParameters);
    }
    insta::assert_snapshot!("unknown_parameters", told(&load(&CodeTable::new(), "sm_86", None).unwrap_err()));
    assert_eq!(mock.count("cuFuncLoad"), 0);
}

fn packed(target: &str) -> Carried {
    let mut carried = Carried::new(target);
    for (_, digest, bytes) in &mut carried.0 {
        // The driver reads to the first NUL.
        let long = [bytes.stored(), &[0; 512]].concat();
        *digest = Digest::compute(&long);
        *bytes = CodeBytes::pack(long);
        assert!(bytes.is_packed());
    }
    carried
}

#[test]
fn compressed_code_is_unpacked_once_for_all_who_want_it() {
    let mock = Mock::new(Device::default());
    let table = CodeTable::new();
    let carried = packed("sm_86");
    let first = carried.loaded(&table, &mock.driver);
    let second = packed("sm_86").loaded(&table, &mock.driver);
    assert_eq!(first.handle, second.handle);
    assert_eq!(mock.count("cuLibraryLoadData"), 1);
}

#[test]
fn damaged_compressed_code_is_refused_and_does_not_stand_in_the_way_of_good() {
    let mock = Mock::new(Device::default());
    let table = CodeTable::new();
    let good = packed("sm_86");
    let mut damaged = packed("sm_86");
    // Another object's code.
    damaged.0[0].2 = packed("sm_80").0[0].2.clone();
    let error = told(&damaged.load(&table, &mock.driver).unwrap_err());
    assert!(error.contains("sm_86: it is damaged: its digest does not match"), "{error}");
    assert!(error.ends_with("or rebuild them"), "{error}");
    assert_eq!(mock.count("cuLibraryLoadData"), 0);
    assert!(good.loaded(&table, &mock.driver).is_first);
}

#[test]
fn candidates_are_what_the_model_lists() {
    let facts = KernelFacts {
        symbol: "b".to_owned(),
        registers: Some(8),
        shared_bytes: None,
        local_bytes: None,
        max_threads: None,
        params: Vec::new(),
    };
    let object = |target: &str, kernels: &[KernelFacts]| {
        let bytes = target.as_bytes().to_vec();
        let (target, digest) = (target.parse().unwrap(), Digest::compute(&bytes));
        CodeObject { target, digest, kernels: kernels.to_vec(), bytes: bytes.into() }
    };
    let code = [object("sm_80", &[]), object("compute_80", std::slice::from_ref(&facts))];
    let reference = |target: &str, code, symbol: &str| CodeRef {
        target: target.parse().unwrap(),
        code,
        symbol: symbol.to_owned(),
    };
    let mut launch = the_plugin::launch();
    launch.code = vec![reference("compute_80", 1, "b"), reference("sm_80", 0, "a")];
    let found = candidates(&launch, &code).unwrap();
    let found: Vec<_> = found.iter().map(|one| (one.bytes, one.digest, one.symbol, one.facts)).collect();
    let expected =
        [(&code[1].bytes, code[1].digest, "b", Some(&facts)), (&code[0].bytes, code[0].digest, "a", None)];
    assert_eq!(found, expected);

    launch.code.push(reference("sm_90", 2, "a"));
    insta::assert_snapshot!("no_such_code", told(&candidates(&launch, &code).unwrap_err()));
}

fn told(error: &LoadError) -> String {
    format!("{error}\n{}", error.help())
}
