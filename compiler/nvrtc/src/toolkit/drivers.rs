//! Returns the NVIDIA drivers that load an NVRTC release's output (Linux).
//!
//! Sources: CUDA Toolkit release notes 13.2 Update 2 and 13.3, "CUDA Driver", tables "CUDA Toolkit and Minimum Required
//! Driver Version for CUDA Minor Version Compatibility" (cubins) and "CUDA Toolkit and Corresponding Driver Versions"
//! (PTX, which CUDA Compatibility, "Minor Version Compatibility", excludes). Updates add no PTX version, so a minor
//! version's first driver counts. Must not call a driver or load NVRTC.

use crate::manifest::DriverVersion;

/// CUDA release: 13.0 is `(13, 0)`.
pub type Release = (i32, i32);

/// Each release's first driver, oldest first.
const RELEASES: &[(Release, DriverVersion)] = &[
    ((11, 0), DriverVersion([450, 51, 5])),
    ((11, 1), DriverVersion([455, 23, 0])),
    ((11, 2), DriverVersion([460, 27, 3])),
    ((11, 3), DriverVersion([465, 19, 1])),
    ((11, 4), DriverVersion([470, 42, 1])),
    ((11, 5), DriverVersion([495, 29, 5])),
    ((11, 6), DriverVersion([510, 39, 1])),
    ((11, 7), DriverVersion([515, 43, 4])),
    ((11, 8), DriverVersion([520, 61, 5])),
    ((12, 0), DriverVersion([525, 60, 13])),
    ((12, 1), DriverVersion([530, 30, 2])),
    ((12, 2), DriverVersion([535, 54, 3])),
    ((12, 3), DriverVersion([545, 23, 6])),
    ((12, 4), DriverVersion([550, 54, 14])),
    ((12, 5), DriverVersion([555, 42, 2])),
    ((12, 6), DriverVersion([560, 28, 3])),
    ((12, 8), DriverVersion([570, 26, 0])),
    ((12, 9), DriverVersion([575, 51, 3])),
    ((13, 0), DriverVersion([580, 65, 6])),
    ((13, 1), DriverVersion([590, 44, 1])),
    ((13, 2), DriverVersion([595, 45, 4])),
    ((13, 3), DriverVersion([610, 43, 2])),
];

/// Returns the oldest driver for a release's cubins, if its major version is known.
///
/// Minor version compatibility: 450.80.02 for 11.x, 525.60.13 for 12.x, branch 580 for 13.x. Except for 11.x that is
/// the major version's first driver.
#[must_use]
pub fn oldest_for_cubins(release: Release) -> Option<DriverVersion> {
    match release {
        // Newer than 11.0's first driver.
        (11, _) => Some(DriverVersion([450, 80, 2])),
        (major, _) => oldest_for_ptx((major, 0)),
    }
}

/// Returns the oldest driver that compiles a release's PTX, if known.
#[must_use]
pub fn oldest_for_ptx(release: Release) -> Option<DriverVersion> {
    RELEASES.iter().find(|(known, _)| *known == release).map(|(_, driver)| *driver)
}

/// Returns the newest known release.
#[must_use]
pub fn newest_release() -> Release {
    RELEASES.last().map_or((0, 0), |(release, _)| *release)
}

/// Returns whether a driver is as new as `oldest`; `580` means any of that branch, `580.65` any of that minor.
#[must_use]
pub fn reaches(named: DriverVersion, oldest: DriverVersion) -> bool {
    let given = named.0.iter().rposition(|part| *part > 0).map_or(0, |last| last + 1);
    named.0[..given] >= oldest.0[..given]
}

/// Returns the newest release whose requested cubins and PTX a driver loads.
#[must_use]
pub fn newest_for(driver: DriverVersion, cubins: bool, ptx: bool) -> Option<Release> {
    let enough = |oldest: Option<DriverVersion>| oldest.is_some_and(|oldest| reaches(driver, oldest));
    let fits = |release: Release| {
        (!cubins || enough(oldest_for_cubins(release))) && (!ptx || enough(oldest_for_ptx(release)))
    };
    RELEASES.iter().rev().map(|(release, _)| *release).find(|release| fits(*release))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_whole() {
        assert!(RELEASES.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
        for (release, _) in RELEASES {
            assert!(oldest_for_cubins(*release).is_some(), "{release:?}");
        }
    }

    #[test]
    fn cubins_need_the_major_version_and_ptx_the_release() {
        assert_eq!(oldest_for_cubins((12, 9)), Some(DriverVersion([525, 60, 13])));
        assert_eq!(oldest_for_ptx((12, 9)), Some(DriverVersion([575, 51, 3])));
        assert_eq!(oldest_for_cubins((13, 9)), Some(DriverVersion([580, 65, 6])));
        assert_eq!(oldest_for_ptx((13, 9)), None);
        assert_eq!(oldest_for_cubins((14, 0)), None);
    }

    #[test]
    fn a_driver_may_be_named_in_part() {
        let oldest = DriverVersion([580, 65, 6]);
        for named in [[580, 0, 0], [580, 65, 0], [580, 65, 6], [580, 66, 0], [590, 0, 0]] {
            assert!(reaches(DriverVersion(named), oldest), "{named:?}");
        }
        for named in [[570, 0, 0], [579, 99, 9], [580, 64, 0], [580, 65, 5]] {
            assert!(!reaches(DriverVersion(named), oldest), "{named:?}");
        }
    }

    #[test]
    fn the_newest_release_that_would_do() {
        let driver = DriverVersion([570, 86, 10]);
        assert_eq!(newest_for(driver, true, false), Some((12, 9)));
        assert_eq!(newest_for(driver, true, true), Some((12, 8)));
        assert_eq!(newest_for(DriverVersion([450, 51, 6]), true, true), None);
        assert_eq!(newest_for(DriverVersion([450, 51, 6]), false, true), Some((11, 0)));
    }
}
