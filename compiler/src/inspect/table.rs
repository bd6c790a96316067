use std::collections::BTreeMap;
use std::fmt::Write as _;

use cubinder_model::core_name;
use cubinder_source::columns::{Align, columns};
use cubinder_source::diagnostic::harmless;
use cubinder_source::words::{counted, size};

use super::declared::{attribute, needs, onnx_node, tensor};
use super::steps::{details, is_plain, line};
use super::{
    CodeReport, ContainerReport, Damaged, FileKind, KernelReport, PluginReport, Report, TuningReport,
    VariantReport, Verbosity,
};

/// Formats the report with a final newline. Escapes control characters.
#[must_use]
pub fn table(report: &Report, detail: Verbosity) -> String {
    let mut text = heading(report);
    // A library for running engines creates no nodes.
    let has_ops = report.kind != FileKind::Engine && report.registers.is_none();
    for container in &report.containers {
        text.push('\n');
        text.push_str(&container_table(container, has_ops, detail));
    }
    for kernel in &report.native {
        let _ = writeln!(
            text,
            "\nnative node of {} (experimental): TensorRT launches `{}`, PTX for {}, {}, {}",
            kernel.op,
            kernel.symbol,
            kernel.target,
            size(kernel.bytes),
            places(&kernel.offsets)
        );
    }
    text.push_str(&bare_code(report));
    text.push_str(&damage(report));
    harmless(&text, false)
}

pub(super) fn heading(report: &Report) -> String {
    let mut text = format!("{}: {}, {}\n", report.file, title(report), size(report.bytes));
    if let Some(name) = &report.registers {
        let _ = writeln!(text, "registers `{name}`: load it before engines whose nodes require this name");
    }
    if let Some(name) = &report.engines_ask_for {
        let _ = writeln!(text, "engines built with it require `{name}`: {}", source_of(name));
    }
    text
}

pub(super) fn bare_code(report: &Report) -> String {
    let Some(code) = &report.code else { return String::new() };
    let rows = code.kernels.iter().map(|kernel| row(kernel.symbol.clone(), code, kernel));
    format!("target {}, digest {}\n\n{}", code.target, code.digest, kernels(rows.collect()))
}

pub(super) fn damage(report: &Report) -> String {
    let warning = |damaged: &Damaged| {
        format!("\nwarning: a damaged container at byte {}: {}\n", damaged.offset, damaged.error)
    };
    report.damaged.iter().map(warning).collect()
}

fn title(report: &Report) -> String {
    match (report.kind, &report.library) {
        (FileKind::Library, Some(mode)) => format!("plugin library, {mode}"),
        (FileKind::Library, None) => "plugin library".to_owned(),
        (FileKind::Bundle, _) => "bundle".to_owned(),
        (FileKind::Cubin, _) => "cubin".to_owned(),
        (FileKind::Ptx, _) => "PTX".to_owned(),
        (FileKind::Engine, _) => format!("engine with {}", counted(report.nodes, "distinct Cubinder node")),
    }
}

pub(super) fn is_all_native(report: &Report) -> bool {
    let mut plugins = report.containers.iter().flat_map(|container| &container.plugins).peekable();
    plugins.peek().is_some() && plugins.all(|plugin| plugin.native)
}

fn places(offsets: &[u64]) -> String {
    match offsets {
        [] => "nowhere".to_owned(),
        [one] => format!("at byte {one}"),
        [first, ..] => format!("{} copies, the first at byte {first}", offsets.len()),
    }
}

fn container_table(container: &ContainerReport, has_ops: bool, detail: Verbosity) -> String {
    let mut text = String::new();
    let copies = places(&container.offsets);
    let _ = writeln!(
        text,
        "{} {}: {}, {copies}",
        container.kind,
        short(&container.digest),
        size(container.bytes)
    );
    if let Some(producer) = &container.producer {
        let _ = writeln!(text, "  compiled by {producer}");
    }
    if let Some(bundle) = &container.refers_to {
        let place = if container.plugins.is_empty() { ", which is not in this file" } else { "" };
        let _ = writeln!(text, "  its code is in bundle {}{place}", short(bundle));
    }
    if let Some(requirement) = requirement(container) {
        let _ = writeln!(text, "  {requirement}");
    }
    if let Some(built) = built(container) {
        let _ = writeln!(text, "  {built}");
    }
    for plugin in &container.plugins {
        text.push_str(&plugin_table(plugin, has_ops, detail));
    }
    if !container.code.is_empty() {
        text.push_str(&code_table(&container.code, detail));
    }
    text
}

pub(super) fn requirement(container: &ContainerReport) -> Option<String> {
    let name = container.asks_for.as_ref()?;
    let source = match container.refers_to.is_some() && !container.plugins.is_empty() {
        true => "it is in the library with this bundle, embedded in this file".to_owned(),
        false => source_of(name),
    };
    Some(format!("requires `{name}`: {source}"))
}

fn source_of(core_name: &str) -> String {
    if core_name::GENERIC.to_bytes() == core_name.as_bytes() {
        "load `libcubinder.so` before the engine".to_owned()
    } else {
        format!("load the `lib<name>-code.so` that registers `{core_name}`, unless the plan contains it")
    }
}

fn built(container: &ContainerReport) -> Option<String> {
    let ranks = container.input_ranks.as_ref().filter(|ranks| !ranks.is_empty()).map(|ranks| {
        let ranks: Vec<String> = ranks.iter().map(ToString::to_string).collect();
        format!("inputs of rank {}", ranks.join(", "))
    });
    let workspace = container.workspace_bytes.filter(|bytes| *bytes > 0);
    let workspace = workspace.map(|bytes| format!("{} of workspace", size(bytes)));
    let facts: Vec<String> = ranks.into_iter().chain(workspace).collect();
    (!facts.is_empty()).then(|| format!("built for {}", facts.join(", with ")))
}

fn plugin_table(plugin: &PluginReport, is_op: bool, detail: Verbosity) -> String {
    let mut text = String::new();
    let name = qualified(&plugin.namespace, &plugin.name);
    let summary = if plugin.summary.is_empty() { String::new() } else { format!(": {}", plugin.summary) };
    let _ = writeln!(text, "  plugin {name}, version {}{summary}", plugin.version);
    if is_op {
        let _ = writeln!(text, "    {}", onnx_node(plugin));
    }
    if plugin.native {
        text.push_str("    TensorRT launches its kernels (experimental): engines with it need no library\n");
    }
    for declared in &plugin.interface {
        let line = match declared.role {
            "attribute" => attribute(declared, detail),
            _ => tensor(declared, &plugin.variants),
        };
        let _ = writeln!(text, "    {line}");
    }
    for need in needs(&plugin.interface, is_op) {
        let _ = writeln!(text, "    {need}");
    }
    for rule in &plugin.require {
        let _ = writeln!(text, "    requires {}: {}", rule.condition.text, rule.message);
        if detail == Verbosity::Full && rule.condition.means != rule.condition.text {
            let _ = writeln!(text, "      expanded: {}", rule.condition.means);
        }
    }
    if let (Verbosity::Full, Some(timing)) = (detail, &plugin.timing) {
        let timing = if timing.is_empty() { "no attribute".to_owned() } else { timing.join(", ") };
        let _ = writeln!(text, "    its time depends on {timing}");
    }
    for device in &plugin.tuning {
        let TuningReport { name, capability, sms, points } = device;
        let name = if name.is_empty() { "a GPU" } else { name };
        let kind = format!("compute capability {capability}, {sms} multiprocessors");
        let _ = writeln!(text, "    tuned for {name} ({kind}): {} measured", counted(*points, "node"));
    }
    let alike = |a: &VariantReport, b: &VariantReport| {
        a.id == b.id && a.guard.as_ref().map(|it| &it.text) == b.guard.as_ref().map(|it| &it.text)
    };
    for rows in plugin.variants.chunk_by(alike) {
        text.push_str(&variants_table(rows, detail));
    }
    text
}

fn variants_table(rows: &[VariantReport], detail: Verbosity) -> String {
    let mut text = String::new();
    let Some(first) = rows.first() else { return text };
    let described = |row: &VariantReport| {
        let label = if row.label.is_empty() { String::new() } else { format!(" {}", row.label) };
        format!("{label}: {}", row.kernels.join(", "))
    };
    let guard = first.guard.iter().map(|guard| format!("      where {}\n", guard.text));
    let guard: String = guard.collect();
    if let [row] = rows {
        let _ = write!(text, "    variant {}{}\n{guard}", row.id, described(row));
        text.push_str(&row_table(row, "      ", detail));
        return text;
    }
    let _ = write!(text, "    variant {}\n{guard}", first.id);
    for row in rows {
        let _ = writeln!(text, "      {}", described(row).trim_start());
        text.push_str(&row_table(row, "        ", detail));
    }
    text
}

fn row_table(row: &VariantReport, indent: &str, detail: Verbosity) -> String {
    let mut text = String::new();
    if detail == Verbosity::Full {
        if let Some(guard) = row.guard.as_ref().filter(|guard| guard.means != guard.text) {
            let _ = writeln!(text, "{indent}expanded: where {}", guard.means);
        }
        let tensors = row.tensors.iter().map(|it| format!("{} {} {}", it.name, it.ty, it.format));
        let _ = writeln!(text, "{indent}tensors: {}", tensors.collect::<Vec<_>>().join(", "));
    }
    for scratch in &row.scratch {
        let _ = writeln!(text, "{indent}scratch {}: {} bytes", scratch.name, scratch.bytes);
    }
    if detail == Verbosity::Short && is_plain(&row.steps) {
        return text;
    }
    for (index, step) in row.steps.iter().enumerate() {
        let _ = writeln!(text, "{indent}step {}: {}", index + 1, line(step));
        if detail == Verbosity::Full {
            for fact in details(step) {
                let _ = writeln!(text, "{indent}  {fact}");
            }
        }
    }
    text
}

pub(super) fn qualified(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}::{name}") }
}

/// Lists launched kernels. Others, which NVRTC compiles from the same file, are counted, or listed if `Full`.
fn code_table(code: &[CodeReport], detail: Verbosity) -> String {
    let mut rows = Vec::new();
    let mut others: BTreeMap<&str, usize> = BTreeMap::new();
    for object in code {
        for kernel in &object.kernels {
            if !kernel.launched_as.is_empty() {
                rows.push(row(kernel.launched_as.join(" or "), object, kernel));
            } else if detail == Verbosity::Full {
                rows.push(row(format!("(not launched) {}", kernel.symbol), object, kernel));
            } else {
                *others.entry(&kernel.symbol).or_default() += 1;
            }
        }
    }
    let mut text = if rows.is_empty() { String::new() } else { kernels(rows) };
    for (symbol, count) in others {
        let objects = counted(count, "code object");
        let _ = writeln!(text, "  `{symbol}` is in {objects} but never launched");
    }
    text
}

fn row(name: String, code: &CodeReport, kernel: &KernelReport) -> [String; 8] {
    let figure = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    [
        name,
        code.target.clone(),
        size(code.bytes),
        figure(kernel.registers),
        figure(kernel.shared_bytes),
        figure(kernel.local_bytes),
        figure(kernel.max_threads),
        short(&code.digest).to_owned(),
    ]
}

pub(super) fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}

fn kernels(rows: Vec<[String; 8]>) -> String {
    use Align::{Left, Right};
    let headings = ["kernel", "target", "size", "regs", "shared", "stack", "threads", "digest"];
    let rows: Vec<[String; 8]> = std::iter::once(headings.map(str::to_owned)).chain(rows).collect();
    columns(&rows, 2, &[Left, Left, Right, Right, Right, Right, Right, Left])
}
