use std::collections::BTreeSet;
use std::fmt::Write as _;

use cubinder_source::columns::{Align, columns};
use cubinder_source::diagnostic::harmless;
use cubinder_source::words::size;

use super::table::{bare_code, damage, heading, qualified, requirement, short};
use super::{ContainerReport, FileKind, PluginReport, Report};

/// Formats the default output: one row per plugin or node. Escapes control characters.
#[must_use]
pub fn summary(report: &Report) -> String {
    let mut text = heading(report);
    let native = report.native.iter().map(|node| {
        let [variants, code] = ["1".to_owned(), size(node.bytes)];
        [node.op.clone(), "-".to_owned(), variants, code, node.target.clone(), "native node".to_owned()]
    });
    let rows: Vec<_> = report.containers.iter().flat_map(rows).chain(native).collect();
    if !rows.is_empty() {
        use Align::{Left, Right};
        let headings = ["plugin", "version", "variants", "code", "targets", "part of"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(headings).chain(rows).collect();
        let _ = write!(text, "\n{}", columns(&rows, 0, &[Left, Right, Right, Right, Left, Left]));
    }
    let mut requirements: Vec<String> = Vec::new();
    for requirement in report.containers.iter().filter_map(requirement) {
        if !requirements.contains(&requirement) {
            let _ = writeln!(text, "{requirement}");
            requirements.push(requirement);
        }
    }
    text.push_str(&runs_on(report));
    if !report.names().is_empty() {
        text.push_str("for details: `--plugin NAME`, or `--verbose` for all\n");
    }
    text.push_str(&bare_code(report));
    text.push_str(&damage(report));
    harmless(&text, false)
}

fn rows(container: &ContainerReport) -> Vec<[String; 6]> {
    let part = format!("{} {}", container.kind, short(&container.digest));
    let row = |plugin: &PluginReport| {
        let used = plugin.variants.iter().flat_map(|variant| &variant.code);
        let digests: BTreeSet<_> = used.clone().map(|(_, digest)| digest).collect();
        let code = container.code.iter().filter(|object| digests.contains(&object.digest));
        // Machine code first, by architecture.
        let order = |target: &&str| {
            let number: String = target.chars().filter(char::is_ascii_digit).collect();
            (target.starts_with("compute"), number.parse::<u32>().unwrap_or_default())
        };
        let mut targets: Vec<&str> = used.map(|(target, _)| target.as_str()).collect();
        targets.sort_by_key(|target| (order(target), *target));
        targets.dedup();
        let variants: BTreeSet<_> = plugin.variants.iter().map(|variant| variant.id).collect();
        [
            qualified(&plugin.namespace, &plugin.name),
            plugin.version.clone(),
            variants.len().to_string(),
            // The code of a node reference is in its bundle.
            if container.code.is_empty() { "-".to_owned() } else { size(code.map(|it| it.bytes).sum()) },
            targets.join(" "),
            part.clone(),
        ]
    };
    if let (Some(bundle), []) = (&container.refers_to, container.plugins.as_slice()) {
        let [none, place] =
            ["-".to_owned(), format!("{part}; its bundle {} is not in this file", short(bundle))];
        return vec![["?".to_owned(), none.clone(), none.clone(), none.clone(), none, place]];
    }
    container.plugins.iter().map(row).collect()
}

/// Names the known compute capabilities on which every plugin runs, as ranges; empty if code is unknown. TensorRT's
/// own code may run on fewer.
fn runs_on(report: &Report) -> String {
    let plugins: Vec<_> = report.containers.iter().flat_map(|container| &container.plugins).collect();
    let is_unknown = |it: &ContainerReport| it.refers_to.is_some() && it.plugins.is_empty();
    if plugins.is_empty() || !report.native.is_empty() || report.containers.iter().any(is_unknown) {
        return String::new();
    }
    let known = super::known_devices().map(|device| device.to_string());
    let known: Vec<(String, bool)> = known
        .map(|device| {
            let is_supported = plugins.iter().all(|plugin| plugin.runs_on.contains(&device));
            (device, is_supported)
        })
        .collect();
    let ranges: Vec<String> = known
        .chunk_by(|(_, a), (_, b)| a == b)
        .filter_map(|range| match range {
            [(one, true)] => Some(one.clone()),
            [(first, true), .., (last, _)] => Some(format!("{first} to {last}")),
            _ => None,
        })
        .collect();
    if ranges.is_empty() {
        return "runs on: no GPU runs all of these plugins\n".to_owned();
    }
    let ranges = ranges.join(", ");
    match report.kind {
        FileKind::Engine => format!(
            "the plugins have code for: GPUs of compute capability {ranges}; TensorRT's own code may run on fewer\n"
        ),
        _ => format!("runs on: GPUs of compute capability {ranges}\n"),
    }
}
