//! TensorRT's runtime around a plugin library and the stand-in driver. Never judges results.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use cubinder_expr::{DataType, Format};
use trt_abi::raw::{PluginCapabilityType, PluginField, PluginFieldCollection};
use trt_abi::vtable::{CreatorSlots, PluginSlots, RuntimeSlots, This};
use trt_abi::{Dims, PluginFieldType, PluginTensorDesc, TensorFormat, TensorRTPhase};

fn open(path: &Path) -> *mut c_void {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string; initializers have no preconditions.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!handle.is_null(), "cannot open {path:?}");
    handle
}

fn function(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the library stays open.
    let function = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!function.is_null(), "{name:?} is missing");
    function
}

pub(crate) fn library() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().join("libcubinder.so")
}

/// Later plugin libraries load the stand-in as `libcuda.so.1`.
#[derive(Debug)]
pub(crate) struct Device {
    driver: *mut c_void,
    stream: *mut c_void,
}

macro_rules! call {
    ($device:expr, $name:literal, $($value:expr => $ty:ty),*) => {{
        let function = function($device.driver, $name);
        // SAFETY: this signature is in `cuda.h` 13.0; valid arguments.
        let code = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($ty),*) -> c_int>(function)($($value),*)
        };
        assert_eq!(code, 0, "{:?}", $name);
    }};
}

impl Device {
    pub(crate) fn open(folder: &Path) -> Device {
        let mut device = Device { driver: open(&folder.join("libcuda.so.1")), stream: null_mut() };
        let mut stream = null_mut();
        call!(device, c"cuStreamCreate", &raw mut stream => *mut *mut c_void, 0 => u32);
        device.stream = stream;
        device
    }

    pub(crate) fn allocate(&self, bytes: usize) -> u64 {
        let mut address = 0_u64;
        call!(self, c"cuMemAlloc_v2", &raw mut address => *mut u64, bytes => usize);
        address
    }

    pub(crate) fn write(&self, to: u64, bytes: &[u8]) {
        call!(self, c"cuMemcpyHtoD_v2", to => u64, bytes.as_ptr().cast() => *const c_void, bytes.len() => usize);
    }

    pub(crate) fn read(&self, from: u64, bytes: &mut [u8]) {
        call!(self, c"cuMemcpyDtoH_v2", bytes.as_mut_ptr().cast() => *mut c_void, from => u64, bytes.len() => usize);
    }

    pub(crate) fn run(&self, graph: bool, work: impl FnOnce(*mut c_void) -> bool) -> bool {
        if !graph {
            return work(self.stream);
        }
        let (mut captured, mut made) = (null_mut(), null_mut());
        call!(self, c"cuStreamBeginCapture_v2", self.stream => *mut c_void, 0 => c_int);
        let done = work(self.stream);
        call!(self, c"cuStreamEndCapture", self.stream => *mut c_void, &raw mut captured => *mut *mut c_void);
        call!(self, c"cuGraphInstantiateWithFlags", &raw mut made => *mut *mut c_void, captured => *mut c_void, 0 => u64);
        call!(self, c"cuGraphLaunch", made => *mut c_void, self.stream => *mut c_void);
        call!(self, c"cuGraphExecDestroy", made => *mut c_void);
        call!(self, c"cuGraphDestroy", captured => *mut c_void);
        done
    }
}

#[derive(Debug)]
pub(crate) struct Creator(This);

/// # Safety
/// `this` is a live object whose interface has these slots.
unsafe fn slots<'a, Slots>(this: This) -> &'a Slots {
    // SAFETY: the caller's promise; an object starts with its vptr.
    unsafe { &**this.cast::<*const Slots>() }
}

impl Creator {
    pub(crate) fn open(library: &Path, name: &str) -> Creator {
        let creators = function(open(library), c"getCreators");
        let mut count = 0;
        // SAFETY: TensorRT's entry point; it returns `count` creators.
        let creators = unsafe {
            let creators: unsafe extern "C" fn(*mut i32) -> *const This = std::mem::transmute(creators);
            std::slice::from_raw_parts(creators(&raw mut count), usize::try_from(count).unwrap())
        };
        let found = creators.iter().find(|creator| {
            // SAFETY: a live creator, which returns a C string.
            let found =
                unsafe { CStr::from_ptr((slots::<CreatorSlots>(**creator).get_plugin_name)(**creator)) };
            found.to_str() == Ok(name)
        });
        Creator(*found.expect("the creator"))
    }

    pub(crate) fn node(&self, field: &[u8], inputs: usize, outputs: usize, extent: usize) -> Option<Node> {
        let length = i32::try_from(field.len()).unwrap();
        let (name, data) = (c"node".as_ptr(), field.as_ptr().cast());
        let field = PluginField { name, data, field_type: PluginFieldType::INT8, length };
        let fields = PluginFieldCollection { nb_fields: 1, fields: &raw const field };
        let title: *const c_char = c"n".as_ptr();
        let desc = PluginTensorDesc {
            dims: Dims::from_slice(&[i64::try_from(extent).unwrap()]).unwrap(),
            data_type: trt_abi::DataType(DataType::I32.tensorrt()),
            format: TensorFormat(Format::Linear.tensorrt()),
            scale: 1.0,
        };
        let (inputs, outputs) = (vec![desc; inputs], vec![desc; outputs]);
        // SAFETY: live, with these interfaces, called in TensorRT's order.
        unsafe {
            let made = (slots::<CreatorSlots>(self.0).create_plugin)(
                self.0,
                title,
                &raw const fields,
                TensorRTPhase::RUNTIME,
            );
            let loaded = Object::new(made)?;
            let attached = (loaded.runtime().attach_to_context)(loaded.capability(), null_mut());
            let node = Node { object: Object::new(attached)?, inputs, outputs };
            let code = (node.object.runtime().on_shape_change)(
                node.object.capability(),
                node.inputs.as_ptr(),
                i32::try_from(node.inputs.len()).unwrap(),
                node.outputs.as_ptr(),
                i32::try_from(node.outputs.len()).unwrap(),
            );
            (code == 0).then_some(node)
        }
    }
}

#[derive(Debug)]
struct Object(This);

impl Object {
    fn new(this: This) -> Option<Object> {
        (!this.is_null()).then_some(Object(this))
    }

    fn capability(&self) -> This {
        // SAFETY: live.
        unsafe {
            (slots::<PluginSlots>(self.0).get_capability_interface)(self.0, PluginCapabilityType::RUNTIME)
        }
    }

    fn runtime(&self) -> &RuntimeSlots {
        // SAFETY: live, with this interface.
        unsafe { slots(self.capability()) }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: live, not used afterwards.
        unsafe { (slots::<PluginSlots>(self.0).versioned.destroy_and_free)(self.0) }
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    object: Object,
    inputs: Vec<PluginTensorDesc>,
    outputs: Vec<PluginTensorDesc>,
}

impl Node {
    pub(crate) fn enqueue(
        &self,
        inputs: &[u64],
        outputs: &[u64],
        workspace: u64,
        stream: *mut c_void,
    ) -> bool {
        let pointer = |address: &u64| {
            std::ptr::with_exposed_provenance_mut::<c_void>(usize::try_from(*address).unwrap())
        };
        let inputs: Vec<*const c_void> = inputs.iter().map(|address| pointer(address).cast_const()).collect();
        let outputs: Vec<*mut c_void> = outputs.iter().map(pointer).collect();
        assert_eq!((inputs.len(), outputs.len()), (self.inputs.len(), self.outputs.len()));
        // SAFETY: an address per tensor, of memory that is never freed.
        let code = unsafe {
            (self.object.runtime().enqueue)(
                self.object.capability(),
                self.inputs.as_ptr(),
                self.outputs.as_ptr(),
                inputs.as_ptr(),
                outputs.as_ptr(),
                pointer(&workspace),
                stream,
            )
        };
        code == 0
    }
}
