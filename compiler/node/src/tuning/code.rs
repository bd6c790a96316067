//! Notes code that changed since its measurement: it may be as fast.

use std::sync::Arc;

use cubinder_launch::Signature;
use cubinder_model::fit::{self, ComputeCapability, Fit};
use cubinder_model::{Bundle, CodeObject, CodeRef, Digest, Launch, Plugin, Target, Variant};

use super::{File, Point};
use crate::eval::{Subject, SubjectOrigin, resolve_query};

/// Measured points of changed code.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OutdatedMeasurement {
    /// Plugin name, with namespace.
    pub plugin: String,
    /// Measured GPU.
    pub device: String,
    /// Number of points.
    pub points: usize,
}

/// Hashes a device's code of variants, in any order: 16 hexadecimal digits.
#[must_use]
pub fn code_of(
    plugin: &Plugin,
    objects: &[CodeObject],
    node: &Signature<'_>,
    ids: impl IntoIterator<Item = i32>,
    capability: ComputeCapability,
) -> String {
    let mut ids: Vec<i32> = ids.into_iter().collect();
    ids.sort_unstable();
    let mut text = String::new();
    for variant in rows(plugin, node, &ids) {
        text.push_str(&format!("{}:", variant.id));
        for launch in variant.launches() {
            let object = first(launch, capability).and_then(|reference| objects.get(reference.code as usize));
            let digest = object.map(|object| object.digest.to_string());
            text.push_str(&format!(" {}", digest.unwrap_or_default()));
        }
        text.push('\n');
    }
    Digest::compute(text.as_bytes()).short()
}

fn first(launch: &Launch, capability: ComputeCapability) -> Option<&CodeRef> {
    let targets: Vec<Target> = launch.code.iter().map(|reference| reference.target).collect();
    launch.code.get(*fit::order(capability, &targets).first()?)
}

/// Returns points whose code in a bundle changed; skips bundles without this exact GPU.
#[must_use]
pub fn changed(files: &[File], bundle: &Bundle) -> Vec<OutdatedMeasurement> {
    let mut all: Vec<OutdatedMeasurement> = Vec::new();
    for plugin in &bundle.plugins {
        let name = plugin.full_name();
        let is_of_it =
            |point: &&Point| point.code.is_some() && point.plugin == name && point.version == plugin.version;
        let mut subject = None;
        for file in files {
            let device = &file.tuning.device;
            let of_it = file.tuning.points.iter().filter(is_of_it);
            let points = of_it.filter(|point| {
                let subject = subject.get_or_insert_with(|| subject_of(plugin));
                is_changed(subject, &bundle.code, point, device.capability)
            });
            let (plugin, device, points) = (name.clone(), device.name.clone(), points.count());
            if points > 0 {
                all.push(OutdatedMeasurement { plugin, device, points });
            }
        }
    }
    all
}

fn is_changed(subject: &Subject, code: &[CodeObject], point: &Point, capability: ComputeCapability) -> bool {
    let Ok(resolved) = resolve_query(subject, &point.query) else { return false };
    let node = resolved.signature();
    let ids: Vec<i32> = point.microseconds.iter().map(|(id, _)| *id).collect();
    let mut rows = rows(&subject.plugin, &node, &ids);
    let is_exact = |launch: &Launch| {
        first(launch, capability).is_some_and(|it| fit::fit(capability, it.target) == Fit::Exact)
    };
    rows.all(|variant| variant.launches().all(is_exact))
        && point.code != Some(code_of(&subject.plugin, code, &node, ids.iter().copied(), capability))
}

fn rows<'p>(plugin: &'p Plugin, node: &Signature<'_>, ids: &[i32]) -> impl Iterator<Item = &'p Variant> {
    let row =
        |id: &i32| plugin.variants.iter().find(|variant| variant.id == *id && node.is_served_by(variant));
    ids.iter().filter_map(row)
}

pub(super) fn subject_of(plugin: &Plugin) -> Subject {
    Subject::new(plugin.clone(), SubjectOrigin::Compiled(Arc::from([])))
}
