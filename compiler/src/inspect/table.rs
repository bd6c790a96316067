//! The report for people: plain text in columns.

use std::fmt::Write as _;

use cubinder_bundle::Interval;

use super::steps::line;
use super::{CodeReport, ContainerReport, DeclaredReport, FileKind, KernelReport, Report};
use crate::diagnostic::harmless;

/// The report as a table; ends with a line end. Control characters of the file never reach the terminal.
#[must_use]
pub fn table(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}, {}", report.file, title(report), size(report.bytes));
    for container in &report.containers {
        text.push('\n');
        text.push_str(&container_table(container));
    }
    if let Some(code) = &report.code {
        let _ = writeln!(text, "target {}, digest {}\n", code.target, code.digest);
        text.push_str(&columns(&code_rows(None, std::slice::from_ref(code))));
    }
    for damaged in &report.damaged {
        let _ =
            writeln!(text, "\nwarning: a damaged container at byte {}: {}", damaged.offset, damaged.error);
    }
    harmless(&text, false)
}

fn title(report: &Report) -> String {
    match (report.kind, &report.library) {
        (FileKind::Library, Some(mode)) => format!("plugin library, {mode}"),
        (FileKind::Library, None) => "plugin library".to_owned(),
        (FileKind::Bundle, _) => "bundle".to_owned(),
        (FileKind::Cubin, _) => "cubin".to_owned(),
        (FileKind::Ptx, _) => "PTX".to_owned(),
        (FileKind::Engine, _) => {
            let nodes = report.containers.iter().filter(|container| container.kind != "bundle").count();
            format!("engine with {nodes} distinct Cubinder node{}", if nodes == 1 { "" } else { "s" })
        }
    }
}

fn container_table(container: &ContainerReport) -> String {
    let mut text = String::new();
    let copies = match container.offsets.len() {
        1 => format!("at byte {}", container.offsets[0]),
        n => format!("{n} copies, the first at byte {}", container.offsets[0]),
    };
    let _ = writeln!(
        text,
        "{} {}: {}, {copies}",
        container.kind,
        short(&container.digest),
        size(container.bytes)
    );
    if let Some(producer) = &container.producer {
        let _ = writeln!(text, "  made by {producer}");
    }
    if let Some(bundle) = &container.refers_to {
        let place = if container.plugins.is_empty() { ", which is not in this file" } else { "" };
        let _ = writeln!(text, "  its code lies in bundle {}{place}", short(bundle));
    }
    for plugin in &container.plugins {
        let name = qualified(&plugin.namespace, &plugin.name);
        let summary = if plugin.summary.is_empty() { String::new() } else { format!(": {}", plugin.summary) };
        let _ = writeln!(text, "  plugin {name}, version {}{summary}", plugin.version);
        for declared in &plugin.interface {
            let _ = writeln!(text, "    {}", declaration(declared));
        }
        for (name, value) in &plugin.attributes {
            let _ = writeln!(text, "    {name} = {value}");
        }
        for variant in &plugin.variants {
            let label = if variant.label.is_empty() { String::new() } else { format!(" {}", variant.label) };
            let _ = writeln!(text, "    variant {}{label}: {}", variant.id, variant.kernels.join(", "));
            for scratch in &variant.scratch {
                let _ = writeln!(text, "      scratch {}: {} bytes", scratch.name, scratch.bytes);
            }
            for (index, step) in variant.steps.iter().enumerate() {
                let _ = writeln!(text, "      step {}: {}", index + 1, line(step));
            }
        }
    }
    if !container.code.is_empty() {
        text.push_str(&columns(&code_rows(Some(container), &container.code)));
    }
    text
}

/// `attribute pads: i32[] = [1, 1], before and after`.
fn declaration(declared: &DeclaredReport) -> String {
    let DeclaredReport { role, name, types, formats, .. } = declared;
    let default = declared.default.iter().map(|default| format!(" = {default}"));
    let doc = Some(&declared.doc).filter(|doc| !doc.is_empty()).map(|doc| format!(", {doc}"));
    let values = declared.values.iter().map(|values| match *values {
        Interval { min: i64::MIN, max: i64::MAX } => ", a shape input".to_owned(),
        values => format!(", a shape input of {values}"),
    });
    let alias = declared.alias.iter().map(|alias| format!(", in the memory of {alias}"));
    let size = declared.size.iter().map(|size| match size.upper == size.opt {
        true => format!(", a size of at most {}", size.upper),
        false => format!(", a size of at most {}, usually {}", size.upper, size.opt),
    });
    let rest: String = default.chain(values).chain(alias).chain(size).chain(doc).collect();
    let formats = if formats.is_empty() { String::new() } else { format!(", {}", formats.join(" or ")) };
    format!("{role} {name}: {}{formats}{rest}", types.join(" or "))
}

/// The name as ONNX and TensorRT users write it.
fn qualified(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}::{name}") }
}

fn code_rows(container: Option<&ContainerReport>, code: &[CodeReport]) -> Vec<[String; 8]> {
    let heading = ["kernel", "target", "size", "regs", "shared", "stack", "threads", "digest"];
    let mut rows = vec![heading.map(str::to_owned)];
    for object in code {
        for kernel in &object.kernels {
            rows.push(row(container, object, kernel));
        }
    }
    rows
}

fn row(container: Option<&ContainerReport>, code: &CodeReport, kernel: &KernelReport) -> [String; 8] {
    let figure = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    [
        container
            .and_then(|container| source_name(container, code, kernel))
            .unwrap_or_else(|| kernel.symbol.clone()),
        code.target.clone(),
        size(code.bytes),
        figure(kernel.registers),
        figure(kernel.shared_bytes),
        figure(kernel.local_bytes),
        figure(kernel.max_threads),
        short(&code.digest).to_owned(),
    ]
}

/// A kernel of a code object as source names it, where all launches of it name it so; others that came with it have no such name.
fn source_name(container: &ContainerReport, code: &CodeReport, kernel: &KernelReport) -> Option<String> {
    let mut names = container
        .plugins
        .iter()
        .flat_map(|plugin| &plugin.variants)
        .flat_map(|variant| &variant.named)
        .filter(|named| named.digest == code.digest && named.symbol == kernel.symbol)
        .map(|named| named.kernel.clone());
    let name = names.next()?;
    names.all(|other| other == name).then_some(name)
}

fn short(digest: &str) -> &str {
    digest.get(..16).unwrap_or(digest)
}

/// A size for people: at most three digits before the unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Left-aligned columns, two spaces apart; figures (columns 2 to 6) are right-aligned.
fn columns(rows: &[[String; 8]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                2..=6 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            })
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
    text
}
