//! `cargo xtask gpu-test`: engines that were built without a GPU, run on one.
//!
//! Owns the list of cases. Preparing needs no GPU and running needs nothing but the prepared folder, Python with TensorRT-RTX's
//! bindings (and `trtexec`, where `TRTEXEC` names it): so a folder that was prepared here runs on any other machine.
//! The references are numpy's. Never looks at a result itself: `gpu_test.py` does, in the folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::workshop::{Engine, Network, Workshop, scripts};
use crate::{bench, process, workspace};

/// The help of the command.
pub(crate) const LONG_ABOUT: &str = "\
Run engines that were built without a GPU on the GPU of this machine, and hold their outputs against numpy's.

Without options it prepares and runs. `--prepare DIR` writes a folder that needs nothing else: copy it to a machine with a GPU and \
TensorRT-RTX and run `python3 DIR/gpu_test.py DIR` there, with TRTEXEC naming trtexec.";

/// The scripts that a prepared folder needs.
const SCRIPTS: [&str; 3] = ["gpu_test.py", "cuda_driver.py", "enqueue_bench.py"];
const TARGETS: [&str; 5] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120"];
const ALL_CLIENTS: [&str; 2] = ["trtexec", "python"];
/// No PTX is compiled, and none that was compiled before is taken from the driver's cache.
const NO_JIT: [(&str, &str); 2] = [("CUDA_DISABLE_PTX_JIT", "1"), ("CUDA_CACHE_DISABLE", "1")];

/// What `gpu_test.py` reads.
#[derive(Debug, Serialize)]
struct Cases {
    cases: Vec<Case>,
}

/// One process of one client.
#[derive(Debug, Serialize)]
struct Case {
    name: String,
    what: String,
    clients: Vec<&'static str>,
    env: BTreeMap<&'static str, &'static str>,
    libraries: Vec<String>,
    plans: Vec<Plan>,
    /// How often a case for the client `cycles` loads, runs and unloads.
    cycles: u32,
    show: bool,
    fails_with: Option<&'static str>,
}

/// One engine with its runs.
#[derive(Debug, Clone, Serialize)]
struct Plan {
    plan: String,
    #[serde(rename = "type")]
    ty: &'static str,
    dynamic: bool,
    version_compatible: bool,
    runs: Vec<Run>,
}

/// One inference.
#[derive(Debug, Clone, Serialize)]
struct Run {
    shape: Vec<u64>,
    out_shape: Vec<u64>,
    input: String,
    reference: String,
    reference_json: String,
    /// Where the tensors begin in their buffers, bytes; what is not a multiple of 256 is for the Python client only.
    offset: u32,
    /// Whether the inference is captured into a CUDA graph, which is run; for the Python client only.
    graph: bool,
}

/// Prepares `directory`, or prepares the default folder and runs it.
///
/// # Errors
/// When something cannot be built, or a case fails.
pub(crate) fn run(directory: Option<&Path>) -> Result<()> {
    let workshop = Workshop::open()?;
    let folder = directory.map_or_else(|| workspace::root().join("build/gpu-test"), Path::to_path_buf);
    prepare(&workshop, &folder)?;
    if directory.is_some() {
        println!("prepared {}; run it with: python3 gpu_test.py .", folder.display());
        return Ok(());
    }
    if !gpu_is_there() {
        bail!(
            "no GPU here: libcuda.so.1 or a device is missing; prepare a folder for another machine with --prepare DIR"
        );
    }
    let mut command = workshop.python("gpu_test.py")?;
    command.arg(&folder);
    process::inherit(&mut command)
}

/// Whether this machine has an NVIDIA GPU with its driver, judged by what the driver's kernel module shows.
pub(crate) fn gpu_is_there() -> bool {
    std::fs::read_dir("/proc/driver/nvidia/gpus").is_ok_and(|mut entries| entries.next().is_some())
}

fn prepare(workshop: &Workshop, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for script in SCRIPTS {
        std::fs::copy(scripts().join(script), folder.join(script))?;
    }
    std::fs::copy(workshop.runtime_library(), folder.join("libcubinder.so"))?;
    let mut cases = Maker { workshop, folder, plans: BTreeMap::new(), references: BTreeMap::new() };
    let cases = Cases { cases: cases.all()? };
    std::fs::write(folder.join("cases.json"), serde_json::to_string_pretty(&cases)?)?;
    bench::prepare_enqueue(workshop, folder)
}

/// The forms in which code reaches an engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// In the nodes' fields; the generic library runs it.
    Fields,
    /// In a library inside the plan.
    Embedded,
}

struct Maker<'a> {
    workshop: &'a Workshop,
    folder: &'a Path,
    /// Plans that were made before, by file name.
    plans: BTreeMap<String, Plan>,
    /// References that were made before, by what they are of.
    references: BTreeMap<String, Run>,
}

impl Maker<'_> {
    fn all(&mut self) -> Result<Vec<Case>> {
        self.compile("cubins", &TARGETS, &[])?;
        self.compile("ptx", &["compute_80"], &[])?;
        self.compile("pad", &TARGETS, &["manifests/circ_pad_plugin.toml"])?;
        self.compile("add", &TARGETS, &["manifests/elemwise_add_plugin.toml"])?;
        self.compile("vectors", &TARGETS, &["tests/data/run/vectors.toml"])?;
        let mut cases = Vec::new();
        for ty in ["f32", "f16"] {
            for form in [Form::Fields, Form::Embedded] {
                self.types_and_shapes(ty, form, &mut cases)?;
            }
        }
        for form in [Form::Fields, Form::Embedded] {
            self.ptx(form, &mut cases)?;
        }
        self.ranks(&mut cases)?;
        self.variants(&mut cases)?;
        self.together(&mut cases)?;
        self.cycles(&mut cases)?;
        Ok(cases)
    }

    fn types_and_shapes(&mut self, ty: &'static str, form: Form, cases: &mut Vec<Case>) -> Result<()> {
        let dynamic = self.chain("cubins", ty, form)?;
        let fixed = self.pad("cubins", ty, form, "10,3,32,32", "1,1,1,1")?;
        for (env, how) in [(NO_JIT.as_slice(), "cubins alone, JIT disabled"), (&[], "cubins, JIT allowed")] {
            for (plan, what) in
                [(&dynamic, "dynamic shapes, three nodes"), (&fixed, "static shapes, one node")]
            {
                let jit = if env.is_empty() { "jit" } else { "no-jit" };
                let name = format!("{} {jit}", plan.plan.trim_end_matches(".plan"));
                let what = format!("{ty}, {what}, {}, {how}", form.what());
                cases.push(case(name, what, form, vec![plan.clone()], env));
            }
        }
        Ok(())
    }

    fn ptx(&mut self, form: Form, cases: &mut Vec<Case>) -> Result<()> {
        let plan = self.chain("ptx", "f32", form)?;
        let name = format!("ptx {}", form.name());
        cases.push(case(name.clone(), format!("PTX alone, {}", form.what()), form, vec![plan.clone()], &[]));
        let what = format!("PTX alone with JIT disabled is refused by name, {}", form.what());
        let mut refused = case(format!("{name} refused"), what, form, vec![plan], &NO_JIT);
        refused.clients = vec!["python"];
        refused.fails_with = Some("runs on this GPU");
        cases.push(refused);
        Ok(())
    }

    /// Ranks 1 to 8, pads beyond the extents, no pads.
    fn ranks(&mut self, cases: &mut Vec<Case>) -> Result<()> {
        let shapes = [
            ("7", "2,3"),
            ("5,4", "9,13"),
            ("2,3,4", "1,0,0,2,3,3"),
            ("1,1,1,1", "2,2,2,2,2,2,2,2"),
            ("2,1,3,2,5", "1,1"),
            ("2,2,1,3,2,5", "0,1,1,0"),
            ("2,1,2,1,3,2,5", "1,2,3,4,5,6"),
            ("2,1,2,1,2,3,2,5", "1,0,1,0,1,0,1,0,1,0,1,0,1,0,1,0"),
            ("3,4", ""),
        ];
        let mut plans = Vec::new();
        for (shape, pads) in shapes {
            plans.push(self.pad("cubins", "f32", Form::Fields, shape, pads)?);
        }
        let what = "ranks 1 to 8, pads beyond the extents, no pads".to_owned();
        cases.push(case("ranks".to_owned(), what, Form::Fields, plans, &[]));
        Ok(())
    }

    /// Which variant runs for which shapes and addresses, in one execution context after the other and inside CUDA graphs. The
    /// result says which ran; vectors at addresses that do not suit them are a fault on any GPU.
    fn variants(&mut self, cases: &mut Vec<Case>) -> Result<()> {
        // Shape, offset of both tensors in bytes, the variant of tests/data/run/vectors.toml that has to run.
        const RUNS: [(&str, u32, &str); 10] = [
            ("64,64", 0, "vectors-1"),
            ("64,64", 16, "vectors-2"),
            ("64,64", 4, "vectors-3"),
            ("3,5", 0, "vectors-3"),
            ("1,4", 0, "vectors-1"),
            ("1,4", 8, "vectors-3"),
            ("3,5", 12, "vectors-3"),
            ("100,8", 128, "vectors-2"),
            ("100,8", 256, "vectors-1"),
            ("256,256", 0, "vectors-1"),
        ];
        for form in [Form::Fields, Form::Embedded] {
            let network = Network { kind: "vectors", ty: "f32", shape: "n,w".to_owned(), pads: "" };
            let mut plan = self.plan("vectors", &network, form, Some("1x1:64x64:256x256"), &[])?;
            for (shape, offset, kind) in RUNS {
                let run =
                    self.reference(&Network { kind, ty: "f32", shape: shape.to_owned(), pads: "" }, shape)?;
                plan.runs.push(Run { offset, ..run.clone() });
                plan.runs.push(Run { offset, graph: true, ..run });
            }
            let what = format!("variants by shapes and addresses, also in CUDA graphs, {}", form.what());
            let mut variants = case(format!("variants {}", form.name()), what, form, vec![plan], &NO_JIT);
            variants.clients = vec!["python"];
            cases.push(variants);
        }
        Ok(())
    }

    /// What must live together in one process and one IRuntime.
    fn together(&mut self, cases: &mut Vec<Case>) -> Result<()> {
        let pad = self.pad("pad", "f32", Form::Embedded, "10,3,32,32", "1,1,1,1")?;
        let add = self.add("add", "f32", Form::Embedded)?;
        let plain = self.chain("cubins", "f32", Form::Fields)?;
        for (order, plans) in [
            ("embedded first", vec![pad.clone(), add.clone(), plain.clone()]),
            ("plain first", vec![plain, add, pad]),
        ] {
            let what = format!("two self-sufficient plans and a plain one in one IRuntime, {order}");
            let mut together = case(format!("together {order}"), what, Form::Fields, plans, &NO_JIT);
            together.clients = vec!["python"];
            together.show = true;
            cases.push(together);
        }
        Ok(())
    }

    /// Loading, running and unloading leave nothing behind.
    fn cycles(&mut self, cases: &mut Vec<Case>) -> Result<()> {
        for form in [Form::Fields, Form::Embedded] {
            let plan = self.chain("cubins", "f32", form)?;
            let what = format!("50 times load, run and unload, {}", form.what());
            let mut cycle = case(format!("cycles {}", form.name()), what, form, vec![plan], &[]);
            cycle.clients = vec!["cycles"];
            cycle.show = true;
            cases.push(cycle);
        }
        Ok(())
    }

    fn chain(&mut self, library: &str, ty: &'static str, form: Form) -> Result<Plan> {
        let network = Network { kind: "chain", ty, shape: "batch,3,height,width".to_owned(), pads: "" };
        let profile = "1x3x4x4:10x3x32x32:16x3x64x64";
        self.plan(
            library,
            &network,
            form,
            Some(profile),
            &["10,3,32,32", "1,3,4,4", "16,3,64,64", "3,3,9,61"],
        )
    }

    fn pad(
        &mut self,
        library: &str,
        ty: &'static str,
        form: Form,
        shape: &str,
        pads: &'static str,
    ) -> Result<Plan> {
        let network = Network { kind: "pad", ty, shape: shape.to_owned(), pads };
        self.plan(library, &network, form, None, &[shape])
    }

    fn add(&mut self, library: &str, ty: &'static str, form: Form) -> Result<Plan> {
        let network = Network { kind: "add", ty, shape: "1000".to_owned(), pads: "" };
        self.plan(library, &network, form, None, &["1000"])
    }

    fn plan(
        &mut self,
        library: &str,
        network: &Network,
        form: Form,
        profile: Option<&str>,
        shapes: &[&str],
    ) -> Result<Plan> {
        let word = |text: &str| text.replace(',', "x");
        let stem = format!(
            "{library}-{}-{}-{}-{}-{}",
            network.kind,
            network.ty,
            word(&network.shape),
            word(network.pads),
            form.name()
        );
        let name = format!("{stem}.plan");
        if let Some(plan) = self.plans.get(&name) {
            return Ok(plan.clone());
        }
        let model = self.folder.join(format!("{stem}.onnx"));
        self.workshop.model(network, &model)?;
        let libraries = self.folder.join(library).join(form.name());
        let ops = libraries.join(format!("lib{library}.so"));
        let code = libraries.join(format!("lib{library}-code.so"));
        let (plugins, serialize) = match form {
            Form::Fields => (vec![ops.as_path()], vec![]),
            Form::Embedded => (vec![ops.as_path(), code.as_path()], vec![code.as_path()]),
        };
        let engine = Engine { plugins: &plugins, serialize: &serialize, profile };
        self.workshop.engine(&model, &engine, &self.folder.join(&name))?;
        let runs = shapes.iter().map(|shape| self.reference(network, shape)).collect::<Result<_>>()?;
        let plan = Plan {
            plan: name.clone(),
            ty: network.ty,
            dynamic: profile.is_some(),
            version_compatible: form == Form::Embedded,
            runs,
        };
        self.plans.insert(name, plan.clone());
        Ok(plan)
    }

    fn reference(&mut self, network: &Network, shape: &str) -> Result<Run> {
        let key = format!("{} {} {} {shape}", network.kind, network.ty, network.pads);
        if let Some(run) = self.references.get(&key) {
            return Ok(run.clone());
        }
        let seed = self.references.len() + 1;
        let stem = format!("run{seed}");
        let reference = self.workshop.reference(network, shape, &self.folder.join(&stem), seed)?;
        let run = Run {
            shape: reference.shape,
            out_shape: reference.out_shape,
            input: format!("{stem}.in"),
            reference: format!("{stem}.out"),
            reference_json: format!("{stem}.json"),
            offset: 0,
            graph: false,
        };
        self.references.insert(key, run.clone());
        Ok(run)
    }

    /// Both forms of a library, from `manifests` or from all that `cubinder.toml` names.
    fn compile(&self, name: &str, targets: &[&str], manifests: &[&str]) -> Result<()> {
        for form in [Form::Fields, Form::Embedded] {
            let output: PathBuf = self.folder.join(name).join(form.name());
            let mut arguments = vec!["--name", name];
            for target in targets {
                arguments.extend(["--target", target]);
            }
            if form == Form::Embedded {
                arguments.push("--embed");
            }
            arguments.extend(manifests);
            self.workshop.compile(&output, &arguments)?;
        }
        Ok(())
    }
}

impl Form {
    const fn name(self) -> &'static str {
        match self {
            Form::Fields => "fields",
            Form::Embedded => "embedded",
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Form::Fields => "the generic library beside the plan",
            Form::Embedded => "nothing beside the plan",
        }
    }
}

fn case(
    name: String,
    what: String,
    form: Form,
    plans: Vec<Plan>,
    env: &[(&'static str, &'static str)],
) -> Case {
    Case {
        name,
        what,
        clients: ALL_CLIENTS.to_vec(),
        env: env.iter().copied().collect(),
        libraries: if form == Form::Fields { vec!["libcubinder.so".to_owned()] } else { vec![] },
        plans,
        cycles: 50,
        show: false,
        fails_with: None,
    }
}
