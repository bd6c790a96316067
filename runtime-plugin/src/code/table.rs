use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{CString, c_int};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use cubinder_model::fit::order;
use cubinder_model::{BadCode, CodeBytes, CodeObject, Digest, KernelFacts, Launch, Target};

use super::error::{DeviceFacts, LoadError, Reason, Refused};
use super::image::Image;
use crate::driver::sys::{self, CUdevice, CUkernel, CUlibrary};
use crate::driver::{
    ComputeCapability, Driver, DriverError, RelaxedCapture, Result, in_relaxed_capture_mode,
};

/// A code object and a kernel in it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Target of the code.
    pub target: Target,
    /// The code's checked digest.
    pub digest: Digest,
    /// A cubin, or PTX text without a NUL.
    pub bytes: &'a CodeBytes,
    /// The kernel's symbol.
    pub symbol: &'a str,
    /// The compiler's facts about the kernel.
    pub facts: Option<&'a KernelFacts>,
}

/// Returns a launch's candidates in model order.
pub fn candidates<'a>(launch: &'a Launch, code: &'a [CodeObject]) -> Result<Vec<Candidate<'a>>, LoadError> {
    let candidate = |reference: &'a cubinder_model::CodeRef| {
        let object = usize::try_from(reference.code).ok().and_then(|index| code.get(index));
        let object = object.ok_or_else(|| LoadError::NoSuchCode {
            kernel: launch.kernel.clone(),
            target: reference.target,
            index: reference.code,
            count: code.len(),
        })?;
        Ok(Candidate {
            target: reference.target,
            digest: object.digest,
            bytes: &object.bytes,
            symbol: &reference.symbol,
            facts: object.kernels.iter().find(|facts| facts.symbol == reference.symbol),
        })
    };
    launch.code.iter().map(candidate).collect()
}

/// A kernel loaded for one device.
#[derive(Debug, Clone)]
pub struct LoadedKernel {
    /// Valid until the library's teardown.
    pub handle: CUkernel,
    /// The device it is loaded for.
    pub device: CUdevice,
    /// The device's compute capability.
    pub capability: ComputeCapability,
    /// Whether the device supports clusters.
    pub has_clusters: bool,
    /// Its code object's target.
    pub target: Target,
    /// Its code object's digest.
    pub digest: Digest,
    /// Its symbol in the code object.
    pub symbol: Arc<str>,
    /// Its launch limits on this device.
    pub limits: KernelLimits,
    /// Parameter sizes in bytes, from the driver (since CUDA 12.4) or model.
    pub params: Option<Arc<[u32]>>,
    /// Rejected candidates, for the log.
    pub refused: Vec<Refused>,
    /// Whether this call made it ready: logged once.
    pub is_first: bool,
    /// Whether later calls return it: its refusals are permanent.
    pub is_settled: bool,
}

/// A kernel's launch limits on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelLimits {
    /// Threads per block.
    pub max_threads: u32,
    /// Dynamic shared bytes per block.
    pub max_shared_bytes: u32,
}

#[derive(Debug, Clone, Copy)]
struct CurrentDevice {
    device: CUdevice,
    capability: ComputeCapability,
    has_clusters: bool,
}

impl CurrentDevice {
    fn query(driver: &Driver) -> Result<CurrentDevice> {
        let device = driver.current_device()?;
        let capability = driver.compute_capability(device)?;
        Ok(CurrentDevice { device, capability, has_clusters: driver.has_clusters(device, capability) })
    }
}

/// The result of requesting a kernel.
#[derive(Debug, Clone)]
pub enum Loading {
    /// The kernel is loaded.
    Loaded(LoadedKernel),
    /// No current context, or the driver is not initialized.
    NoContext,
}

/// Code objects by digest, each loaded once under its lock: PTX compiles slowly.
#[derive(Debug)]
pub struct CodeTable {
    /// Never locked while waiting for an entry.
    entries: Mutex<BTreeMap<Digest, Arc<Mutex<LoadedCode>>>>,
}

#[derive(Debug, Default)]
struct LoadedCode {
    library: Option<CUlibrary>,
    kernels: BTreeMap<Arc<str>, Kernel>,
    /// Permanent rejections: retries would recompile PTX.
    refused: BTreeMap<(Arc<str>, CUdevice), DriverError>,
}

#[derive(Debug)]
struct Kernel {
    handle: CUkernel,
    params: Option<Arc<[u32]>>,
    devices: BTreeMap<CUdevice, DeviceKernel>,
}

#[derive(Debug, Clone, Copy)]
struct DeviceKernel {
    limits: KernelLimits,
    /// Only grows: nodes share the kernel.
    allowed_shared_bytes: u32,
}

enum Failure {
    /// Try the next candidate.
    Refused(Reason),
    /// Others would fail, too.
    Stop(DriverError),
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Failure {
        match meaning(&error) {
            Meaning::Environment => Failure::Stop(error),
            Meaning::Code | Meaning::Unknown => Failure::Refused(Reason::Driver(error)),
        }
    }
}

static PROCESS: CodeTable = CodeTable::new();

impl CodeTable {
    /// Returns an empty table.
    #[must_use]
    pub const fn new() -> CodeTable {
        CodeTable { entries: Mutex::new(BTreeMap::new()) }
    }

    /// Returns this library copy's table.
    #[must_use]
    pub fn process() -> &'static CodeTable {
        &PROCESS
    }

    fn entry(&self, digest: Digest) -> Arc<Mutex<LoadedCode>> {
        Arc::clone(locked(&self.entries).entry(digest).or_default())
    }

    /// Loads a kernel on the current device: the first of `candidates`, in [`order`], that the driver accepts. Errors
    /// name `kernel`. Waits for threads that load the same code.
    pub fn load(
        &self,
        driver: &Driver,
        kernel: &str,
        candidates: &[Candidate<'_>],
    ) -> Result<Loading, LoadError> {
        let failed = |error| LoadError::Driver { kernel: kernel.to_owned(), error };
        if driver.current_context().map_err(failed)?.is_none() {
            return Ok(Loading::NoContext);
        }
        let current = CurrentDevice::query(driver).map_err(failed)?;
        let capability = current.capability;
        let targets: Vec<Target> = candidates.iter().map(|candidate| candidate.target).collect();
        let ordered = order(capability, &targets).into_iter().filter_map(|index| candidates.get(index));
        let found = in_relaxed_capture_mode(driver, || self.first_that_loads(driver, current, ordered));
        match found.map_err(failed)? {
            Ok(loaded) => Ok(Loading::Loaded(loaded)),
            Err(refused) => Err(LoadError::NothingFits {
                kernel: kernel.to_owned(),
                device: DeviceFacts::query(driver, current.device, capability),
                refused,
            }),
        }
    }

    /// Allows `kernel` `bytes` of dynamic shared memory, up to [`KernelLimits::max_shared_bytes`].
    pub fn allow_shared(&self, driver: &Driver, kernel: &LoadedKernel, bytes: u32) -> Result<()> {
        let entry = self.entry(kernel.digest);
        let mut loaded = locked(&entry);
        let known = loaded.kernels.get_mut(&kernel.symbol);
        let Some(on_device) = known.and_then(|known| known.devices.get_mut(&kernel.device)) else {
            return Ok(());
        };
        if bytes <= on_device.allowed_shared_bytes {
            return Ok(());
        }
        let value = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        in_relaxed_capture_mode(driver, || {
            driver.set_kernel_attribute(
                kernel.handle,
                kernel.device,
                sys::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                value,
            )
        })?;
        on_device.allowed_shared_bytes = bytes;
        Ok(())
    }

    /// Unloads all code that no thread is loading; returns the first refusal. Prefers relaxed capture mode: others
    /// break other threads' captures.
    ///
    /// # Safety
    /// This table's kernels are not used afterwards, including by captured graphs.
    pub unsafe fn unload_all(&self, driver: &Driver) -> Result<()> {
        let Some(mut entries) = locked_at_once(&self.entries) else { return Ok(()) };
        if entries.is_empty() {
            return Ok(());
        }
        let is_end = |error: &DriverError| error.code == sys::CUDA_ERROR_DEINITIALIZED;
        let relaxed = match RelaxedCapture::enter(driver) {
            Err(error) if !is_end(&error) => RelaxedCapture::enter(driver),
            entered => entered,
        };
        let mut unloaded = Ok(());
        let mut is_shut_down = relaxed.as_ref().is_err_and(is_end);
        entries.retain(|_, entry| {
            let Some(mut loaded) = locked_at_once(entry) else { return true };
            let Some(library) = loaded.library.filter(|_| !is_shut_down) else {
                return loaded.library.is_some();
            };
            // SAFETY: the caller upholds the callee's contract.
            match unsafe { driver.unload_library(library) } {
                Ok(()) => {
                    *loaded = LoadedCode::default();
                    false
                }
                Err(error) => {
                    is_shut_down = is_end(&error);
                    if unloaded.is_ok() {
                        unloaded = Err(error);
                    }
                    true
                }
            }
        });
        let restored = relaxed.and_then(RelaxedCapture::leave);
        unloaded.and(restored)
    }

    /// Unloads all code when the library closes, retrying refusals once; frees the memory.
    ///
    /// # Safety
    /// As [`CodeTable::unload_all`].
    pub unsafe fn close(&self, driver: &Driver) {
        // SAFETY: the caller upholds the callee's contract.
        let unload = || unsafe { self.unload_all(driver) };
        if unload().is_err_and(|error| error.code != sys::CUDA_ERROR_DEINITIALIZED) {
            let _ = unload();
        }
        if let Some(mut entries) = locked_at_once(&self.entries) {
            *entries = BTreeMap::new();
        }
    }

    fn first_that_loads<'a>(
        &self,
        driver: &Driver,
        current: CurrentDevice,
        ordered: impl Iterator<Item = &'a Candidate<'a>>,
    ) -> Result<Result<LoadedKernel, Vec<Refused>>, DriverError> {
        let mut refused = Vec::new();
        for candidate in ordered {
            let entry = self.entry(candidate.digest);
            let symbol: Arc<str> = Arc::from(candidate.symbol);
            match locked(&entry).load(driver, current, candidate, &symbol) {
                Ok(kernel) => {
                    let is_settled = refused.iter().all(is_permanent);
                    return Ok(Ok(LoadedKernel { refused, is_settled, ..kernel }));
                }
                Err(Failure::Stop(error)) => return Err(error),
                Err(Failure::Refused(reason)) => refused.push(Refused { target: candidate.target, reason }),
            }
        }
        Ok(Err(refused))
    }
}

/// Poisoned locks are safe: changes are insertions.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn locked_at_once<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Default for CodeTable {
    fn default() -> CodeTable {
        CodeTable::new()
    }
}

impl LoadedCode {
    fn load(
        &mut self,
        driver: &Driver,
        current: CurrentDevice,
        candidate: &Candidate<'_>,
        symbol: &Arc<str>,
    ) -> Result<LoadedKernel, Failure> {
        let key = (Arc::clone(symbol), current.device);
        if let Some(error) = self.refused.get(&key) {
            return Err(Failure::Refused(Reason::Driver(error.clone())));
        }
        let loaded = self.load_steps(driver, current, candidate, symbol);
        if let Err(Failure::Refused(Reason::Driver(error))) = &loaded
            && meaning(error) == Meaning::Code
        {
            self.refused.insert(key, error.clone());
        }
        loaded
    }

    /// Loads on every call: a new context may have a destroyed one's address.
    fn load_steps(
        &mut self,
        driver: &Driver,
        CurrentDevice { device, capability, has_clusters }: CurrentDevice,
        candidate: &Candidate<'_>,
        symbol: &Arc<str>,
    ) -> Result<LoadedKernel, Failure> {
        let library = match self.library {
            Some(library) => library,
            None => *self.library.insert(load_library(driver, candidate)?),
        };
        let kernel = match self.kernels.entry(Arc::clone(symbol)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(find_kernel(driver, library, candidate)?),
        };
        let params = kernel.params.clone().or_else(|| stated_params(candidate));
        let params = params.ok_or(Failure::Refused(Reason::UnknownParameters))?;
        let is_ready = kernel.devices.contains_key(&device);
        // A ready kernel runs: errors are not about its code.
        let stands = |error| if is_ready { Failure::Stop(error) } else { Failure::from(error) };
        driver.load_into_current_context(kernel.handle).map_err(stands)?;
        let (on_device, is_first) = match kernel.devices.entry(device) {
            Entry::Occupied(entry) => (*entry.get(), false),
            Entry::Vacant(entry) => (*entry.insert(on_device(driver, kernel.handle, device)?), true),
        };
        Ok(LoadedKernel {
            handle: kernel.handle,
            device,
            capability,
            has_clusters,
            target: candidate.target,
            digest: candidate.digest,
            symbol: Arc::clone(symbol),
            limits: on_device.limits,
            params: Some(params),
            refused: Vec::new(),
            is_first,
            is_settled: true,
        })
    }
}

fn is_permanent(refused: &Refused) -> bool {
    match &refused.reason {
        Reason::Driver(error) => meaning(error) == Meaning::Code,
        Reason::Damaged(why) => !matches!(why, BadCode::Memory { .. }),
        Reason::Malformed(_) | Reason::NulInSymbol | Reason::UnknownParameters => true,
    }
}

fn load_library(driver: &Driver, candidate: &Candidate<'_>) -> Result<CUlibrary, Failure> {
    let code = candidate.bytes.unpack(candidate.digest);
    let code = code.map_err(|damaged| Failure::Refused(Reason::Damaged(damaged)))?;
    let image = Image::new(candidate.target.kind, &code)
        .map_err(|malformed| Failure::Refused(Reason::Malformed(malformed)))?;
    drop(code);
    // SAFETY: an `Image` is PTX with a final NUL, or a complete ELF file; the code is trusted.
    Ok(unsafe { driver.load_library(image.as_ptr()) }?)
}

fn find_kernel(driver: &Driver, library: CUlibrary, candidate: &Candidate<'_>) -> Result<Kernel, Failure> {
    let symbol = CString::new(candidate.symbol).map_err(|_| Failure::Refused(Reason::NulInSymbol))?;
    let handle = driver.kernel(library, &symbol)?;
    let params = driver.kernel_param_sizes(handle)?.map(Arc::from);
    Ok(Kernel { handle, params, devices: BTreeMap::new() })
}

/// Returns the model's parameter sizes, to detect mismatches.
fn stated_params(candidate: &Candidate<'_>) -> Option<Arc<[u32]>> {
    candidate.facts.map(|facts| facts.params.iter().map(|param| param.size).collect())
}

fn on_device(driver: &Driver, kernel: CUkernel, device: CUdevice) -> Result<DeviceKernel> {
    let of_kernel = |attribute| Ok(unsigned(driver.kernel_attribute(kernel, device, attribute)?));
    let max_threads = of_kernel(sys::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    let static_bytes = of_kernel(sys::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
    let allowed = of_kernel(sys::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?;
    let most = unsigned(
        driver.device_attribute(device, sys::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
    );
    Ok(DeviceKernel {
        limits: KernelLimits {
            max_threads,
            max_shared_bytes: most.saturating_sub(static_bytes).max(allowed),
        },
        allowed_shared_bytes: allowed,
    })
}

fn unsigned(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// This code never runs on this device.
    Code,
    /// It may load later; meanwhile, others might stay slower.
    Environment,
    Unknown,
}

fn meaning(error: &DriverError) -> Meaning {
    match error.code {
        sys::CUDA_ERROR_INVALID_IMAGE
        | sys::CUDA_ERROR_NO_BINARY_FOR_GPU
        | sys::CUDA_ERROR_INVALID_PTX
        | sys::CUDA_ERROR_JIT_COMPILER_NOT_FOUND
        | sys::CUDA_ERROR_UNSUPPORTED_PTX_VERSION
        | sys::CUDA_ERROR_JIT_COMPILATION_DISABLED
        | sys::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC
        | sys::CUDA_ERROR_INVALID_SOURCE
        | sys::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
        | sys::CUDA_ERROR_NOT_FOUND => Meaning::Code,
        sys::CUDA_ERROR_OUT_OF_MEMORY
        | sys::CUDA_ERROR_NOT_INITIALIZED
        | sys::CUDA_ERROR_DEINITIALIZED
        | sys::CUDA_ERROR_DEVICE_UNAVAILABLE
        | sys::CUDA_ERROR_NO_DEVICE
        | sys::CUDA_ERROR_INVALID_CONTEXT
        | sys::CUDA_ERROR_ILLEGAL_ADDRESS..=sys::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
        | sys::CUDA_ERROR_SYSTEM_NOT_READY..=sys::CUDA_ERROR_MPS_CLIENT_TERMINATED
        | sys::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED..=sys::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD => {
            Meaning::Environment
        }
        _ if error.may_come_from_earlier_work() => Meaning::Environment,
        _ => Meaning::Unknown,
    }
}
