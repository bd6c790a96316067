//! What a plugin is tried with on a GPU: data for its inputs, what is expected of its outputs, and how far off a result is.
//!
//! Owns: tensors in host memory ([`Array`]), NumPy's files ([`npy`]), memory layouts ([`layout`]), data made from a seed ([`data`]),
//! comparing ([`compare`]), what is wrong with a trial before anything runs ([`mistakes()`]), functions in Python that say what is right ([`mod@reference`]), and shapes that a plugin allows ([`shapes`]).
//! Never talks to a GPU: `cubinder test` and `cubinder tune` do, in the program, with the crate `cubinder-gpu`.

mod array;
mod compare;
pub mod data;
pub mod layout;
mod mistakes;
pub mod npy;
pub mod reference;
pub mod shapes;
mod spec;

pub use array::{Array, Number, count, encode};
pub use compare::{Element, Mismatch, Tolerance, compare, default_tolerance, elements, index_of, is_close};
pub use mistakes::{function_mistake, mistakes};
pub use spec::{DataFile, FunctionRef, InputData, Trial};
