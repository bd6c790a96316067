#![no_main]

use cubinder_fuzz_targets as targets;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|bytes: &[u8]| targets::remote::TARGET.run_in_time(bytes));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let written = targets::mutate::words(data, size, max_size, seed, targets::remote::TARGET.words());
    written.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
