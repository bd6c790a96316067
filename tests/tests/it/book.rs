use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const CONTENTS: &str = "docs/SUMMARY.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn pages() -> BTreeMap<String, String> {
    let mut names = vec!["README.md".to_owned()];
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                folders.push(name);
            } else if name.ends_with(".md") {
                names.push(name);
            }
        }
    }
    let read = |name: String| {
        let text = std::fs::read_to_string(root().join(&name)).unwrap();
        (name, text)
    };
    names.into_iter().map(read).collect()
}

fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

fn links(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for line in prose(text) {
        let parts = line.split("](").skip(1);
        links.extend(parts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target));
    }
    links
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for line in prose(text) {
        if let Some(heading) = line.strip_prefix('#') {
            let title = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
        anchors
            .extend(line.split("id=\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    anchors
}

#[test]
fn every_page_is_in_the_contents_once() {
    let pages = pages();
    assert!(pages.contains_key("docs/plugins/nms.md"), "pages in folders are checked");
    let mut listed = links(&pages[CONTENTS]);
    listed.sort_unstable();
    let there: Vec<&str> =
        pages.keys().filter(|name| *name != CONTENTS).filter_map(|name| name.strip_prefix("docs/")).collect();
    assert_eq!(listed, there);
}

#[test]
fn titles_in_the_contents_are_those_of_the_pages() {
    let pages = pages();
    let mut wrong = Vec::new();
    for line in pages[CONTENTS].lines().filter(|line| line.contains("](")) {
        let (title, rest) = line.trim_start_matches([' ', '-', '[']).split_once("](").unwrap();
        let name = format!("docs/{}", rest.trim_end_matches(')'));
        let page = if name == "docs/introduction.md" { "README.md" } else { name.as_str() };
        let heading = pages[page].lines().find_map(|line| line.strip_prefix("# "));
        if heading != Some(title) {
            wrong.push(format!("{name}: {heading:?}, in the contents: {title}"));
        }
    }
    assert!(wrong.is_empty(), "titles differ:\n{}", wrong.join("\n"));
}

#[test]
fn links_between_pages_lead_somewhere() {
    let pages = pages();
    let mut broken = Vec::new();
    for (name, text) in &pages {
        let folder = Path::new(name).parent().unwrap();
        for link in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { name.clone() } else { tidy(&folder.join(file)) };
            let is_there = root().join(&path).exists();
            let has_anchor =
                anchor.is_empty() || pages.get(&path).is_some_and(|page| anchors(page).contains(anchor));
            if !is_there || !has_anchor {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

fn tidy(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(parts.pop()),
            std::path::Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            _ => {}
        }
    }
    parts.join("/")
}
