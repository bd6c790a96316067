//! Fuzz targets: one [`Target`] for each reader of untrusted input.
//!
//! Owns their claims (no panic, no run over [`LIMIT`]), [`seeds`] and mutations ([`mutate`]), without libFuzzer.
//!
//! A target is a module with a `TARGET`, a line in [`TARGETS`], a dictionary, a program in `tests/fuzz/`.

#![allow(clippy::expect_used, clippy::panic)]

mod bundles;
pub mod cases;
mod code;
pub mod config;
pub mod container;
pub mod cuda;
pub mod expression;
pub mod interface;
pub mod manifest;
pub mod mutate;
pub mod numpy;
pub mod onnx;
pub mod prover;
pub mod remote;
pub mod seeds;
mod show;
pub mod tuning;

/// External cubins.
pub mod cubin {
    pub use crate::code::CUBIN as TARGET;
}
/// External PTX.
pub mod ptx {
    pub use crate::code::PTX as TARGET;
}
/// Triton's metadata files.
pub mod triton {
    pub use crate::code::TRITON as TARGET;
}

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Per input; 4 times with debug assertions. libFuzzer makes readers 8 times slower.
pub const LIMIT: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(4),
    false => Duration::from_secs(1),
};

/// Every target, by name.
pub static TARGETS: [&Target; 15] = [
    &cases::TARGET,
    &config::TARGET,
    &container::TARGET,
    &cubin::TARGET,
    &cuda::TARGET,
    &expression::TARGET,
    &interface::TARGET,
    &manifest::TARGET,
    &numpy::TARGET,
    &onnx::TARGET,
    &prover::TARGET,
    &ptx::TARGET,
    &remote::TARGET,
    &triton::TARGET,
    &tuning::TARGET,
];

/// A fuzz target.
pub struct Target {
    /// The name, also of its folder in `tests/fuzz/corpus`.
    pub name: &'static str,
    /// Runs one input. Panics if a claim is violated.
    pub run: fn(&[u8]),
    /// Initial inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    dictionary: &'static str,
    words: OnceLock<Vec<Vec<u8>>>,
}

impl Target {
    const fn new(
        name: &'static str,
        run: fn(&[u8]),
        seeds: fn() -> Vec<Vec<u8>>,
        dictionary: &'static str,
    ) -> Target {
        Target { name, run, seeds, dictionary, words: OnceLock::new() }
    }

    /// Returns the dictionary's words.
    pub fn words(&self) -> &[Vec<u8>] {
        self.words.get_or_init(|| mutate::dictionary(self.dictionary).expect("the dictionary is well formed"))
    }

    /// Runs one input, twice if over [`LIMIT`]: machines are shared. Panics if a claim is violated or both are over.
    pub fn run_in_time(&self, bytes: &[u8]) {
        let started = Instant::now();
        (self.run)(bytes);
        if started.elapsed() <= LIMIT {
            return;
        }
        let again = || {
            let started = cpu_time();
            (self.run)(bytes);
            cpu_time().saturating_sub(started)
        };
        let least = again().min(again());
        assert!(least <= LIMIT, "{}: {} bytes take {least:?}, over {LIMIT:?}", self.name, bytes.len());
    }
}

/// Nanoseconds in Linux's `schedstat`.
fn cpu_time() -> Duration {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts the time of threads");
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}
