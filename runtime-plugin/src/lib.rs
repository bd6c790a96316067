//! TensorRT plugins driven by a bundle or by serialized fields.

pub mod code;
pub mod descriptor;
pub mod driver;
pub mod launch;
