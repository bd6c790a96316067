//! `tests/driver-faults` with the stand-in driver; `gpu_faults.py` uses it on a GPU.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use cubinder_skip::skip;
use cubinder_tests::compiled::{Compiled, Recipe};
use cubinder_tests::{driver_faults, fake_driver, player};

const PLUGINS: Recipe<'_> = Recipe { manifests: &["manifests/circ_pad_plugin.toml"], targets: &["sm_89"] };

#[test]
fn calls_of_a_plugin_library_fail_and_those_of_others_do_not() -> Result<()> {
    let python = std::env::var_os("CUBINDER_TEST_PYTHON");
    let (Some(python), Some(compiled)) = (python, Compiled::by(PLUGINS)?) else {
        skip("`cargo xtask test` names Python and the compiler");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let (shim, host) = (folder.path().join("libfaults.so"), folder.path().join("libplayer.so"));
    driver_faults::build(&shim)?;
    player::build(&host)?;
    for pair in &compiled.libraries {
        let mut command = Command::new(&python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("driver-faults/check.py"));
        command.arg(&host).args([&pair.plugins, &pair.runtime]);
        command
            .env("LD_PRELOAD", &shim)
            .env("LD_LIBRARY_PATH", fake_driver::driver_folder(fake_driver::Age::New)?);
        let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let calls: Option<u32> = said.split(' ').next().and_then(|count| count.parse().ok());
        assert!(calls.is_some_and(|calls| calls >= 3), "{said}");
    }
    Ok(())
}

#[test]
fn a_device_without_memory_is_told_from_one_that_has_enough() -> Result<()> {
    let Some(python) = std::env::var_os("CUBINDER_TEST_PYTHON") else {
        skip("`cargo xtask test` names Python");
        return Ok(());
    };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python);
    command.arg(tests.join("driver-faults/memory.py")).arg(tests.join("../xtask/python"));
    let output = command.env("PYTHONDONTWRITEBYTECODE", "1").output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("9 behaviours distinguished"), "{said}");
    Ok(())
}
