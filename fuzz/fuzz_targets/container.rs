//! Containers: no bytes make the reader panic, and what it accepts is what a writer writes.
//!
//! The input is what follows a header; the header is made to fit, digest included, because nothing behind a wrong one is read.
#![no_main]

use cubinder_bundle::container::{self, Container, FORMAT_VERSION, MAGIC};
use cubinder_bundle::expr::{self, Environment};
use cubinder_bundle::{Digest, Plugin, Value};
use libfuzzer_sys::fuzz_target;

/// Knows shapes, and one attribute.
struct Node;

impl Environment for Node {
    fn attribute(&self, index: u32) -> Option<&Value> {
        (index == 0).then_some(&Value::Int(3))
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        Some(&[2, 3, 0, 1 << 40])
    }
}

/// Walks every expression that a runtime would evaluate.
fn walk(plugin: &Plugin) {
    let rules = plugin.require.iter().map(|rule| &rule.expr);
    for expr in plugin.outputs.iter().map(|output| &output.shape).chain(rules) {
        let _ = expr::evaluate(expr, &Node);
        let _ = expr::evaluate(&expr::bind(expr, &Node), &Node);
        let _ = expr::print(expr, plugin);
    }
}

/// A container of `kind` with this behind its header.
fn framed(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT_VERSION.to_le_bytes());
    bytes.extend(kind.to_le_bytes());
    bytes.extend((64 + body.len() as u64).to_le_bytes());
    let digest = Digest::of(&[bytes.as_slice(), body].concat());
    bytes.extend(digest.0);
    bytes.extend(body);
    bytes
}

fuzz_target!(|body: &[u8]| {
    let _ = container::read(body);
    assert!(container::scan(body).count() <= body.len() / 16);
    for kind in 0..4 {
        let bytes = framed(kind, body);
        let Ok(found) = container::read(&bytes) else { continue };
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
    }
});
