//! The heap object behind an `IPluginV3*`, and the slots that all its interfaces share.
//!
//! Owns: [`Object`], its life from [`into_raw`] to D0, and the thunks of `IPluginV3` and of the core interface. Never: no `&mut` to an
//! object that TensorRT holds; what changes is behind atomics or locks, here and in the implementor.

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

/// A kind of plugin: which interfaces its objects serve beside `IPluginV3`.
pub(crate) trait PluginKind: Sized + 'static {
    /// Who does the work.
    type Implementor: PluginBase;
    /// What an object keeps for its thunks beside the implementor.
    type State: Default + Send + Sync;
    type BuildSlots: 'static;
    type RuntimeSlots: 'static;

    /// What `getInterfaceInfo` says of each interface; of the build interface [`build_info`](Self::build_info) says it.
    const CORE_INFO: InterfaceInfo;
    const RUNTIME_INFO: InterfaceInfo;
    const BUILD: &'static VTable<Self::BuildSlots>;
    const RUNTIME: &'static VTable<Self::RuntimeSlots>;

    fn build_info() -> InterfaceInfo;

    /// What a clone begins with.
    fn clone_state(state: &Self::State) -> Self::State;
}

/// The vptrs of an object, first in it and in this order, so their offsets do not depend on its kind.
#[repr(C)]
struct Vptrs<Build, Runtime> {
    plugin: *const PluginSlots,
    core: *const CoreSlots,
    build: *const Build,
    runtime: *const Runtime,
}

/// One plugin as C++ sees it: a class that derives from the four interfaces.
#[repr(C)]
pub(crate) struct Object<K: PluginKind> {
    vptrs: Vptrs<K::BuildSlots, K::RuntimeSlots>,
    pub(crate) state: K::State,
    /// `None` where cloning or attaching failed: TensorRT crashes on null there, so it gets an object that
    /// always fails.
    pub(crate) implementor: Option<K::Implementor>,
}

/// One of the interfaces inside an [`Object`].
pub(crate) trait Interface {
    /// Where its vptr stands.
    const OFFSET: usize;
    /// What `getInterfaceInfo` says.
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

/// The vtables that look the same for every kind of plugin.
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

/// The vtable of one interface.
pub(crate) const fn table<I: Interface, Slots: Copy>(slots: Slots) -> VTable<Slots> {
    VTable { offset_to_top: -(I::OFFSET as isize), type_info: &raw const rtti::PLUGIN, slots }
}

/// The slots that every interface begins with.
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
        // The markers above speak of `Vptrs<(), ()>`; all of its pointers are thin, so `repr(C)` puts them at the same place for every
        // kind.
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

    /// Runs a method of the implementor; a failure is reported and becomes `failure`'s value.
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
    Error::new(Error::INVALID_STATE, "this plugin could not be cloned or attached, see the message before")
}

/// Gives an object up to C++: an `IPluginV3*`, freed through its D0.
pub(crate) fn release<K: PluginKind>(object: Box<Object<K>>) -> This {
    Box::into_raw(object).cast()
}

/// Hands a plugin over to C++: an `IPluginV3*`, freed through its D0.
pub(crate) fn into_raw<K: PluginKind>(implementor: K::Implementor) -> This {
    release(Object::<K>::boxed(Some(implementor), K::State::default()))
}

/// The object around an interface. It is borrowed from the thunk's own `this`, so no reference outlives the call: C++ may delete the object
/// afterwards.
///
/// # Safety
/// `this` is the interface `I` of a live object that [`into_raw`] made for the same `K`.
#[inline]
pub(crate) unsafe fn object<K: PluginKind, I: Interface>(this: &This) -> &Object<K> {
    // SAFETY: `this` was made from the object's own pointer by adding `I::OFFSET`, so going back stays inside
    // it; only shared references to an object ever exist until its destructor.
    unsafe { &*this.byte_sub(I::OFFSET).cast::<Object<K>>() }
}

unsafe extern "C" fn get_api_language(_this: This) -> APILanguage {
    APILanguage::CPP
}

unsafe extern "C" fn get_interface_info<K: PluginKind, I: Interface>(_this: This) -> InterfaceInfo {
    I::info::<K>()
}

/// D1: for an object in memory of the caller's.
unsafe extern "C" fn destroy<K: PluginKind, I: Interface>(this: This) {
    // A destructor that panics has nobody to tell: TensorRT's logger may be gone by then.
    let _silent = caught(|| {
        // SAFETY: the caller gives up the object; no reference to it is left.
        unsafe { std::ptr::drop_in_place(this.byte_sub(I::OFFSET).cast::<Object<K>>()) };
        Ok(())
    });
}

/// D0: C++'s `delete`, through any of the interfaces.
unsafe extern "C" fn destroy_and_free<K: PluginKind, I: Interface>(this: This) {
    let _silent = caught(|| {
        // SAFETY: the caller gives up the object, which `release` took out of a `Box`.
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
    // SAFETY: `this` is a whole object, and the offset lies inside it.
    unsafe { this.byte_add(offset) }
}

unsafe extern "C" fn clone<K: PluginKind>(this: This) -> This {
    // SAFETY: TensorRT passes the object it was given.
    let object = unsafe { object::<K, PluginV3>(&this) };
    object.call(
        |_| release(Object::<K>::boxed(None, K::State::default())),
        |implementor| {
            let state = K::clone_state(&object.state);
            Ok(release(Object::<K>::boxed(Some(implementor.clone()), state)))
        },
    )
}

/// A text of the core interface. TensorRT does not expect null there, so a failure is an empty one.
unsafe fn core_text<K: PluginKind>(this: This, text: fn(&Identity) -> &CStr) -> *const c_char {
    // SAFETY: the slots below pass on what TensorRT called them with.
    let object = unsafe { object::<K, Core>(&this) };
    object.call(|_| c"".as_ptr(), |implementor| Ok(text(implementor.identity()).as_ptr()))
}

unsafe extern "C" fn get_plugin_name<K: PluginKind>(this: This) -> *const c_char {
    // SAFETY: `this` is the core interface that TensorRT was given.
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

/// Failure value of the methods that return a code.
pub(crate) fn code(error: &Error) -> i32 {
    error.code()
}
