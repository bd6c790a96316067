//! The baselines of `cargo xtask bench kernels` match the plugins' references: PyTorch on the CPU, Triton interpreted.

use cubinder_skip::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

fn variables() -> Option<[String; 3]> {
    let value = |name| std::env::var(name).ok();
    Some([
        value("CUBINDER_TEST_COMPILERS")?,
        value("CUBINDER_TEST_PYTORCH")?,
        value("CUBINDER_TEST_PYTHONPATH")?,
    ])
}

fn package(environment: &str, name: &str) -> PathBuf {
    let versions = std::fs::read_dir(Path::new(environment).join("lib")).unwrap();
    let folders = versions.map(|version| version.unwrap().path().join("site-packages").join(name));
    folders.filter(|folder| folder.is_dir()).last().unwrap()
}

#[test]
fn the_rivals_compute_what_the_plugins_are_to_compute() {
    let Some([compilers, pytorch, packages]) = variables() else {
        return skip("the environments of Triton and PyTorch are not set; `cargo xtask test` sets them");
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(package(&compilers, "triton"), folder.path().join("triton")).unwrap();
    let mut command = Command::new(Path::new(&pytorch).join("bin/python"));
    command.args(["-m", "kernel_bench.check"]).arg(root.join("tests/data/testing/shipped"));
    command.current_dir(root.join("xtask/python")).env("TRITON_INTERPRET", "1");
    command.env("PYTHONPATH", format!("{}:{packages}", folder.path().display()));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONNOUSERSITE", "1");
    command.env("LD_LIBRARY_PATH", Path::new(&pytorch).join("stand-ins"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("all operators were tried"), "{said}");
}
