//! Arguments of the manifest against the kernel's signature and against each code object.
//!
//! Owns: which argument fits which parameter ([`bind_args`]), whether a code object is what the manifest launches
//! ([`check_code`]), and telling once what several rows have in common ([`merge_rows`]).
//! Never: no compile, no reading of formats; facts come in, arguments and diagnostics go out.

mod args;
mod code;
mod errors;
mod pointee;
mod rows;
mod targets;

pub(crate) use args::literal_length;
pub use args::{
    BoundArgs, bind_args, bind_argument, check_names, number_bytes, read_only, writable_input,
    writable_inputs,
};
pub use code::{CodeCheck, check_code, no_shared};
pub(crate) use pointee::misfit;
pub(crate) use rows::variant_name;
pub use rows::{merge_rows, row_name};
pub use targets::bind_targets;

/// `1 byte`, `4 bytes`.
pub(crate) fn bytes(count: u32) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

#[cfg(test)]
mod code_tests;
#[cfg(test)]
mod tests;
