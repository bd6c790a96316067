//! The definition of a Cubinder plugin, independent of the manifest language and of the process that runs it.
//!
//! Owns: the plugin model ([`model`]), code objects ([`code`]), digests ([`digest`]), attributes as TensorRT passes them ([`field`]), the inputs that a
//! node's time depends on ([`timing`]), and the binary format ([`container`]) of plugin libraries and engines.
//!
//! Never: no I/O, no `unsafe`, no TensorRT, no NVRTC, no panic on any input. The compiler writes it, and the runtime plugin reads it inside
//! somebody else's process.

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
