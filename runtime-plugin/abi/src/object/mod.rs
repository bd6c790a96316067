//! The heap object behind an `IPluginV3*`, and slots that its interfaces share. Never creates a `&mut` to an object
//! that TensorRT holds.

pub(crate) mod base;

use std::ffi::{CStr, c_char};
use std::mem::offset_of;

use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::logger;
use crate::raw::{APILanguage, InterfaceInfo, PluginCapabilityType};
use crate::rtti;
use crate::thunk::{caught, run_report_hook};
use crate::vtable::{CoreSlots, PluginSlots, This, VTable, VersionedSlots};
pub use base::PluginBase;

pub(crate) trait PluginKind: Sized + 'static {
    type Implementor: PluginBase;
    type State: Default + Send + Sync;
    type BuildSlots: 'static;
    type RuntimeSlots: 'static;

    /// All but the build interface's ([`build_info`](Self::build_info)).
    const CORE_INFO: InterfaceInfo;
    const RUNTIME_INFO: InterfaceInfo;
    const BUILD: &'static VTable<Self::BuildSlots>;
    const RUNTIME: &'static VTable<Self::RuntimeSlots>;

    fn build_info() -> InterfaceInfo;

    fn clone_state(state: &Self::State) -> Self::State;
}

/// First in an object: equal offsets for every kind.
#[repr(C)]
struct Vptrs<Build, Runtime> {
    plugin: *const PluginSlots,
    core: *const CoreSlots,
    build: *const Build,
    runtime: *const Runtime,
}

#[repr(C)]
pub(crate) struct Object<K: PluginKind> {
    vptrs: Vptrs<K::BuildSlots, K::RuntimeSlots>,
    pub(crate) state: K::State,
    /// `None` if cloning or attaching failed: TensorRT crashes on null.
    pub(crate) implementor: Option<K::Implementor>,
}

pub(crate) trait Interface {
    const OFFSET: usize;
    fn info<K: PluginKind>() -> InterfaceInfo;
}

pub(crate) const fn info(kind: &'static CStr, major: i32) -> InterfaceInfo {
    InterfaceInfo { kind: kind.as_ptr(), major, minor: 0 }
}

macro_rules! interfaces {
    ($($name:ident, $vptr:ident, $info:expr;)*) => {$(
        pub(crate) struct $name;

        impl Interface for $name {
            const OFFSET: usize = offset_of!(Vptrs<(), ()>, $vptr);
            fn info<K: PluginKind>() -> InterfaceInfo {
                $info
            }
        }
    )*};
}

interfaces! {
    PluginV3, plugin, info(c"PLUGIN", 1);
    Core, core, K::CORE_INFO;
    Build, build, K::build_info();
    Runtime, runtime, K::RUNTIME_INFO;
}

struct Vtables<K>(std::marker::PhantomData<K>);

impl<K: PluginKind> Vtables<K> {
    const PLUGIN: &'static VTable<PluginSlots> = &table::<PluginV3, _>(PluginSlots {
        versioned: versioned::<K, PluginV3>(),
        get_capability_interface,
        clone: clone::<K>,
    });
    const CORE: &'static VTable<CoreSlots> = &table::<Core, _>(CoreSlots {
        versioned: versioned::<K, Core>(),
        get_plugin_name: get_plugin_name::<K>,
        get_plugin_version: get_plugin_version::<K>,
        get_plugin_namespace: get_plugin_namespace::<K>,
    });
}

pub(crate) const fn table<I: Interface, Slots: Copy>(slots: Slots) -> VTable<Slots> {
    VTable { offset_to_top: -(I::OFFSET as isize), type_info: &raw const rtti::PLUGIN, slots }
}

pub(crate) const fn versioned<K: PluginKind, I: Interface>() -> VersionedSlots {
    VersionedSlots {
        get_api_language,
        get_interface_info: get_interface_info::<K, I>,
        destroy: destroy::<K, I>,
        destroy_and_free: destroy_and_free::<K, I>,
    }
}

impl<K: PluginKind> Object<K> {
    pub(crate) fn boxed(implementor: Option<K::Implementor>, state: K::State) -> Box<Self> {
        // All pointers are thin, so `repr(C)` places them equally for every kind.
        const {
            assert!(offset_of!(Self, vptrs) == 0);
            assert!(offset_of!(Vptrs<K::BuildSlots, K::RuntimeSlots>, core) == Core::OFFSET);
            assert!(offset_of!(Vptrs<K::BuildSlots, K::RuntimeSlots>, build) == Build::OFFSET);
            assert!(offset_of!(Vptrs<K::BuildSlots, K::RuntimeSlots>, runtime) == Runtime::OFFSET);
        }
        let vptrs = Vptrs {
            plugin: Vtables::<K>::PLUGIN.vptr(),
            core: Vtables::<K>::CORE.vptr(),
            build: K::BUILD.vptr(),
            runtime: K::RUNTIME.vptr(),
        };
        Box::new(Self { vptrs, state, implementor })
    }

    #[inline]
    pub(crate) fn call<'a, R>(
        &'a self,
        failure: impl FnOnce(&Error) -> R,
        body: impl FnOnce(&'a K::Implementor) -> Result<R>,
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
        run_report_hook(|| match &self.implementor {
            Some(implementor) => implementor.report(error),
            None => logger::error(error.text()),
        });
    }
}

#[cold]
fn missing() -> Error {
    Error::new(Error::INVALID_STATE, "this plugin could not be cloned or attached; see the previous message")
}

/// TensorRT frees the object with its D0.
pub(crate) fn release<K: PluginKind>(object: Box<Object<K>>) -> This {
    Box::into_raw(object).cast()
}

pub(crate) fn into_raw<K: PluginKind>(implementor: K::Implementor) -> This {
    release(Object::<K>::boxed(Some(implementor), K::State::default()))
}

/// Borrows from the thunk's `this`: C++ may delete the object after the call.
///
/// # Safety
/// `this` is interface `I` of a live object from [`into_raw`] for the same `K`.
#[inline]
pub(crate) unsafe fn object<K: PluginKind, I: Interface>(this: &This) -> &Object<K> {
    // SAFETY: `this` is interface `I`, `I::OFFSET` bytes into a live object, to which only shared references exist.
    unsafe { &*this.byte_sub(I::OFFSET).cast::<Object<K>>() }
}

unsafe extern "C" fn get_api_language(_this: This) -> APILanguage {
    APILanguage::CPP
}

unsafe extern "C" fn get_interface_info<K: PluginKind, I: Interface>(_this: This) -> InterfaceInfo {
    I::info::<K>()
}

/// Implements D1, which destroys an object in the caller's memory.
unsafe extern "C" fn destroy<K: PluginKind, I: Interface>(this: This) {
    // TensorRT's logger may be gone, so panics cannot be reported.
    let _silent = caught(|| {
        // SAFETY: the caller destroys the object, so nothing uses it later; `this` is interface `I` of it.
        unsafe { std::ptr::drop_in_place(this.byte_sub(I::OFFSET).cast::<Object<K>>()) };
        Ok(())
    });
}

/// Implements D0, C++'s `delete`, through any interface.
unsafe extern "C" fn destroy_and_free<K: PluginKind, I: Interface>(this: This) {
    let _silent = caught(|| {
        // SAFETY: `release` got the object from a `Box`, and the caller deletes it, so nothing uses it later.
        drop(unsafe { Box::from_raw(this.byte_sub(I::OFFSET).cast::<Object<K>>()) });
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
    // SAFETY: the offset is inside of the object, of which `this` is the first interface.
    unsafe { this.byte_add(offset) }
}

unsafe extern "C" fn clone<K: PluginKind>(this: This) -> This {
    // SAFETY: `this` is live, and has this slot.
    let object = unsafe { object::<K, PluginV3>(&this) };
    object.call(
        |_| release(Object::<K>::boxed(None, K::State::default())),
        |implementor| {
            let state = K::clone_state(&object.state);
            Ok(release(Object::<K>::boxed(Some(implementor.clone()), state)))
        },
    )
}

unsafe fn core_text<K: PluginKind>(this: This, text: fn(&Identity) -> &CStr) -> *const c_char {
    // SAFETY: the functions below pass TensorRT's `this`, a live object's core interface.
    let object = unsafe { object::<K, Core>(&this) };
    object.call(|_| c"".as_ptr(), |implementor| Ok(text(implementor.identity()).as_ptr()))
}

unsafe extern "C" fn get_plugin_name<K: PluginKind>(this: This) -> *const c_char {
    // SAFETY: `this` is live, and has this slot.
    unsafe { core_text::<K>(this, |identity| &identity.name) }
}

unsafe extern "C" fn get_plugin_version<K: PluginKind>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { core_text::<K>(this, |identity| &identity.version) }
}

unsafe extern "C" fn get_plugin_namespace<K: PluginKind>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { core_text::<K>(this, |identity| &identity.namespace) }
}

pub(crate) fn code(error: &Error) -> i32 {
    error.code()
}
