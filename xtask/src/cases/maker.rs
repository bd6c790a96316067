//! Libraries, plans and references, created once for all cases.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use fs_err as fs;

use super::{Form, Plan, Run};
use crate::tools::{Engine, Network, Reference, Tools, last_line_as_json};
use crate::{files, process, setup, workspace};

pub(crate) struct Maker<'a> {
    tools: &'a Tools,
    folder: &'a Path,
    plans: BTreeMap<String, Plan>,
    references: BTreeMap<String, Run>,
    pub(crate) verbose: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Recipe<'a> {
    pub(crate) library: &'a str,
    pub(crate) network: Network,
    pub(crate) form: Form,
    /// For each profile, each dynamic input's `NAME=MIN:OPT:MAX`.
    pub(crate) profiles: Vec<Vec<String>>,
    pub(crate) aliased: bool,
    pub(crate) shapes: Vec<String>,
}

impl<'a> Recipe<'a> {
    pub(crate) fn fixed(library: &'a str, network: Network, form: Form) -> Recipe<'a> {
        let shapes = vec![network.shape.clone()];
        Recipe { library, network, form, profiles: Vec::new(), aliased: false, shapes }
    }

    pub(crate) fn dynamic(
        library: &'a str,
        network: Network,
        form: Form,
        profile: &str,
        shapes: &[&str],
    ) -> Recipe<'a> {
        let profiles = vec![vec![format!("x={profile}")]];
        let shapes = shapes.iter().map(|&shape| shape.to_owned()).collect();
        Recipe { library, network, form, profiles, aliased: false, shapes }
    }
}

impl<'a> Maker<'a> {
    pub(crate) fn new(tools: &'a Tools, folder: &'a Path) -> Maker<'a> {
        Maker { tools, folder, plans: BTreeMap::new(), references: BTreeMap::new(), verbose: false }
    }

    pub(crate) fn compile(&self, name: &str, targets: &[&str], files: &[impl AsRef<OsStr>]) -> Result<()> {
        for form in Form::ALL {
            let output: PathBuf = self.folder.join(name).join(form.name());
            let embed = (form == Form::Embedded).then_some("--embed");
            let files = files.iter().map(AsRef::as_ref);
            let arguments: Vec<&OsStr> = embed.map(OsStr::new).into_iter().chain(files).collect();
            self.tools.compile(&output, name, targets, &arguments)?;
        }
        Ok(())
    }

    /// `cubinder import` writes Triton's manifests.
    pub(crate) fn compile_external(&self) -> Result<PathBuf> {
        let output = std::path::absolute(self.folder.join("other_compilers"))?;
        fs::create_dir_all(&output)?;
        let python = setup::packages::environment("compilers")?.join("bin/python");
        let sources = workspace::root().join("tests/data/other_compilers");
        let cache = output.join("cache");
        // Older compilers' code would be imported, too.
        files::create_empty(&cache)?;
        let mut compile = Command::new(&python);
        process::capture(
            compile.arg(sources.join("compile.py")).arg(&output).env("TRITON_CACHE_DIR", &cache),
        )?;
        let mut complete = Command::new(&python);
        complete.arg("complete.py").arg(&self.tools.artifacts.compiler).current_dir(&output);
        process::capture(&mut complete)?;
        Ok(output)
    }

    pub(crate) fn plan(&mut self, recipe: &Recipe<'_>) -> Result<Plan> {
        let Recipe { library, network, form, .. } = recipe;
        let stem = format!("{library}-{}-{}", network.stem(), form.name());
        let name = format!("{stem}.plan");
        if let Some(plan) = self.plans.get(&name) {
            return Ok(plan.clone());
        }
        let model = self.folder.join(format!("{stem}.onnx"));
        self.tools.model(network, &model)?;
        let libraries = self.folder.join(library).join(form.name());
        let ops = libraries.join(format!("lib{library}.so"));
        let code = libraries.join(format!("lib{library}-code.so"));
        let (plugins, serialize) = match form {
            Form::Fields => (vec![ops.as_path()], vec![]),
            Form::Embedded => (vec![ops.as_path(), code.as_path()], vec![code.as_path()]),
        };
        let engine = Engine {
            plugins: &plugins,
            serialize: &serialize,
            profiles: &recipe.profiles,
            aliased: recipe.aliased,
            verbose: self.verbose,
        };
        self.tools.engine(&model, &engine, &self.folder.join(&name))?;
        let runs = recipe.shapes.iter().map(|shape| self.reference(network, shape)).collect::<Result<_>>()?;
        let plan = Plan {
            plan: name.clone(),
            dynamic: !recipe.profiles.is_empty(),
            version_compatible: *form == Form::Embedded,
            runs,
        };
        self.plans.insert(name, plan.clone());
        Ok(plan)
    }

    pub(crate) fn reference(&mut self, network: &Network, shape: &str) -> Result<Run> {
        let key = format!("{} {} {:?} {shape}", network.kind, network.ty, network.set);
        if let Some(run) = self.references.get(&key) {
            return Ok(run.clone());
        }
        let seed = self.references.len() + 1;
        let prefix = format!("run{seed}");
        let mut command = self.tools.python("reference.py")?;
        command.arg(self.folder.join(&prefix)).args(network.options(shape)).arg(format!("--seed={seed}"));
        let reference: Reference = last_line_as_json(&process::capture(&mut command)?)?;
        let run = Run { prefix, inputs: reference.inputs, outputs: reference.outputs, ..Run::default() };
        self.references.insert(key, run.clone());
        Ok(run)
    }
}
