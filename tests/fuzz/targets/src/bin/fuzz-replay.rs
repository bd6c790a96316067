//! Runs inputs without libFuzzer and prints their times: `fuzz-replay TARGET FILE...`.

use std::error::Error;
use std::time::Instant;

use cubinder_fuzz_targets::TARGETS;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next().ok_or("usage: fuzz-replay TARGET FILE...")?;
    let target = TARGETS.iter().find(|target| name == target.name);
    let target = target.ok_or_else(|| format!("unknown target `{}`", name.display()))?;
    for path in arguments {
        let bytes = std::fs::read(&path)?;
        let started = Instant::now();
        (target.run)(&bytes);
        println!("{:8.1} ms  {}", started.elapsed().as_secs_f64() * 1e3, path.display());
    }
    Ok(())
}
