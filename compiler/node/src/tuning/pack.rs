//! Packs measured times into plugin models. Warns about changed plugins' points: measure again after a compile. Ignores
//! other plugins' points, as libraries share files.

use cubinder_expr::Value;
use cubinder_model::validate::{
    MAX_RANKED, MAX_TUNED_BYTES, MAX_TUNED_DEVICES, MAX_TUNED_EXTENTS, MAX_TUNED_POINTS,
};
use cubinder_model::{Plugin, TunedDevice, TunedPoint};

use super::code::subject_of;
use super::{ALIKE, Device, File, Point, PointKey};
use crate::diagnostic::{Diagnostic, fold};
use crate::errors::{GpusCountAsOne, MissingVariant, StalePoint, TooManyPoints, VersionNotCompiled};
use crate::eval::{ResolvedQuery, Subject, resolve_query};
use crate::path;
use crate::query::Mistake;

/// Replaces a plugin's measured times.
#[must_use]
pub fn pack(files: &[File], plugin: &mut Plugin) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    plugin.tuning = of_plugin(files, plugin, &mut diagnostics);
    fold(diagnostics, |_| true)
}

/// Reports measured but missing versions of the library's `plugins`.
#[must_use]
pub fn other_versions(files: &[File], plugins: &[&Plugin]) -> Vec<Diagnostic> {
    let points =
        files.iter().flat_map(|file| file.tuning.points.iter().enumerate().map(move |it| (file, it)));
    let missing = points.filter_map(|(file, (index, Point { plugin: name, version, .. }))| {
        let named = plugins.iter().filter(|plugin| plugin.full_name() == *name);
        let versions: Vec<&str> = named.map(|plugin| plugin.version.as_str()).collect();
        let is_missing = !versions.is_empty() && !versions.contains(&version.as_str());
        let (compiled, span) = (versions.join("`, `"), file.span(index, PointKey::Version));
        is_missing.then(|| VersionNotCompiled { version, name, compiled, span }.into())
    });
    fold(missing.collect(), |_| true)
}

fn of_plugin(files: &[File], plugin: &Plugin, diagnostics: &mut Vec<Diagnostic>) -> Vec<TunedDevice> {
    let name = plugin.full_name();
    let is_of_it = |point: &Point| point.plugin == name && point.version == plugin.version;
    let mut tuning: Vec<TunedDevice> = Vec::new();
    diagnostics.extend(mixed(files, &name, is_of_it));
    let subject = subject_of(plugin);
    let mut room =
        RemainingRoom { points: MAX_TUNED_POINTS, extents: MAX_TUNED_EXTENTS, bytes: MAX_TUNED_BYTES };
    for file in files {
        let of_it = file.tuning.points.iter().enumerate().filter(|(_, point)| is_of_it(point));
        for (index, point) in of_it {
            let Some(packed) = of_point(&subject, file, index, point, diagnostics) else { continue };
            let device = place(&mut tuning, &file.tuning.device);
            match device.filter(|_| room.takes(&packed)) {
                Some(device) => device.points.push(packed),
                None => {
                    let span = file.span(index, PointKey::Plugin);
                    diagnostics.push(TooManyPoints { name: &name, span }.into());
                    return tuning;
                }
            }
        }
    }
    tuning
}

fn mixed(files: &[File], name: &str, is_of_it: impl Fn(&Point) -> bool) -> Vec<Diagnostic> {
    let is_mixed = |one: &Device, other: &Device| one.is_alike(other) && one.name != other.name;
    let mut of_it: Vec<&File> = Vec::new();
    let mut warnings = Vec::new();
    for file in files {
        let Some(index) = file.tuning.points.iter().position(&is_of_it) else { continue };
        let second = &file.tuning.device;
        let other = of_it.iter().find(|other| is_mixed(&other.tuning.device, second));
        warnings.extend(other.map(|other| {
            let path = path::shown(&other.source.path).display().to_string();
            let Device { name: first, capability, sms, .. } = &other.tuning.device;
            let (capability, sms, span) = (*capability, *sms, file.span(index, PointKey::Plugin));
            GpusCountAsOne { name, first, second: &second.name, capability, sms, path, span }.into()
        }));
        of_it.push(file);
    }
    warnings
}

struct RemainingRoom {
    points: usize,
    extents: usize,
    /// Bytes of attributes.
    bytes: usize,
}

impl RemainingRoom {
    fn takes(&mut self, point: &TunedPoint) -> bool {
        let extents = self.extents.checked_sub(point.shapes.iter().map(Vec::len).sum());
        let bytes = self.bytes.checked_sub(point.attribute_bytes());
        match (self.points.checked_sub(1), extents, bytes) {
            (Some(points), Some(extents), Some(bytes)) => {
                *self = RemainingRoom { points, extents, bytes };
                true
            }
            _ => false,
        }
    }
}

/// `None` above the maximum kinds of GPUs.
fn place<'t>(tuning: &'t mut Vec<TunedDevice>, device: &Device) -> Option<&'t mut TunedDevice> {
    let capability = u16::from(device.capability.major) * 10 + u16::from(device.capability.minor);
    let is_it = |known: &TunedDevice| (known.capability, known.sms) == (capability, device.sms);
    let place = match tuning.iter().position(is_it) {
        Some(place) => place,
        None if tuning.len() >= MAX_TUNED_DEVICES => return None,
        None => {
            let (name, sms) = (device.name.clone(), device.sms);
            tuning.push(TunedDevice { name, capability, sms, points: Vec::new() });
            tuning.len() - 1
        }
    };
    tuning.get_mut(place)
}

fn of_point(
    subject: &Subject,
    file: &File,
    index: usize,
    point: &Point,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<TunedPoint> {
    let (plugin, name) = (&subject.plugin, point.plugin.as_str());
    let resolved = match resolve_query(subject, &point.query) {
        Ok(resolved) => resolved,
        Err(mistakes) => {
            diagnostics.extend(mistakes.into_iter().map(
                |Mistake { part, name: key, diagnostic, .. }| {
                    let span = file.span(index, PointKey::Query(part, &key));
                    StalePoint { name, why: diagnostic.message, span, notes: diagnostic.notes }.into()
                },
            ));
            return None;
        }
    };
    let shapes = match shapes(subject, &resolved) {
        Ok(shapes) => shapes,
        Err(why) => {
            let span = file.span(index, PointKey::Header);
            diagnostics.push(StalePoint { name, why, span, notes: Vec::new() }.into());
            return None;
        }
    };
    let node = resolved.signature();
    let mut times: Vec<(u32, f64)> = Vec::new();
    for &(id, microseconds) in &point.microseconds {
        let mut rows = (0..).zip(&plugin.variants);
        match rows.find(|(_, variant)| variant.id == id && node.is_served_by(variant)) {
            Some((row, _)) => times.push((row, microseconds)),
            None => {
                let why = match plugin.variants.iter().any(|variant| variant.id == id) {
                    true => "no longer supports such a node",
                    false => "no longer exists",
                };
                diagnostics.push(
                    MissingVariant { id, name, why, span: file.span(index, PointKey::Variant(id)) }.into(),
                );
            }
        }
    }
    let mut ranking = ranked(times);
    ranking.truncate(MAX_RANKED);
    let first = plugin.variants.get(*ranking.first()? as usize)?;
    let is_compiled_for = |index: u32| first.specialized.iter().any(|(known, _)| *known == index);
    let counts = |index: u32| plugin.timing.as_ref().is_none_or(|timing| timing.contains(&index));
    let attributes = (0..).zip(&resolved.attributes);
    let attributes = attributes.filter(|(index, _)| counts(*index) && !is_compiled_for(*index));
    let attributes: Vec<(u32, Value)> = attributes.map(|(index, value)| (index, value.clone())).collect();
    Some(TunedPoint { attributes, shapes, ranking })
}

/// Fastest rows ([`ALIKE`]) keep their order.
pub(super) fn ranked(mut times: Vec<(u32, f64)>) -> Vec<u32> {
    times.sort_by_key(|(row, _)| *row);
    let mut ranking = Vec::new();
    while let Some(least) = times.iter().map(|(_, time)| *time).min_by(f64::total_cmp) {
        let place = times.iter().position(|(_, time)| *time <= least * ALIKE).unwrap_or_default();
        ranking.push(times.remove(place).0);
    }
    ranking
}

/// Fails with the runtime's reason.
fn shapes(subject: &Subject, resolved: &ResolvedQuery) -> Result<Vec<Vec<i64>>, String> {
    let outputs = match resolved.unmet(subject) {
        Some(why) => Err(why),
        None => resolved.outputs(&subject.plugin),
    };
    Ok([resolved.inputs.clone(), outputs.map_err(|why| why.to_string())?].concat())
}
