use std::path::Path;

const PAGES: [&str; 5] = [
    "docs/architecture.md",
    "docs/contributing/compiler.md",
    "docs/contributing/engine-format.md",
    "docs/contributing/runtime.md",
    "docs/contributing/verification.md",
];

const FOLDERS: [&str; 7] =
    ["compiler/", "docs/", "kernels/", "manifests/", "runtime-plugin/", "tests/", "xtask/"];

/// Returns backquoted paths; expands `a/{b,c}`.
fn paths(page: &str) -> Vec<String> {
    let spans = page
        .lines()
        .filter(|line| !line.starts_with("```"))
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let named = spans.filter(|span| {
        FOLDERS.iter().any(|folder| span.starts_with(folder)) && !span.contains(['*', ' ', '<'])
    });
    named.flat_map(alternatives).collect()
}

fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (names, after) = rest.split_once('}').expect("a brace is closed");
    names.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

#[test]
fn named_paths_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).expect("the page exists");
        let paths = paths(&text);
        assert!(paths.len() > 5, "{page} names {} paths", paths.len());
        let missing: Vec<&String> = paths.iter().filter(|path| !is_there(&root, path)).collect();
        assert!(missing.is_empty(), "{page} contains paths that do not exist: {missing:#?}");
    }
}

fn is_there(root: &Path, path: &str) -> bool {
    root.join(path).exists() || root.join(format!("{path}.rs")).exists()
}

#[test]
fn reads_paths() {
    let text = "see `compiler/{a,b}/c.rs`, `serde`, `tests/x y` and `xtask/`";
    assert_eq!(paths(text), ["compiler/a/c.rs", "compiler/b/c.rs", "xtask/"]);
}

fn dependencies(manifest: &str) -> Vec<&str> {
    let table = manifest.split("\n[workspace.dependencies]\n").nth(1).expect("the table exists");
    let table = table.split("\n[").next().unwrap_or(table);
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.contains("path ="));
    lines.filter_map(|line| Some(line.split_once(" = ")?.0)).collect()
}

#[test]
fn every_dependency_has_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).expect("the manifest exists");
    let page = std::fs::read_to_string(root.join("docs/architecture.md")).expect("the page exists");
    let reasons = page.split("## Dependencies").nth(1).expect("the section exists");
    let names = dependencies(&manifest);
    assert!(names.len() > 30, "{names:?}");
    let missing: Vec<&&str> = names.iter().filter(|name| !reasons.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/architecture.md has no reason for {missing:?}");
}
