//! Checks launches against the text of their kernels, without a compiler.

mod check;
mod errors;
mod source;
mod undeclared;
mod waits_and_aliases;

pub use check::{CheckedText, UncheckedKernel, check, unused_names};
pub use source::{OpenSource, open_source};

#[cfg(test)]
mod tests;
