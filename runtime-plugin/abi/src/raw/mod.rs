//! Structs and enumerations of the boundary; all layouts are asserted.

mod enums;
mod structs;

pub use enums::*;
pub use structs::*;
