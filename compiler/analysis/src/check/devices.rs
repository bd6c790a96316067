use cubinder_expr::Interval;
use cubinder_launch::proof::Devices;
use cubinder_model::{Arch, Target, TargetKind};

use crate::block_limits::max_shared_bytes;

/// Returns the devices that run code for the targets (CUDA C++ programming guide 13.0, "binary compatibility" and "PTX
/// compatibility").
pub(super) fn running(targets: &[Target]) -> Devices {
    let capability = |arch: Arch| i64::from(arch.major) * 10 + i64::from(arch.minor);
    let every = Devices::ANY;
    let highest = |target: &Target| match target.kind {
        TargetKind::Cubin => i64::from(target.arch.major) * 10 + 9,
        TargetKind::Ptx | TargetKind::Native => every.capability.max,
    };
    let least = targets.iter().map(|target| capability(target.arch)).min();
    let most = targets.iter().map(highest).max();
    let capability = match (least, most) {
        (Some(min), Some(max)) => Interval { min, max },
        _ => every.capability,
    };
    let shared = |target: &Target| match target.kind {
        TargetKind::Cubin => most_shared_bytes(target.arch),
        TargetKind::Ptx | TargetKind::Native => None,
    };
    let shared = targets.iter().map(shared).collect::<Option<Vec<i64>>>();
    let most_shared = shared.and_then(|all| all.into_iter().max()).unwrap_or(every.shared_bytes.max);
    let shared_bytes = Interval { max: most_shared, ..every.shared_bytes };
    Devices { capability, shared_bytes, ..every }
}

fn most_shared_bytes(arch: Arch) -> Option<i64> {
    max_shared_bytes(arch)?;
    let minors = (arch.minor..=9).map(|minor| Arch { minor, ..arch });
    minors.filter_map(max_shared_bytes).max().map(i64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_follow_from_targets() {
        let of = |names: &[&str]| {
            let targets: Vec<Target> = names.iter().map(|name| name.parse().unwrap()).collect();
            let Devices { capability, shared_bytes, .. } = super::running(&targets);
            (capability.min, capability.max, shared_bytes.max)
        };
        let every = Devices::ANY;
        assert_eq!(super::running(&[]), every);
        assert_eq!(of(&["sm_90"]), (90, 99, 227 << 10));
        assert_eq!(of(&["sm_80", "sm_90"]), (80, 99, 227 << 10));
        // 8.7 runs code for 8.6.
        assert_eq!(of(&["sm_86"]), (86, 89, 163 << 10));
        assert_eq!(of(&["sm_80", "compute_80"]), (80, every.capability.max, every.shared_bytes.max));
    }
}
