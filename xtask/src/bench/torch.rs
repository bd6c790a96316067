use std::path::Path;

use anyhow::Result;
use fs_err as fs;

use super::measure;
use crate::files;
use crate::tools::Tools;
use crate::workspace;

const SCRIPTS: [&str; 4] = ["torch_bench.py", "bench_run.py", "gpu_test.py", "cuda_driver.py"];
const PACKAGE: &str = "xtask/packaging/python/cubinder";
const RUN: &str =
    "#!/bin/sh\ncd \"$(dirname \"$0\")\" && exec \"${PYTHON:-python3}\" torch_bench.py . --out out\n";

pub(super) fn prepare(tools: &Tools, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    tools.compile(folder, "add_one", &["sm_90", "compute_80"], &["xtask/bench/add_one.toml"])?;
    let root = workspace::root();
    for path in files::list(&root.join(PACKAGE))? {
        if path.extension().is_some_and(|end| end == "py") {
            files::write(&folder.join("cubinder").join(files::name(&path)?), fs::read(&path)?)?;
        }
    }
    for script in SCRIPTS {
        fs::copy(root.join("xtask/python").join(script), folder.join(script))?;
    }
    // The package reads libraries with it.
    fs::copy(&tools.artifacts.compiler, folder.join("program"))?;
    fs::copy(&tools.artifacts.torch_kernels, folder.join("libcubinder_torch.so"))?;
    let versions = serde_json::json!({ "versions": measure::versions(tools)? });
    files::write(&folder.join("torch.json"), &(versions.to_string() + "\n"))?;
    files::write(&folder.join("run.sh"), RUN)
}
