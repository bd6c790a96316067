//! The README's and help's promises agree with the reference pages.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

type Release = (String, String);

fn read(page: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page);
    std::fs::read_to_string(path).expect("the page exists")
}

fn releases(text: &str) -> BTreeSet<Release> {
    let text = text.replace("full TensorRT", "TensorRT").replace(" and ", ", ");
    let (family, versions) = text.trim().split_once(' ').expect("a family and versions");
    versions.split(',').map(|version| (family.to_owned(), version.trim().to_owned())).collect()
}

/// Returns recommended and rejected releases.
fn readme() -> [BTreeSet<Release>; 2] {
    let text = read("README.md");
    let line = text.lines().find_map(|line| line.strip_prefix("Use ")).expect("a line of releases");
    let (used, rest) = line.split_once(". ").expect("a sentence");
    let (rejected, _) = rest.split_once(" do not work. ").expect("`RELEASES do not work.`");
    [used, rejected].map(releases)
}

fn support() -> Vec<(BTreeSet<Release>, String)> {
    let text = read("docs/support.md");
    let section = text.split("\n## ").find(|section| section.starts_with("TensorRT\n")).expect("a section");
    // The section's second table is about headers.
    let rows =
        section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let rows = rows.filter(|line| line.starts_with("| TensorRT"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let released = cells[1].split(" (").next().unwrap_or_default();
        (releases(released), cells[2].replace("**", ""))
    })
    .collect()
}

#[test]
fn the_readme_names_the_releases_of_the_support_page() {
    let support = support();
    let with = |verdict: &str| {
        let rows = support.iter().filter(|(_, found)| found.starts_with(verdict));
        rows.flat_map(|(released, _)| released.clone()).collect::<BTreeSet<_>>()
    };
    let known = ["works", "does not work"].map(with);
    assert!(known.iter().all(|released| !released.is_empty()), "{support:?}");
    assert_eq!(readme(), known, "README.md and docs/support.md differ");
}

#[test]
fn pages_with_results_say_first_what_was_tested() {
    for page in
        ["README.md", "docs/support.md", "docs/contributing/performance.md", "docs/contributing/proof.md"]
    {
        let text = read(page);
        let first: Vec<String> = text.lines().take(25).map(str::to_lowercase).collect();
        let first = first.join(" ");
        for words in ["tensorrt-rtx 1.7.1", "a shim", "full tensorrt", "no engine"] {
            assert!(first.contains(words), "{page} does not contain `{words}`");
        }
    }
}

/// PyPI's `cubinder` is unrelated: pip needs the wheel's file.
#[test]
fn nothing_recommends_the_package_on_the_index() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let pages = std::fs::read_dir(docs).expect("the folder exists").flatten();
    let pages = pages.map(|entry| format!("docs/{}", entry.file_name().to_string_lossy()));
    let pages = pages.filter(|page| page.ends_with(".md")).chain(["README.md".to_owned()]);
    let mut texts: Vec<(String, String)> = pages.map(|page| (page.clone(), read(&page))).collect();
    for command in ["compile", "check", "eval", "test", "tune", "paths"] {
        let help =
            Command::new(env!("CARGO_BIN_EXE_cubinder")).args([command, "--help"]).output().expect("help");
        texts.push((format!("{command} --help"), String::from_utf8_lossy(&help.stdout).replace('\n', " ")));
    }
    for (name, text) in texts {
        for quote in ["", "'", "\""] {
            assert!(!text.contains(&format!("pip install {quote}cubinder")), "{name}");
        }
    }
}
