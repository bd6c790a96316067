//! Checks launches of precompiled kernels against their files, and the files against drivers.

mod check;
mod driver;
mod errors;
mod parameter_facts;

pub use check::{CheckedCode, UncheckedPointers, check};
pub use driver::check_driver;
