//! `cubinder inspect` of every input, with numbers for digests, which depend on NVRTC.

use std::path::Path;

use crate::support::{Case, Form, Scene};
use cubinder_model::container::{self, Container};
use serde_json::Value;

#[derive(Default)]
struct Redaction {
    digests: Vec<String>,
}

impl Redaction {
    fn digests(&mut self, text: &str) -> String {
        let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let mut out = String::new();
        for word in text.split_inclusive(|c: char| !is_hex(c)) {
            let digits = word.trim_end_matches(|c: char| !is_hex(c));
            if ![16, 32, 64].contains(&digits.len()) {
                out.push_str(word);
                continue;
            }
            let known = self.digests.iter().position(|digest| digest[..16] == digits[..16]);
            let number = known.unwrap_or_else(|| {
                self.digests.push(digits.to_owned());
                self.digests.len() - 1
            });
            out.push_str(&format!("[digest {number:07}]"));
            out.push_str(&word[digits.len()..]);
        }
        out
    }

    fn table(&mut self, text: &str) -> String {
        let mut lines = Vec::new();
        for (number, line) in self.digests(text).lines().enumerate() {
            let mut line = hide_sizes(line);
            if number == 0 {
                let (before, _) = line.rsplit_once(", ").unwrap();
                line = format!("{before}, [..]");
            }
            if let Some((before, _)) = line.split_once("at byte ") {
                line = format!("{before}at byte [..]");
            }
            if let Some((before, _)) = line.split_once("compiled by cubinder ") {
                line = format!("{before}compiled by cubinder [..]");
            }
            lines.push(line);
        }
        lines.join("\n")
    }

    fn json(&mut self, text: &str) -> String {
        let mut value: Value = serde_json::from_str(text).unwrap();
        hide_members(&mut value);
        self.digests(&serde_json::to_string_pretty(&value).unwrap())
    }
}

fn hide_sizes(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split(' ') {
        if ["B", "KiB", "MiB"].contains(&word.trim_end_matches(',')) {
            let size = words.last_mut().unwrap();
            *size = size.replace(|c: char| c.is_ascii_digit(), "#");
        }
        words.push(word.to_owned());
    }
    words.join(" ")
}

fn hide_members(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "bytes" | "stored_bytes" => {
                        assert!(value.is_u64());
                        *value = "[..]".into();
                    }
                    "producer" => {
                        assert!(value.as_str().unwrap().starts_with("cubinder "));
                        *value = "cubinder [..]".into();
                    }
                    "cubinder" | "compiler" => *value = "[..]".into(),
                    "offsets" => value.as_array_mut().unwrap().iter_mut().for_each(|offset| {
                        assert!(offset.is_u64());
                        *offset = "[..]".into();
                    }),
                    _ => hide_members(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_members),
        _ => {}
    }
}

fn check(scene: &Scene, name: &str, file: &Path) {
    let mut redaction = Redaction::default();
    let summary = redaction.table(&scene.inspected(file, &[]));
    let table = redaction.table(&scene.inspected(file, &["--verbose"]));
    let json = redaction.json(&scene.inspected(file, &["--json"]));
    insta::assert_snapshot!(name, format!("{summary}\n\n{table}\n\n{json}"));
}

#[test]
fn libraries_and_their_parts() {
    let Some(scene) = Scene::new() else { return };
    let library = scene.ops(Form::Fields, "pad");
    check(&scene, "library", &library);
    check(&scene, "code_library", &scene.code("pad"));
    check(&scene, "generic_library", &scene.generic);
    let bytes = std::fs::read(&library).unwrap();
    let (_, found) = container::scan(&bytes).next().unwrap();
    let found = found.unwrap();
    let Container::Bundle(bundle) = found.container else { panic!("no bundle in a library") };
    let parts = [
        ("bundle", &bytes[found.offset..found.offset + found.length]),
        ("cubin", &*bundle.code[0].raw().unwrap()),
        ("ptx", &*bundle.code[1].raw().unwrap()),
    ];
    for (name, bytes) in parts {
        let file = scene.path(name);
        std::fs::write(&file, bytes).unwrap();
        check(&scene, name, &file);
    }
}

#[test]
fn engines_of_both_forms() {
    let Some(scene) = Scene::new() else { return };
    for form in [Form::Fields, Form::Embedded] {
        let case = Case { form, ty: "f16", dynamic: false };
        let answers = scene.run(&case.steps(&scene));
        assert!(answers[3].is_ok(), "{:?}", answers[3].log);
        check(&scene, &format!("engine_{}", form.folder()), &case.plan(&scene, 1));
    }
}

#[test]
fn engines_say_what_made_them() {
    let Some(scene) = Scene::new() else { return };
    for form in [Form::Fields, Form::Embedded] {
        let case = Case { form, ty: "f16", dynamic: false };
        assert!(scene.run(&case.steps(&scene))[3].is_ok());
        let told = |file: &Path| -> Vec<Value> {
            let report: Value = serde_json::from_str(&scene.inspected(file, &["--json"])).unwrap();
            report["containers"].as_array().unwrap().clone()
        };
        let of_libraries: Vec<Value> =
            ["add", "pad"].iter().flat_map(|name| told(&scene.ops(form, name))).collect();
        let source = |origin: &Value| (origin["path"].to_string(), origin["digest"].to_string());
        let sources = |container: &Value| -> Vec<(String, String)> {
            container["provenance"]["origins"].as_array().unwrap().iter().map(source).collect()
        };
        let known: Vec<(String, String)> = of_libraries.iter().flat_map(&sources).collect();
        let containers = told(&case.plan(&scene, 1));
        let holds_code = |container: &&Value| container["kind"] != "node reference";
        let with_code: Vec<&Value> = containers.iter().filter(holds_code).collect();
        assert!(with_code.len() >= 2, "{form:?}");
        for container in with_code {
            let provenance = &container["provenance"];
            assert_eq!(provenance["manifests"].as_array().unwrap().len(), 1, "{container}");
            assert!(!provenance["compiler"]["identity"].as_str().unwrap().is_empty());
            let found = sources(container);
            assert!(!found.is_empty() && found.iter().all(|source| known.contains(source)), "{found:?}");
        }
        let references = containers.iter().filter(|container| container["kind"] == "node reference");
        assert!(references.clone().all(|container| container["provenance"].is_null()));
        assert_eq!(references.count() > 0, form == Form::Embedded);
    }
}

#[test]
fn a_damaged_engine() {
    let Some(scene) = Scene::new() else { return };
    let case = Case { form: Form::Fields, ty: "f32", dynamic: true };
    assert!(scene.run(&case.steps(&scene))[3].is_ok());
    let good = std::fs::read(case.plan(&scene, 1)).unwrap();
    let found: Vec<_> = container::scan(&good).collect();
    assert_eq!(found.len(), 6, "three nodes, each twice");
    for (offset, found) in found {
        let mut damaged = good.clone();
        damaged[offset + found.unwrap().length / 2] ^= 1;
        let file = scene.path("damaged.plan");
        std::fs::write(&file, damaged).unwrap();
        let done = scene.inspect_command(&file).output().unwrap();
        assert_eq!(done.status.code(), Some(1));
        let table = String::from_utf8(done.stdout).unwrap();
        let warning = format!("warning: a damaged container at byte {offset}: damaged: found the digest ");
        assert!(table.contains(&warning), "{table}");
    }
}
