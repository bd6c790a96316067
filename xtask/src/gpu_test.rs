use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;

use crate::cases::{self, Case, Form, Maker, NO_JIT, Plan, Recipe, Run};
use crate::tools::{Network, Tools};
use crate::{bench, gpu, kernel_tests, process, workspace};

const NO_MANIFESTS: [&str; 0] = [];
const TARGETS: [&str; 5] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_120"];

pub(crate) fn run(directory: Option<&Path>, only_routes: bool) -> Result<()> {
    let tools = Tools::open()?;
    let (default, script, argument) = match only_routes {
        true => ("build/gpu-test-routes", "kernel_tests.py", kernel_tests::FOLDER),
        false => ("build/gpu-test", "gpu_test.py", "."),
    };
    let folder = directory.map_or_else(|| workspace::root().join(default), Path::to_path_buf);
    if only_routes {
        kernel_tests::prepare_routes(&tools, &folder, &TARGETS)?;
    } else {
        prepare(&tools, &folder)?;
    }
    if directory.is_some() {
        println!("prepared {}; run: python3 {script} {argument}", folder.display());
        return Ok(());
    }
    gpu::require()?;
    let mut command = tools.python(script)?;
    command.arg(folder.join(argument));
    process::inherit(&mut command)
}

fn prepare(tools: &Tools, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let cases = CaseList { maker: Maker::new(tools, folder), cases: Vec::new() }.into_cases()?;
    cases::write(folder, &tools.artifacts.runtime_library, &cases)?;
    tools.example("driver-faults", &[folder.join("libdriver_faults.so")])?;
    kernel_tests::prepare(tools, folder, &TARGETS)?;
    bench::prepare_launch(tools, folder)
}

struct CaseList<'a> {
    maker: Maker<'a>,
    cases: Vec<Case>,
}

impl CaseList<'_> {
    fn into_cases(mut self) -> Result<Vec<Case>> {
        self.maker.compile("cubins", &TARGETS, &NO_MANIFESTS)?;
        self.maker.compile("ptx", &["compute_80"], &NO_MANIFESTS)?;
        self.maker.compile("pad", &TARGETS, &["manifests/circ_pad_plugin.toml"])?;
        self.maker.compile("add", &TARGETS, &["manifests/elemwise_add_plugin.toml"])?;
        self.maker.compile("vectors", &TARGETS, &["tests/data/run/vectors.toml"])?;
        for ty in ["f32", "f16"] {
            for form in Form::ALL {
                self.types_and_shapes(ty, form)?;
            }
        }
        for form in Form::ALL {
            self.ptx(form)?;
        }
        self.ranks()?;
        self.padding_variants()?;
        self.in_place()?;
        self.aliases()?;
        self.non_zero()?;
        self.variants()?;
        self.sequences()?;
        self.shape_inputs()?;
        self.types()?;
        self.connections()?;
        let sources = self.maker.compile_external()?;
        self.external(&sources)?;
        self.imported(&sources)?;
        self.together()?;
        self.cycles()?;
        self.threads()?;
        Ok(self.cases)
    }

    fn types_and_shapes(&mut self, ty: &'static str, form: Form) -> Result<()> {
        let dynamic = self.chain("cubins", ty, form)?;
        let fixed = self.pad("cubins", ty, form, "10,3,32,32", "1,1,1,1")?;
        for (env, how) in [(NO_JIT.as_slice(), "cubins only, JIT disabled"), (&[], "cubins, JIT allowed")] {
            for (plan, what) in
                [(&dynamic, "dynamic shapes, three nodes"), (&fixed, "static shapes, one node")]
            {
                let jit = if env.is_empty() { "jit" } else { "no-jit" };
                let name = format!("{} {jit}", plan.plan.trim_end_matches(".plan"));
                let what = format!("{ty}, {what}, {}, {how}", form.what());
                self.cases.push(Case::new(name, what, form, vec![plan.clone()], env));
            }
        }
        Ok(())
    }

    fn ptx(&mut self, form: Form) -> Result<()> {
        let plan = self.chain("ptx", "f32", form)?;
        let name = format!("ptx {}", form.name());
        let what = format!("PTX alone, {}", form.what());
        self.cases.push(Case::new(name.clone(), what, form, vec![plan.clone()], &[]));
        let what = format!("PTX only with JIT disabled is rejected by name, {}", form.what());
        let mut refused = Case::new(format!("{name} refused"), what, form, vec![plan], &NO_JIT).in_python();
        refused.fails_with = Some("runs on this GPU");
        self.cases.push(refused);
        Ok(())
    }

    fn ranks(&mut self) -> Result<()> {
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
        let what = "ranks 1 to 8, pads beyond the extents, no pads";
        self.cases.push(Case::new("ranks", what, Form::Fields, plans, &[]));
        Ok(())
    }

    fn padding_variants(&mut self) -> Result<()> {
        const SHAPES: [(&str, &str); 10] = [
            ("10,3,32,32", "1,1,1,1"),
            ("4,3,256,256", "2,2,1,1"),
            ("4,3,256,256", "0,0,3,1"),
            ("4,3,256,255", "1,1,1,1"),
            ("4,3,255,256", "1,1,5,5,2,0"),
            ("2,3,9,16", "0,0,0,0,1,1"),
            ("2,3,9,16", "4,4,1,0,2,3,1,0"),
            ("300000", "5,7"),
            ("1,8191", "1,0"),
            ("2,0,5", "1,1"),
        ];
        for ty in ["f32", "f16"] {
            let mut plans = Vec::new();
            for (shape, pads) in SHAPES {
                let mut plan = self.pad("cubins", ty, Form::Fields, shape, pads)?;
                let run = plan.runs.first().cloned().context("a plan of static shapes has one run")?;
                plan.runs.push(Run { offset: 16, ..run.clone() });
                plan.runs.push(Run { offset: 4, ..run.clone() });
                plan.runs.push(Run { graph: true, ..run });
                plans.push(plan);
            }
            let three = Network::new("pads", ty, "2,3,12,13");
            plans.push(self.maker.plan(&Recipe::fixed("cubins", three, Form::Fields))?);
            let what = format!("circular padding, {ty}: every variant, and three nodes, two of them alike");
            let name = format!("padding variants {ty}");
            self.cases.push(Case::new(name, what, Form::Fields, plans, &NO_JIT).in_python());
        }
        Ok(())
    }

    fn in_place(&mut self) -> Result<()> {
        for ty in ["f32", "f16"] {
            for form in Form::ALL {
                let mut plans = Vec::new();
                for shape in ["10,3,32,32", "7", "2,0,5", "2,3,4,5,6"] {
                    let recipe = Recipe::fixed("cubins", Network::new("inplace", ty, shape), form);
                    plans.push(self.maker.plan(&Recipe { aliased: true, ..recipe })?);
                }
                let network = Network::new("inplace", ty, "n,c,h,w").with("delta", "-3");
                let shapes = ["1,1,1,1", "4,3,17,5", "8,4,64,64"];
                let recipe = Recipe::dynamic("cubins", network, form, "1x1x1x1:4x3x17x5:8x4x64x64", &shapes);
                plans.push(self.maker.plan(&Recipe { aliased: true, ..recipe })?);
                for plan in &mut plans {
                    let runs = plan.runs.clone();
                    plan.runs.extend(runs.iter().cloned().map(|run| Run { apart: true, ..run }));
                    plan.runs.extend(runs.iter().cloned().map(|run| Run { graph: true, ..run }));
                    plan.runs.extend(runs.into_iter().map(|run| Run { graph: true, apart: true, ..run }));
                }
                self.python_case(
                    format!("in place {ty}"),
                    format!("in place, one address and two, {ty}"),
                    form,
                    plans,
                );
            }
        }
        Ok(())
    }

    /// Aliased outputs by either name or both, in guards and later steps: one or two addresses of any alignment, CUDA
    /// graphs, several outputs.
    fn aliases(&mut self) -> Result<()> {
        const NETWORKS: &str = "lerp_by_input_1 lerp_by_input_2 lerp_by_output_1 lerp_by_output_2 lerp_by_both_1 \
                                lerp_by_both_2 lerp_guarded_1 lerp_guarded_2 lerp_then_read approach";
        // Offsets in bytes of the input and of a separate output.
        const OFFSETS: [(u32, u32); 4] = [(0, 0), (0, 4), (4, 0), (8, 12)];
        let manifests = ["by_input", "by_output", "by_both", "guarded", "then_read", "two"]
            .map(|name| format!("tests/data/run/aliases/{name}.toml"));
        self.maker.compile("aliases", &TARGETS, &manifests)?;
        for form in Form::ALL {
            let mut plans = Vec::new();
            let networks = NETWORKS.split(' ');
            for (network, shape) in networks.flat_map(|network| ["2,3,32,32", "7"].map(|it| (network, it))) {
                let recipe = Recipe::fixed("aliases", Network::new(network, "f32", shape), form);
                let mut plan = self.maker.plan(&Recipe { aliased: true, ..recipe })?;
                let runs = std::mem::take(&mut plan.runs);
                for run in &runs {
                    plan.runs.extend(OFFSETS.map(|(offset, _)| Run { offset, ..run.clone() }));
                    plan.runs.extend(OFFSETS.map(|(offset, apart_offset)| Run {
                        apart: true,
                        offset,
                        apart_offset,
                        ..run.clone()
                    }));
                }
                plans.push(plan.also_in_graphs());
            }
            self.python_case("aliases", "both names of a memory, one address and two", form, plans);
        }
        Ok(())
    }

    fn non_zero(&mut self) -> Result<()> {
        const SHAPES: &str = "7 1 0 3,0,2 128,128 33,65 2,3,4 2,3,4,5 1,2,3,4,5 2,1,2,3,1,4 1,2,1,2,3,2,5 2,1,2,1,2,3,2,5 \
                              1500,1500";
        for ty in ["f32", "f16"] {
            for form in Form::ALL {
                let mut plans = Vec::new();
                for shape in SHAPES.split(' ') {
                    plans.push(self.fixed("cubins", "non_zero", ty, shape, form)?);
                }
                for kind in ["non_zero", "non_zero_counted"] {
                    let shapes = ["1,1", "100,7", "1024,1025"];
                    let network = Network::new(kind, ty, "n,m");
                    let recipe = Recipe::dynamic("cubins", network, form, "1x1:100x7:2048x2048", &shapes);
                    plans.push(self.maker.plan(&recipe)?);
                }
                self.python_case(
                    format!("non zero {ty}"),
                    format!("elements that are not zero, {ty}"),
                    form,
                    plans,
                );
            }
        }
        Ok(())
    }

    /// Results identify the variant; unaligned vectors fault.
    fn variants(&mut self) -> Result<()> {
        // Shape, both tensors' offset, variant of tests/data/run/vectors.toml.
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
        for form in Form::ALL {
            let network = Network::new("vectors", "f32", "n,w");
            let profile = "1x1:64x64:256x256";
            let mut plan = self.maker.plan(&Recipe::dynamic("vectors", network, form, profile, &[]))?;
            for (shape, offset, kind) in RUNS {
                let run = self.maker.reference(&Network::new(kind, "f32", shape), shape)?;
                plan.runs.push(Run { offset, ..run.clone() });
                plan.runs.push(Run { offset, graph: true, ..run });
            }
            self.python_case(
                "variants",
                "variants by shapes and addresses, also in CUDA graphs",
                form,
                vec![plan],
            );
        }
        Ok(())
    }

    fn sequences(&mut self) -> Result<()> {
        const NETWORKS: [(&str, &str, &[&str]); 4] = [
            ("sum", "1x1:64x64:512x512", &["3,5", "64,64", "64,65", "512,512", "1,1"]),
            ("normalize", "1x1:64x64:2048x2048", &["1,1", "3,5", "300,300", "2048,2048"]),
            ("neighbours", "1x1:64x64:2048x2048", &["1,1", "3,5", "300,300", "2048,2048"]),
            ("reverse", "1x1:64x64:512x24576", &["3,5", "2,12288", "64,12289", "5,24576"]),
        ];
        let manifests: Vec<String> =
            NETWORKS.iter().map(|(name, ..)| format!("tests/data/run/{name}.toml")).collect();
        self.maker.compile("steps", &TARGETS, &manifests)?;
        self.maker.compile("clusters", &[], &["tests/data/run/exchange.toml"])?;
        for form in Form::ALL {
            let mut plans = Vec::new();
            for (name, profile, shapes) in NETWORKS {
                plans.push(self.sequence("steps", name, form, profile, shapes)?);
            }
            self.python_case(
                "sequences",
                "several steps, scratch memory, cooperative and early launches",
                form,
                plans,
            );
            let shapes = ["1,1", "3,5", "100,500", "1024,1024"];
            let plan = self.sequence("clusters", "exchange", form, "1x1:64x64:1024x1024", &shapes)?;
            self.python_case("clusters", "clusters, only on compute capability 9.0", form, vec![plan]);
        }
        Ok(())
    }

    fn sequence(
        &mut self,
        library: &str,
        name: &str,
        form: Form,
        profile: &str,
        shapes: &[&str],
    ) -> Result<Plan> {
        let network = Network::new(name, "f32", "n,w");
        let plan = self.maker.plan(&Recipe::dynamic(library, network, form, profile, shapes))?;
        Ok(plan.also_in_graphs())
    }

    fn shape_inputs(&mut self) -> Result<()> {
        self.maker.compile("stretch", &TARGETS, &["tests/data/run/stretch.toml"])?;
        for form in Form::ALL {
            let network = Network::new("stretch", "f32", "n,w");
            let profile = ["x=1x1:8x8:256x256", "target=1x1:17x17:1024x1024", "times=1:3:8"];
            let recipe = Recipe {
                profiles: vec![profile.map(str::to_owned).to_vec()],
                ..Recipe::dynamic("stretch", network, form, "", &["8,8", "1,2", "5,200", "256,3", "256,256"])
            };
            let plan = self.maker.plan(&recipe)?.also_in_graphs();
            self.python_case("shape inputs", "shape inputs, also in CUDA graphs", form, vec![plan]);
        }
        Ok(())
    }

    /// Every type between plugins, all but i8 in the interface, every rank, 4-bit weights. No non-linear formats and i8
    /// inputs: TensorRT-RTX 1.7 adds kernels for them, only for the announced GPU.
    fn types(&mut self) -> Result<()> {
        const LINEAR: &str = "[0, 4, 13, 18, 23, 25, 26, 28, 27]";
        let manifests = ["pack", "unpack", "flip", "weigh"].map(|name| format!("tests/data/run/{name}.toml"));
        self.maker.compile("types", &["sm_89", "sm_90", "sm_120"], &manifests)?;
        for form in Form::ALL {
            let network = Network::new("layouts", "f32", "n,c,h,w").with("kinds", LINEAR);
            let shapes = ["1,1,1,1", "2,5,3,4", "4,32,17,9"];
            let mut plans = vec![self.maker.plan(&Recipe::dynamic(
                "types",
                network,
                form,
                "1x1x1x1:2x5x3x4:8x64x32x32",
                &shapes,
            ))?];
            for ty in ["f32", "f16", "bf16", "f8", "i32", "i64", "bool"] {
                plans.push(self.fixed("types", "flip", ty, "3,5,7", form)?);
            }
            for shape in " 0 1 2,3 2,3,4,5 1,2,3,4,5 2,1,2,3,1,4 1,2,1,2,3,2,5 2,1,2,1,2,3,2,5".split(' ') {
                plans.push(self.fixed("types", "flip", "f32", shape, form)?);
            }
            for ty in ["f32", "f16", "f8"] {
                plans.push(self.fixed("types", "weigh", ty, "4,300", form)?);
            }
            let plans = plans.into_iter().map(Plan::also_in_graphs).collect();
            self.python_case(
                "types",
                "every type, ranks 0 to 8, weights of 4 bits, also in CUDA graphs",
                form,
                plans,
            );
        }
        Ok(())
    }

    fn connections(&mut self) -> Result<()> {
        self.maker.compile("split", &TARGETS, &["tests/data/run/split.toml"])?;
        for form in Form::ALL {
            let profile = "1x1:64x64:512x512";
            let shapes = ["1,1", "3,5", "64,64", "512,511"];
            let network = Network::new("split", "f32", "n,w");
            let mut plans =
                vec![self.maker.plan(&Recipe::dynamic("split", network, form, profile, &shapes))?];
            for shape in ["", "0,4", "7"] {
                plans.push(self.fixed("split", "split", "f32", shape, form)?);
            }
            self.python_case(
                "connections",
                "a constant input, an unread output, one tensor twice",
                form,
                plans,
            );
        }
        Ok(())
    }

    fn imported(&mut self, sources: &Path) -> Result<()> {
        const ALONG: [(&str, &str); 7] = [
            ("4,6,300", "-1"),
            ("4,6,300", "1"),
            ("4,6,300", "0"),
            ("300,1", "0"),
            ("1,1000", "0"),
            ("7", "0"),
            ("2,0,5", "1"),
        ];
        const PROFILE: &str = "1x1:16x64:64x512";
        const SINGLE: [&str; 3] = ["sm_80", "sm_89", "sm_90"];
        for (kernel, targets) in [("sum_along", &SINGLE[..]), ("clip", &SINGLE), ("affine", &["sm_90"])] {
            let manifest = sources.join(format!("{kernel}.toml"));
            self.maker.compile(kernel, targets, &[manifest])?;
            for form in Form::ALL {
                let mut plans = Vec::new();
                for ty in ["f32", "f16"] {
                    if kernel == "sum_along" {
                        for (shape, axis) in ALONG {
                            let network = Network::new(kernel, ty, shape).with("axis", axis);
                            plans.push(self.maker.plan(&Recipe::fixed(kernel, network, form))?);
                        }
                    } else {
                        let shapes = ["1,1", "3,5", "64,64", "17,241", "64,512"];
                        let network = Network::new(kernel, ty, "n,w");
                        plans.push(
                            self.maker.plan(&Recipe::dynamic(kernel, network, form, PROFILE, &shapes))?,
                        );
                    }
                }
                let plans = plans.into_iter().map(Plan::also_in_graphs).collect();
                let what = match kernel {
                    "sum_along" => "two specializations of a kernel",
                    "clip" => "two configurations of an autotuned kernel",
                    _ => "programs of two blocks, only on compute capability 9.0",
                };
                self.python_case(
                    format!("triton {kernel}"),
                    format!("{what}, imported from Triton, also in CUDA graphs"),
                    form,
                    plans,
                );
            }
        }
        Ok(())
    }

    fn external(&mut self, sources: &Path) -> Result<()> {
        const SHAPES: [(&str, &str); 7] = [
            ("10,3,32,32", "1,1,1,1"),
            ("2,3,9,16", "4,4,1,0,2,3,1,0"),
            ("3,4", ""),
            ("7", "2,3"),
            ("5,4", "9,13"),
            ("300000", "5,7"),
            ("2,0,5", "1,1"),
        ];
        for compiler in ["nvcc", "cupy", "numba", "triton"] {
            let manifest = sources.join(format!("{compiler}.toml"));
            self.maker.compile(compiler, &["sm_80", "sm_89", "sm_90"], &[manifest])?;
            for form in Form::ALL {
                let mut plans = Vec::new();
                for ty in ["f32", "f16"] {
                    for (shape, pads) in SHAPES {
                        plans.push(self.pad(compiler, ty, form, shape, pads)?.also_in_graphs());
                    }
                }
                let what = format!("a kernel that {compiler} compiled, also in CUDA graphs, {}", form.what());
                let name = format!("{compiler} {}", form.name());
                let env: &[_] = if compiler == "numba" { &[] } else { &NO_JIT };
                self.cases.push(Case::new(name, what, form, plans, env).in_python());
            }
        }
        Ok(())
    }

    fn together(&mut self) -> Result<()> {
        let pad = self.pad("pad", "f32", Form::Embedded, "10,3,32,32", "1,1,1,1")?;
        let add = self.fixed("add", "add", "f32", "1000", Form::Embedded)?;
        let plain = self.chain("cubins", "f32", Form::Fields)?;
        for (order, plans) in [
            ("embedded first", vec![pad.clone(), add.clone(), plain.clone()]),
            ("plain first", vec![plain, add, pad]),
        ] {
            let what = format!("two self-sufficient plans and a plain one in one IRuntime, {order}");
            let name = format!("together {order}");
            let mut together = Case::new(name, what, Form::Fields, plans, &NO_JIT).in_python();
            together.show = true;
            self.cases.push(together);
        }
        Ok(())
    }

    fn cycles(&mut self) -> Result<()> {
        for form in Form::ALL {
            let plan = self.chain("cubins", "f32", form)?;
            let what = format!("50 times load, run and unload, {}", form.what());
            let mut cycle = Case::new(format!("cycles {}", form.name()), what, form, vec![plan], &[]);
            cycle.clients = vec!["cycles"];
            cycle.show = true;
            self.cases.push(cycle);
        }
        Ok(())
    }

    fn threads(&mut self) -> Result<()> {
        for form in Form::ALL {
            let plan = self.chain("cubins", "f32", form)?.also_in_graphs();
            let what = format!("enqueued by threads without a context, {}", form.what());
            let mut case = Case::new(format!("threads {}", form.name()), what, form, vec![plan], &[]);
            case.clients = vec!["threads"];
            self.cases.push(case);
        }
        let kept = self.pad("pad", "f32", Form::Embedded, "10,3,32,32", "1,1,1,1")?;
        let dropped = self.chain("cubins", "f32", Form::Fields)?;
        let what = "a library is closed while another thread captures in global mode".to_owned();
        let mut case = Case::new("captures".to_owned(), what, Form::Fields, vec![kept, dropped], &[]);
        case.clients = vec!["captures"];
        case.show = true;
        self.cases.push(case);
        Ok(())
    }

    fn python_case(
        &mut self,
        name: impl std::fmt::Display,
        what: impl std::fmt::Display,
        form: Form,
        plans: Vec<Plan>,
    ) {
        let (name, what) = (format!("{name} {}", form.name()), format!("{what}, {}", form.what()));
        self.cases.push(Case::new(name, what, form, plans, &NO_JIT).in_python());
    }

    fn fixed(
        &mut self,
        library: &str,
        network: &str,
        ty: &'static str,
        shape: &str,
        form: Form,
    ) -> Result<Plan> {
        self.maker.plan(&Recipe::fixed(library, Network::new(network, ty, shape), form))
    }

    fn chain(&mut self, library: &str, ty: &'static str, form: Form) -> Result<Plan> {
        let network = Network::new("chain", ty, "batch,3,height,width");
        let profile = "1x3x4x4:10x3x32x32:16x3x64x64";
        let shapes = ["10,3,32,32", "1,3,4,4", "16,3,64,64", "3,3,9,61"];
        self.maker.plan(&Recipe::dynamic(library, network, form, profile, &shapes))
    }

    fn pad(&mut self, library: &str, ty: &'static str, form: Form, shape: &str, pads: &str) -> Result<Plan> {
        let network = Network::new("pad", ty, shape).with("pads", format!("[{pads}]"));
        self.maker.plan(&Recipe::fixed(library, network, form))
    }
}
