//! How long each variant of a plugin takes on the GPU at hand, for one node with its shapes.
//!
//! Owns: which variants are measured ([`measure`]), the memory that they share (`memory`), the order of the measurements, and what is
//! made of them ([`Measured`]).
//!
//! Never: no manifest, no file of cases, no file at all, no opinion about what a kernel writes (`cubinder test` has that), no printing, no
//! `unsafe`. What the driver refuses comes back as a value that says which variant it was about.
//!
//! What is measured is the device's own time of a variant's whole run, fills and all launches of it, one run right behind the other
//! (`cubinder_gpu::timing`). So caches hold what the run before left in them, as they hold in an engine what the layer before wrote. All
//! variants take turns, over several rounds, so that a clock that changes meets them alike.

mod measure;
mod memory;

pub use measure::{Bench, Effort, Failure, Measured, Node, Step, Timing, Why, measure};
