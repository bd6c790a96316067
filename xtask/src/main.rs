//! Set-up, demo, tests and benchmarks of this repository.
fn main() {}
