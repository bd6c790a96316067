//! Trials: host tensors ([`Array`]), NumPy files ([`npy`]), layouts ([`layout`]), random [`data`] and [`shapes`],
//! checks ([`check()`]), comparisons ([`compare`]), Python references ([`mod@reference`]). Never uses a GPU.

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
