use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

use super::CreatorList;
use crate::raw::{PluginField, PluginFieldCollection, PluginFieldType, TensorRTPhase};
use crate::tests::{FAILURE, Mood, ProbeCreator};
use crate::vtable::{CreatorSlots, PluginSlots, RuntimeSlots, This, VersionedSlots};

fn slots<'a, Slots>(this: This) -> &'a Slots {
    // SAFETY: the object is live, and its vtable has these slots.
    unsafe { &**this.cast::<*const Slots>() }
}

fn list(creator: ProbeCreator) -> (CreatorList, This, &'static CreatorSlots) {
    let mut list = CreatorList::new();
    list.push(creator);
    let this = list.as_slice()[0];
    (list, this, slots(this))
}

fn delete(this: This) {
    // SAFETY: the test does not use the object afterwards.
    unsafe { (slots::<VersionedSlots>(this).destroy_and_free)(this) }
}

#[test]
fn a_creator_says_who_it_is() {
    let (_list, this, slots) = list(ProbeCreator::new(Mood::Well));
    // SAFETY: the object and its strings are live.
    unsafe {
        assert_eq!(CStr::from_ptr((slots.get_plugin_name)(this)), c"circ_pad");
        assert_eq!(CStr::from_ptr((slots.get_plugin_version)(this)), c"1");
        assert_eq!(CStr::from_ptr((slots.get_plugin_namespace)(this)), c"sample");
        let info = (slots.versioned.get_interface_info)(this);
        assert_eq!((CStr::from_ptr(info.kind), info.major, info.minor), (c"PLUGIN CREATOR_V3ONE", 1, 0));
        let names = &*(slots.get_field_names)(this);
        let names = std::slice::from_raw_parts(names.fields, 2);
        assert_eq!(
            names.iter().map(|field| CStr::from_ptr(field.name)).collect::<Vec<_>>(),
            [c"pads", c"aot"]
        );
        (slots.versioned.destroy_and_free)(this);
        assert_eq!(CStr::from_ptr((slots.get_plugin_name)(this)), c"circ_pad");
    }
}

#[test]
fn fields_round_trip_through_an_engine() {
    let creator = ProbeCreator::new(Mood::Well);
    let seen = creator.seen.clone();
    let (_list, this, creator) = list(creator);
    let pads = [4, 5];
    let field = PluginField {
        name: c"pads".as_ptr(),
        data: pads.as_ptr().cast(),
        field_type: PluginFieldType::INT32,
        length: 2,
    };
    let node = PluginFieldCollection { nb_fields: 1, fields: &raw const field };
    // SAFETY: the objects are live; serialized fields live as long as the plugin.
    unsafe {
        let first = (creator.create_plugin)(this, c"node".as_ptr(), &raw const node, TensorRTPhase::BUILD);
        let runtime = (slots::<PluginSlots>(first).get_capability_interface)(
            first,
            crate::raw::PluginCapabilityType::RUNTIME,
        );
        let fields = (slots::<RuntimeSlots>(runtime).get_fields_to_serialize)(runtime);
        let second = (creator.create_plugin)(this, c"node".as_ptr(), fields, TensorRTPhase::RUNTIME);
        assert!(!second.is_null());
        delete(first);
        delete(second);
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], r#""node" TensorRTPhase::BUILD ["pads": PluginFieldType::INT32 x 2]"#);
    assert!(
        seen[1].starts_with(r#""node" TensorRTPhase::RUNTIME ["pads": PluginFieldType::INT32 x 2, "code": "#)
    );
}

#[test]
fn what_is_missing_is_read_as_nothing_or_refused() {
    let creator = ProbeCreator::new(Mood::Well);
    let (seen, record) = (creator.seen.clone(), creator.record.clone());
    let (_list, this, slots) = list(creator);
    let nameless =
        PluginField { name: ptr::null(), data: ptr::null(), field_type: PluginFieldType::INT8, length: 0 };
    let collection = |nb_fields, fields| PluginFieldCollection { nb_fields, fields };
    let empty = collection(0, ptr::null());
    // SAFETY: the object is live, and each pointer is null or valid.
    let create = |name, fields| unsafe { (slots.create_plugin)(this, name, fields, TensorRTPhase(9)) };
    let plugin = create(ptr::null(), &raw const empty);
    assert!(!plugin.is_null());
    delete(plugin);
    assert_eq!(*seen.lock().unwrap(), [r#""" TensorRTPhase(9) []"#]);
    for (impossible, why) in [
        (collection(1, &raw const nameless), "field 0 has no name"),
        (collection(1, ptr::null()), "the field collection has 1 fields but no data"),
        (
            collection(i32::MIN, &raw const nameless),
            "the field collection has -2147483648 fields but no data",
        ),
    ] {
        assert!(create(c"".as_ptr(), &raw const impossible).is_null());
        assert_eq!(record.last_report().text(), why);
    }
    assert!(create(c"".as_ptr(), ptr::null()).is_null());
    assert_eq!(record.last_report().text(), "the field collection is null");
    let mut creator = ProbeCreator::new(Mood::Well);
    creator.names.are_needed = false;
    let (_list, this, slots) = list(creator);
    // SAFETY: the object is live, and the function accepts null.
    let plugin = unsafe { (slots.create_plugin)(this, c"".as_ptr(), ptr::null(), TensorRTPhase::BUILD) };
    assert!(!plugin.is_null(), "an op without attributes");
    delete(plugin);
}

#[test]
fn failures_become_null_and_are_reported() {
    for (mood, code) in [(Mood::Failing, FAILURE), (Mood::Panicking, crate::Error::INTERNAL)] {
        let creator = ProbeCreator::new(mood);
        let record = creator.record.clone();
        let (_list, this, slots) = list(creator);
        let empty = PluginFieldCollection { nb_fields: 0, fields: ptr::null() };
        // SAFETY: the object is live.
        let plugin =
            unsafe { (slots.create_plugin)(this, c"".as_ptr(), &raw const empty, TensorRTPhase::BUILD) };
        assert_eq!((plugin.is_null(), record.last_report().code()), (true, code));
    }
}

#[test]
fn a_name_that_panics_is_empty() {
    let (_list, this, slots) = list(ProbeCreator::new(Mood::Panicking));
    // SAFETY: the object is live.
    assert_eq!(unsafe { CStr::from_ptr((slots.get_plugin_name)(this)) }, c"");
}

#[test]
fn a_list_frees_its_creators() {
    let creator = ProbeCreator::new(Mood::Well);
    let seen = creator.seen.clone();
    let (list, ..) = list(creator);
    assert_eq!(Arc::strong_count(&seen), 2);
    drop(list);
    assert_eq!(Arc::strong_count(&seen), 1);
}
