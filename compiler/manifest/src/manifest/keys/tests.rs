use std::collections::BTreeSet;

use cubinder_expr::{DataType, Format};
use cubinder_model::AttributeType;
use toml::{Table as Toml, Value};

use super::*;
use crate::diagnostic::{Colour, Source, render};
use crate::manifest::{CodeKind, read};

fn parsed(text: &str) -> Value {
    let table: Toml = toml::from_str(&format!("value = {text}")).unwrap();
    table["value"].clone()
}

fn example(table: &Table, keep: &dyn Fn(&Table, &Key) -> bool) -> Toml {
    let keys = table.keys.iter().filter(|key| keep(table, key));
    let mut all: Toml = keys.map(|key| (key.name.to_owned(), example_of(key, keep))).collect();
    // The examples' attribute is a list.
    if all.contains_key("specialize") {
        if all.len() == 2 {
            all.insert("type".to_owned(), Value::from("i32"));
        } else {
            all.remove("specialize");
        }
    }
    all
}

fn example_of(key: &Key, keep: &dyn Fn(&Table, &Key) -> bool) -> Value {
    let tables = key.nested.tables().iter();
    let mut tables = tables.map(|inner| Value::Table(example(inner, keep)));
    match key.nested {
        Nested::Table(_) => tables.next().unwrap(),
        Nested::Array(_) => Value::Array(tables.collect()),
        Nested::Named(kinds) => {
            let last = kinds.tables.len() - 1;
            let name = |index: usize| {
                let number = if index == last { String::new() } else { index.to_string() };
                format!("{}{number}", key.example)
            };
            Value::Table(tables.enumerate().map(|(index, table)| (name(index), table)).collect())
        }
        Nested::Lines { .. } => Value::Table(toml::from_str(key.example).unwrap()),
        Nested::None => parsed(key.example),
    }
}

fn tables() -> Vec<&'static Table> {
    let mut tables = vec![&ROOT];
    for index in 0.. {
        let Some(table) = tables.get(index) else { break };
        for inner in table.keys.iter().flat_map(|key| key.nested.tables()) {
            if !tables.iter().any(|known| std::ptr::eq(*known, *inner)) {
                tables.push(inner);
            }
        }
    }
    tables
}

fn said(manifest: &Toml) -> String {
    let text = toml::to_string(manifest).unwrap();
    let result = read(&Source::new("m.toml", text.clone()));
    assert!(result.manifest.is_some(), "{text}");
    let said = render(&result.diagnostics, Colour::Plain);
    if said.is_empty() { said } else { format!("{text}\n{said}") }
}

#[test]
fn all_examples_together_are_a_manifest() {
    assert_eq!(said(&example(&ROOT, &|_, _| true)), "");
}

#[test]
fn every_example_is_accepted_on_its_own() {
    for table in tables() {
        for key in table.keys {
            let ways: BTreeSet<*const Table> = ways_to(table).into_iter().map(std::ptr::from_ref).collect();
            let keep = |of: &Table, other: &Key| {
                let mut inner = other.nested.tables().iter();
                let leads_there = inner.any(|inner| ways.contains(&std::ptr::from_ref(*inner)));
                other.presence == Presence::Required
                    || leads_there
                    || std::ptr::eq(of, table) && other.name == key.name
            };
            assert_eq!(said(&example(&ROOT, &keep)), "", "{}.{}", table.path, key.name);
        }
    }
}

fn ways_to(table: &'static Table) -> Vec<&'static Table> {
    let mut way = vec![table];
    for outer in tables() {
        let mut inner = outer.keys.iter().flat_map(|key| key.nested.tables());
        let holds = inner.any(|inner| std::ptr::eq(*inner, table));
        if holds {
            way.extend(ways_to(outer));
        }
    }
    way
}

#[test]
fn the_file_must_have_what_the_table_says() {
    for key in ROOT.keys {
        let mut manifest = example(&ROOT, &|_, _| true);
        manifest.remove(key.name);
        let result = read(&Source::new("m.toml", toml::to_string(&manifest).unwrap()));
        assert_eq!(result.diagnostics.is_empty(), key.presence != Presence::Required, "{}", key.name);
    }
}

fn corpus() -> Vec<Toml> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ok");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let manifests = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    manifests.map(|path| toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()).collect()
}

#[test]
fn the_corpus_uses_every_word() {
    let mut used: BTreeSet<String> = BTreeSet::new();
    corpus().iter().for_each(|manifest| words(&Value::Table(manifest.clone()), &mut used));
    let attributes = AttributeType::all().map(AttributeType::name);
    let elements = DataType::ALL.iter().map(|ty| ty.name());
    let formats = Format::ALL.map(Format::name);
    let code = CodeKind::ALL.map(CodeKind::name);
    let missing: Vec<&str> =
        attributes.chain(elements).chain(formats).chain(code).filter(|word| !used.contains(*word)).collect();
    assert!(missing.is_empty(), "no manifest in tests/data/ok uses {missing:?}");
}

fn words(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            found.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| words(item, found)),
        Value::Table(items) => items.iter().for_each(|(_, item)| words(item, found)),
        _ => {}
    }
}

#[test]
fn the_corpus_uses_every_key() {
    let mut used: BTreeSet<String> = BTreeSet::new();
    corpus().iter().for_each(|manifest| collect(&ROOT, manifest, &mut used));
    let all = tables().into_iter().flat_map(|table| table.keys.iter().map(|key| path_of(table, key)));
    let missing: Vec<String> = all.filter(|path| !used.contains(path)).collect();
    assert!(missing.is_empty(), "no manifest in tests/data/ok uses {missing:?}");
}

fn path_of(table: &Table, key: &Key) -> String {
    format!("{}.{}", table.path, key.name)
}

fn collect(table: &Table, value: &Toml, used: &mut BTreeSet<String>) {
    for key in table.keys {
        let Some(value) = value.get(key.name) else { continue };
        used.insert(path_of(table, key));
        let kind = |kinds: &Kinds, item: &Value| kinds.select(|key| item.get(key).is_some()).unwrap();
        let inner: Vec<(&Table, &Value)> = match (key.nested, value) {
            (Nested::Table(kinds), value) => vec![(kind(kinds, value), value)],
            (Nested::Array(kinds), Value::Array(items)) => {
                items.iter().map(|item| (kind(kinds, item), item)).collect()
            }
            (Nested::Named(kinds), Value::Table(items)) => {
                items.values().map(|item| (kind(kinds, item), item)).collect()
            }
            _ => Vec::new(),
        };
        for (inner, value) in inner {
            collect(inner, value.as_table().unwrap(), used);
        }
    }
}

#[test]
fn descriptions_are_sentences() {
    for table in tables() {
        for doc in table.keys.iter().map(|key| key.doc).chain([table.doc]) {
            assert!(doc.ends_with('.') && !doc.contains('|') && !doc.contains('\n'), "{doc}");
        }
    }
}
