//! Every manifest of `tests/data`: the good ones resolve without a word, the bad ones get the messages that stand beside
//! them. `INSTA_UPDATE=always` writes these anew; read them before you keep them.
//!
//! Of the bad ones, those in `bad/` itself are told by all that needs no compiler; a folder in `bad/several/` is a project whose
//! manifests are bad together; what only NVRTC can tell is in `bad/compiled/`, which `kernels.rs` goes through.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_compiler::diagnostic::{Code, Colour, Diagnostic, Source, has_errors, render, to_json_lines};
use cubinder_compiler::project::Project;
use cubinder_compiler::resolve::{Resolved, compile};
use cubinder_compiler::source;
use cubinder_compiler::{checkup, rules};
use proptest::prelude::*;

fn data(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder)
}

/// The manifests of a folder, by name.
fn manifests(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data(folder)).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    paths
}

/// The file's text under its bare name, so that errors do not depend on where the checkout is.
fn source(path: &Path) -> Arc<Source> {
    let text = source::text(path).expect("a text").text.clone();
    Source::new(path.file_name().expect("a name"), text)
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).expect("a plain name")
}

fn resolve(path: &Path) -> Resolved {
    compile(&source(path)).unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)))
}

#[test]
fn good_manifests_resolve_without_a_word() {
    for path in manifests("tests/data/ok").iter().chain(&manifests("manifests")) {
        let resolved = resolve(path);
        assert_eq!(render(&resolved.warnings, Colour::Plain), "", "{}", path.display());
        let plugin = &resolved.draft.plugin;
        let launches: usize = plugin.variants.iter().map(|variant| variant.launches().count()).sum();
        assert_eq!(launches, resolved.draft.units.len());
        let (attributes, tensors) = (plugin.attributes.len(), plugin.tensor_count());
        for output in &plugin.outputs {
            // The sizes in it are what outputs hold.
            output.shape.validate(attributes, tensors).expect("a shape over the inputs");
        }
        for rule in &plugin.require {
            rule.expr.validate(attributes, plugin.inputs.len()).expect("a rule over the inputs");
        }
        for variant in &plugin.variants {
            assert_eq!(variant.types.len(), tensors);
            for launch in variant.launches() {
                let sizes = launch.grid.iter().chain(&launch.block).chain([&launch.shared_bytes]);
                sizes.for_each(|size| size.validate(attributes, tensors).expect("over the tensors"));
            }
        }
    }
}

/// What `cubinder check` says of manifests that it is given together: all that needs no compiler. Kernels are looked for in the
/// current folder.
fn told(paths: &[PathBuf]) -> Vec<Diagnostic> {
    let sources: Vec<_> = paths.iter().map(|path| Ok(source(path))).collect();
    checkup::sources(&Project::default(), &sources, &source::text).diagnostics
}

/// The folders in a folder, by name.
fn folders(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(data(folder)).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.is_dir());
    paths.sort();
    paths
}

#[test]
fn bad_manifests_are_told_why() {
    // Kernels are named relative to their manifests, and messages must not name where the checkout is. No other test of this
    // program looks at the current folder.
    std::env::set_current_dir(data("tests/data/bad")).expect("the folder is there");
    let mut all: Vec<BTreeSet<Code>> = Vec::new();
    for path in manifests("tests/data/bad") {
        let name = stem(&path).to_owned();
        all.push(is_told(&data("tests/data/bad"), &name, &[path]));
    }
    for folder in folders("tests/data/bad/several") {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a plain name");
        let paths = manifests(&format!("tests/data/bad/several/{name}"));
        all.push(is_told(&data("tests/data/bad/several"), name, &paths));
    }
    // What NVRTC tells is held against these snapshots by `kernels.rs`.
    for path in manifests("tests/data/bad/compiled") {
        let shown = std::fs::read_to_string(path.with_extension("snap")).expect("it has a snapshot");
        let is_shown = |code: &&Code| shown.contains(&format!("[{code}]: "));
        all.push(rules::ALL.iter().filter(is_shown).copied().collect());
    }
    assert!(all.len() >= 100, "only {} bad manifests", all.len());
    let count = |code: &Code| all.iter().filter(|told| told.contains(code)).count();
    let rare: Vec<(Code, usize)> =
        rules::ALL.iter().map(|code| (*code, count(code))).filter(|(_, count)| *count < 2).collect();
    assert_eq!(rare, [], "rules that fewer than two bad manifests break");
}

/// Holds what is said of manifests against the snapshot in `folder`: the rules that are broken.
fn is_told(folder: &Path, name: &str, paths: &[PathBuf]) -> BTreeSet<Code> {
    let told = told(paths);
    assert!(!told.is_empty(), "nothing is said of {name}");
    let without_rule: Vec<&Diagnostic> = told.iter().filter(|one| one.code.is_none()).collect();
    assert!(without_rule.is_empty(), "messages about {name} without a rule: {without_rule:#?}");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, render(&told, Colour::Plain)));
    told.iter().filter_map(|one| one.code).collect()
}

/// The snapshots in a folder.
fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "snap")).collect()
}

#[test]
fn every_snapshot_is_of_a_manifest() {
    let has = |path: &PathBuf, extension: &str| path.with_extension(extension).exists();
    let bad = data("tests/data/bad");
    let mut orphans = snapshots(&bad);
    orphans.extend(snapshots(&bad.join("compiled")));
    orphans.retain(|path| !has(path, "toml"));
    orphans.extend(snapshots(&bad.join("several")).into_iter().filter(|path| !has(path, "")));
    assert_eq!(orphans, [""; 0].map(PathBuf::from), "nothing makes these");
}

/// Whatever is said must be sayable in every form.
fn answer(text: String) {
    match compile(&Source::new("m.toml", text)) {
        Ok(resolved) => assert!(!has_errors(&resolved.warnings)),
        Err(diagnostics) => {
            assert!(has_errors(&diagnostics));
            assert!(!render(&diagnostics, Colour::Ansi).is_empty());
            to_json_lines(&diagnostics).expect("it is JSON");
        }
    }
}

/// The manifests that mutations begin with.
fn seeds() -> Vec<String> {
    let good = manifests("tests/data/ok");
    let paths = good.into_iter().chain(manifests("manifests")).chain(manifests("tests/data/bad"));
    paths.map(|path| source(&path).text.clone()).collect()
}

/// What is put in the place of a part of a manifest.
fn splice() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("\"".to_owned()),
        Just("9223372036854775807".to_owned()),
        Just("-1".to_owned()),
        Just("[".repeat(300)),
        Just("(".repeat(300)),
        Just("{ a = ".to_owned()),
        Just("x.shape[0]".to_owned()),
        Just("[[launches]]\n".to_owned()),
        Just("'''".to_owned()),
        Just("é\u{301}🦀\r\n".to_owned()),
        "[ -~\n]{0,20}",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn mutated_manifests_are_answered(
        seed in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..30, splice()), 1..4),
    ) {
        let seeds = seeds();
        let mut text = seed.get(&seeds).clone();
        for (at, length, replacement) in edits {
            let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let start = at.index(boundaries.len());
            let end = (start + length).min(boundaries.len() - 1);
            text.replace_range(boundaries[start]..boundaries[end], &replacement);
        }
        answer(text);
    }

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        answer(text);
    }
}
