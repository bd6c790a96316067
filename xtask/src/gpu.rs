use anyhow::{Result, ensure};
use fs_err as fs;

pub(crate) fn is_present() -> bool {
    fs::read_dir("/proc/driver/nvidia/gpus").is_ok_and(|mut entries| entries.next().is_some())
}

pub(crate) fn require() -> Result<()> {
    ensure!(is_present(), "no GPU here; prepare a folder for another machine with --prepare DIR");
    Ok(())
}
