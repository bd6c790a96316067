//! Code objects and the kernels in them: what they take, and which of them a launch takes from there.

use std::collections::{BTreeMap, BTreeSet};

use cubinder_model::{CodeObject, Digest, KernelFacts, Plugin, Variant};
use serde::Serialize;

report! {
    /// A code object.
    CodeReport {
        /// What it is for, where that is known: `sm_89`.
        target: String,
        /// Size in bytes.
        bytes: u64,
        /// In a container: how many bytes it takes there, fewer where it is compressed.
        [optional] stored_bytes: Option<u64>,
        /// Its digest, hexadecimal.
        digest: String,
        /// The kernels inside.
        kernels: Vec<KernelReport>,
    }

    /// A kernel in a code object; figures that only a cubin has are absent for PTX.
    KernelReport {
        /// The symbol.
        symbol: String,
        /// In a container: how source names it in the launches that take it from here, where any does. NVRTC compiles every kernel of a
        /// file that is no template, so an object may hold kernels that are launched from another one, or from none.
        [optional] launched_as: Vec<String>,
        /// Registers a thread.
        registers: Option<u32>,
        /// Static shared memory a block, bytes.
        shared_bytes: Option<u32>,
        /// Stack a thread, bytes.
        local_bytes: Option<u32>,
        /// The most threads a block may have, where the kernel says so.
        max_threads: Option<u32>,
        /// Sizes of the parameters, bytes.
        params: Vec<u32>,
    }
}

/// A cubin or PTX by itself.
pub(super) fn bare(target: String, bytes: &[u8], kernels: &[KernelFacts]) -> CodeReport {
    CodeReport {
        target,
        bytes: bytes.len() as u64,
        stored_bytes: None,
        digest: Digest::compute(bytes).to_string(),
        kernels: kernels.iter().map(|facts| kernel(facts, Vec::new())).collect(),
    }
}

/// The code objects of a container, whose plugins launch kernels from them.
pub(super) fn of_container(code: &[CodeObject], plugins: &[Plugin]) -> Vec<CodeReport> {
    let mut launched: BTreeMap<(usize, &str), BTreeSet<&str>> = BTreeMap::new();
    for launch in plugins.iter().flat_map(|plugin| &plugin.variants).flat_map(Variant::launches) {
        for reference in &launch.code {
            let names = launched.entry((reference.code as usize, &reference.symbol)).or_default();
            names.insert(&launch.kernel);
        }
    }
    let names = |index: usize, symbol: &str| {
        let names = launched.get(&(index, symbol)).into_iter().flatten();
        names.map(|name| (*name).to_owned()).collect()
    };
    let report = |(index, object): (usize, &CodeObject)| CodeReport {
        target: object.target.to_string(),
        bytes: object.bytes.unpacked_length() as u64,
        stored_bytes: Some(object.bytes.stored().len() as u64),
        digest: object.digest.to_string(),
        kernels: object.kernels.iter().map(|facts| kernel(facts, names(index, &facts.symbol))).collect(),
    };
    code.iter().enumerate().map(report).collect()
}

fn kernel(kernel: &KernelFacts, launched_as: Vec<String>) -> KernelReport {
    KernelReport {
        symbol: kernel.symbol.clone(),
        launched_as,
        registers: kernel.registers,
        shared_bytes: kernel.shared_bytes,
        local_bytes: kernel.local_bytes,
        max_threads: kernel.max_threads,
        params: kernel.params.iter().map(|param| param.size).collect(),
    }
}
