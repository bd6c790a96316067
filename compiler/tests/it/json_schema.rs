//! The schema accepts valid manifests and rejects errors that it can express.

use std::path::Path;

use cubinder_manifest::manifest::{json_schema::json_schema, read};
use cubinder_manifest::resolve::compile;
use cubinder_source::diagnostic::{Code, Source};
use cubinder_source::{rules, source};
use jsonschema::Validator;
use serde_json::Value;

use crate::support::{Project, corpus};

/// The schema must reject every violation, but cannot express texts' meaning, related keys (`BAD_CONSTRAINT`,
/// `DECLARED_TWICE`), or exact numbers (`BAD_DEFAULT`).
const OF_FORM: [Code; 7] = [
    rules::SCHEMA_EDITION,
    rules::UNKNOWN_KEY,
    rules::MISSING_KEY,
    rules::WRONG_VALUE,
    rules::BAD_NAME,
    rules::UNKNOWN_TYPE,
    rules::VARIANT_ID,
];

const OF_ANOTHER_TYPE: [&str; 3] =
    ["default_of_another_type", "default_of_array_no_array", "default_mixed_array"];

fn as_json(path: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(path).expect("a text");
    let mut table = toml::Value::Table(toml::from_str(&text).ok()?);
    make_finite(&mut table);
    Some(serde_json::to_value(table).expect("it is JSON"))
}

/// JSON cannot represent infinities.
fn make_finite(value: &mut toml::Value) {
    match value {
        toml::Value::Float(number) if !number.is_finite() => *number = 0.0,
        toml::Value::Array(items) => items.iter_mut().for_each(make_finite),
        toml::Value::Table(items) => items.iter_mut().for_each(|(_, item)| make_finite(item)),
        _ => {}
    }
}

fn validator() -> Validator {
    let schema = json_schema();
    jsonschema::draft7::meta::validate(&schema).expect("a schema of draft 7");
    jsonschema::draft7::new(&schema).expect("a schema")
}

fn refusals(validator: &Validator, manifest: &Value) -> Vec<String> {
    validator.iter_errors(manifest).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn good_manifests_are_valid() {
    let validator = validator();
    for path in corpus::manifests("tests/data/ok").iter().chain(&corpus::manifests("manifests")) {
        let manifest = as_json(path).expect("TOML");
        assert_eq!(refusals(&validator, &manifest), Vec::<String>::new(), "{}", path.display());
    }
}

#[test]
fn bad_manifests_are_refused_where_the_schema_can_tell() {
    let validator = validator();
    let mut refused = 0;
    for path in corpus::manifests("tests/data/bad") {
        let diagnostics = read(&source::text(&path).expect("a text")).diagnostics;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a plain name");
        let codes: Vec<Code> = diagnostics.iter().filter_map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes.len(), diagnostics.len(), "every message about the form of {stem} has a code");
        let Some(manifest) = as_json(&path) else { continue };
        let refusals = refusals(&validator, &manifest);
        let expressible = codes.iter().any(|code| OF_FORM.contains(code)) || OF_ANOTHER_TYPE.contains(&stem);
        assert!(!expressible || !refusals.is_empty(), "{stem} is valid, but {codes:?}");
        assert!(!codes.is_empty() || refusals.is_empty(), "{stem}: {refusals:?}");
        refused += usize::from(!refusals.is_empty());
    }
    assert!(refused >= 60, "only {refused} were rejected");
}

#[test]
fn what_the_reader_refuses_late_is_refused() {
    let mut all = corpus::manifests("tests/data/ok").into_iter();
    let path = all.find(|path| path.ends_with("every_key.toml")).expect("it exists");
    let text = std::fs::read_to_string(path).expect("a text");
    let mut manifest: toml::Value = toml::Value::Table(toml::from_str(&text).expect("TOML"));
    let refused = |manifest: &toml::Value| {
        let source = Source::new("m.toml", toml::to_string(manifest).expect("TOML"));
        let json = serde_json::to_value(manifest).expect("it is JSON");
        (!refusals(&validator(), &json).is_empty(), compile(&source).is_err())
    };
    assert_eq!(refused(&manifest), (false, false));
    let functions = manifest["functions"].as_table_mut().expect("a table");
    let (_, function) = functions.iter_mut().next().expect("a function");
    let params = std::mem::replace(&mut function["params"], vec!["inf".to_owned()].into());
    assert_eq!(refused(&manifest), (true, true));
    let functions = manifest["functions"].as_table_mut().expect("a table");
    let (_, function) = functions.iter_mut().next().expect("a function");
    function["params"] = params;
    manifest["inputs"][0]["rank"] = "+4".into();
    assert_eq!(refused(&manifest), (true, true));
}

#[test]
fn the_command_prints_it() {
    let run = Project::without_tools().run(&["schema"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let printed: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(printed, json_schema());
}

const VALUES: [&str; 28] = [
    "0",
    "1",
    "-1",
    "3",
    "1.5",
    "true",
    "''",
    "'x'",
    "'f16'",
    "'T'",
    "'1..=8'",
    "' 1 .. = 8 '",
    "'..=0.5'",
    "'3..'",
    "'1..8'",
    "[]",
    "[1]",
    "['f32']",
    "['x', 'y']",
    "[0.5, 1]",
    "{}",
    "{ a = 1 }",
    "'sm_89'",
    "['sm_90a']",
    "['ptx']",
    "'580.65'",
    "'+4'",
    "['inf']",
];

/// `at` is in depth-first order; returns whether the leaf exists.
fn replace(tree: &mut toml::Value, at: &mut usize, value: &toml::Value) -> bool {
    let inner: Vec<&mut toml::Value> = match tree {
        toml::Value::Table(table) if !table.is_empty() => table.iter_mut().map(|(_, value)| value).collect(),
        toml::Value::Array(items) if !items.is_empty() => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    for inner in inner {
        if replace(inner, at, value) {
            return true;
        }
    }
    if *at == 0 {
        *tree = value.clone();
        return true;
    }
    *at -= 1;
    false
}

#[test]
fn what_is_refused_is_wrong() {
    let validator = validator();
    let mut refused = 0;
    for path in corpus::manifests("tests/data/ok") {
        let text = std::fs::read_to_string(&path).expect("a text");
        let mut manifest = toml::Value::Table(toml::from_str(&text).expect("TOML"));
        make_finite(&mut manifest);
        for (index, value) in VALUES.into_iter().enumerate() {
            let table: toml::Table = toml::from_str(&format!("value = {value}")).expect("TOML");
            for leaf in 0.. {
                let mut mutant = manifest.clone();
                if !replace(&mut mutant, &mut leaf.clone(), &table["value"]) {
                    break;
                }
                if (leaf + index) % 4 != 0 {
                    continue;
                }
                let json = serde_json::to_value(&mutant).expect("it is JSON");
                let refusals = refusals(&validator, &json);
                if refusals.is_empty() {
                    continue;
                }
                refused += 1;
                let text = toml::to_string(&mutant).unwrap_or_default();
                let source = Source::new("m.toml", text.clone());
                let accepted = read(&source).diagnostics.is_empty() && compile(&source).is_ok();
                assert!(!accepted, "{refusals:?}\n{text}");
            }
        }
    }
    assert!(refused >= 1000, "only {refused} mutants were rejected");
}
