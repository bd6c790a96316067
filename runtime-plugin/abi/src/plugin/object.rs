//! The heap object behind an `IPluginV3*`, and the slots that all its interfaces share.
//!
//! Owns: [`PluginObject`], its life from [`into_raw`] to D0, and the `IPluginV3` and `IPluginV3OneCore`
//! thunks. Never: no `&mut` to an object that TensorRT holds; what changes is behind atomics here and behind
//! the implementor's own locks.

use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::mem::offset_of;
use std::sync::atomic::{AtomicI32, Ordering};

use super::{Plugin, build, runtime};
use crate::error::Error;
use crate::logger;
use crate::raw::{APILanguage, InterfaceInfo, PluginCapabilityType};
use crate::rtti;
use crate::thunk::{caught, tell};
use crate::vtable::{BuildSlots, CoreSlots, PluginSlots, RuntimeSlots, This, VTable, VersionedSlots};

/// A count that is not known because `onShapeChange` has not been called.
const UNKNOWN: i32 = -1;

/// One plugin as C++ sees it: a class that derives from the four interfaces. The vptrs come first and in this
/// order, so their offsets do not depend on `P`.
#[repr(C)]
pub struct PluginObject<P> {
    plugin: *const PluginSlots,
    core: *const CoreSlots,
    build: *const BuildSlots,
    runtime: *const RuntimeSlots,
    /// Tensors at the last `onShapeChange`: `enqueue` passes arrays without their lengths.
    input_count: AtomicI32,
    output_count: AtomicI32,
    /// `None` where cloning or attaching failed: TensorRT crashes on null there, so it gets an object that
    /// always fails.
    implementor: Option<P>,
}

/// One of the interfaces inside a [`PluginObject`].
pub(super) trait Interface {
    /// Where its vptr stands.
    const OFFSET: usize;
    /// What `getInterfaceInfo` says.
    const INFO: InterfaceInfo;
}

const fn info(kind: &'static CStr, major: i32) -> InterfaceInfo {
    InterfaceInfo { kind: kind.as_ptr(), major, minor: 0 }
}

pub(super) struct Whole;
pub(super) struct Core;
pub(super) struct Build;
pub(super) struct Runtime;

impl Interface for Whole {
    const OFFSET: usize = offset_of!(PluginObject<()>, plugin);
    const INFO: InterfaceInfo = info(c"PLUGIN", 1);
}
impl Interface for Core {
    const OFFSET: usize = offset_of!(PluginObject<()>, core);
    const INFO: InterfaceInfo = info(c"PLUGIN_V3ONE_CORE", 1);
}
/// Version 2.0, as `IPluginV3OneBuildV2` says in every header seen (RTX 1.3 to 1.7, Enterprise 11.4): it is
/// what makes TensorRT call `getAliasedInput`. Version 1.0 would hide aliased outputs from it.
impl Interface for Build {
    const OFFSET: usize = offset_of!(PluginObject<()>, build);
    const INFO: InterfaceInfo = info(c"PLUGIN_V3ONE_BUILD", 2);
}
impl Interface for Runtime {
    const OFFSET: usize = offset_of!(PluginObject<()>, runtime);
    const INFO: InterfaceInfo = info(c"PLUGIN_V3ONE_RUNTIME", 1);
}

/// The vtables of one implementor.
struct Vtables<P>(PhantomData<P>);

impl<P: Plugin> Vtables<P> {
    const PLUGIN: &'static VTable<PluginSlots> = &table::<Whole, _>(PluginSlots {
        versioned: versioned::<P, Whole>(),
        get_capability_interface,
        clone: clone::<P>,
    });
    const CORE: &'static VTable<CoreSlots> = &table::<Core, _>(CoreSlots {
        versioned: versioned::<P, Core>(),
        get_plugin_name: get_plugin_name::<P>,
        get_plugin_version: get_plugin_version::<P>,
        get_plugin_namespace: get_plugin_namespace::<P>,
    });
    const BUILD: &'static VTable<BuildSlots> = &table::<Build, _>(build::slots::<P>(versioned::<P, Build>()));
    const RUNTIME: &'static VTable<RuntimeSlots> =
        &table::<Runtime, _>(runtime::slots::<P>(versioned::<P, Runtime>()));
}

const fn table<I: Interface, Slots: Copy>(slots: Slots) -> VTable<Slots> {
    VTable { offset_to_top: -(I::OFFSET as isize), type_info: &raw const rtti::PLUGIN, slots }
}

const fn versioned<P: Plugin, I: Interface>() -> VersionedSlots {
    VersionedSlots {
        get_api_language,
        get_interface_info: get_interface_info::<I>,
        destroy: destroy::<P, I>,
        destroy_and_free: destroy_and_free::<P, I>,
    }
}

impl<P: Plugin> PluginObject<P> {
    fn boxed(implementor: Option<P>, input_count: i32, output_count: i32) -> Box<Self> {
        // The markers above speak of `PluginObject<()>`; `repr(C)` puts the vptrs at the same place for every
        // `P`.
        const {
            assert!(offset_of!(Self, plugin) == Whole::OFFSET && offset_of!(Self, core) == Core::OFFSET);
            assert!(offset_of!(Self, build) == Build::OFFSET && offset_of!(Self, runtime) == Runtime::OFFSET);
        }
        Box::new(Self {
            plugin: Vtables::<P>::PLUGIN.vptr(),
            core: Vtables::<P>::CORE.vptr(),
            build: Vtables::<P>::BUILD.vptr(),
            runtime: Vtables::<P>::RUNTIME.vptr(),
            input_count: AtomicI32::new(input_count),
            output_count: AtomicI32::new(output_count),
            implementor,
        })
    }

    /// Runs a method of the implementor; a failure is reported and becomes `failure`'s value.
    #[inline]
    pub(super) fn call<R>(
        &self,
        failure: impl FnOnce(&Error) -> R,
        body: impl FnOnce(&P) -> Result<R, Error>,
    ) -> R {
        match caught(|| self.implementor.as_ref().ok_or_else(missing).and_then(body)) {
            Ok(value) => value,
            Err(error) => {
                self.report(&error);
                failure(&error)
            }
        }
    }

    #[cold]
    fn report(&self, error: &Error) {
        tell(|| match &self.implementor {
            Some(implementor) => implementor.report(error),
            None => logger::error(error.text()),
        });
    }

    /// Remembers how many tensors the arrays of the next `enqueue` hold.
    pub(super) fn set_counts(&self, input_count: i32, output_count: i32) {
        // Relaxed: TensorRT itself orders `onShapeChange` before `enqueue` of the same object.
        self.input_count.store(input_count, Ordering::Relaxed);
        self.output_count.store(output_count, Ordering::Relaxed);
    }

    /// The counts of the last `onShapeChange`.
    #[inline]
    pub(super) fn counts(&self) -> Result<(i32, i32), Error> {
        let counts = (self.input_count.load(Ordering::Relaxed), self.output_count.load(Ordering::Relaxed));
        if counts.0 < 0 || counts.1 < 0 {
            return Err(Error::new(Error::INVALID_STATE, "enqueue was called before onShapeChange"));
        }
        Ok(counts)
    }

    /// A new object for a context, or null where the implementor says that TensorRT can take it.
    pub(super) fn attach(&self) -> This {
        let tolerates_null =
            caught(|| Ok(self.implementor.as_ref().is_some_and(Plugin::tolerates_null_attach)))
                .unwrap_or(false);
        let failure = |_: &Error| {
            if tolerates_null { std::ptr::null_mut() } else { release(Self::boxed(None, UNKNOWN, UNKNOWN)) }
        };
        self.call(failure, |implementor| implementor.attach_to_context().map(into_raw))
    }
}

#[cold]
fn missing() -> Error {
    Error::new(Error::INVALID_STATE, "this plugin could not be cloned or attached, see the message before")
}

fn release<P>(object: Box<PluginObject<P>>) -> This {
    Box::into_raw(object).cast()
}

/// Hands a plugin over to C++: an `IPluginV3*`, freed through its D0.
pub fn into_raw<P: Plugin>(implementor: P) -> This {
    release(PluginObject::boxed(Some(implementor), UNKNOWN, UNKNOWN))
}

/// The object around an interface.
///
/// # Safety
/// `this` is the interface `I` of a live object that [`into_raw`] made for the same `P`.
#[inline]
pub(super) unsafe fn object<'a, P: Plugin, I: Interface>(this: This) -> &'a PluginObject<P> {
    // SAFETY: `this` was made from the object's own pointer by adding `I::OFFSET`, so going back stays inside
    // it; only shared references to an object ever exist until its destructor.
    unsafe { &*this.byte_sub(I::OFFSET).cast::<PluginObject<P>>() }
}

unsafe extern "C" fn get_api_language(_this: This) -> APILanguage {
    APILanguage::CPP
}

unsafe extern "C" fn get_interface_info<I: Interface>(_this: This) -> InterfaceInfo {
    I::INFO
}

/// D1: for an object in memory of the caller's.
unsafe extern "C" fn destroy<P: Plugin, I: Interface>(this: This) {
    // A destructor that panics has nobody to tell: TensorRT's logger may be gone by then.
    let _silent = caught(|| {
        // SAFETY: the caller gives up the object; no reference to it is left.
        unsafe { std::ptr::drop_in_place(this.byte_sub(I::OFFSET).cast::<PluginObject<P>>()) };
        Ok(())
    });
}

/// D0: C++'s `delete`, through any of the interfaces.
unsafe extern "C" fn destroy_and_free<P: Plugin, I: Interface>(this: This) {
    let _silent = caught(|| {
        // SAFETY: the caller gives up the object, which `release` took out of a `Box`.
        drop(unsafe { Box::from_raw(this.byte_sub(I::OFFSET).cast::<PluginObject<P>>()) });
        Ok(())
    });
}

unsafe extern "C" fn get_capability_interface(this: This, kind: PluginCapabilityType) -> This {
    let offset = match kind {
        PluginCapabilityType::CORE => Core::OFFSET,
        PluginCapabilityType::BUILD => Build::OFFSET,
        PluginCapabilityType::RUNTIME => Runtime::OFFSET,
        _ => return std::ptr::null_mut(),
    };
    // SAFETY: `this` is a whole object, and the offset lies inside it.
    unsafe { this.byte_add(offset) }
}

unsafe extern "C" fn clone<P: Plugin>(this: This) -> This {
    // SAFETY: TensorRT passes the object it was given.
    let object = unsafe { object::<P, Whole>(this) };
    let (inputs, outputs) = object.counts().unwrap_or((UNKNOWN, UNKNOWN));
    object.call(
        |_| release(PluginObject::<P>::boxed(None, UNKNOWN, UNKNOWN)),
        |implementor| Ok(release(PluginObject::boxed(Some(implementor.clone()), inputs, outputs))),
    )
}

/// A text of the core interface. TensorRT does not expect null there, so a failure is an empty one.
unsafe fn core_text<P: Plugin>(this: This, text: fn(&P) -> &CStr) -> *const c_char {
    // SAFETY: the slots below pass on what TensorRT called them with.
    let object = unsafe { object::<P, Core>(this) };
    object.call(|_| c"".as_ptr(), |implementor| Ok(text(implementor).as_ptr()))
}

unsafe extern "C" fn get_plugin_name<P: Plugin>(this: This) -> *const c_char {
    // SAFETY: `this` is the core interface that TensorRT was given.
    unsafe { core_text::<P>(this, P::core_name) }
}

unsafe extern "C" fn get_plugin_version<P: Plugin>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { core_text::<P>(this, P::core_version) }
}

unsafe extern "C" fn get_plugin_namespace<P: Plugin>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { core_text::<P>(this, P::core_namespace) }
}

/// Failure value of the methods that return a code.
pub(super) fn code(error: &Error) -> i32 {
    error.code()
}

/// The `cudaStream_t` and the workspace need no type of their own here.
pub(super) type Opaque = *mut c_void;
