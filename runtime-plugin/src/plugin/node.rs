use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch as launch;
use cubinder_launch::{Facts, Signature, Steps};
use cubinder_model::{Plugin, Variant, timing};
use trt_abi::{Error, Identity, Result, Severity, logger};

use super::Form;
use super::context::Contexts;
use crate::definition::{BuildFacts, Definition, TensorKinds};

/// Facts that a build determines and an engine stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EngineFacts {
    /// Index in the node's kinds.
    pub(super) kinds: Option<usize>,
    pub(super) input_ranks: Option<Arc<[u8]>>,
    pub(super) workspace_bytes: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct NodeData {
    pub(super) definition: Definition,
    pub(super) attributes: Vec<Value>,
    pub(super) form: Form,
    /// The plugin's identity; of native nodes, their op's.
    pub(super) core: Identity,
    pub(super) metadata: CString,
    timing_id: OnceLock<CString>,
    /// In the order of variants, without duplicates.
    pub(super) kinds: Vec<TensorKinds>,
    /// Indices of all tensors except shape inputs; inputs first.
    pub(super) counted: Vec<usize>,
    pub(super) contexts: Contexts,
    /// The engine's field and settings; empty in a build.
    pub(super) field: Arc<[u8]>,
    pub(super) stored: EngineFacts,
}

#[derive(Debug, Clone)]
pub(super) struct NamedNode {
    pub(super) data: Arc<NodeData>,
    name: Arc<str>,
}

impl Deref for NamedNode {
    type Target = NodeData;

    fn deref(&self) -> &NodeData {
        &self.data
    }
}

impl NamedNode {
    pub(super) fn new(data: Arc<NodeData>, name: &str) -> NamedNode {
        NamedNode { data, name: name.into() }
    }

    pub(super) fn checked(data: NodeData, name: &str) -> Result<NamedNode> {
        let node = NamedNode::new(Arc::new(data), name);
        let plugin = node.definition.plugin();
        launch::check(plugin, launch::rules_of_attributes(plugin), &node.facts(), &mut Steps::default())
            .map_err(|unmet| node.invalid(unmet))?;
        Ok(node)
    }

    pub(super) fn title(&self) -> String {
        let op = self.definition.plugin().full_name();
        if self.name.is_empty() { op } else { format!("{op} `{}`", self.name) }
    }

    pub(super) fn no_variant(&self, kinds: &TensorKinds) -> Error {
        let signature = self.signature(&kinds.types, &kinds.formats);
        self.invalid(launch::no_variant(self.definition.plugin(), &signature))
    }

    pub(super) fn log(&self, severity: Severity, what: impl Display) {
        logger::log(severity, &format!("cubinder: {}: {what}", self.title()));
    }

    pub(super) fn invalid(&self, why: impl Display) -> Error {
        Error::invalid(format!("{}: {why}", self.title()))
    }

    pub(super) fn impossible_rank(&self, rank: i32) -> Error {
        self.invalid(format_args!("a tensor of rank {rank}, expected 0 to 8"))
    }
}

impl NodeData {
    pub(super) fn new(
        definition: Definition,
        attributes: Vec<Value>,
        form: Form,
        core: Identity,
    ) -> NodeData {
        let plugin = definition.plugin();
        // An engine may have thousands of rows.
        let mut seen: BTreeSet<(&[DataType], &[Format])> = BTreeSet::new();
        let serving = plugin.variants.iter().filter(|variant| launch::is_compiled_for(variant, &attributes));
        let different = serving.filter(|variant| seen.insert((&variant.types, &variant.formats)));
        let kinds = different.map(TensorKinds::from_variant).collect();
        let is_counted = |index: &usize| plugin.inputs.get(*index).is_none_or(|input| input.values.is_none());
        NodeData {
            kinds,
            counted: (0..plugin.tensor_count()).filter(is_counted).collect(),
            metadata: CString::new(metadata(plugin, &attributes)).unwrap_or_default(),
            timing_id: OnceLock::new(),
            contexts: Contexts::default(),
            field: Arc::default(),
            stored: EngineFacts::default(),
            attributes,
            form,
            core,
            definition,
        }
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        Facts { attributes: &self.attributes, ..Facts::default() }
    }

    pub(super) fn signature<'a>(&'a self, types: &'a [DataType], formats: &'a [Format]) -> Signature<'a> {
        Signature { attributes: &self.attributes, types, formats }
    }

    pub(super) fn index_of_kinds(&self, kinds: &TensorKinds) -> Option<usize> {
        self.kinds.iter().position(|known| known == kinds)
    }

    pub(super) fn reachable(&self, kinds: Option<&TensorKinds>) -> impl Iterator<Item = &Variant> {
        self.reachable_rows(kinds).map(|(_, variant)| variant)
    }

    pub(super) fn reachable_rows(
        &self,
        kinds: Option<&TensorKinds>,
    ) -> impl Iterator<Item = (usize, &Variant)> {
        self.definition.reachable_rows(kinds, &self.attributes)
    }

    /// Identifies plugin, code for the node's attributes, and attributes that affect its time. TensorRT prefixes
    /// types, formats and shapes (NVIDIA TensorRT documentation 10.16, custom layers, timing caching).
    pub(super) fn timing_id(&self) -> &CStr {
        self.timing_id.get_or_init(|| {
            let node = self.definition.node(BuildFacts::default(), &self.attributes);
            let digest = timing::digest(&node, self.definition.plugin().timing.as_deref());
            CString::new(format!("cubinder-{digest}")).unwrap_or_default()
        })
    }

    pub(super) fn counted_inputs(&self) -> usize {
        self.counted.len() - self.definition.plugin().outputs.len()
    }
}

fn metadata(plugin: &Plugin, attributes: &[Value]) -> String {
    let known = launch::describe(plugin, &Facts { attributes, ..Facts::default() });
    // TensorRT's strings cannot contain NUL.
    format!("{} {}{known}", plugin.full_name(), plugin.version).replace('\0', "\\0")
}
