//! Which code fits a device, and in which order it is tried.

use cubinder_expr::sorted;
use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::code::{Arch, ArchSuffix, Target, TargetKind};

/// A compute capability, such as 9.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ComputeCapability {
    /// Major number.
    pub major: u8,
    /// Minor number.
    pub minor: u8,
}

impl std::fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl ComputeCapability {
    /// Splits a number such as 90. Saturates.
    #[must_use]
    pub fn from_number(number: i64) -> Self {
        let part = |number: i64| u8::try_from(number).unwrap_or(u8::MAX);
        Self { major: part(number / 10), minor: part(number % 10) }
    }
}

/// The ascending compute capabilities of GPUs (CUDA C++ programming guide 13.0).
pub const KNOWN: [i64; 12] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

/// How a target fits a device, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Machine code for this architecture.
    Exact,
    /// Machine code of a lower minor, or of its family.
    Compatible,
    /// PTX that the driver can compile.
    Ptx,
    /// Unsupported; tried last, as a device may report wrong numbers.
    Unlikely,
}

/// Returns the indices of `targets` in a device's order: by [`Fit`], nearest architecture, most specific (`a`, `f`,
/// none), position.
///
/// Source: CUDA C++ programming guide 13.0, "compute capabilities": a cubin runs on its major and equal or later
/// minors, with `a` on that chip only, with `f` in its family; PTX without `a` on equal or later chips.
#[must_use]
pub fn order(device: ComputeCapability, targets: &[Target]) -> Vec<usize> {
    let ranks = targets.iter().enumerate().map(|(index, target)| (rank(device, *target), index));
    sorted(ranks.collect()).into_iter().map(|(_, index)| index).collect()
}

/// Returns how code fits a device.
#[must_use]
pub fn fit(device: ComputeCapability, target: Target) -> Fit {
    let arch = target.arch;
    match target.kind {
        TargetKind::Cubin if number(arch) == (device.major, device.minor) => Fit::Exact,
        TargetKind::Cubin if compatible(device, arch) => Fit::Compatible,
        TargetKind::Ptx if compiles(device, arch) => Fit::Ptx,
        _ => Fit::Unlikely,
    }
}

fn rank(device: ComputeCapability, target: Target) -> (Fit, TargetKind, Distance, u8) {
    let arch = target.arch;
    let distance = if number(arch) > (device.major, device.minor) {
        Distance::Above(number(arch))
    } else {
        Distance::NotAbove(Reverse(number(arch)))
    };
    (fit(device, target), target.kind, distance, specificity(arch.suffix))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    /// Lowest first.
    Above((u8, u8)),
    /// Highest first.
    NotAbove(Reverse<(u8, u8)>),
}

fn compatible(device: ComputeCapability, arch: Arch) -> bool {
    arch.suffix != ArchSuffix::Specific && arch.major == device.major && arch.minor < device.minor
}

fn compiles(device: ComputeCapability, arch: Arch) -> bool {
    match arch.suffix {
        ArchSuffix::None => number(arch) <= (device.major, device.minor),
        ArchSuffix::Specific => number(arch) == (device.major, device.minor),
        ArchSuffix::Family => arch.major == device.major && arch.minor <= device.minor,
    }
}

fn number(arch: Arch) -> (u8, u8) {
    (arch.major, arch.minor)
}

fn specificity(suffix: ArchSuffix) -> u8 {
    match suffix {
        ArchSuffix::Specific => 0,
        ArchSuffix::Family => 1,
        ArchSuffix::None => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_table() {
        let six = "sm_80 sm_86 sm_89 sm_90 sm_120 compute_80";
        for (device, carried, expected) in [
            ((8, 0), six, "sm_80 compute_80 sm_86 sm_89 sm_90 sm_120"),
            ((8, 6), six, "sm_86 sm_80 compute_80 sm_89 sm_90 sm_120"),
            ((8, 7), six, "sm_86 sm_80 compute_80 sm_89 sm_90 sm_120"),
            ((8, 9), six, "sm_89 sm_86 sm_80 compute_80 sm_90 sm_120"),
            ((9, 0), six, "sm_90 compute_80 sm_120 sm_89 sm_86 sm_80"),
            ((10, 0), six, "compute_80 sm_120 sm_90 sm_89 sm_86 sm_80"),
            ((12, 1), six, "sm_120 compute_80 sm_90 sm_89 sm_86 sm_80"),
            ((7, 5), six, "sm_80 sm_86 sm_89 sm_90 sm_120 compute_80"),
            ((8, 9), "sm_80 sm_87 sm_86", "sm_87 sm_86 sm_80"),
            // `a` precedes the plain one on its chip.
            ((9, 0), "sm_90 sm_90a", "sm_90a sm_90"),
            ((10, 3), "sm_100a sm_100 compute_90", "sm_100 compute_90 sm_100a"),
            ((9, 0), "compute_90 compute_90a sm_80", "compute_90a compute_90 sm_80"),
            ((10, 0), "compute_90a compute_80", "compute_80 compute_90a"),
            // `f` precedes the plain one in its family.
            ((12, 1), "sm_120 sm_120f sm_121", "sm_121 sm_120f sm_120"),
            ((12, 1), "sm_121f sm_121a sm_121", "sm_121a sm_121f sm_121"),
            ((12, 0), "sm_100f sm_121f compute_100f compute_90", "compute_90 sm_121f sm_100f compute_100f"),
            ((10, 3), "compute_100f compute_100 compute_103", "compute_103 compute_100f compute_100"),
            (
                (8, 6),
                "compute_90 compute_75 compute_86 compute_80",
                "compute_86 compute_80 compute_75 compute_90",
            ),
            ((8, 6), "sm_86 sm_86", "sm_86 sm_86"),
            ((8, 6), "", ""),
        ] {
            let targets: Vec<Target> = carried.split_whitespace().map(|text| text.parse().unwrap()).collect();
            let capability = ComputeCapability { major: device.0, minor: device.1 };
            let found: Vec<String> =
                order(capability, &targets).into_iter().map(|index| targets[index].to_string()).collect();
            assert_eq!(found.join(" "), expected, "on {capability} of {carried}");
        }
    }
}
