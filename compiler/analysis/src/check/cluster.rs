//! Reports cluster launches on GPUs, or with code, without clusters.

use cubinder_expr::{DeviceFact, Interval};
use cubinder_launch::proof::{Devices, Domain, Verdict};
use cubinder_model::Target;
use cubinder_model::cuda_limits::HAS_CLUSTERS;
use cubinder_model::fit::{self, ComputeCapability, Fit};

use super::draft_view::{DraftView, LaunchView};
use super::errors::{NewerGpuWithoutClusters, TargetsWithoutClusters};
use super::formula::device;
use super::once_per_place;
use crate::diagnostic::Diagnostic;

const LEAST_WITH_CLUSTERS: i64 = HAS_CLUSTERS as i64 * 10;

/// Returns whether a target's GPUs have clusters.
pub const fn has_clusters(target: Target) -> bool {
    target.arch.major >= HAS_CLUSTERS
}

pub(super) fn targets(view: &DraftView<'_>) -> Vec<Diagnostic> {
    let lacking = view.targets.iter().filter(|target| !has_clusters(**target));
    let lacking: Vec<String> = lacking.map(|target| format!("`{target}`")).collect();
    if lacking.is_empty() {
        return Vec::new();
    }
    let newer = newer_without(&view.targets);
    let places = view.launches().filter_map(|launch| {
        let text = launch.decl.cluster.iter().flatten().next()?;
        Some((view.span(text), (launch, launch.decl.kernel.as_ref()?.value.trim().to_owned())))
    });
    once_per_place(places, |span, (launch, kernel)| {
        if !needs_clusters(view, &launch) {
            return Some(TargetsWithoutClusters { targets: lacking.join(", "), kernel, span }.into());
        }
        let (devices, target) =
            newer.iter().find(|(devices, _)| !is_of_one_block_on(view, &launch, *devices))?;
        let or_later = if devices.max > devices.min { " or later" } else { "" };
        let capability = format!("{}{or_later}", ComputeCapability::from_number(devices.min));
        let (target, exclusion) = (target.to_string(), exclusion(&newer, devices.min));
        Some(NewerGpuWithoutClusters { target, kernel, capability, exclusion, span }.into())
    })
}

/// Returns guard terms that exclude a capability's GPUs, but no newer ones with their own code.
fn exclusion(newer: &[(Interval, Target)], least: i64) -> String {
    let has_code = |capability: i64| !newer.iter().any(|(devices, _)| devices.contains(capability));
    let operator = match known_with_clusters().any(|capability| capability > least && has_code(capability)) {
        true => "!=",
        false if least > LEAST_WITH_CLUSTERS => "<",
        false => return String::new(),
    };
    format!("; or exclude them in the variant's `guard`: `device.capability {operator} {least}`")
}

fn known_with_clusters() -> impl Iterator<Item = i64> {
    fit::KNOWN.into_iter().filter(|capability| *capability >= LEAST_WITH_CLUSTERS)
}

/// Returns devices with clusters whose best code has none; the last range is open-ended.
fn newer_without(targets: &[Target]) -> Vec<(Interval, Target)> {
    let without = |capability: i64| {
        let device = ComputeCapability::from_number(capability);
        let first = fit::order(device, targets).first().and_then(|index| targets.get(*index)).copied();
        let fitting = first.filter(|target| fit::fit(device, *target) != Fit::Unlikely);
        fitting.filter(|target| !has_clusters(*target))
    };
    let later = known_with_clusters().max().unwrap_or_default() + 1;
    let mut found: Vec<(Interval, Target)> = Vec::new();
    for capability in known_with_clusters().chain(later..=Devices::ANY.capability.max) {
        let Some(target) = without(capability) else { continue };
        match found.last_mut().filter(|(range, last)| {
            capability > later && range.min >= later && *last == target && range.max + 1 == capability
        }) {
            Some((range, _)) => range.max = capability,
            None => found.push((Interval { min: capability, max: capability }, target)),
        }
    }
    found
}

fn needs_clusters(view: &DraftView<'_>, launch: &LaunchView<'_>) -> bool {
    let newer = Interval { min: LEAST_WITH_CLUSTERS, max: i64::MAX };
    if running(view, launch).within(&device(DeviceFact::Capability), newer) == Verdict::Proved {
        return true;
    }
    is_of_one_block_on(view, launch, Interval { max: LEAST_WITH_CLUSTERS - 1, ..Devices::ANY.capability })
}

fn is_of_one_block_on(view: &DraftView<'_>, launch: &LaunchView<'_>, capability: Interval) -> bool {
    let domain = running(view, launch).on_devices(Devices { capability, ..Devices::ANY });
    let one = Interval { min: 1, max: 1 };
    launch.launch.cluster.iter().flatten().all(|axis| domain.within(axis, one) == Verdict::Proved)
}

fn running<'s>(view: &'s DraftView<'_>, launch: &LaunchView<'_>) -> Domain<'s> {
    let conditions = view.guard(launch.step.row).into_iter().chain(view.when(launch.step));
    conditions.fold(view.domain().hasty(), Domain::assuming)
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use crate::manifest::Route;
    use crate::rules;
    use crate::test_support::resolved;

    fn notes(guard: &str, targets: &str) -> Vec<String> {
        notes_and_help(guard, targets).0
    }

    fn notes_and_help(guard: &str, targets: &str) -> (Vec<String>, Vec<String>) {
        let text = format!(
            "schema = 1\n[plugin]\nname = \"p\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\n\
             [[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n\
             [[variants]]\nid = 1\nguard = \"{guard}\"\nconstants = {{ C = 2 }}\n[[variants]]\nid = 2\nconstants = {{ C = 1 }}\n\
             [[launches]]\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [128]\nblock = [256]\ncluster = [\"C\"]\n\
             args = {{ x = \"x\", y = \"y\" }}\n"
        );
        let targets: Vec<Target> = targets.split_whitespace().map(|text| text.parse().unwrap()).collect();
        let found = check(&resolved("m.toml", &text), &targets, Route::Plugin).diagnostics;
        let of_rule = found.iter().filter(|found| found.code == Some(rules::FEATURE_OF_TARGET));
        let of_rule: Vec<_> = of_rule.collect();
        let notes = of_rule.iter().flat_map(|found| found.notes.iter().cloned()).collect();
        (notes, of_rule.iter().flat_map(|found| found.help.iter().cloned()).collect())
    }

    #[test]
    fn a_guard_excuses_code_without_clusters_where_nothing_newer_runs_it() {
        for (guard, targets) in [
            ("device.capability >= 90", "sm_80 sm_90"),
            ("device.capability >= 90", "sm_80 sm_90 compute_80 compute_90"),
            ("device.capability >= 90", "sm_80 compute_80 compute_90"),
            ("device.capability >= 90 and device.capability < 100", "sm_90 compute_80"),
            // PTX for one GPU runs on no other.
            ("device.capability >= 90", "sm_90 compute_89a"),
            // 9.1 and 10.1 do not exist.
            ("device.capability >= 90 and device.capability < 110", "sm_80 sm_90a sm_100f compute_80"),
            ("device.capability >= 90 and device.capability < 104", "sm_80 sm_90a sm_100f compute_80"),
            (
                "device.capability == 90 or device.capability >= 100 and device.capability < 110",
                "sm_80 sm_90a sm_100a sm_103a sm_120a compute_80",
            ),
        ] {
            assert_eq!(notes(guard, targets), Vec::<String>::new(), "{guard}, {targets}");
        }
        for (guard, targets, whose) in [
            ("device.capability >= 90", "sm_80 compute_80", "capability 9.0 supports"),
            ("device.capability >= 90", "sm_90 compute_80", "capability 10.0 supports"),
            ("device.capability >= 120", "sm_90 compute_80", "capability 12.0 supports"),
            (
                "device.capability >= 90",
                "sm_90 sm_100 sm_110 sm_120 compute_80",
                "capability 13.0 or later supports",
            ),
        ] {
            let notes = notes(guard, targets);
            assert!(notes.len() == 1 && notes[0].contains(whose), "{guard}, {targets}: {notes:?}");
        }
    }

    #[test]
    fn the_guard_that_is_advised_leaves_out_what_the_note_names_alone() {
        for (targets, whose, guard) in [
            ("sm_80 compute_80 compute_90a", "capability 10.0 supports", "device.capability < 100`"),
            (
                "sm_80 sm_90a sm_100f sm_120f compute_80",
                "capability 11.0 supports",
                "device.capability != 110`",
            ),
            (
                "sm_80 sm_100f sm_110 sm_120f compute_80",
                "capability 9.0 supports",
                "device.capability != 90`",
            ),
            (
                "sm_80 sm_90a sm_100a sm_103a sm_110a sm_120a sm_121a compute_80",
                "capability 12.2 or later supports",
                "device.capability < 122`",
            ),
        ] {
            let (notes, help) = notes_and_help("device.capability >= 90", targets);
            assert!(notes.len() == 1 && notes[0].contains(whose), "{targets}: {notes:?}");
            assert!(help.len() == 1 && help[0].ends_with(guard), "{targets}: {help:?}");
        }
    }
}
