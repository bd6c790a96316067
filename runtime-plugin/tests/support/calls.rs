use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};

use cubinder::driver::sys::{CUcontext, CUfunction, CUkernel, CUlaunchConfig, CUlibrary, CUresult, CUstream};

use super::{CURRENT, Clusters, Launched, State, wait_for, with};

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

fn write_result<T>(function: &str, place: *mut T, value: T) -> CUresult {
    // SAFETY: `cuda.h` requires a valid pointer.
    call(function, no_label, |_| unsafe { *place = value })
}

fn context_handle(address: usize) -> CUcontext {
    // SAFETY: only these functions use the handle.
    unsafe { CUcontext::from_raw(std::ptr::without_provenance_mut(address)) }
}

unsafe extern "C" fn init(_: c_uint) -> CUresult {
    call("cuInit", no_label, |_| {})
}

unsafe extern "C" fn driver_get_version(version: *mut c_int) -> CUresult {
    write_result("cuDriverGetVersion", version, 13000)
}

unsafe extern "C" fn ctx_get_current(context: *mut CUcontext) -> CUresult {
    let mut refused = 0;
    let code = call("cuCtxGetCurrent", no_label, |state| match state.device.context {
        // SAFETY: `cuda.h` requires a valid pointer.
        Ok(current) => unsafe {
            let (device, number) = CURRENT.get();
            let address = if current { 1 + number + 100 * device as usize } else { 0 };
            *context = context_handle(address);
        },
        Err(error) => refused = error,
    });
    if code == 0 { refused } else { code }
}

unsafe extern "C" fn ctx_get_id(_: CUcontext, id: *mut u64) -> CUresult {
    let (device, number) = CURRENT.get();
    write_result("cuCtxGetId", id, 1 + number as u64 + 100 * device as u64)
}

unsafe extern "C" fn ctx_get_device(device: *mut c_int) -> CUresult {
    write_result("cuCtxGetDevice", device, CURRENT.get().0)
}

unsafe extern "C" fn stream_get_ctx(_: CUstream, context: *mut CUcontext) -> CUresult {
    write_result("cuStreamGetCtx", context, context_handle(1))
}

unsafe extern "C" fn ctx_push_current(_: CUcontext) -> CUresult {
    call("cuCtxPushCurrent", no_label, |_| {})
}

unsafe extern "C" fn ctx_pop_current(_: *mut CUcontext) -> CUresult {
    call("cuCtxPopCurrent", no_label, |_| {})
}

unsafe extern "C" fn device_get(device: *mut c_int, ordinal: c_int) -> CUresult {
    write_result("cuDeviceGet", device, ordinal)
}

unsafe extern "C" fn device_get_count(count: *mut c_int) -> CUresult {
    write_result("cuDeviceGetCount", count, 1)
}

unsafe extern "C" fn device_get_attribute(value: *mut c_int, attribute: c_int, device: c_int) -> CUresult {
    let mut failure = 0;
    let code = call("cuDeviceGetAttribute", no_label, |state| {
        let capability = state.capability(device);
        let found = match attribute {
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
        // SAFETY: as above.
        unsafe { *value = found }
    });
    if code == 0 { failure } else { code }
}

unsafe extern "C" fn device_get_name(name: *mut c_char, _: c_int, _: c_int) -> CUresult {
    // SAFETY: `cuda.h` requires 256 bytes.
    call("cuDeviceGetName", no_label, |_| unsafe {
        let text = c"Imaginary GPU";
        name.copy_from(text.as_ptr(), text.count_bytes() + 1);
    })
}

unsafe extern "C" fn primary_ctx_retain(context: *mut CUcontext, _: c_int) -> CUresult {
    write_result("cuDevicePrimaryCtxRetain", context, context_handle(7))
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
    // SAFETY: PTX and the labels of the mock's cubins (after a 64-byte header) end with a NUL.
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
            // SAFETY: `cuda.h` requires a valid pointer; only the stand-in gets the handle.
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
    // SAFETY: `cuda.h` requires a C string.
    let symbol = unsafe { CStr::from_ptr(symbol) };
    assert!(!symbol.is_empty());
    // SAFETY: `cuda.h` requires a valid pointer. The handle encodes library and symbol length.
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
            // SAFETY: `cuda.h` requires a valid pointer; only the stand-in gets the handle.
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
    let found = match attribute {
        0 => 512,
        1 => 1024,
        8 => 48 * 1024 - 1024,
        _ => 0,
    };
    write_result("cuKernelGetAttribute", value, found)
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
        // SAFETY: `cuda.h` requires valid pointers.
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
            // SAFETY: `cuda.h` requires a pointer per parameter, to its bytes.
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
    // SAFETY: `cuda.h` requires a valid configuration of `attribute_count` attributes.
    let (config, attributes) = unsafe {
        let attributes = std::slice::from_raw_parts((*config).attributes, (*config).attribute_count as usize);
        (*config, attributes.to_vec())
    };
    with(|state| state.attributes.push(attributes));
    let ([gx, gy, gz], [bx, by, bz]) = (config.grid, config.block);
    // SAFETY: these arguments also meet `cuLaunchKernel`'s contract.
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
    write_result("cuOccupancyMaxActiveBlocksPerMultiprocessor", blocks, 2048 / threads)
}

unsafe extern "C" fn occupancy_max_active_clusters(
    clusters: *mut c_int,
    _: CUfunction,
    _: *const CUlaunchConfig,
) -> CUresult {
    write_result("cuOccupancyMaxActiveClusters", clusters, 3)
}

unsafe extern "C" fn exchange_capture_mode(mode: *mut c_int) -> CUresult {
    call("cuThreadExchangeStreamCaptureMode", no_label, |state| {
        let id = state.thread();
        // SAFETY: `cuda.h` requires a valid pointer.
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
    // SAFETY: as above.
    unsafe { *text = known.map_or(std::ptr::null(), |words| part(words).as_ptr()) };
    c_int::from(known.is_none())
}

pub(crate) fn lookup(name: &'static CStr) -> *mut c_void {
    match name.to_bytes() {
        b"cuInit" => init as *mut c_void,
        b"cuDriverGetVersion" => driver_get_version as *mut c_void,
        b"cuCtxGetCurrent" => ctx_get_current as *mut c_void,
        b"cuCtxGetId" => ctx_get_id as *mut c_void,
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
