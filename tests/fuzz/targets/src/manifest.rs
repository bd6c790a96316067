//! Manifests: messages can be shown, accepted manifests are consistent.
//!
//! Runs `cubinder check` and `cubinder eval` without files: every source is one text with all test kernels.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use cubinder_analysis::check;
use cubinder_analysis::kernel_text::{self, CheckedText, OpenSource};
use cubinder_expr::Value;
use cubinder_manifest::resolve::{self, Resolved};
use cubinder_model::container::{self, Container};
use cubinder_model::{Input, Target as Gpu, Variant};
use cubinder_node::eval::{self, Compiler, Environment, Report, Subject, SubjectOrigin};
use cubinder_node::query::{Part, Query};
use cubinder_source::diagnostic::{Diagnostic, Source};

use crate::bundles::bundle;
use crate::show::{show, show_refusal, show_table};
use crate::{Target, seeds};

/// The compiler's path from text to evaluation.
pub static TARGET: Target =
    Target::new("manifest", run, seeds::manifests, include_str!("../../dictionaries/manifest.dict"));

static KERNELS: LazyLock<Arc<Source>> = LazyLock::new(|| {
    let text = concat!(
        include_str!("../../../../kernels/circ_pad.cu"),
        include_str!("../../../../kernels/elemwise_add.cu"),
        include_str!("../../../data/kernels/constraints.cu"),
        include_str!("../../../data/kernels/scale.cu"),
    );
    // Unresolved includes would make errors uncertain.
    Source::new("kernels/all.cu", text.replace("#include", "// #include"))
});

fn open(_: &Path) -> Result<Arc<Source>, Vec<Diagnostic>> {
    Ok(Arc::clone(&KERNELS))
}

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match resolve::read(&Source::new("manifests/fuzz.toml", text)) {
        Ok(resolved) => accepted(resolved),
        Err(wrong) => {
            show_refusal(&wrong.errors);
            if let Some(sketch) = wrong.sketch {
                show(&check::check(&sketch, &[], sketch.manifest.compile.route()).diagnostics);
                show(&check_kernels(&sketch, &open).diagnostics);
            }
        }
    }
}

pub(crate) fn check_kernels(resolved: &Resolved, open: &OpenSource<'_>) -> CheckedText {
    let options = resolved.manifest.compile.options.iter().map(|option| option.value.clone());
    kernel_text::check(resolved, &targets(resolved), &options.collect::<Vec<_>>(), open)
}

fn targets(resolved: &Resolved) -> Vec<Gpu> {
    resolved.manifest.compile.targets.iter().map(|target| target.value).collect()
}

fn accepted(resolved: Resolved) {
    show(&resolved.warnings);
    let plugin = &resolved.draft.plugin;
    let (attributes, tensors) = (plugin.attributes.len(), plugin.tensor_count());
    for output in &plugin.outputs {
        output.shape.validate(attributes, tensors).expect("the compiler produces trees");
    }
    for launch in plugin.variants.iter().flat_map(Variant::launches) {
        for expr in launch.grid.iter().chain(&launch.block).chain([&launch.shared_bytes]) {
            expr.validate(attributes, tensors).expect("the compiler produces trees");
        }
    }
    let targets = targets(&resolved);
    let route = resolved.manifest.compile.route();
    let checked = check::check(&resolved, &targets, route);
    show(&checked.diagnostics);
    let kernels = check_kernels(&resolved, &open);
    show(&kernels.diagnostics);
    show(&check::check_arguments(&resolved, &targets, route, &kernels.args).diagnostics);
    packs(&resolved);
    let plugin = resolved.draft.plugin.clone();
    let origin = SubjectOrigin::Manifest(Arc::new(resolved));
    evaluate_subject(&Subject {
        plugin,
        origin,
        number: None,
        attributes: None,
        input_ranks: None,
        route: None,
    });
}

fn packs(resolved: &Resolved) {
    let bundle = bundle(resolved, false);
    match container::read(&container::write_bundle(&bundle)) {
        Ok(found) => assert_eq!(format!("{:?}", found.container), format!("{:?}", Container::Bundle(bundle))),
        Err(error) => panic!("the runtime rejects it: {error}"),
    }
}

fn query(subject: &Subject) -> Option<Query> {
    let plugin = &subject.plugin;
    let shape = |(position, input): (usize, &Input)| {
        let dims = ["4", "3", "32", "16", "2", "1", "8", "5"];
        let known = subject.input_ranks.as_ref().and_then(|ranks| ranks.get(position));
        let rank = usize::from(*known.unwrap_or(&input.rank_min)).min(dims.len());
        format!("{}={}", input.name, dims.get(..rank).unwrap_or_default().join("x"))
    };
    let is_plain = |(_, input): &(usize, &Input)| input.values.is_none();
    let shapes: Vec<String> = plugin.inputs.iter().enumerate().filter(is_plain).map(shape).collect();
    let values = |input: &Input| {
        let values = input.values?;
        let count = if input.rank_max == 0 { 1 } else { input.limits.dim(0).max.clamp(0, 3) };
        let value = 2.clamp(values.min, values.max).to_string();
        let all = vec![value; usize::try_from(count).unwrap_or(0)];
        Some(format!("{}={}", input.name, all.join(",")))
    };
    let values: Vec<String> = plugin.inputs.iter().filter_map(values).collect();
    let device = ["sms=132", "shared_bytes=232448", "capability=90"].map(str::to_owned);
    let missing = plugin
        .attributes
        .iter()
        .filter(|attribute| attribute.default.is_none() && subject.attributes.is_none());
    let attributes: Vec<String> = missing
        .map(|attribute| {
            let value = attribute.one_of.first().or(attribute.minimum.as_ref()).cloned();
            format!("{}={}", attribute.name, value.unwrap_or(Value::Int(1)))
        })
        .collect();
    let options: [(Part, &[String]); 4] = [
        (Part::Shape, &shapes),
        (Part::Values, &values),
        (Part::Device, &device),
        (Part::Attribute, &attributes),
    ];
    Query::parse(&options).ok()
}

pub(crate) fn evaluate_subject(subject: &Subject) {
    let Some(query) = query(subject) else { return };
    match eval::evaluate(subject, &query, &Compiler::new(Environment::default())) {
        Ok(outcome) => {
            show(&outcome.diagnostics);
            let evaluations = vec![outcome.evaluation];
            show_table(&eval::table(&Report { file: "fuzz".into(), kind: "manifest", evaluations }));
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "rejected without a message");
            mistakes.iter().for_each(|mistake| show(std::slice::from_ref(&mistake.diagnostic)));
        }
    }
}
