//! Native plugins' launches equal those of plugin libraries.
//!
//! `tests/native-route` evaluates its own expressions, built before shapes are known. Grid, block, shared memory and
//! reassembled numbers must equal our evaluation; for rejected shapes, the kernel must exit at once.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cubinder_expr::Value;
use cubinder_launch as launch;
use cubinder_launch::native::{SHARED_BYTES, WordPart, is_own};
use cubinder_launch::{
    Device, EvaluatedLaunch, EvaluatedStep, Facts, GuardVerdict, LaunchLimits, Steps, alignment,
    output_shapes, sequence, verdict,
};
use cubinder_model::{ArgValue, AttributeElement, Bundle, Plugin, TargetKind, Variant};
use cubinder_node::trial::shapes::{self, Sizes};
use cubinder_skip::skip;
use cubinder_tests::cxx;
use cubinder_tests::native_route::{self, MANIFESTS, known};

const NODES: u64 = 200;
const SPANNED: usize = 60;
const OTHERS: usize = 4;

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

fn compiled(folder: &Path, manifest: &str) -> Option<(PathBuf, Bundle)> {
    let (compiler, runtime) = (variable("CUBINDER_BIN")?, variable("CUBINDER_RUNTIME_LIBRARY")?);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let output = folder.join(manifest.replace('/', "-"));
    let mut command = Command::new(compiler);
    command.current_dir(&root).args(["compile", manifest, "--route", "native", "--target", "sm_80", "-q"]);
    command.arg("--out-dir").arg(&output).arg("--runtime-library").arg(runtime);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{manifest}: {}", String::from_utf8_lossy(&done.stderr));
    let stem = Path::new(manifest).file_stem().unwrap().to_str().unwrap();
    let library = output.join(format!("lib{stem}.so"));
    let bundle = native_route::bundle(&library).unwrap();
    Some((library, bundle))
}

struct Played {
    sizes: Sizes,
    others: Vec<Vec<Vec<i64>>>,
}

fn others(sizes: &Sizes, source: &mut fastrand::Rng) -> Vec<Vec<Vec<i64>>> {
    let mut near = |extent: i64| match source.u8(..6) {
        0 => 0,
        1 => (extent - 1).max(0),
        2 => extent + 1,
        3 => source.i64(0..=2 * extent + 3),
        _ => extent,
    };
    let mut other =
        || sizes.shapes.iter().map(|shape| shape.iter().map(|extent| near(*extent)).collect()).collect();
    (0..OTHERS).map(|_| other()).collect()
}

fn written(plugin: &Plugin, node: &Played) -> String {
    let sizes = &node.sizes;
    let variant = &plugin.variants[sizes.row];
    let mut text = format!("node {} {} {}\n", plugin.name, plugin.namespace, plugin.version);
    for (attribute, value) in plugin.attributes.iter().zip(&sizes.attributes) {
        // Several texts end in NUL each, as from the ONNX parser.
        let codes = |text: &String| text.bytes().map(|byte| Value::Int(byte.into())).collect::<Vec<_>>();
        let with_end = |value: &Value| match value {
            Value::Str(text) => [codes(text), vec![Value::Int(0)]].concat(),
            value => vec![value.clone()],
        };
        let values: Vec<Value> = match value {
            Value::Array(values) => values.iter().flat_map(with_end).collect(),
            Value::Str(text) => codes(text),
            value => vec![value.clone()],
        };
        // `nvinfer1::PluginFieldType` (`NvInferRuntimePlugin.h`).
        let ty = match attribute.ty.element {
            AttributeElement::F32 | AttributeElement::F16 => 1,
            AttributeElement::F64 => 2,
            AttributeElement::I64 => 10,
            AttributeElement::String => 6,
            // Text would lose a final NUL.
            AttributeElement::Bytes => 3,
            _ => 5,
        };
        let _ = write!(text, "attr {} {ty} {}", attribute.name, values.len());
        for value in values {
            let _ = match value {
                Value::Bool(value) => write!(text, " {}", i32::from(value)),
                Value::Int(value) => write!(text, " {value}"),
                Value::Float(value) => write!(text, " {value:e}"),
                other => panic!("{}: {other:?}", attribute.name),
            };
        }
        text.push('\n');
    }
    let tensors = variant.types.iter().zip(&variant.formats);
    for (index, (ty, format)) in tensors.enumerate() {
        let (ty, format) = (ty.tensorrt(), format.tensorrt());
        let _ = match sizes.shapes.get(index) {
            Some(shape) => {
                let extents: String = shape.iter().map(|extent| format!(" {extent}")).collect();
                writeln!(text, "in {ty} {format} {}{extents}", shape.len())
            }
            None => writeln!(text, "out {ty} {format}"),
        };
    }
    for other in &node.others {
        let extents: String = other.iter().flatten().map(|extent| format!(" {extent}")).collect();
        let _ = writeln!(text, "also{extents}");
    }
    text + "run\n"
}

#[derive(Default, Debug)]
struct Answer {
    shapes: Vec<Vec<i64>>,
    launches: Vec<Launched>,
    undefined: usize,
    refused: Option<String>,
}

#[derive(Debug)]
struct Launched {
    tactic: i32,
    /// 0: the node's own shapes; 1: the first others.
    point: usize,
    extents: Vec<i64>,
    words: Vec<i64>,
    symbol: String,
    bytes: usize,
}

fn answers(text: &str) -> Vec<Answer> {
    let mut all = vec![Answer::default()];
    for line in text.lines() {
        let answer = all.last_mut().unwrap();
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words: Vec<&str> = rest.split(' ').filter(|word| !word.is_empty()).collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        match what {
            "shape" => answer.shapes.push((0..words.len()).map(number).collect()),
            "launch" => {
                let count = usize::try_from(number(9)).unwrap();
                answer.launches.push(Launched {
                    tactic: i32::try_from(number(0)).unwrap(),
                    point: usize::try_from(number(1)).unwrap(),
                    extents: (2..9).map(number).collect(),
                    words: (10..10 + count).map(number).collect(),
                    symbol: words[10 + count].to_owned(),
                    bytes: usize::try_from(number(11 + count)).unwrap(),
                });
            }
            "undefined" => answer.undefined += 1,
            "refused" => answer.refused = Some(rest.to_owned()),
            "end" => all.push(Answer::default()),
            other => panic!("{other}"),
        }
    }
    all.pop();
    all
}

fn played(program: &Path, library: &Path, nodes: &str) -> Vec<Answer> {
    let mut command = Command::new(program);
    command.arg(library).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let nodes = nodes.to_owned();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, nodes.as_bytes()));
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(done.status.success(), "{}", done.status);
    answers(&String::from_utf8(done.stdout).unwrap())
}

fn put_together(variant: &Variant, words: &[i64]) -> Vec<u8> {
    let launch = variant.launch(0).unwrap();
    let before = usize::from(!is_own(launch));
    let mut words = words.iter().skip(before).map(|word| i32::try_from(*word).expect("a word has 32 bits"));
    let mut bytes: Vec<u8> = Vec::new();
    for arg in &launch.args {
        let (ty, count) = match &arg.value {
            ArgValue::Scalar { ty, .. } => (*ty, 1),
            ArgValue::Array { ty, len, .. } => (*ty, *len),
            _ => continue,
        };
        bytes.resize(bytes.len().next_multiple_of(alignment(ty)), 0);
        for _ in 0..count {
            for _ in WordPart::for_type(ty) {
                bytes.extend_from_slice(&words.next().unwrap().to_le_bytes()[..ty.size().min(4) as usize]);
            }
        }
    }
    assert_eq!(words.next(), None, "more words than the arguments have");
    bytes
}

fn first_route(plugin: &Plugin, variant: &Variant, facts: &Facts<'_>) -> Option<EvaluatedLaunch> {
    // TensorRT may not request more shared memory.
    let takes =
        LaunchLimits { max_shared_bytes: u32::try_from(SHARED_BYTES).unwrap(), ..LaunchLimits::ANYTHING };
    let done = sequence(plugin, variant, |_| takes, facts, &mut Steps::default()).ok()?;
    match done.steps.into_iter().next()? {
        EvaluatedStep::Launch(launch) => Some(launch),
        EvaluatedStep::LeftOut => Some(EvaluatedLaunch::default()),
        EvaluatedStep::Fill { .. } => None,
    }
}

#[derive(Default)]
struct Held {
    variants: BTreeSet<(usize, bool)>,
    compared: usize,
    left: usize,
}

fn accepted(plugin: &Plugin, sizes: &Sizes, shapes: &[Vec<i64>]) -> Option<Vec<Vec<i64>>> {
    let inputs: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let facts = Facts { attributes: &sizes.attributes, shapes: &inputs, ..Facts::default() };
    let mut steps = Steps::default();
    launch::check(plugin, launch::rules_of_shapes(plugin), &facts, &mut steps).ok()?;
    let outputs = output_shapes(plugin, &facts, &mut steps).ok()?;
    Some(shapes.iter().cloned().chain(outputs).collect())
}

fn hold(bundle: &Bundle, node: &Played, answer: &Answer, place: &str, held: &mut Held) {
    let (plugin, sizes) = (&bundle.plugins[0], &node.sizes);
    let all = accepted(plugin, sizes, &sizes.shapes).unwrap();
    let slices: Vec<&[i64]> = all.iter().map(Vec::as_slice).collect();
    let facts = Facts { attributes: &sizes.attributes, shapes: &slices, ..Facts::default() };
    let kinds = &plugin.variants[sizes.row];
    let is_alike = |variant: &&Variant| {
        (&variant.types, &variant.formats) == (&kinds.types, &kinds.formats)
            && launch::is_compiled_for(variant, &sizes.attributes)
    };
    let is_spanned = !node.others.is_empty();
    let can_run = |variant: &&Variant| {
        verdict(variant.guard.as_ref(), &facts, &mut Steps::default()) == GuardVerdict::Holds
            && (is_spanned || first_route(plugin, variant, &facts).is_some())
    };
    let valid: Vec<&Variant> = plugin.variants.iter().filter(is_alike).filter(can_run).collect();
    if valid.is_empty() || (is_spanned && answer.refused.is_some()) {
        let refused = answer.refused.as_deref().unwrap_or_default();
        let reasons = ["no variant is proved", "dynamic shared memory", "of the profile"];
        assert!(reasons.iter().any(|reason| refused.contains(reason)), "{place}: {answer:?}");
        return;
    }
    assert_eq!((&answer.refused, &answer.shapes[..]), (&None, &all[plugin.inputs.len()..]), "{place}");
    let ids: BTreeSet<i32> = valid.iter().map(|variant| variant.id).collect();
    let offered: BTreeSet<i32> = answer.launches.iter().map(|launched| launched.tactic).collect();
    // One shape proves every true guard.
    assert!(offered.is_subset(&ids) && (is_spanned || offered == ids), "{place}: {offered:?} of {ids:?}");
    assert!(is_spanned || answer.undefined == 0, "{place}: {answer:?}");
    for launched in &answer.launches {
        let variant = valid.iter().find(|variant| variant.id == launched.tactic).unwrap();
        let shapes = node.others.get(launched.point.wrapping_sub(1)).unwrap_or(&sizes.shapes);
        let place = format!("{place}, variant {}, {shapes:?}: {launched:?}", variant.id);
        hold_launch(bundle, variant, launched, &place);
        let Some(all) = accepted(plugin, sizes, shapes) else {
            // Reads would be out of bounds.
            assert!(launched.words.first().is_some_and(|word| *word != 0), "{place}");
            assert_eq!(launched.extents[..3], [1, 1, 1], "{place}");
            held.left += 1;
            continue;
        };
        let slices: Vec<&[i64]> = all.iter().map(Vec::as_slice).collect();
        let facts = Facts { attributes: &sizes.attributes, shapes: &slices, ..Facts::default() };
        let holds = verdict(variant.guard.as_ref(), &facts, &mut Steps::default());
        assert_eq!(holds, GuardVerdict::Holds, "{place}");
        // The plugin library already rejected the node.
        let Some(first) = first_route(plugin, variant, &facts) else { continue };
        compare(variant, launched, &first, &place);
        let index = plugin.variants.iter().position(|known| std::ptr::eq(known, *variant)).unwrap();
        held.variants.insert((index, first.is_empty()));
        held.compared += 1;
    }
}

fn hold_launch(bundle: &Bundle, variant: &Variant, launched: &Launched, place: &str) {
    let code = &variant.launch(0).unwrap().code[0];
    assert_eq!((code.target.kind, &launched.symbol), (TargetKind::Native, &code.symbol), "{place}");
    assert!(launched.bytes > 100, "{place}");
    let kernels = &bundle.code[code.code as usize].kernels;
    let kernel = kernels.iter().find(|kernel| kernel.symbol == code.symbol).unwrap();
    let threads: i64 = launched.extents[3..6].iter().product();
    let most = kernel.max_threads.map_or(1024, i64::from);
    assert!(launched.extents[..6].iter().all(|extent| *extent >= 1) && threads <= most, "{place}: {most}");
}

fn compare(variant: &Variant, launched: &Launched, first: &EvaluatedLaunch, place: &str) {
    let is_told = !is_own(variant.launch(0).unwrap()) && launched.words[0] != 0;
    assert_eq!(is_told, first.is_empty(), "{place}");
    if first.is_empty() {
        assert_eq!(launched.extents[..3], [1, 1, 1], "{place}");
        return;
    }
    let extents = first.grid.iter().chain(&first.block).chain([&first.shared_bytes]);
    let extents: Vec<i64> = extents.copied().map(i64::from).collect();
    assert_eq!(launched.extents, extents, "{place}");
    assert_eq!(put_together(variant, &launched.words), first.numbers, "{place}");
}

#[test]
fn tensorrt_is_told_what_a_plugin_library_launches() {
    if cxx::compiler_version().is_none() || variable("CUBINDER_BIN").is_none() {
        return skip("no C++ compiler, or no `CUBINDER_BIN`");
    }
    let program = native_route::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut source = fastrand::Rng::with_seed(7);
    let mut left = 0;
    for manifest in MANIFESTS {
        let Some((library, bundle)) = compiled(folder.path(), manifest) else { return };
        let plugin = &bundle.plugins[0];
        let device = Device { sms: 132, shared_bytes: 232_448, capability: 90 };
        let nodes = (0..NODES).filter_map(|seed| shapes::random(plugin, device, &known(plugin), seed));
        let nodes: Vec<Sizes> = nodes.collect();
        assert!(nodes.len() > NODES as usize / 2, "{manifest}: {} nodes", nodes.len());
        let spanned = nodes
            .iter()
            .take(SPANNED)
            .map(|sizes| Played { sizes: sizes.clone(), others: others(sizes, &mut source) });
        let spanned: Vec<Played> = spanned.collect();
        let alone = nodes.iter().map(|sizes| Played { sizes: sizes.clone(), others: Vec::new() });
        let nodes: Vec<Played> = alone.chain(spanned).collect();
        let text: String = nodes.iter().map(|node| written(plugin, node)).collect();
        let answers = played(&program, &library, &text);
        assert_eq!(answers.len(), nodes.len(), "{manifest}");
        let mut held = Held::default();
        for (node, answer) in nodes.iter().zip(&answers) {
            let sizes = &node.sizes;
            let place = format!("{manifest}: {:?}, {:?}, row {}", sizes.shapes, sizes.attributes, sizes.row);
            hold(&bundle, node, answer, &place, &mut held);
        }
        left += held.left;
        let missing = (0..plugin.variants.len()).filter(|index| !held.variants.contains(&(*index, false)));
        let missing: Vec<&str> = missing.map(|index| plugin.variants[index].label.as_str()).collect();
        println!(
            "{manifest}: {} nodes, {} of {} variants, {} launches are equal, {} are left",
            nodes.len(),
            plugin.variants.len() - missing.len(),
            plugin.variants.len(),
            held.compared,
            held.left
        );
        assert!(missing.is_empty(), "{manifest}: no node compared {missing:?}");
    }
    assert!(left > 100, "only {left} launches were for shapes that are not accepted");
}
