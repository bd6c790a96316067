//! The definition of a Cubinder plugin: plugin model ([`model`]), code objects ([`code`]), digests ([`digest`]),
//! attributes from TensorRT ([`field`]), what a node's time depends on ([`timing`]), binary format ([`container`]).
//!
//! Never does I/O or panics: the runtime plugin reads models in foreign processes.

pub mod attribute_check;
mod bytes;
pub mod code;
pub mod code_subset;
pub mod constraint;
pub mod container;
pub mod core_name;
pub mod cuda_limits;
pub mod digest;
pub mod field;
pub mod fit;
pub mod float;
pub mod image;
pub mod model;
pub mod packed;
pub mod provenance;
pub mod slot;
pub mod thin;
pub mod timing;
pub mod validate;

pub use code::{Arch, ArchSuffix, CodeObject, KernelFacts, KernelParam, Target, TargetKind};
pub use digest::{Digest, ShortDigest};
pub use model::{
    AUTO_TACTIC, Arg, ArgValue, Attribute, AttributeElement, AttributeType, Bundle, CodeRef, Fill, Guard,
    Input, Launch, MAX_VARIANT_ID, Memory, Node, NodeReference, Output, Plugin, Requirement, Scratch,
    ShapeLimits, SizeBound, Step, TunedDevice, TunedPoint, Variant, Work,
};
pub use packed::{BadCode, CodeBytes};
pub use provenance::Provenance;
