use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::into_raw;
use crate::expr::tests::FakeBuilder;
use crate::raw::{DimsExprs, IExprBuilder, IKernelLaunchParams, ISymExprs, MAX_DIMS, PluginCapabilityType};
use crate::tests::{FAILURE, Mood, QuickProbe, Record};
use crate::vtable::{
    CoreSlots, ExtentSlots, KernelLaunchParamsSlots, PluginSlots, QuickBuildSlots, QuickRuntimeSlots,
    SymExprSlots, SymExprsSlots, This, VersionedSlots,
};
use crate::{DataType, Dims, DynamicPluginTensorDesc, Error, PluginTensorDesc, TensorFormat};

fn slots<'a, Slots>(this: This) -> &'a Slots {
    // SAFETY: the object is live, and its vtable has these slots.
    unsafe { &**this.cast::<*const Slots>() }
}

fn delete(this: This) {
    // SAFETY: tests do not use the object afterwards.
    unsafe { (slots::<VersionedSlots>(this).destroy_and_free)(this) }
}

fn clone(this: This) -> This {
    // SAFETY: the object is live.
    unsafe { (slots::<PluginSlots>(this).clone)(this) }
}

fn face<'a, Slots>(this: This, kind: PluginCapabilityType) -> (This, &'a Slots) {
    // SAFETY: the object is live.
    let this = unsafe { (slots::<PluginSlots>(this).get_capability_interface)(this, kind) };
    (this, slots(this))
}

fn build(this: This) -> (This, &'static QuickBuildSlots) {
    face(this, PluginCapabilityType::BUILD)
}

fn runtime(this: This) -> (This, &'static QuickRuntimeSlots) {
    face(this, PluginCapabilityType::RUNTIME)
}

fn probe(mood: Mood) -> (This, Arc<Record>) {
    changed(mood, |_| {})
}

fn changed(mood: Mood, change: impl FnOnce(&mut QuickProbe)) -> (This, Arc<Record>) {
    let mut probe = QuickProbe::new(mood);
    change(&mut probe);
    let record = probe.record.clone();
    (into_raw(probe), record)
}

fn dynamic() -> DynamicPluginTensorDesc {
    let dims = Dims::from_slice(&[2]).unwrap();
    let desc = PluginTensorDesc { dims, data_type: DataType::INT8, format: TensorFormat::LINEAR, scale: 1.0 };
    DynamicPluginTensorDesc { desc, min: dims, max: dims, opt: dims }
}

/// `IKernelLaunchParamsImpl` and `ISymExprsImpl` in one. Call `refused`, counted over both from 0, fails.
#[repr(C)]
struct FakeImplementation<Slots> {
    vptr: *const Slots,
    place: *const Recorder,
}

#[derive(Default)]
struct Recorder {
    params: RefCell<Vec<(usize, This)>>,
    scalars: RefCell<Vec<This>>,
    calls: RefCell<usize>,
    refused: Option<usize>,
}

impl Recorder {
    fn answer(&self) -> bool {
        let call = self.calls.replace_with(|calls| *calls + 1);
        self.refused != Some(call)
    }
}

fn place<'a>(this: This) -> &'a Recorder {
    // SAFETY: both layouts are equal; the place outlives the call.
    unsafe { &*(*this.cast::<FakeImplementation<c_void>>()).place }
}

unsafe extern "C" fn nothing(_this: This) {}

unsafe extern "C" fn unread(_this: This) -> This {
    null_mut()
}

unsafe extern "C" fn set<const NUMBER: usize>(this: This, expr: This) -> bool {
    place(this).params.borrow_mut().push((NUMBER, expr));
    place(this).answer()
}

unsafe extern "C" fn get_sym_expr(this: This, index: i32) -> This {
    place(this).scalars.borrow()[index as usize]
}

unsafe extern "C" fn set_sym_expr(this: This, index: i32, expr: This) -> bool {
    place(this).scalars.borrow_mut()[index as usize] = expr;
    place(this).answer()
}

unsafe extern "C" fn get_nb_sym_exprs(this: This) -> i32 {
    place(this).scalars.borrow().len() as i32
}

unsafe extern "C" fn set_nb_sym_exprs(this: This, count: i32) -> bool {
    place(this).scalars.borrow_mut().resize(count as usize, null_mut());
    place(this).answer()
}

static PARAMS: KernelLaunchParamsSlots = KernelLaunchParamsSlots {
    extents: [
        ExtentSlots { get: unread, set: set::<0> },
        ExtentSlots { get: unread, set: set::<1> },
        ExtentSlots { get: unread, set: set::<2> },
        ExtentSlots { get: unread, set: set::<3> },
        ExtentSlots { get: unread, set: set::<4> },
        ExtentSlots { get: unread, set: set::<5> },
        ExtentSlots { get: unread, set: set::<6> },
    ],
    destroy: nothing,
    destroy_and_free: nothing,
};

static SCALARS: SymExprsSlots = SymExprsSlots {
    get_sym_expr,
    set_sym_expr,
    get_nb_sym_exprs,
    set_nb_sym_exprs,
    destroy: nothing,
    destroy_and_free: nothing,
};

fn launch(plugin: This, place: &Recorder, builder: &FakeBuilder) -> i32 {
    let params = FakeImplementation { vptr: &raw const PARAMS, place };
    let scalars = FakeImplementation { vptr: &raw const SCALARS, place };
    let params = IKernelLaunchParams { vptr: null(), implementation: (&raw const params).cast_mut().cast() };
    let scalars = ISymExprs { vptr: null(), implementation: (&raw const scalars).cast_mut().cast() };
    launch_into(plugin, &raw const params, &raw const scalars, builder, builder.raw())
}

fn launch_into(
    plugin: This,
    params: *const IKernelLaunchParams,
    scalars: *const ISymExprs,
    builder: &FakeBuilder,
    raw: *mut IExprBuilder,
) -> i32 {
    let (this, slots) = build(plugin);
    let (input, in_out) = (builder.shape(&[1024]), [dynamic(); 3]);
    // SAFETY: the object is live, the arrays have these lengths, and each receiver is null or live.
    unsafe {
        (slots.get_launch_params)(
            this,
            &raw const input,
            in_out.as_ptr(),
            1,
            2,
            params.cast_mut(),
            scalars.cast_mut(),
            raw,
        )
    }
}

fn read(builder: &FakeBuilder, expr: This) -> (i32, i32, Option<i64>) {
    let slots = slots::<SymExprSlots>(expr);
    // SAFETY: the object is live.
    unsafe {
        let value = builder.value((slots.get_expr)(expr).cast());
        ((slots.get_type)(expr).0, (slots.get_data_type)(expr).0, value)
    }
}

#[test]
fn each_interface_names_its_kind() {
    let (plugin, _) = probe(Mood::Well);
    let kinds = [
        (PluginCapabilityType::CORE, c"PLUGIN_V3QUICK_CORE"),
        (PluginCapabilityType::BUILD, c"PLUGIN_V3QUICKAOT_BUILD"),
        (PluginCapabilityType::RUNTIME, c"PLUGIN_V3QUICK_RUNTIME"),
    ];
    for (kind, text) in kinds {
        let (this, versioned) = face::<VersionedSlots>(plugin, kind);
        // SAFETY: the object is live, and its kind is a C string.
        unsafe {
            let info = (versioned.get_interface_info)(this);
            assert_eq!((CStr::from_ptr(info.kind), info.major, info.minor), (text, 1, 0));
            assert_eq!((versioned.get_api_language)(this).0, 0);
        }
    }
    // SAFETY: as above; strings live as long as the plugin.
    unsafe {
        let info = (slots::<VersionedSlots>(plugin).get_interface_info)(plugin);
        assert_eq!(CStr::from_ptr(info.kind), c"PLUGIN");
        let (this, core) = face::<CoreSlots>(plugin, PluginCapabilityType::CORE);
        assert_eq!(CStr::from_ptr((core.get_plugin_name)(this)), c"quick_probe");
        assert_eq!(CStr::from_ptr((core.get_plugin_version)(this)), c"3");
        assert_eq!(CStr::from_ptr((core.get_plugin_namespace)(this)), c"sample");
    }
    delete(plugin);
}

#[test]
fn build_slots_pass_values_through() {
    let (plugin, record) = probe(Mood::Well);
    let (this, build) = build(plugin);
    let descs = [dynamic(); 3];
    let (mut types, mut tactics) = ([DataType(77); 2], [0; 2]);
    // SAFETY: the object is live, and the arrays have these lengths.
    unsafe {
        assert_eq!((build.get_nb_outputs)(this), 2);
        assert_eq!((build.get_output_data_types)(this, types.as_mut_ptr(), 2, &DataType::BF16, &4, 1), 0);
        assert_eq!((build.configure_plugin)(this, descs.as_ptr(), 1, descs[1..].as_ptr(), 2), 0);
        assert_eq!((build.get_nb_tactics)(this), 2);
        assert_eq!((build.get_valid_tactics)(this, tactics.as_mut_ptr(), 2), 0);
        assert_eq!((build.get_valid_tactics)(this, null_mut(), 0), 0);
        assert_eq!(CStr::from_ptr((build.get_timing_cache_id)(this)), c"id");
        assert!((build.get_metadata_string)(this).is_null());
        assert_eq!([0, 1, -1].map(|output| (build.get_aliased_input)(this, output)), [-1, 0, -1]);
    }
    assert_eq!((types, tactics), ([DataType::BF16; 2], [5, 3]));
    assert_eq!(output_shapes(plugin, &FakeBuilder::new()), (0, vec![Some(21); 2]));
    assert_eq!(record.report_count(), 0);
    delete(plugin);
}

fn output_shapes(plugin: This, builder: &FakeBuilder) -> (i32, Vec<Option<i64>>) {
    let (this, build) = build(plugin);
    let mut outputs = [DimsExprs { nb_dims: 99, d: [null(); MAX_DIMS] }; 2];
    let input = builder.shape(&[21]);
    // SAFETY: as above.
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
fn outputs_that_stay_unset_are_an_error() {
    let (plugin, record) = changed(Mood::Well, |probe| probe.leave_outputs_unset = true);
    let (this, build) = build(plugin);
    let mut types = [DataType::FLOAT; 2];
    // SAFETY: as above.
    let code = unsafe { (build.get_output_data_types)(this, types.as_mut_ptr(), 2, &DataType::HALF, &4, 1) };
    assert_eq!((code, record.last_report().text()), (Error::INTERNAL, "the plugin set no type for output 0"));
    assert_eq!(output_shapes(plugin, &FakeBuilder::new()).0, Error::INTERNAL);
    assert_eq!(record.last_report().text(), "the plugin set no shape for output 0");
    delete(plugin);
}

/// Returns the number of combinations, then code and buffer of the call that fills `wanted` rows.
fn combinations(plugin: This, wanted: i32) -> (i32, i32, Vec<i32>) {
    let (this, build) = build(plugin);
    let in_out = [dynamic(); 3];
    let mut room = [PluginTensorDesc { data_type: DataType(77), ..in_out[0].desc }; 12];
    // SAFETY: as above.
    let (count, code) = unsafe {
        (
            (build.get_nb_supported_format_combinations)(this, in_out.as_ptr(), 1, 2),
            (build.get_supported_format_combinations)(this, in_out.as_ptr(), 1, 2, room.as_mut_ptr(), wanted),
        )
    };
    (count, code, room.iter().map(|desc| desc.data_type.0).take_while(|number| *number != 77).collect())
}

#[test]
fn format_combinations_fill_the_rows_that_were_asked_for() {
    let (plugin, record) = probe(Mood::Well);
    assert_eq!(combinations(plugin, 2), (2, 0, vec![1, 1, 1, 0, 0, 0]));
    assert_eq!(combinations(plugin, 1), (2, 0, vec![1, 1, 1]));
    assert_eq!(combinations(plugin, 0), (2, 0, vec![]));
    assert_eq!(record.report_count(), 0);
    for wanted in [3, -1] {
        assert_eq!(combinations(plugin, wanted), (2, Error::INTERNAL, vec![]));
        let expected = format!("TensorRT requested {wanted} format combinations, the plugin has 2");
        assert_eq!(record.last_report().text(), expected);
    }
    let (this, build) = build(plugin);
    let in_out = [dynamic(); 3];
    // SAFETY: the object is live; each array has this length or is null.
    unsafe {
        let code = (build.get_supported_format_combinations)(this, in_out.as_ptr(), 1, 2, null_mut(), 2);
        assert_eq!(code, Error::INTERNAL);
        let expected = "TensorRT requested 2 format combinations in a null buffer, the plugin has 2";
        assert_eq!(record.last_report().text(), expected);
        assert_eq!((build.get_nb_supported_format_combinations)(this, null(), 1, 2), -1);
        let expected = "expected 1 inputs and 2 outputs, found 0 tensors";
        assert_eq!(record.last_report().text(), expected);
        assert_eq!((build.get_nb_supported_format_combinations)(this, in_out.as_ptr(), 4, -1), -1);
    }
    delete(plugin);
}

#[test]
fn format_combinations_of_another_length_are_refused() {
    let (plugin, record) = changed(Mood::Well, |probe| probe.surplus = 1);
    assert_eq!(combinations(plugin, 2), (-1, Error::INTERNAL, vec![]));
    assert_eq!(record.last_report().text(), "format combination 0 has 4 tensors, expected 3");
    delete(plugin);
}

#[test]
fn a_launch_reaches_every_setter_and_outlives_the_call() {
    let (plugin, record) = probe(Mood::Well);
    let builder = FakeBuilder::new();
    let (first, second) = (Recorder::default(), Recorder::default());
    assert_eq!(launch(plugin, &first, &builder), 0);
    let (this, build) = build(plugin);
    // SAFETY: the object is live.
    assert_eq!(unsafe { (build.set_tactic)(this, 5) }, 0);
    assert_eq!(launch(plugin, &second, &builder), 0);
    for (place, shared) in [(&first, 0), (&second, 5)] {
        let params = place.params.borrow();
        assert_eq!(params.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
        let read = |expr: &This| read(&builder, *expr);
        assert_eq!(
            params.iter().map(|(_, expr)| read(expr)).collect::<Vec<_>>(),
            [4, 2, 3, 4, 5, 6, shared].map(|value| (0, 2, Some(value)))
        );
        let scalars = place.scalars.borrow();
        assert_eq!(scalars.iter().map(read).collect::<Vec<_>>(), [70, 71].map(|value| (0, 2, Some(value))));
    }
    assert_eq!(record.report_count(), 0);
    delete(plugin);
}

#[test]
fn scalars_of_another_launch_are_taken_away() {
    let (plugin, _) = changed(Mood::Well, |probe| probe.scalar_count = 0);
    let place = Recorder::default();
    place.scalars.borrow_mut().push(null_mut());
    assert_eq!(launch(plugin, &place, &FakeBuilder::new()), 0);
    assert!(place.scalars.borrow().is_empty());
    delete(plugin);
}

#[test]
fn what_tensorrt_refuses_of_a_launch_is_named() {
    let refusals = [
        "TensorRT refused a launch parameter: setGridX returned false",
        "TensorRT refused a launch parameter: setGridY returned false",
        "TensorRT refused a launch parameter: setGridZ returned false",
        "TensorRT refused a launch parameter: setBlockX returned false",
        "TensorRT refused a launch parameter: setBlockY returned false",
        "TensorRT refused a launch parameter: setBlockZ returned false",
        "TensorRT refused a launch parameter: setSharedMem returned false",
        "TensorRT refused 2 scalar arguments: setNbSymExprs returned false",
        "TensorRT refused scalar argument 0 of 2: setSymExpr returned false",
        "TensorRT refused scalar argument 1 of 2: setSymExpr returned false",
    ];
    let (plugin, record) = probe(Mood::Well);
    for (number, refusal) in refusals.iter().enumerate() {
        let place = Recorder { refused: Some(number), ..Recorder::default() };
        assert_eq!(launch(plugin, &place, &FakeBuilder::new()), Error::INTERNAL);
        assert_eq!(record.last_report().text(), *refusal);
        assert_eq!(*place.calls.borrow(), number + 1, "no parameter is set after a rejection");
    }
    delete(plugin);
}

#[test]
fn a_launch_needs_places_and_a_builder() {
    let (plugin, record) = probe(Mood::Well);
    let builder = FakeBuilder::new();
    let empty = IKernelLaunchParams { vptr: null(), implementation: null_mut() };
    let place = Recorder::default();
    let params = FakeImplementation { vptr: &raw const PARAMS, place: &raw const place };
    let params = IKernelLaunchParams { vptr: null(), implementation: (&raw const params).cast_mut().cast() };
    let scalars = FakeImplementation { vptr: &raw const SCALARS, place: &raw const place };
    let scalars = ISymExprs { vptr: null(), implementation: (&raw const scalars).cast_mut().cast() };
    for (params, scalars, raw, why) in [
        (null(), &raw const scalars, builder.raw(), "with a null pointer for the launch parameters"),
        (
            &raw const empty,
            &raw const scalars,
            builder.raw(),
            "with a null pointer for the launch parameters",
        ),
        (&raw const params, null(), builder.raw(), "with a null pointer for the scalar arguments"),
        (&raw const params, &raw const scalars, null_mut(), "without a builder"),
    ] {
        assert_eq!(launch_into(plugin, params, scalars, &builder, raw), Error::INVALID_ARGUMENT);
        assert_eq!(record.last_report().text(), format!("getLaunchParams was called {why}"));
    }
    assert!(place.params.borrow().is_empty());
    delete(plugin);
    let (plugin, record) = changed(Mood::Well, |probe| probe.divisor = 0);
    assert_eq!(launch(plugin, &place, &builder), Error::INVALID_ARGUMENT);
    assert_eq!(record.last_report().text(), "a launch parameter or scalar argument divides by zero");
    delete(plugin);
}

fn kernel(plugin: This) -> (i32, *const c_char, *mut c_char, i32) {
    let (this, build) = build(plugin);
    let descs = [dynamic().desc; 3];
    let (mut name, mut code, mut size) = (c"x".as_ptr(), c"y".as_ptr().cast_mut(), 99);
    // SAFETY: the object is live, the arrays have these lengths, and the pointers are valid.
    let answer = unsafe {
        (build.get_kernel)(
            this,
            descs.as_ptr(),
            1,
            descs[1..].as_ptr(),
            2,
            &raw mut name,
            &raw mut code,
            &raw mut size,
        )
    };
    (answer, name, code, size)
}

#[test]
fn a_kernel_stays_as_long_as_its_plugin() {
    let (plugin, record) = probe(Mood::Well);
    let (answer, name, code, size) = kernel(plugin);
    assert_eq!((answer, size), (0, 13));
    assert_eq!(kernel(plugin), (answer, name, code, size));
    let copy = clone(plugin);
    assert_ne!(kernel(copy).2, code);
    delete(copy);
    // SAFETY: both live as long as the plugin.
    unsafe {
        assert_eq!(CStr::from_ptr(name), c"scale");
        assert_eq!(std::slice::from_raw_parts(code.cast::<u8>(), 13), b".version 8.0\0");
    }
    let (this, build) = build(plugin);
    let descs = [dynamic().desc; 3];
    let mut size = 7;
    // SAFETY: the object is live and the array has this length, as in `kernel`; the function accepts null.
    let answer = unsafe {
        let (input, outputs) = (descs.as_ptr(), descs[1..].as_ptr());
        (build.get_kernel)(this, input, 1, outputs, 2, null_mut(), null_mut(), &raw mut size)
    };
    assert_eq!((answer, size), (Error::INVALID_ARGUMENT, 0));
    assert_eq!(
        record.last_report().text(),
        "getKernel was called with a null pointer for name, code or size"
    );
    delete(plugin);
}

#[test]
fn code_that_cannot_be_handed_over_is_refused() {
    let long = i32::MAX as usize + 1;
    for (bytes, why) in [
        (0, r#"kernel "scale" has no code"#.to_owned()),
        (
            long,
            format!(r#"the code of kernel "scale" has {long} bytes, TensorRT supports at most 2147483647"#),
        ),
    ] {
        let (plugin, record) = changed(Mood::Well, |probe| probe.code = vec![0; bytes]);
        assert_eq!(kernel(plugin), (Error::INTERNAL, null(), null_mut(), 0));
        assert_eq!(record.last_report().text(), why);
        delete(plugin);
    }
}

fn enqueue(plugin: This) -> i32 {
    let (this, runtime) = runtime(plugin);
    let desc = dynamic().desc;
    // SAFETY: the object is live, and no tensor is accessed.
    unsafe { (runtime.enqueue)(this, &desc, &desc, null(), null(), &desc.dims, &desc.dims, 1, 2, null_mut()) }
}

#[test]
fn the_runtime_interface_has_a_tactic_and_nothing_to_run() {
    let (plugin, record) = probe(Mood::Well);
    let (this, runtime) = runtime(plugin);
    let place = Recorder::default();
    let builder = FakeBuilder::new();
    // SAFETY: the object is live.
    unsafe {
        assert_eq!((runtime.set_tactic)(this, 3), 0);
        let fields = (runtime.get_fields_to_serialize)(this);
        assert_eq!((fields.is_null(), (*fields).nb_fields), (false, 0));
        assert_eq!((runtime.get_fields_to_serialize)(this), fields);
    }
    assert_eq!(launch(plugin, &place, &builder), 0);
    assert_eq!(read(&builder, place.params.borrow()[6].1).2, Some(3));
    assert_eq!(enqueue(plugin), Error::INVALID_STATE);
    assert!(
        record.last_report().text().contains("whose kernel TensorRT launches"),
        "{}",
        record.last_report()
    );
    delete(plugin);
}

#[test]
fn clones_are_independent() {
    let (plugin, record) = probe(Mood::Well);
    let copy = clone(plugin);
    assert_ne!(copy, plugin);
    assert_eq!(record.alive.load(Ordering::Relaxed), 2);
    let builder = FakeBuilder::new();
    let place = Recorder::default();
    let (this, slots) = build(plugin);
    // SAFETY: the object is live.
    assert_eq!(unsafe { (slots.set_tactic)(this, 5) }, 0);
    assert_eq!(launch(copy, &place, &builder), 0);
    assert_eq!(launch(plugin, &Recorder::default(), &builder), 0);
    delete(plugin);
    assert_eq!(read(&builder, place.params.borrow()[6].1), (0, 2, Some(0)));
    delete(copy);
    assert_eq!((record.alive.load(Ordering::Relaxed), record.dropped.load(Ordering::Relaxed)), (0, 2));
}

fn failures(plugin: This) -> Vec<i64> {
    let (this, build) = build(plugin);
    let (runtime_this, runtime) = runtime(plugin);
    let (core_this, core) = face::<CoreSlots>(plugin, PluginCapabilityType::CORE);
    let descs = [dynamic(); 3];
    let (mut types, mut tactics) = ([DataType::FLOAT; 2], [0; 2]);
    let (count, combinations, _) = combinations(plugin, 1);
    let (kernel, name, compiled, size) = kernel(plugin);
    assert!(name.is_null() && compiled.is_null() && size == 0);
    // SAFETY: the object is live, and the arrays have these lengths.
    unsafe {
        vec![
            CStr::from_ptr((core.get_plugin_name)(core_this)).count_bytes() as i64,
            (build.get_output_data_types)(this, types.as_mut_ptr(), 2, &DataType::HALF, &4, 1).into(),
            output_shapes(plugin, &FakeBuilder::new()).0.into(),
            (build.configure_plugin)(this, descs.as_ptr(), 1, descs[1..].as_ptr(), 2).into(),
            count.into(),
            combinations.into(),
            (build.get_nb_outputs)(this).into(),
            (build.get_aliased_input)(this, 1).into(),
            (build.get_valid_tactics)(this, tactics.as_mut_ptr(), 2).into(),
            (build.get_nb_tactics)(this).into(),
            (build.get_timing_cache_id)(this).addr() as i64,
            (build.get_metadata_string)(this).addr() as i64,
            launch(plugin, &Recorder::default(), &FakeBuilder::new()).into(),
            kernel.into(),
            (build.set_tactic)(this, 5).into(),
            (runtime.set_tactic)(runtime_this, 5).into(),
        ]
    }
}

#[test]
fn panics_become_failure_values() {
    let (plugin, record) = probe(Mood::Panicking);
    let code = i64::from(Error::INTERNAL);
    assert_eq!(
        failures(plugin),
        [0, code, code, code, -1, code, -1, -1, code, -1, 0, 0, code, code, code, code]
    );
    assert_eq!(record.report_count(), 16);
    assert!(record.last_report().text().ends_with("panicked: asked to panic"), "{}", record.last_report());
    delete(plugin);
}

#[test]
fn errors_keep_their_code() {
    let (plugin, record) = probe(Mood::Failing);
    assert_eq!(launch(plugin, &Recorder::default(), &FakeBuilder::new()), FAILURE);
    assert_eq!(kernel(plugin).0, FAILURE);
    assert_eq!(record.last_report(), Error::new(FAILURE, "asked to fail"));
    delete(plugin);
}

#[test]
fn a_failed_clone_is_an_object_that_fails() {
    let (plugin, record) = probe(Mood::Failing);
    let copy = clone(plugin);
    assert!(!copy.is_null());
    assert_eq!(record.report_count(), 1);
    let code = i64::from(Error::INVALID_STATE);
    assert_eq!(
        failures(copy),
        [0, code, code, code, -1, code, -1, -1, code, -1, 0, 0, code, code, code, code]
    );
    assert_eq!(enqueue(copy), Error::INVALID_STATE);
    delete(copy);
    delete(plugin);
    assert_eq!(record.dropped.load(Ordering::Relaxed), 1);
}
