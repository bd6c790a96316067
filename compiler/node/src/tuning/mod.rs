//! Measured times of variants for some shapes on one GPU. Owns the syntax of `tuning/*.toml` (`docs/tuning-files.md`,
//! [`read()`], [`write()`]) and packing into models ([`pack`]). Never measures or chooses variants: `cubinder tune` and
//! [`cubinder_launch`] do.

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

/// Schema edition of [`read()`] and [`write()`].
pub const SCHEMA: i64 = 1;

/// Measurements on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// GPU.
    pub device: Device,
    /// Measured points, in the file's order.
    pub points: Vec<Point>,
}

/// GPU; measurements apply to all alike ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Driver's name of it.
    pub name: String,
    /// Compute capability.
    pub capability: ComputeCapability,
    /// Number of multiprocessors.
    pub sms: u32,
    /// Driver's newest CUDA version (`cuDriverGetVersion`): 13000 for 13.0.
    pub driver: Option<u32>,
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Device { name, capability, sms, .. } = self;
        write!(f, "{name} (compute capability {capability}, {sms} multiprocessors)")
    }
}

impl Device {
    /// Compares compute capability and number of multiprocessors.
    #[must_use]
    pub fn is_alike(&self, other: &Device) -> bool {
        (self.capability, self.sms) == (other.capability, other.sms)
    }
}

/// Times for one node.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// [`cubinder_model::Plugin::full_name`]: `namespace::name`, or only the name.
    pub plugin: String,
    /// Version.
    pub version: String,
    /// Description of the shapes' origin.
    pub case: Option<String>,
    /// The node, without alignments and device facts. Omitted parameters are the first matching variant's. Writers
    /// name all attributes, because defaults change.
    pub query: Query,
    /// Measured code ([`code_of`]), to detect changes.
    pub code: Option<String>,
    /// Time by variant id.
    pub microseconds: Vec<(i32, f64)>,
}

/// Times up to this multiple of the fastest count as equal.
pub const ALIKE: f64 = 1.01;

impl Point {
    /// Returns the variants' ids, fastest first; ties in order.
    #[must_use]
    pub fn ranking(&self) -> Vec<i32> {
        let mut order: Vec<&(i32, f64)> = self.microseconds.iter().collect();
        order.sort_by(|one, other| one.1.total_cmp(&other.1));
        order.into_iter().map(|(id, _)| *id).collect()
    }
}

/// Tuning file with spans.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// Text.
    pub source: Arc<Source>,
    /// Contents.
    pub tuning: Tuning,
    places: Vec<Places>,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Places {
    header: Range<usize>,
    plugin: Range<usize>,
    version: Range<usize>,
    query: query_read::Places,
    variants: Vec<(i32, Range<usize>)>,
}

#[derive(Debug, Clone, Copy)]
enum PointKey<'n> {
    Header,
    Plugin,
    Version,
    Query(Part, &'n str),
    Variant(i32),
}

impl File {
    /// Falls back to the point's header.
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
