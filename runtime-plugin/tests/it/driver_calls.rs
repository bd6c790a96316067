use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::without_provenance_mut;

use crate::support;
use cubinder::driver::sys::{CUcontext, CUfunction, CUkernel, CUresult, CUstream};
use cubinder::driver::{ComputeCapability, Driver, DriverError, EnteredContext, in_relaxed_capture_mode};

struct Script {
    asked: Vec<String>,
    number: c_int,
    code: CUresult,
    name: &'static [u8],
    words: (CUresult, Option<&'static CStr>),
}

const WORKS: Script =
    Script { asked: Vec::new(), number: 7, code: 0, name: b"A GPU\0and more", words: (1, None) };

thread_local! {
    static SCRIPT: RefCell<Script> = const { RefCell::new(WORKS) };
}

fn script<T>(work: impl FnOnce(&mut Script) -> T) -> T {
    SCRIPT.with_borrow_mut(work)
}

fn asked(call: String) -> Result<c_int, CUresult> {
    script(|script| {
        script.asked.push(call);
        if script.code == 0 { Ok(script.number) } else { Err(script.code) }
    })
}

fn write_result(call: String, write: impl FnOnce(c_int)) -> CUresult {
    match asked(call) {
        Ok(number) => {
            write(number);
            0
        }
        Err(code) => code,
    }
}

fn handle(number: c_int) -> *mut c_void {
    without_provenance_mut(usize::try_from(number).unwrap_or_default())
}

unsafe extern "C" fn init(flags: c_uint) -> CUresult {
    write_result(format!("cuInit {flags}"), |_| {})
}

unsafe extern "C" fn version(to: *mut c_int) -> CUresult {
    // SAFETY: `cuda.h` requires valid pointers, also below.
    write_result("cuDriverGetVersion".to_owned(), |number| unsafe { *to = number })
}

unsafe extern "C" fn current_context(to: *mut CUcontext) -> CUresult {
    // SAFETY: as above.
    write_result("cuCtxGetCurrent".to_owned(), |number| unsafe { *to = CUcontext::from_raw(handle(number)) })
}

unsafe extern "C" fn context_id(context: CUcontext, to: *mut u64) -> CUresult {
    // SAFETY: as above.
    write_result(format!("cuCtxGetId {}", context.as_raw() as usize), |number| unsafe {
        *to = number.try_into().unwrap();
    })
}

unsafe extern "C" fn current_device(to: *mut c_int) -> CUresult {
    // SAFETY: as above.
    write_result("cuCtxGetDevice".to_owned(), |number| unsafe { *to = number })
}

unsafe extern "C" fn stream_context(stream: CUstream, to: *mut CUcontext) -> CUresult {
    // SAFETY: as above.
    write_result(format!("cuStreamGetCtx {}", stream.as_raw() as usize), |_| unsafe {
        *to = CUcontext::from_raw(handle(9));
    })
}

unsafe extern "C" fn push(context: CUcontext) -> CUresult {
    write_result(format!("cuCtxPushCurrent {}", context.as_raw() as usize), |_| {})
}

unsafe extern "C" fn pop(_: *mut CUcontext) -> CUresult {
    write_result("cuCtxPopCurrent".to_owned(), |_| {})
}

unsafe extern "C" fn device(to: *mut c_int, ordinal: c_int) -> CUresult {
    // SAFETY: as above.
    write_result(format!("cuDeviceGet {ordinal}"), |number| unsafe { *to = number })
}

unsafe extern "C" fn device_count(to: *mut c_int) -> CUresult {
    // SAFETY: as above.
    write_result("cuDeviceGetCount".to_owned(), |number| unsafe { *to = number })
}

unsafe extern "C" fn device_attribute(to: *mut c_int, attribute: c_int, device: c_int) -> CUresult {
    // SAFETY: as above.
    write_result(format!("cuDeviceGetAttribute {attribute} of {device}"), |number| unsafe { *to = number })
}

unsafe extern "C" fn device_name(to: *mut c_char, room: c_int, device: c_int) -> CUresult {
    write_result(format!("cuDeviceGetName of {device}"), |_| {
        let name = script(|script| script.name);
        let length = name.len().min(usize::try_from(room).unwrap());
        // SAFETY: as above; room for `length` bytes.
        unsafe { to.copy_from(name.as_ptr().cast(), length) }
    })
}

unsafe extern "C" fn retain(to: *mut CUcontext, device: c_int) -> CUresult {
    // SAFETY: as above.
    write_result(format!("cuDevicePrimaryCtxRetain {device}"), |number| unsafe {
        *to = CUcontext::from_raw(handle(number));
    })
}

unsafe extern "C" fn release(device: c_int) -> CUresult {
    write_result(format!("cuDevicePrimaryCtxRelease {device}"), |_| {})
}

unsafe extern "C" fn function(to: *mut CUfunction, kernel: CUkernel) -> CUresult {
    // SAFETY: as above.
    write_result(format!("cuKernelGetFunction {}", kernel.as_raw() as usize), |number| unsafe {
        *to = CUfunction::from_raw(handle(number));
    })
}

unsafe extern "C" fn func_load(function: CUfunction) -> CUresult {
    write_result(format!("cuFuncLoad {}", function.as_raw() as usize), |_| {})
}

unsafe extern "C" fn kernel_attribute(to: *mut c_int, what: c_int, kernel: CUkernel, on: c_int) -> CUresult {
    // SAFETY: as above.
    write_result(
        format!("cuKernelGetAttribute {what} of {} on {on}", kernel.as_raw() as usize),
        |number| unsafe {
            *to = number;
        },
    )
}

unsafe extern "C" fn set_attribute(what: c_int, value: c_int, kernel: CUkernel, on: c_int) -> CUresult {
    write_result(
        format!("cuKernelSetAttribute {what} of {} on {on} to {value}", kernel.as_raw() as usize),
        |_| {},
    )
}

unsafe extern "C" fn capture_mode(mode: *mut c_int) -> CUresult {
    // SAFETY: as above.
    let given = unsafe { *mode };
    // SAFETY: as above.
    write_result(format!("cuThreadExchangeStreamCaptureMode {given}"), |number| unsafe { *mode = number })
}

unsafe extern "C" fn error_words(_: CUresult, to: *mut *const c_char) -> CUresult {
    let (code, words) = script(|script| script.words);
    if let Some(words) = words {
        // SAFETY: as above.
        unsafe { *to = words.as_ptr() }
    }
    code
}

fn lookup(name: &'static CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuInit" => init as *mut c_void,
        b"cuDriverGetVersion" => version as *mut c_void,
        b"cuCtxGetCurrent" => current_context as *mut c_void,
        b"cuCtxGetId" => context_id as *mut c_void,
        b"cuCtxGetDevice" => current_device as *mut c_void,
        b"cuStreamGetCtx" => stream_context as *mut c_void,
        b"cuCtxPushCurrent_v2" => push as *mut c_void,
        b"cuCtxPopCurrent_v2" => pop as *mut c_void,
        b"cuDeviceGet" => device as *mut c_void,
        b"cuDeviceGetCount" => device_count as *mut c_void,
        b"cuDeviceGetAttribute" => device_attribute as *mut c_void,
        b"cuDeviceGetName" => device_name as *mut c_void,
        b"cuDevicePrimaryCtxRetain" => retain as *mut c_void,
        b"cuDevicePrimaryCtxRelease_v2" => release as *mut c_void,
        b"cuKernelGetFunction" => function as *mut c_void,
        b"cuFuncLoad" => func_load as *mut c_void,
        b"cuKernelGetAttribute" => kernel_attribute as *mut c_void,
        b"cuKernelSetAttribute" => set_attribute as *mut c_void,
        b"cuThreadExchangeStreamCaptureMode" => capture_mode as *mut c_void,
        b"cuGetErrorName" | b"cuGetErrorString" => error_words as *mut c_void,
        _ => support::lookup(name),
    }
}

fn with<T>(answers: Script, work: impl FnOnce(&Driver) -> T) -> (T, Vec<String>) {
    script(|script| *script = answers);
    // SAFETY: these functions have the signatures of `cuda.h`.
    let driver = unsafe { Driver::from_lookup(lookup) }.unwrap();
    let found = work(&driver);
    (found, script(|script| std::mem::take(&mut script.asked)))
}

// SAFETY: only the stand-in gets it.
const KERNEL: CUkernel = unsafe { CUkernel::from_raw(without_provenance_mut(40)) };

type Call = fn(&Driver) -> Result<String, DriverError>;

const CALLS: [(&str, &str, Call); 8] = [
    ("cuDriverGetVersion", "7", |driver| driver.version().map(|it| it.to_string())),
    ("cuCtxGetCurrent", "Some(7)", |driver| {
        driver.current_context().map(|it| format!("{:?}", it.map(|context| context.as_raw() as usize)))
    }),
    ("cuCtxGetId 0", "Some(7)", |driver| driver.current_context_id().map(|it| format!("{it:?}"))),
    ("cuCtxGetDevice", "7", |driver| driver.current_device().map(|it| it.to_string())),
    ("cuDeviceGetAttribute 16 of 5", "7", |driver| driver.device_attribute(5, 16).map(|it| it.to_string())),
    ("cuDeviceGetName of 5", "A GPU", |driver| driver.device_name(5)),
    ("cuKernelGetAttribute 1 of 40 on 5", "7", |driver| {
        driver.kernel_attribute(KERNEL, 5, 1).map(|it| it.to_string())
    }),
    ("cuKernelSetAttribute 8 of 40 on 5 to 99", "()", |driver| {
        driver.set_kernel_attribute(KERNEL, 5, 8, 99).map(|it| format!("{it:?}"))
    }),
];

#[test]
fn a_call_asks_for_what_was_meant_and_gives_what_the_driver_answers() {
    for (asks, answers, call) in CALLS {
        assert_eq!(with(WORKS, call), (Ok(answers.to_owned()), vec![asks.to_owned()]));
    }
}

#[test]
fn what_the_driver_refuses_is_told_with_call_code_and_its_words() {
    let out_of_memory = || Script { code: 2, words: (0, Some(c"NO ROOM")), ..WORKS };
    for (asks, _, call) in CALLS {
        let (found, asked) = with(out_of_memory(), call);
        let function = asks.split(' ').next().unwrap();
        let error = found.unwrap_err();
        assert_eq!(error.to_string(), format!("`{function}` returned NO ROOM (2): NO ROOM"));
        assert_eq!(asked, [asks]);
    }
}

#[test]
fn only_words_that_the_driver_gives_are_told() {
    for words in [(1, None), (0, None), (1, Some(c"left over"))] {
        let (found, _) = with(Script { code: 12345, words, ..WORKS }, Driver::version);
        assert_eq!(found.unwrap_err().to_string(), "`cuDriverGetVersion` returned an unknown error (12345)");
    }
}

#[test]
fn a_device_without_a_name_that_ends_has_what_was_written() {
    let named =
        |name: &'static [u8]| with(Script { name, ..WORKS }, |driver| driver.device_name(0)).0.unwrap();
    assert_eq!(named(b"\0"), "");
    assert_eq!(named(b"NVIDIA H200\0"), "NVIDIA H200");
    assert_eq!(named(&[b'x'; 300]), "x".repeat(256));
    assert_eq!(named(b"\xff GPU\0"), "\u{fffd} GPU");
}

#[test]
fn no_context_is_no_error() {
    let context = |number, code| with(Script { number, code, ..WORKS }, Driver::current_context).0;
    assert_eq!(context(0, 0), Ok(None));
    assert_eq!(context(0, 3), Ok(None), "the driver is not initialized");
    assert!(context(0, 4).is_err());
    let id = |code| with(Script { code, ..WORKS }, Driver::current_context_id).0;
    assert_eq!([id(0), id(3), id(201)], [Ok(Some(7)), Ok(None), Ok(None)]);
    assert!(id(709).is_err(), "the context was reset");
}

fn entered(answers: Script, stream: usize) -> (Result<bool, DriverError>, Vec<String>) {
    with(answers, |driver| {
        // SAFETY: this driver never dereferences handles.
        let entered = unsafe { driver.enter_context_of(CUstream::from_raw(without_provenance_mut(stream))) }?;
        script(|script| script.asked.push("work".to_owned()));
        let is_entered = entered.is_some();
        entered.map_or(Ok(()), EnteredContext::leave).map(|()| is_entered)
    })
}

#[test]
fn a_thread_without_a_context_gets_that_of_the_stream() {
    let none = || Script { number: 0, ..WORKS };
    let calls = ["cuCtxGetCurrent", "cuStreamGetCtx 3", "cuCtxPushCurrent 9", "work", "cuCtxPopCurrent"];
    assert_eq!(entered(none(), 3), (Ok(true), calls.map(str::to_owned).to_vec()));
    let (_, dropped) = with(none(), |driver| {
        // SAFETY: as above.
        drop(unsafe { driver.enter_context_of(CUstream::from_raw(without_provenance_mut(3))) });
    });
    assert_eq!(dropped.last().map(String::as_str), Some("cuCtxPopCurrent"), "also while unwinding");
    let (found, calls) = entered(Script { code: 700, ..WORKS }, 3);
    assert_eq!((found.unwrap_err().call, calls.len()), ("cuCtxGetCurrent", 1));
    let (found, _) = entered(Script { code: 3, ..WORKS }, 3);
    assert_eq!(found.unwrap_err().call, "cuStreamGetCtx");
}

#[test]
fn leaving_a_context_reports_the_refusal() {
    let (left, calls) = with(Script { number: 0, ..WORKS }, |driver| {
        // SAFETY: as above.
        let entered = unsafe { driver.enter_context_of(CUstream::from_raw(without_provenance_mut(3))) };
        script(|script| script.code = 201);
        entered.unwrap().unwrap().leave()
    });
    assert_eq!(left.unwrap_err().call, "cuCtxPopCurrent");
    assert_eq!(calls.iter().filter(|call| *call == "cuCtxPopCurrent").count(), 1);
}

#[test]
fn a_thread_keeps_its_own_context_and_default_streams_have_none() {
    let calls = |calls: &[&str]| calls.iter().map(|&call| call.to_owned()).collect::<Vec<_>>();
    assert_eq!(entered(WORKS, 3), (Ok(false), calls(&["cuCtxGetCurrent", "work"])));
    for default in 0..3 {
        assert_eq!(entered(Script { number: 0, ..WORKS }, default), (Ok(false), calls(&["work"])));
    }
}

#[test]
fn a_capability_is_two_attributes() {
    let capability =
        |number, code| with(Script { number, code, ..WORKS }, |driver| driver.compute_capability(2));
    let (found, asked) = capability(9, 0);
    assert_eq!(found, Ok(ComputeCapability { major: 9, minor: 9 }));
    assert_eq!(asked, ["cuDeviceGetAttribute 75 of 2", "cuDeviceGetAttribute 76 of 2"]);
    for wild in [-1, 256] {
        assert_eq!(capability(wild, 0).0, Ok(ComputeCapability { major: 255, minor: 255 }));
    }
    assert_eq!(capability(9, 100).1.len(), 1, "a failed query is not repeated");
}

#[test]
fn clusters_are_what_the_driver_says_and_else_what_the_capability_says() {
    let has = |major, number, code| {
        let capability = ComputeCapability { major, minor: 0 };
        let answers = Script { number, code, ..WORKS };
        with(answers, |driver| driver.has_clusters(2, capability))
    };
    assert_eq!(has(8, 1, 0), (true, vec!["cuDeviceGetAttribute 120 of 2".to_owned()]));
    assert!(!has(9, 0, 0).0);
    assert_eq!([8, 9, 10].map(|major| has(major, 1, 1).0), [false, true, true]);
}

#[test]
fn a_kernel_is_ready_once_the_driver_has_loaded_it() {
    let load = |code| with(Script { code, ..WORKS }, |driver| driver.load_into_current_context(KERNEL));
    assert_eq!(load(0), (Ok(()), vec!["cuKernelGetFunction 40".to_owned(), "cuFuncLoad 7".to_owned()]));
    let (found, asked) = load(209);
    assert_eq!(found.unwrap_err().call, "cuKernelGetFunction");
    assert_eq!(asked, ["cuKernelGetFunction 40"]);
}

#[test]
fn a_thread_gets_its_capture_mode_back() {
    let (found, asked) = with(Script { number: 1, ..WORKS }, |driver| {
        in_relaxed_capture_mode(driver, || {
            script(|script| script.asked.push("work".to_owned()));
            Ok::<(), DriverError>(())
        })
    });
    assert_eq!(found, Ok(()));
    assert_eq!(asked, ["cuThreadExchangeStreamCaptureMode 2", "work", "cuThreadExchangeStreamCaptureMode 1"]);
}
