//! Structs and enumerations that cross the boundary; all layouts are asserted.

mod enums;
mod structs;

pub use enums::*;
pub use structs::*;
