//! `bench engine` and `bench enqueue` prepare a folder for a GPU machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use clap::Args;
use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::compile;
use super::contenders;
use super::curves::Curve;
use super::generated::{self, Op};
use super::measure::{self, median};
use super::report::{Cell, Plot, Report, Table};
use crate::files;
use crate::tools::{Tools, last_line_as_json, scripts};

/// Nodes; different plugins.
const CHAINS: [(usize, usize); 4] = [(1, 1), (100, 1), (1000, 1), (100, 100)];
/// Only built, for the cost of unrelated plugins.
const LARGE: [(usize, usize); 1] = [(1000, 1000)];
const MACHINE_CODE: [&str; 3] = ["sm_80", "sm_90", "sm_120"];
/// For the GPU of the measurement, so the driver refuses none.
const MEASURED_CODE: [&str; 1] = ["sm_90"];
const PTX: [&str; 1] = ["compute_80"];
const SCRIPTS: [&str; 6] = [
    "bench_run.py",
    "bench_plugin.py",
    "engine_bench.py",
    "enqueue_bench.py",
    "gpu_test.py",
    "cuda_driver.py",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
enum Contender {
    Fields,
    Embedded,
    Ptx,
    Cpp,
    Python,
}

impl Contender {
    const ALL: [Contender; 5] =
        [Contender::Fields, Contender::Embedded, Contender::Ptx, Contender::Cpp, Contender::Python];

    const fn names(self) -> Names {
        let (label, stem, namespace, libraries): (_, _, _, &[&str]) = match self {
            Contender::Fields => ("Cubinder", "fields", "bench", &["fields/libops.so"]),
            Contender::Embedded => (
                "Cubinder, library in the plan",
                "embedded",
                "bench",
                &["embedded/libops.so", "embedded/libops-code.so"],
            ),
            Contender::Ptx => ("Cubinder, PTX", "ptx", "bench", &["ptx/libops.so"]),
            Contender::Cpp => ("C++", "cpp", "rival", &["cpp/librival.so"]),
            Contender::Python => ("Python class", "python", "python", &[]),
        };
        Names { label, stem, namespace, libraries }
    }
}

struct Names {
    label: &'static str,
    stem: &'static str,
    namespace: &'static str,
    libraries: &'static [&'static str],
}

impl From<Contender> for &'static str {
    fn from(kind: Contender) -> &'static str {
        kind.names().label
    }
}

#[derive(Debug)]
struct PluginSet {
    folder: PathBuf,
    name: String,
    ops: Vec<Op>,
}

/// Paths are relative to the prepared folder.
#[derive(Debug, Serialize)]
struct Engine {
    plan: String,
    plan_bytes: u64,
    libraries: Vec<String>,
    python: bool,
    ops: String,
    code: String,
    /// Every element, for zeros.
    result: f64,
}

#[derive(Debug, Serialize)]
struct Engines {
    nodes: usize,
    distinct: usize,
    arguments: usize,
    launches: usize,
    kinds: BTreeMap<Contender, Engine>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct BuildCost {
    build_ms: f64,
    plan_bytes: u64,
    peak_mb: f64,
}

impl PluginSet {
    fn make(
        tools: &Tools,
        root: &Path,
        name: &str,
        ops: Vec<Op>,
        kinds: &[Contender],
        machine_code: &[&str],
    ) -> Result<PluginSet> {
        let folder = root.join(name);
        for kind in kinds {
            let own = folder.join(kind.names().stem);
            fs::create_dir_all(&own)?;
            match kind {
                Contender::Fields => contenders::cubinder(tools, &own, "ops", &ops, machine_code, false)?,
                Contender::Embedded => contenders::cubinder(tools, &own, "ops", &ops, machine_code, true)?,
                Contender::Ptx => contenders::cubinder(tools, &own, "ops", &ops, &PTX, false)?,
                Contender::Cpp => {
                    let code = contenders::fatbin(&own, &ops, machine_code)?;
                    contenders::cpp(tools, &own, &ops, &code)?
                }
                // Uses the C++ library's fat binary.
                Contender::Python => own,
            };
        }
        files::write(
            &folder.join("ops.json"),
            &serde_json::to_string(&ops.iter().map(Op::for_scripts).collect::<Vec<_>>())?,
        )?;
        Ok(PluginSet { folder, name: name.to_owned(), ops })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn build(
        &self,
        tools: &Tools,
        kind: Contender,
        nodes: usize,
        ops: &str,
        plan: &Path,
    ) -> Result<BuildCost> {
        let mut command = tools.python("bench_build.py")?;
        command.arg(plan).args(["--nodes", &nodes.to_string(), "--namespace", kind.names().namespace]);
        command.arg("--ops").arg(self.file(ops));
        let libraries = kind.names().libraries;
        command.arg("--libraries").args(libraries.iter().map(|name| self.file(name)));
        if kind == Contender::Embedded {
            command.arg("--serialize").arg(self.file(libraries[1]));
        }
        if kind == Contender::Python {
            command.arg("--code").arg(self.file("cpp/rival.fatbin"));
        }
        last_line_as_json(&measure::run(&mut command)?.1)
    }

    fn engine(&self, kind: Contender, plan: &str, built: BuildCost, result: f64) -> Engine {
        let own = |name: &str| format!("{}/{name}", self.name);
        let libraries = match kind {
            Contender::Fields | Contender::Ptx => vec!["libcubinder.so".to_owned()],
            Contender::Embedded | Contender::Python => Vec::new(),
            Contender::Cpp => vec![own("cpp/librival.so")],
        };
        Engine {
            plan: plan.to_owned(),
            plan_bytes: built.plan_bytes,
            libraries,
            python: kind == Contender::Python,
            ops: own("ops.json"),
            code: own("cpp/rival.fatbin"),
            result,
        }
    }

    fn result(&self, nodes: usize) -> f64 {
        (0..nodes).map(|node| self.ops[node % self.ops.len()].after(0.0)).sum()
    }
}

#[derive(Debug)]
struct Chain {
    engines: Engines,
    built: BTreeMap<Contender, Vec<BuildCost>>,
}

fn chains(
    tools: &Tools,
    folder: &Path,
    runs: usize,
    which: &[(usize, usize)],
    machine_code: &[&str],
) -> Result<Vec<Chain>> {
    let mut chains = Vec::new();
    let sizes: BTreeSet<usize> = which.iter().map(|(_, kinds)| *kinds).collect();
    for distinct in sizes {
        let name = format!("plugins-{distinct}");
        let set = PluginSet::make(
            tools,
            folder,
            &name,
            generated::adding(distinct),
            &Contender::ALL,
            machine_code,
        )?;
        for (nodes, _) in which.iter().copied().filter(|(_, kinds)| *kinds == distinct) {
            eprintln!("{nodes} nodes of {distinct} kinds");
            chains.push(chain(tools, folder, &set, nodes, runs)?);
        }
    }
    Ok(chains)
}

fn chain(tools: &Tools, folder: &Path, set: &PluginSet, nodes: usize, runs: usize) -> Result<Chain> {
    let distinct = set.ops.len();
    let plan = |kind: Contender| format!("{}-{nodes}-{distinct}.plan", kind.names().stem);
    let mut built: BTreeMap<Contender, Vec<BuildCost>> = BTreeMap::new();
    let mut order = Contender::ALL;
    for _ in 0..runs {
        order.rotate_left(1);
        for kind in order {
            let one = set.build(tools, kind, nodes, "ops.json", &folder.join(plan(kind)))?;
            built.entry(kind).or_default().push(one);
        }
    }
    let result = set.result(nodes);
    let kinds = built
        .iter()
        .filter_map(|(kind, all)| Some((*kind, set.engine(*kind, &plan(*kind), *all.first()?, result))));
    let engines = Engines { nodes, distinct, arguments: 3, launches: 1, kinds: kinds.collect() };
    Ok(Chain { engines, built })
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of builds of each
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

impl Options {
    pub(super) fn command(&self) -> String {
        format!("cargo xtask bench build --runs {}", self.runs)
    }
}

pub(super) fn measure(tools: &Tools, options: &Options) -> Result<Report> {
    let runs = options.runs;
    let report = Report::start(tools, "build", options.command())?;
    let folder = tempfile::tempdir()?;
    let chains = chains(tools, folder.path(), runs, &[&CHAINS[..], &LARGE].concat(), &MACHINE_CODE)?;
    Ok(Report { tables: vec![table(&chains, runs)], plots: plots(&chains), ..report })
}

pub(super) fn prepare(tools: &Tools, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let cells: Vec<Engines> =
        chains(tools, folder, 1, &CHAINS, &MEASURED_CODE)?.into_iter().map(|chain| chain.engines).collect();
    write_folder(tools, folder, "engine", &cells)?;
    single_code(tools, folder)
}

fn single_code(tools: &Tools, folder: &Path) -> Result<()> {
    let code = folder.join("code");
    let kernels: String =
        generated::adding(100).iter().map(|op| op.kernel().replace('\n', " ") + "\n").collect();
    let mut command = compile::bare(tools, &code, "", Some(&kernels), &["sm_90", PTX[0]])?;
    measure::run(command.arg("--out").arg(&code)).map(drop)
}

pub(super) fn prepare_enqueue(tools: &Tools, folder: &Path) -> Result<()> {
    const KINDS: [Contender; 3] = [Contender::Fields, Contender::Cpp, Contender::Python];
    fs::create_dir_all(folder)?;
    let set = PluginSet::make(tools, folder, "launching", generated::launching(), &KINDS, &MEASURED_CODE)?;
    let mut cells = Vec::new();
    for op in &set.ops {
        let list = format!("{}.json", op.name);
        files::write(&set.file(&list), &serde_json::to_string(&[op.for_scripts()])?)?;
        let mut kinds = BTreeMap::new();
        for kind in KINDS {
            let plan = format!("{}-{}.plan", kind.names().stem, op.name);
            let built = set.build(tools, kind, 1, &list, &folder.join(&plan))?;
            kinds.insert(kind, set.engine(kind, &plan, built, op.after(0.0)));
        }
        cells.push(Engines { nodes: 1, distinct: 1, arguments: op.arguments, launches: op.launches, kinds });
    }
    write_folder(tools, folder, "enqueue", &cells)
}

fn write_folder(tools: &Tools, folder: &Path, name: &str, cells: &[Engines]) -> Result<()> {
    ensure!(!cells.is_empty(), "expected at least one engine");
    let text = serde_json::json!({ "cells": cells, "versions": measure::versions(tools)? });
    let text = serde_json::to_string_pretty(&text)?;
    files::write(&folder.join(format!("{name}.json")), &(text + "\n"))?;
    for script in SCRIPTS {
        fs::copy(scripts().join(script), folder.join(script))?;
    }
    fs::copy(&tools.artifacts.runtime_library, folder.join("libcubinder.so"))?;
    files::write(&folder.join("run.sh"), RUN)
}

const RUN: &str = include_str!("../../bench/engines.sh");

fn median_cost(built: &[BuildCost], value: fn(&BuildCost) -> f64) -> f64 {
    median(built.iter().map(value))
}

fn bytes(built: &BuildCost) -> f64 {
    built.plan_bytes as f64
}

struct Row<'a>(&'a Engines, Contender, &'a [BuildCost], &'a [BuildCost]);

fn table(chains: &[Chain], runs: usize) -> Table {
    let mut rows = Vec::new();
    for Chain { engines, built } in chains {
        let Some(cpp) = built.get(&Contender::Cpp) else { continue };
        rows.extend(built.iter().map(|(kind, own)| Row(engines, *kind, own, cpp)));
    }
    let text = format!(
        "A chain of element-wise nodes with one kernel per plugin. Cubinder's libraries have code for {} (PTX: {}), stored in each node, or once in the plan with the library. \
             The C++ plugins (`tests/rival-plugin`) and the Python classes (`IPluginV3`) keep their code outside the plan. TensorRT-RTX's builder without a GPU, in a new process each time, {}, medians; \
             time excludes parsing the ONNX model. Memory is the peak of the process.",
        MACHINE_CODE.join(", "),
        PTX.join(", "),
        measure::turns(runs)
    );
    Table::new(
        "Engines of a chain of nodes",
        text,
        &rows,
        &[
            ("nodes", |Row(engines, ..)| (engines.nodes as f64).into()),
            ("kernels", |Row(engines, ..)| (engines.distinct as f64).into()),
            ("plugins", |Row(_, kind, ..)| Cell::from(kind.names().label)),
            ("plan, kB", |Row(_, _, own, _)| (median_cost(own, bytes) / 1e3).into()),
            ("bytes per node", |Row(engines, _, own, _)| {
                (median_cost(own, bytes) / engines.nodes as f64).into()
            }),
            ("/ C++", |Row(_, _, own, cpp)| (median_cost(own, bytes) / median_cost(cpp, bytes)).into()),
            ("build, ms", |Row(_, _, own, _)| median_cost(own, |built| built.build_ms).into()),
            ("build / C++", |Row(_, _, own, cpp)| {
                median(own.iter().zip(*cpp).map(|(own, cpp)| own.build_ms / cpp.build_ms)).into()
            }),
            ("memory, MB", |Row(_, _, own, _)| median_cost(own, |built| built.peak_mb).into()),
        ],
    )
}

fn plots(chains: &[Chain]) -> Vec<Plot> {
    let curves = |value: fn(&BuildCost) -> f64| {
        Contender::ALL.map(|kind| {
            let alike = chains.iter().filter(|chain| chain.engines.distinct == 1);
            let points = alike.filter_map(|chain| {
                Some([chain.engines.nodes as f64, median_cost(chain.built.get(&kind)?, value)])
            });
            Curve { name: kind.names().label.to_owned(), points: points.collect() }
        })
    };
    let plot = |name, title, y, value| Plot::new(name, title, "nodes", y, curves(value).to_vec());
    vec![
        plot("size", "size of a plan with nodes that are alike", "bytes", bytes),
        plot("time", "time of building an engine with nodes that are alike", "ms", |built| built.build_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_adds_what_its_plugins_add() {
        let set = |ops| PluginSet { folder: PathBuf::new(), name: String::new(), ops };
        assert_eq!(set(generated::adding(1)).result(1000), 1000.0);
        assert_eq!(set(generated::adding(100)).result(100), 5050.0);
        assert_eq!(set(generated::adding(2)).result(3), 4.0);
    }

    #[test]
    fn a_table_has_every_kind_beside_the_one_in_cpp() {
        let built = |build_ms, plan_bytes| vec![BuildCost { build_ms, plan_bytes, peak_mb: 1.0 }];
        let engines = Engines { nodes: 10, distinct: 1, arguments: 3, launches: 1, kinds: BTreeMap::new() };
        let built =
            BTreeMap::from([(Contender::Fields, built(4.0, 3000)), (Contender::Cpp, built(2.0, 1000))]);
        let json = serde_json::to_value(BTreeMap::from([(Contender::Cpp, 1)])).unwrap();
        assert_eq!(json["C++"], 1, "scripts find kinds by their labels");
        let table = table(&[Chain { engines, built }], 1);
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0][2], Cell::from("Cubinder"));
        assert_eq!(table.rows[0][4..6], [Cell::Number(300.0), Cell::Number(3.0)]);
        assert_eq!(table.rows[0][7], Cell::Number(2.0));
    }
}
