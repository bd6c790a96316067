//! Reads code objects: the kernels of cubins and PTX, what their launches must satisfy, and the names and types of their parameters.

pub mod block_limits;
pub mod cubin;
pub mod kernel_signature;
pub mod loaded;
pub mod signature;
