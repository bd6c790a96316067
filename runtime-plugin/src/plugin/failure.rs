//! Node and device of run-time errors. Queries the driver.

use cubinder_launch::{Facts, describe};
use trt_abi::Error;

use super::node::NamedNode;
use crate::code::DeviceFacts;
use crate::driver::Driver;

pub(super) fn node_context(node: &NamedNode, facts: &Facts<'_>, driver: Option<&Driver>) -> String {
    let known = describe(node.definition.plugin(), &Facts { alignments: &[], ..*facts });
    let known = known.strip_prefix("; ").map(|known| format!("\n  node: {known}"));
    let device = driver.and_then(DeviceFacts::current).map(|device| format!("\n  GPU: {device}"));
    [known, device].into_iter().flatten().collect()
}

pub(super) fn failure(
    code: i32,
    node: &NamedNode,
    what: &dyn std::fmt::Display,
    context: &str,
    help: Option<&str>,
) -> Error {
    let help = help.map_or_else(String::new, |help| format!("\n{help}"));
    Error::new(code, format!("{}: {what}{context}{help}", node.title()))
}
