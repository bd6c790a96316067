use cubinder_model::container;
use trt_abi::{Error, FieldSet, FieldValue, PluginFieldType, Result};

use super::memo::Memo;
use super::node::{EngineFacts, NamedNode};
use super::{Form, KernelPlugin};
use crate::definition::BuildFacts;
use crate::identity::NODE_FIELD;

pub(super) type SerializedFields = Memo<EngineFacts, FieldSet>;

impl KernelPlugin {
    pub(super) fn fields_now(&self) -> Result<&FieldSet> {
        self.fields.get(self.state.built(), |built| make(&self.state.node, built))
    }
}

fn make(node: &NamedNode, built: &EngineFacts) -> Result<FieldSet> {
    let build = BuildFacts {
        kinds: built.kinds.and_then(|index| node.kinds.get(index)),
        input_ranks: built.input_ranks.as_deref(),
        workspace_bytes: built.workspace_bytes,
    };
    let bytes = match node.form {
        Form::Fields => node.definition.field(build, &node.attributes),
        Form::Library => {
            let reference = node.definition.reference(build, &node.attributes);
            container::write_node_reference(&reference.ok_or_else(|| {
                Error::internal(format!("{}: a node from an engine has no code library", node.title()))
            })?)
        }
    };
    FieldSet::new(vec![FieldValue::new(NODE_FIELD, PluginFieldType::INT8, bytes)?])
}
