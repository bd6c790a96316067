//! The cases of `gpu_test.py`, in one folder with `cases.json`.

mod maker;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use fs_err as fs;
use serde::Serialize;

use crate::tools::{Tensor, scripts};

pub(crate) use maker::{Maker, Recipe};

const SCRIPTS: [&str; 4] = ["gpu_test.py", "gpu_stress.py", "gpu_faults.py", "cuda_driver.py"];
pub(crate) const ALL_CLIENTS: [&str; 2] = ["trtexec", "python"];
/// No JIT, no cache of compiled PTX.
pub(crate) const NO_JIT: [(&str, &str); 2] = [("CUDA_DISABLE_PTX_JIT", "1"), ("CUDA_CACHE_DISABLE", "1")];

#[derive(Debug, Serialize)]
struct Cases<'a> {
    cases: &'a [Case],
}

#[derive(Debug, Serialize)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) clients: Vec<&'static str>,
    pub(crate) env: BTreeMap<&'static str, &'static str>,
    pub(crate) libraries: Vec<String>,
    pub(crate) plans: Vec<Plan>,
    /// Loads, runs and unloads; client `cycles` only.
    pub(crate) cycles: u32,
    pub(crate) show: bool,
    pub(crate) fails_with: Option<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Plan {
    pub(crate) plan: String,
    pub(crate) dynamic: bool,
    pub(crate) version_compatible: bool,
    pub(crate) runs: Vec<Run>,
}

impl Plan {
    pub(crate) fn also_in_graphs(mut self) -> Plan {
        let graphs: Vec<Run> = self.runs.iter().map(|run| Run { graph: true, ..run.clone() }).collect();
        self.runs.extend(graphs);
        self
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Run {
    pub(crate) prefix: String,
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
    /// Bytes; a multiple of 256, except in Python.
    pub(crate) offset: u32,
    /// Captures a CUDA graph; Python only.
    pub(crate) graph: bool,
    /// Binds aliased outputs to separate memory, which TensorRT need not support; Python only.
    pub(crate) apart: bool,
    /// Offset of that memory in bytes.
    pub(crate) apart_offset: u32,
    /// Index of the optimization profile; Python only.
    pub(crate) profile: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    Fields,
    Embedded,
}

impl Form {
    pub(crate) const ALL: [Form; 2] = [Form::Fields, Form::Embedded];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Form::Fields => "fields",
            Form::Embedded => "embedded",
        }
    }

    pub(crate) const fn what(self) -> &'static str {
        match self {
            Form::Fields => "the generic library beside the plan",
            Form::Embedded => "nothing beside the plan",
        }
    }
}

impl Case {
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

    pub(crate) fn in_python(mut self) -> Case {
        self.clients = vec!["python"];
        self
    }
}

pub(crate) fn write(folder: &Path, runtime_library: &Path, cases: &[Case]) -> Result<()> {
    fs::create_dir_all(folder)?;
    for script in SCRIPTS {
        fs::copy(scripts().join(script), folder.join(script))?;
    }
    fs::copy(runtime_library, folder.join("libcubinder.so"))?;
    fs::write(folder.join("cases.json"), serde_json::to_string_pretty(&Cases { cases })?)?;
    Ok(())
}
