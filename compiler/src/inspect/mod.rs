//! Reports the content of libraries, bundles, cubins and engines, as a [`Report`] or text ([`table`]).
//!
//! Never runs or loads its input, which may be hostile.

/// Declares a report. JSON omits default `[optional]` fields.
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
mod summary;
mod table;
mod variants;

use std::collections::BTreeSet;
use std::path::Path;

use cubinder_code_object::cubin;
use cubinder_expr::Value;
use cubinder_expr::print;
use cubinder_model::container::{self, Container, LocatedContainer};
use cubinder_model::core_name;
use cubinder_model::fit::{self, ComputeCapability};
use cubinder_model::slot::Mode;
use cubinder_model::thin;
use cubinder_model::{CodeObject, Digest, Plugin, Variant};
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
pub use summary::summary;
pub use table::table;
pub use variants::{RowTensor, VariantReport};

/// Amount of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// The most useful facts of one plugin.
    Short,
    /// Everything.
    Full,
}

report! {
    /// The content of one file.
    #[derive(Default)]
    Report {
        /// Path as the user wrote it.
        file: ReportedPath,
        /// The file's kind.
        kind: FileKind,
        /// Size, bytes.
        bytes: u64,
        /// Distinct nodes of an engine.
        #[serde(skip)] nodes: usize,
        /// Purpose of a library ([`Mode::title`]).
        [optional] library: Option<String>,
        /// Creator that it registers.
        [optional] registers: Option<String>,
        /// Creator that its engines request.
        [optional] engines_ask_for: Option<String>,
        /// Unique containers by offset.
        containers: Vec<ContainerReport>,
        /// Kernels of a cubin or PTX.
        [optional] code: Option<CodeReport>,
        /// Kernels that TensorRT launches itself.
        [optional] native: Vec<NativeReport>,
        /// Damaged containers.
        damaged: Vec<Damaged>,
    }
}

impl Report {
    /// Keeps plugins with this name (`namespace::name` or `name`) and containers whose digest starts with it (at least
    /// 4 digits), with their code. Returns whether any remains.
    pub fn keep(&mut self, name: &str) -> bool {
        const SHORTEST_DIGEST: usize = 4;
        self.containers.retain_mut(|container| {
            if name.len() >= SHORTEST_DIGEST && container.digest.starts_with(name) {
                return true;
            }
            container
                .plugins
                .retain(|it| it.name == name || table::qualified(&it.namespace, &it.name) == name);
            let variants = container.plugins.iter().flat_map(|plugin| &plugin.variants);
            let used: BTreeSet<_> = variants.flat_map(|it| &it.code).map(|(_, digest)| digest).collect();
            container.code.retain(|object| used.contains(&object.digest));
            !container.plugins.is_empty()
        });
        self.native.retain(|node| {
            node.op == name || node.op.rsplit_once("::").is_some_and(|(_, bare)| bare == name)
        });
        !(self.containers.is_empty() && self.native.is_empty())
    }

    /// Returns names for [`Report::keep`]: plugins, and digests of references without their bundle.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let plugins = self.containers.iter().flat_map(|container| &container.plugins);
        let plugins = plugins.map(|plugin| table::qualified(&plugin.namespace, &plugin.name));
        let unknown = self.containers.iter().filter(|container| container.plugins.is_empty());
        let unknown = unknown.map(|container| table::short(&container.digest).to_owned());
        let native = self.native.iter().map(|node| node.op.clone());
        let names: BTreeSet<_> = plugins.chain(unknown).chain(native).collect();
        names.into_iter().collect()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Kind of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A plugin library, with or without a bundle.
    Library,
    /// A standalone container.
    Bundle,
    /// A cubin.
    Cubin,
    /// PTX text.
    Ptx,
    /// Any other file with containers.
    #[default]
    Engine,
}

report! {
    /// A container with its offsets.
    #[derive(Default)]
    ContainerReport {
        /// `bundle`, `node` or `node reference`.
        kind: &'static str,
        /// Offsets of its copies, bytes.
        offsets: Vec<u64>,
        /// Size of one copy, bytes.
        bytes: u64,
        /// Digest, hexadecimal.
        digest: String,
        /// Producer; absent in references.
        [optional] producer: Option<String>,
        /// Provenance record, if readable.
        [optional] provenance: Option<ProvenanceReport>,
        /// Of a reference: first 8 bytes of the bundle's digest.
        [optional] refers_to: Option<String>,
        /// Creator to load before the engine.
        [optional] asks_for: Option<String>,
        /// A node's input ranks.
        [optional] input_ranks: Option<Vec<u8>>,
        /// A node's workspace, bytes.
        [optional] workspace_bytes: Option<u64>,
        /// Plugins; unknown without the bundle.
        plugins: Vec<PluginReport>,
        /// Code objects.
        code: Vec<CodeReport>,
    }

    /// A plugin, or a node of it.
    PluginReport {
        /// Op type.
        name: String,
        /// Plugin namespace.
        namespace: String,
        /// Plugin version.
        version: String,
        /// Author's description.
        [optional] summary: String,
        /// Attributes and tensors; a node's undecided parts.
        [optional] interface: Vec<DeclaredReport>,
        /// Rules; a node's undecided ones.
        [optional] require: Vec<RequireReport>,
        /// Attributes that affect time; `None` if all.
        [optional] timing: Option<Vec<String>>,
        /// GPUs with measured variants.
        [optional] tuning: Vec<TuningReport>,
        /// A node's attributes.
        [optional] attributes: Vec<(String, String)>,
        /// Table of variants.
        variants: Vec<VariantReport>,
        /// Whether TensorRT launches its kernels.
        [optional] native: bool,
        /// Known compute capabilities with code for every launch: `8.9`.
        [optional] runs_on: Vec<String>,
    }

    /// Measurements on one kind of GPU.
    TuningReport {
        /// GPU name.
        [optional] name: String,
        /// Compute capability.
        capability: String,
        /// Number of multiprocessors.
        sms: u32,
        /// Number of measured nodes.
        points: usize,
    }

    /// A rule for every node.
    RequireReport {
        /// The condition.
        #[serde(flatten)]
        condition: ConditionReport,
        /// Message for violations.
        message: String,
    }

    /// A container's magic bytes without a readable container.
    Damaged {
        /// Offset in the file, bytes.
        offset: u64,
        /// The problem.
        error: String,
    }
}

/// Why a file cannot be reported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InspectError {
    /// An unreadable cubin or PTX.
    #[error("it starts like a cubin or PTX, but cannot be read: {0}")]
    Code(String),
    /// A foreign or damaged shared library.
    #[error("{0}")]
    Library(String),
    /// The file has no Cubinder content.
    #[error(
        "it is not a plugin library, bundle, cubin, PTX or engine with Cubinder plugins: found nothing in {0} bytes"
    )]
    Nothing(u64),
    /// All containers are damaged.
    #[error("all its containers are damaged, the first at byte {offset}: {error}")]
    Damaged {
        /// First offset.
        offset: u64,
        /// Its error.
        error: String,
    },
}

/// Suggests another command for a foreign file.
#[must_use]
pub fn help(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    if cubin::is_fatbin(bytes) {
        return Some(
            "it is a fatbin: extract its parts with `cuobjdump -xelf all FILE` and `cuobjdump -xptx all FILE`",
        );
    }
    match path.extension()?.to_str()? {
        "onnx" => Some("use `cubinder onnx list FILE --plugins LIBRARY` for the nodes of a model"),
        "toml" => Some("use `cubinder check FILE` for a manifest"),
        "cu" | "cuh" => Some("use `cubinder check MANIFEST` for a kernel and its manifest"),
        _ => None,
    }
}

/// Reports a file.
///
/// # Errors
/// An unsupported or damaged file.
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
            // PTX's `.target sm_80` is `compute_80` here.
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
            let nodes = report.containers.iter().filter(|container| container.kind != "bundle").count();
            report.nodes = nodes + report.native.len();
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

/// Sets the creator that a library registers or its engines request.
fn name_cores(mode: Option<Mode>, bundle: Option<Digest>, report: &mut Report) {
    let of_bundle = bundle.map(|digest| core_name::of_library(digest.shortened()));
    // Nodes on the native route request no creator.
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

/// Detects ELF of a GPU or host, PTX, or a container; all else may be an engine.
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

/// Returns whether `.version` comes first, as PTX ISA 9.0 requires.
fn starts_as_ptx(bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut code = lines.filter(|line| !line.is_empty() && !line.starts_with(b"//"));
    code.next().is_some_and(|line| line.starts_with(b".version"))
}

/// Returns the first bundle's digest.
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
        capability: ComputeCapability::from_number(device.capability.into()).to_string(),
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
        runs_on: known_devices().filter(|it| runs_on(plugin, *it)).map(|it| it.to_string()).collect(),
    }
}

fn known_devices() -> impl Iterator<Item = ComputeCapability> {
    fit::KNOWN.into_iter().map(ComputeCapability::from_number)
}

pub(crate) fn runs_on(plugin: &Plugin, device: ComputeCapability) -> bool {
    plugin.variants.iter().flat_map(Variant::launches).all(|launch| thin::serves(&launch.code, device))
}

#[cfg(test)]
mod tests;
