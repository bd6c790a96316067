//! What `gpu_test.py` runs: engines, inputs, references and what is to be done with them, in one folder with its `cases.json`.
//!
//! Owns the form of that file and how its parts are made. Which cases there are is their maker's business (`gpu_test`, `sample`).
//! Never looks at a result: `gpu_test.py` does, in the folder, on whatever machine that is.

mod maker;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use fs_err as fs;
use serde::Serialize;

use crate::workshop::{Tensor, scripts};

pub(crate) use maker::{Maker, Recipe};

/// The scripts that a prepared folder needs.
const SCRIPTS: [&str; 4] = ["gpu_test.py", "gpu_stress.py", "gpu_faults.py", "cuda_driver.py"];
pub(crate) const ALL_CLIENTS: [&str; 2] = ["trtexec", "python"];
/// No PTX is compiled, and none that was compiled before is taken from the driver's cache.
pub(crate) const NO_JIT: [(&str, &str); 2] = [("CUDA_DISABLE_PTX_JIT", "1"), ("CUDA_CACHE_DISABLE", "1")];

/// What `gpu_test.py` reads.
#[derive(Debug, Serialize)]
struct Cases<'a> {
    cases: &'a [Case],
}

/// One process of one client.
#[derive(Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) clients: Vec<&'static str>,
    pub(crate) env: BTreeMap<&'static str, &'static str>,
    pub(crate) libraries: Vec<String>,
    pub(crate) plans: Vec<Plan>,
    /// How often a case for the client `cycles` loads, runs and unloads.
    pub(crate) cycles: u32,
    pub(crate) show: bool,
    pub(crate) fails_with: Option<&'static str>,
}

/// One engine with its runs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Plan {
    pub(crate) plan: String,
    pub(crate) dynamic: bool,
    pub(crate) version_compatible: bool,
    pub(crate) runs: Vec<Run>,
}

impl Plan {
    /// The plan with each run a second time, in a CUDA graph.
    pub(crate) fn also_in_graphs(mut self) -> Plan {
        let graphs: Vec<Run> = self.runs.iter().map(|run| Run { graph: true, ..run.clone() }).collect();
        self.runs.extend(graphs);
        self
    }
}

/// One inference. The file of a tensor is `PREFIX.NAME`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Run {
    pub(crate) prefix: String,
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
    /// Where the tensors begin in their buffers, bytes; what is not a multiple of 256 is for the Python client only.
    pub(crate) offset: u32,
    /// Whether the inference is captured into a CUDA graph, which is run; for the Python client only.
    pub(crate) graph: bool,
    /// Whether an aliased output gets memory of its own, which TensorRT does not promise to work; for the Python client only.
    pub(crate) apart: bool,
    /// Where such an output begins in its buffer, bytes.
    pub(crate) apart_offset: u32,
    /// Which optimization profile is used; for the Python client only.
    pub(crate) profile: usize,
}

/// The forms in which code reaches an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// In the nodes' fields; the generic library runs it.
    Fields,
    /// In a library inside the plan.
    Embedded,
}

impl Form {
    /// Both.
    pub(crate) const ALL: [Form; 2] = [Form::Fields, Form::Embedded];

    /// The name of its folder.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Form::Fields => "fields",
            Form::Embedded => "embedded",
        }
    }

    /// What it is for people.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Form::Fields => "the generic library beside the plan",
            Form::Embedded => "nothing beside the plan",
        }
    }
}

impl Case {
    /// A case for all clients.
    pub(crate) fn new(
        name: impl Into<String>,
        what: impl Into<String>,
        form: Form,
        plans: Vec<Plan>,
        env: &[(&'static str, &'static str)],
    ) -> Case {
        Case {
            name: name.into(),
            what: what.into(),
            clients: ALL_CLIENTS.to_vec(),
            env: env.iter().copied().collect(),
            libraries: if form == Form::Fields { vec!["libcubinder.so".to_owned()] } else { vec![] },
            plans,
            cycles: 50,
            show: false,
            fails_with: None,
        }
    }

    /// The case for the Python client alone.
    pub(crate) fn in_python(mut self) -> Case {
        self.clients = vec!["python"];
        self
    }
}

/// Writes the scripts, the generic library and `cases.json` to `folder`.
pub(crate) fn write(folder: &Path, runtime_library: &Path, cases: &[Case]) -> Result<()> {
    fs::create_dir_all(folder)?;
    for script in SCRIPTS {
        fs::copy(scripts().join(script), folder.join(script))?;
    }
    fs::copy(runtime_library, folder.join("libcubinder.so"))?;
    fs::write(folder.join("cases.json"), serde_json::to_string_pretty(&Cases { cases })?)?;
    Ok(())
}
