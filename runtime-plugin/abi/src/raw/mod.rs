//! The structs and enumerations that cross the boundary, byte for byte.
//!
//! Owns: layouts, and the assertions that prove them. Never: no behaviour beyond reading a field safely.
//!
//! All layouts are the same in the headers of TensorRT-RTX 1.3 to 1.7 and TensorRT Enterprise 11.4, but for those of quick plugins,
//! which Enterprise 11.4 alone has.
//! Enumerations are wrapped integers, because C++ may hand over values that a later release adds.

mod enums;
mod structs;

pub use enums::*;
pub use structs::*;
