use std::sync::{Arc, OnceLock};

use cubinder_expr::{DataType, Format, Value};
use cubinder_launch as launch;
use cubinder_launch::Signature;
use cubinder_model::code_subset::CodeSubset;
use cubinder_model::container::{self, Container, LocatedContainer, ReadError};
use cubinder_model::provenance::{self, ContainerRecord};
use cubinder_model::validate::{validate_attributes, validate_ranks};
use cubinder_model::{Bundle, CodeObject, Digest, Node, NodeReference, Plugin, Variant};
use trt_abi::{Error, Result};

use crate::engine_model;

#[derive(Debug)]
pub(crate) struct OwnBundle {
    pub(crate) bundle: Bundle,
    pub(crate) digest: Digest,
    /// Nodes copy their part of the record.
    sections: &'static [u8],
    record: OnceLock<Option<ContainerRecord>>,
}

impl OwnBundle {
    /// Does not copy the code.
    pub(crate) fn read(bytes: &'static [u8]) -> Result<OwnBundle> {
        let refused = |error: &str| {
            Error::new(
                Error::FAILED_INITIALIZATION,
                format!("cannot read the bundle in this plugin library: {error}"),
            )
        };
        match container::read_mapped(bytes) {
            Ok(LocatedContainer { container: Container::Bundle(bundle), digest, length, .. }) => {
                Ok(OwnBundle::new(bundle, digest, bytes.get(length..).unwrap_or_default()))
            }
            Ok(_) => Err(refused("it is a node")),
            Err(error) => Err(refused(&with_help(&error))),
        }
    }

    fn new(bundle: Bundle, digest: Digest, sections: &'static [u8]) -> OwnBundle {
        OwnBundle { bundle, digest, sections, record: OnceLock::new() }
    }

    /// Parsed once for all nodes.
    fn record(&self) -> Option<&ContainerRecord> {
        let read = || ContainerRecord::find(self.sections, self.digest, &self.bundle.code);
        self.record.get_or_init(read).as_ref()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TensorKinds {
    pub(crate) types: Vec<DataType>,
    pub(crate) formats: Vec<Format>,
}

impl TensorKinds {
    pub(crate) fn from_variant(variant: &Variant) -> TensorKinds {
        TensorKinds { types: variant.types.clone(), formats: variant.formats.clone() }
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BuildFacts<'a> {
    pub(crate) kinds: Option<&'a TensorKinds>,
    pub(crate) input_ranks: Option<&'a [u8]>,
    pub(crate) workspace_bytes: Option<u64>,
}

#[derive(Debug, Clone)]
pub(crate) enum Definition {
    /// A plugin of this library's bundle.
    Bundle { own: Arc<OwnBundle>, index: usize },
    Node {
        node: Arc<Node>,
        digest: Digest,
        /// Container and following sections, to serialize the node again.
        field: Arc<[u8]>,
        /// The container's.
        length: usize,
    },
}

impl Definition {
    pub(crate) fn bare(node: Arc<Node>) -> Definition {
        Definition::Node { node, digest: Digest::compute(b""), field: [].into(), length: 0 }
    }

    pub(crate) fn plugin(&self) -> &Plugin {
        match self {
            Definition::Bundle { own, index } => &own.bundle.plugins[*index],
            Definition::Node { node, .. } => &node.plugin,
        }
    }

    pub(crate) fn code(&self) -> &[CodeObject] {
        match self {
            Definition::Bundle { own, .. } => &own.bundle.code,
            Definition::Node { node, .. } => &node.code,
        }
    }

    fn producer(&self) -> &str {
        match self {
            Definition::Bundle { own, .. } => &own.bundle.producer,
            Definition::Node { node, .. } => &node.producer,
        }
    }

    /// Returns the variants for the attributes and `kinds` (`None`: any).
    pub(crate) fn reachable_rows(
        &self,
        kinds: Option<&TensorKinds>,
        attributes: &[Value],
    ) -> impl Iterator<Item = (usize, &Variant)> {
        self.plugin().variants.iter().enumerate().filter(move |(_, variant)| match kinds {
            None => launch::is_compiled_for(variant, attributes),
            Some(TensorKinds { types, formats }) => {
                Signature { attributes, types, formats }.is_served_by(variant)
            }
        })
    }

    pub(crate) fn node(&self, known: BuildFacts<'_>, attributes: &[Value]) -> Node {
        let mut kept = CodeSubset::new(self.code());
        let reachable = self.reachable_rows(known.kinds, attributes);
        let variants = reachable.map(|(row, variant)| (row, with_code(variant, &mut kept))).collect();
        let plugin = engine_model::of_node(self.plugin(), variants, attributes, known.input_ranks);
        Node {
            producer: self.producer().to_owned(),
            plugin,
            attributes: attributes.to_vec(),
            input_ranks: known.input_ranks.map(<[u8]>::to_vec),
            workspace_bytes: known.workspace_bytes,
            code: kept.into_code(),
        }
    }

    /// Includes the provenance record.
    pub(crate) fn field(&self, known: BuildFacts<'_>, attributes: &[Value]) -> Vec<u8> {
        let node = self.node(known, attributes);
        let mut bytes = container::write_node(&node);
        if let Ok((of, _)) = container::digest(&bytes) {
            let section = match self {
                Definition::Bundle { own, index } => {
                    own.record().map(|record| record.behind_node(*index, &node, of))
                }
                Definition::Node { digest, field, length, .. } => {
                    let sections = field.get(*length..).unwrap_or_default();
                    ContainerRecord::find(sections, *digest, self.code())
                        .map(|record| record.behind_node(0, &node, of))
                }
            };
            bytes.extend(section.unwrap_or_default());
        }
        bytes
    }

    pub(crate) fn reference(&self, known: BuildFacts<'_>, attributes: &[Value]) -> Option<NodeReference> {
        let Definition::Bundle { own, index } = self else { return None };
        let has = |kinds: &TensorKinds, variant: &Variant| {
            variant.types == kinds.types && variant.formats == kinds.formats
        };
        let mut variants = self.plugin().variants.iter();
        let row = known.kinds.and_then(|kinds| variants.position(|variant| has(kinds, variant)));
        let row = row.map(u32::try_from).transpose().ok()?;
        Some(NodeReference {
            bundle: own.digest.shortened(),
            plugin: u32::try_from(*index).ok()?,
            attributes: attributes.to_vec(),
            row,
            input_ranks: known.input_ranks.map(<[u8]>::to_vec),
            workspace_bytes: known.workspace_bytes,
        })
    }
}

fn with_code(variant: &Variant, kept: &mut CodeSubset<'_>) -> Variant {
    let mut variant = variant.clone();
    for launch in variant.launches_mut() {
        launch.code = kept.renumbered(&launch.code);
    }
    variant
}

pub(crate) struct Restored {
    pub(crate) definition: Definition,
    pub(crate) attributes: Vec<Value>,
    pub(crate) kinds: Option<TensorKinds>,
    pub(crate) input_ranks: Option<Vec<u8>>,
    pub(crate) workspace_bytes: Option<u64>,
}

pub(crate) fn restore_node(field: &Arc<[u8]>) -> Result<Restored> {
    let LocatedContainer { container, digest, length, .. } = read_field(field)?;
    let node = match container {
        Container::Node(node) => Arc::new(node),
        Container::NodeReference(_) => {
            return Err(unusable("its code is in a code library, not in the engine"));
        }
        Container::Bundle(_) => return Err(unusable("it is a bundle")),
    };
    Ok(Restored {
        attributes: node.attributes.clone(),
        kinds: None,
        input_ranks: node.input_ranks.clone(),
        workspace_bytes: node.workspace_bytes,
        definition: Definition::Node { node, digest, field: Arc::clone(field), length },
    })
}

pub(crate) fn restore_reference(field: &Arc<[u8]>, own: &Arc<OwnBundle>) -> Result<Restored> {
    let Container::NodeReference(reference) = read_field(field)?.container else {
        return Err(unusable("it is not a reference to a code library"));
    };
    if reference.bundle != own.digest.shortened() {
        return Err(unusable(&format!(
            "it requires the code library of bundle {0}, but this is the code library of bundle {1}; load the library \
             that registers `Kernel-{0}`, or rebuild the engine with the library of ops next to this one",
            reference.bundle,
            own.digest.short()
        )));
    }
    let index = reference.plugin as usize;
    let plugin = own
        .bundle
        .plugins
        .get(index)
        .ok_or_else(|| unusable(&format!("it names plugin {index} of {}", own.bundle.plugins.len())))?;
    validate_attributes(plugin, &reference.attributes).map_err(|error| unusable(&error))?;
    validate_ranks(plugin, reference.input_ranks.as_deref()).map_err(|error| unusable(&error))?;
    let kinds = match reference.row {
        None => None,
        Some(row) => {
            let variant = plugin.variants.get(row as usize);
            let wrong = || unusable(&format!("it names variant {row} of {}", plugin.variants.len()));
            Some(TensorKinds::from_variant(variant.ok_or_else(wrong)?))
        }
    };
    Ok(Restored {
        definition: Definition::Bundle { own: Arc::clone(own), index },
        attributes: reference.attributes,
        kinds,
        input_ranks: reference.input_ranks,
        workspace_bytes: reference.workspace_bytes,
    })
}

fn read_field(field: &Arc<[u8]>) -> Result<LocatedContainer> {
    let found = container::read_shared(field).map_err(|error| unreadable(&error))?;
    provenance::check(field.get(found.length..).unwrap_or_default(), found.digest)
        .map_err(|why| unusable(&format!("cannot read the data after the node: {why}")))?;
    Ok(found)
}

fn unreadable(error: &ReadError) -> Error {
    unusable(&with_help(error))
}

fn with_help(error: &ReadError) -> String {
    match error {
        // These errors include the fix.
        ReadError::Version { .. } | ReadError::TooManyBeginnings => error.to_string(),
        ReadError::NoMagic
        | ReadError::Truncated { .. }
        | ReadError::Digest { .. }
        | ReadError::Malformed(_) => {
            format!("{error}; copy the file again, or recreate it")
        }
    }
}

fn unusable(why: &str) -> Error {
    Error::invalid(format!("cannot use the node in the engine: {why}"))
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
