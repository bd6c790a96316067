//! What a Cubinder plugin *is*, independent of how it was written and of who runs it.
//!
//! Owns: the plugin model ([`model`]), expressions ([`expr`]), what a node launches ([`launch`]), what TensorRT launches itself ([`native`]), code objects ([`code`]), digests
//! ([`digest`]), attributes as TensorRT passes them ([`field`]), errors of NVIDIA's driver as values ([`cuda`]), what a node's time depends on ([`timing`]) and the binary format in which they travel ([`container`]), inside a plugin library and inside an engine.
//!
//! Never: no I/O, no `unsafe`, no TensorRT, no NVRTC, no panic on any input. Everything here is shared by the compiler
//! (which writes) and by the runtime plugin (which reads inside somebody else's process).

pub mod attribute_check;
pub mod code;
pub mod constraint;
pub mod container;
pub mod core_name;
pub mod cuda;
pub mod cuda_limits;
pub mod data_type;
pub mod digest;
pub mod expr;
pub mod field;
pub mod fit;
pub mod float;
pub mod format;
pub mod image;
pub mod interval;
pub mod kept;
pub mod launch;
pub mod model;
pub mod native;
pub mod packed;
pub mod proof;
pub mod provenance;
pub mod slot;
pub mod thin;
pub mod timing;
pub mod validate;
pub mod value;

pub use code::{Arch, ArchSuffix, CodeObject, KernelFacts, KernelParam, Target, TargetKind};
pub use data_type::{DataType, ScalarType};
pub use digest::{Digest, ShortDigest};
pub use format::Format;
pub use model::{
    AUTO_TACTIC, Arg, ArgValue, Attribute, AttributeElement, AttributeType, Bundle, CodeRef, Fill, Guard,
    Input, Interval, Launch, MAX_VARIANT_ID, Memory, Node, NodeReference, Output, Plugin, Requirement,
    Scratch, ShapeLimits, SizeBound, Step, TunedDevice, TunedPoint, Variant, Work,
};
pub use packed::{BadCode, CodeBytes};
pub use provenance::Provenance;
pub use value::Value;
