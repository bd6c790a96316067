//! Rows of `docs/contributing/promises.md` have a page and existing tests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rows(page: &str) -> Vec<[&str; 3]> {
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && *line != "| promise | page | test |") {
        let inner = line.trim_start_matches("| ").trim_end_matches(" |");
        let cells: Vec<&str> = inner.split(" | ").collect();
        rows.push(cells.try_into().unwrap_or_else(|_| panic!("a row has three cells: {line}")));
    }
    rows
}

fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

fn has_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_test = |at: usize| {
        let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        attributes.into_iter().any(|line| *line == "#[test]")
    };
    lines.iter().enumerate().any(|(at, line)| line.starts_with(&head) && is_test(at))
}

fn is_case(word: &str) -> bool {
    is_manifest(word) || word.starts_with("docs/rules/") && word.ends_with(".md")
}

fn is_manifest(word: &str) -> bool {
    word.starts_with("tests/data/bad/") && word.ends_with(".toml")
}

#[test]
fn every_promise_has_a_page_and_tests_that_exist() {
    let page =
        std::fs::read_to_string(root().join("docs/contributing/promises.md")).expect("the page exists");
    let rows = rows(&page);
    assert!(rows.len() > 150, "{} promises were read", rows.len());
    let mut wrong = Vec::new();
    let mut promises = BTreeSet::new();
    for [promise, link, tests] in &rows {
        if !promises.insert(promise) {
            wrong.push(format!("twice: {promise}"));
        }
        if !link.contains("](") {
            wrong.push(format!("no page: {promise}"));
        }
        if !quoted(tests).any(|word| word.contains("::") || is_case(word)) {
            wrong.push(format!("no test: {promise}"));
        }
        for word in quoted(tests) {
            let (file, function) = word.split_once("::").unwrap_or((word, ""));
            let Ok(text) = std::fs::read_to_string(root().join(file)) else {
                wrong.push(format!("no such file: {file} ({promise})"));
                continue;
            };
            if is_manifest(word) && !root().join(word).with_extension("snap").exists() {
                wrong.push(format!("no snapshot: {word} ({promise})"));
            }
            if word.contains("::") && !has_test(&text, function) {
                wrong.push(format!("no such test: {word} ({promise})"));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/contributing/promises.md:\n{}", wrong.join("\n"));
}

#[test]
fn a_function_that_is_no_test_is_none() {
    let text = "#[test]\n#[ignore = \"slow\"]\nfn one() {}\n\nfn helper() {}\n    #[test]\n    fn two(a in 0..2) {}\n";
    assert!(has_test(text, "one") && has_test(text, "two"));
    assert!(!has_test(text, "helper") && !has_test(text, "on"));
}
