//! Packs drafts and code objects into a bundle: numbers unique code objects by first use and compresses them. Never
//! reads files or compiles.

use std::collections::HashMap;
use std::sync::Arc;

use cubinder_analysis::verify::BoundArgs;
use cubinder_expr::{Expr, Node};
use cubinder_model::provenance::Origin;
use cubinder_model::{
    Bundle, CodeBytes, CodeObject, CodeRef, Digest, Launch, Plugin, Target, TargetKind, Variant,
};

/// A plugin with its compile results.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledPlugin {
    /// The uncompiled plugin.
    pub plugin: Plugin,
    /// Launches by variant and step.
    pub units: Vec<CompiledUnit>,
}

/// Compile results of a variant's launch.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledUnit {
    /// Index of the variant.
    pub variant: usize,
    /// Index of the step.
    pub step: usize,
    /// Arguments in order.
    pub bound: BoundArgs,
    /// Kernel's cluster size, unless the manifest's.
    pub cluster: Option<[u32; 3]>,
    /// Code by target.
    pub code: Vec<CompiledCode>,
}

/// A code object and the kernel in it.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledCode {
    /// The code object, which other kernels may share.
    pub object: Arc<CodeObject>,
    /// The kernel's symbol.
    pub symbol: String,
    /// Its sources.
    pub origin: Option<Origin>,
}

/// A bundle with origins of code.
pub struct PackedBundle {
    /// The bundle.
    pub bundle: Bundle,
    /// Origins of each code object.
    pub origins: Vec<Vec<Origin>>,
}

/// Packs plugins; `producer` names the compilers.
#[must_use]
pub fn pack(producer: String, plugins: Vec<CompiledPlugin>) -> PackedBundle {
    let mut code = CodeTable::default();
    let plugins = plugins.into_iter().map(|compiled| finish(compiled, &mut code)).collect();
    PackedBundle { bundle: Bundle { producer, plugins, code: code.objects }, origins: code.origins }
}

fn finish(compiled: CompiledPlugin, code: &mut CodeTable) -> Plugin {
    let CompiledPlugin { mut plugin, units } = compiled;
    for unit in units {
        let launch = plugin.variants.get_mut(unit.variant).and_then(|variant| variant.launch_mut(unit.step));
        if let Some(launch) = launch {
            launch.args = unit.bound.args;
            let cluster =
                unit.cluster.map(|cluster| cluster.map(|axis| Expr { nodes: vec![Node::Int(axis.into())] }));
            launch.cluster = launch.cluster.take().or(cluster);
            launch.code = unit.code.into_iter().map(|compiled| code.add(compiled)).collect();
        }
    }
    let is_native = |launch: &Launch| launch.code.iter().any(|code| code.target.kind == TargetKind::Native);
    if plugin.variants.iter().flat_map(Variant::launches).any(is_native) {
        // Variants that TensorRT cannot choose have no code.
        plugin.keep_variants(|variant| variant.launches().all(is_native));
    }
    plugin
}

fn packed(object: &CodeObject) -> CodeObject {
    let bytes = match object.bytes.is_packed() {
        true => object.bytes.clone(),
        false => CodeBytes::pack(object.bytes.stored().to_vec()),
    };
    CodeObject { bytes, ..object.clone() }
}

#[derive(Default)]
struct CodeTable {
    objects: Vec<CodeObject>,
    origins: Vec<Vec<Origin>>,
    indices: HashMap<(Digest, Target), u32>,
}

impl CodeTable {
    fn add(&mut self, compiled: CompiledCode) -> CodeRef {
        let CompiledCode { object, symbol, origin } = compiled;
        let target = object.target;
        let next = self.objects.len() as u32;
        let code = *self.indices.entry((object.digest, target)).or_insert(next);
        if code == next {
            self.objects.push(packed(&object));
            self.origins.push(Vec::new());
        }
        if let Some(origins) = self.origins.get_mut(code as usize) {
            // Kernels of one program have one origin.
            origins.extend(origin.filter(|origin| !origins.contains(origin)));
        }
        CodeRef { target, code, symbol }
    }
}
