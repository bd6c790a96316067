//! `cubinder.torch` of the wheel with PyTorch on the CPU (on a GPU `xtask/python/torch_check.py`).

use std::path::Path;

use anyhow::Result;
use cubinder_skip::skip;
use cubinder_tests::installed::{Installed, capture};

const PLUGINS: [&str; 5] = [
    "manifests/elemwise_add_plugin_.toml",
    "manifests/non_zero_plugin.toml",
    "tests/data/run/attributes.toml",
    "tests/data/run/circ_pad_plugin.toml",
    "tests/data/run/stretch.toml",
];

#[test]
fn plugins_are_operators_that_export() -> Result<()> {
    let (Some(installed), Ok(pytorch)) = (Installed::linked_wheel()?, std::env::var("CUBINDER_TEST_PYTORCH"))
    else {
        skip("`CUBINDER_TEST_WHEEL` or `CUBINDER_TEST_PYTORCH` is not set; `cargo xtask test` sets it");
        return Ok(());
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let out = installed.work("out")?;
    let compile = |manifests: &[&str], name: &str| {
        let mut command = installed.command("cubinder");
        command.current_dir(&root).arg("compile").args(manifests).args(["--target", "sm_89", "--name", name]);
        capture(command.arg("--out-dir").arg(&out))
    };
    compile(&PLUGINS, "all")?;
    compile(&["tests/data/run/circ_pad_plugin.toml"], "other")?;
    let mut command = installed.command(Path::new(&pytorch).join("bin/python"));
    command.arg(root.join("tests/clients/torch_operators.py"));
    command.args([out.join("liball.so"), out.join("libother.so"), root.join("README.md"), out.clone()]);
    command.env("LD_LIBRARY_PATH", format!("{pytorch}/stand-ins")).env("PYTHONPATH", installed.packages()?);
    let said = capture(&mut command)?;
    assert!(said.stdout.contains("all checks passed"), "{}", said.stdout);
    let mut list = installed.command("cubinder");
    list.args(["onnx", "list"]).arg(out.join("net.onnx")).arg("--plugins").arg(out.join("liball.so"));
    let said = capture(&mut list)?;
    assert!(said.stdout.contains("4 plugin nodes"), "{}", said.stdout);
    Ok(())
}
