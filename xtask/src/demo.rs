use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, ensure};
use fs_err as fs;
use serde_json::Value;

use crate::tools::{Built, Engine, Network, Tools};
use crate::{gpu, gpu_test, workspace};

const TARGETS: [&str; 6] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120", "compute_80"];
const PROFILE: [&str; 3] = ["1x3x8x8", "10x3x32x32", "16x3x64x64"];

pub(crate) fn run() -> Result<()> {
    let tools = Tools::open()?;
    let folder = workspace::root().join("build/demo");
    let embed = folder.join("embed");
    fs::create_dir_all(&folder)?;
    let [ops, model, plain_plan, embedded_plan] =
        ["libdemo.so", "chain.onnx", "chain.plan", "chain-embedded.plan"].map(|name| folder.join(name));
    let [ops_for_code, code] = ["libdemo.so", "libdemo-code.so"].map(|name| embed.join(name));

    println!("\n1. compile manifests and kernels into plugin libraries");
    print!("{}", tools.compile(&folder, "demo", &TARGETS, &[""; 0])?);
    let again = tools.compile(&embed, "demo", &TARGETS, &["--embed"])?;
    again.lines().filter(|line| line.starts_with("wrote ")).for_each(|line| println!("{line}"));

    println!("\n2. write an ONNX model: 10x3x32x32, dynamic, two padding nodes and an add, all with aot = 1");
    let network = Network::new("chain", "f32", "batch,3,height,width");
    tools.model(&network, &model)?;
    println!("wrote {}", show(&model));

    println!("\n3. build engines with TensorRT-RTX's builder, no GPU needed");
    let plain = build(&tools, &model, &[&ops], &[], &plain_plan)?;
    build(&tools, &model, &[&ops_for_code, &code], &[&code], &embedded_plan)?;

    println!("\n4. compare the code in the engines with the compiled code");
    prove_fields(&tools, &ops, &plain_plan)?;
    prove_embedded(&tools, &code, &embedded_plan)?;
    print!("{}", tools.inspect_summary(&plain_plan)?);

    println!("\n5. run them");
    if gpu::is_present() {
        gpu_test::run(None, false)?;
    } else {
        println!(
            "skipped: no NVIDIA GPU; `cargo xtask gpu-test --prepare DIR` writes a folder for a machine with one"
        );
    }
    print_trtexec(
        [&ops, &ops_for_code, &code, &model, &tools.artifacts.runtime_library],
        &plain.tensorrt_rtx,
    );
    let ran = if gpu::is_present() { "their outputs are correct" } else { "they were not run" };
    println!("\ndemo passed: both engines contain the compiled code; {ran}");
    Ok(())
}

fn build(tools: &Tools, model: &Path, plugins: &[&Path], serialize: &[&Path], plan: &Path) -> Result<Built> {
    let profiles = [vec![format!("x={}", PROFILE.join(":"))]];
    let engine = Engine { plugins, serialize, profiles: &profiles, ..Engine::default() };
    let built = tools.engine(model, &engine, plan)?;
    println!("wrote {} ({} bytes, TensorRT-RTX {})", show(plan), built.plan_bytes, built.tensorrt_rtx);
    for warning in &built.warnings {
        println!("  TensorRT: {warning}");
    }
    Ok(built)
}

fn prove_fields(tools: &Tools, ops: &Path, plan: &Path) -> Result<()> {
    let (plan_name, ops_name) = (show(plan), show(ops));
    let (library, plan) = (tools.inspect(ops)?, tools.inspect(plan)?);
    let mut all = BTreeSet::new();
    for node in containers(&plan).filter(|container| container["kind"] == "node") {
        let op = node["plugins"][0]["name"].as_str().unwrap_or_default();
        let compiled = used_code(&library, op, "T=f32");
        // Nodes have only their types' variants, without labels.
        let in_plan = used_code(&plan, op, "");
        ensure!(!in_plan.is_empty(), "the nodes of `{op}` in {plan_name} contain no code");
        ensure!(
            in_plan.is_subset(&compiled),
            "{plan_name} contains code of `{op}` that is not in {ops_name}"
        );
        let targets: BTreeSet<&str> = in_plan.iter().map(|(target, _)| target.as_str()).collect();
        ensure!(
            targets == BTreeSet::from(TARGETS),
            "the nodes of `{op}` in {plan_name} have code for {targets:?}"
        );
        all.extend(in_plan);
    }
    ensure!(!all.is_empty(), "{plan_name} contains no node");
    println!("{plan_name}: {} code objects, whose digests match {ops_name}", all.len());
    Ok(())
}

fn prove_embedded(tools: &Tools, code: &Path, plan: &Path) -> Result<()> {
    let (plan_name, code_name) = (show(plan), show(code));
    let (library, plan) = (tools.inspect(code)?, tools.inspect(plan)?);
    let digests = |report: &Value, kind: &str, key: &str| -> BTreeSet<String> {
        let all = containers(report).filter(|container| container["kind"] == kind);
        all.filter_map(|container| container[key].as_str().map(str::to_owned)).collect()
    };
    let bundle = digests(&library, "bundle", "digest");
    ensure!(bundle.len() == 1, "{code_name} contains {} bundles, expected one", bundle.len());
    let in_plan = digests(&plan, "bundle", "digest");
    ensure!(in_plan == bundle, "{plan_name} does not contain the bundle of {code_name}");
    let referred = digests(&plan, "node reference", "refers_to");
    let is_meant = |reference: &String| bundle.iter().any(|digest| digest.starts_with(reference.as_str()));
    let all_refer = !referred.is_empty() && referred.iter().all(is_meant);
    ensure!(all_refer, "the nodes of {plan_name} do not refer to the bundle of {code_name}");
    println!("{plan_name}: contains the bundle of {code_name}, and its nodes refer to it");
    Ok(())
}

fn containers(report: &Value) -> impl Iterator<Item = &Value> {
    report["containers"].as_array().into_iter().flatten()
}

fn used_code(report: &Value, op: &str, word: &str) -> BTreeSet<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let plugins = containers(report).flat_map(|container| list(&container["plugins"]));
    let variants = plugins.filter(|plugin| plugin["name"] == op).flat_map(|plugin| list(&plugin["variants"]));
    let chosen = variants.filter(|variant| variant["label"].as_str().unwrap_or_default().contains(word));
    let pair = |pair: Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()));
    chosen.flat_map(|variant| list(&variant["code"])).filter_map(pair).collect()
}

fn print_trtexec(files: [&Path; 5], version: &str) {
    let [ops, ops_for_code, code, model, generic] = files.map(show);
    let [min, opt, max] = PROFILE;
    let shapes = format!("--minShapes=x:{min} --optShapes=x:{opt} --maxShapes=x:{max}");
    println!(
        "
The same commands for a machine with a GPU, with trtexec of TensorRT-RTX {version} and without Python:

  trtexec --onnx={model} --dynamicPlugins={ops} {shapes} --saveEngine=chain.plan
  trtexec --loadEngine=chain.plan --dynamicPlugins={generic} --shapes=x:{opt}
  trtexec --onnx={model} --dynamicPlugins={ops_for_code} --dynamicPlugins={code} --setPluginsToSerialize={code} --versionCompatible --excludeLeanRuntime {shapes} --saveEngine=chain-embedded.plan
  trtexec --loadEngine=chain-embedded.plan --versionCompatible --shapes=x:{opt}"
    );
}

fn show(path: &Path) -> String {
    path.strip_prefix(workspace::root()).unwrap_or(path).display().to_string()
}
