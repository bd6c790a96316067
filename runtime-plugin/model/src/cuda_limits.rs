//! Launch limits of all CUDA devices, from the CUDA C++ programming guide 13.0 unless stated otherwise.

/// Blocks (x, y, z): "technical specifications per compute capability".
pub const MAX_GRID: [i64; 3] = [2_147_483_647, 65535, 65535];
/// Threads per block (x, y, z), from the same table.
pub const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];
/// Threads per block, from the same table.
pub const MAX_THREADS: i64 = 1024;
/// `sharedMemBytes` is an `unsigned`, and the attribute that allows it an `int` (`cuda.h`, 13.0).
pub const MAX_SHARED_BYTES: i64 = 2_147_483_647;
/// Blocks per cluster: "thread block clusters".
pub const MAX_CLUSTER: u32 = 8;
/// The first major compute capability with clusters and programmatic dependent launches: "feature support per compute
/// capability".
pub const HAS_CLUSTERS: u8 = 9;
