//! A creator: the safe trait, and the objects that a plugin library registers.
//!
//! Owns: [`Creator`], [`CreatorList`] and the thunks of `IPluginCreatorV3One`. Never: no registry call;
//! TensorRT asks the library for its creators.

use std::collections::BTreeSet;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;
use std::ptr;

use crate::error::Error;
use crate::fields::{Field, FieldNames};
use crate::plugin::{self, Plugin};
use crate::raw::{APILanguage, InterfaceInfo, PluginField, PluginFieldCollection, TensorRTPhase};
use crate::thunk::{caught, slice, tell};
use crate::vtable::{CreatorSlots, This, VTable, VersionedSlots};
use crate::{logger, rtti};

/// What makes plugins of one name, version and namespace.
pub trait Creator: Send + Sync + 'static {
    /// The plugins it makes.
    type Plugin: Plugin;

    /// Plugin name: the ONNX op type, or an engine's core name.
    fn name(&self) -> &CStr;
    /// Plugin version, "1" where an ONNX node names none.
    fn version(&self) -> &CStr;
    /// Plugin namespace.
    fn namespace(&self) -> &CStr;

    /// The attributes that it wants from an ONNX node.
    fn fields(&self) -> &FieldNames;

    /// Whether a plugin is nothing without fields, so that it is a mistake to give no collection of them. An application that makes a
    /// plugin of an op without attributes may give none.
    fn needs_fields(&self) -> bool {
        true
    }

    /// Makes a plugin: for an ONNX node (`TensorRTPhase::BUILD`, `name` is the node's) or from the fields in
    /// an engine (`TensorRTPhase::RUNTIME`). Both happen on machines without a GPU.
    fn create(&self, name: &CStr, fields: &[Field<'_>], phase: TensorRTPhase) -> Result<Self::Plugin, Error>;

    /// Told each failure before TensorRT gets null: an `Err` of [`create`](Self::create), or a caught panic.
    fn report(&self, error: &Error) {
        logger::error_of(self.name(), error);
    }
}

/// `IPluginCreatorV3One` as C++ sees it.
#[repr(C)]
struct CreatorObject<C> {
    vptr: *const CreatorSlots,
    creator: C,
}

struct Vtables<C>(PhantomData<C>);

impl<C: Creator> Vtables<C> {
    const CREATOR: &'static VTable<CreatorSlots> = &VTable {
        offset_to_top: 0,
        type_info: &raw const rtti::CREATOR,
        slots: CreatorSlots {
            versioned: VersionedSlots {
                get_api_language,
                get_interface_info,
                destroy,
                destroy_and_free: destroy,
            },
            create_plugin: create_plugin::<C>,
            get_field_names: get_field_names::<C>,
            get_plugin_name: get_plugin_name::<C>,
            get_plugin_version: get_plugin_version::<C>,
            get_plugin_namespace: get_plugin_namespace::<C>,
        },
    };
}

/// The creators of a library, as an array of `IPluginCreatorInterface*`.
///
/// TensorRT keeps the pointers while the library is registered, so a library keeps its list until it is closed.
#[derive(Default)]
pub struct CreatorList {
    pointers: Vec<This>,
    /// The same from the last to the first.
    backward: Vec<This>,
    free: Vec<unsafe fn(This)>,
    /// A name with its namespace, for each, joined as closely as a registry can: two that only look alike then turn the list, which does
    /// no harm.
    names: BTreeSet<Vec<u8>>,
    shares_names: bool,
}

// SAFETY: the pointers own creators, and `Creator` is `Send`.
unsafe impl Send for CreatorList {}
// SAFETY: the list only shows pointers; creators are called through shared references and are `Sync`.
unsafe impl Sync for CreatorList {}

impl CreatorList {
    /// No creator yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a creator. TensorRT refuses a library whole when one of its (name, version, namespace) is
    /// registered already.
    pub fn push<C: Creator>(&mut self, creator: C) {
        // One that cannot say its name is refused by TensorRT.
        let name = caught(|| Ok([creator.name().to_bytes(), creator.namespace().to_bytes()].concat()));
        self.shares_names |= name.is_ok_and(|name| !self.names.insert(name));
        let object = Box::new(CreatorObject { vptr: Vtables::<C>::CREATOR.vptr(), creator });
        let this = Box::into_raw(object).cast();
        self.pointers.push(this);
        self.backward.insert(0, this);
        self.free.push(free::<C>);
    }

    /// The creators as C++ gets them.
    pub fn as_slice(&self) -> &[This] {
        &self.pointers
    }

    /// The creators in the order in which they can be deregistered: the same, but for a list in which some share name and namespace.
    /// TensorRT-RTX 1.7 files creators under name and namespace together, and takes out of several there the one that it was given last or none
    /// (seen: of versions 1 and 2, deregistered in that order, version 1 stays, and a later look-up calls it in memory that is unmapped).
    pub fn for_deregistering(&self) -> &[This] {
        if self.shares_names { &self.backward } else { &self.pointers }
    }
}

impl Drop for CreatorList {
    fn drop(&mut self) {
        for (this, free) in self.pointers.drain(..).zip(&self.free) {
            // SAFETY: `push` put both there for the same creator, and nobody uses the list any more.
            unsafe { free(this) };
        }
    }
}

/// # Safety
/// `this` comes from [`CreatorList::push`] with the same `C` and is not used again.
unsafe fn free<C: Creator>(this: This) {
    // SAFETY: the caller's promise; `push` took it out of a `Box`.
    drop(unsafe { Box::from_raw(this.cast::<CreatorObject<C>>()) });
}

/// # Safety
/// `this` is a live creator of type `C`.
unsafe fn creator<'a, C: Creator>(this: This) -> &'a C {
    // SAFETY: the caller's promise; only shared references to a creator exist.
    unsafe { &(*this.cast::<CreatorObject<C>>()).creator }
}

/// Runs a method of the creator; a failure is reported and becomes `failure`.
fn call<C: Creator, R>(creator: &C, failure: R, body: impl FnOnce(&C) -> Result<R, Error>) -> R {
    match caught(|| body(creator)) {
        Ok(value) => value,
        Err(error) => {
            tell(|| creator.report(&error));
            failure
        }
    }
}

unsafe extern "C" fn get_api_language(_this: This) -> APILanguage {
    APILanguage::CPP
}

unsafe extern "C" fn get_interface_info(_this: This) -> InterfaceInfo {
    // With the space: it stands so in NVIDIA's header.
    InterfaceInfo { kind: c"PLUGIN CREATOR_V3ONE".as_ptr(), major: 1, minor: 0 }
}

/// D1 and D0. A library's creators are like C++'s static ones: they belong to the library, and nobody deletes
/// them.
unsafe extern "C" fn destroy(_this: This) {}

unsafe extern "C" fn create_plugin<C: Creator>(
    this: This,
    name: *const c_char,
    fields: *const PluginFieldCollection,
    phase: TensorRTPhase,
) -> This {
    // SAFETY: TensorRT passes one of the library's creators.
    let creator = unsafe { creator::<C>(this) };
    call(creator, ptr::null_mut(), |creator| {
        // SAFETY: name, collection and fields are TensorRT's and outlive the call; nulls are checked.
        let (name, fields) = unsafe { (text(name), read_fields(fields, creator.needs_fields())?) };
        creator.create(name, &fields, phase).map(plugin::into_raw)
    })
}

/// # Safety
/// `text` is null or a NUL-terminated text that lives for `'a`.
unsafe fn text<'a>(text: *const c_char) -> &'a CStr {
    // SAFETY: not null; the rest is the caller's promise.
    if text.is_null() { c"" } else { unsafe { CStr::from_ptr(text) } }
}

/// # Safety
/// `collection` is null or valid for `'a`, with everything it points at.
unsafe fn read_fields<'a>(
    collection: *const PluginFieldCollection,
    are_needed: bool,
) -> Result<Vec<Field<'a>>, Error> {
    // SAFETY: null or valid.
    let Some(collection) = (unsafe { collection.as_ref() }) else {
        // Defaults would hide that they are missing.
        return if are_needed {
            Err(Error::invalid("there is no collection of fields"))
        } else {
            Ok(Vec::new())
        };
    };
    // A plugin without attributes would not miss them.
    let count = collection.nb_fields;
    if count < 0 || (count > 0 && collection.fields.is_null()) {
        return Err(Error::invalid(format!("a collection of {count} fields that lie nowhere")));
    }
    // SAFETY: valid for `nb_fields` fields.
    let fields = unsafe { slice(collection.fields, collection.nb_fields) };
    let read = |(index, field): (usize, &PluginField)| {
        // SAFETY: the caller answers for name and data.
        unsafe { Field::from_raw(field) }
            .ok_or_else(|| Error::invalid(format!("field number {index} has no name")))
    };
    fields.iter().enumerate().map(read).collect()
}

unsafe extern "C" fn get_field_names<C: Creator>(this: This) -> *const PluginFieldCollection {
    // SAFETY: TensorRT passes one of the library's creators.
    let creator = unsafe { creator::<C>(this) };
    call(creator, ptr::null(), |creator| Ok(ptr::from_ref(creator.fields().as_raw())))
}

/// A text of the creator's, valid as long as it; an empty one after a panic.
///
/// # Safety
/// As for [`creator`].
unsafe fn creator_text<C: Creator>(this: This, text: fn(&C) -> &CStr) -> *const c_char {
    // SAFETY: the caller's promise.
    let creator = unsafe { creator::<C>(this) };
    call(creator, c"".as_ptr(), |creator| Ok(text(creator).as_ptr()))
}

unsafe extern "C" fn get_plugin_name<C: Creator>(this: This) -> *const c_char {
    // SAFETY: TensorRT passes one of the library's creators.
    unsafe { creator_text(this, C::name) }
}

unsafe extern "C" fn get_plugin_version<C: Creator>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { creator_text(this, C::version) }
}

unsafe extern "C" fn get_plugin_namespace<C: Creator>(this: This) -> *const c_char {
    // SAFETY: as above.
    unsafe { creator_text(this, C::namespace) }
}

#[cfg(test)]
mod tests;
