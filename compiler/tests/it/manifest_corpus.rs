use std::path::{Path, PathBuf};

use cubinder_manifest::resolve::compile;
use cubinder_source::diagnostic::{Code, Colour, Source, has_errors, render, to_json_lines};
use cubinder_source::rules;
use proptest::prelude::*;

use crate::support::corpus;

fn reported(snapshot: &Path) -> Vec<Code> {
    let text = std::fs::read_to_string(snapshot).unwrap();
    rules::ALL.iter().filter(|code| text.contains(&format!("[{code}]: "))).copied().collect()
}

#[test]
fn two_bad_manifests_break_each_rule() {
    let folders = ["tests/data/bad", "tests/data/bad/several", "tests/data/bad/compiled"];
    let all: Vec<Code> = folders
        .iter()
        .flat_map(|folder| corpus::files(folder, "snap"))
        .flat_map(|snapshot| reported(&snapshot))
        .collect();
    let count = |code: &Code| all.iter().filter(|reported| *reported == code).count();
    let rare: Vec<(Code, usize)> =
        rules::ALL.iter().map(|code| (*code, count(code))).filter(|(_, count)| *count < 2).collect();
    assert_eq!(rare, [], "rules that fewer than two bad manifests break");
}

#[test]
fn every_snapshot_is_of_a_manifest() {
    let orphans = |folder: &str, extension: &str| {
        let mut snapshots = corpus::files(folder, "snap");
        snapshots.retain(|path| !path.with_extension(extension).exists());
        snapshots
    };
    for (folder, extension) in [("", "toml"), ("/compiled", "toml"), ("/several", "")] {
        let orphans = orphans(&format!("tests/data/bad{folder}"), extension);
        assert_eq!(orphans, [""; 0].map(PathBuf::from), "snapshots that no test writes");
    }
}

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

fn seeds() -> Vec<String> {
    let folders = ["tests/data/ok", "manifests", "tests/data/bad"];
    let paths = folders.iter().flat_map(|folder| corpus::manifests(folder));
    paths.map(|path| corpus::source(&path).text.clone()).collect()
}

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
