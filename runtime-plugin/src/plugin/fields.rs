//! The serialized fields of a node.

use std::sync::Arc;

use cubinder_model::container;
use trt_abi::{Error, FieldSet, FieldValue, PluginFieldType, Result};

use super::memo::Memo;
use super::node::NodeData;
use super::{Form, KernelPlugin};
use crate::definition::BuildFacts;
use crate::identity::NODE_FIELD;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldsKey {
    pub(super) configured: Option<usize>,
    pub(super) input_ranks: Option<Arc<[u8]>>,
    pub(super) workspace_bytes: Option<u64>,
}

pub(super) type SerializedFields = Memo<FieldsKey, FieldSet>;

impl KernelPlugin {
    pub(super) fn fields_now(&self) -> Result<&FieldSet> {
        let key = FieldsKey {
            configured: self.state.configured(),
            input_ranks: self.state.input_ranks(),
            workspace_bytes: self.reserved_bytes(),
        };
        self.fields.get(key, |key| make(&self.state.node, key))
    }
}

fn make(node: &NodeData, key: &FieldsKey) -> Result<FieldSet> {
    let build = BuildFacts {
        kinds: key.configured.and_then(|index| node.kinds.get(index)),
        input_ranks: key.input_ranks.as_deref(),
        workspace_bytes: key.workspace_bytes,
    };
    let bytes = match node.form {
        Form::Fields => node.definition.field(build, &node.attributes),
        Form::Library => {
            let reference = node.definition.reference(build, &node.attributes);
            container::write_node_reference(&reference.ok_or_else(|| {
                Error::internal(format!("{}: a node from an engine has no code library", node.title))
            })?)
        }
    };
    FieldSet::new(vec![FieldValue::new(NODE_FIELD, PluginFieldType::INT8, bytes)?])
}
