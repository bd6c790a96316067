//! ONNX models: models round-trip, `annotate` is idempotent, messages show.

#[path = "../../../../compiler/tests/support/models.rs"]
mod models;

use std::io::Cursor;
use std::sync::LazyLock;

use cubinder_node::eval::{self, Compiler, Environment};
use cubinder_node::query::Query;
use cubinder_onnx::nodes::{self, AnnotationScope, Mapping, NetworkShapes, Plugins};
use cubinder_onnx::proto::AttributeProto;
use cubinder_onnx::{Edits, Model};
use cubinder_source::diagnostic::Source;

use crate::show::{show, show_table};
use crate::{Target, seeds};

/// The reader of ONNX models, and its users.
pub static TARGET: Target = Target::new("onnx", run, seeds, include_str!("../../dictionaries/onnx.dict"));

static PLUGINS: LazyLock<Plugins> = LazyLock::new(|| {
    let manifest = |name: &&str| {
        let text = std::fs::read_to_string(seeds::root().join(name)).expect("the manifest exists");
        eval::manifest(&Source::new(*name, text)).expect("the manifest is valid").list
    };
    Plugins::from_subjects(models::MANIFESTS.iter().flat_map(manifest).collect())
});

fn seeds() -> Vec<Vec<u8>> {
    let cases = models::wrong().into_iter().chain(models::right()).map(|case| case.model);
    let calls = [["other", "sample"], ["sample", "sample"]]
        .map(|calls| models::said_by_calls("plugin_namespace", &calls));
    cases
        .chain(calls)
        .chain([models::foreign(), models::dynamic(), models::opaque(), models::made_dynamic()])
        .collect()
}

fn run(bytes: &[u8]) {
    let model = match Model::read(Cursor::new(bytes)) {
        Ok(model) => model,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(written(&Edits::new(&model), bytes) == bytes, "an unchanged model changed");
    let report = nodes::list("fuzz", &model, &PLUGINS);
    show(&report.diagnostics());
    show_table(&nodes::table(&report));
    annotate(&model, bytes);
    shapes(&model);
}

fn written(edits: &Edits<'_>, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    edits.write(Cursor::new(bytes), &mut out).expect("memory can be written");
    out
}

fn annotate(model: &Model, bytes: &[u8]) {
    let mapping = Mapping::default();
    assert!(mapping.unused(model).is_empty());
    for takes in [AnnotationScope::Lacking, AnnotationScope::Named] {
        let annotated = nodes::annotate(model, &PLUGINS, &mapping, takes);
        show_table(&nodes::diff(&annotated, true));
        let out = written(&annotated.edits, bytes);
        let again = Model::read(Cursor::new(&out)).expect("the written file is a model");
        assert_eq!(references(&again), references(model), "the number of calls changed");
        let more = nodes::annotate(&again, &PLUGINS, &mapping, takes);
        assert!(more.edits.is_empty(), "annotating again changes more: {}", nodes::diff(&more, true));
    }
}

fn references(model: &Model) -> Vec<Vec<AttributeProto>> {
    let is_reference = |said: &&AttributeProto| !said.ref_attr_name().is_empty();
    model
        .nodes()
        .map(|(_, node)| node.proto.attribute.iter().filter(is_reference).cloned().collect())
        .collect()
}

fn shapes(model: &Model) {
    let given = NetworkShapes {
        dims: vec![("batch".to_owned(), 2), ("n".to_owned(), 3)],
        ..NetworkShapes::default()
    };
    for given in [given, NetworkShapes::default()] {
        let compiler = Compiler::new(Environment::default());
        match nodes::shapes("fuzz", model, &PLUGINS, &given, &Query::default(), &compiler) {
            Ok(report) => {
                show(&report.diagnostics());
                show_table(&nodes::shapes_table(&report, true));
            }
            Err(errors) => show(&errors),
        }
    }
}
