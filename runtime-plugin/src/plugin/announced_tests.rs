//! What TensorRT may announce of a plugin with a shape input between two others.

use std::ffi::c_void;
use std::sync::Arc;

use cubinder_bundle::expr::{Expr, Node as ExprNode};
use cubinder_bundle::launch::Steps;
use cubinder_bundle::{DataType, Format, Input, Interval, Node, Output, Plugin, ShapeLimits, Value, Variant};
use trt_abi::{Dims, PluginTensorDesc, TensorFormat, TensorRTPhase};

use super::announced::{Announced, HostValues};
use super::node::NodeData;
use crate::definition::Definition;
use crate::launch::{Addresses, Positions};
use crate::plugin::Form;

/// `x`, the shape input `target`, which holds one number from 0 to 100, and `b`; `y` has the shape `target.values`.
pub(super) fn node(types: [DataType; 4]) -> NodeData {
    let input = |name: &str, rank: u8, values| Input {
        name: name.to_owned(),
        rank_min: rank,
        rank_max: rank,
        limits: ShapeLimits::default(),
        values,
        doc: String::new(),
    };
    let variant = Variant {
        id: 1,
        label: String::new(),
        types: types.to_vec(),
        formats: vec![Format::Linear; 4],
        specialized: Vec::new(),
        guard: None,
        scratch: Vec::new(),
        steps: Vec::new(),
    };
    let plugin = Plugin {
        name: "shaped".to_owned(),
        namespace: String::new(),
        version: "1".to_owned(),
        summary: String::new(),
        attributes: Vec::new(),
        inputs: vec![
            input("x", 1, None),
            input("target", 1, Some(Interval { min: 0, max: 100 })),
            input("b", 1, None),
        ],
        outputs: vec![Output {
            name: "y".to_owned(),
            shape: Expr { nodes: vec![ExprNode::Values(1)] },
            limits: ShapeLimits::default(),
            alias: None,
            size: None,
            doc: String::new(),
        }],
        require: Vec::new(),
        timing: None,
        variants: vec![variant],
    };
    let node = Node {
        workspace_bytes: None,
        producer: String::new(),
        plugin,
        attributes: Vec::new(),
        input_ranks: None,
        code: Vec::new(),
    };
    made(node)
}

fn made(node: Node) -> NodeData {
    let definition = Definition::Node(Arc::new(node));
    let attributes: Vec<Value> = Vec::new();
    NodeData::new(definition, attributes, "n", TensorRTPhase::RUNTIME, Form::Fields, c"Kernel2".to_owned())
}

pub(super) const OWN: [DataType; 4] = [DataType::F32, DataType::I64, DataType::F32, DataType::F32];

pub(super) fn desc(ty: DataType, shape: &[i64]) -> PluginTensorDesc {
    PluginTensorDesc {
        dims: Dims::from_slice(shape).unwrap(),
        data_type: trt_abi::DataType(ty.tensorrt()),
        format: TensorFormat::LINEAR,
        scale: 1.0,
    }
}

fn announced(inputs: &[(DataType, &[i64])], output: &[i64]) -> Announced {
    let inputs: Vec<PluginTensorDesc> = inputs.iter().map(|(ty, shape)| desc(*ty, shape)).collect();
    let mut announced = Announced::default();
    announced.set(&inputs, &[desc(DataType::F32, output)]);
    assert!(announced.is(&inputs, &[desc(DataType::F32, output)]));
    announced
}

fn places(positions: &Positions) -> [Option<usize>; 3] {
    [0, 1, 2].map(|input| positions.of(input))
}

#[test]
fn inputs_are_found_by_their_number_and_types() {
    use DataType::{F32, I64};
    let node = node(OWN);
    let of = |inputs: &[(DataType, &[i64])]| {
        let found = announced(inputs, &[1]).positions(&node, None);
        found.map(|positions| places(&positions)).map_err(|error| error.text().to_owned())
    };
    // Without the shape input.
    assert_eq!(of(&[(F32, &[4]), (F32, &[5])]), Ok([Some(0), None, Some(1)]));
    // With it: behind the others, or where the plugin has it.
    assert_eq!(of(&[(F32, &[4]), (F32, &[5]), (I64, &[1])]), Ok([Some(0), Some(2), Some(1)]));
    assert_eq!(of(&[(F32, &[4]), (I64, &[1]), (F32, &[5])]), Ok([Some(0), Some(1), Some(2)]));
    let error = of(&[(F32, &[4])]).unwrap_err();
    assert_eq!(error, "shaped `n`: the node has 1 inputs and 1 outputs, the plugin has 3 and 1");
}

/// The wrong one's address would be read on the host.
#[test]
fn what_types_do_not_tell_ranks_and_limits_do() {
    use DataType::{F32, I64};
    const ALIKE: [DataType; 4] = [I64, I64, I64, F32];
    let of = |node: &NodeData, shapes: [&[i64]; 3], ranks: Option<&[u8]>| {
        let inputs = shapes.map(|shape| (I64, shape));
        let found = announced(&inputs, &[1]).positions(node, ranks);
        found.map(|positions| places(&positions)).map_err(|error| error.text().to_owned())
    };
    let (behind, own) = (Ok([Some(0), Some(2), Some(1)]), Ok([Some(0), Some(1), Some(2)]));
    let alike = node(ALIKE);
    let error = of(&alike, [&[4], &[5], &[1]], None).unwrap_err();
    assert_eq!(
        error,
        "shaped `n`: TensorRT announces all 3 inputs, and by their types, ranks and limits the values of `target` can be in two places; \
         list shape inputs behind the other inputs in the manifest, or limit the others to shapes that tell them apart"
    );
    // More values than TensorRT tells.
    assert_eq!(of(&alike, [&[4], &[9], &[1]], None), behind);
    assert_eq!(of(&alike, [&[4], &[1], &[9]], None), own);
    // No order fits: what is wrong is said of the usual one.
    assert_eq!(of(&alike, [&[4], &[9], &[9]], None), behind);
    let changed = |change: &dyn Fn(&mut Plugin)| {
        let Definition::Node(made) = &node(ALIKE).definition else { panic!() };
        let mut made = Node::clone(made);
        change(&mut made.plugin);
        self::made(made)
    };
    let limited = changed(&|plugin| plugin.inputs[1].limits.numel = Interval { min: 2, max: 2 });
    assert_eq!(of(&limited, [&[4], &[5], &[2]], None), behind);
    assert_eq!(of(&limited, [&[4], &[2], &[5]], None), own);
    let matrix = changed(&|plugin| (plugin.inputs[2].rank_min, plugin.inputs[2].rank_max) = (2, 2));
    assert_eq!(of(&matrix, [&[4], &[5, 6], &[2]], None), behind);
    assert_eq!(of(&matrix, [&[4], &[2], &[5, 6]], None), own);
    // A 0-d tensor, which TensorRT announces as [1].
    let scalar = changed(&|plugin| (plugin.inputs[2].rank_min, plugin.inputs[2].rank_max) = (0, 2));
    assert_eq!(of(&scalar, [&[4], &[1], &[2]], Some(&[1, 1, 0])), behind);
    assert_eq!(of(&scalar, [&[4], &[2], &[1]], Some(&[1, 1, 0])), own);
    // With one place there is nothing to tell.
    let last = changed(&|plugin| plugin.inputs.swap(1, 2));
    assert_eq!(of(&last, [&[4], &[5], &[1]], None), own);
}

#[test]
fn a_tensor_of_another_rank_is_another_tensor() {
    use DataType::F32;
    let long = [1_i64; 8];
    for (shape, ranks) in [(&long[..], [8, 9]), (&[][..], [0, -1])] {
        let found = announced(&[(F32, shape)], &[1]);
        let [mut same, mut impossible] = [desc(F32, shape), desc(F32, shape)];
        [same.dims.nb_dims, impossible.dims.nb_dims] = ranks;
        assert!(found.is(&[same], &[desc(F32, &[1])]));
        assert!(!found.is(&[impossible], &[desc(F32, &[1])]), "{ranks:?}");
    }
}

#[test]
fn shapes_are_held_against_values_where_those_are_known() {
    use DataType::{F32, I64};
    let node = node(OWN);
    let shapes = |announced: &Announced, values: &[&[i64]]| {
        let positions = announced.positions(&node, None).unwrap();
        let found = announced.shapes(&node, None, &positions, values, &mut Steps::default());
        found
            .map(|shapes| shapes.iter().map(|shape| shape.to_vec()).collect::<Vec<_>>())
            .map_err(|error| error.text().to_owned())
    };
    let whole = announced(&[(F32, &[4]), (F32, &[5]), (I64, &[1])], &[7]);
    assert_eq!(shapes(&whole, &[&[], &[7], &[]]), Ok(vec![vec![4], vec![1], vec![5], vec![7]]));
    let error = shapes(&whole, &[&[], &[8], &[]]).unwrap_err();
    assert!(error.starts_with("shaped `n`: the shape of `y`: found 7, expected 8"), "{error}");
    // TensorRT alone knows the values: it has the expression.
    let without = announced(&[(F32, &[4]), (F32, &[5])], &[7]);
    assert_eq!(shapes(&without, &[]), Ok(vec![vec![4], vec![-1], vec![5], vec![7]]));
}

#[test]
fn values_are_read_from_the_host() {
    use DataType::{F32, I32, I64};
    for (ty, is_wide) in [(I64, true), (I32, false)] {
        let node = node([F32, ty, F32, F32]);
        let announced = announced(&[(F32, &[4]), (F32, &[5]), (ty, &[1])], &[7]);
        let positions = announced.positions(&node, None).unwrap();
        let mut values = HostValues::default();
        values.expect(&node, &announced, &positions).unwrap();
        assert!(values.are_missing() && values.by_input(&node).unwrap().is_empty());
        let mut read = |value: i64| {
            let (wide, narrow) = ([value], [i32::try_from(value).unwrap()]);
            let host: *const c_void = if is_wide { wide.as_ptr().cast() } else { narrow.as_ptr().cast() };
            let device = std::ptr::without_provenance::<c_void>(0x1000);
            let at =
                Addresses { inputs: &[device, device, host], outputs: &[], workspace: std::ptr::null_mut() };
            // SAFETY: the shape input's address is that of one integer of its type.
            let is_new = unsafe { values.read(&node, &at, |_| Ok(true)) }.unwrap();
            let found = values.by_input(&node);
            let found = found.map(|all| all[1].to_vec()).map_err(|error| error.text().to_owned());
            (is_new, found)
        };
        assert_eq!(read(0), (true, Ok(vec![0])), "the first are new, whatever they are");
        assert_eq!(read(0), (false, Ok(vec![0])));
        assert_eq!(read(7), (true, Ok(vec![7])));
        let error = read(-1).1.unwrap_err();
        assert_eq!(
            error,
            "shaped `n`: value 0 of the shape input `target` is -1, and the manifest limits that to 0..=100"
        );
    }
}

#[test]
fn shape_inputs_that_cannot_be_are_refused() {
    use DataType::{F32, I64};
    let node = node(OWN);
    let refused = |ty, shape: &[i64]| {
        let announced = announced(&[(F32, &[4]), (F32, &[5]), (ty, shape)], &[7]);
        let positions = announced.positions(&node, None).unwrap();
        let mut values = HostValues::default();
        values.expect(&node, &announced, &positions).unwrap_err().text().to_owned()
    };
    assert!(refused(I64, &[9]).contains("expected at most 8 32-bit or 64-bit integers"));
    assert!(refused(I64, &[2, 2]).contains("the shape input `target` is announced as"));
    assert!(refused(F32, &[1]).contains("the shape input `target` is announced as"));
    // Nothing is read through a null pointer.
    let whole = announced(&[(F32, &[4]), (F32, &[5]), (I64, &[1])], &[7]);
    let positions = whole.positions(&node, None).unwrap();
    let mut values = HostValues::default();
    values.expect(&node, &whole, &positions).unwrap();
    let null = std::ptr::null::<c_void>();
    let at = Addresses { inputs: &[null, null, null], outputs: &[], workspace: std::ptr::null_mut() };
    // SAFETY: the address is null, which is looked at before it is read.
    let error = unsafe { values.read(&node, &at, |_| Ok(true)) }.unwrap_err();
    assert!(error.text().contains("without the values of a shape input"), "{error}");
    assert!(values.are_missing());
}

#[test]
fn an_address_is_asked_about_before_it_is_read() {
    use DataType::{F32, I64};
    let node = node(OWN);
    let whole = announced(&[(F32, &[4]), (F32, &[5]), (I64, &[1])], &[7]);
    let positions = whole.positions(&node, None).unwrap();
    let mut values = HostValues::default();
    values.expect(&node, &whole, &positions).unwrap();
    let asked = std::cell::RefCell::new(Vec::new());
    let mut read = |host: *const c_void, is_of_host: bool| {
        let inputs = [host; 3];
        let at = Addresses { inputs: &inputs, outputs: &[], workspace: std::ptr::null_mut() };
        let ask = |address| {
            asked.borrow_mut().push(address);
            Ok(is_of_host)
        };
        // SAFETY: where an address is said to be the host's, an integer lies there.
        unsafe { values.read(&node, &at, ask) }.map_err(|error| error.text().to_owned())
    };
    let (one, other) = ([7_i64], [7_i64]);
    let [first, second] = [&one, &other].map(|value| value.as_ptr().cast::<c_void>());
    assert_eq!(read(first, true), Ok(true));
    assert_eq!(read(first, true), Ok(false));
    assert_eq!(read(second, true), Ok(false), "the same value elsewhere");
    assert_eq!(*asked.borrow(), [first.addr(), second.addr()], "once for each new address");
    let error = read(std::ptr::without_provenance(0x1000), false).unwrap_err();
    assert!(error.contains("the shape input `target` are at 0x1000, which is memory of a GPU"), "{error}");
    assert!(read(std::ptr::without_provenance(0x1000), false).is_err(), "asked again");
    assert_eq!(read(second, true), Ok(true), "what was not read is new");
}
