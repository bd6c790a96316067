//! How many blocks of a kernel a multiprocessor holds at a time, and what keeps it from holding more.
//!
//! Owns the facts of each architecture and the arithmetic of NVIDIA's own calculator, `cuda_occupancy.h` of CUDA 13.0, which is the
//! oracle of the test. Block barriers are left out: no kernel of one barrier meets their limit. Never guesses: an
//! architecture that is not in the table has no answer.

use cubinder_model::Arch;
use serde::Serialize;

/// Threads that run in step, on every architecture.
pub const WARP: u32 = 32;

/// 32-bit registers of a multiprocessor, and the most that a block may take: the same for every architecture in the table.
pub const REGISTERS: u32 = 65_536;

/// The most registers of a thread (CUDA C++ programming guide 13.0, "technical specifications per compute capability").
pub const THREAD_REGISTERS: u32 = 255;

/// Registers are given to a warp in portions of this many (`cudaOccRegAllocationGranularity`).
const REGISTER_GRANULARITY: u32 = 256;

/// A multiprocessor has this many parts, each with its share of the registers (`cudaOccSubPartitionsPerMultiprocessor`).
const PARTITIONS: u32 = 4;

/// What a multiprocessor of an architecture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiprocessor {
    /// The most resident threads.
    pub threads: u32,
    /// The most resident blocks.
    pub blocks: u32,
    /// Shared memory, bytes.
    pub shared_bytes: u32,
    /// The most shared memory that a block can have, static and dynamic, bytes.
    pub block_shared_bytes: u32,
    /// What the driver takes of each block's shared memory for itself, bytes.
    pub reserved_bytes: u32,
    /// Shared memory is given to a block in portions of this many bytes.
    pub shared_granularity: u32,
}

impl Multiprocessor {
    /// Of an architecture, where it is known: CUDA C++ programming guide 13.0, "technical specifications per compute capability" for
    /// threads and shared memory; `cudaOccMaxBlocksPerMultiprocessor`, `cudaOccSMemAllocationGranularity` and
    /// `cudaOccAlignUpShmemSizeVoltaPlus` of `cuda_occupancy.h` 13.0 for the rest. From 8.0 on the driver reserves 1 KiB of
    /// each block's shared memory (the guide's "shared memory" of compute capability 8.x).
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

/// What decides the occupancy of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Threads of a block, at least 1.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block, static and dynamic, bytes.
    pub shared_bytes: u64,
}

/// What a multiprocessor holds of a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// Blocks at a time. 0: the launch would be refused.
    pub blocks: u32,
    /// Warps at a time.
    pub warps: u32,
    /// The most warps that the multiprocessor holds.
    pub most_warps: u32,
    /// What keeps it from holding more.
    pub limited_by: Vec<Limiter>,
}

/// A resource of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limiter {
    /// The resident threads.
    Threads,
    /// The registers.
    Registers,
    /// The shared memory.
    SharedMemory,
    /// The resident blocks.
    Blocks,
}

impl Limiter {
    /// How people call it.
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

/// What a multiprocessor holds of a launch that needs so much.
#[must_use]
pub fn occupancy(multiprocessor: &Multiprocessor, needs: &Needs) -> Occupancy {
    let warps = needs.threads.div_ceil(WARP).max(1);
    let most_warps = multiprocessor.threads / WARP;
    // A block of more than 1024 threads is refused before anything else is looked at; so are too many registers.
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

/// Blocks of so many warps, by the registers alone; `u32::MAX` where they set no limit.
fn by_registers(registers: u32, warps: u32) -> u32 {
    if registers == 0 {
        return u32::MAX;
    }
    // One more than a kernel can use: the calculator's own limit.
    if registers > THREAD_REGISTERS + 1 {
        return 0;
    }
    let warp = (registers * WARP).next_multiple_of(REGISTER_GRANULARITY);
    // The hardware's check takes it that every part gets as many warps as the one with the most.
    if u64::from(warp) * u64::from(warps.next_multiple_of(PARTITIONS)) > u64::from(REGISTERS) {
        return 0;
    }
    (REGISTERS / PARTITIONS / warp) * PARTITIONS / warps
}

/// Blocks by the shared memory alone; `u32::MAX` where it sets no limit.
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
