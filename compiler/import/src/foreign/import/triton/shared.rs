//! Computes dynamic shared memory if architectures differ: the maximum of a GPU's code.

use std::collections::BTreeMap;

use cubinder_model::{Arch, ArchSuffix};

use crate::block_limits::max_shared_bytes;

/// First architecture for which Triton's PTX is architecture-specific (`sm_90a`).
const FIRST_ALONE: u64 = 90;

/// Two and three digits, possibly unknown.
const CAPABILITIES: std::ops::RangeInclusive<u64> = 70..=129;

fn limit(capability: u64) -> Option<u64> {
    let (major, minor) = (u8::try_from(capability / 10).ok()?, u8::try_from(capability % 10).ok()?);
    max_shared_bytes(Arch { major, minor, suffix: ArchSuffix::None }).map(u64::from)
}

/// Returns `"36864 if device.capability >= 90 else 24576"`.
pub(super) fn expression(bytes: &BTreeMap<u64, u64>) -> String {
    // The kept PTX is the lowest and runs on newer ones.
    let everywhere =
        bytes.first_key_value().filter(|(arch, _)| **arch < FIRST_ALONE).map(|(_, bytes)| *bytes);
    let end_of = |arch: u64| (arch / 10 + 1).saturating_mul(10);
    let of_limits = CAPABILITIES.filter(|capability| limit(*capability).is_some());
    let mut steps: Vec<u64> = bytes.keys().flat_map(|arch| [*arch, end_of(*arch)]).chain(of_limits).collect();
    steps.sort_unstable();
    steps.dedup();
    let taken = |capability: u64| {
        let cubins = bytes.range(..=capability).filter(|(arch, _)| end_of(**arch) > capability);
        let ptx = everywhere.filter(|_| bytes.keys().next().is_some_and(|arch| *arch <= capability));
        let all: Vec<u64> = cubins.map(|(_, bytes)| *bytes).chain(ptx).collect();
        let fits = |bytes: &&u64| limit(capability).is_none_or(|limit| **bytes <= limit);
        // `cubinder check` rejects the size if none fits.
        all.iter().filter(fits).max().or(all.iter().max()).copied()
    };
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    for step in steps {
        // Values for GPUs without code do not matter.
        if let Some(most) = taken(step)
            && pieces.last().is_none_or(|(_, last)| *last != most)
        {
            pieces.push((step, most));
        }
    }
    let Some((_, first)) = pieces.first().copied() else { return "0".to_owned() };
    pieces.iter().skip(1).fold(first.to_string(), |below, (capability, bytes)| {
        format!("{bytes} if device.capability >= {capability} else {below}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gpu_gets_what_its_code_takes() {
        let expression = |bytes: &[(u64, u64)]| expression(&bytes.iter().copied().collect());
        assert_eq!(expression(&[]), "0");
        assert_eq!(expression(&[(80, 512), (90, 512)]), "512");
        assert_eq!(
            expression(&[(80, 24576), (90, 36864)]),
            "24576 if device.capability >= 100 else 36864 if device.capability >= 90 else 24576"
        );
        assert_eq!(expression(&[(80, 4096), (90, 1024)]), "4096");
        assert_eq!(expression(&[(90, 1), (100, 2)]), "2 if device.capability >= 100 else 1");
        assert_eq!(
            expression(&[(80, 1), (86, 3), (89, 2)]),
            "1 if device.capability >= 90 else 3 if device.capability >= 86 else 1"
        );
        // 8.6 and 12.0 have 99 KiB, so only their own code runs.
        assert_eq!(
            expression(&[(80, 131_072), (120, 65536)]),
            "131072 if device.capability >= 130 else 65536 if device.capability >= 120 else 131072"
        );
        assert_eq!(
            expression(&[(80, 131_072), (86, 65536)]),
            "131072 if device.capability >= 90 else 65536 if device.capability >= 88 else 131072 if device.capability >= 87 else \
             65536 if device.capability >= 86 else 131072"
        );
        assert_eq!(expression(&[(86, 131_072)]), "131072");
    }
}
