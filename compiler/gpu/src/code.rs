//! A bundle's code objects, loaded on first use in the order of [`cubinder_model::fit`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::ptr::null_mut;

use cubinder_launch::{Clusters, EvaluatedArgument, EvaluatedLaunch, LaunchLimits};
use cubinder_model::{CodeObject, Launch, Target, TargetKind, fit};
use cudarc::driver::sys::{CUfunction_attribute, CUkernel, CUlibrary};

use crate::context::Context;
use crate::driver::{call, has_param_info};
use crate::error::DriverError;

const INVALID_VALUE: c_int = 1;

const MAX_PARAMS: usize = cubinder_model::model::MAX_PARAMETER_BYTES;

/// Code objects in the driver.
#[derive(Debug)]
pub struct Code<'c> {
    pub(crate) context: &'c Context,
    objects: &'c [CodeObject],
    loaded: RefCell<HashMap<u32, Result<CUlibrary, String>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) handle: CUkernel,
    pub(crate) target: Target,
    max_threads: u32,
    max_shared_bytes: u32,
    params: Vec<u32>,
    has_clusters: bool,
}

impl Kernel {
    pub(crate) fn takes(&self) -> LaunchLimits<'_> {
        LaunchLimits {
            max_threads: self.max_threads,
            max_shared_bytes: self.max_shared_bytes,
            clusters: Clusters::for_code(self.has_clusters, self.target),
            params: Some(&self.params),
        }
    }

    pub(crate) fn check_params(&self, evaluated: &EvaluatedLaunch) -> Result<(), String> {
        let size = |passed: &EvaluatedArgument| {
            if matches!(passed, EvaluatedArgument::Numbers { .. }) { 4 } else { 8 }
        };
        let passed: Vec<u32> = evaluated.args.iter().map(size).collect();
        if passed == self.params {
            return Ok(());
        }
        Err(format!("the kernel's parameters have {:?} bytes, but the arguments {passed:?}", self.params))
    }
}

impl<'c> Code<'c> {
    /// Creates the value without loading code.
    #[must_use]
    pub fn new(context: &'c Context, objects: &'c [CodeObject]) -> Code<'c> {
        Code { context, objects, loaded: RefCell::default() }
    }

    /// Returns the kernel of the first accepted code object; errors have one reason per code object.
    pub(crate) fn kernel(&self, launch: &Launch) -> Result<Kernel, String> {
        let targets: Vec<Target> = launch.code.iter().map(|code| code.target).collect();
        let mut refused = Vec::new();
        for index in fit::order(self.context.device().capability, &targets) {
            let Some(code) = launch.code.get(index) else { continue };
            match self.load_kernel(code.code, &code.symbol) {
                Ok(kernel) => return Ok(kernel),
                Err(why) => refused.push(format!("{}: {why}", code.target)),
            }
        }
        let device = self.context.device();
        let (name, capability) = (&device.name, device.capability);
        let list = if refused.is_empty() { "no code object matches".to_owned() } else { refused.join("; ") };
        Err(format!("no code of `{}` runs on this GPU ({name}, {capability}): {list}", launch.kernel))
    }

    fn load_kernel(&self, code: u32, symbol: &str) -> Result<Kernel, String> {
        let object = self.objects.get(code as usize).ok_or_else(|| format!("unknown code object {code}"))?;
        let context = self.context;
        let library = self.loaded.borrow_mut().entry(code).or_insert_with(|| load(object)).clone()?;
        let stated = object.kernels.iter().find(|facts| facts.symbol == symbol);
        let stated = stated.map(|facts| facts.params.iter().map(|param| param.size).collect::<Vec<u32>>());
        find(context, library, symbol, object.target, stated).map_err(|error| error.to_string())
    }
}

impl Drop for Code<'_> {
    fn drop(&mut self) {
        // Waits for kernels after an early return.
        let _ = self.context.synchronize();
        for library in self.loaded.get_mut().values().filter_map(|loaded| loaded.as_ref().ok()) {
            // SAFETY: users borrow this value and their work has ended, so no kernel is used later.
            let _ = unsafe { call!(cuLibraryUnload(*library)) };
        }
    }
}

fn load(object: &CodeObject) -> Result<CUlibrary, String> {
    let raw = object.raw().map_err(|error| error.to_string())?;
    let is_elf = raw.starts_with(b"\x7fELF");
    if is_elf != (object.target.kind == TargetKind::Cubin) {
        return Err("the kind of code does not match its target".to_owned());
    }
    // PTX ends with a NUL. `u64` aligns ELF's headers.
    let mut image = words(&raw);
    image.push(0);
    let mut library = null_mut();
    // SAFETY: `library` has room for a handle. The driver copies `image`, which ends with zeros; the code's author
    // ensures sound code within its length. Option arrays may be null if empty.
    unsafe {
        call!(cuLibraryLoadData(
            &raw mut library,
            image.as_ptr().cast::<c_void>(),
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0,
        ))
    }
    .map_err(|error| error.to_string())?;
    Ok(library)
}

fn find(
    context: &Context,
    library: CUlibrary,
    symbol: &str,
    target: Target,
    stated: Option<Vec<u32>>,
) -> Result<Kernel, DriverError> {
    let symbol = CString::new(symbol).unwrap_or_default();
    let mut handle = null_mut();
    // SAFETY: `handle` has room for a handle, `symbol` is a C string, `library` this driver's.
    unsafe { call!(cuLibraryGetKernel(&raw mut handle, library, symbol.as_ptr())) }?;
    let mut function = null_mut();
    // SAFETY: `function` has room for a handle, `handle` is this driver's.
    unsafe { call!(cuKernelGetFunction(&raw mut function, handle)) }?;
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: `value` has room for an `int`, `handle` is this driver's.
        unsafe { call!(cuKernelGetAttribute(&raw mut value, attribute, handle, context.device)) }?;
        Ok::<u32, DriverError>(u32::try_from(value).unwrap_or(0))
    };
    let fixed = attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
    let allowed = attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?;
    let most = context.device().shared_bytes;
    Ok(Kernel {
        handle,
        target,
        max_threads: attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        max_shared_bytes: most.saturating_sub(fixed).max(allowed),
        params: param_sizes(handle)?.or(stated).unwrap_or_default(),
        has_clusters: context.device().has_clusters,
    })
}

/// Returns sizes in bytes; `None` for drivers below CUDA 12.4.
fn param_sizes(kernel: CUkernel) -> Result<Option<Vec<u32>>, DriverError> {
    if !has_param_info() {
        return Ok(None);
    }
    let mut sizes = Vec::new();
    while sizes.len() <= MAX_PARAMS {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: both have room for a `size_t`, `kernel` is this driver's. Excessive indices return
        // `INVALID_VALUE`.
        match unsafe { call!(cuKernelGetParamInfo(kernel, sizes.len(), &raw mut offset, &raw mut size)) } {
            Err(error) if error.code == INVALID_VALUE => break,
            result => result?,
        }
        sizes.push(u32::try_from(size).unwrap_or(u32::MAX));
    }
    Ok(Some(sizes))
}

pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |part: &[u8]| {
        let mut word = [0; 8];
        word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}

pub(crate) fn allow_shared(context: &Context, kernel: &Kernel, bytes: u32) -> Result<(), DriverError> {
    if bytes == 0 {
        return Ok(());
    }
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: the handle is this driver's; the driver returns an error for unsupported sizes.
    unsafe { call!(cuKernelSetAttribute(attribute, bytes, kernel.handle, context.device)) }
}
