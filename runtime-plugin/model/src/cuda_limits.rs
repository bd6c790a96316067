//! Limits of launches that hold for every CUDA device.

/// Blocks in x, y and z: CUDA C++ programming guide 13.0, "technical specifications per compute capability"; the same for
/// every device.
pub const MAX_GRID: [i64; 3] = [2_147_483_647, 65535, 65535];
/// Threads of a block in x, y and z, from the same table.
pub const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];
/// Threads of a block, from the same table.
pub const MAX_THREADS: i64 = 1024;
/// `sharedMemBytes` of `cuLaunchKernel` is an `unsigned`, and the attribute that allows it an `int` (`cuda.h`, 13.0).
pub const MAX_SHARED_BYTES: i64 = 2_147_483_647;
/// Blocks of a cluster that every device with clusters takes: CUDA C++ programming guide 13.0, "thread block clusters".
pub const MAX_CLUSTER: u32 = 8;
/// From which major compute capability on there are clusters and programmatic dependent launches: CUDA C++ programming guide 13.0,
/// "feature support per compute capability".
pub const HAS_CLUSTERS: u8 = 9;
