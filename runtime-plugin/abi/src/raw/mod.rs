//! The structs and enumerations that cross the boundary, byte for byte; all layouts are asserted.

mod enums;
mod structs;

pub use enums::*;
pub use structs::*;
