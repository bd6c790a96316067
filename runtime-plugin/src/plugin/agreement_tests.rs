//! `cubinder eval` and the runtime reject the same nodes with the same words, without a driver.

use std::path::{Path, PathBuf};
use std::ptr::without_provenance_mut;
use std::sync::OnceLock;

use cubinder_expr::DeviceFact;
use cubinder_expr::{DataType, Format, ScalarType};
use cubinder_launch::{Device, shape_text};
use cubinder_manifest::resolve::{self, ArgDraft, ArgDraftValue};
use cubinder_model::{Arg, ArgValue, Attribute, AttributeElement, Node, TunedDevice, TunedPoint};
use cubinder_node::eval::{Compiler, Environment, Evaluation, Subject, SubjectOrigin, evaluate};
use cubinder_node::query::{Mistake, Query};
use cubinder_source::diagnostic::Source;
use proptest::prelude::*;
use trt_abi::{Dims, PluginTensorDesc, TensorFormat, TensorRTPhase};

use super::*;
use crate::definition::TensorKinds;
use crate::identity;

const FOLDERS: [&str; 5] =
    ["manifests", "tests/data/ok", "tests/data/run", "tests/data/run/sequences", "tests/data/conformance"];

fn manifests() -> &'static [PathBuf] {
    static ALL: OnceLock<Vec<PathBuf>> = OnceLock::new();
    ALL.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let files = FOLDERS.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
        let files = files.map(|file| file.unwrap().path());
        let mut all: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|extension| extension == "toml")).collect();
        all.sort();
        assert!(all.len() >= 10, "{all:?}");
        all
    })
}

type Model = cubinder_model::Plugin;

fn model(path: &Path, choices: &mut Choices<'_>) -> Model {
    let text = std::fs::read_to_string(path).unwrap();
    let resolved = resolve::compile(&Source::new(path, text)).unwrap();
    let mut plugin = resolved.draft.plugin;
    for unit in &resolved.draft.units {
        let launch = plugin.variants[unit.variant].launch_mut(unit.step).unwrap();
        launch.args = unit.args.iter().map(|draft| typed(draft, choices)).collect();
    }
    plugin
}

fn typed(draft: &ArgDraft, choices: &mut Choices<'_>) -> Arg {
    let ty = match choices.next() % 8 {
        0 => ScalarType::F32,
        1 => ScalarType::Bool,
        2 => ScalarType::UInt { bytes: 1 },
        3 => ScalarType::Int { bytes: 4 },
        _ => ScalarType::Int { bytes: 8 },
    };
    let value = match &draft.value {
        ArgDraftValue::Tensor(index) if choices.next().is_multiple_of(4) => ArgValue::ReadTensor(*index),
        ArgDraftValue::Tensor(index) => ArgValue::Tensor(*index),
        ArgDraftValue::Scratch(index) => ArgValue::Scratch(*index),
        ArgDraftValue::Expr { expr, .. } if choices.next().is_multiple_of(2) => {
            ArgValue::Scalar { ty, expr: expr.clone() }
        }
        ArgDraftValue::Expr { expr, .. } => {
            ArgValue::Array { ty, len: choices.pick_from(&[0, 1, 2, 3, 4, 8]), expr: expr.clone() }
        }
    };
    Arg { name: draft.name.clone(), value }
}

struct Choices<'a>(std::iter::Cycle<std::slice::Iter<'a, u32>>);

impl Choices<'_> {
    fn next(&mut self) -> u32 {
        self.0.next().copied().unwrap_or(0)
    }

    fn pick_from<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.next() as usize % list.len()]
    }
}

fn attribute(attribute: &Attribute, choices: &mut Choices<'_>) -> Value {
    let mut offered: Vec<Value> = attribute.default.iter().chain(&attribute.one_of).cloned().collect();
    if !attribute.ty.list {
        offered.extend(attribute.minimum.clone());
        offered.extend(attribute.maximum.clone());
    }
    match choices.next() % 4 {
        0..=2 if !offered.is_empty() => offered[choices.next() as usize % offered.len()].clone(),
        _ if attribute.ty.list || attribute.ty.element == AttributeElement::Bytes => {
            let length = choices.next() % 5;
            Value::Array((0..length).map(|_| element(attribute.ty.element, choices)).collect())
        }
        _ => element(attribute.ty.element, choices),
    }
}

fn element(element: AttributeElement, choices: &mut Choices<'_>) -> Value {
    match element {
        AttributeElement::Bool => Value::Bool(choices.next().is_multiple_of(2)),
        AttributeElement::String => Value::Str(choices.pick_from(&["", "wrap", "edge"]).to_owned()),
        element if element.is_float() => Value::Float(choices.pick_from(&[0.0, 0.5, 1.0, -2.0])),
        _ => Value::Int(choices.pick_from(&[0, 1, 2, 3, -1, 5, 64, 1 << 40])),
    }
}

fn shape(input: &cubinder_model::Input, choices: &mut Choices<'_>) -> Vec<i64> {
    let (least, most) = (input.rank_min, input.rank_max);
    let rank = match choices.next() % 8 {
        0 => choices.next() % 5,
        _ => u32::from(least) + choices.next() % (u32::from(most - least) + 1),
    };
    let extents: &[i64] = match choices.next() % 4 {
        0 => &[0, 1, 2, 7, 65536, 1 << 40, i64::MAX],
        1 => &[4, 16, 64, 1024],
        _ => &[1, 2, 3, 4, 5, 8],
    };
    (0..rank).map(|_| choices.pick_from(extents)).collect()
}

fn held(input: &cubinder_model::Input, choices: &mut Choices<'_>) -> Vec<i64> {
    let Some(allowed) = input.values else { return Vec::new() };
    let counts = input.limits.dim(0);
    let count = match input.rank_max {
        0 => 1,
        _ => counts.min + i64::from(choices.next()) % (counts.max.min(8) - counts.min + 1),
    };
    let some = [1, 2, 3, 5, 64, 0, allowed.min, allowed.max];
    (0..count).map(|_| choices.pick_from(&some).clamp(allowed.min, allowed.max)).collect()
}

struct Case {
    plugin: Model,
    attributes: Vec<Value>,
    inputs: Vec<Vec<i64>>,
    values: Vec<Vec<i64>>,
    alignments: Vec<u64>,
    device: Device,
}

impl Case {
    fn new(path: &Path, choices: &mut Choices<'_>) -> Case {
        let mut plugin = model(path, choices);
        let kinds: Vec<TensorKinds> = plugin.variants.iter().map(TensorKinds::from_variant).collect();
        let kinds = &kinds[choices.next() as usize % kinds.len()];
        plugin.variants.retain(|variant| TensorKinds::from_variant(variant) == *kinds);
        let attributes = plugin.attributes.iter().map(|it| attribute(it, choices)).collect();
        let mut inputs: Vec<Vec<i64>> = plugin.inputs.iter().map(|input| shape(input, choices)).collect();
        if choices.next().is_multiple_of(2) {
            let first = inputs[0].clone();
            inputs.fill(first);
        }
        let values: Vec<Vec<i64>> = plugin.inputs.iter().map(|it| held(it, choices)).collect();
        for ((input, values), shape) in plugin.inputs.iter().zip(&values).zip(&mut inputs) {
            if input.values.is_some() {
                *shape = if input.rank_max == 0 { Vec::new() } else { vec![values.len() as i64] };
            }
        }
        let alignments =
            (0..plugin.tensor_count()).map(|_| choices.pick_from(&[1, 4, 8, 16, 256, 4096])).collect();
        let device = Device {
            sms: choices.pick_from(&[1, 16, 132]),
            shared_bytes: choices.pick_from(&[49_152, 101_376, 232_448]),
            capability: choices.pick_from(&[75, 89, 90, 120]),
        };
        let mut case = Case { plugin, attributes, inputs, values, alignments, device };
        case.measure(choices);
        case
    }

    fn measure(&mut self, choices: &mut Choices<'_>) {
        let points = choices.next() % 3;
        if points == 0 {
            return;
        }
        let outputs = output_shapes(self, &self.evaluation());
        let rows: Vec<u32> = (0..).zip(&self.plugin.variants).map(|(row, _)| row).collect();
        let point = |_| {
            let mut near = |shape: &Vec<i64>| -> Vec<i64> {
                shape.iter().map(|extent| extent.saturating_mul(choices.pick_from(&[1, 1, 2, 3]))).collect()
            };
            let shapes = self.inputs.iter().chain(&outputs).map(&mut near).collect();
            let mut ranking = rows.clone();
            ranking.rotate_left(choices.next() as usize % rows.len());
            ranking.truncate(1 + choices.next() as usize % rows.len());
            TunedPoint { attributes: Vec::new(), shapes, ranking }
        };
        let points: Vec<TunedPoint> = (0..points).map(point).collect();
        let on =
            |(capability, sms)| TunedDevice { name: String::new(), capability, sms, points: points.clone() };
        self.plugin.tuning = [(89, 16), (90, 132), (120, 132)].map(on).into();
    }

    fn is_shape_input(&self, tensor: usize) -> bool {
        self.plugin.inputs.get(tensor).is_some_and(|input| input.values.is_some())
    }

    fn asks_for_device(&self) -> bool {
        self.plugin.variants.iter().any(launch::asks_for_device)
    }

    fn evaluation(&self) -> Evaluation {
        let mut evaluation = self.evaluated(Some(self.device)).unwrap();
        evaluation.refused = evaluation.refused.map(|refused| self.as_seen(refused));
        evaluation
    }

    /// Removes facts unknown to the runtime.
    fn as_seen(&self, mut refused: String) -> String {
        for ((input, shape), values) in self.plugin.inputs.iter().zip(&self.inputs).zip(&self.values) {
            if input.values.is_some() {
                refused = refused.replace(&format!(", {} contains {values:?}", input.name), "");
            }
            if input.values.is_some() && !shape.is_empty() {
                let unseen = format!("{}: unknown shape", input.name);
                let [row, part] = [
                    format!("\n  {}: {shape:?}", input.name),
                    format!("{} is {}", input.name, shape_text(shape)),
                ];
                refused = refused.replace(&row, &format!("\n  {unseen}")).replace(&part, &unseen);
            }
        }
        refused
    }

    fn evaluated(&self, device: Option<Device>) -> Result<Evaluation, Vec<Mistake>> {
        let all = (0..self.plugin.tensor_count())
            .filter_map(|index| Some((index, self.plugin.tensor_name(index)?)));
        let (held, plain): (Vec<_>, Vec<_>) = all.partition(|(index, _)| self.is_shape_input(*index));
        let named = |(index, name): &(usize, &str), list: &[Vec<i64>]| {
            Some(((*name).to_owned(), list.get(*index)?.clone()))
        };
        let subject = Subject {
            plugin: self.plugin.clone(),
            origin: SubjectOrigin::Compiled(Arc::from([])),
            number: None,
            attributes: Some(self.attributes.clone()),
            input_ranks: None,
            route: None,
        };
        let query = Query {
            shapes: plain.iter().filter_map(|tensor| named(tensor, &self.inputs)).collect(),
            values: held.iter().filter_map(|tensor| named(tensor, &self.values)).collect(),
            aligned: plain
                .iter()
                .filter(|(index, _)| self.plugin.storage_of(*index) == *index)
                .map(|(index, name)| ((*name).to_owned(), self.alignments[*index]))
                .collect(),
            device: device.iter().flat_map(facts_of).collect(),
            ..Query::default()
        };
        evaluate(&subject, &query, &Compiler::new(Environment::default())).map(|outcome| outcome.evaluation)
    }

    fn refused(&self, device: Option<Device>, outputs: &[Vec<i64>]) -> Option<String> {
        let title = format!("{}: ", self.plugin.full_name());
        let text = |error: &Error| {
            let text = error.text().strip_prefix(&title).unwrap_or(error.text());
            text.split_once("\n  node: ").map_or(text, |(text, _)| text).to_owned()
        };
        let node = Node {
            workspace_bytes: None,
            producer: String::new(),
            plugin: self.plugin.clone(),
            attributes: self.attributes.clone(),
            input_ranks: None,
            code: Vec::new(),
        };
        let made = KernelPlugin::new(
            Definition::bare(Arc::new(node)),
            self.attributes.clone(),
            "",
            TensorRTPhase::RUNTIME,
            Form::Fields,
            identity::generic(),
        );
        let made = match made {
            Ok(made) => made,
            Err(error) => return Some(text(&error)),
        };
        let ranks = self.inputs.iter().map(|shape| u8::try_from(shape.len()).unwrap());
        made.state.set_input_ranks(Some(ranks.collect()));
        let TensorKinds { types, formats } = TensorKinds::from_variant(&self.plugin.variants[0]);
        let kinds: Vec<(DataType, Format)> = types.into_iter().zip(formats).collect();
        let desc = |(shape, (ty, format)): (&Vec<i64>, &(DataType, Format))| PluginTensorDesc {
            dims: Dims::from_slice(shape).unwrap(),
            data_type: trt_abi::DataType(ty.tensorrt()),
            format: TensorFormat(format.tensorrt()),
            scale: 1.0,
        };
        // TensorRT announces no shape inputs (seen with TensorRT-RTX 1.7).
        let counted: Vec<usize> =
            (0..self.inputs.len()).filter(|input| !self.is_shape_input(*input)).collect();
        let inputs: Vec<_> =
            counted.iter().map(|input| desc((&self.inputs[*input], &kinds[*input]))).collect();
        let outputs: Vec<_> = outputs.iter().zip(&kinds[self.inputs.len()..]).map(desc).collect();
        made.running.with(|running| running.assume(device)).unwrap();
        if let Err(error) = made.on_shape_change(&inputs, &outputs) {
            return Some(text(&error));
        }
        let place = |alignment: &u64| without_provenance_mut::<c_void>(*alignment as usize);
        let inputs: Vec<_> =
            counted.iter().map(|input| place(&self.alignments[*input]).cast_const()).collect();
        let outputs: Vec<_> = self.alignments[self.inputs.len()..].iter().map(place).collect();
        let at = Addresses { inputs: &inputs, outputs: &outputs, workspace: std::ptr::null_mut() };
        if device.is_none() && self.asks_for_device() {
            return None;
        }
        made.running
            .with(|running| running.none_runs(&made.state.node, &at).map(|error| text(&error)))
            .unwrap()
    }

    fn refused_for_values(&self, evaluation: &Evaluation) -> bool {
        let takes_values = self.plugin.outputs.iter().any(|output| {
            output.shape.nodes.iter().any(|node| matches!(node, cubinder_expr::Node::Values(_)))
        });
        takes_values && !evaluation.tensors.iter().any(|tensor| tensor.role == "output")
    }
}

fn facts_of(device: &Device) -> [(String, i64); 3] {
    DeviceFact::ALL.map(|fact| (fact.name().to_owned(), device.fact(fact)))
}

fn output_shapes(case: &Case, evaluation: &Evaluation) -> Vec<Vec<i64>> {
    let outputs = evaluation.tensors.iter().filter(|tensor| tensor.role == "output");
    let mut outputs: Vec<Vec<i64>> = outputs.map(|tensor| tensor.shape.clone()).collect();
    outputs.resize(case.plugin.outputs.len(), vec![1]);
    outputs
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn eval_and_the_runtime_say_the_same(
        manifest in 0..manifests().len(),
        numbers in prop::collection::vec(any::<u32>(), 64),
    ) {
        let mut choices = Choices(numbers.iter().cycle());
        let case = Case::new(&manifests()[manifest], &mut choices);
        let evaluation = case.evaluation();
        let outputs = output_shapes(&case, &evaluation);
        let refused = case.refused(Some(case.device), &outputs);
        if case.refused_for_values(&evaluation) {
            prop_assert!(refused.is_some() && evaluation.refused.is_some());
        } else {
            prop_assert_eq!(refused, evaluation.refused);
        }
    }
}

#[test]
fn a_launch_that_depends_on_the_device_needs_one() {
    let mut random = numbers(7);
    let mut waited = 0;
    for round in 0..400 {
        let numbers: Vec<u32> = (0..64).map(|_| random()).collect();
        let case = Case::new(&manifests()[round % manifests().len()], &mut Choices(numbers.iter().cycle()));
        let told = case.evaluated(None);
        assert_eq!(told.is_err(), case.asks_for_device());
        let Err(mistakes) = told else { continue };
        for Mistake { name, diagnostic, .. } in &mistakes {
            let message = format!("the launch depends on `device.{name}`, which is not specified");
            assert_eq!(diagnostic.message, message);
            assert!(diagnostic.help.as_ref().is_some_and(|help| help.contains(&format!("--device {name}="))));
        }
        let evaluation = case.evaluation();
        let refused = case.refused(None, &output_shapes(&case, &evaluation));
        waited += usize::from(refused.is_none());
        assert!(refused.is_none() || refused == evaluation.refused, "{refused:?}, {:?}", evaluation.refused);
    }
    assert!(waited >= 5, "{waited}");
}

fn numbers(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    }
}

#[test]
fn cases_are_of_all_kinds() {
    let mut found = std::collections::BTreeMap::<&str, usize>::new();
    let mut random = numbers(1);
    for round in 0..2000 {
        let numbers: Vec<u32> = (0..64).map(|_| random()).collect();
        let case = Case::new(&manifests()[round % manifests().len()], &mut Choices(numbers.iter().cycle()));
        let refused = case.evaluation().refused.unwrap_or_default();
        let kinds = [
            "the attribute `",
            "has rank",
            "limits it to",
            "no variant can run",
            "` is false",
            "cannot launch",
        ];
        let kind = kinds.into_iter().find(|kind| refused.contains(kind));
        *found.entry(kind.unwrap_or(if refused.is_empty() { "launched" } else { "other" })).or_default() += 1;
        if case.values.iter().any(|values| !values.is_empty()) {
            let what = match () {
                () if refused.is_empty() => "launched with shape inputs",
                () if refused.contains("no variant can run") => "rejected with shape inputs",
                () if refused.contains("` is false; ") => "a rule with shape inputs",
                () => "rejected with shape inputs",
            };
            *found.entry(what).or_default() += 1;
        }
    }
    for kind in [
        "the attribute `",
        "has rank",
        "limits it to",
        "no variant can run",
        "` is false",
        "cannot launch",
        "launched",
        "launched with shape inputs",
        "a rule with shape inputs",
    ] {
        assert!(found.get(kind).is_some_and(|count| *count >= 3), "{found:?}");
    }
}
