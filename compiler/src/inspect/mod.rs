//! What a library, a bundle, a cubin or an engine contains.
//!
//! Owns the report ([`Report`]) and how it is shown to people ([`table`]); programs take it as JSON. Never runs or loads
//! what it reads: every reader behind it treats the bytes as hostile.

/// Declares parts of the report. JSON leaves a field out that is `[optional]` and has the default value of its type.
macro_rules! report {
    ($(
        $(#[$meta:meta])*
        $name:ident { $($(#[$attribute:meta])* $([$optional:ident])? $field:ident: $ty:ty,)* }
    )*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub struct $name {
            $(
                $(#[$attribute])*
                $(
                    #[doc = concat!("\n\nIn JSON: ", stringify!($optional), ".")]
                    #[serde(skip_serializing_if = "crate::inspect::is_default")]
                )?
                pub $field: $ty,
            )*
        }
    )*};
}

mod code;
mod declared;
mod interface;
mod native;
mod provenance;
mod steps;
mod table;
mod variants;

use std::path::Path;

use cubinder_code_object::cubin;
use cubinder_expr::Value;
use cubinder_expr::print;
use cubinder_model::container::{self, Container, LocatedContainer};
use cubinder_model::core_name;
use cubinder_model::slot::Mode;
use cubinder_model::{CodeObject, Digest, Plugin};
use cubinder_node::eval::referred_plugin;
use cubinder_source::reported_path::ReportedPath;
use serde::Serialize;

use interface::interface;
use steps::one_line;

pub use code::{CodeReport, KernelReport};
pub use interface::{DeclaredReport, DimsReport, LimitsReport, Range, SizeReport};
pub use native::NativeReport;
pub use provenance::{CompilerReport, FileReport, MadeCode, OriginReport, ProvenanceReport, provenance_text};
pub use steps::{ArgReport, ConditionReport, LaunchReport, ScratchReport, StepReport, WorkReport};
pub use table::table;
pub use variants::{RowTensor, VariantReport};

/// How much of the report is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// What most people want to know.
    Short,
    /// Everything: each row's types, formats, guard, grids, blocks and arguments, and kernels that nothing launches.
    Full,
}

report! {
    /// Everything that was found in one file.
    #[derive(Default)]
    Report {
        /// The file, as the user named it.
        file: ReportedPath,
        /// What the file is.
        kind: FileKind,
        /// Its size in bytes.
        bytes: u64,
        /// For a library: what it is for, in words ([`Mode::title`]).
        [optional] library: Option<String>,
        /// For a library that runs engines: the name that it registers, under which nodes ask for it.
        [optional] registers: Option<String>,
        /// For a library of ops: the name that the nodes of engines ask for which are built with it.
        [optional] engines_ask_for: Option<String>,
        /// The containers, in order of place; copies of one container are one entry.
        containers: Vec<ContainerReport>,
        /// For a cubin or a PTX text: the kernels.
        [optional] code: Option<CodeReport>,
        /// For an engine: the kernels that TensorRT launches itself.
        [optional] native: Vec<NativeReport>,
        /// Places that look like a container and are none.
        damaged: Vec<Damaged>,
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What a file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
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
    #[default]
    Engine,
}

report! {
    /// A container and where it stands.
    #[derive(Default)]
    ContainerReport {
        /// `bundle`, `node` or `node reference`.
        kind: &'static str,
        /// Where each copy begins, bytes from the start of the file.
        offsets: Vec<u64>,
        /// Size of one copy, bytes.
        bytes: u64,
        /// Its digest, hexadecimal.
        digest: String,
        /// What made it; a reference does not say.
        [optional] producer: Option<String>,
        /// What made it, as the record behind it says; not there where it has none that this version knows.
        [optional] provenance: Option<ProvenanceReport>,
        /// For a reference: the first 8 bytes of the digest of the bundle that it needs, hexadecimal.
        [optional] refers_to: Option<String>,
        /// For a node and a reference: the name of the creator that has to be loaded before the engine.
        [optional] asks_for: Option<String>,
        /// For a node: the ranks of its inputs, where the build knew them.
        [optional] input_ranks: Option<Vec<u8>>,
        /// For a node: the workspace that the engine reserves for it, bytes, where a build has said.
        [optional] workspace_bytes: Option<u64>,
        /// The plugins, by their own op names; of a reference, only where the bundle is in the same file.
        plugins: Vec<PluginReport>,
        /// The code objects.
        code: Vec<CodeReport>,
    }

    /// A plugin, or a node of it.
    PluginReport {
        /// The op type.
        name: String,
        /// The plugin namespace.
        namespace: String,
        /// The plugin version.
        version: String,
        /// What the author says about it.
        [optional] summary: String,
        /// What a node of it can say and takes; of a node, with what is left of that.
        [optional] interface: Vec<DeclaredReport>,
        /// What must hold of every node; in a node, what its attributes and ranks have not decided.
        [optional] require: Vec<RequireReport>,
        /// The attributes on which the time of a node depends; where there is no such list, all of them, and a node does not say.
        [optional] timing: Option<Vec<String>>,
        /// On which GPUs its variants were measured.
        [optional] tuning: Vec<TuningReport>,
        /// Names and values, for a node.
        [optional] attributes: Vec<(String, String)>,
        /// The table of variants.
        variants: Vec<VariantReport>,
        /// Whether TensorRT launches its kernels itself.
        [optional] native: bool,
    }

    /// What was measured on GPUs of one kind.
    TuningReport {
        /// What the GPU is called; a node does not say.
        [optional] name: String,
        /// Its compute capability.
        capability: String,
        /// How many multiprocessors it has.
        sms: u32,
        /// For how many nodes the variants were measured.
        points: usize,
    }

    /// A rule that every node must meet.
    RequireReport {
        /// What must hold.
        #[serde(flatten)]
        condition: ConditionReport,
        /// What the author tells the person whose node breaks it.
        message: String,
    }

    /// A place that has the magic bytes of a container and is none that this version reads.
    Damaged {
        /// Bytes from the start of the file.
        offset: u64,
        /// What is wrong.
        error: String,
    }
}

/// Why there is nothing to report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// The file is a cubin or PTX that does not read.
    #[error("it begins as a cubin or PTX and does not read: {0}")]
    Code(String),
    /// The file is a shared library, and not one of Cubinder's, or a damaged one.
    #[error("{0}")]
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

/// What helps with a file in which nothing was found: of some kinds of files another command has to say something.
#[must_use]
pub fn help(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    if cubin::is_fatbin(bytes) {
        return Some(
            "it is a fatbin: `cuobjdump -xelf all FILE` and `cuobjdump -xptx all FILE` take it apart",
        );
    }
    match path.extension()?.to_str()? {
        "onnx" => Some("a model's nodes are shown by `cubinder onnx list FILE --plugins LIBRARY`"),
        "toml" => Some("a manifest is looked at by `cubinder check FILE`"),
        "cu" | "cuh" => Some("a kernel is looked at with its manifest, by `cubinder check MANIFEST`"),
        _ => None,
    }
}

/// Reads a file's contents and says what is in it.
///
/// # Errors
/// Where it is none of the things that can be inspected, or a damaged one.
pub fn inspect(file: impl AsRef<Path>, bytes: &[u8]) -> Result<Report, InspectError> {
    let (file_name, kind) = (ReportedPath::from(&file), first_guess(bytes));
    let mut report = Report { file: file_name, kind, bytes: bytes.len() as u64, ..Report::default() };
    let unreadable = |error: cubin::CubinError| InspectError::Code(error.to_string());
    match kind {
        FileKind::Cubin => {
            let facts = cubin::read(bytes).map_err(unreadable)?;
            report.code = Some(code::bare(format!("sm_{}", facts.arch), bytes, &facts.kernels));
            return Ok(report);
        }
        FileKind::Ptx => {
            let facts = cubin::read_ptx(bytes).map_err(unreadable)?;
            // `.target sm_80` in PTX is what everything here calls `compute_80`.
            let target = facts.target.replacen("sm_", "compute_", 1);
            report.code = Some(code::bare(target, bytes, &facts.kernels));
            return Ok(report);
        }
        FileKind::Library => {
            let attached = cubinder_library::read_bytes(file.as_ref(), bytes)
                .map_err(|error| InspectError::Library(error.problem.to_string()))?;
            let mode = attached.map(|attached| attached.mode);
            let bundle = collect(bytes, &mut report);
            let title = |mode: Mode| mode.title(table::is_all_native(&report));
            report.library = Some(mode.map_or("runs engines, no bundle", title).to_owned());
            name_cores(mode, bundle, &mut report);
        }
        FileKind::Bundle | FileKind::Engine => {
            if kind == FileKind::Engine {
                report.native = native::kernels(bytes);
            }
            collect(bytes, &mut report);
        }
    }
    match (report.containers.first(), report.damaged.first()) {
        (None, Some(damaged)) => {
            Err(InspectError::Damaged { offset: damaged.offset, error: damaged.error.clone() })
        }
        (None, None) if report.library.is_none() && report.native.is_empty() => {
            Err(InspectError::Nothing(report.bytes))
        }
        _ => Ok(report),
    }
}

/// Says under which name a library runs engines, or what those ask for that are built with it.
fn name_cores(mode: Option<Mode>, bundle: Option<Digest>, report: &mut Report) {
    let of_bundle = bundle.map(|digest| core_name::of_library(digest.shortened()));
    // Nodes that TensorRT launches itself ask for nothing.
    if table::is_all_native(report) {
        return;
    }
    match mode {
        None => report.registers = Some(generic()),
        Some(Mode::CodeLibrary) => report.registers = of_bundle,
        Some(Mode::Ops) => report.engines_ask_for = Some(generic()),
        Some(Mode::OpsForLibrary) => report.engines_ask_for = of_bundle,
    }
}

fn generic() -> String {
    core_name::GENERIC.to_string_lossy().into_owned()
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

/// Adds what a scan finds; the digest of the first bundle.
fn collect(bytes: &[u8], report: &mut Report) -> Option<Digest> {
    let mut all = Vec::new();
    for (offset, found) in container::scan(bytes) {
        match found {
            Ok(found) => all.push(found),
            Err(error) => report.damaged.push(Damaged { offset: offset as u64, error: error.to_string() }),
        }
    }
    for found in &all {
        if let Err(error) = add(bytes, report, found, &all) {
            report.damaged.push(Damaged { offset: found.offset as u64, error });
        }
    }
    report.damaged.sort_by_key(|damaged| damaged.offset);
    let mut bundles = all.iter().filter(|found| matches!(found.container, Container::Bundle(_)));
    bundles.next().map(|found| found.digest)
}

fn add(
    bytes: &[u8],
    report: &mut Report,
    found: &LocatedContainer,
    all: &[LocatedContainer],
) -> Result<(), String> {
    let digest = found.digest.to_string();
    let sections = bytes.get(found.offset.saturating_add(found.length)..).unwrap_or_default();
    let record =
        provenance::behind(sections, found.digest, container::FORMAT_VERSION, found.container.code());
    let record = record.unwrap_or_else(|error| {
        let offset = (found.offset + found.length) as u64;
        report.damaged.push(Damaged { offset, error });
        None
    });
    let known = report.containers.iter_mut().find(|container| container.digest == digest);
    if let Some(container) = known {
        container.offsets.push(found.offset as u64);
        container.provenance = container.provenance.take().or(record);
        return Ok(());
    }
    let mut container = container_report(found);
    container.provenance = record;
    if let Container::NodeReference(reference) = &found.container {
        let found = referred_plugin(reference, all).map_err(|error| format!("malformed: {error}"))?;
        container.plugins.extend(
            found.map(|(plugin, bundle)| plugin_report(&plugin, &reference.attributes, &bundle.code)),
        );
    }
    report.containers.push(container);
    Ok(())
}

fn container_report(found: &LocatedContainer) -> ContainerReport {
    let mut report = ContainerReport {
        kind: "bundle",
        offsets: vec![found.offset as u64],
        bytes: found.length as u64,
        digest: found.digest.to_string(),
        ..ContainerReport::default()
    };
    match &found.container {
        Container::Bundle(bundle) => {
            report.producer = Some(bundle.producer.clone());
            let plugins = bundle.plugins.iter();
            report.plugins = plugins.map(|plugin| plugin_report(plugin, &[], &bundle.code)).collect();
            report.code = code::of_container(&bundle.code, &bundle.plugins);
        }
        Container::Node(node) => {
            report.kind = "node";
            report.asks_for = Some(generic());
            report.producer = Some(node.producer.clone());
            report.input_ranks.clone_from(&node.input_ranks);
            report.workspace_bytes = node.workspace_bytes;
            report.plugins = vec![plugin_report(&node.plugin, &node.attributes, &node.code)];
            report.code = code::of_container(&node.code, std::slice::from_ref(&node.plugin));
        }
        Container::NodeReference(reference) => {
            report.kind = "node reference";
            report.refers_to = Some(reference.bundle.to_string());
            report.asks_for = Some(core_name::of_library(reference.bundle));
            report.input_ranks.clone_from(&reference.input_ranks);
            report.workspace_bytes = reference.workspace_bytes;
        }
    }
    report
}

/// A plugin, or a node of it that has these attributes.
fn plugin_report(plugin: &Plugin, attributes: &[Value], code: &[CodeObject]) -> PluginReport {
    let named = plugin.attributes.iter().zip(attributes);
    let require = plugin.require.iter().map(|rule| RequireReport {
        condition: ConditionReport { text: one_line(&rule.text), means: print(&rule.expr, plugin) },
        message: rule.message.clone(),
    });
    let timing = plugin.timing.as_ref().map(|timing| {
        let named = timing.iter().filter_map(|index| plugin.attributes.get(*index as usize));
        named.map(|attribute| attribute.name.clone()).collect()
    });
    let tuning = plugin.tuning.iter().map(|device| TuningReport {
        name: device.name.clone(),
        capability: format!("{}.{}", device.capability / 10, device.capability % 10),
        sms: device.sms,
        points: device.points.len(),
    });
    PluginReport {
        name: plugin.name.clone(),
        namespace: plugin.namespace.clone(),
        version: plugin.version.clone(),
        summary: plugin.summary.clone(),
        interface: interface(plugin, attributes),
        require: require.collect(),
        timing,
        tuning: tuning.collect(),
        attributes: named.map(|(attribute, value)| (attribute.name.clone(), value.to_string())).collect(),
        variants: plugin.variants.iter().map(|it| variants::variant(plugin, it, code)).collect(),
        native: cubinder_launch::native::is_native(plugin),
    }
}

#[cfg(test)]
mod tests;
