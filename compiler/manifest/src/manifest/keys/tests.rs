//! The key table against the reader.

use std::collections::{BTreeMap, BTreeSet};

use cubinder_expr::{DataType, Format};
use cubinder_model::AttributeType;
use toml::{Table as Toml, Value};

use super::*;
use crate::diagnostic::{Colour, Source, render};
use crate::manifest::{CodeKind, form, read, v1};

/// A TOML value.
fn parsed(text: &str) -> Value {
    let table: Toml = toml::from_str(&format!("value = {text}")).unwrap();
    table["value"].clone()
}

/// The example of a table with the keys that `keep` wants.
fn example(table: &Table, keep: &dyn Fn(&Table, &Key) -> bool) -> Toml {
    let keys = table.keys.iter().filter(|key| keep(table, key));
    let mut all: Toml = keys.map(|key| (key.name.to_owned(), example_of(key, keep))).collect();
    // The attribute of the examples is a list, and code is compiled for single values.
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
    let named =
        |naming: &Naming, value| Value::Table([(naming.example.0.to_owned(), value)].into_iter().collect());
    match &key.form {
        Form::Table(inner) => Value::Table(example(inner, keep)),
        Form::Tables(inner) => Value::Array(vec![Value::Table(example(inner, keep))]),
        Form::Kinds(kinds) => {
            Value::Array(kinds.tables.iter().map(|inner| Value::Table(example(inner, keep))).collect())
        }
        Form::Named(inner, naming) => named(naming, Value::Table(example(inner, keep))),
        Form::NamedKinds(kinds, naming) => {
            // The last kind has the plain name.
            let last = kinds.tables.len() - 1;
            let name = |at: usize| {
                let (name, number) = (naming.example.0, at.to_string());
                format!("{name}{}", if at == last { "" } else { &number })
            };
            let tables = kinds.tables.iter().enumerate();
            let tables = tables.map(|(at, inner)| (name(at), Value::Table(example(inner, keep))));
            Value::Table(tables.collect())
        }
        Form::Lines(_, naming) => named(naming, parsed(naming.example.1)),
        _ => parsed(key.example),
    }
}

/// What the reader says to a manifest.
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

/// Every key alone, beside the required ones.
#[test]
fn every_example_is_accepted_on_its_own() {
    for table in tables() {
        for key in table.keys {
            let ways: BTreeSet<*const Table> = ways_to(table).into_iter().map(std::ptr::from_ref).collect();
            let keep = |of: &Table, other: &Key| {
                let mut inner = other.form.tables().iter();
                let leads_there = inner.any(|inner| ways.contains(&std::ptr::from_ref(*inner)));
                other.presence == Presence::Required
                    || leads_there
                    || std::ptr::eq(of, table) && other.name == key.name
            };
            assert_eq!(said(&example(&ROOT, &keep)), "", "{}.{}", table.path, key.name);
        }
    }
}

/// A table and the tables that it is in.
fn ways_to(table: &'static Table) -> Vec<&'static Table> {
    let mut way = vec![table];
    for outer in tables() {
        let mut inner = outer.keys.iter().flat_map(|key| key.form.tables());
        let holds = inner.any(|inner| std::ptr::eq(*inner, table));
        if holds {
            way.extend(ways_to(outer));
        }
    }
    way
}

#[test]
fn the_reader_asks_for_the_keys_of_the_table() {
    let text = toml::to_string(&example(&ROOT, &|_, _| true)).unwrap();
    let source = Source::new("m.toml", text);
    let mut form = form::Form::new(&source);
    let document = form.parse().unwrap();
    let mut root = form::Section::root(document.get_ref());
    root.take("schema");
    v1::read(&mut form, root);
    let names: BTreeMap<&str, &str> = [
        ("[attributes.pads]", "[attributes.NAME]"),
        ("functions.before", "functions.NAME"),
        ("[tables.window]", "[tables.NAME]"),
        ("[scratch.partial]", "[scratch.NAME]"),
        ("", "the file"),
    ]
    .into();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for asked in &form.asked {
        let title = names.get(asked.name.as_str()).copied().unwrap_or(&asked.name);
        let table = tables().into_iter().find(|table| table.title == title).expect(title);
        seen.insert(table.title);
        let of_table = |keep: &dyn Fn(&Key) -> bool| -> BTreeSet<&str> {
            table.keys.iter().filter(|key| keep(key)).map(|key| key.name).collect()
        };
        assert_eq!(asked.keys.iter().copied().collect::<BTreeSet<_>>(), of_table(&|_| true), "{title}");
        // What the file itself must have is said in other words, so it is not asked for in this way.
        if !std::ptr::eq(table, &raw const ROOT) {
            let required = of_table(&|key| key.presence == Presence::Required);
            assert_eq!(asked.required.iter().copied().collect::<BTreeSet<_>>(), required, "{title}");
        }
    }
    assert_eq!(seen, tables().iter().map(|table| table.title).collect());
}

/// The file without one of the keys that it must have.
#[test]
fn the_file_must_have_what_the_table_says() {
    for key in ROOT.keys {
        let mut manifest = example(&ROOT, &|_, _| true);
        manifest.remove(key.name);
        let result = read(&Source::new("m.toml", toml::to_string(&manifest).unwrap()));
        assert_eq!(result.diagnostics.is_empty(), key.presence != Presence::Required, "{}", key.name);
    }
}

/// The good manifests.
fn corpus() -> Vec<Toml> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ok");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let manifests = paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    manifests.map(|path| toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()).collect()
}

/// Every type that an attribute or a tensor can have, every format, and every kind of code.
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

/// All strings.
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
        let inner: Vec<(&Table, &Value)> = match (key.form, value) {
            (Form::Table(inner), value) => vec![(inner, value)],
            (Form::Tables(inner), Value::Array(items)) => items.iter().map(|item| (inner, item)).collect(),
            (Form::Kinds(kinds), Value::Array(items)) => items
                .iter()
                .map(|item| (kinds.tables[kinds.of(|key| item.get(key).is_some())], item))
                .collect(),
            (Form::Named(inner, _), Value::Table(items)) => {
                items.values().map(|item| (inner, item)).collect()
            }
            (Form::NamedKinds(kinds, _), Value::Table(items)) => items
                .values()
                .map(|item| (kinds.tables[kinds.of(|key| item.get(key).is_some())], item))
                .collect(),
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
