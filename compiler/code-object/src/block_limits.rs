//! Block limits by architecture or register count.

use cubinder_model::Arch;

/// 32-bit registers per block from 7.0 on (CUDA C++ Programming Guide 13.0, technical specifications; in no header).
pub const MAX_BLOCK_REGISTERS: i64 = 65_536;

/// Returns the maximum bytes of a block's shared memory, if known: those of the CUDA C++ Programming Guide 13.0,
/// technical specifications. Equals the largest carve-out in `cuda_occupancy.h` 13.0.96
/// (`cudaOccAlignUpShmemSizeVoltaPlus`), less the driver's 1 KiB from 8.0 on.
#[must_use]
pub fn max_shared_bytes(arch: Arch) -> Option<u32> {
    let kib = match (arch.major, arch.minor) {
        (7, 5) => 64,
        (7, 0 | 2) => 96,
        (8, 0 | 7) => 163,
        (8, 6 | 8 | 9) | (12, 0 | 1) => 99,
        (9, 0) | (10, 0 | 1 | 3) | (11, 0) => 227,
        _ => return None,
    };
    Some(kib * 1024)
}

/// Returns a block's maximum threads, in whole warps.
#[must_use]
pub fn max_threads_with(registers: u32) -> Option<i64> {
    const WARP: i64 = 32;
    const MOST_WARPS: i64 = 32;
    let fits =
        |threads: &i64| block_registers(*threads, registers).is_some_and(|all| all <= MAX_BLOCK_REGISTERS);
    (1..=MOST_WARPS).map(|warps| warps * WARP).take_while(fits).last()
}

/// Returns a block's registers: units per warp, in whole sub-partitions (`cudaOccMaxBlocksPerSMRegsLimit`,
/// `cuda_occupancy.h` 13.0.96; equal for 7.0 to 12.x).
#[must_use]
pub fn block_registers(threads: i64, registers: u32) -> Option<i64> {
    const THREADS_OF_A_WARP: i64 = 32;
    const SUB_PARTITIONS: i64 = 4;
    const UNIT: i64 = 256;
    let round_up = |value: i64, step: i64| Some(value.checked_add(step - 1)? / step * step);
    let of_a_warp = round_up(i64::from(registers).checked_mul(THREADS_OF_A_WARP)?, UNIT)?;
    let warps = round_up(threads, THREADS_OF_A_WARP)? / THREADS_OF_A_WARP;
    round_up(warps, SUB_PARTITIONS)?.checked_mul(of_a_warp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_follow_from_registers() {
        assert_eq!(max_threads_with(64), Some(1024));
        assert_eq!(max_threads_with(65), Some(896));
        assert_eq!(max_threads_with(255), Some(256));
    }
}
