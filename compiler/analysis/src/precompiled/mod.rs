//! Checks launches of precompiled kernels against their files, and the files against drivers.

mod check;
mod driver;
mod told;

pub use check::{Held, Unheld, check};
pub use driver::check_driver;
