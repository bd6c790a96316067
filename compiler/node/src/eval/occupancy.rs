//! Computes a multiprocessor's resident blocks and their limit, like `cuda_occupancy.h` of CUDA 13.0 (the test's
//! oracle), without block barriers, which are never exhausted.

use cubinder_model::Arch;
use serde::Serialize;

/// Threads per warp.
pub const WARP: u32 = 32;

/// 32-bit registers per multiprocessor, and maximum per block.
pub const REGISTERS: u32 = 65_536;

/// Maximum registers per thread (CUDA C++ programming guide 13.0, "technical specifications per compute capability").
pub const THREAD_REGISTERS: u32 = 255;

/// Registers per warp are a multiple of this (`cudaOccRegAllocationGranularity`).
const REGISTER_GRANULARITY: u32 = 256;

/// Parts that divide a multiprocessor's registers (`cudaOccSubPartitionsPerMultiprocessor`).
const PARTITIONS: u32 = 4;

/// Resources of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiprocessor {
    /// Maximum resident threads.
    pub threads: u32,
    /// Maximum resident blocks.
    pub blocks: u32,
    /// Shared memory in bytes.
    pub shared_bytes: u32,
    /// Maximum shared memory per block in bytes.
    pub block_shared_bytes: u32,
    /// Bytes per block that the driver reserves.
    pub reserved_bytes: u32,
    /// Allocation unit of shared memory in bytes.
    pub shared_granularity: u32,
}

impl Multiprocessor {
    /// Returns a known architecture's resources. Sources: CUDA C++ programming guide 13.0, "technical specifications
    /// per compute capability" (threads, shared memory; from 8.0 on 1 KiB reserved per block);
    /// `cudaOccMaxBlocksPerMultiprocessor`, `cudaOccSMemAllocationGranularity` and `cudaOccAlignUpShmemSizeVoltaPlus`
    /// of `cuda_occupancy.h` 13.0.
    #[must_use]
    pub fn for_arch(arch: Arch) -> Option<Multiprocessor> {
        let (threads, blocks, kib) = match (arch.major, arch.minor) {
            (7, 5) => (1024, 16, 64),
            (8, 0) => (2048, 32, 164),
            (8, 7) => (1536, 16, 164),
            (8, 6) => (1536, 16, 100),
            (8, 9) => (1536, 24, 100),
            (9, 0) | (10, 0 | 3) => (2048, 32, 228),
            (11, 0) => (1536, 24, 228),
            (12, 0 | 1) => (1536, 24, 100),
            _ => return None,
        };
        let (reserved_bytes, shared_granularity) = if arch.major >= 8 { (1024, 128) } else { (0, 256) };
        Some(Multiprocessor {
            threads,
            blocks,
            shared_bytes: kib * 1024,
            block_shared_bytes: kib * 1024 - reserved_bytes,
            reserved_bytes,
            shared_granularity,
        })
    }
}

/// Needs of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Threads per block, at least 1.
    pub threads: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Shared memory per block in bytes.
    pub shared_bytes: u64,
}

/// Occupancy of a multiprocessor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// Resident blocks. 0: the launch is rejected.
    pub blocks: u32,
    /// Resident warps.
    pub warps: u32,
    /// Maximum resident warps.
    pub most_warps: u32,
    /// Limiting resources.
    pub limited_by: Vec<Limiter>,
}

/// Resource of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// Resident threads.
    Threads,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Resident blocks.
    Blocks,
}

impl Limiter {
    /// Returns the name for messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Limiter::Threads => "threads",
            Limiter::Registers => "registers",
            Limiter::SharedMemory => "shared memory",
            Limiter::Blocks => "blocks",
        }
    }
}

/// Computes the occupancy of a launch.
#[must_use]
pub fn occupancy(multiprocessor: &Multiprocessor, needs: &Needs) -> Occupancy {
    let warps = needs.threads.div_ceil(WARP).max(1);
    let most_warps = multiprocessor.threads / WARP;
    // Such blocks are rejected earlier.
    let by_threads = if needs.threads > 1024 { 0 } else { most_warps / warps };
    let limits = [
        (Limiter::Threads, by_threads),
        (Limiter::Registers, by_registers(needs.registers, warps)),
        (Limiter::SharedMemory, by_shared(multiprocessor, needs.shared_bytes)),
        (Limiter::Blocks, multiprocessor.blocks),
    ];
    let blocks = limits.iter().map(|(_, most)| *most).min().unwrap_or(0);
    let limited_by = limits.into_iter().filter(|(_, most)| *most == blocks).map(|(limiter, _)| limiter);
    Occupancy { blocks, warps: blocks * warps, most_warps, limited_by: limited_by.collect() }
}

fn by_registers(registers: u32, warps: u32) -> u32 {
    if registers == 0 {
        return u32::MAX;
    }
    if registers > THREAD_REGISTERS + 1 {
        return 0;
    }
    let warp = (registers * WARP).next_multiple_of(REGISTER_GRANULARITY);
    // Assumes equally many warps per partition.
    if u64::from(warp) * u64::from(warps.next_multiple_of(PARTITIONS)) > u64::from(REGISTERS) {
        return 0;
    }
    (REGISTERS / PARTITIONS / warp) * PARTITIONS / warps
}

/// `u32::MAX` if unlimited.
fn by_shared(multiprocessor: &Multiprocessor, shared_bytes: u64) -> u32 {
    let granularity = u64::from(multiprocessor.shared_granularity);
    let reserved = u64::from(multiprocessor.reserved_bytes);
    let Some(block) =
        shared_bytes.checked_add(reserved).and_then(|all| all.checked_next_multiple_of(granularity))
    else {
        return 0;
    };
    if block > u64::from(multiprocessor.block_shared_bytes) + reserved {
        return 0;
    }
    let blocks = u64::from(multiprocessor.shared_bytes).checked_div(block);
    blocks.and_then(|blocks| u32::try_from(blocks).ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use cubinder_model::{ArchSuffix, Target};

    use super::*;
    use cubinder_code_object::block_limits::max_shared_bytes;

    fn arch(target: &str) -> Arch {
        target.parse::<Target>().unwrap().arch
    }

    #[test]
    fn known_figures() {
        let of = |target: &str, threads, registers, shared_bytes| {
            let multiprocessor = Multiprocessor::for_arch(arch(target)).unwrap();
            let found = occupancy(&multiprocessor, &Needs { threads, registers, shared_bytes });
            (found.blocks, found.warps, found.limited_by)
        };
        assert_eq!(of("sm_90", 256, 32, 0), (8, 64, vec![Limiter::Threads, Limiter::Registers]));
        assert_eq!(of("sm_89", 256, 16, 0), (6, 48, vec![Limiter::Threads]));
        assert_eq!(of("sm_90", 256, 255, 0), (1, 8, vec![Limiter::Registers]));
        assert_eq!(of("sm_90", 1024, 128, 0).0, 0);
        assert_eq!(of("sm_80", 32, 16, 0), (32, 32, vec![Limiter::Blocks]));
        assert_eq!(of("sm_86", 128, 16, 50 << 10), (1, 4, vec![Limiter::SharedMemory]));
        assert_eq!(of("sm_86", 128, 16, 100 << 10).0, 0);
        assert_eq!(of("sm_80", 128, 16, u64::MAX).0, 0);
    }

    #[test]
    fn the_tables_of_shared_memory_agree() {
        for major in 7..=13 {
            for minor in 0..=9 {
                let arch = Arch { major, minor, suffix: ArchSuffix::None };
                if let Some(multiprocessor) = Multiprocessor::for_arch(arch) {
                    assert_eq!(max_shared_bytes(arch), Some(multiprocessor.block_shared_bytes), "{arch}");
                }
            }
        }
    }
}
