//! What a library, a bundle, a cubin or an engine contains.
//!
//! Owns the report ([`Report`]) and how it is shown to people ([`table`]); programs take it as JSON. Never runs or loads
//! what it reads: every reader behind it treats the bytes as hostile.

mod interface;
mod steps;
mod table;

use std::path::Path;

use cubinder_bundle::container::{self, Container, Found};
use cubinder_bundle::validate::validate_attributes;
use cubinder_bundle::{CodeObject, Digest, KernelFacts, Launch, NodeReference, Plugin, Value, Variant};
use serde::Serialize;

use crate::cubin;
use crate::library;
use interface::interface;

pub use interface::{DeclaredReport, SizeReport};
pub use steps::{ScratchReport, StepReport};
pub use table::table;

/// Everything that was found in one file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The file, as the user named it.
    pub file: String,
    /// What the file is.
    pub kind: FileKind,
    /// Its size in bytes.
    pub bytes: u64,
    /// For a library: what it is for (`ops`, `code`, `generic` ...).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// The containers, in order of place; copies of one container are one entry.
    pub containers: Vec<ContainerReport>,
    /// For a cubin or a PTX text: the kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeReport>,
    /// Places that look like a container and are none.
    pub damaged: Vec<Damaged>,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A plugin library, with or without a bundle.
    Library,
    /// A container by itself.
    Bundle,
    /// A cubin.
    Cubin,
    /// PTX text.
    Ptx,
    /// Any other file in which containers were found: a TensorRT engine.
    Engine,
}

/// A container and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContainerReport {
    /// `bundle`, `node` or `node reference`.
    pub kind: &'static str,
    /// Where each copy begins, bytes from the start of the file.
    pub offsets: Vec<u64>,
    /// Size of one copy, bytes.
    pub bytes: u64,
    /// Its digest, hexadecimal.
    pub digest: String,
    /// What made it; a reference does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producer: Option<String>,
    /// For a reference: the first 16 bytes of the digest of the bundle that it needs, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refers_to: Option<String>,
    /// The plugins, by their own op names; of a reference, only where the bundle is in the same file.
    pub plugins: Vec<PluginReport>,
    /// The code objects.
    pub code: Vec<CodeReport>,
}

/// A plugin, or a node of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PluginReport {
    /// The op type.
    pub name: String,
    /// The plugin namespace.
    pub namespace: String,
    /// The plugin version.
    pub version: String,
    /// What the author says about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// What a node of it can say and takes, for a bundle.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interface: Vec<DeclaredReport>,
    /// Names and values, for a node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<(String, String)>,
    /// The table of variants.
    pub variants: Vec<VariantReport>,
}

/// One row of the table of variants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantReport {
    /// The tactic id.
    pub id: i32,
    /// Types and constants.
    pub label: String,
    /// The kernels that it launches, as source names them.
    pub kernels: Vec<String>,
    /// The memory that its steps share.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<ScratchReport>,
    /// Its steps in order, where it has more than one launch or there is more to say of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReport>,
    /// Target and digest of each code object that it uses.
    pub code: Vec<(String, String)>,
    /// The kernel in each code object that it uses.
    #[serde(skip)]
    named: Vec<Named>,
}

/// A kernel that is launched.
#[derive(Debug, Clone, PartialEq)]
struct Named {
    /// The digest of the code object, which may hold other kernels too.
    digest: String,
    /// The kernel's symbol in it.
    symbol: String,
    /// The kernel as source names it.
    kernel: String,
}

/// A code object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeReport {
    /// What it is for, where that is known: `sm_89`.
    pub target: String,
    /// Size in bytes.
    pub bytes: u64,
    /// In a container: how many bytes it takes there, fewer where it is compressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// Its digest, hexadecimal.
    pub digest: String,
    /// The kernels inside.
    pub kernels: Vec<KernelReport>,
}

/// A kernel in a code object; figures that only a cubin has are absent for PTX.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelReport {
    /// The symbol.
    pub symbol: String,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Static shared memory a block, bytes.
    pub shared_bytes: Option<u32>,
    /// Stack a thread, bytes.
    pub local_bytes: Option<u32>,
    /// The most threads a block may have, where the kernel says so.
    pub max_threads: Option<u32>,
    /// Sizes of the parameters, bytes.
    pub params: Vec<u32>,
}

/// A place that has the magic bytes of a container and is none that this version reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damaged {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// What is wrong.
    pub error: String,
}

/// Why there is nothing to report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// The file is a cubin or PTX that does not read.
    #[error("it begins as a cubin or PTX and does not read: {0}")]
    Code(String),
    /// The file is a shared library, and not one of Cubinder's, or a damaged one.
    #[error("it is no plugin library of Cubinder's: {0}")]
    Library(String),
    /// Nothing of Cubinder's is in it.
    #[error(
        "it is no plugin library, bundle, cubin or PTX, and no engine with Cubinder plugins: nothing was found in {0} bytes"
    )]
    Nothing(u64),
    /// Containers are in it, and none of them reads.
    #[error("every container in it is damaged; the first is at byte {offset}: {error}")]
    Damaged {
        /// Where the first one is.
        offset: u64,
        /// What is wrong with it.
        error: String,
    },
}

/// Reads a file's contents and says what is in it.
///
/// # Errors
/// Where it is none of the things that can be inspected, or a damaged one.
pub fn inspect(file: &str, bytes: &[u8]) -> Result<Report, InspectError> {
    let mut report = Report {
        file: file.to_owned(),
        kind: FileKind::Engine,
        bytes: bytes.len() as u64,
        library: None,
        containers: Vec::new(),
        code: None,
        damaged: Vec::new(),
    };
    match first_guess(bytes) {
        FileKind::Cubin => {
            let facts = cubin::read(bytes).map_err(|error| InspectError::Code(error.to_string()))?;
            report.kind = FileKind::Cubin;
            report.code = Some(bare_code(format!("sm_{}", facts.arch), bytes, &facts.kernels));
            return Ok(report);
        }
        FileKind::Ptx => {
            let facts = cubin::read_ptx(bytes).map_err(|error| InspectError::Code(error.to_string()))?;
            report.kind = FileKind::Ptx;
            // `.target sm_80` in PTX is what everything here calls `compute_80`.
            let target = facts.target.replacen("sm_", "compute_", 1);
            report.code = Some(bare_code(target, bytes, &facts.kernels));
            return Ok(report);
        }
        FileKind::Library => {
            let attached = library::read_bytes(Path::new(file), bytes)
                .map_err(|error| InspectError::Library(error.problem.to_string()))?;
            report.kind = FileKind::Library;
            report.library =
                Some(attached.map_or_else(
                    || "runs engines, no bundle".to_owned(),
                    |attached| attached.mode.to_string(),
                ));
        }
        FileKind::Bundle => report.kind = FileKind::Bundle,
        FileKind::Engine => {}
    }
    collect(bytes, &mut report);
    match (report.containers.first(), report.damaged.first()) {
        (None, Some(damaged)) => {
            Err(InspectError::Damaged { offset: damaged.offset, error: damaged.error.clone() })
        }
        (None, None) if report.library.is_none() => Err(InspectError::Nothing(report.bytes)),
        _ => Ok(report),
    }
}

/// By the first bytes: ELF for a GPU, ELF for this machine, PTX's first directive, a container. Anything else may be an
/// engine.
fn first_guess(bytes: &[u8]) -> FileKind {
    const ELF_MACHINE: std::ops::Range<usize> = 18..20;
    const EM_CUDA: [u8; 2] = 190_u16.to_le_bytes();
    if bytes.starts_with(b"\x7fELF") {
        return if bytes.get(ELF_MACHINE) == Some(&EM_CUDA) { FileKind::Cubin } else { FileKind::Library };
    }
    if bytes.starts_with(&container::MAGIC) {
        return FileKind::Bundle;
    }
    if starts_as_ptx(bytes) { FileKind::Ptx } else { FileKind::Engine }
}

/// Whether the first line that is neither empty nor a comment is `.version`, as PTX ISA 9.0 demands of every module.
fn starts_as_ptx(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut code = lines.filter(|line| !line.is_empty() && !line.starts_with(b"//"));
    code.next().is_some_and(|line| line.starts_with(b".version"))
}

fn bare_code(target: String, bytes: &[u8], kernels: &[KernelFacts]) -> CodeReport {
    CodeReport {
        target,
        bytes: bytes.len() as u64,
        stored_bytes: None,
        digest: Digest::of(bytes).to_string(),
        kernels: kernels.iter().map(kernel_report).collect(),
    }
}

fn collect(bytes: &[u8], report: &mut Report) {
    let mut all = Vec::new();
    for (offset, found) in container::scan(bytes) {
        match found {
            Ok(found) => all.push(found),
            Err(error) => report.damaged.push(Damaged { offset: offset as u64, error: error.to_string() }),
        }
    }
    for found in &all {
        if let Err(error) = add(report, found, &all) {
            report.damaged.push(Damaged { offset: found.offset as u64, error });
        }
    }
    report.damaged.sort_by_key(|damaged| damaged.offset);
}

fn add(report: &mut Report, found: &Found, all: &[Found]) -> Result<(), String> {
    let digest = found.digest.to_string();
    let known = report.containers.iter_mut().find(|container| container.digest == digest);
    if let Some(container) = known {
        container.offsets.push(found.offset as u64);
        return Ok(());
    }
    let mut container = container_report(found);
    if let Container::NodeReference(reference) = &found.container {
        container.plugins.extend(referred(reference, all)?);
    }
    report.containers.push(container);
    Ok(())
}

/// The plugin that a reference names, with the node's attributes and the variants of its types; `None` where its bundle is
/// not in the file.
fn referred(reference: &NodeReference, all: &[Found]) -> Result<Option<PluginReport>, String> {
    let bundle = all.iter().find_map(|found| match &found.container {
        Container::Bundle(bundle) if found.digest.shortened() == reference.bundle => Some(bundle),
        _ => None,
    });
    let Some(bundle) = bundle else { return Ok(None) };
    let plugin = bundle.plugins.get(reference.plugin as usize).ok_or_else(|| {
        format!("malformed: it names plugin {} of a bundle of {}", reference.plugin, bundle.plugins.len())
    })?;
    validate_attributes(plugin, &reference.attributes).map_err(|error| format!("malformed: {error}"))?;
    let mut plugin = plugin.clone();
    plugin.keep_row(reference.row).map_err(|error| format!("malformed: {error}"))?;
    Ok(Some(plugin_report(&plugin, &reference.attributes, &bundle.code)))
}

fn container_report(found: &Found) -> ContainerReport {
    let mut report = ContainerReport {
        kind: "bundle",
        offsets: vec![found.offset as u64],
        bytes: found.length as u64,
        digest: found.digest.to_string(),
        producer: None,
        refers_to: None,
        plugins: Vec::new(),
        code: Vec::new(),
    };
    match &found.container {
        Container::Bundle(bundle) => {
            report.producer = Some(bundle.producer.clone());
            let of_bundle = |plugin: &Plugin| PluginReport {
                interface: interface(plugin),
                ..plugin_report(plugin, &[], &bundle.code)
            };
            report.plugins = bundle.plugins.iter().map(of_bundle).collect();
            report.code = bundle.code.iter().map(code_report).collect();
        }
        Container::Node(node) => {
            report.kind = "node";
            report.producer = Some(node.producer.clone());
            report.plugins = vec![plugin_report(&node.plugin, &node.attributes, &node.code)];
            report.code = node.code.iter().map(code_report).collect();
        }
        Container::NodeReference(reference) => {
            report.kind = "node reference";
            report.refers_to = Some(reference.bundle.to_string());
        }
    }
    report
}

fn plugin_report(plugin: &Plugin, attributes: &[Value], code: &[CodeObject]) -> PluginReport {
    let named = plugin.attributes.iter().zip(attributes);
    PluginReport {
        name: plugin.name.clone(),
        namespace: plugin.namespace.clone(),
        version: plugin.version.clone(),
        summary: plugin.summary.clone(),
        interface: Vec::new(),
        attributes: named.map(|(attribute, value)| (attribute.name.clone(), value.to_string())).collect(),
        variants: plugin
            .variants
            .iter()
            .map(|variant| VariantReport {
                id: variant.id,
                label: variant.label.clone(),
                kernels: variant.launches().map(|launch| launch.kernel.clone()).collect(),
                scratch: steps::scratch(plugin, variant),
                steps: steps::steps(plugin, variant),
                code: variant
                    .launches()
                    .flat_map(|launch| &launch.code)
                    .filter_map(|reference| {
                        let object = code.get(reference.code as usize)?;
                        Some((reference.target.to_string(), object.digest.to_string()))
                    })
                    .collect(),
                named: kernels_by_code(variant, code),
            })
            .collect(),
    }
}

/// The kernels in the code objects that a variant uses.
fn kernels_by_code(variant: &Variant, code: &[CodeObject]) -> Vec<Named> {
    let of_launch = |launch: &'_ Launch| -> Vec<Named> {
        let objects = launch.code.iter().filter_map(|it| Some((it, code.get(it.code as usize)?)));
        let named = objects.map(|(reference, object)| Named {
            digest: object.digest.to_string(),
            symbol: reference.symbol.clone(),
            kernel: launch.kernel.clone(),
        });
        named.collect()
    };
    variant.launches().flat_map(of_launch).collect()
}

fn code_report(code: &CodeObject) -> CodeReport {
    CodeReport {
        target: code.target.to_string(),
        bytes: code.bytes.unpacked_length() as u64,
        stored_bytes: Some(code.bytes.stored().len() as u64),
        digest: code.digest.to_string(),
        kernels: code.kernels.iter().map(kernel_report).collect(),
    }
}

fn kernel_report(kernel: &KernelFacts) -> KernelReport {
    KernelReport {
        symbol: kernel.symbol.clone(),
        registers: kernel.registers,
        shared_bytes: kernel.shared_bytes,
        local_bytes: kernel.local_bytes,
        max_threads: kernel.max_threads,
        params: kernel.params.iter().map(|param| param.size).collect(),
    }
}

#[cfg(test)]
mod tests {
    use cubinder_bundle::Bundle;

    use super::*;

    fn reference(bundle: Digest, plugin: u32) -> Vec<u8> {
        let bundle = bundle.shortened();
        container::write_node_reference(&NodeReference {
            workspace_bytes: None,
            bundle,
            plugin,
            attributes: vec![],
            row: None,
            input_ranks: None,
        })
    }

    #[test]
    fn a_reference_without_its_bundle_says_where_its_code_is() {
        let report = inspect("node", &reference(Digest::of(b"elsewhere"), 0)).unwrap();
        assert_eq!(report.containers[0].plugins, []);
        assert!(report.damaged.is_empty());
        let line = format!(
            "its code lies in bundle {}, which is not in this file",
            Digest::of(b"elsewhere").short()
        );
        assert!(table(&report).contains(&line), "{}", table(&report));
    }

    #[test]
    fn a_bundle_shows_what_its_plugins_take() {
        let manifest = "schema = 1
            plugin = { name = \"pad\", namespace = \"com.example\", summary = \"Pads.\" }
            attributes = { pads = { type = \"i32[]\", default = [1, 1], doc = \"before and after\" } }
            inputs = [{ name = \"x\", type = \"T\", doc = \"what is padded\" }, { name = \"z\", type = \"i64\" },
                { name = \"target\", type = \"i64\", shape_input = true, values = \"0..=9\" },
                { name = \"any\", type = \"i64\", shape_input = true }]
            outputs = [{ name = \"y\", type = \"T\", shape = \"x.shape\" }, { name = \"w\", alias = \"z\", doc = \"in place\" },
                { name = \"n\", type = \"i64\", size = { upper = \"numel(x)\", opt = \"numel(x) // 2\" } },
                { name = \"found\", type = \"i32\", shape = \"[n, x.rank]\" }]
            types = { T = [\"f32\", \"f16\"] }
            launches = [{ source = \"k.cu\", kernel = \"k\", grid = [1], block = [1], args = { x = \"x\" } }]";
        let resolved = crate::resolve::compile(&crate::diagnostic::Source::new("m.toml", manifest)).unwrap();
        // A bundle without code is refused where it is read: the plugin comes after the reading.
        let mut bundle = Bundle { producer: "this test".to_owned(), plugins: vec![], code: vec![] };
        let mut found = container::read(&container::write_bundle(&bundle)).unwrap();
        bundle.plugins.push(resolved.draft.plugin);
        found.container = Container::Bundle(bundle);
        let mut report = inspect("node", &reference(Digest::of(b"elsewhere"), 0)).unwrap();
        report.containers = vec![container_report(&found)];
        let shown = table(&report);
        let lines = "  plugin com.example::pad, version 1: Pads.
    attribute pads: i32[] = [1, 1], before and after
    input x: f32 or f16, what is padded
    input z: i64
    input target: i64, a shape input of 0..=9
    input any: i64, a shape input
    output y: f32 or f16
    output w: i64, in the memory of z, in place
    output n: i64, a size of at most numel(x), usually numel(x) // 2
    output found: i32
    variant 1 T=f32: k
";
        assert!(shown.contains(lines), "{shown}");
        let json = serde_json::to_value(&report).unwrap();
        let declared = &json["containers"][0]["plugins"][0]["interface"];
        assert_eq!(declared[3]["values"], serde_json::json!({ "min": 0, "max": 9 }));
        assert_eq!(declared[6]["alias"], "z");
        let size = serde_json::json!({ "upper": "numel(x)", "opt": "numel(x) // 2" });
        assert_eq!(declared[7]["size"], size);
        assert_eq!(declared[1].get("values"), None);
        // Of the kernels of an object one is the launch's.
        let (digest, kernel) = (Digest::of(b"code").to_string(), "k<float>".to_owned());
        let facts = |symbol: &str| KernelFacts {
            symbol: symbol.to_owned(),
            registers: None,
            shared_bytes: None,
            local_bytes: None,
            max_threads: None,
            params: Vec::new(),
        };
        report.containers[0].code =
            vec![bare_code("sm_90".to_owned(), b"code", &[facts("_Z1kIf"), facts("plain")])];
        report.containers[0].plugins[0].variants[0].named =
            vec![Named { digest, symbol: "_Z1kIf".to_owned(), kernel }];
        let shown = table(&report);
        let names = ["k<float>", "plain"].map(|name| shown.matches(&format!("  {name} ")).count());
        assert_eq!(names, [1, 1], "{shown}");
    }

    #[test]
    fn a_reference_to_a_plugin_that_the_bundle_lacks_is_damage() {
        let empty = Bundle { producer: String::new(), plugins: vec![], code: vec![] };
        let bundle = container::write_bundle(&empty);
        let digest = container::read(&bundle).unwrap().digest;
        let report = inspect("plan", &[b"plan".as_slice(), &reference(digest, 7), &bundle].concat()).unwrap();
        assert_eq!(report.containers.len(), 1);
        let error = "malformed: it names plugin 7 of a bundle of 0".to_owned();
        assert_eq!(report.damaged, [Damaged { offset: 4, error }]);
    }

    /// What made an engine may have written anything into it.
    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let producer = "\u{1b}[2Jred\0\u{9b}31m".to_owned();
        let bundle = container::write_bundle(&Bundle { producer, plugins: vec![], code: vec![] });
        let text = table(&inspect("bundle", &bundle).unwrap());
        assert!(text.contains("made by \\u{1b}[2Jred\\u{0}\\u{9b}31m\n"), "{text:?}");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}
