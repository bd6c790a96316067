//! What a plugin is run with on a GPU: data for its inputs, expected outputs, and how far off a result is.
//!
//! Owns: tensors in host memory ([`Array`]), NumPy's files ([`npy`]), memory layouts ([`layout`]), random data ([`data`]),
//! comparison ([`compare`]), checks before anything runs ([`check()`]), reference functions in Python ([`mod@reference`]), and shapes that
//! a plugin allows ([`shapes`]). Never talks to a GPU: `cubinder test` and `cubinder tune` do, with the crate `cubinder-gpu`.

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
