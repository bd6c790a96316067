//! Launch limits of all CUDA devices. Quoted titles: sections of the CUDA C++ programming guide 13.0.

/// Maximum blocks per grid (x, y, z): "technical specifications per compute capability".
pub const MAX_GRID: [i64; 3] = [2_147_483_647, 65535, 65535];
/// Maximum threads per block along each axis (x, y, z): same section.
pub const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];
/// Maximum threads per block: same section.
pub const MAX_THREADS: i64 = 1024;
/// Maximum dynamic shared memory: `sharedMemBytes` is an `unsigned`, but the attribute that raises the limit is an
/// `int` (`cuda.h`, 13.0).
pub const MAX_SHARED_BYTES: i64 = 2_147_483_647;
/// Maximum blocks per cluster: "thread block clusters".
pub const MAX_CLUSTER: u32 = 8;
/// The first major compute capability with clusters and programmatic dependent launches: "feature support per compute
/// capability".
pub const HAS_CLUSTERS: u8 = 9;
