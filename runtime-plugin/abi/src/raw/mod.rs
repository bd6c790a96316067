//! The structs and enumerations that cross the boundary, byte for byte.
//!
//! All layouts are asserted, and equal in TensorRT-RTX 1.3 to 1.7 and TensorRT Enterprise 11.4; quick plugins exist
//! only in Enterprise 11.4. Enumerations are wrapped integers, because C++ may pass values of later releases.

mod enums;
mod structs;

pub use enums::*;
pub use structs::*;
