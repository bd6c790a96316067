//! Binds arguments ([`bind_args`]), checks code objects ([`check_code`]), merges rows' diagnostics ([`merge_rows`]).
//! Never compiles or parses formats.

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

pub(crate) fn bytes(count: u32) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

#[cfg(test)]
mod code_tests;
#[cfg(test)]
mod tests;
