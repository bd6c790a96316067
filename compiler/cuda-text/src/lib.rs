//! Reads CUDA C++ without a compiler: kernels, include directives, and uses of manifest names.

pub mod cuda;
pub mod directives;
mod errors;
pub mod manifest_names;

use cubinder_code_object::kernel_signature;
use cubinder_source::diagnostic;

#[cfg(test)]
#[path = "../../testing"]
mod test_support {
    mod cuda_pieces;

    pub(crate) use cuda_pieces::cuda_pieces;
}
