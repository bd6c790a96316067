//! What a node leaves in the engine.

use std::ffi::CStr;
use std::sync::OnceLock;

use cubinder_bundle::container;
use trt_abi::{Error, FieldSet, FieldValue};

use super::{Form, NodeData};
use crate::definition::Known;
use crate::identity::NODE_FIELD;

/// The serialized fields of an object, one set for each list of types that it can be configured for, and one for an object that
/// was not configured. TensorRT keeps pointers into a set, so each is made once and then stays.
#[derive(Debug)]
pub(super) struct SerializedFields {
    sets: Box<[OnceLock<FieldSet>]>,
}

impl SerializedFields {
    /// Room for `signatures` lists of types.
    pub(super) fn new(signatures: usize) -> SerializedFields {
        SerializedFields { sets: (0..=signatures).map(|_| OnceLock::new()).collect() }
    }

    /// The set for the list of types with index `configured`; beyond the last one: for an object that was not configured.
    pub(super) fn get(
        &self,
        node: &NodeData,
        configured: usize,
        input_ranks: Option<&[u8]>,
    ) -> Result<&FieldSet, Error> {
        let index = configured.min(self.sets.len() - 1);
        let set = &self.sets[index];
        if let Some(set) = set.get() {
            return Ok(set);
        }
        let made = make(node, Known { types: node.signatures.get(index).map(Vec::as_slice), input_ranks })?;
        Ok(set.get_or_init(|| made))
    }
}

fn make(node: &NodeData, known: Known<'_>) -> Result<FieldSet, Error> {
    let bytes = match node.form {
        Form::Fields => container::write_node(&node.definition.node(known, &node.attributes)),
        Form::Library => {
            let reference = node.definition.reference(known, &node.attributes);
            container::write_node_reference(&reference.ok_or_else(|| {
                Error::internal(format!("{}: a node from an engine has no code library", node.title))
            })?)
        }
    };
    let name: &CStr = NODE_FIELD;
    FieldSet::new(vec![FieldValue::blob(name, bytes)?])
}
