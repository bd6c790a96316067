mod catalogue;
mod options;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use fs_err as fs;

use crate::cases::{self, Case, Form, Maker, Recipe};
use crate::tools::{Network, Tools};
use crate::{files, gpu, process, workspace};

use catalogue::{Sample, samples};
pub(crate) use options::{Mode, Options};

const TARGETS: [&str; 6] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120", "compute_80"];
const SAVED: &str = "cases.json";

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.mode != Mode::Inetdef, "{}", options::WHY_NOT_INETDEF);
    let name = options.which.name();
    let sample =
        &samples()?.remove(&name).with_context(|| format!("`xtask/samples.toml` has no `{name}`"))?;
    for line in options.explained(sample) {
        println!("{line}\n");
    }
    let kept = options.folder(&workspace::root());
    if options.load_engine {
        check_saved(&kept)?;
        let tools = Tools::open()?;
        return show_and_run(&tools, &kept, &plan_in(&kept)?);
    }
    let tools = Tools::open()?;
    let scratch = tempfile::tempdir()?;
    let folder = if options.save_engine { kept } else { scratch.path().to_path_buf() };
    let plan = build_engine(&tools, &name, sample, options, &folder)?;
    if options.save_engine {
        println!("saved {}; run it again: --load_engine --artifacts_dir {0}", folder.display());
    }
    show_and_run(&tools, &folder, &plan)
}

fn build_engine(
    tools: &Tools,
    name: &str,
    sample: &Sample,
    options: &Options,
    folder: &Path,
) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    println!("{name}: {}", sample.what);
    let mut maker = Maker::new(tools, folder);
    maker.verbose = options.verbose;
    maker.compile(name, &TARGETS, &[&sample.manifest])?;
    println!("compiled {} for {}", sample.manifest, TARGETS.join(", "));
    let network = Network::new(&sample.network, options.precision.element_type(), &sample.shape);
    let recipe = Recipe { aliased: sample.aliased, ..Recipe::fixed(name, network, Form::Fields) };
    let mut plan = maker.plan(&recipe)?;
    println!("built {} with TensorRT-RTX's builder, without a GPU", plan.plan);
    if sample.aliased {
        let apart: Vec<_> = plan.runs.iter().cloned().map(|run| cases::Run { apart: true, ..run }).collect();
        plan.runs.extend(apart);
    }
    let file = folder.join(&plan.plan);
    let case = Case::new(name, &sample.what, Form::Fields, vec![plan], &[]).in_python();
    cases::write(folder, &tools.artifacts.runtime_library, &[Case { show: true, ..case }])?;
    Ok(file)
}

fn check_saved(folder: &Path) -> Result<()> {
    ensure!(
        folder.join(SAVED).is_file(),
        "{} contains no saved engine; create one with --save_engine and the same --artifacts_dir",
        folder.display()
    );
    Ok(())
}

fn plan_in(folder: &Path) -> Result<PathBuf> {
    let mut plans = files::list(folder)?;
    plans.retain(|path| path.extension().is_some_and(|extension| extension == "plan"));
    match plans.as_slice() {
        [plan] => Ok(plan.clone()),
        [] => bail!("{} contains no engine", folder.display()),
        _ => bail!("{} contains {} engines, expected one", folder.display(), plans.len()),
    }
}

fn show_and_run(tools: &Tools, folder: &Path, plan: &Path) -> Result<()> {
    println!("\ncontent of the engine:\n\n{}", tools.inspect_summary(plan)?);
    if !gpu::is_present() {
        println!("{NOT_RUN}");
        return Ok(());
    }
    let mut command = tools.python("gpu_test.py")?;
    command.arg(folder);
    process::inherit(&mut command)
}

const NOT_RUN: &str = "\
**** NOT RUN ****
This machine has no NVIDIA GPU. The engine was built and inspected, but not run; no result was compared.
Save it with --save_engine --artifacts_dir DIR, copy DIR to a machine with a GPU and TensorRT-RTX, and run there:
    python3 DIR/gpu_test.py DIR";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_was_not_saved_is_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let error = check_saved(folder.path()).unwrap_err().to_string();
        assert!(error.contains("--save_engine") && error.contains("--artifacts_dir"), "{error}");
        std::fs::write(folder.path().join(SAVED), "{}").unwrap();
        assert!(check_saved(folder.path()).is_ok());
    }

    #[test]
    fn a_folder_has_one_engine() {
        let folder = tempfile::tempdir().unwrap();
        assert!(plan_in(folder.path()).is_err());
        std::fs::write(folder.path().join("a.plan"), "").unwrap();
        std::fs::write(folder.path().join("a.onnx"), "").unwrap();
        assert_eq!(plan_in(folder.path()).unwrap(), folder.path().join("a.plan"));
        std::fs::write(folder.path().join("b.plan"), "").unwrap();
        assert!(plan_in(folder.path()).unwrap_err().to_string().contains("2 engines"));
    }
}
