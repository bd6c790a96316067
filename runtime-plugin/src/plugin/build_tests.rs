use cubinder_expr::{BinaryOp, DeviceFact, Expr, Node as Part};
use cubinder_expr::{DataType, Format};
use cubinder_launch::Device;
use cubinder_model::{AUTO_TACTIC, Guard, Node, Variant};
use proptest::prelude::*;
use trt_abi::{Dims, TensorFormat};

use super::tests::{divides, made, model, plugin, variant};
use super::*;
use crate::definition::BuildFacts;
use crate::definition::TensorKinds;
use crate::identity;

pub(super) fn tensor(ty: DataType, format: Format) -> DynamicPluginTensorDesc {
    of_shape(ty, format, &[4, 8, 2, 2])
}

fn of_shape(ty: DataType, format: Format, shape: &[i64]) -> DynamicPluginTensorDesc {
    let dims = Dims::from_slice(shape).unwrap();
    let desc = PluginTensorDesc {
        dims,
        data_type: trt_abi::DataType(ty.tensorrt()),
        format: TensorFormat(format.tensorrt()),
        scale: 1.0,
    };
    DynamicPluginTensorDesc { desc, min: dims, max: dims, opt: dims }
}

fn row(id: i32, ty: DataType, format: Format, k: Option<i64>) -> Variant {
    Variant {
        types: vec![ty; 2],
        formats: vec![format; 2],
        specialized: k.map(|k| (0, Value::Int(k))).into_iter().collect(),
        ..variant(id, None)
    }
}

/// For `k` = 3, supports f32 row major by variants 1 and 2, f16 in HWC8 by 1, f16 row major by 2 and 4.
fn mixed() -> cubinder_model::Plugin {
    use DataType::{F16, F32};
    use Format::{Hwc8, Linear};
    model(vec![
        row(1, F32, Linear, Some(3)),
        row(1, F16, Hwc8, None),
        row(2, F32, Linear, None),
        row(2, F16, Linear, None),
        row(3, F32, Hwc8, Some(5)),
        row(4, F16, Linear, Some(3)),
    ])
}

#[test]
fn formats_are_taken_as_some_variant_has_them() {
    let mixed = plugin(mixed());
    let supports = |x: (DataType, Format), y: (DataType, Format)| {
        let in_out = [tensor(x.0, x.1), tensor(y.0, y.1)];
        [mixed.supports(0, &in_out, 1), mixed.supports(1, &in_out, 1)]
    };
    use DataType::{F16, F32, I8};
    use Format::{Chw2, Hwc8, Linear};
    assert_eq!(supports((F32, Linear), (F32, Linear)), [true, true]);
    assert_eq!(supports((F16, Hwc8), (F16, Hwc8)), [true, true]);
    assert_eq!(supports((F16, Hwc8), (F16, Linear)), [true, false]);
    assert_eq!(supports((F16, Linear), (F16, Hwc8)), [true, false]);
    assert_eq!(supports((F32, Linear), (F16, Linear)), [true, false]);
    assert_eq!(supports((F32, Hwc8), (F32, Hwc8)), [false, false], "its code is for another attribute");
    assert_eq!(supports((F16, Chw2), (F16, Chw2)), [false, false]);
    assert_eq!(supports((I8, Linear), (I8, Linear)), [false, false]);
    let unknown = [DynamicPluginTensorDesc {
        desc: PluginTensorDesc { format: TensorFormat(99), ..tensor(F32, Linear).desc },
        ..tensor(F32, Linear)
    }; 2];
    assert!(!mixed.supports(0, &unknown, 1));
    let many = [tensor(F32, Linear); 5];
    for (position, tensors, inputs) in [(1, 2, 2), (1, 2, 0), (2, 2, 1), (0, 1, 1), (0, 5, 1), (0, 0, 1)] {
        assert!(!mixed.supports(position, &many[..tensors], inputs), "{position} {tensors} {inputs}");
    }
}

#[test]
fn a_format_is_not_taken_for_tensors_without_its_dimensions() {
    let mixed = plugin(mixed());
    let shaped = |format, rank: usize| of_shape(DataType::F16, format, &[8, 8, 8, 8][..rank]);
    for rank in 0..=4 {
        let supports = |x, y| mixed.supports(1, &[shaped(x, rank), shaped(y, rank)], 1);
        assert!(supports(Format::Linear, Format::Linear), "{rank}");
        assert_eq!(supports(Format::Hwc8, Format::Hwc8), rank >= 3, "{rank}");
        assert_eq!(mixed.supports(0, &[shaped(Format::Hwc8, rank); 2], 1), rank >= 3, "{rank}");
    }
    let short = shaped(Format::Hwc8, 2);
    assert_eq!(
        mixed.configure(&[short], &[short]).unwrap_err().text(),
        "test::guarded `n`: `x` has rank 2, but tensors in the format `hwc8` have at least 3 dimensions"
    );
    let mut open = shaped(Format::Hwc8, 4);
    open.desc.dims.nb_dims = -1;
    assert!(mixed.supports(1, &[open, open], 1), "unknown values are queried again");
}

#[test]
fn tactics_are_those_of_types_and_formats() {
    let mixed = plugin(mixed());
    assert_eq!(mixed.tactics().unwrap(), [AUTO_TACTIC, 1, 2, 4], "of all, before there are any");
    let configured = |ty, format| {
        mixed
            .configure(&[tensor(ty, format)], &[tensor(ty, format)])
            .map_err(|error| error.text().to_owned())?;
        Ok::<_, String>(mixed.tactics().unwrap())
    };
    assert_eq!(configured(DataType::F32, Format::Linear), Ok(vec![AUTO_TACTIC, 1, 2]));
    assert_eq!(configured(DataType::F16, Format::Hwc8), Ok(vec![]), "one variant offers no choice");
    assert_eq!(configured(DataType::F16, Format::Linear), Ok(vec![AUTO_TACTIC, 2, 4]));
    assert_eq!(
        configured(DataType::F32, Format::Hwc8),
        Err("test::guarded `n`: no variant supports the types and formats (f32 hwc8, f32 hwc8); the plugin supports (f32, f32), \
             (f16 hwc8, f16 hwc8), (f16, f16)"
            .to_owned())
    );
    assert_eq!(mixed.tactics().unwrap(), [AUTO_TACTIC, 2, 4], "a rejected call changes nothing");
    let mut strange = tensor(DataType::F32, Format::Linear);
    strange.desc.format = TensorFormat::DLA_LINEAR;
    let error = mixed.configure(&[strange], &[strange]).unwrap_err();
    assert!(error.text().contains("no plugin supports tensors in the format"), "{error}");
    assert!(mixed.set_tactic(3).is_err(), "its code is for another attribute");
}

fn at_least(fact: DeviceFact, least: i64) -> Guard {
    let nodes = vec![Part::Device(fact), Part::Int(least), Part::Binary(BinaryOp::Ge, 0, 1)];
    Guard { expr: Expr { nodes }, text: format!("{fact} >= {least}") }
}

fn or_divides(op: BinaryOp, guard: &Guard) -> Guard {
    let mut nodes = divides(4, None).expr.nodes;
    let (left, first) = (nodes.len() as u32 - 1, nodes.len() as u32);
    nodes.extend([guard.expr.nodes[0].clone(), guard.expr.nodes[1].clone()]);
    nodes.push(Part::Binary(BinaryOp::Ge, first, first + 1));
    nodes.push(Part::Binary(op, left, first + 2));
    Guard { expr: Expr { nodes }, text: String::new() }
}

#[test]
fn a_guard_that_reads_the_device_is_a_tactic_where_it_holds_for_every_device() {
    use DeviceFact::{Capability, SharedBytes, Sms};
    let offered = |guard: &Guard| {
        let guarded = plugin(model(vec![variant(1, Some(guard.clone())), variant(2, None)]));
        let before = guarded.tactics().unwrap();
        let tensors = [of_shape(DataType::F32, Format::Linear, &[4, 8]); 2];
        guarded.configure(&tensors[..1], &tensors[1..]).unwrap();
        let configured = guarded.tactics().unwrap();
        let here = Device { sms: 1024, shared_bytes: 1 << 20, capability: 999 };
        guarded.running.with(|running| running.assume(Some(here))).unwrap();
        assert_eq!(guarded.tactics().unwrap(), configured, "{}", guard.text);
        [before, configured].map(|tactics| tactics.contains(&1))
    };
    for (fact, least, always) in [
        (Capability, 90, false),
        (Capability, 75, false),
        (Capability, 50, true),
        (Sms, 2, false),
        (Sms, 1, true),
        (SharedBytes, 49_153, false),
        (SharedBytes, 49_152, true),
    ] {
        assert_eq!(offered(&at_least(fact, least)), [always; 2], "{fact} >= {least}");
    }
    let newer = at_least(Capability, 90);
    assert_eq!(offered(&or_divides(BinaryOp::Or, &newer)), [false, true], "the shapes decide it");
    assert_eq!(offered(&or_divides(BinaryOp::And, &newer)), [false, false]);
    let any = at_least(Sms, 1);
    assert_eq!(offered(&or_divides(BinaryOp::And, &any)), [false, true]);
}

#[test]
fn outputs_have_the_types_of_the_first_variant_that_serves_the_node() {
    let mut model = mixed();
    model.variants[0].types[1] = DataType::I8;
    let types = |plugin: &KernelPlugin, x: DataType| {
        let mut y = [trt_abi::DataType(-1)];
        plugin.output_types(&[trt_abi::DataType(x.tensorrt())], &mut y)?;
        Ok::<_, Error>(DataType::from_tensorrt(y[0].0))
    };
    assert_eq!(types(&plugin(model.clone()), DataType::F32).unwrap(), Some(DataType::I8));
    model.variants[0].specialized = vec![(0, Value::Int(4))];
    assert_eq!(types(&plugin(model.clone()), DataType::F32).unwrap(), Some(DataType::F32));
    let error = types(&plugin(model), DataType::I64).unwrap_err();
    assert_eq!(
        error.text(),
        "test::guarded `n`: no variant supports the types (i64); the plugin supports (f16, f16), (f32, f32)"
    );
}

#[test]
fn a_node_without_code_for_its_attributes_is_refused() {
    let mut model = mixed();
    model.variants.retain(|variant| !variant.specialized.is_empty());
    model.variants[0].specialized = vec![(0, Value::Int(7))];
    model.variants.pop();
    assert_eq!(
        made(model).unwrap_err().text(),
        "test::guarded `n`: the attribute `k` is `3`, but the code is specialized for `7`, `5`"
    );
}

#[test]
fn an_engine_holds_the_variants_of_its_types_formats_and_attributes() {
    let mixed = plugin(mixed());
    let held = |types: Option<(DataType, Format)>| {
        let kinds = types.map(|(ty, format)| TensorKinds { types: vec![ty; 2], formats: vec![format; 2] });
        let known = BuildFacts { kinds: kinds.as_ref(), ..BuildFacts::default() };
        let node = mixed.state.node.definition.node(known, &mixed.state.node.attributes);
        node.plugin.variants.iter().map(|variant| variant.id).collect::<Vec<i32>>()
    };
    assert_eq!(held(None), [1, 1, 2, 2, 4]);
    assert_eq!(held(Some((DataType::F32, Format::Linear))), [1, 2]);
    assert_eq!(held(Some((DataType::F16, Format::Hwc8))), [1]);
}

#[test]
fn an_object_leaves_what_it_was_configured_for_last() {
    let mixed = plugin(mixed());
    let fields = || std::ptr::from_ref(mixed.fields_to_serialize().unwrap().as_raw());
    let open = fields();
    let configured = |ty, format| {
        mixed.configure(&[tensor(ty, format)], &[tensor(ty, format)]).unwrap();
        fields()
    };
    let first = configured(DataType::F32, Format::Linear);
    let second = configured(DataType::F16, Format::Hwc8);
    assert!(open != first && first != second);
    assert_eq!(configured(DataType::F32, Format::Linear), first, "TensorRT keeps the pointer");
}

#[test]
fn inspectors_are_shown_the_op_and_its_attributes() {
    let named = plugin(mixed());
    assert_eq!(named.metadata().unwrap(), c"test::guarded 1; k = 3");
    let same = named.metadata().unwrap().as_ptr();
    assert_eq!(named.clone().metadata().unwrap().as_ptr(), same);
    assert_eq!(&*named.identity().name, c"Kernel2");
}

#[test]
fn aliased_outputs_name_an_input_as_tensorrt_counts_them() {
    let mut model = mixed();
    let shape_input = cubinder_model::Input {
        name: "target".to_owned(),
        values: Some(cubinder_expr::Interval { min: 0, max: 9 }),
        rank_min: 1,
        rank_max: 1,
        ..model.inputs[0].clone()
    };
    model.inputs.insert(0, shape_input);
    model.outputs[0].alias = Some(1);
    for variant in &mut model.variants {
        variant.types.insert(0, DataType::I64);
        variant.formats.insert(0, Format::Linear);
    }
    let aliased = plugin(model);
    assert_eq!(aliased.aliased_input(0), Some(0));
    assert_eq!(aliased.aliased_input(1), None);
    assert!(!aliased.tolerates_null_attach());
    let tensors = [tensor(DataType::F16, Format::Hwc8); 2];
    assert!(aliased.supports(1, &tensors, 1));
    assert!(!aliased.supports(1, &tensors, 2));
    aliased.configure(&tensors[..1], &tensors[1..]).unwrap();
    let three = [tensor(DataType::F16, Format::Hwc8); 3];
    let error = aliased.configure(&three[..2], &three[2..]).unwrap_err();
    assert_eq!(
        error.text(),
        "test::guarded `n`: the node has 2 inputs that are not shape inputs, the plugin expects 1; the node's attribute \
         `tensorrt_plugin_shape_input_indices` must be [0]"
    );
    let error = aliased.configure(&[tensor(DataType::F16, Format::Chw2)], &tensors[1..]).unwrap_err();
    assert!(
        error.text().contains("(i64, f16 chw2, f16 hwc8); the plugin supports (i64, f32, f32), "),
        "{error}"
    );
    let plain = plugin(mixed());
    assert!(plain.tolerates_null_attach() && plain.aliased_input(0).is_none());
}

fn timed(
    timing: Option<Vec<u32>>,
    [k, other]: [i64; 2],
    change: &dyn Fn(&mut cubinder_model::Node),
) -> KernelPlugin {
    let mut model = mixed();
    model.attributes.push(cubinder_model::Attribute::new("other", cubinder_model::AttributeType::I32));
    model.timing = timing;
    let mut node = Node {
        workspace_bytes: None,
        producer: String::new(),
        plugin: model,
        attributes: vec![Value::Int(k), Value::Int(other)],
        input_ranks: None,
        code: Vec::new(),
    };
    change(&mut node);
    let attributes = node.attributes.clone();
    let definition = Definition::bare(Arc::new(node));
    let phase = TensorRTPhase::BUILD;
    KernelPlugin::new(definition, attributes, "n", phase, Form::Fields, identity::generic()).unwrap()
}

#[test]
fn alike_nodes_share_a_timing_cache_id_and_no_others_do() {
    let id = |plugin: &KernelPlugin| plugin.timing_cache_id().unwrap().to_owned();
    let as_is = |_: &mut Node| {};
    let all = id(&timed(None, [3, 1], &as_is));
    assert!(all.to_str().unwrap().strip_prefix("cubinder-").is_some_and(|digits| digits.len() == 64));
    assert_eq!(id(&timed(None, [3, 1], &as_is)), all);
    assert_ne!(id(&timed(None, [3, 2], &as_is)), all);
    assert_ne!(id(&timed(None, [5, 1], &as_is)), all);
    let by_k = id(&timed(Some(vec![0]), [3, 1], &as_is));
    assert_eq!(id(&timed(Some(vec![0]), [3, 2], &as_is)), by_k);
    assert_ne!(id(&timed(Some(vec![0]), [4, 2], &as_is)), by_k);
    let by_none = |k| id(&timed(Some(vec![]), [k, 1], &as_is));
    assert_ne!(by_none(3), by_none(5));
    assert_eq!(by_none(4), by_none(7));
    let prose = |node: &mut Node| {
        node.plugin.summary.push('s');
        node.plugin.inputs[0].doc.push('d');
        node.plugin.attributes[1].default = Some(Value::Int(8));
    };
    assert_eq!(id(&timed(None, [3, 1], &prose)), all);
    assert_ne!(id(&timed(None, [3, 1], &|node| node.plugin.name.push('x'))), all);
    assert_ne!(id(&timed(None, [3, 1], &|node| node.plugin.variants[0].id = 9)), all);
}

#[test]
fn a_timing_cache_id_stays_what_it_is() {
    let timed = timed(None, [3, 1], &|_| {});
    let pointer = |plugin: &KernelPlugin| plugin.timing_cache_id().unwrap().as_ptr();
    let first = pointer(&timed);
    let tensors = [tensor(DataType::F32, Format::Linear); 2];
    timed.configure(&tensors[..1], &tensors[1..]).unwrap();
    assert_eq!(pointer(&timed), first);
    assert_eq!(pointer(&timed.clone()), first);
    assert_eq!(pointer(&timed.attach_to_context().unwrap()), first);
}

proptest! {
    #[test]
    fn timing_cache_ids_are_equal_exactly_where_nodes_are_alike(
        nodes in prop::collection::vec(
            (prop::option::of(prop::sample::subsequence(vec![0, 1], 0..=2)), 0..8_i64, 0..3_i64, 1..4_i32),
            2..8,
        ),
    ) {
        let ids_and_contents = nodes.into_iter().map(|(timing, k, other, id)| {
            let change = |node: &mut Node| node.plugin.variants[2].id = id;
            let made = timed(timing.clone(), [k, other], &change);
            let reached = if k == 3 || k == 5 { k } else { 0 };
            let decides = |index: u32| timing.as_ref().is_none_or(|timing| timing.contains(&index));
            let content = (reached, decides(0).then_some(k), decides(1).then_some(other), id);
            (made.timing_cache_id().unwrap().to_owned(), content)
        });
        let all: Vec<_> = ids_and_contents.collect();
        for (id, content) in &all {
            for (other_id, other_content) in &all {
                prop_assert_eq!(id == other_id, content == other_content);
            }
        }
    }
}
