//! Targets of the command line, which may depend on this machine's GPUs and NVRTC.

use std::collections::BTreeSet;
use std::str::FromStr;

use cubinder_gpu::{DeviceInfo, Driver};
use cubinder_model::fit::ComputeCapability;
use cubinder_model::{Arch, ArchSuffix, Target, TargetKind};
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::{Session, Settings};
use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
use cubinder_source::diagnostic::Diagnostic;

use crate::errors::{NoGpuForNative, UnusableGpuForNative};

/// One value of `--target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetChoice {
    /// `sm_89`, `compute_80`.
    One(Target),
    /// Machine code for the GPUs of this machine.
    Native,
    /// Machine code for each major version that NVRTC supports, and PTX for the highest.
    AllMajor,
}

impl TargetChoice {
    /// The values that are not architectures.
    pub const WORDS: [&str; 2] = ["native", "all-major"];
}

impl FromStr for TargetChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetChoice, String> {
        match text {
            "native" => Ok(TargetChoice::Native),
            "all-major" => Ok(TargetChoice::AllMajor),
            text => text.parse().map(TargetChoice::One).map_err(|error| format!("{error}")),
        }
    }
}

/// Resolves choices on this machine. Loads the driver for `native`, NVRTC for `all-major`.
///
/// # Errors
/// No GPU; no NVRTC.
pub fn resolve(choices: &[TargetChoice], overrides: &Overrides) -> Result<Vec<Target>, Vec<Diagnostic>> {
    let mut targets = Vec::new();
    for choice in choices {
        match choice {
            TargetChoice::One(target) => targets.push(*target),
            TargetChoice::Native => targets.extend(native()?),
            TargetChoice::AllMajor => targets.extend(all_major(&supported(overrides)?)),
        }
    }
    Ok(targets)
}

fn native() -> Result<Vec<Target>, Diagnostic> {
    let devices = Driver::load().and_then(DeviceInfo::query_all);
    let devices = devices.map_err(|error| match error.is_absence() {
        true => NoGpuForNative { why: error.to_string() }.into(),
        false => Diagnostic::from(UnusableGpuForNative { why: error.to_string() }),
    })?;
    let capabilities: BTreeSet<ComputeCapability> = devices.iter().map(|device| device.capability).collect();
    Ok(capabilities
        .into_iter()
        .map(|ComputeCapability { major, minor }| target(TargetKind::Cubin, major, minor))
        .collect())
}

fn target(kind: TargetKind, major: u8, minor: u8) -> Target {
    Target { kind, arch: Arch { major, minor, suffix: ArchSuffix::None } }
}

/// Returns NVRTC's architectures, in ascending order (89).
fn supported(overrides: &Overrides) -> Result<Vec<u32>, Vec<Diagnostic>> {
    let session = Session::new(Toolkit::locate(overrides)?, Settings::default(), Cache::disabled())?;
    Ok(session.in_processes_of(overrides.workers.clone()).supported_archs()?)
}

/// Returns each major version's lowest architecture, and PTX for the highest, as `nvcc -arch=all-major`.
fn all_major(archs: &[u32]) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for arch in archs {
        let (Ok(major), Ok(minor)) = (u8::try_from(arch / 10), u8::try_from(arch % 10)) else { continue };
        if targets.last().is_none_or(|last| last.arch.major != major) {
            targets.push(target(TargetKind::Cubin, major, minor));
        }
    }
    targets.extend(targets.last().map(|last| Target { kind: TargetKind::Ptx, ..*last }));
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_major_version_has_the_lowest_of_its_architectures() {
        let shown =
            |archs: &[u32]| all_major(archs).iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        assert_eq!(
            shown(&[75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121]),
            "sm_75,sm_80,sm_90,sm_100,sm_110,sm_120,compute_120"
        );
        assert_eq!(shown(&[50, 52, 53, 60]), "sm_50,sm_60,compute_60");
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn words_and_architectures_are_choices() {
        assert_eq!("native".parse(), Ok(TargetChoice::Native));
        assert_eq!("all-major".parse(), Ok(TargetChoice::AllMajor));
        assert_eq!("sm_89".parse(), Ok(TargetChoice::One(target(TargetKind::Cubin, 8, 9))));
        assert!("all".parse::<TargetChoice>().is_err());
        assert!(TargetChoice::WORDS.iter().all(|word| word.parse::<TargetChoice>().is_ok()));
    }
}
