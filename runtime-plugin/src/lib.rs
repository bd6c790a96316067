//! TensorRT plugins driven by a bundle or by serialized fields.

pub mod descriptor;
