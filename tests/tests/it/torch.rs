//! `cubinder.torch` of the wheel with PyTorch on the CPU (on a GPU `xtask/python/torch_check.py`).

use std::path::{Path, PathBuf};

use anyhow::Result;
use cubinder_skip::skip;
use cubinder_tests::fake_driver::{Age, driver_folder};
use cubinder_tests::installed::{Installed, capture};

const PLUGINS: [&str; 5] = [
    "manifests/elemwise_add_plugin_.toml",
    "manifests/non_zero_plugin.toml",
    "tests/data/run/attributes.toml",
    "tests/data/run/circ_pad_plugin.toml",
    "tests/data/run/stretch.toml",
];

struct PyTorch {
    installed: Installed,
    pytorch: String,
    root: PathBuf,
    out: PathBuf,
}

impl PyTorch {
    fn find() -> Result<Option<PyTorch>> {
        let found = Installed::linked_wheel()?.zip(std::env::var("CUBINDER_TEST_PYTORCH").ok());
        let Some((installed, pytorch)) = found else {
            skip("`CUBINDER_TEST_WHEEL` or `CUBINDER_TEST_PYTORCH` is not set; `cargo xtask test` sets it");
            return Ok(None);
        };
        let (root, out) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), installed.work("out")?);
        Ok(Some(PyTorch { installed, pytorch, root, out }))
    }

    fn compile(&self, manifests: &[&str], name: &str) -> Result<PathBuf> {
        let mut command = self.installed.command("cubinder");
        command.current_dir(&self.root).arg("compile").args(manifests).args(["--target", "sm_89"]);
        capture(command.args(["--name", name]).arg("--out-dir").arg(&self.out))?;
        Ok(self.out.join(format!("lib{name}.so")))
    }

    /// `libraries` are more folders.
    fn check(&self, script: &str, arguments: &[&Path], libraries: &[&Path]) -> Result<()> {
        let mut command = self.installed.command(Path::new(&self.pytorch).join("bin/python"));
        command.arg(self.root.join("tests/clients").join(script)).args(arguments);
        let stand_ins = Path::new(&self.pytorch).join("stand-ins");
        let folders = std::env::join_paths(libraries.iter().copied().chain([stand_ins.as_path()]))?;
        command.env("LD_LIBRARY_PATH", folders).env("PYTHONPATH", self.installed.packages()?);
        let said = capture(&mut command)?;
        assert!(said.stdout.contains("all checks passed"), "{}", said.stdout);
        Ok(())
    }
}

#[test]
fn kernels_run_without_python() -> Result<()> {
    let Some(pytorch) = PyTorch::find()? else { return Ok(()) };
    let library =
        pytorch.compile(&["tests/data/torch/scaled.toml", "tests/data/torch/exact.toml"], "scaled")?;
    pytorch.check("torch_kernels.py", &[&library], &[&driver_folder(Age::New)?])
}

#[test]
fn plugins_are_operators_that_export() -> Result<()> {
    let Some(pytorch) = PyTorch::find()? else { return Ok(()) };
    let (all, out) = (pytorch.compile(&PLUGINS, "all")?, &pytorch.out);
    let other = pytorch.compile(&["tests/data/run/circ_pad_plugin.toml"], "other")?;
    pytorch.check("torch_operators.py", &[&all, &other, &pytorch.root.join("README.md"), out], &[])?;
    let installed = &pytorch.installed;
    let mut list = installed.command("cubinder");
    list.args(["onnx", "list"]).arg(out.join("net.onnx")).arg("--plugins").arg(&all);
    let said = capture(&mut list)?;
    assert!(said.stdout.contains("4 plugin nodes"), "{}", said.stdout);
    Ok(())
}
