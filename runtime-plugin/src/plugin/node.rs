//! What all clones of a node share, and the node's own words around what is wrong with it.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::sync::OnceLock;

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch as launch;
use cubinder_launch::{Facts, Signature};
use cubinder_model::{Plugin, Variant, timing};
use trt_abi::{Error, Identity, Severity, TensorRTPhase, logger};

use super::Form;
use crate::definition::{BuildFacts, Definition, TensorKinds};

/// What all clones of a node share.
#[derive(Debug)]
pub(super) struct NodeData {
    pub(super) definition: Definition,
    pub(super) attributes: Vec<Value>,
    pub(super) phase: TensorRTPhase,
    pub(super) form: Form,
    /// Under which engines find what runs the node; of a native node the op's.
    pub(super) core: Identity,
    /// `sample::circ_pad_plugin`, and the node's name where one is known: what messages begin with.
    pub(super) title: String,
    /// What engine inspectors show.
    pub(super) metadata: CString,
    timing_id: OnceLock<CString>,
    /// What the tensors can be, in the order of the table of variants, each once.
    pub(super) kinds: Vec<TensorKinds>,
    /// The tensors that TensorRT counts, in its order: all but shape inputs, of which it passes the values alone. Each is an index
    /// over the plugin's inputs, then its outputs.
    pub(super) counted: Vec<usize>,
}

impl NodeData {
    pub(super) fn new(
        definition: Definition,
        attributes: Vec<Value>,
        name: &str,
        phase: TensorRTPhase,
        form: Form,
        core: Identity,
    ) -> NodeData {
        let plugin = definition.plugin();
        // An engine may have thousands of rows, so they are not held against each other one by one.
        let mut seen: BTreeSet<(&[DataType], &[Format])> = BTreeSet::new();
        let serving = plugin.variants.iter().filter(|variant| launch::is_compiled_for(variant, &attributes));
        let different = serving.filter(|variant| seen.insert((&variant.types, &variant.formats)));
        let kinds = different.map(TensorKinds::from_variant).collect();
        let is_counted = |index: &usize| plugin.inputs.get(*index).is_none_or(|input| input.values.is_none());
        NodeData {
            kinds,
            counted: (0..plugin.tensor_count()).filter(is_counted).collect(),
            title: title(plugin, name),
            metadata: CString::new(metadata(plugin, &attributes)).unwrap_or_default(),
            timing_id: OnceLock::new(),
            attributes,
            phase,
            form,
            core,
            definition,
        }
    }

    /// What expressions see of the node while nothing but its attributes is known.
    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { attributes: &self.attributes, ..Facts::default() }
    }

    /// The node with tensors of these types and formats.
    pub(super) fn signature<'a>(&'a self, types: &'a [DataType], formats: &'a [Format]) -> Signature<'a> {
        Signature { attributes: &self.attributes, types, formats }
    }

    /// The variants that the node can run with tensors of these kinds; where they are not known, with any.
    pub(super) fn reachable(&self, kinds: Option<&TensorKinds>) -> impl Iterator<Item = &Variant> {
        self.definition.reachable(kinds, &self.attributes)
    }

    /// The identity of the node in TensorRT's cache of measured times, made when it is first asked for. It says what the node was made
    /// from: plugin, code for its attributes, and the attributes on which its time depends. Types, formats and shapes are not in it: TensorRT
    /// puts them before it ("TensorRT automatically forms a prefix": NVIDIA TensorRT documentation 10.16, custom layers, timing caching),
    /// and asks before it has settled them (seen with TensorRT-RTX 1.7). The node's name is not in it either.
    pub(super) fn timing_id(&self) -> &CStr {
        self.timing_id.get_or_init(|| {
            let node = self.definition.node(BuildFacts::default(), &self.attributes);
            let digest = timing::digest(&node, self.definition.plugin().timing.as_deref());
            CString::new(format!("cubinder-{digest}")).unwrap_or_default()
        })
    }

    /// How many inputs TensorRT counts.
    pub(super) fn counted_inputs(&self) -> usize {
        self.counted.len() - self.definition.plugin().outputs.len()
    }

    /// Logs a message about the node.
    pub(super) fn log(&self, severity: Severity, what: impl Display) {
        logger::log(severity, &format!("cubinder: {}: {what}", self.title));
    }

    /// An error about the node.
    pub(super) fn invalid(&self, why: impl Display) -> Error {
        Error::invalid(format!("{}: {why}", self.title))
    }

    /// The error for a rank that no tensor of TensorRT has.
    pub(super) fn impossible_rank(&self, rank: i32) -> Error {
        self.invalid(format_args!("a tensor of rank {rank}, expected 0 to 8"))
    }
}

fn title(plugin: &Plugin, name: &str) -> String {
    let op = plugin.full_name();
    if name.is_empty() { op } else { format!("{op} `{name}`") }
}

/// The op with its version and attributes, the same for all nodes that are alike: `sample::circ_pad_plugin 1; pads = [1, 1]`. It stands
/// in an engine whose layers all have the core name of Cubinder, so it says which op a layer is.
fn metadata(plugin: &Plugin, attributes: &[Value]) -> String {
    let known = launch::describe(plugin, &Facts { attributes, ..Facts::default() });
    // No text that TensorRT takes holds a NUL.
    format!("{} {}{known}", plugin.full_name(), plugin.version).replace('\0', "\\0")
}
