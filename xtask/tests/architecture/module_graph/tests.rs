use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, TargetKind};

use super::{Cycle, Modules};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn modules(files: &[(&str, &str)]) -> Modules {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    Modules::read(&folder.path().join("lib.rs")).unwrap()
}

fn children(cycles: &[Cycle]) -> Vec<String> {
    cycles.iter().map(|cycle| cycle.children.join(" ")).collect()
}

#[test]
fn modules_that_name_each_other_are_a_cycle() {
    let both = [("a.rs", "use crate::b::B; pub struct A(B);"), ("b.rs", "pub struct B(Box<super::a::A>);")];
    let found = modules(&[&both[..], &[("lib.rs", "mod a; mod b;")]].concat());
    assert_eq!(found.size(), (2, 2));
    assert_eq!(
        found.cycles()[0].to_string(),
        "crate: a, b depend on each other\n  a -> b (in a)\n  b -> a (in b)\n"
    );
    for (lib, a, b) in [
        ("mod a; mod b; pub use b::B;", "pub struct A(crate::B);", "use crate::a::A;"),
        ("mod a; mod b;", "use crate::{b as other};", "pub fn f() { crate::a::g() }"),
        ("mod a; mod b;", "fn f() { println!(\"{}\", crate::b::C); }", "use super::a::*;"),
        ("mod a; mod b;", "mod deep { fn f(_: crate::b::inner::B) {} }", "pub mod inner { use crate::a; }"),
    ] {
        let found = modules(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]);
        assert_eq!(children(&found.cycles()), ["a b"], "{lib} {a} {b}");
    }
}

#[test]
fn parents_children_and_tests_are_no_cycle() {
    for (a, b) in [
        ("use crate::b::B;", "pub struct B;"),
        ("use crate::b::B;", "#[cfg(test)] mod tests { use crate::a; }"),
        ("use crate::b::B;", "#[cfg(test)] use crate::a;"),
        ("mod inner { use super::X; } use inner::Y;", "use crate::a::X;"),
    ] {
        assert_eq!(
            modules(&[("lib.rs", "mod a; mod b; pub struct R;"), ("a.rs", a), ("b.rs", b)]).cycles(),
            [],
            "{a} {b}"
        );
    }
}

#[test]
fn cycles_below_the_root_are_found() {
    let found = modules(&[
        ("lib.rs", "mod p;"),
        ("p/mod.rs", "mod x; mod y;"),
        ("p/x.rs", "use super::y::Y;"),
        ("p/y/mod.rs", "fn f() { crate::p::x::g(); }"),
    ]);
    assert_eq!(children(&found.cycles()), ["x y"]);
    assert_eq!(found.cycles()[0].parent, ["p"]);
}

#[test]
fn modules_of_each_crate_form_no_cycle() {
    let metadata = metadata();
    let mut wrong = Vec::new();
    let mut crates = 0;
    for target in metadata.packages.iter().flat_map(|package| &package.targets) {
        let is_product = |kind: &TargetKind| {
            matches!(kind, TargetKind::Lib | TargetKind::RLib | TargetKind::CDyLib | TargetKind::Bin)
        };
        if !target.kind.iter().any(is_product) {
            continue;
        }
        crates += 1;
        let name = &target.name;
        let modules = Modules::read(target.src_path.as_std_path()).unwrap();
        println!("{name}: {:?} modules and edges", modules.size());
        wrong.extend(modules.cycles().iter().map(|cycle| format!("{name}: {cycle}")));
    }
    assert!(crates > 10, "{crates} crates");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn metadata() -> Metadata {
    MetadataCommand::new().current_dir(root()).no_deps().exec().unwrap()
}

fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata().packages;
    let is_ours = |name: &str| packages.iter().any(|package| package.name.as_str() == name);
    let of_package = |package: &cargo_metadata::Package| {
        let built_with = package.dependencies.iter().filter(|it| it.kind == DependencyKind::Normal);
        built_with.map(|it| it.name.clone()).filter(|name| is_ours(name)).collect()
    };
    packages.iter().map(|package| (package.name.to_string(), of_package(package))).collect()
}

fn reaches(graph: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    graph[from].iter().any(|next| next == to || reaches(graph, next, to))
}

#[test]
fn the_architecture_page_draws_the_graph_of_crates() {
    let graph = dependencies();
    let mut packages: Vec<&String> = graph.keys().collect();
    packages.sort_by_key(|from| graph.keys().filter(|to| reaches(&graph, from, to)).count());
    let lines = packages.into_iter().map(|package| {
        let uses = &graph[package];
        let is_implied = |name: &&String| uses.iter().any(|other| reaches(&graph, other, name));
        let direct: Vec<&str> = uses.iter().filter(|name| !is_implied(name)).map(String::as_str).collect();
        format!("{package:22} {}", direct.join(" ")).trim_end().to_owned()
    });
    let expected = lines.collect::<Vec<_>>().join("\n");
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let drawn = page.split("```text\n").find_map(|block| block.strip_prefix("crate                  uses\n"));
    let drawn = drawn.and_then(|block| block.split("\n```").next());
    assert!(drawn == Some(expected.as_str()), "docs/architecture.md should have:\n{expected}");
}

/// The compiler ignores unnamed test files.
#[test]
fn every_file_of_integration_tests_is_a_module() {
    let root = root();
    for folder in ["compiler/tests/it", "compiler/onnx/tests/it", "runtime-plugin/tests/it", "tests/tests/it"]
    {
        let folder = root.join(folder);
        let main = syn::parse_file(&std::fs::read_to_string(folder.join("main.rs")).unwrap()).unwrap();
        let named = |item: &syn::Item| match item {
            syn::Item::Mod(module) => Some(module.ident.to_string()),
            _ => None,
        };
        let modules: BTreeSet<String> = main.items.iter().filter_map(named).collect();
        for path in glob::glob(folder.join("*.*").to_str().unwrap()).unwrap().map(Result::unwrap) {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            assert!(stem == "main" || modules.contains(stem), "{} is not a module", path.display());
        }
    }
}
