//! What a node does to memory is what its manifest means, for random manifests with aliases, scratch, several steps and variants:
//! played through the library's interfaces above the stand-in for the CUDA driver, and compared with an executor of manifests.

#![allow(unsafe_code)] // opens the library as TensorRT does
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod executor;
mod host;
mod manifest;

use cubinder_bundle::container::{self, Container};
use cubinder_bundle::{Bundle, CodeObject, Digest, KernelFacts, NodeReference, Plugin, core_name};
use cubinder_compiler::library::{self, Mode};
use cubinder_tests::{cxx, fake_driver};
use executor::{Binding, Meaning};
use fastrand::Rng;
use host::{Creator, Device};
use manifest::{MOST_ARRAYS, MOST_ELEMENTS, Manifest};

/// How many manifests are tried with the code in the nodes' fields.
const MANIFESTS: u64 = 10_000;
/// How many of them also with the code in a library.
const IN_LIBRARY: u64 = 1_000;
/// Runs of one node, each with other addresses.
const RUNS: usize = 3;
/// Bytes of the workspace, which is behind the memory of tensors.
const WORKSPACE: usize = 4096;
/// Places of tensors, each with room around it.
const PLACES: usize = 12;
const ROOM: usize = 256;
const MEMORY: usize = PLACES * ROOM;

/// The device, unless this machine cannot build it.
fn device() -> Option<Device> {
    if cxx::compiler_version().is_none() {
        let reason = "no C++ compiler; install g++, or name one with `CXX`";
        assert!(std::env::var_os("CUBINDER_REQUIRE_TOOLKIT").is_none_or(|value| value != "1"), "{reason}");
        println!("skipped: {reason}");
        return None;
    }
    Some(Device::open(&fake_driver::driver_folder().unwrap()))
}

/// Code that the stand-in accepts.
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
        digest: Digest::of(&bytes),
        kernels: (1..=MOST_ARRAYS).map(kernel).collect(),
        bytes: bytes.into(),
    }
}

/// What an engine holds of a node whose code is in its field.
fn node(plugin: Plugin) -> Vec<u8> {
    let input_ranks = Some(vec![1; plugin.inputs.len()]);
    container::write_node(&cubinder_bundle::Node {
        producer: String::new(),
        plugin,
        attributes: Vec::new(),
        input_ranks,
        workspace_bytes: Some(WORKSPACE as u64),
        code: vec![code()],
    })
}

/// Where the tensors of one run lie: anywhere apart from each other, aliased outputs also where an input lies, wholly or partly.
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

/// The manifest with this number, and the numbers that decide the rest. Earlier ones are smaller.
fn drawn(number: u64) -> (Manifest, usize, Rng) {
    let mut rng = Rng::with_seed(number);
    let size = 1 + usize::try_from(number * 5 / MANIFESTS).unwrap();
    let manifest = Manifest::random(&mut rng, size);
    let extent = if rng.u8(..16) == 0 { 0 } else { rng.usize(1..=MOST_ELEMENTS) };
    (manifest, extent, rng)
}

/// Runs a node several times and compares all memory with what its manifest means; returns how many runs were accepted.
fn check(device: &Device, memory: u64, creator: &Creator, field: &[u8], number: u64) -> usize {
    let (manifest, extent, mut rng) = drawn(number);
    let told = |text: &str| format!("{text}, for manifest {number} with {extent} elements:\n{manifest}");
    let node = creator.node(field, manifest.inputs.len(), manifest.output_count(), extent);
    let Some(node) = node else {
        // No addresses satisfy a guard.
        for _ in 0..1000 {
            let binding = binding(&mut rng, &manifest);
            let is_accepted =
                Meaning { manifest: &manifest, binding: &binding, extent }.run(&mut [0; MEMORY]);
            assert!(!is_accepted, "{}", told(&format!("refused, though not with {binding:?}")));
        }
        return 0;
    };
    let mut expected: Vec<u8> = (0..MEMORY).map(|_| rng.u8(..)).collect();
    device.write(memory, &expected);
    let mut accepted = 0;
    for run in 0..RUNS {
        let (binding, graph) = (binding(&mut rng, &manifest), rng.bool());
        let addresses =
            |places: &[usize]| places.iter().map(|place| memory + *place as u64).collect::<Vec<u64>>();
        let (inputs, outputs) = (addresses(&binding.inputs), addresses(&binding.outputs));
        let workspace = memory + MEMORY as u64;
        let is_expected = Meaning { manifest: &manifest, binding: &binding, extent }.run(&mut expected);
        let is_accepted = device.run(graph, |stream| node.enqueue(&inputs, &outputs, workspace, stream));
        let told = |text: &str| told(&format!("{text} in run {run}, graph: {graph}, {binding:?}"));
        assert_eq!(is_accepted, is_expected, "{}", told("accepted"));
        accepted += usize::from(is_accepted);
        let mut found = vec![0; MEMORY];
        device.read(memory, &mut found);
        let first = found.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert_eq!(first, None, "{}", told("the first byte that is wrong"));
    }
    accepted
}

#[test]
fn what_a_node_does_is_what_its_manifest_means() {
    let Some(device) = device() else { return };
    let memory = device.allocate(MEMORY + WORKSPACE);
    let generic = Creator::open(&host::library(), core_name::GENERIC.to_str().unwrap());
    let mut accepted = 0;
    for number in 0..MANIFESTS {
        let field = node(drawn(number).0.plugin("random"));
        accepted += check(&device, memory, &generic, &field, number);
    }
    let runs = usize::try_from(MANIFESTS).unwrap() * RUNS;
    assert!(accepted > runs / 2 && accepted < runs, "{accepted} of {runs} runs were accepted");

    let step = MANIFESTS / IN_LIBRARY;
    let plugin = |number: u64| drawn(number * step).0.plugin(&format!("random{number}"));
    let plugins: Vec<Plugin> = (0..IN_LIBRARY).map(plugin).collect();
    let bytes = container::write_bundle(&Bundle { producer: String::new(), plugins, code: vec![code()] });
    let found = container::read(&bytes).unwrap();
    assert!(matches!(found.container, Container::Bundle(_)));
    let bundle = found.digest.shortened();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("librandom-code.so");
    library::inject(&host::library(), &bytes, Mode::CodeLibrary, &path).unwrap();
    let embedded = Creator::open(&path, &core_name::of_library(bundle));
    for number in 0..IN_LIBRARY {
        let manifest = drawn(number * step).0;
        let reference = NodeReference {
            bundle,
            plugin: u32::try_from(number).unwrap(),
            attributes: Vec::new(),
            row: Some(0),
            input_ranks: Some(vec![1; manifest.inputs.len()]),
            workspace_bytes: Some(WORKSPACE as u64),
        };
        check(&device, memory, &embedded, &container::write_node_reference(&reference), number * step);
    }
}
