//! Runs random manifests on the stand-in driver; compares memory with an executor.

#![allow(unsafe_code)] // opens the library as TensorRT does
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod executor;
mod host;
mod manifest;
mod named;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cubinder_library::Mode;
use cubinder_model::container;
use cubinder_model::{Bundle, CodeObject, Digest, KernelFacts, NodeReference, Plugin, core_name};
use cubinder_skip::skip;
use cubinder_tests::{cxx, fake_driver};
use fastrand::Rng;

use executor::{Binding, Meaning};
use host::{Creator, Device, Node};
use manifest::{MOST_ARRAYS, MOST_ELEMENTS, Manifest};

const MANIFESTS: u64 = 10_000;
const IN_LIBRARY: u64 = 1_000;
const RUNS: usize = 3;
/// In bytes, after the tensors.
const WORKSPACE: usize = 4096;
/// Number of slots for tensors, with margins.
const PLACES: usize = 12;
const ROOM: usize = 256;
const MEMORY: usize = PLACES * ROOM;

fn device() -> Option<Device> {
    if cxx::compiler_version().is_none() {
        skip("no C++ compiler; install g++, or set `CXX`");
        return None;
    }
    Some(Device::open(&fake_driver::driver_folder(fake_driver::Age::New).unwrap()))
}

fn code() -> CodeObject {
    let kernel = |arrays: usize| KernelFacts {
        symbol: format!("blend{arrays}"),
        registers: None,
        shared_bytes: None,
        local_bytes: None,
        max_threads: None,
        params: Vec::new(),
    };
    let bytes = b".version 7.0\n.target sm_80\n.address_size 64\n".to_vec();
    CodeObject {
        target: "compute_80".parse().unwrap(),
        digest: Digest::compute(&bytes),
        kernels: (1..=MOST_ARRAYS).map(kernel).collect(),
        bytes: bytes.into(),
    }
}

fn node(plugin: Plugin) -> Vec<u8> {
    let input_ranks = Some(vec![1; plugin.inputs.len()]);
    container::write_node(&cubinder_model::Node {
        producer: String::new(),
        plugin,
        attributes: Vec::new(),
        input_ranks,
        workspace_bytes: Some(WORKSPACE as u64),
        code: vec![code()],
    })
}

fn binding(rng: &mut Rng, manifest: &Manifest) -> Binding {
    let mut places: Vec<usize> = (0..PLACES).collect();
    rng.shuffle(&mut places);
    let mut place = || places.pop().unwrap() * ROOM + [0, 4, 8, 16, 32, 64, 128][rng.usize(..7)];
    let inputs: Vec<usize> = manifest.inputs.iter().map(|_| place()).collect();
    let mut outputs: Vec<usize> = (0..manifest.output_count()).map(|_| place()).collect();
    for (output, input) in manifest.aliased().enumerate() {
        outputs[output] = match rng.u8(..16) {
            0..7 => inputs[input],
            7 => inputs[input] + 4 * rng.usize(1..=MOST_ELEMENTS),
            8 => inputs[rng.usize(..inputs.len())],
            _ => outputs[output],
        };
    }
    Binding { inputs, outputs }
}

fn drawn(number: u64) -> (Manifest, usize, Rng) {
    let mut rng = Rng::with_seed(number);
    let size = 1 + usize::try_from(number * 5 / MANIFESTS).unwrap();
    let manifest = Manifest::random(&mut rng, size);
    let extent = if rng.u8(..16) == 0 { 0 } else { rng.usize(1..=MOST_ELEMENTS) };
    (manifest, extent, rng)
}

struct Bench {
    device: Device,
    memory: u64,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    fn open() -> Option<Bench> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let device = device()?;
        let memory = device.allocate(MEMORY + WORKSPACE);
        Some(Bench { device, memory, _turn: turn })
    }

    /// Compares all memory, `expected` before and after; false if rejected.
    fn run(
        &self,
        node: &Node,
        meaning: &Meaning<'_>,
        graph: bool,
        expected: &mut [u8],
        told: &dyn Fn(&str) -> String,
    ) -> bool {
        let binding = meaning.binding;
        let told = |text: &str| told(&format!("{text}, graph: {graph}, {binding:?}"));
        let addresses =
            |places: &[usize]| places.iter().map(|place| self.memory + *place as u64).collect::<Vec<u64>>();
        let (inputs, outputs) = (addresses(&binding.inputs), addresses(&binding.outputs));
        let workspace = self.memory + MEMORY as u64;
        let is_expected = meaning.run(expected);
        let is_accepted = self.device.run(graph, |stream| node.enqueue(&inputs, &outputs, workspace, stream));
        assert_eq!(is_accepted, is_expected, "{}", told("accepted"));
        let mut found = vec![0; MEMORY];
        self.device.read(self.memory, &mut found);
        let first = found.iter().zip(&*expected).position(|(found, expected)| found != expected);
        assert_eq!(first, None, "{}", told("the first byte that is wrong"));
        is_accepted
    }

    fn check(&self, creator: &Creator, field: &[u8], number: u64) -> usize {
        let (manifest, extent, mut rng) = drawn(number);
        let told = |text: &str| format!("{text}, for manifest {number} with {extent} elements:\n{manifest}");
        let node = creator.node(field, manifest.inputs.len(), manifest.output_count(), extent);
        let Some(node) = node else {
            // No addresses satisfy a guard.
            for _ in 0..1000 {
                let binding = binding(&mut rng, &manifest);
                let meaning = Meaning { manifest: &manifest, binding: &binding, extent };
                let is_accepted = meaning.run(&mut [0; MEMORY]);
                assert!(!is_accepted, "{}", told(&format!("rejected, but not with {binding:?}")));
            }
            return 0;
        };
        let mut expected: Vec<u8> = (0..MEMORY).map(|_| rng.u8(..)).collect();
        self.device.write(self.memory, &expected);
        let accepted = (0..RUNS).filter(|_| {
            let (binding, graph) = (binding(&mut rng, &manifest), rng.bool());
            let meaning = Meaning { manifest: &manifest, binding: &binding, extent };
            self.run(&node, &meaning, graph, &mut expected, &told)
        });
        accepted.count()
    }
}

fn generic() -> Creator {
    Creator::open(&host::library(), core_name::GENERIC.to_str().unwrap())
}

fn embedded(folder: &Path, plugins: Vec<Plugin>) -> (Creator, Vec<Vec<u8>>) {
    let inputs: Vec<usize> = plugins.iter().map(|plugin| plugin.inputs.len()).collect();
    let bytes = container::write_bundle(&Bundle { producer: String::new(), plugins, code: vec![code()] });
    let bundle = container::read(&bytes).unwrap().digest.shortened();
    let path = folder.join("librandom-code.so");
    cubinder_library::inject(&host::library(), &bytes, Mode::CodeLibrary, &path).unwrap();
    let reference = |(plugin, inputs): (u32, &usize)| {
        container::write_node_reference(&NodeReference {
            bundle,
            plugin,
            attributes: Vec::new(),
            row: Some(0),
            input_ranks: Some(vec![1; *inputs]),
            workspace_bytes: Some(WORKSPACE as u64),
        })
    };
    let nodes = (0..).zip(&inputs).map(reference).collect();
    (Creator::open(&path, &core_name::of_library(bundle)), nodes)
}

#[test]
fn what_a_node_does_is_what_its_manifest_means() {
    let Some(bench) = Bench::open() else { return };
    let generic = generic();
    let in_fields = |number: u64| bench.check(&generic, &node(drawn(number).0.plugin("random")), number);
    let accepted: usize = (0..MANIFESTS).map(in_fields).sum();
    let runs = usize::try_from(MANIFESTS).unwrap() * RUNS;
    assert!(accepted > runs / 2 && accepted < runs, "{accepted} of {runs} runs were accepted");

    let numbers: Vec<u64> = (0..IN_LIBRARY).map(|number| number * (MANIFESTS / IN_LIBRARY)).collect();
    let folder = tempfile::tempdir().unwrap();
    let plugins = numbers.iter().map(|number| drawn(*number).0.plugin(&format!("random{number}")));
    let (creator, nodes) = embedded(folder.path(), plugins.collect());
    for (number, field) in numbers.into_iter().zip(&nodes) {
        bench.check(&creator, field, number);
    }
}

#[test]
fn both_names_of_an_alias_mean_the_outputs_memory() {
    const EXTENT: usize = 8;
    let Some(bench) = Bench::open() else { return };
    let all = named::manifests();
    let folder = tempfile::tempdir().unwrap();
    let plugins =
        all.iter().enumerate().map(|(number, (_, manifest))| manifest.plugin(&format!("named{number}")));
    let plugins: Vec<Plugin> = plugins.collect();
    let in_fields = plugins.iter().cloned().map(node).collect();
    for (creator, fields) in [(generic(), in_fields), embedded(folder.path(), plugins)] {
        for ((about, manifest), field) in all.iter().zip(&fields) {
            let told = |text: &str| format!("{about}: {text}\n{manifest}");
            let outputs = manifest.output_count();
            let node = creator.node(field, manifest.inputs.len(), outputs, EXTENT).expect("the node");
            for (graph, x, y) in [false, true].into_iter().flat_map(|graph| {
                let bindings = [(0, 0), (16, 16), (4, 4), (0, 256), (4, 256), (0, 260), (4, 264)];
                bindings.map(|(x, y)| (graph, x, y))
            }) {
                let mut memory: Vec<u8> = (0..MEMORY).map(|at| u8::try_from(at % 251).unwrap()).collect();
                bench.device.write(bench.memory, &memory);
                let first = Binding { inputs: vec![x, 512], outputs: vec![y, 768][..outputs].to_vec() };
                let second = Binding { inputs: vec![y, 512], outputs: vec![1024, 1280][..outputs].to_vec() };
                for binding in [&first, &second] {
                    let meaning = Meaning { manifest, binding, extent: EXTENT };
                    bench.run(&node, &meaning, graph, &mut memory, &told);
                }
            }
        }
    }
}
