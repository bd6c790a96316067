//! What fuzzing runs: one [`Target`] for each reader of text or bytes that a stranger may have written.
//!
//! Owns what is claimed of every input (the bodies of the targets: no panic, no run over [`LIMIT`], and what each says at its
//! top), where inputs begin ([`seeds`]), and how texts are changed ([`mutate`]). Two programs run it: libFuzzer, with a nightly
//! compiler (`cargo xtask fuzz`), and an ordinary test that replays seeds and corpus with the stable one. Never knows libFuzzer.
//!
//! A new target is a module here with a `TARGET`, a line in [`TARGETS`], a dictionary, and a program in `fuzz/`.

// A claim that does not hold is told by a panic: libFuzzer and test runners know no other way.
#![allow(clippy::expect_used, clippy::panic)]

mod bundles;
pub mod cases;
pub mod config;
pub mod container;
pub mod cuda;
pub mod expression;
pub mod manifest;
pub mod mutate;
pub mod seeds;
mod show;

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The longest that one input may take.
pub const LIMIT: Duration = Duration::from_secs(1);

/// Every target, by name.
pub static TARGETS: [&Target; 6] = [
    &cases::TARGET,
    &config::TARGET,
    &container::TARGET,
    &cuda::TARGET,
    &expression::TARGET,
    &manifest::TARGET,
];

/// Something that takes any bytes.
pub struct Target {
    /// Its name: that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Runs one input. Panics where a claim does not hold.
    pub run: fn(&[u8]),
    /// Inputs to begin with, made from the files of the repository.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that mean something to the reader, in libFuzzer's form.
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

    /// The words of the dictionary.
    pub fn words(&self) -> &[Vec<u8>] {
        self.words.get_or_init(|| mutate::dictionary(self.dictionary).expect("the dictionary is well formed"))
    }

    /// Runs one input and panics where it takes longer than [`LIMIT`]. Time goes by for other reasons than the input on a machine
    /// that is shared, so a run that was too long is repeated: what the input needs is the shortest of three.
    pub fn run_in_time(&self, bytes: &[u8]) {
        let run = || {
            let started = Instant::now();
            (self.run)(bytes);
            started.elapsed()
        };
        let first = run();
        if first <= LIMIT {
            return;
        }
        let shortest = first.min(run()).min(run());
        assert!(shortest <= LIMIT, "{}: {} bytes take {shortest:?}, over {LIMIT:?}", self.name, bytes.len());
    }
}
