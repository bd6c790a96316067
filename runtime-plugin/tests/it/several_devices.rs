//! Several GPUs, contexts and threads: code is loaded once, prepared once per device; errors stay local.

use std::sync::Barrier;

use crate::support::{Device, Mock, cubin, set_current};
use cubinder::code::{Candidate, CodeTable, LoadError, LoadedKernel, Loading};
use cubinder_model::{CodeBytes, Digest, Target, TargetKind};

struct Carried(Vec<(Target, Digest, CodeBytes)>);

impl Carried {
    fn new(targets: &str) -> Carried {
        let stored = |text: &str| {
            let target: Target = text.parse().unwrap();
            let bytes = match target.kind {
                TargetKind::Cubin => cubin(text),
                TargetKind::Ptx | TargetKind::Native => text.as_bytes().to_vec(),
            };
            (target, Digest::compute(&bytes), CodeBytes::from(bytes))
        };
        Carried(targets.split_whitespace().map(stored).collect())
    }

    fn load(&self, table: &CodeTable, mock: &Mock) -> Result<LoadedKernel, LoadError> {
        let mut candidates = Vec::new();
        for (target, digest, bytes) in &self.0 {
            let (target, digest) = (*target, *digest);
            candidates.push(Candidate { target, digest, bytes, symbol: "kernel", facts: None });
        }
        match table.load(&mock.driver, "kernel", &candidates)? {
            Loading::Loaded(kernel) => Ok(kernel),
            Loading::NoContext => panic!("the mock has a context"),
        }
    }
}

fn two_devices() -> Mock {
    Mock::new(Device { others: vec![(9, 0)], ..Device::default() })
}

#[test]
fn eight_threads_on_two_devices_load_each_code_object_once() {
    const ROUNDS: usize = 50;
    let mock = two_devices();
    let table = CodeTable::new();
    let carried = Carried::new("sm_80 sm_86 sm_90 compute_80");
    let start = Barrier::new(8);
    let loaded: Vec<Vec<LoadedKernel>> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let (table, mock, carried, start) = (&table, &mock, &carried, &start);
            scope.spawn(move || {
                set_current((thread % 2) as i32, thread / 2 % 2);
                start.wait();
                (0..ROUNDS).map(|_| carried.load(table, mock).unwrap()).collect()
            })
        };
        let threads: Vec<_> = (0..8).map(work).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (thread, kernels) in loaded.iter().enumerate() {
        let expected = ["sm_86", "sm_90"][thread % 2];
        for kernel in kernels {
            assert_eq!((kernel.target.to_string().as_str(), kernel.device), (expected, thread as i32 % 2));
            assert_eq!(kernel.handle, loaded[thread % 2][0].handle);
            assert!(kernel.refused.is_empty());
        }
    }
    let mut living = mock.living();
    living.sort_unstable();
    assert_eq!(living, ["sm_86", "sm_90"], "each once, and only code that a device runs");
    for device in 0..2 {
        let firsts = loaded.iter().flatten().filter(|kernel| kernel.device == device && kernel.is_first);
        assert_eq!(firsts.count(), 1, "device {device}");
    }
}

#[test]
fn what_one_device_refuses_another_runs_whichever_asks_first() {
    for refused_first in [false, true] {
        let mock = two_devices();
        let table = CodeTable::new();
        let carried = Carried::new("sm_86");
        for device in if refused_first { [1, 0, 1, 0] } else { [0, 1, 0, 1] } {
            set_current(device, 0);
            match (device, carried.load(&table, &mock)) {
                (0, Ok(kernel)) => assert_eq!(kernel.device, 0),
                (1, Err(error)) => {
                    let error = error.to_string();
                    assert!(error.contains("compute capability 9.0") && error.contains("sm_86: "), "{error}");
                }
                (device, other) => panic!("device {device}: {other:?}"),
            }
        }
        assert_eq!(mock.count("cuLibraryLoadData"), 1);
        // Two on the accepting device; the other's verdict is cached.
        assert_eq!(mock.count("cuKernelGetFunction"), 3);
    }
}

#[test]
fn shared_memory_is_asked_for_on_each_device() {
    let mock = two_devices();
    let table = CodeTable::new();
    let carried = Carried::new("compute_80");
    for device in [0, 1] {
        set_current(device, 0);
        let kernel = carried.load(&table, &mock).unwrap();
        for bytes in [60_000, 50_000, 60_000] {
            table.allow_shared(&mock.driver, &kernel, bytes).unwrap();
        }
    }
    assert_eq!(mock.shared(), [60_000, 60_000], "once for each device");
    assert_eq!(mock.count("cuLibraryLoadData"), 1);
}

/// The new context can have the first one's address.
#[test]
fn code_is_made_ready_in_a_context_that_was_made_again() {
    let mock = Mock::new(Device::default());
    let table = CodeTable::new();
    let carried = Carried::new("sm_86");
    let first = carried.load(&table, &mock).unwrap();
    let again = carried.load(&table, &mock).unwrap();
    set_current(0, 1);
    let elsewhere = carried.load(&table, &mock).unwrap();
    assert!(first.handle == again.handle && first.handle == elsewhere.handle);
    assert_eq!((mock.count("cuLibraryLoadData"), mock.count("cuFuncLoad")), (1, 3));
}

/// Other code may be slower or lack clusters.
#[test]
fn code_that_is_ready_on_a_device_is_not_replaced_there() {
    for code in [1, 209, 999] {
        let mock = Mock::new(Device::default());
        let table = CodeTable::new();
        let carried = Carried::new("sm_86 compute_80");
        let first = carried.load(&table, &mock).unwrap();
        set_current(0, 1);
        mock.change(|device| device.refuses = vec![("cuKernelGetFunction", "sm_86", code)]);
        let error = carried.load(&table, &mock).unwrap_err();
        assert!(matches!(&error, LoadError::Driver { error, .. } if error.code == code), "{error}");
        mock.change(|device| device.refuses.clear());
        assert_eq!(carried.load(&table, &mock).unwrap().handle, first.handle);
    }
}
