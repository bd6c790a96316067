//! What fuzzing runs: one [`Target`] for each reader of text or bytes that a stranger may have written.
//!
//! Owns what is claimed of every input (the bodies of the targets: no panic, no run over [`LIMIT`], and what each says at its
//! top), where inputs begin ([`seeds`]), and how texts are changed ([`mutate`]). Two programs run it: libFuzzer, with a nightly
//! compiler (`cargo xtask fuzz`), and an ordinary test that replays seeds and corpus with the stable one. Never knows libFuzzer.
//!
//! A new target is a module here with a `TARGET`, a line in [`TARGETS`], a dictionary, and a program in `tests/fuzz/`.

// A claim that does not hold is told by a panic: libFuzzer and test runners know no other way.
#![allow(clippy::expect_used, clippy::panic)]

mod bundles;
pub mod cases;
mod code;
pub mod config;
pub mod container;
pub mod cuda;
pub mod expression;
pub mod manifest;
pub mod mutate;
pub mod numpy;
pub mod onnx;
pub mod prover;
pub mod seeds;
mod show;
pub mod tuning;

/// Cubins of other compilers.
pub mod cubin {
    pub use crate::code::CUBIN as TARGET;
}
/// PTX of other compilers.
pub mod ptx {
    pub use crate::code::PTX as TARGET;
}
/// What Triton writes beside its code.
pub mod triton {
    pub use crate::code::TRITON as TARGET;
}

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The longest that one input may take: a second, in the program that people run. What libFuzzer adds to a program makes these
/// readers about 8 times slower, and without optimisation they are slower still. Both have debug assertions: there it is 4 seconds, which is the stricter.
pub const LIMIT: Duration = match cfg!(debug_assertions) {
    true => Duration::from_secs(4),
    false => Duration::from_secs(1),
};

/// Every target, by name.
pub static TARGETS: [&Target; 13] = [
    &cases::TARGET,
    &config::TARGET,
    &container::TARGET,
    &cubin::TARGET,
    &cuda::TARGET,
    &expression::TARGET,
    &manifest::TARGET,
    &numpy::TARGET,
    &onnx::TARGET,
    &prover::TARGET,
    &ptx::TARGET,
    &triton::TARGET,
    &tuning::TARGET,
];

/// Something that takes any bytes.
pub struct Target {
    /// Its name: that of its folder in `tests/fuzz/corpus`.
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

    /// Runs one input and panics where it takes longer than [`LIMIT`]. On a machine that is shared time goes by for other reasons
    /// than the input, so a run that was too long is repeated: what the input needs is the least time on a processor of two runs.
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

/// How long this thread has run on a processor (the first number of Linux's `schedstat`, nanoseconds).
fn cpu_time() -> Duration {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts the time of threads");
    let nanoseconds = text.split(' ').next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}
