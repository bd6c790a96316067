//! A driver made of functions of this program: it records what it is asked and refuses what a test tells it to.
//!
//! Function pointers carry no data, so its state is one for the process and tests take turns ([`Mock::new`]).

#![allow(dead_code)] // each test file uses its part

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use cubinder::driver::Driver;
use cubinder::driver::sys::{
    CUcontext, CUfunction, CUkernel, CUlaunchAttribute, CUlaunchConfig, CUlibrary, CUresult, CUstream,
};

/// What the mock shall do.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    /// The compute capability that it reports.
    pub(crate) capability: (c_int, c_int),
    /// What it says of clusters.
    pub(crate) clusters: Clusters,
    /// Those of more devices. Where there are some, machine code is refused on devices that it does not fit.
    pub(crate) others: Vec<(c_int, c_int)>,
    /// Whether a context is current; `None`: `cuCtxGetCurrent` answers this error.
    pub(crate) context: Result<bool, CUresult>,
    /// `(call, label of the code object, error)`: refused each time. The label is the code object's text.
    pub(crate) refuses: Vec<(&'static str, &'static str, CUresult)>,
    /// The call with this number (from 1) fails with this error.
    pub(crate) fail_at: Option<(usize, CUresult)>,
    /// Parameter sizes that `cuKernelGetParamInfo` tells.
    pub(crate) params: Vec<usize>,
    /// `(slow, quick)`: loading the first takes until the second is loaded, or until [`PATIENCE`] is over.
    pub(crate) slow: Option<(&'static str, &'static str)>,
    /// Whether another thread captures a stream all the time, which forbids unloading outside of relaxed mode.
    pub(crate) other_captures: bool,
}

/// What a device says of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clusters {
    /// What is right for its compute capability.
    AsCapability,
    /// It has none.
    Not,
    /// Its driver answers the question with this error.
    Fails(CUresult),
}

/// How long a test waits for what does not come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

impl Default for Device {
    fn default() -> Device {
        Device {
            capability: (8, 6),
            clusters: Clusters::AsCapability,
            others: Vec::new(),
            context: Ok(true),
            refuses: Vec::new(),
            fail_at: None,
            params: vec![8, 8, 4],
            slow: None,
            other_captures: true,
        }
    }
}

/// One launch, as a kernel would see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Launched {
    pub(crate) kernel: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    pub(crate) stream: usize,
    pub(crate) args: Vec<Vec<u8>>,
}

#[derive(Default)]
struct State {
    device: Device,
    calls: Vec<String>,
    /// The labels of what was ever loaded; a library's handle is its number, from 1.
    loaded: Vec<String>,
    unloaded: Vec<usize>,
    modes: BTreeMap<u64, c_int>,
    threads: Vec<ThreadId>,
    launched: Vec<Launched>,
    shared: Vec<c_int>,
    attributes: Vec<Vec<CUlaunchAttribute>>,
}

thread_local! {
    /// The device of the calling thread's context, and which of its contexts it is (from 0).
    static CURRENT: Cell<(c_int, usize)> = const { Cell::new((0, 0)) };
}

/// Makes context number `context` of a device current in this thread.
pub(crate) fn set_current(device: c_int, context: usize) {
    CURRENT.set((device, context));
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static TURN: Mutex<()> = Mutex::new(());

/// The mock, for as long as one test has its turn.
pub(crate) struct Mock {
    pub(crate) driver: Driver,
    _turn: MutexGuard<'static, ()>,
}

impl Mock {
    pub(crate) fn new(device: Device) -> Mock {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        *STATE.lock().unwrap_or_else(PoisonError::into_inner) = Some(State { device, ..State::default() });
        // SAFETY: the functions below have the signatures of `cuda.h`.
        let driver = unsafe { Driver::from_lookup(lookup) }.unwrap();
        Mock { driver, _turn: turn }
    }

    /// Changes what the mock does from now on; calls are counted from 1 again.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Device)) {
        with(|state| {
            state.calls.clear();
            change(&mut state.device);
        });
    }

    /// The calls so far, without those that only ask.
    pub(crate) fn work(&self) -> Vec<String> {
        with(|state| state.calls.iter().filter(|call| !is_question(call)).cloned().collect())
    }

    /// How many calls there were.
    pub(crate) fn call_count(&self) -> usize {
        with(|state| state.calls.len())
    }

    /// How often a function was called.
    pub(crate) fn count(&self, function: &str) -> usize {
        with(|state| state.calls.iter().filter(|call| call.split(' ').next() == Some(function)).count())
    }

    pub(crate) fn last_call(&self) -> String {
        with(|state| state.calls.last().cloned().unwrap_or_default())
    }

    /// The labels of the libraries that are loaded and not unloaded.
    pub(crate) fn living(&self) -> Vec<String> {
        with(|state| {
            let living = |id: &usize| !state.unloaded.contains(id);
            (1..=state.loaded.len()).filter(living).map(|id| state.loaded[id - 1].clone()).collect()
        })
    }

    /// The labels of everything that was ever loaded, in that order.
    pub(crate) fn ever_loaded(&self) -> Vec<String> {
        with(|state| state.loaded.clone())
    }

    pub(crate) fn unloaded_twice(&self) -> bool {
        with(|state| {
            let mut ids = state.unloaded.clone();
            ids.sort_unstable();
            ids.windows(2).any(|pair| pair[0] == pair[1])
        })
    }

    /// The calling thread's capture mode; 0 (global) at first.
    pub(crate) fn capture_mode(&self) -> c_int {
        with(State::mode)
    }

    pub(crate) fn launched(&self) -> Vec<Launched> {
        with(|state| state.launched.clone())
    }

    /// The attributes of every launch that had any.
    pub(crate) fn attributes(&self) -> Vec<Vec<CUlaunchAttribute>> {
        with(|state| state.attributes.clone())
    }

    /// The values that dynamic shared memory was raised to.
    pub(crate) fn shared(&self) -> Vec<c_int> {
        with(|state| state.shared.clone())
    }
}

fn is_question(call: &str) -> bool {
    ["cuCtxGet", "cuDeviceGet", "cuKernelGetAttribute", "cuKernelGetParamInfo", "cuDriverGetVersion"]
        .iter()
        .any(|start| call.starts_with(start))
}

fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    work(STATE.lock().unwrap_or_else(PoisonError::into_inner).as_mut().unwrap())
}

impl State {
    fn thread(&mut self) -> u64 {
        let this = std::thread::current().id();
        let known = self.threads.iter().position(|id| *id == this);
        known.unwrap_or_else(|| {
            self.threads.push(this);
            self.threads.len() - 1
        }) as u64
    }

    /// The calling thread's capture mode.
    fn mode(&mut self) -> c_int {
        let id = self.thread();
        self.modes.get(&id).copied().unwrap_or(0)
    }

    /// Records a call and says how it ends, where a test has said so.
    fn enter(&mut self, function: &str, label: &str) -> Option<CUresult> {
        let call = if label.is_empty() { function.to_owned() } else { format!("{function} {label}") };
        self.calls.push(call);
        if let Some((at, code)) = self.device.fail_at
            && self.calls.len() == at
        {
            return Some(code);
        }
        let told =
            |(call, of, _): &&(&str, &str, CUresult)| *call == function && (*of == label || *of == "*");
        self.device.refuses.iter().find(told).map(|(_, _, code)| *code)
    }

    fn capability(&self, device: c_int) -> (c_int, c_int) {
        match device {
            0 => self.device.capability,
            other => self.device.others[other as usize - 1],
        }
    }

    /// Whether the code with this label runs on the calling thread's device: only asked where there are several.
    fn runs_here(&self, label: &str) -> bool {
        let (major, minor) = self.capability(CURRENT.get().0);
        let number = label.strip_prefix("sm_").and_then(|number| number.parse::<c_int>().ok());
        self.device.others.is_empty()
            || number.is_none_or(|number| number / 10 == major && number % 10 <= minor)
    }

    fn label(&self, library: usize) -> String {
        self.loaded.get(library - 1).cloned().unwrap_or_default()
    }
}

/// Waits until `what` holds; false where it never does.
pub(crate) fn wait_for(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !what() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Runs `work` as the function's body, unless the test refuses the call.
fn call(function: &str, label: impl FnOnce(&State) -> String, work: impl FnOnce(&mut State)) -> CUresult {
    with(|state| {
        let label = label(state);
        if let Some(code) = state.enter(function, &label) {
            return code;
        }
        work(state);
        0
    })
}

fn no_label(_: &State) -> String {
    String::new()
}

/// A code object that the table takes for machine code: an ELF header for CUDA, then its label.
pub(crate) fn cubin(label: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18..20].copy_from_slice(&190_u16.to_le_bytes());
    bytes.extend_from_slice(label.as_bytes());
    bytes
}

unsafe extern "C" fn init(_: c_uint) -> CUresult {
    call("cuInit", no_label, |_| {})
}

unsafe extern "C" fn driver_get_version(version: *mut c_int) -> CUresult {
    // SAFETY: as `cuda.h` says.
    call("cuDriverGetVersion", no_label, |_| unsafe { *version = 13000 })
}

unsafe extern "C" fn ctx_get_current(context: *mut CUcontext) -> CUresult {
    let mut refused = 0;
    let code = call("cuCtxGetCurrent", no_label, |state| match state.device.context {
        // SAFETY: as `cuda.h` says.
        Ok(current) => unsafe {
            let (device, number) = CURRENT.get();
            let address = if current { 1 + number + 100 * device as usize } else { 0 };
            *context = CUcontext::from_raw(std::ptr::without_provenance_mut(address));
        },
        Err(error) => refused = error,
    });
    if code == 0 { refused } else { code }
}

unsafe extern "C" fn ctx_get_device(device: *mut c_int) -> CUresult {
    // SAFETY: as `cuda.h` says.
    call("cuCtxGetDevice", no_label, |_| unsafe { *device = CURRENT.get().0 })
}

/// Every stream belongs to context 0 of device 0.
unsafe extern "C" fn stream_get_ctx(_: CUstream, context: *mut CUcontext) -> CUresult {
    // SAFETY: as `cuda.h` says.
    call("cuStreamGetCtx", no_label, |_| unsafe {
        *context = CUcontext::from_raw(std::ptr::without_provenance_mut(1));
    })
}

unsafe extern "C" fn ctx_push_current(_: CUcontext) -> CUresult {
    call("cuCtxPushCurrent", no_label, |_| {})
}

unsafe extern "C" fn ctx_pop_current(_: *mut CUcontext) -> CUresult {
    call("cuCtxPopCurrent", no_label, |_| {})
}

unsafe extern "C" fn device_get(device: *mut c_int, ordinal: c_int) -> CUresult {
    // SAFETY: as `cuda.h` says.
    call("cuDeviceGet", no_label, |_| unsafe { *device = ordinal })
}

unsafe extern "C" fn device_get_count(count: *mut c_int) -> CUresult {
    // SAFETY: as `cuda.h` says.
    call("cuDeviceGetCount", no_label, |_| unsafe { *count = 1 })
}

unsafe extern "C" fn device_get_attribute(value: *mut c_int, attribute: c_int, device: c_int) -> CUresult {
    let mut failure = 0;
    let code = call("cuDeviceGetAttribute", no_label, |state| {
        let capability = state.capability(device);
        let answer = match attribute {
            75 => capability.0,
            76 => capability.1,
            97 => 101_376,
            120 => match state.device.clusters {
                Clusters::AsCapability => c_int::from(capability.0 >= 9),
                Clusters::Not => 0,
                Clusters::Fails(with) => {
                    failure = with;
                    0
                }
            },
            _ => 0,
        };
        // SAFETY: as `cuda.h` says.
        unsafe { *value = answer }
    });
    if code == 0 { failure } else { code }
}

unsafe extern "C" fn device_get_name(name: *mut c_char, _: c_int, _: c_int) -> CUresult {
    // SAFETY: as `cuda.h` says; the caller gives 256 bytes.
    call("cuDeviceGetName", no_label, |_| unsafe {
        let text = c"Imaginary GPU";
        name.copy_from(text.as_ptr(), text.count_bytes() + 1);
    })
}

unsafe extern "C" fn primary_ctx_retain(context: *mut CUcontext, _: c_int) -> CUresult {
    // SAFETY: as `cuda.h` says.
    call("cuDevicePrimaryCtxRetain", no_label, |_| unsafe {
        *context = CUcontext::from_raw(std::ptr::without_provenance_mut(7));
    })
}

unsafe extern "C" fn primary_ctx_release(_: c_int) -> CUresult {
    call("cuDevicePrimaryCtxRelease", no_label, |_| {})
}

unsafe extern "C" fn library_load_data(
    library: *mut CUlibrary,
    code: *const c_void,
    _: *mut c_int,
    _: *mut *mut c_void,
    options: c_uint,
    _: *mut c_int,
    _: *mut *mut c_void,
    library_options: c_uint,
) -> CUresult {
    assert_eq!((options, library_options), (0, 0));
    assert_eq!(code as usize % 16, 0, "aligned");
    // SAFETY: PTX ends with a NUL, and so do the labels of the mock's cubins, whose header has 64 bytes.
    let text = unsafe {
        let start = code.cast::<c_char>();
        let is_elf = *start.cast::<u8>() == 0x7f;
        CStr::from_ptr(start.add(if is_elf { 64 } else { 0 }))
    };
    let label = text.to_str().unwrap().to_owned();
    if let Some((slow, quick)) = with(|state| state.device.slow)
        && slow == label
    {
        with(|state| state.calls.push(format!("compiling {slow}")));
        wait_for(|| with(|state| state.loaded.iter().any(|loaded| loaded == quick)));
    }
    call(
        "cuLibraryLoadData",
        |_| label.clone(),
        |state| {
            state.loaded.push(label.clone());
            // SAFETY: as `cuda.h` says.
            unsafe { *library = CUlibrary::from_raw(std::ptr::without_provenance_mut(state.loaded.len())) }
        },
    )
}

unsafe extern "C" fn library_unload(library: CUlibrary) -> CUresult {
    const STREAM_CAPTURE_UNSUPPORTED: CUresult = 900;
    let id = library.as_raw() as usize;
    let mut is_allowed = true;
    let code = call(
        "cuLibraryUnload",
        |state| state.label(id),
        |state| {
            is_allowed = state.mode() == 2 || !state.device.other_captures;
            if is_allowed {
                state.unloaded.push(id);
            }
        },
    );
    if code == 0 && !is_allowed { STREAM_CAPTURE_UNSUPPORTED } else { code }
}

unsafe extern "C" fn library_get_kernel(
    kernel: *mut CUkernel,
    library: CUlibrary,
    symbol: *const c_char,
) -> CUresult {
    let id = library.as_raw() as usize;
    // SAFETY: as `cuda.h` says.
    let symbol = unsafe { CStr::from_ptr(symbol) };
    assert!(!symbol.is_empty());
    // SAFETY: as `cuda.h` says. The handle tells the library and, so that two kernels differ, the symbol's length.
    call(
        "cuLibraryGetKernel",
        |state| state.label(id),
        |_| unsafe {
            *kernel = CUkernel::from_raw(std::ptr::without_provenance_mut(id * 1000 + symbol.count_bytes()));
        },
    )
}

unsafe extern "C" fn kernel_get_function(function: *mut CUfunction, kernel: CUkernel) -> CUresult {
    const NO_BINARY_FOR_GPU: CUresult = 209;
    let id = kernel.as_raw() as usize / 1000;
    let mut runs = true;
    let code = call(
        "cuKernelGetFunction",
        |state| state.label(id),
        |state| {
            runs = state.runs_here(&state.label(id));
            // SAFETY: as `cuda.h` says.
            unsafe { *function = CUfunction::from_raw(kernel.as_raw()) }
        },
    );
    if code == 0 && !runs { NO_BINARY_FOR_GPU } else { code }
}

unsafe extern "C" fn func_load(function: CUfunction) -> CUresult {
    let id = function.as_raw() as usize / 1000;
    call("cuFuncLoad", |state| state.label(id), |_| {})
}

unsafe extern "C" fn kernel_get_attribute(
    value: *mut c_int,
    attribute: c_int,
    _: CUkernel,
    _: c_int,
) -> CUresult {
    let answer = match attribute {
        0 => 512,
        1 => 1024,
        8 => 48 * 1024 - 1024,
        _ => 0,
    };
    // SAFETY: as `cuda.h` says.
    call("cuKernelGetAttribute", no_label, |_| unsafe { *value = answer })
}

unsafe extern "C" fn kernel_set_attribute(attribute: c_int, value: c_int, _: CUkernel, _: c_int) -> CUresult {
    assert_eq!(attribute, 8);
    call("cuKernelSetAttribute", |_| value.to_string(), |state| state.shared.push(value))
}

unsafe extern "C" fn kernel_get_param_info(
    _: CUkernel,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> CUresult {
    let mut end = 0;
    let code = call("cuKernelGetParamInfo", no_label, |state| match state.device.params.get(index) {
        // SAFETY: as `cuda.h` says.
        Some(bytes) => unsafe {
            *offset = 0;
            *size = *bytes;
        },
        None => end = 1,
    });
    if code == 0 { end } else { code }
}

unsafe extern "C" fn launch_kernel(
    function: CUfunction,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared_bytes: c_uint,
    stream: CUstream,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    assert!(extra.is_null());
    let id = function.as_raw() as usize / 1000;
    call(
        "cuLaunchKernel",
        |state| state.label(id),
        |state| {
            // SAFETY: as `cuda.h` says: one pointer a parameter, each to that parameter's bytes.
            let bytes = |(index, size): (usize, &usize)| unsafe {
                std::slice::from_raw_parts((*params.add(index)).cast::<u8>(), *size).to_vec()
            };
            let args = state.device.params.iter().enumerate().map(bytes).collect();
            state.launched.push(Launched {
                kernel: function.as_raw() as usize,
                grid: [gx, gy, gz],
                block: [bx, by, bz],
                shared_bytes,
                stream: stream.as_raw() as usize,
                args,
            });
        },
    )
}

unsafe extern "C" fn launch_kernel_ex(
    config: *const CUlaunchConfig,
    function: CUfunction,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CUresult {
    // SAFETY: as `cuda.h` says.
    let (config, attributes) = unsafe {
        let attributes = std::slice::from_raw_parts((*config).attributes, (*config).attribute_count as usize);
        (*config, attributes.to_vec())
    };
    with(|state| state.attributes.push(attributes));
    let ([gx, gy, gz], [bx, by, bz]) = (config.grid, config.block);
    // SAFETY: as `cuda.h` says.
    unsafe {
        launch_kernel(function, gx, gy, gz, bx, by, bz, config.shared_bytes, config.stream, params, extra)
    }
}

unsafe extern "C" fn memset_d8_async(to: u64, byte: c_uchar, bytes: usize, _: CUstream) -> CUresult {
    call("cuMemsetD8Async", |_| format!("{to:#x} {byte} {bytes}"), |_| {})
}

unsafe extern "C" fn memcpy_dtod_async(to: u64, from: u64, bytes: usize, _: CUstream) -> CUresult {
    call("cuMemcpyDtoDAsync", |_| format!("{to:#x} {from:#x} {bytes}"), |_| {})
}

unsafe extern "C" fn occupancy_max_active_blocks(
    blocks: *mut c_int,
    _: CUfunction,
    threads: c_int,
    _: usize,
) -> CUresult {
    // SAFETY: as `cuda.h` says.
    call("cuOccupancyMaxActiveBlocksPerMultiprocessor", no_label, |_| unsafe { *blocks = 2048 / threads })
}

unsafe extern "C" fn occupancy_max_active_clusters(
    clusters: *mut c_int,
    _: CUfunction,
    _: *const CUlaunchConfig,
) -> CUresult {
    // SAFETY: as `cuda.h` says.
    call("cuOccupancyMaxActiveClusters", no_label, |_| unsafe { *clusters = 3 })
}

unsafe extern "C" fn exchange_capture_mode(mode: *mut c_int) -> CUresult {
    call("cuThreadExchangeStreamCaptureMode", no_label, |state| {
        let id = state.thread();
        // SAFETY: as `cuda.h` says.
        unsafe { *mode = state.modes.insert(id, *mode).unwrap_or(0) }
    })
}

unsafe extern "C" fn get_error_name(code: CUresult, text: *mut *const c_char) -> CUresult {
    error_text(code, text, |(_, name, _)| name)
}

unsafe extern "C" fn get_error_string(code: CUresult, text: *mut *const c_char) -> CUresult {
    error_text(code, text, |(_, _, words)| words)
}

type Words = (CUresult, &'static CStr, &'static CStr);

fn error_text(code: CUresult, text: *mut *const c_char, part: impl Fn(&Words) -> &'static CStr) -> CUresult {
    const KNOWN: [Words; 7] = [
        (1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        (2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        (4, c"CUDA_ERROR_DEINITIALIZED", c"driver shutting down"),
        (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device"),
        (
            222,
            c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            c"the provided PTX was compiled with an unsupported toolchain.",
        ),
        (701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch"),
        (719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
    ];
    let known = KNOWN.iter().find(|words| words.0 == code);
    // SAFETY: as `cuda.h` says.
    unsafe { *text = known.map_or(std::ptr::null(), |words| part(words).as_ptr()) };
    c_int::from(known.is_none())
}

/// The mock's functions by the names that the driver exports.
pub(crate) fn lookup(name: &'static CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuInit" => init as *mut c_void,
        b"cuDriverGetVersion" => driver_get_version as *mut c_void,
        b"cuCtxGetCurrent" => ctx_get_current as *mut c_void,
        b"cuCtxGetDevice" => ctx_get_device as *mut c_void,
        b"cuStreamGetCtx" => stream_get_ctx as *mut c_void,
        b"cuCtxPushCurrent_v2" => ctx_push_current as *mut c_void,
        b"cuCtxPopCurrent_v2" => ctx_pop_current as *mut c_void,
        b"cuDeviceGet" => device_get as *mut c_void,
        b"cuDeviceGetCount" => device_get_count as *mut c_void,
        b"cuDeviceGetAttribute" => device_get_attribute as *mut c_void,
        b"cuDeviceGetName" => device_get_name as *mut c_void,
        b"cuDevicePrimaryCtxRetain" => primary_ctx_retain as *mut c_void,
        b"cuDevicePrimaryCtxRelease_v2" => primary_ctx_release as *mut c_void,
        b"cuLibraryLoadData" => library_load_data as *mut c_void,
        b"cuLibraryUnload" => library_unload as *mut c_void,
        b"cuLibraryGetKernel" => library_get_kernel as *mut c_void,
        b"cuKernelGetFunction" => kernel_get_function as *mut c_void,
        b"cuKernelGetAttribute" => kernel_get_attribute as *mut c_void,
        b"cuKernelSetAttribute" => kernel_set_attribute as *mut c_void,
        b"cuKernelGetParamInfo" => kernel_get_param_info as *mut c_void,
        b"cuFuncLoad" => func_load as *mut c_void,
        b"cuLaunchKernel" => launch_kernel as *mut c_void,
        b"cuLaunchKernelEx" => launch_kernel_ex as *mut c_void,
        b"cuMemsetD8Async" => memset_d8_async as *mut c_void,
        b"cuMemcpyDtoDAsync_v2" => memcpy_dtod_async as *mut c_void,
        b"cuOccupancyMaxActiveBlocksPerMultiprocessor" => occupancy_max_active_blocks as *mut c_void,
        b"cuOccupancyMaxActiveClusters" => occupancy_max_active_clusters as *mut c_void,
        b"cuThreadExchangeStreamCaptureMode" => exchange_capture_mode as *mut c_void,
        b"cuGetErrorName" => get_error_name as *mut c_void,
        b"cuGetErrorString" => get_error_string as *mut c_void,
        _ => std::ptr::null_mut(),
    }
}
