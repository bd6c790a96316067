//! Data, checks, comparisons and Python references of a node's trial. Never uses a GPU.

mod array;
mod check;
mod compare;
pub mod data;
pub mod layout;
pub mod npy;
pub mod reference;
pub mod shapes;
mod spec;

pub use array::{Array, Number, count};
pub use check::{check, check_reference, unknown_names};
pub use compare::{Element, Mismatch, Tolerance, compare, default_tolerance, elements, index_of, is_close};
pub use spec::{DataFile, FunctionRef, InputData, Trial};
