//! Reads kernels, launch requirements and parameters of cubins and PTX.

pub mod block_limits;
pub mod cubin;
pub mod kernel_signature;
pub mod loaded;
pub mod signature;
