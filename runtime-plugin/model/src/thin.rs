//! Reduces a bundle to some devices' code, in the compiler's order. If all kernels have equal targets, the result
//! equals a compile for the remaining ones.

use crate::code::{Target, TargetKind};
use crate::code_subset::CodeSubset;
use crate::fit::{ComputeCapability, Fit, fit, order};
use crate::model::{Bundle, CodeRef, Variant};

/// Kernels without code for a device, for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoCode {
    /// Plugin: `sample::circ_pad_plugin`.
    pub plugin: String,
    /// The kernels' names in their source, without duplicates.
    pub kernels: Vec<String>,
    /// Device.
    pub device: ComputeCapability,
    /// The kernels' targets.
    pub targets: Vec<Target>,
    /// Whether they have PTX for the device, which was not requested.
    pub has_ptx: bool,
}

/// Returns the bundle with the code that `devices` would run: for each kernel and device the first machine code; with
/// `ptx`, also PTX. Fails if a kernel lacks code for a device.
pub fn thin(bundle: &Bundle, devices: &[ComputeCapability], ptx: bool) -> Result<Bundle, Vec<NoCode>> {
    let mut missing = Vec::new();
    let mut kept = CodeSubset::new(&bundle.code);
    let mut plugins = bundle.plugins.clone();
    for plugin in &mut plugins {
        let name = plugin.full_name();
        for launch in plugin.variants.iter_mut().flat_map(Variant::launches_mut) {
            for device in devices {
                if let Some(has_ptx) = lacks(&launch.code, *device, ptx) {
                    let targets = launch.code.iter().map(|reference| reference.target).collect();
                    let plugin = name.clone();
                    let new = NoCode { plugin, kernels: Vec::new(), device: *device, targets, has_ptx };
                    add(&mut missing, new, &launch.kernel);
                }
            }
            launch.code = kept.renumbered(&chosen(&launch.code, devices, ptx));
        }
    }
    if missing.is_empty() {
        Ok(Bundle { producer: bundle.producer.clone(), plugins, code: kept.into_code() })
    } else {
        Err(missing)
    }
}

fn add(missing: &mut Vec<NoCode>, new: NoCode, kernel: &str) {
    let is_alike = |known: &&mut NoCode| {
        (&known.plugin, known.device, &known.targets) == (&new.plugin, new.device, &new.targets)
    };
    let place = match missing.iter_mut().find(is_alike) {
        Some(known) => known,
        None => {
            missing.push(new);
            let Some(last) = missing.last_mut() else { return };
            last
        }
    };
    if !place.kernels.iter().any(|known| known == kernel) {
        place.kernels.push(kernel.to_owned());
    }
}

/// Returns whether a device has code to run, PTX included.
#[must_use]
pub fn serves(code: &[CodeRef], device: ComputeCapability) -> bool {
    lacks(code, device, true).is_none()
}

/// Returns whether the device could use PTX; `None` if it keeps code.
fn lacks(code: &[CodeRef], device: ComputeCapability, ptx: bool) -> Option<bool> {
    let has = |kind| first(code, device, kind).is_some();
    let as_ptx = |target: Target| Target { kind: TargetKind::Ptx, ..target };
    let mut native = code.iter().filter(|reference| reference.target.kind == TargetKind::Native).peekable();
    if native.peek().is_some() {
        let is_served = native.any(|reference| fit(device, as_ptx(reference.target)) != Fit::Unlikely);
        return (!is_served).then_some(false);
    }
    let (has_cubin, has_ptx) = (has(TargetKind::Cubin), has(TargetKind::Ptx));
    let stays = has_cubin || has_ptx && ptx;
    (!stays).then_some(has_ptx)
}

fn chosen(code: &[CodeRef], devices: &[ComputeCapability], ptx: bool) -> Vec<CodeRef> {
    let kinds = if ptx { [TargetKind::Cubin, TargetKind::Ptx].as_slice() } else { &[TargetKind::Cubin] };
    let wanted = devices.iter().flat_map(|device| kinds.iter().map(move |kind| first(code, *device, *kind)));
    let wanted: Vec<usize> = wanted.flatten().collect();
    let stays = |(index, reference): (usize, &CodeRef)| {
        (wanted.contains(&index) || reference.target.kind == TargetKind::Native).then(|| reference.clone())
    };
    code.iter().enumerate().filter_map(stays).collect()
}

fn first(code: &[CodeRef], device: ComputeCapability, kind: TargetKind) -> Option<usize> {
    let targets: Vec<Target> = code.iter().map(|reference| reference.target).collect();
    let fits = |index: &usize| {
        targets.get(*index).is_some_and(|target| target.kind == kind && fit(device, *target) != Fit::Unlikely)
    };
    order(device, &targets).into_iter().find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(targets: &str) -> Vec<CodeRef> {
        // Native targets cannot be parsed.
        let target = |text: &str| match text.strip_prefix("native_") {
            Some(arch) => Target { kind: TargetKind::Native, ..format!("compute_{arch}").parse().unwrap() },
            None => text.parse().unwrap(),
        };
        let reference = |(index, text)| CodeRef { target: target(text), code: index, symbol: String::new() };
        (0..).zip(targets.split_whitespace()).map(reference).collect()
    }

    fn devices(numbers: &[(u8, u8)]) -> Vec<ComputeCapability> {
        numbers.iter().map(|(major, minor)| ComputeCapability { major: *major, minor: *minor }).collect()
    }

    #[test]
    fn what_stays_is_what_each_device_would_try_first() {
        let six = "sm_80 sm_86 sm_89 sm_90 sm_120 compute_80";
        for (gpus, ptx, carried, expected) in [
            ([(9, 0)].as_slice(), true, six, "sm_90 compute_80"),
            (&[(9, 0)], false, six, "sm_90"),
            (&[(8, 0), (9, 0)], false, six, "sm_80 sm_90"),
            (&[(8, 7)], false, six, "sm_86"),
            (&[(12, 1)], true, six, "sm_120 compute_80"),
            (&[(10, 0)], true, six, "compute_80"),
            (&[(9, 0), (10, 0)], true, "sm_90 compute_80 compute_90", "sm_90 compute_90"),
            (&[(9, 0)], true, "sm_90 sm_90a compute_100", "sm_90a"),
        ] {
            let stays = chosen(&references(carried), &devices(gpus), ptx);
            let stays: Vec<String> = stays.iter().map(|reference| reference.target.to_string()).collect();
            assert_eq!(stays.join(" "), expected, "{gpus:?} of {carried}");
        }
    }

    #[test]
    fn a_device_without_code_is_told_whether_ptx_would_help() {
        let carried = references("sm_90 compute_80");
        let asked = |device, ptx| lacks(&carried, devices(&[device])[0], ptx);
        assert_eq!(asked((9, 0), false), None);
        assert_eq!(asked((10, 0), true), None);
        assert_eq!(asked((10, 0), false), Some(true));
        assert_eq!(asked((7, 5), true), Some(false));
    }

    #[test]
    fn what_tensorrt_launches_serves_the_devices_that_its_ptx_does() {
        for (target, device, expected) in [
            ("native_80", (8, 0), None),
            ("native_80", (12, 1), None),
            ("native_80", (7, 5), Some(false)),
            ("native_90a", (9, 0), None),
            ("native_90a", (10, 0), Some(false)),
            ("native_90a", (8, 0), Some(false)),
        ] {
            let carried = references(target);
            assert_eq!(lacks(&carried, devices(&[device])[0], false), expected, "{target} on {device:?}");
            assert_eq!(chosen(&carried, &devices(&[device]), false), carried);
        }
    }
}
