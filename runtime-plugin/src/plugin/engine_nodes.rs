//! Nodes of engines. TensorRT-RTX creates each again for every execution context; equal ones are decoded once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use trt_abi::{Error, Field, Identity, Result, TensorRTPhase};

use super::node::{EngineFacts, NamedNode, NodeData};
use super::state::NodeState;
use super::{Form, KernelPlugin};
use crate::definition::{OwnBundle, Restored, restore_node, restore_reference};
use crate::identity;

/// The first bytes of a field, which contain its digest.
const START: usize = 64;

pub(crate) struct EngineNodes {
    own: Option<Arc<OwnBundle>>,
    known: Mutex<KnownNodes>,
}

#[derive(Default)]
struct KnownNodes {
    /// In use, by the first bytes of their fields.
    nodes: BTreeMap<Box<[u8]>, Weak<NodeData>>,
    /// After the last purge.
    kept: usize,
}

impl KnownNodes {
    /// Purges whenever the table has doubled: linear in total.
    fn insert(&mut self, node: &Arc<NodeData>) {
        if self.nodes.len() >= 2 * self.kept {
            self.nodes.retain(|_, node| node.strong_count() > 0);
            self.kept = self.nodes.len();
        }
        self.nodes.insert(start(&node.field).into(), Arc::downgrade(node));
    }
}

impl EngineNodes {
    pub(crate) fn new(own: Option<Arc<OwnBundle>>) -> EngineNodes {
        EngineNodes { own, known: Mutex::default() }
    }

    pub(crate) fn plugin(
        &self,
        name: &str,
        fields: &[Field<'_>],
        phase: TensorRTPhase,
        core: &Identity,
    ) -> Result<KernelPlugin> {
        let field = node_field(fields).map_err(|error| named(name, error))?;
        let node = match self.known(field) {
            Some(data) => NamedNode::new(data, name),
            None => self.restored(name, field, core)?,
        };
        let built = node.stored.clone();
        let plugin = KernelPlugin::from_state(NodeState::new(node, built), phase);
        plugin.preload()?;
        Ok(plugin)
    }

    /// Returns a node with the same checked field.
    fn known(&self, field: &[u8]) -> Option<Arc<NodeData>> {
        let known = self.locked().nodes.get(start(field)).and_then(Weak::upgrade);
        known.filter(|node| *node.field == *field)
    }

    fn restored(&self, name: &str, field: &[u8], core: &Identity) -> Result<NamedNode> {
        let field: Arc<[u8]> = field.into();
        let (form, restored) = match &self.own {
            Some(own) => (Form::Library, restore_reference(&field, own)),
            None => (Form::Fields, restore_node(&field)),
        };
        let Restored { definition, attributes, kinds, input_ranks, workspace_bytes } =
            restored.map_err(|error| named(name, error))?;
        let mut data = NodeData::new(definition, attributes, form, core.clone());
        let index = kinds.as_ref().map(|kinds| data.index_of_kinds(kinds));
        let kinds = match (index, &kinds) {
            (Some(None), Some(kinds)) => return Err(NamedNode::new(Arc::new(data), name).no_variant(kinds)),
            (index, _) => index.flatten(),
        };
        data.stored = EngineFacts { kinds, input_ranks: input_ranks.map(Arc::from), workspace_bytes };
        data.field = field;
        let node = NamedNode::checked(data, name)?;
        self.locked().insert(&node.data);
        Ok(node)
    }

    fn locked(&self) -> MutexGuard<'_, KnownNodes> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(field: &[u8]) -> &[u8] {
    field.get(..START).unwrap_or(field)
}

fn named(name: &str, error: Error) -> Error {
    match name {
        "" => error,
        name => Error::new(error.code(), format!("`{name}`: {error}")),
    }
}

fn node_field<'a>(fields: &[Field<'a>]) -> Result<&'a [u8]> {
    match fields {
        [node] if node.name() == identity::NODE_FIELD => node.bytes(),
        _ => Err(other_fields(fields)),
    }
}

fn other_fields(fields: &[Field<'_>]) -> Error {
    Error::invalid(format!(
        "the node in the engine has the fields {fields:?}, expected only {:?}: Cubinder did not create it",
        identity::NODE_FIELD
    ))
}

#[cfg(test)]
mod tests {
    use cubinder_model::Node;
    use cubinder_model::container::{self, Container, FORMAT_VERSION};
    use trt_abi::PluginFieldType;

    use super::*;

    fn file(name: &str) -> Vec<u8> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/compat");
        std::fs::read(format!("{folder}/{FORMAT_VERSION}/{name}")).unwrap()
    }

    fn node_with_workspace(bytes: u64) -> Vec<u8> {
        let Container::Node(node) = container::read(&file("node")).unwrap().container else {
            panic!("it is a node")
        };
        container::write_node(&Node { workspace_bytes: Some(bytes), ..node })
    }

    fn create(nodes: &EngineNodes, field: &[u8]) -> Result<KernelPlugin> {
        let length = i32::try_from(field.len()).unwrap();
        let fields = [Field::new(identity::NODE_FIELD, PluginFieldType::INT8, length, field)];
        // A build's object makes no CUDA call.
        nodes.plugin("n", &fields, TensorRTPhase::BUILD, &identity::generic())
    }

    fn are_alike(one: &KernelPlugin, other: &KernelPlugin) -> bool {
        Arc::ptr_eq(&one.state.node.data, &other.state.node.data)
    }

    #[test]
    fn equal_nodes_are_decoded_once_while_one_is_in_use() {
        let nodes = EngineNodes::new(None);
        let [used, other] = [0x1000, 0x2000].map(node_with_workspace);
        let first = create(&nodes, &used).unwrap();
        let second = create(&nodes, &used.clone()).unwrap();
        assert!(are_alike(&first, &second) && are_alike(&first, &first.clone()));
        assert_eq!(second.state.built().workspace_bytes, Some(0x1000));
        assert!(!are_alike(&first, &create(&nodes, &other).unwrap()));
        let data = Arc::downgrade(&first.state.node.data);
        drop((first, second));
        assert_eq!(data.strong_count(), 0);
        let again = create(&nodes, &used).unwrap();
        assert_eq!(again.state.built().workspace_bytes, Some(0x1000));
    }

    #[test]
    fn references_are_decoded_once() {
        let own = Arc::new(OwnBundle::read(file("bundle").leak()).unwrap());
        let nodes = EngineNodes::new(Some(own));
        let [first, second] = [(); 2].map(|()| create(&nodes, &file("reference")).unwrap());
        assert!(are_alike(&first, &second));
        assert!(first.state.built().kinds.is_some() || first.state.node.kinds.len() != 1);
    }

    #[test]
    fn a_damaged_field_is_rejected_beside_an_equal_start() {
        let nodes = EngineNodes::new(None);
        let field = node_with_workspace(0x1000);
        let whole = create(&nodes, &field).unwrap();
        for index in START..field.len() {
            let mut damaged = field.clone();
            damaged[index] ^= 1;
            let error = create(&nodes, &damaged).unwrap_err();
            assert!(error.text().starts_with("`n`: "), "{error}");
        }
        for field in [&field[..field.len() - 1], &[field.as_slice(), b"\0"].concat()] {
            assert!(create(&nodes, field).is_err());
        }
        assert!(are_alike(&whole, &create(&nodes, &field).unwrap()));
    }

    #[test]
    fn unused_nodes_do_not_accumulate() {
        let nodes = EngineNodes::new(None);
        let kept = create(&nodes, &node_with_workspace(0)).unwrap();
        for bytes in 1..200 {
            create(&nodes, &node_with_workspace(bytes)).unwrap();
        }
        let count = nodes.locked().nodes.len();
        assert!(count <= 4, "{count}");
        assert!(are_alike(&kept, &create(&nodes, &node_with_workspace(0)).unwrap()));
    }

    #[test]
    fn a_node_that_is_created_again_purges_nothing() {
        let nodes = EngineNodes::new(None);
        let mut used: Vec<KernelPlugin> =
            (0..64).map(|bytes| create(&nodes, &node_with_workspace(bytes)).unwrap()).collect();
        let again = node_with_workspace(63);
        used.pop();
        create(&nodes, &again).unwrap();
        // An unused entry detects a purge.
        used.pop();
        for _ in 0..3 {
            create(&nodes, &again).unwrap();
            assert_eq!(nodes.locked().nodes.len(), 64);
        }
    }

    #[test]
    fn threads_create_equal_nodes_at_once() {
        let nodes = EngineNodes::new(None);
        let fields: Vec<Vec<u8>> = (0..4).map(node_with_workspace).collect();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (nodes, fields) = (&nodes, &fields);
                scope.spawn(move || {
                    for turn in 0..200 {
                        let number = (turn + thread) % fields.len();
                        let plugin = create(nodes, &fields[number]).unwrap();
                        assert_eq!(plugin.state.built().workspace_bytes, Some(number as u64));
                    }
                });
            }
        });
    }
}
