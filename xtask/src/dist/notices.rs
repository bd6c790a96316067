//! The licences of what is linked into the program and the library.
//!
//! Owns the text: every crate with its licence, and each licence text once, as the crates carry it. What cargo says is linked decides, not a
//! list kept by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::{process, workspace};

/// What begins the text.
const HEAD: &str = "\
Cubinder is licensed under the Apache License 2.0: see LICENSE.

Linked into the program `cubinder` and the library `libcubinder.so` are Rust's standard library (MIT OR Apache-2.0), LLVM's libunwind and
compiler-rt (Apache-2.0 WITH LLVM-exception), and the crates below, each under the licence that stands beside it.
";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// Absent for a package of this workspace.
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

impl Package {
    /// Whether it runs inside the compiler, and none of it is in what is built.
    fn is_macro(&self) -> bool {
        self.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    }
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// Absent for a normal dependency.
    kind: Option<String>,
}

/// The text.
pub(super) fn third_party(root: &Path) -> Result<String> {
    let mut command = workspace::cargo_in(root);
    command.args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]);
    // What cargo says besides, such as that it waits, comes before the object.
    let said = process::capture(&mut command)?;
    let object = said.lines().find(|line| line.starts_with('{')).context("cargo printed no metadata")?;
    let metadata: Metadata = serde_json::from_str(object).context("cargo's metadata")?;
    let linked = linked(&metadata);
    ensure!(linked.len() > 10, "cargo knows of {} linked crates", linked.len());
    let mut crates = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in linked {
        let label = format!("{} {}", package.name, package.version);
        let license = package.license.as_deref().with_context(|| format!("`{label}` names no licence"))?;
        crates.push_str(&format!("  {label}: {license}\n"));
        for text in licence_texts(&package.manifest_path)? {
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

/// The crates that others made and that are linked in, by name and version.
fn linked(metadata: &Metadata) -> Vec<&Package> {
    let package = |id: &str| metadata.packages.iter().find(|package| package.id == id);
    let is_root = |package: &&Package| {
        package.source.is_none() && ["cubinder", "cubinder-plugin"].contains(&package.name.as_str())
    };
    let mut waiting: Vec<&str> =
        metadata.packages.iter().filter(is_root).map(|package| package.id.as_str()).collect();
    let mut seen: BTreeSet<&str> = waiting.iter().copied().collect();
    while let Some(id) = waiting.pop() {
        let deps = metadata.resolve.nodes.iter().filter(|node| node.id == id).flat_map(|node| &node.deps);
        for dependency in
            deps.filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()))
        {
            let is_macro = package(&dependency.pkg).is_some_and(Package::is_macro);
            if !is_macro && seen.insert(&dependency.pkg) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    let mut found: Vec<&Package> =
        seen.into_iter().filter_map(package).filter(|package| package.source.is_some()).collect();
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    found
}

/// The licence files of a crate, in the order of their names.
fn licence_texts(manifest: &Path) -> Result<Vec<String>> {
    let folder = manifest.parent().context("a manifest lies in a folder")?;
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read `{}`", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
            path.is_file()
                && ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|word| name.starts_with(word))
        })
        .collect();
    paths.sort();
    let read =
        |path: &PathBuf| std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()));
    paths.iter().map(|path| Ok(String::from_utf8_lossy(&read(path)?).replace("\r\n", "\n"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_named_and_nothing_else() {
        let text = third_party(&workspace::root()).unwrap();
        assert!(text.contains("\n  clap ") && text.contains("\n  postcard "), "{text}");
        assert!(
            !text.contains("\n  proptest ") && !text.contains("\n  anyhow "),
            "only tests, xtask and macros use these"
        );
        assert!(text.matches("Apache License").count() >= 1 && text.contains("Permission is hereby granted"));
        assert!(!text.contains(&workspace::root().display().to_string()));
    }
}
