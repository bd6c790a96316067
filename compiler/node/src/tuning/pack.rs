//! What files of tuning say of plugins, held against these and put into their models.
//!
//! Owns when a point is stale: when its plugin is another by now. That is a warning, and the point is left out: who changed a plugin has to compile it
//! before it can be measured again. Points of plugins that are not at hand are passed over, because libraries share files.

use cubinder_expr::Value;
use cubinder_launch::{Facts, Signature, Steps, output_shapes};
use cubinder_model::validate::{
    MAX_RANKED, MAX_TUNED_BYTES, MAX_TUNED_DEVICES, MAX_TUNED_EXTENTS, MAX_TUNED_POINTS,
};
use cubinder_model::{Plugin, TunedDevice, TunedPoint};

use super::code::subject_of;
use super::{ALIKE, Device, File, Point};
use crate::diagnostic::{Diagnostic, Span, fold};
use crate::eval::{Stated, Subject, state, unmet};
use crate::path;
use crate::query::Mistake;

const HELP: &str = "measure again with `cubinder tune`, or take out what is stale";

/// Gives a plugin what the files say of it, in place of what it had.
#[must_use]
pub fn pack(files: &[File], plugin: &mut Plugin) -> Vec<Diagnostic> {
    let (tuning, told) = of_plugin(files, plugin);
    plugin.tuning = tuning;
    fold(told, |_| true)
}

/// The versions of a library's plugins that were measured and are not there; `plugins` are all of it.
#[must_use]
pub fn other_versions(files: &[File], plugins: &[&Plugin]) -> Vec<Diagnostic> {
    let points = files.iter().flat_map(|file| (0..).zip(&file.tuning.points).map(move |it| (file, it)));
    let told = points.filter_map(|(file, (index, point))| another_version(file, index, point, plugins));
    fold(told.collect(), |_| true)
}

/// That none of the versions of a plugin is the one that was measured.
fn another_version(file: &File, index: usize, point: &Point, plugins: &[&Plugin]) -> Option<Diagnostic> {
    let named = plugins.iter().filter(|plugin| plugin.full_name() == point.plugin);
    let versions: Vec<&str> = named.map(|plugin| plugin.version.as_str()).collect();
    if versions.is_empty() || versions.contains(&point.version.as_str()) {
        return None;
    }
    let message =
        format!("version `{}` of `{}` was measured, and is not compiled", point.version, point.plugin);
    let label = format!("compiled is version `{}`", versions.join("`, `"));
    Some(Diagnostic::warning(message).at(file.version_span(index), label).help(HELP))
}

fn of_plugin(files: &[File], plugin: &Plugin) -> (Vec<TunedDevice>, Vec<Diagnostic>) {
    let name = plugin.full_name();
    let is_of_it = |point: &Point| point.plugin == name && point.version == plugin.version;
    let mut told = Vec::new();
    let mut tuning: Vec<TunedDevice> = Vec::new();
    if !files.iter().any(|file| file.tuning.points.iter().any(is_of_it)) {
        return (tuning, told);
    }
    told.extend(mixed(files, &name, is_of_it));
    let subject = subject_of(plugin);
    let mut room = Room { points: MAX_TUNED_POINTS, extents: MAX_TUNED_EXTENTS, bytes: MAX_TUNED_BYTES };
    for file in files {
        let of_it = file.tuning.points.iter().enumerate().filter(|(_, point)| is_of_it(point));
        for (index, point) in of_it {
            let Some(packed) = of_point(&subject, file, index, point, &mut told) else { continue };
            let device = place(&mut tuning, &file.tuning.device);
            match device.filter(|_| room.takes(&packed)) {
                Some(device) => device.points.push(packed),
                None => {
                    told.push(too_many(&name, file.plugin_span(index)));
                    return (tuning, told);
                }
            }
        }
    }
    (tuning, told)
}

/// What was measured on different GPUs, and counts for the same ones.
fn mixed(files: &[File], name: &str, is_of_it: impl Fn(&Point) -> bool) -> Vec<Diagnostic> {
    let is_mixed = |one: &Device, other: &Device| one.is_alike(other) && one.name != other.name;
    let mut of_it: Vec<&File> = Vec::new();
    let mut told = Vec::new();
    for file in files {
        let Some(index) = file.tuning.points.iter().position(&is_of_it) else { continue };
        let other = of_it.iter().find(|other| is_mixed(&other.tuning.device, &file.tuning.device));
        told.extend(other.map(|other| count_as_one(name, other, file, index)));
        of_it.push(file);
    }
    told
}

fn count_as_one(name: &str, other: &File, file: &File, index: usize) -> Diagnostic {
    let (first, second) = (&other.tuning.device, &file.tuning.device);
    let message =
        format!("`{name}` was measured on {} and on {}, which count as one", first.name, second.name);
    Diagnostic::warning(message)
        .at(file.plugin_span(index), format!("the first point of {}", second.name))
        .note(format!(
            "both have compute capability {} and {} multiprocessors; that of {} is `{}`, whose points go first",
            first.capability,
            first.sms,
            first.name,
            path::shown(&other.source.path).display()
        ))
        .help("name the file alone that is of the GPU on which the library runs")
}

/// How much more of a plugin can be packed.
struct Room {
    points: usize,
    extents: usize,
    /// Of attributes.
    bytes: usize,
}

impl Room {
    fn takes(&mut self, point: &TunedPoint) -> bool {
        let extents = self.extents.checked_sub(point.shapes.iter().map(Vec::len).sum());
        let bytes = self.bytes.checked_sub(point.attribute_bytes());
        match (self.points.checked_sub(1), extents, bytes) {
            (Some(points), Some(extents), Some(bytes)) => {
                *self = Room { points, extents, bytes };
                true
            }
            _ => false,
        }
    }
}

fn too_many(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(format!("more was measured of `{name}` than a plugin carries"))
        .at(span, "the first point that is too many")
        .note(format!(
            "a plugin carries at most {MAX_TUNED_POINTS} points for {MAX_TUNED_DEVICES} kinds of GPUs, with {MAX_TUNED_EXTENTS} extents and {MAX_TUNED_BYTES} bytes of attributes"
        ))
        .help("take out points whose shapes are near to others'")
}

/// What there is for GPUs of this kind; none where there are too many kinds.
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

/// A point as the model has it; none where it is stale.
fn of_point(
    subject: &Subject,
    file: &File,
    index: usize,
    point: &Point,
    told: &mut Vec<Diagnostic>,
) -> Option<TunedPoint> {
    let plugin = &subject.plugin;
    let stale = |why: &str, span: Span| {
        let message = format!("a measured node of `{}` is left out: {why}", point.plugin);
        Diagnostic::warning(message).at(span, "").help(HELP)
    };
    let stated = match state(subject, &point.query()) {
        Ok(stated) => stated,
        Err(mistakes) => {
            let of_mistake = |Mistake { part, name, diagnostic }: Mistake| {
                let warning = stale(&diagnostic.message, file.part_span(index, part, &name));
                diagnostic.notes.into_iter().fold(warning, Diagnostic::note)
            };
            told.extend(mistakes.into_iter().map(of_mistake));
            return None;
        }
    };
    let shapes = match shapes(subject, &stated) {
        Ok(shapes) => shapes,
        Err(why) => {
            told.push(stale(&why, file.header_span(index)));
            return None;
        }
    };
    let node = Signature { attributes: &stated.attributes, types: &stated.types, formats: &stated.formats };
    let mut times: Vec<(u32, f64)> = Vec::new();
    for &(id, microseconds) in &point.microseconds {
        let mut rows = (0..).zip(&plugin.variants);
        match rows.find(|(_, variant)| variant.id == id && node.is_served_by(variant)) {
            Some((row, _)) => times.push((row, microseconds)),
            None => told.push(no_variant(plugin, id, file.variant_span(index, id))),
        }
    }
    let mut ranking = ranked(times);
    ranking.truncate(MAX_RANKED);
    let first = plugin.variants.get(*ranking.first()? as usize)?;
    let is_compiled_for = |index: u32| first.specialized.iter().any(|(known, _)| *known == index);
    let counts = |index: u32| plugin.timing.as_ref().is_none_or(|timing| timing.contains(&index));
    let attributes = (0..).zip(&stated.attributes);
    let attributes = attributes.filter(|(index, _)| counts(*index) && !is_compiled_for(*index));
    let attributes: Vec<(u32, Value)> = attributes.map(|(index, value)| (index, value.clone())).collect();
    Some(TunedPoint { attributes, shapes, ranking })
}

/// Rows by their times, the fastest first; of those that take as long as the fastest of them ([`ALIKE`]) the manifest's first.
pub(super) fn ranked(mut times: Vec<(u32, f64)>) -> Vec<u32> {
    times.sort_by_key(|(row, _)| *row);
    let mut ranking = Vec::new();
    while let Some(least) = times.iter().map(|(_, time)| *time).min_by(f64::total_cmp) {
        let place = times.iter().position(|(_, time)| *time <= least * ALIKE).unwrap_or_default();
        ranking.push(times.remove(place).0);
    }
    ranking
}

/// The shapes of the inputs, then of the outputs.
///
/// # Errors
/// Why the plugin takes no such node.
fn shapes(subject: &Subject, stated: &Stated) -> Result<Vec<Vec<i64>>, String> {
    if let Some(why) = unmet(subject, stated) {
        return Err(why.to_string());
    }
    let inputs: Vec<&[i64]> = stated.inputs.iter().map(Vec::as_slice).collect();
    let values: Vec<&[i64]> = stated.values.iter().map(Vec::as_slice).collect();
    let facts =
        Facts { attributes: &stated.attributes, shapes: &inputs, values: &values, ..Facts::default() };
    let outputs = output_shapes(&subject.plugin, &facts, &mut Steps::default());
    Ok(stated.inputs.iter().cloned().chain(outputs.map_err(|why| why.to_string())?).collect())
}

/// That a variant is not there any more, or not for such a node. The others of the point count.
fn no_variant(plugin: &Plugin, id: i32, span: Span) -> Diagnostic {
    let name = plugin.full_name();
    let message = match plugin.variants.iter().any(|variant| variant.id == id) {
        true => format!("variant {id} of `{name}` was measured, and does not serve such a node any more"),
        false => format!("variant {id} of `{name}` was measured, and there is none any more"),
    };
    Diagnostic::warning(message).at(span, "").help(HELP)
}
