use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::into_raw;
use crate::expr::tests::FakeBuilder;
use crate::raw::{DimsExprs, MAX_DIMS, PluginCapabilityType, PluginFieldType};
use crate::tests::{FAILURE, Mood, Probe, Record};
use crate::vtable::{BuildSlots, CoreSlots, PluginSlots, RuntimeSlots, This, VersionedSlots};
use crate::{DataType, Dims, DynamicPluginTensorDesc, Error, PluginTensorDesc, TensorFormat};

fn slots<'a, Slots>(this: This) -> &'a Slots {
    // SAFETY: the object is live, and its vtable has these slots.
    unsafe { &**this.cast::<*const Slots>() }
}

fn delete(this: This) {
    // SAFETY: tests do not use the object afterwards.
    unsafe { (slots::<VersionedSlots>(this).destroy_and_free)(this) }
}

fn capability(this: This, kind: PluginCapabilityType) -> This {
    // SAFETY: the object is live.
    unsafe { (slots::<PluginSlots>(this).get_capability_interface)(this, kind) }
}

fn clone(this: This) -> This {
    // SAFETY: the object is live.
    unsafe { (slots::<PluginSlots>(this).clone)(this) }
}

fn core(this: This) -> (This, &'static CoreSlots) {
    let this = capability(this, PluginCapabilityType::CORE);
    (this, slots(this))
}

fn build(this: This) -> (This, &'static BuildSlots) {
    let this = capability(this, PluginCapabilityType::BUILD);
    (this, slots(this))
}

fn runtime(this: This) -> (This, &'static RuntimeSlots) {
    let this = capability(this, PluginCapabilityType::RUNTIME);
    (this, slots(this))
}

fn probe(mood: Mood) -> (This, Arc<Record>) {
    let probe = Probe::new(mood);
    let record = probe.record.clone();
    (into_raw(probe), record)
}

fn desc() -> PluginTensorDesc {
    let dims = Dims::from_slice(&[2]).unwrap();
    PluginTensorDesc { dims, data_type: DataType::HALF, format: TensorFormat::LINEAR, scale: 1.0 }
}

fn dynamic() -> DynamicPluginTensorDesc {
    let desc = desc();
    DynamicPluginTensorDesc { desc, min: desc.dims, max: desc.dims, opt: desc.dims }
}

#[test]
fn each_interface_names_its_kind() {
    let (plugin, _) = probe(Mood::Well);
    let kinds = [
        (plugin, c"PLUGIN", 1),
        (capability(plugin, PluginCapabilityType::CORE), c"PLUGIN_V3ONE_CORE", 1),
        (capability(plugin, PluginCapabilityType::BUILD), c"PLUGIN_V3ONE_BUILD", 2),
        (capability(plugin, PluginCapabilityType::RUNTIME), c"PLUGIN_V3ONE_RUNTIME", 1),
    ];
    for (this, kind, major) in kinds {
        let versioned = slots::<VersionedSlots>(this);
        // SAFETY: the object is live, and its kind is a C string.
        unsafe {
            let info = (versioned.get_interface_info)(this);
            assert_eq!((CStr::from_ptr(info.kind), info.major, info.minor), (kind, major, 0));
            assert_eq!((versioned.get_api_language)(this).0, 0);
        }
    }
    assert!(capability(plugin, PluginCapabilityType(3)).is_null());
    delete(plugin);
}

#[test]
fn words_before_the_slots_lead_to_the_whole_object() {
    let (plugin, _) = probe(Mood::Well);
    let mut types = Vec::new();
    for kind in [PluginCapabilityType::CORE, PluginCapabilityType::BUILD, PluginCapabilityType::RUNTIME] {
        let this = capability(plugin, kind);
        // SAFETY: the object is live, and two words precede its vtable's slots.
        let (offset, type_info) = unsafe {
            let vptr = *this.cast::<*const isize>();
            (*vptr.sub(2), *vptr.sub(1))
        };
        assert_eq!(this.wrapping_byte_offset(offset), plugin);
        types.push(type_info);
    }
    assert!(types.iter().all(|found| *found == types[0] && *found != 0));
    delete(plugin);
}

#[test]
fn core_says_where_the_engine_finds_its_creator() {
    let (plugin, _) = probe(Mood::Well);
    let (this, core) = core(plugin);
    // SAFETY: the object and its strings are live.
    unsafe {
        assert_eq!(CStr::from_ptr((core.get_plugin_name)(this)), c"Kernel");
        assert_eq!(CStr::from_ptr((core.get_plugin_version)(this)), c"7");
        assert_eq!(CStr::from_ptr((core.get_plugin_namespace)(this)), c"cubinder");
    }
    delete(plugin);
}

#[test]
fn clones_are_independent() {
    let (plugin, record) = probe(Mood::Well);
    let copy = clone(plugin);
    assert_ne!(copy, plugin);
    assert_eq!(record.alive.load(Ordering::Relaxed), 2);
    let ((this, slots), (other, _)) = (runtime(plugin), runtime(copy));
    // SAFETY: the object is live.
    unsafe {
        assert_eq!((slots.set_tactic)(this, 5), 0);
        assert_eq!((slots.set_tactic)(other, 3), 0);
    }
    delete(plugin);
    // SAFETY: the copy and its fields outlive the original.
    unsafe {
        let fields = (slots.get_fields_to_serialize)(other);
        assert_eq!((*fields).nb_fields, 4);
    }
    assert_eq!(record.alive.load(Ordering::Relaxed), 1);
    delete(copy);
    assert_eq!(record.dropped.load(Ordering::Relaxed), 2);
}

#[test]
fn deleting_through_any_interface_deletes_the_object_once() {
    for kind in [PluginCapabilityType::CORE, PluginCapabilityType::BUILD, PluginCapabilityType::RUNTIME] {
        let (plugin, record) = probe(Mood::Well);
        delete(capability(plugin, kind));
        assert_eq!(record.dropped.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn destroying_in_place_leaves_the_memory() {
    let (plugin, record) = probe(Mood::Well);
    // SAFETY: not used again; its memory is freed without a second destructor.
    unsafe {
        (slots::<VersionedSlots>(plugin).destroy)(plugin);
        drop(Box::from_raw(plugin.cast::<std::mem::MaybeUninit<super::PluginObject<Probe>>>()));
    }
    assert_eq!(record.dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_destructor_that_panics_is_swallowed() {
    let mut probe = Probe::new(Mood::Well);
    probe.panic_in_drop = true;
    let record = probe.record.clone();
    delete(into_raw(probe));
    assert_eq!((record.dropped.load(Ordering::Relaxed), record.report_count()), (1, 0));
}

#[test]
fn build_slots_pass_values_through() {
    let (plugin, record) = probe(Mood::Well);
    let (this, build) = build(plugin);
    let descs = [dynamic(), dynamic(), dynamic()];
    let mut types = [DataType(77); 2];
    let mut tactics = [0; 2];
    // SAFETY: the object is live, and the arrays have these lengths.
    unsafe {
        assert_eq!((build.get_nb_outputs)(this), 2);
        assert_eq!((build.get_output_data_types)(this, types.as_mut_ptr(), 2, &DataType::BF16, 1), 0);
        assert!((build.supports_format_combination)(this, 2, descs.as_ptr(), 1, 2));
        assert_eq!((build.configure_plugin)(this, descs.as_ptr(), 1, descs[1..].as_ptr(), 2), 0);
        assert_eq!((build.get_workspace_size)(this, descs.as_ptr(), 1, descs[1..].as_ptr(), 2), 102);
        assert_eq!((build.get_nb_tactics)(this), 2);
        assert_eq!((build.get_valid_tactics)(this, tactics.as_mut_ptr(), 2), 0);
        assert_eq!((build.get_valid_tactics)(this, null_mut(), 0), 0);
        assert_eq!(CStr::from_ptr((build.get_timing_cache_id)(this)), c"id");
        assert_eq!((build.get_format_combination_limit)(this), 9);
        assert!((build.get_metadata_string)(this).is_null());
        assert_eq!([0, 1, -1].map(|output| (build.get_aliased_input)(this, output)), [-1, 0, -1]);
    }
    assert_eq!((types, tactics), ([DataType::BF16; 2], [5, 3]));
    assert_eq!(record.report_count(), 0);
    delete(plugin);
}

#[test]
fn requests_out_of_range_are_refused() {
    let (plugin, record) = probe(Mood::Well);
    let (this, build) = build(plugin);
    let descs = [dynamic(), dynamic()];
    let mut tactics = [0; 3];
    // SAFETY: as above.
    unsafe {
        for position in [-1, 2] {
            assert!(!(build.supports_format_combination)(this, position, descs.as_ptr(), 1, 1));
        }
        assert_eq!((build.get_valid_tactics)(this, tactics.as_mut_ptr(), 3), Error::INTERNAL);
    }
    assert_eq!(record.last_report().text(), "TensorRT requested 3 tactics, the plugin has 2");
    assert_eq!(record.report_count(), 3);
    delete(plugin);
}

fn output_shapes(plugin: This, builder: &FakeBuilder, extent: i64) -> (i32, Vec<Option<i64>>) {
    let (this, build) = build(plugin);
    let unknown = DimsExprs { nb_dims: 99, d: [null(); MAX_DIMS] };
    let mut outputs = [unknown; 2];
    let input = builder.shape(&[extent]);
    // SAFETY: the object is live, and the arrays have these lengths.
    let code = unsafe {
        (build.get_output_shapes)(
            this,
            &raw const input,
            1,
            null(),
            0,
            outputs.as_mut_ptr(),
            2,
            builder.raw(),
        )
    };
    (code, outputs.iter().map(|output| builder.value(output.d[0])).collect())
}

#[test]
fn output_shapes_are_expressions_of_the_builder() {
    let (plugin, _) = probe(Mood::Well);
    assert_eq!(output_shapes(plugin, &FakeBuilder::new(), 21), (0, vec![Some(42), Some(42)]));
    delete(plugin);
}

#[test]
fn outputs_that_stay_unset_are_an_error() {
    let mut probe = Probe::new(Mood::Well);
    probe.leave_outputs_unset = true;
    let record = probe.record.clone();
    let plugin = into_raw(probe);
    let (this, build) = build(plugin);
    let mut types = [DataType::FLOAT; 2];
    // SAFETY: as above.
    let code = unsafe { (build.get_output_data_types)(this, types.as_mut_ptr(), 2, &DataType::HALF, 1) };
    assert_eq!((code, record.last_report().text()), (Error::INTERNAL, "the plugin set no type for output 0"));
    assert_eq!(output_shapes(plugin, &FakeBuilder::new(), 1).0, Error::INTERNAL);
    assert_eq!(record.last_report().text(), "the plugin set no shape for output 0");
    delete(plugin);
}

fn enqueue(plugin: This) -> i32 {
    let (this, runtime) = runtime(plugin);
    let (descs, pointer) = ([desc(), desc()], |address| std::ptr::without_provenance_mut::<c_void>(address));
    let (inputs, outputs) = ([pointer(16).cast_const()], [pointer(32), pointer(48)]);
    // SAFETY: the object is live, the arrays match the last `on_shape_change`, and no tensor is accessed.
    unsafe {
        (runtime.enqueue)(
            this,
            descs.as_ptr(),
            descs.as_ptr(),
            inputs.as_ptr(),
            outputs.as_ptr(),
            pointer(64),
            pointer(80),
        )
    }
}

fn change_shape(plugin: This) -> i32 {
    let (this, runtime) = runtime(plugin);
    let descs = [desc(), desc()];
    // SAFETY: as above.
    unsafe { (runtime.on_shape_change)(this, descs.as_ptr(), 1, descs.as_ptr(), 2) }
}

#[test]
fn enqueue_knows_its_counts_from_the_last_shape() {
    let (plugin, record) = probe(Mood::Well);
    assert_eq!(enqueue(plugin), Error::INVALID_STATE);
    assert_eq!(change_shape(plugin), 0);
    assert_eq!(enqueue(plugin), 0);
    assert_eq!(*record.enqueued.lock().unwrap(), [1, 2, 1, 2, 16, 48, 64, 80]);
    let copy = clone(plugin);
    assert_eq!(enqueue(copy), 0);
    delete(plugin);
    delete(copy);
}

#[test]
fn attaching_makes_a_new_object() {
    let (plugin, record) = probe(Mood::Well);
    let (this, slots) = runtime(plugin);
    // SAFETY: the object is live, and the context is unused.
    let attached = unsafe { (slots.attach_to_context)(this, null_mut()) };
    assert!(!attached.is_null() && attached != plugin);
    assert_eq!(enqueue(attached), Error::INVALID_STATE);
    assert_eq!(record.alive.load(Ordering::Relaxed), 2);
    delete(attached);
    delete(plugin);
}

#[test]
fn serialized_fields_stay_where_they_are() {
    let (plugin, _) = probe(Mood::Well);
    let (this, runtime) = runtime(plugin);
    // SAFETY: the object is live, and so are its fields.
    unsafe {
        let fields = (runtime.get_fields_to_serialize)(this);
        assert_eq!((runtime.get_fields_to_serialize)(this), fields);
        assert_eq!((*fields).nb_fields, 4);
        let pads = &*(*fields).fields;
        assert_eq!(
            (CStr::from_ptr(pads.name), pads.field_type, pads.length),
            (c"pads", PluginFieldType::INT32, 3)
        );
        assert_eq!(std::slice::from_raw_parts(pads.data.cast::<i32>(), 3), [1, -2, 3]);
        let empty = &*(*fields).fields.add(3);
        assert_eq!((empty.length, empty.data.is_null()), (0, true));
    }
    delete(plugin);
}

fn failures(plugin: This) -> Vec<i64> {
    let ((core_this, core), (build_this, build), (runtime_this, runtime)) =
        (core(plugin), build(plugin), runtime(plugin));
    let descs = [dynamic(), dynamic(), dynamic()];
    let (mut types, mut tactics) = ([DataType::FLOAT; 2], [0; 2]);
    change_shape(plugin);
    // SAFETY: the object is live, and the arrays have these lengths.
    unsafe {
        vec![
            CStr::from_ptr((core.get_plugin_name)(core_this)).count_bytes() as i64,
            (build.configure_plugin)(build_this, descs.as_ptr(), 1, descs.as_ptr(), 2).into(),
            (build.get_output_data_types)(build_this, types.as_mut_ptr(), 2, &DataType::HALF, 1).into(),
            output_shapes(plugin, &FakeBuilder::new(), 1).0.into(),
            (build.supports_format_combination)(build_this, 0, descs.as_ptr(), 1, 2).into(),
            (build.get_nb_outputs)(build_this).into(),
            (build.get_workspace_size)(build_this, descs.as_ptr(), 1, descs.as_ptr(), 2) as i64,
            (build.get_valid_tactics)(build_this, tactics.as_mut_ptr(), 2).into(),
            (build.get_nb_tactics)(build_this).into(),
            (build.get_timing_cache_id)(build_this).addr() as i64,
            (build.get_format_combination_limit)(build_this).into(),
            (build.get_metadata_string)(build_this).addr() as i64,
            (build.get_aliased_input)(build_this, 1).into(),
            (runtime.set_tactic)(runtime_this, 5).into(),
            change_shape(plugin).into(),
            enqueue(plugin).into(),
            (*(*(runtime.get_fields_to_serialize)(runtime_this)).fields).field_type.0.into(),
        ]
    }
}

#[test]
fn panics_become_failure_values() {
    let (plugin, record) = probe(Mood::Panicking);
    let code = i64::from(Error::INTERNAL);
    assert_eq!(
        failures(plugin),
        [0, code, code, code, 0, -1, i64::MAX, code, -1, 0, 0, 0, -1, code, code, code, 99]
    );
    assert_eq!(record.report_count(), 18);
    assert!(record.last_report().text().ends_with("panicked: asked to panic"), "{}", record.last_report());
    delete(plugin);
}

#[test]
fn errors_keep_their_code() {
    let (plugin, record) = probe(Mood::Failing);
    let (this, runtime) = runtime(plugin);
    // SAFETY: the object is live.
    assert_eq!(unsafe { (runtime.set_tactic)(this, 5) }, FAILURE);
    assert_eq!(record.last_report(), Error::new(FAILURE, "asked to fail"));
    delete(plugin);
}

#[test]
fn a_failed_clone_is_an_object_that_always_fails() {
    let (plugin, record) = probe(Mood::Panicking);
    let copy = clone(plugin);
    assert!(!copy.is_null());
    assert_eq!(record.report_count(), 1);
    let code = i64::from(Error::INVALID_STATE);
    assert_eq!(
        failures(copy),
        [0, code, code, code, 0, -1, i64::MAX, code, -1, 0, 0, 0, -1, code, code, code, 99]
    );
    let again = clone(copy);
    delete(copy);
    delete(again);
    delete(plugin);
    assert_eq!(record.dropped.load(Ordering::Relaxed), 1);
}

#[test]
fn a_failed_attach_is_null_only_where_that_is_safe() {
    for aliased in [false, true] {
        let mut probe = Probe::new(Mood::Well);
        (probe.aliased, probe.fails_to_attach) = (aliased, true);
        let record = probe.record.clone();
        let plugin = into_raw(probe);
        let (this, slots) = runtime(plugin);
        // SAFETY: the object is live.
        let attached = unsafe { (slots.attach_to_context)(this, null_mut()) };
        assert_eq!((attached.is_null(), record.report_count()), (!aliased, 1));
        if !attached.is_null() {
            assert_eq!(enqueue(attached), Error::INVALID_STATE);
            delete(attached);
        }
        delete(plugin);
    }
}

#[test]
fn the_build_interface_is_one_that_tensorrt_knows() {
    let versions =
        [None, Some(100_000), Some(100_201), Some(100_300), Some(110_400)].map(super::build_version);
    assert_eq!(versions, [2, 1, 1, 2, 2]);
}
