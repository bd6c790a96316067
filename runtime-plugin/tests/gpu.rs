//! Loads and launches on a real GPU; skipped without one unless `CUBINDER_REQUIRE_GPU` is set.

#![allow(unsafe_code)] // calls the driver
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

#[path = "support/plugin.rs"]
#[allow(dead_code)]
mod the_plugin;

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use cubinder::code::{Candidate, CodeTable, LoadedKernel, Loading, Reason};
use cubinder::driver::Driver;
use cubinder::driver::sys::CUcontext;
use cubinder::driver::sys::CUstream;
use cubinder::launch::{Addresses, StepRecord, takes};
use cubinder_launch::{Steps, sequence};
use cubinder_model::{CodeBytes, Digest, Step, Target, Variant};
use the_plugin::{I32, Shapes, all_given, int, launch, numel, plugin, scalar, tensor};

const PTX: &str = include_str!("support/add_one.ptx");
const COUNT: usize = 1000;
const SHARED_BYTES: i64 = 56320 + 1024;

macro_rules! driver_function {
    ($name:literal, $($arg:ty),*) => {{
        // SAFETY: a loaded driver, signatures of `cuda.h` 13.0.
        unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
            let function = libc::dlsym(library, $name.as_ptr());
            assert!(!function.is_null());
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> c_int>(function)
        }
    }};
}

fn gpu() -> Option<&'static Driver> {
    let reason = match Driver::find() {
        Err(error) => error.to_string(),
        Ok(driver) => {
            let mut count = 0;
            let init = driver_function!(c"cuInit", c_uint);
            let device_count = driver_function!(c"cuDeviceGetCount", *mut c_int);
            // SAFETY: signatures of `cuda.h`; `count` holds one number.
            let code = unsafe { init(0) | device_count(&raw mut count) };
            if code == 0 && count > 0 {
                return Some(driver);
            }
            format!("the driver reports {count} devices (result {code})")
        }
    };
    assert!(std::env::var_os("CUBINDER_REQUIRE_GPU").is_none(), "no GPU: {reason}");
    println!("skipped: no GPU: {reason}");
    None
}

fn in_primary_context<T>(work: impl FnOnce() -> T) -> T {
    let retain = driver_function!(c"cuDevicePrimaryCtxRetain", *mut CUcontext, c_int);
    let push = driver_function!(c"cuCtxPushCurrent_v2", CUcontext);
    let pop = driver_function!(c"cuCtxPopCurrent_v2", *mut CUcontext);
    let release = driver_function!(c"cuDevicePrimaryCtxRelease_v2", c_int);
    let mut context = CUcontext::NULL;
    // SAFETY: signatures of `cuda.h`; the first call stores the handle in `context`.
    let codes = unsafe { (retain(&raw mut context, 0), push(context)) };
    assert_eq!(codes, (0, 0));
    let result = work();
    // SAFETY: undoes the calls above in this thread.
    let codes = unsafe { (pop(&raw mut context), release(0)) };
    assert_eq!(codes, (0, 0));
    result
}

fn hollow_cubin() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18..20].copy_from_slice(&190_u16.to_le_bytes());
    bytes
}

fn stored(bytes: &[u8]) -> (Digest, CodeBytes) {
    (Digest::compute(bytes), CodeBytes::pack(bytes.to_vec()))
}

fn candidate<'a>(target: &str, (digest, bytes): &'a (Digest, CodeBytes), symbol: &'a str) -> Candidate<'a> {
    let target = target.parse::<Target>().unwrap();
    Candidate { target, digest: *digest, bytes, symbol, facts: None }
}

fn run(driver: &Driver, table: &CodeTable, kernel: &LoadedKernel) {
    let allocate = driver_function!(c"cuMemAlloc_v2", *mut *mut c_void, usize);
    let free = driver_function!(c"cuMemFree_v2", *mut c_void);
    let upload = driver_function!(c"cuMemcpyHtoD_v2", *mut c_void, *const c_void, usize);
    let download = driver_function!(c"cuMemcpyDtoH_v2", *mut c_void, *const c_void, usize);
    let synchronize = driver_function!(c"cuCtxSynchronize",);
    let mut launch = launch();
    launch.kernel = "add_one".to_owned();
    launch.grid[0] = int(4);
    launch.shared_bytes = int(SHARED_BYTES);
    launch.args = vec![tensor("x", 0), tensor("y", 1), scalar("count", I32, numel(0))];
    let shapes = Shapes(vec![vec![COUNT as i64], vec![COUNT as i64]]);
    let plugin = plugin();
    let variant = Variant { steps: vec![Step::launch(launch)], ..plugin.variants[0].clone() };
    let found = sequence(&plugin, &variant, |_| takes(kernel), &shapes, &mut Steps::default()).unwrap();
    let records = StepRecord::all(&plugin, &variant, &[Some(kernel.clone())], &found, &all_given(1)).unwrap();
    let record = records.first().unwrap();
    table
        .allow_shared(driver, kernel, record.launch().unwrap().description().configuration.shared_bytes)
        .unwrap();

    let bytes = COUNT * 4;
    let given: Vec<f32> = (0..COUNT).map(|index| index as f32 / 8.0).collect();
    let mut found = vec![0_f32; COUNT];
    let (mut x, mut y) = (null_mut(), null_mut());
    // SAFETY: buffers of the named sizes; the kernel accesses `COUNT` floats.
    unsafe {
        assert_eq!(allocate(&raw mut x, bytes), 0);
        assert_eq!(allocate(&raw mut y, bytes), 0);
        assert_eq!(upload(x, given.as_ptr().cast(), bytes), 0);
        let at = Addresses { inputs: &[x.cast_const()], outputs: &[y], workspace: null_mut() };
        record.enqueue(driver, &at, CUstream::NULL).unwrap();
        assert_eq!(synchronize(), 0);
        assert_eq!(download(found.as_mut_ptr().cast(), y, bytes), 0);
        assert_eq!((free(x), free(y)), (0, 0));
    }
    let expected: Vec<f32> = given.iter().map(|value| value + 1.0).collect();
    assert_eq!(found, expected);
}

/// Loads during another thread's global-mode capture.
fn load_while_capturing(driver: &'static Driver, table: &CodeTable) {
    let create = driver_function!(c"cuStreamCreate", *mut CUstream, c_uint);
    let begin = driver_function!(c"cuStreamBeginCapture_v2", CUstream, c_int);
    let end = driver_function!(c"cuStreamEndCapture", CUstream, *mut *mut c_void);
    let destroy = driver_function!(c"cuStreamDestroy_v2", CUstream);
    let other = format!("// another digest\n{PTX}");
    let mut stream = CUstream::NULL;
    let mut graph = null_mut();
    let turn = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let load = || {
            turn.wait(); // the capture starts
            turn.wait();
            let other = stored(other.as_bytes());
            let candidates = [candidate("compute_75", &other, "add_one")];
            let loaded = table.load(driver, "add_one", &candidates);
            turn.wait(); // the capture ends
            turn.wait();
            loaded
        };
        let loading = scope.spawn(move || in_primary_context(load));
        turn.wait();
        // SAFETY: signatures of `cuda.h`; 1 is `CU_STREAM_NON_BLOCKING`, 0 is `CU_STREAM_CAPTURE_MODE_GLOBAL`.
        let begun = unsafe { (create(&raw mut stream, 1), begin(stream, 0)) };
        turn.wait();
        turn.wait();
        // SAFETY: as above.
        let ended = unsafe { (end(stream, &raw mut graph), destroy(stream)) };
        turn.wait();
        assert_eq!((begun, ended), ((0, 0), (0, 0)), "the capture is complete");
        assert!(matches!(loading.join().unwrap(), Ok(Loading::Loaded(_))));
    });
}

#[test]
fn a_kernel_is_chosen_loaded_and_launched() {
    let Some(driver) = gpu() else { return };
    let table = CodeTable::new();
    assert!(matches!(table.load(driver, "add_one", &[]), Ok(Loading::NoContext)));
    in_primary_context(|| choose_load_and_launch(driver, &table));
}

fn choose_load_and_launch(driver: &'static Driver, table: &CodeTable) {
    let capability = driver.compute_capability(0).unwrap();
    let exact = format!("sm_{}{}", capability.major, capability.minor);
    let hollow = stored(&hollow_cubin());
    let ptx = stored(PTX.as_bytes());
    let candidates = [candidate("compute_75", &ptx, "add_one"), candidate(&exact, &hollow, "add_one")];
    let kernel = match table.load(driver, "add_one", &candidates) {
        Ok(Loading::Loaded(kernel)) => kernel,
        other => panic!("{other:?}"),
    };
    assert_eq!(kernel.target.to_string(), "compute_75");
    let refused: Vec<String> = kernel.refused.iter().map(ToString::to_string).collect();
    eprintln!("refused: {refused:?}\nlimits: {:?}", kernel.limits);
    assert!(matches!(&kernel.refused[..], [one] if matches!(one.reason, Reason::Driver(_))));
    // Sizes are unknown before CUDA 12.4.
    assert!(kernel.params.is_none() || kernel.params.as_deref() == Some(&[8, 8, 4][..]));
    run(driver, table, &kernel);
    load_while_capturing(driver, table);

    let absent = [candidate("compute_75", &ptx, "add_two")];
    eprintln!("{}", table.load(driver, "add_two", &absent).unwrap_err());
    // SAFETY: all launches have completed.
    unsafe { table.unload_all(driver) }.unwrap();
}
