//! Containers: readers accept only writers' output, usable by a runtime or `cubinder eval`. Inputs become bodies and
//! models behind valid headers, lengths and digests.

use cubinder_compiler::inspect;
use cubinder_expr as expr;
use cubinder_expr::Environment;
use cubinder_expr::Value;
use cubinder_model::container::{self, Container, FORMAT_VERSION, MAGIC, REFERENCE_MAGIC};
use cubinder_model::provenance::{self, Section};
use cubinder_model::{Bundle, Digest, Plugin, Provenance, Variant};
use cubinder_node::eval;
use cubinder_source::diagnostic::has_errors;

use crate::Target;
use crate::bundles::{CODE, packed_code};
use crate::manifest::evaluate_subject;
use crate::seeds::{self, HEADER_BYTES, RECORD_HEADER_BYTES, REFERENCE_HEADER_BYTES};
use crate::show::{show, show_refusal, show_table};

/// The reader of containers.
pub static TARGET: Target =
    Target::new("container", run, seeds::containers, include_str!("../../dictionaries/container.dict"));

const CODE_ALIGNMENT: usize = 64;

struct Node;

impl Environment for Node {
    fn attribute(&self, index: u32) -> Option<&Value> {
        (index == 0).then_some(&Value::Int(3))
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        Some(&[2, 3, 0, 1 << 40])
    }
}

fn run(input: &[u8]) {
    let _ = container::read(input);
    inspect(input);
    assert!(container::scan(input).count() <= input.len() / REFERENCE_MAGIC.len());
    frames(input).iter().for_each(|framed| read(framed));
    records(input).iter().for_each(|section| read_record(section));
}

fn frames(input: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![framed_reference(input)];
    all.extend((0..=4).map(|kind| framed(kind, input)));
    for kind in 1..=2 {
        let mut body = (input.len() as u64).to_le_bytes().to_vec();
        body.extend(input);
        all.push(framed(kind, &body));
        let end = (HEADER_BYTES + body.len()).next_multiple_of(CODE_ALIGNMENT);
        all.push(framed(kind, &[body.as_slice(), packed_code().bytes.stored()].concat()));
        body.resize(end - HEADER_BYTES, 0);
        body.extend(CODE);
        all.push(framed(kind, &body));
    }
    all
}

fn records(input: &[u8]) -> [Vec<u8>; 2] {
    let mut section = provenance::write(&Provenance::default(), owner());
    section.truncate(RECORD_HEADER_BYTES);
    section.extend(input);
    let length = (section.len() as u32).to_le_bytes();
    section.iter_mut().skip(12).zip(length).for_each(|(to, from)| *to = from);
    let hashed: Vec<u8> = section.iter().take(16).chain(section.iter().skip(24)).copied().collect();
    let digest = Digest::compute(&hashed).shortened().0;
    section.iter_mut().skip(16).zip(digest).for_each(|(to, from)| *to = from);
    [input.to_vec(), section]
}

fn owner() -> Digest {
    container::digest(&smallest()).expect("it was written").0
}

fn smallest() -> Vec<u8> {
    container::write_bundle(&Bundle { producer: String::new(), plugins: Vec::new(), code: Vec::new() })
}

/// Checks that an accepted section is a writer's, has parts for any code, and prints.
fn read_record(section: &[u8]) {
    let _ = provenance::check(section, owner());
    let first = provenance::split(section).map(|(first, _)| first);
    if let Some(Ok(Section::Provenance(record))) = first.map(|first| provenance::read(first, owner())) {
        assert_eq!(
            Some(provenance::write(&record, owner()).as_slice()),
            first,
            "the encoding is not canonical"
        );
        assert_eq!(record.retain_code(&[], &[]).code.len(), 0);
    }
    let behind = [smallest().as_slice(), section].concat();
    if let Ok(report) = inspect::inspect("fuzz", &behind) {
        show_table(&inspect::provenance_text(&report));
    }
}

fn framed_reference(model: &[u8]) -> Vec<u8> {
    let mut bytes = REFERENCE_MAGIC.to_vec();
    bytes.extend((FORMAT_VERSION as u16).to_le_bytes());
    bytes.extend(((REFERENCE_HEADER_BYTES + model.len()) as u32).to_le_bytes());
    let digest = Digest::compute(&[bytes.as_slice(), model].concat());
    bytes.extend(digest.shortened().0);
    bytes.extend(model);
    bytes
}

fn framed(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT_VERSION.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend(((HEADER_BYTES + body.len()) as u64).to_le_bytes());
    let digest = Digest::compute(&[bytes.as_slice(), body].concat());
    bytes.extend(digest.0);
    bytes.extend(body);
    bytes
}

fn read(bytes: &[u8]) {
    let Ok(found) = container::read(bytes) else { return };
    let written = match &found.container {
        Container::Bundle(bundle) => {
            bundle.plugins.iter().for_each(walk);
            container::write_bundle(bundle)
        }
        Container::Node(node) => {
            walk(&node.plugin);
            container::write_node(node)
        }
        Container::NodeReference(reference) => container::write_node_reference(reference),
    };
    assert_eq!(written, bytes, "the encoding is not canonical");
    evaluate(bytes);
    inspect(bytes);
}

fn inspect(bytes: &[u8]) {
    if let Ok(report) = inspect::inspect("fuzz", bytes) {
        show_table(&inspect::table(&report, inspect::Verbosity::Full));
        show_table(&inspect::summary(&report));
    }
}

fn walk(plugin: &Plugin) {
    let rules = plugin.require.iter().map(|rule| &rule.expr);
    let guards = plugin.variants.iter().filter_map(|variant| Some(&variant.guard.as_ref()?.expr));
    let launches = plugin.variants.iter().flat_map(Variant::launches);
    let extents =
        launches.flat_map(|launch| launch.grid.iter().chain(&launch.block).chain([&launch.shared_bytes]));
    for expr in plugin.outputs.iter().map(|output| &output.shape).chain(rules).chain(guards).chain(extents) {
        let _ = expr::evaluate(expr, &Node);
        let _ = expr::evaluate(&expr::bind(expr, &Node), &Node);
        let _ = expr::print(expr, plugin);
    }
}

fn evaluate(bytes: &[u8]) {
    match eval::compiled("fuzz", bytes) {
        Ok(subjects) => {
            assert!(!has_errors(&subjects.warnings));
            show(&subjects.warnings);
            subjects.list.iter().for_each(evaluate_subject);
        }
        Err(diagnostics) => show_refusal(&diagnostics),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_behind_their_headers() {
        let sections: Vec<_> = seeds::containers().iter().flat_map(|seed| records(seed)).collect();
        let is_read = |section: &&Vec<u8>| matches!(provenance::find(section, owner()), Ok(Some(_)));
        assert!(sections.iter().filter(is_read).count() >= 2);
    }

    #[test]
    fn models_of_every_kind_are_read_behind_the_headers() {
        let (mut bundles, mut nodes, mut references) = (0, 0, 0);
        for framed in seeds::containers().iter().flat_map(|seed| frames(seed)) {
            match container::read(&framed).map(|found| found.container) {
                Ok(Container::Bundle(_)) => bundles += 1,
                Ok(Container::Node(_)) => nodes += 1,
                Ok(Container::NodeReference(_)) => references += 1,
                Err(_) => {}
            }
        }
        assert!(bundles > 10 && nodes > 10 && references > 10, "{bundles} {nodes} {references}");
    }
}
