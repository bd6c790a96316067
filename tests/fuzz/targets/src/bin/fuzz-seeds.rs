//! Writes a target's seeds into a folder: `fuzz-seeds TARGET FOLDER`.

use std::error::Error;
use std::path::PathBuf;

use cubinder_fuzz_targets::TARGETS;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(name), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: fuzz-seeds TARGET FOLDER".into());
    };
    let target = TARGETS.iter().find(|target| name == target.name);
    let target = target.ok_or_else(|| format!("unknown target `{}`", name.display()))?;
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:04}")), seed)?;
    }
    Ok(())
}
