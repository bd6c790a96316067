//! Tuning files: messages show, files round-trip, runtimes read the tuned plugin.

use std::sync::LazyLock;

use cubinder_manifest::resolve;
use cubinder_model::container::{read, write_bundle};
use cubinder_model::{Bundle, Plugin};
use cubinder_node::tuning::{self, Tuning};
use cubinder_source::diagnostic::Source;

use crate::bundles::bundle;
use crate::show::{show, show_refusal};
use crate::{Target, seeds};

/// Reads, writes and packs tuning files.
pub static TARGET: Target =
    Target::new("tuning", run, seeds::tunings, include_str!("../../dictionaries/tuning.dict"));

static BUNDLE: LazyLock<Bundle> = LazyLock::new(|| {
    let text = include_str!("../../../../manifests/circ_pad_plugin.toml");
    let resolved = resolve::compile(&Source::new("manifests/circ_pad_plugin.toml", text));
    bundle(&resolved.expect("the manifest is valid"), true)
});

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let file = match tuning::read(&Source::new("tuning/fuzz.toml", text)) {
        Ok(file) => file,
        Err(diagnostics) => return show_refusal(&diagnostics),
    };
    let written = tuning::write(&file.tuning);
    match tuning::read(&Source::new("tuning/written.toml", written)) {
        Ok(again) => assert_eq!(again.tuning, sorted(file.tuning.clone()), "written as something else"),
        Err(diagnostics) => panic!("cannot read the written file: {diagnostics:?}"),
    }
    let mut packed = BUNDLE.clone();
    let plugins: Vec<&Plugin> = packed.plugins.iter().collect();
    show(&tuning::other_versions(std::slice::from_ref(&file), &plugins));
    for plugin in &mut packed.plugins {
        show(&tuning::pack(std::slice::from_ref(&file), plugin));
    }
    read(&write_bundle(&packed)).expect("the packed file can be read");
}

fn sorted(mut tuning: Tuning) -> Tuning {
    for point in &mut tuning.points {
        let ranking = point.ranking();
        point.microseconds.sort_by_key(|(id, _)| ranking.iter().position(|ranked| ranked == id));
    }
    tuning
}
