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
mod keep;
mod pack;
mod read;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_packing;
mod write;

use std::ops::Range;
use std::sync::Arc;

use cubinder_expr::Value;
use cubinder_model::fit::ComputeCapability;

use crate::diagnostic::{Source, Span};
use crate::query::{Given, Part, Query};

pub use cases::{cases, cases_path};
pub use code::{Changed, changed, code_of};
pub use keep::{Replaced, file_name, is_same_node, known, merged, open, prepare, save};
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
    /// The plugin: `namespace::name`, or its name where it has no namespace ([`cubinder_model::Plugin::full_name`]).
    pub plugin: String,
    /// Its version.
    pub version: String,
    /// Where the shapes come from, for people.
    pub case: Option<String>,
    /// What the type parameters are; where one is not named, what the plugin's first variant with the others has.
    pub types: Vec<(String, String)>,
    /// What the format parameters are, likewise.
    pub formats: Vec<(String, String)>,
    /// The attributes; one that is not named has its default. A writer names them all, because defaults change.
    pub attributes: Vec<(String, Value)>,
    /// The shapes of the inputs.
    pub shapes: Vec<(String, Vec<i64>)>,
    /// What shape inputs hold.
    pub values: Vec<(String, Vec<i64>)>,
    /// The code that was measured ([`code_of`]): where it is other code by now, compiling says so.
    pub code: Option<String>,
    /// How long each variant took, by its id. Those that cannot run for these shapes are not there.
    pub microseconds: Vec<(i32, f64)>,
}

/// How far behind the fastest a variant may be and still count as one of the fastest: what is less is noise.
pub const ALIKE: f64 = 1.01;

impl Point {
    /// The node that was measured, as `cubinder eval` asks for one.
    #[must_use]
    pub fn query(&self) -> Query {
        let given = |(name, value): &(String, Value)| (name.clone(), Given::Value(value.clone()));
        Query {
            shapes: self.shapes.clone(),
            values: self.values.clone(),
            attributes: self.attributes.iter().map(given).collect(),
            types: self.types.clone(),
            formats: self.formats.clone(),
            ..Query::default()
        }
    }

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
    /// For each point where its parts stand.
    places: Vec<Places>,
}

/// Where the parts of a point stand.
#[derive(Debug, Clone, PartialEq, Default)]
struct Places {
    /// Its header.
    header: Range<usize>,
    plugin: Range<usize>,
    version: Range<usize>,
    parts: Vec<(Part, String, Range<usize>)>,
    variants: Vec<(i32, Range<usize>)>,
}

impl File {
    fn places(&self, point: usize) -> Places {
        self.places.get(point).cloned().unwrap_or_default()
    }

    /// Where a point begins.
    #[must_use]
    pub fn header_span(&self, point: usize) -> Span {
        Span::new(&self.source, self.places(point).header)
    }

    /// Where a point names its plugin.
    #[must_use]
    pub fn plugin_span(&self, point: usize) -> Span {
        Span::new(&self.source, self.places(point).plugin)
    }

    /// Where a point names its plugin's version.
    #[must_use]
    pub fn version_span(&self, point: usize) -> Span {
        Span::new(&self.source, self.places(point).version)
    }

    /// Where a point says how long a variant took; its header where it does not.
    #[must_use]
    pub fn variant_span(&self, point: usize, id: i32) -> Span {
        let places = self.places(point);
        let found = places.variants.iter().find(|(known, _)| *known == id).map(|(_, range)| range.clone());
        Span::new(&self.source, found.unwrap_or(places.header))
    }

    /// Where a point says something of a node, or something alike; its header where it does not.
    #[must_use]
    pub fn part_span(&self, point: usize, part: Part, name: &str) -> Span {
        let places = self.places(point);
        let found = places.parts.iter().find(|(of, known, _)| *of == part && known == name);
        Span::new(&self.source, found.map_or(places.header, |(_, _, range)| range.clone()))
    }
}
