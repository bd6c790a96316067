//! Tuning: how long each variant of a plugin takes for some shapes on one GPU, measured.
//!
//! Owns the form of `tuning/*.toml` ([`read()`], [`write()`]) and what becomes of it in a plugin's model ([`pack`]). `cubinder tune` writes such files.
//! Never measures anything, and never decides which variant runs: that is [`cubinder_launch`]'s.
//!
//! ```toml
//! schema = 1
//!
//! [device]
//! name = "NVIDIA H200"
//! capability = "9.0"
//! sms = 132
//! driver = 13000                       # the newest CUDA that the driver knows; for readers
//!
//! [[points]]
//! plugin = "cubinder::rms_norm"        # namespace::name
//! version = "1"
//! case = "rows of a large model"       # where the shapes come from; for readers
//! types = { T = "bf16" }
//! attributes = { epsilon = 1e-5 }
//! shapes = { x = [512, 4096], weight = [4096] }
//! microseconds = { 6 = 3.02, 4 = 3.3 } # by the variants' ids
//! ```

mod cases;
mod code;
mod file;
mod pack;
#[cfg(test)]
mod pack_tests;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::ops::Range;
use std::sync::Arc;

use cubinder_model::fit::ComputeCapability;

use crate::diagnostic::{Source, Span};
use crate::query::{Part, Query, read as query_read};

pub use cases::{cases, cases_path};
pub use code::{OutdatedMeasurement, changed, code_of};
pub use file::{ReplacedPoints, file_name, is_same_node, merged, open, prepare, read_for_device, save};
pub use pack::{other_versions, pack};
pub use read::read;
pub use write::write;

/// The edition of the form that [`read()`] understands and [`write()`] writes.
pub const SCHEMA: i64 = 1;

/// What was measured on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// The GPU.
    pub device: Device,
    /// What was measured, in the file's order.
    pub points: Vec<Point>,
}

/// A GPU. What is measured on one holds for all with its compute capability and its number of multiprocessors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// What its driver calls it.
    pub name: String,
    /// Its compute capability.
    pub capability: ComputeCapability,
    /// How many multiprocessors it has.
    pub sms: u32,
    /// The newest CUDA that its driver knows, as `cuDriverGetVersion` says it: 13000 for 13.0.
    pub driver: Option<u32>,
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Device { name, capability, sms, .. } = self;
        write!(f, "{name} (compute capability {capability}, {sms} multiprocessors)")
    }
}

impl Device {
    /// Whether what is measured on one of them counts on the other.
    #[must_use]
    pub fn is_alike(&self, other: &Device) -> bool {
        (self.capability, self.sms) == (other.capability, other.sms)
    }
}

/// How long the variants of a plugin take for one node with its shapes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// The plugin: `namespace::name`, or its name if it has no namespace ([`cubinder_model::Plugin::full_name`]).
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Where the shapes come from, for people.
    pub case: Option<String>,
    /// The node, without alignments and facts about the device. Parameters that it does not name are those of the plugin's first
    /// variant with the others, attributes have their defaults. A writer names all attributes, because defaults change.
    pub query: Query,
    /// The code that was measured ([`code_of`]). Compiling notes that it has changed.
    pub code: Option<String>,
    /// How long each variant took, by its id, without those that cannot run for these shapes.
    pub microseconds: Vec<(i32, f64)>,
}

/// How many times as long as the fastest a variant may take and still count as one of the fastest: less is noise.
pub const ALIKE: f64 = 1.01;

impl Point {
    /// The variants' ids, the fastest first; of those that took equally long, that which is named first.
    #[must_use]
    pub fn ranking(&self) -> Vec<i32> {
        let mut order: Vec<&(i32, f64)> = self.microseconds.iter().collect();
        order.sort_by(|one, other| one.1.total_cmp(&other.1));
        order.into_iter().map(|(id, _)| *id).collect()
    }
}

/// A file that was read: what it says, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// The text.
    pub source: Arc<Source>,
    /// What it says.
    pub tuning: Tuning,
    /// By point.
    places: Vec<Places>,
}

/// The places of the parts of a point.
#[derive(Debug, Clone, PartialEq, Default)]
struct Places {
    header: Range<usize>,
    plugin: Range<usize>,
    version: Range<usize>,
    query: query_read::Places,
    variants: Vec<(i32, Range<usize>)>,
}

/// A part of a point that has a place in the file.
#[derive(Debug, Clone, Copy)]
enum PointKey<'n> {
    Header,
    Plugin,
    Version,
    Query(Part, &'n str),
    Variant(i32),
}

impl File {
    /// The place of a part of a point; the point's header if the part is missing.
    fn span(&self, point: usize, key: PointKey<'_>) -> Span {
        let range = self.places.get(point).map(|places| {
            let found = match key {
                PointKey::Header => None,
                PointKey::Plugin => Some(&places.plugin),
                PointKey::Version => Some(&places.version),
                PointKey::Query(part, name) => {
                    let mut query = places.query.iter();
                    query.find(|it| it.0 == part && it.1 == name).map(|(_, _, range)| range)
                }
                PointKey::Variant(id) => {
                    places.variants.iter().find(|(known, _)| *known == id).map(|(_, range)| range)
                }
            };
            found.unwrap_or(&places.header).clone()
        });
        Span::new(&self.source, range.unwrap_or_default())
    }
}
