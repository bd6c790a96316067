#![no_main]

use cubinder_fuzz_targets as targets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| targets::container::TARGET.run_in_time(bytes));
