use std::collections::{BTreeMap, BTreeSet};

use cubinder_model::{CodeObject, Digest, KernelFacts, Plugin, Variant};
use serde::Serialize;

report! {
    /// A code object.
    CodeReport {
        /// Target: `sm_89`.
        target: String,
        /// Size, bytes.
        bytes: u64,
        /// Stored size in bytes, if compressed.
        [optional] stored_bytes: Option<u64>,
        /// Digest, hexadecimal.
        digest: String,
        /// Its kernels.
        kernels: Vec<KernelReport>,
    }

    /// A kernel; PTX has fewer facts.
    KernelReport {
        /// The symbol.
        symbol: String,
        /// Source names in launches. Empty if no launch uses this copy: NVRTC compiles all non-template kernels.
        [optional] launched_as: Vec<String>,
        /// Registers per thread.
        registers: Option<u32>,
        /// Static shared memory per block, bytes.
        shared_bytes: Option<u32>,
        /// Stack per thread, bytes.
        local_bytes: Option<u32>,
        /// Declared maximum of threads per block.
        max_threads: Option<u32>,
        /// Parameter sizes, bytes.
        params: Vec<u32>,
    }
}

pub(super) fn bare(target: String, bytes: &[u8], kernels: &[KernelFacts]) -> CodeReport {
    CodeReport {
        target,
        bytes: bytes.len() as u64,
        stored_bytes: None,
        digest: Digest::compute(bytes).to_string(),
        kernels: kernels.iter().map(|facts| kernel(facts, Vec::new())).collect(),
    }
}

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
