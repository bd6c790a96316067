//! Safe traits of creators, and their thunks.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr;

use crate::error::{Error, Result};
use crate::fields::{Field, FieldNames};
use crate::identity::Identity;
use crate::plugin::{self, Plugin};
use crate::raw::{APILanguage, InterfaceInfo, PluginField, PluginFieldCollection, TensorRTPhase};
use crate::thunk::{caught, run_report_hook, slice};
use crate::vtable::{CreatorSlots, This, VTable, VersionedSlots};
use crate::{logger, rtti};

mod quick;

pub use quick::QuickCreator;

/// The methods common to all creators.
pub trait CreatorBase: Send + Sync + 'static {
    /// Returns its registry identity.
    fn identity(&self) -> &Identity;

    /// Returns the attributes it reads.
    fn fields(&self) -> &FieldNames;

    /// Receives errors and caught panics before TensorRT gets null.
    fn report(&self, error: &Error) {
        logger::error_of(&self.identity().name, error);
    }
}

/// Creates plugins of one name, version and namespace.
pub trait Creator: CreatorBase {
    /// The type of its plugins.
    type Plugin: Plugin;

    /// Creates a plugin for the ONNX node `name` (`TensorRTPhase::BUILD`), or from an engine's fields
    /// (`TensorRTPhase::RUNTIME`), without a GPU.
    fn create(&self, name: &CStr, fields: &[Field<'_>], phase: TensorRTPhase) -> Result<Self::Plugin>;
}

trait CreatorKind: Sized + 'static {
    type Implementor: CreatorBase;
    type Slots: 'static;

    const INFO: InterfaceInfo;
    const VTABLE: &'static VTable<Self::Slots>;
}

#[repr(C)]
struct CreatorObject<K: CreatorKind> {
    vptr: *const K::Slots,
    implementor: K::Implementor,
}

struct V3One<C>(PhantomData<fn() -> C>);

impl<C: Creator> CreatorKind for V3One<C> {
    type Implementor = C;
    type Slots = CreatorSlots;

    // NVIDIA's header has this space.
    const INFO: InterfaceInfo = InterfaceInfo { kind: c"PLUGIN CREATOR_V3ONE".as_ptr(), major: 1, minor: 0 };
    const VTABLE: &'static VTable<CreatorSlots> = &table(CreatorSlots {
        versioned: versioned::<Self>(),
        create_plugin: create_plugin::<C>,
        get_field_names: get_field_names::<Self>,
        get_plugin_name: get_plugin_name::<Self>,
        get_plugin_version: get_plugin_version::<Self>,
        get_plugin_namespace: get_plugin_namespace::<Self>,
    });
}

const fn table<Slots>(slots: Slots) -> VTable<Slots> {
    VTable { offset_to_top: 0, type_info: &raw const rtti::CREATOR, slots }
}

const fn versioned<K: CreatorKind>() -> VersionedSlots {
    VersionedSlots {
        get_api_language,
        get_interface_info: get_interface_info::<K>,
        destroy,
        destroy_and_free: destroy,
    }
}

/// A library's creators: an array of `IPluginCreatorInterface*`.
#[derive(Default)]
pub struct CreatorList {
    all: Orders,
    plain: Orders,
    /// `namespace::name`, or the name.
    quick_names: Vec<String>,
    free: Vec<unsafe fn(This)>,
    /// Joined as a registry may join them; a false match only reverses the list.
    names: BTreeSet<Vec<u8>>,
    shares_names: bool,
}

#[derive(Default)]
struct Orders {
    forward: Vec<This>,
    backward: Vec<This>,
}

impl Orders {
    fn push(&mut self, creator: This) {
        self.forward.push(creator);
        self.backward.insert(0, creator);
    }
}

// SAFETY: the list owns its creators, whose implementors are `Send`.
unsafe impl Send for CreatorList {}
// SAFETY: the list shares only its creators, whose implementors are `Sync`.
unsafe impl Sync for CreatorList {}

impl CreatorList {
    /// Returns an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a creator. TensorRT rejects the whole library if the identity is already registered.
    pub fn push<C: Creator>(&mut self, creator: C) {
        let this = self.add::<V3One<C>>(creator);
        self.plain.push(this);
    }

    /// Adds a creator of quick plugins. TensorRT-RTX rejects their nodes (seen with 1.7).
    pub fn push_quick<C: QuickCreator>(&mut self, creator: C) {
        // The thunk reports panics; messages omit this creator.
        let name = caught(|| Ok(op_name(creator.identity())));
        self.quick_names.extend(name);
        self.add::<quick::Quick<C>>(creator);
    }

    fn add<K: CreatorKind>(&mut self, implementor: K::Implementor) -> This {
        let name = caught(|| {
            let Identity { name, namespace, .. } = implementor.identity();
            Ok([name.to_bytes(), namespace.to_bytes()].concat())
        });
        self.shares_names |= name.is_ok_and(|name| !self.names.insert(name));
        let object = Box::new(CreatorObject::<K> { vptr: K::VTABLE.vptr(), implementor });
        let this = Box::into_raw(object).cast();
        self.all.push(this);
        self.free.push(free::<K>);
        this
    }

    /// Returns the creators for C++.
    pub fn as_slice(&self) -> &[This] {
        &self.all.forward
    }

    /// Without `has_quick`, TensorRT rejects the library or misuses quick creators.
    pub(crate) fn for_registering(&self, has_quick: bool) -> &[This] {
        if has_quick { &self.all.forward } else { &self.plain.forward }
    }

    pub(crate) fn quick_names(&self) -> &[String] {
        &self.quick_names
    }

    /// Reverses the order if some share name and namespace: TensorRT-RTX 1.7 and the lean runtimes 10.16.1 and 11.4
    /// remove the last or none, and call the rest in unmapped memory.
    pub(crate) fn for_deregistering(&self, has_quick: bool) -> &[This] {
        let orders = if has_quick { &self.all } else { &self.plain };
        if self.shares_names { &orders.backward } else { &orders.forward }
    }
}

fn op_name(Identity { name, namespace, .. }: &Identity) -> String {
    let (namespace, name) = (namespace.to_string_lossy(), name.to_string_lossy());
    if namespace.is_empty() { name.into_owned() } else { format!("{namespace}::{name}") }
}

impl Drop for CreatorList {
    fn drop(&mut self) {
        for (this, free) in self.all.forward.drain(..).zip(&self.free) {
            // SAFETY: `add` stored `free` for this creator's type; no use follows the list's drop.
            unsafe { free(this) };
        }
    }
}

/// # Safety
/// `this` is from [`CreatorList::add`] with the same `K`, and not used later.
unsafe fn free<K: CreatorKind>(this: This) {
    // SAFETY: `add` got the pointer from a `Box`; the caller guarantees the type and gives up the creator.
    drop(unsafe { Box::from_raw(this.cast::<CreatorObject<K>>()) });
}

/// # Safety
/// `this` is a live creator of kind `K`.
unsafe fn creator<'a, K: CreatorKind>(this: This) -> &'a K::Implementor {
    // SAFETY: the caller guarantees a live creator, to which only shared references exist.
    unsafe { &(*this.cast::<CreatorObject<K>>()).implementor }
}

fn call<K: CreatorKind, R>(
    creator: &K::Implementor,
    failure: R,
    body: impl FnOnce(&K::Implementor) -> Result<R>,
) -> R {
    match caught(|| body(creator)) {
        Ok(value) => value,
        Err(error) => {
            run_report_hook(|| creator.report(&error));
            failure
        }
    }
}

unsafe extern "C" fn get_api_language(_this: This) -> APILanguage {
    APILanguage::CPP
}

unsafe extern "C" fn get_interface_info<K: CreatorKind>(_this: This) -> InterfaceInfo {
    K::INFO
}

/// Does nothing: the library owns its creators.
unsafe extern "C" fn destroy(_this: This) {}

unsafe extern "C" fn create_plugin<C: Creator>(
    this: This,
    name: *const c_char,
    fields: *const PluginFieldCollection,
    phase: TensorRTPhase,
) -> This {
    // SAFETY: `this` is live, and has this slot.
    let creator = unsafe { creator::<V3One<C>>(this) };
    call::<V3One<C>, _>(creator, ptr::null_mut(), |creator| {
        // SAFETY: each pointer is null, which the functions check, or valid (TensorRT's contract).
        let (name, fields) = unsafe { (text(name), read_fields(fields, creator.fields().are_needed)?) };
        creator.create(name, &fields, phase).map(plugin::into_raw)
    })
}

/// # Safety
/// `text` is null or a C string that lives for `'a`.
unsafe fn text<'a>(text: *const c_char) -> &'a CStr {
    // SAFETY: not null; the caller guarantees the rest.
    if text.is_null() { c"" } else { unsafe { CStr::from_ptr(text) } }
}

/// # Safety
/// `collection` is null, or valid for `'a` with all that it points at.
unsafe fn read_fields<'a>(
    collection: *const PluginFieldCollection,
    are_needed: bool,
) -> Result<Vec<Field<'a>>> {
    // SAFETY: the caller guarantees null or a valid collection.
    let Some(collection) = (unsafe { collection.as_ref() }) else {
        // Defaults would hide missing fields.
        return if are_needed { Err(Error::invalid("the field collection is null")) } else { Ok(Vec::new()) };
    };
    let count = collection.nb_fields;
    if count < 0 || (count > 0 && collection.fields.is_null()) {
        return Err(Error::invalid(format!("the field collection has {count} fields but no data")));
    }
    // SAFETY: the caller guarantees `nb_fields` fields; negative counts were rejected.
    let fields = unsafe { slice(collection.fields, collection.nb_fields) };
    let read = |(index, field): (usize, &PluginField)| {
        // SAFETY: the caller upholds the callee's contract.
        unsafe { Field::from_raw(field) }.ok_or_else(|| Error::invalid(format!("field {index} has no name")))
    };
    fields.iter().enumerate().map(read).collect()
}

unsafe extern "C" fn get_field_names<K: CreatorKind>(this: This) -> *const PluginFieldCollection {
    // SAFETY: `this` is live, and has this slot.
    let creator = unsafe { creator::<K>(this) };
    call::<K, _>(creator, ptr::null(), |creator| Ok(ptr::from_ref(creator.fields().as_raw())))
}

/// Returns a text of the creator; empty after a panic.
///
/// # Safety
/// As [`creator`].
unsafe fn creator_text<K: CreatorKind>(this: This, text: fn(&Identity) -> &CStr) -> *const c_char {
    // SAFETY: the caller upholds the callee's contract.
    let creator = unsafe { creator::<K>(this) };
    call::<K, _>(creator, c"".as_ptr(), |creator| Ok(text(creator.identity()).as_ptr()))
}

unsafe extern "C" fn get_plugin_name<K: CreatorKind>(this: This) -> *const c_char {
    // SAFETY: `this` is live, and has this slot.
    unsafe { creator_text::<K>(this, |identity| &identity.name) }
}

unsafe extern "C" fn get_plugin_version<K: CreatorKind>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { creator_text::<K>(this, |identity| &identity.version) }
}

unsafe extern "C" fn get_plugin_namespace<K: CreatorKind>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { creator_text::<K>(this, |identity| &identity.namespace) }
}

#[cfg(test)]
mod quick_tests;
#[cfg(test)]
mod tests;
