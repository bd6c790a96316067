//! Lists linked crates with licences, each text once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Node, NodeDep, Package, PackageId, Target};
use fs_err as fs;

use crate::files;

const HEAD: &str = include_str!("../../packaging/third-party-head.txt");

pub(super) fn third_party(root: &Path) -> Result<String> {
    let mut command = MetadataCommand::new();
    command.current_dir(root);
    let options = ["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"];
    let metadata = command.other_options(options.map(str::to_owned)).exec()?;
    let linked = linked(&metadata);
    ensure!(linked.len() > 10, "cargo lists {} linked crates", linked.len());
    let mut crates = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked {
        let label = format!("{} {}", package.name, package.version);
        let license = package.license.as_deref().with_context(|| format!("`{label}` names no licence"))?;
        crates.push_str(&format!("  {label}: {license}\n"));
        for text in licence_texts(package.manifest_path.as_std_path())? {
            texts.entry(text).or_default().push(label.clone());
        }
    }
    let mut all = format!("{HEAD}\n{crates}");
    let mut texts: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, labels)| (labels, text)).collect();
    texts.sort();
    for (labels, text) in texts {
        all.push_str(&format!("\n{}\n{}\n\n{}\n", "-".repeat(80), labels.join(", "), text.trim_end()));
    }
    Ok(all)
}

fn linked(metadata: &Metadata) -> Vec<&Package> {
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let nodes: BTreeMap<&PackageId, &Node> = nodes.map(|node| (&node.id, node)).collect();
    let roots = metadata.workspace_packages();
    let roots =
        roots.iter().filter(|package| ["cubinder", "cubinder-plugin"].contains(&package.name.as_str()));
    let mut waiting: Vec<&PackageId> = roots.map(|package| &package.id).collect();
    let mut seen: BTreeSet<&PackageId> = waiting.iter().copied().collect();
    while let Some(node) = waiting.pop().and_then(|id| nodes.get(id)) {
        let is_normal = |dependency: &&NodeDep| {
            dependency.dep_kinds.iter().any(|info| info.kind == DependencyKind::Normal)
        };
        for dependency in node.deps.iter().filter(is_normal) {
            let is_macro = metadata[&dependency.pkg].targets.iter().any(Target::is_proc_macro);
            if !is_macro && seen.insert(&dependency.pkg) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    let mut found: Vec<&Package> = seen.into_iter().map(|id| &metadata[id]).collect();
    found.retain(|package| package.source.is_some());
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    found
}

fn licence_texts(manifest: &Path) -> Result<Vec<String>> {
    let mut paths = files::list(manifest.parent().context("a manifest lies in a folder")?)?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
        ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|word| name.starts_with(word))
    });
    let text = |path: &PathBuf| Ok(String::from_utf8_lossy(&fs::read(path)?).replace("\r\n", "\n"));
    paths.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_linked_crates_are_listed() {
        let root = crate::workspace::root();
        let text = third_party(&root).unwrap();
        assert!(text.contains("\n  clap ") && text.contains("\n  postcard "), "{text}");
        assert!(
            !text.contains("\n  proptest ") && !text.contains("\n  anyhow "),
            "only tests, xtask and macros use these"
        );
        assert!(text.matches("Apache License").count() >= 1 && text.contains("Permission is hereby granted"));
        assert!(!text.contains(&root.display().to_string()));
    }
}
