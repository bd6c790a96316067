use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

use super::{CreatorList, op_name};
use crate::raw::{
    PluginField, PluginFieldCollection, PluginFieldType, QuickPluginCreationRequest, TensorRTPhase,
};
use crate::tests::{FAILURE, Mood, ProbeCreator, QuickProbeCreator};
use crate::vtable::{QuickCreatorSlots, This, VersionedSlots};

fn slots<'a, Slots>(this: This) -> &'a Slots {
    // SAFETY: the object is live, and its vtable has these slots.
    unsafe { &**this.cast::<*const Slots>() }
}

fn list(creator: QuickProbeCreator) -> (CreatorList, This, &'static QuickCreatorSlots) {
    let mut list = CreatorList::new();
    list.push_quick(creator);
    let this = list.as_slice()[0];
    (list, this, slots(this))
}

fn delete(this: This) {
    // SAFETY: the test does not use the object afterwards.
    unsafe { (slots::<VersionedSlots>(this).destroy_and_free)(this) }
}

fn create(this: This, request: QuickPluginCreationRequest) -> This {
    let empty = PluginFieldCollection { nb_fields: 0, fields: ptr::null() };
    // SAFETY: the object is live.
    unsafe {
        let create = slots::<QuickCreatorSlots>(this).create_plugin;
        create(this, c"node".as_ptr(), c"sample".as_ptr(), &raw const empty, TensorRTPhase::BUILD, request)
    }
}

#[test]
fn a_creator_says_who_it_is() {
    let (_list, this, slots) = list(QuickProbeCreator::new(Mood::Well));
    // SAFETY: the object and its strings are live.
    unsafe {
        assert_eq!(CStr::from_ptr((slots.get_plugin_name)(this)), c"quick_probe");
        assert_eq!(CStr::from_ptr((slots.get_plugin_version)(this)), c"3");
        assert_eq!(CStr::from_ptr((slots.get_plugin_namespace)(this)), c"sample");
        let info = (slots.versioned.get_interface_info)(this);
        assert_eq!((CStr::from_ptr(info.kind), info.major, info.minor), (c"PLUGIN CREATOR_V3QUICK", 1, 0));
        let names = &*(slots.get_field_names)(this);
        assert_eq!((names.nb_fields, CStr::from_ptr((*names.fields).name)), (1, c"factor"));
        (slots.versioned.destroy_and_free)(this);
        assert_eq!(CStr::from_ptr((slots.get_plugin_name)(this)), c"quick_probe");
    }
}

#[test]
fn a_creator_is_told_what_is_wanted() {
    let creator = QuickProbeCreator::new(Mood::Well);
    let (seen, record) = (creator.seen.clone(), creator.record.clone());
    let (_list, this, slots) = list(creator);
    let factor = [0.5_f32];
    let field = PluginField {
        name: c"factor".as_ptr(),
        data: factor.as_ptr().cast(),
        field_type: PluginFieldType::FLOAT32,
        length: 1,
    };
    let node = PluginFieldCollection { nb_fields: 1, fields: &raw const field };
    let (text, aot) = (c"node".as_ptr(), QuickPluginCreationRequest::STRICT_AOT);
    // SAFETY: the object is live, and each pointer is null or valid.
    let plugin = unsafe {
        (slots.create_plugin)(this, text, c"sample".as_ptr(), &raw const node, TensorRTPhase::BUILD, aot)
    };
    delete(plugin);
    delete(create(this, QuickPluginCreationRequest(77)));
    assert!(create(this, QuickPluginCreationRequest::STRICT_JIT).is_null());
    assert_eq!(record.last_report().text(), "only an ahead-of-time plugin is supported");
    // SAFETY: as above.
    let plugin = unsafe { (slots.create_plugin)(this, text, text, ptr::null(), TensorRTPhase::BUILD, aot) };
    assert!(plugin.is_null());
    assert_eq!(record.last_report().text(), "the field collection is null");
    assert_eq!(
        *seen.lock().unwrap(),
        [
            r#""node" "sample" ["factor": PluginFieldType::FLOAT32 x 1] TensorRTPhase::BUILD QuickPluginCreationRequest::STRICT_AOT"#,
            r#""node" "sample" [] TensorRTPhase::BUILD QuickPluginCreationRequest(77)"#,
            r#""node" "sample" [] TensorRTPhase::BUILD QuickPluginCreationRequest::STRICT_JIT"#,
        ]
    );
}

#[test]
fn what_is_missing_is_read_as_nothing_where_nothing_is_needed() {
    let mut creator = QuickProbeCreator::new(Mood::Well);
    creator.names.are_needed = false;
    let seen = creator.seen.clone();
    let (_list, this, slots) = list(creator);
    let unknown = QuickPluginCreationRequest::UNKNOWN;
    // SAFETY: the object is live, and the function accepts null.
    let plugin = unsafe {
        (slots.create_plugin)(this, ptr::null(), ptr::null(), ptr::null(), TensorRTPhase(9), unknown)
    };
    assert!(!plugin.is_null());
    delete(plugin);
    assert_eq!(*seen.lock().unwrap(), [r#""" "" [] TensorRTPhase(9) QuickPluginCreationRequest::UNKNOWN"#]);
}

#[test]
fn failures_become_null_and_are_reported() {
    for (mood, code) in [(Mood::Failing, FAILURE), (Mood::Panicking, crate::Error::INTERNAL)] {
        let creator = QuickProbeCreator::new(mood);
        let record = creator.record.clone();
        let (_list, this, _) = list(creator);
        let plugin = create(this, QuickPluginCreationRequest::STRICT_AOT);
        assert_eq!((plugin.is_null(), record.last_report().code()), (true, code));
    }
}

#[test]
fn both_kinds_stand_in_one_list_in_order() {
    let (one, quick) = (ProbeCreator::new(Mood::Well), QuickProbeCreator::new(Mood::Well));
    let seen = (one.seen.clone(), quick.seen.clone());
    let mut list = CreatorList::new();
    list.push_quick(quick);
    list.push(one);
    let kind = |this: &This| {
        // SAFETY: the object is live, and its kind is a C string.
        unsafe { CStr::from_ptr((slots::<VersionedSlots>(*this).get_interface_info)(*this).kind) }
    };
    let kinds = [c"PLUGIN CREATOR_V3QUICK", c"PLUGIN CREATOR_V3ONE"];
    assert_eq!(list.as_slice().iter().map(kind).collect::<Vec<_>>(), kinds);
    assert_eq!(list.for_deregistering(true), list.as_slice());
    list.push_quick(QuickProbeCreator::new(Mood::Well));
    let mut backward = list.as_slice().to_vec();
    backward.reverse();
    assert_eq!(list.for_deregistering(true), backward);
    assert_eq!((Arc::strong_count(&seen.0), Arc::strong_count(&seen.1)), (2, 2));
    drop(list);
    assert_eq!((Arc::strong_count(&seen.0), Arc::strong_count(&seen.1)), (1, 1));
}

#[test]
fn the_namespace_of_an_op_is_left_out_if_it_is_empty() {
    assert_eq!(op_name(&crate::Identity::new(c"op", c"1", c"sample")), "sample::op");
    assert_eq!(op_name(&crate::Identity::new(c"op", c"1", c"")), "op");
}
