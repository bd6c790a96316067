//! Every key, value, name and number of the good manifests, damaged one at a time: each mutant is refused with a place on the
//! damage, or changes what is compiled. What passes both ways is a part of the manifest that nothing reads.

// Clippy knows test functions, not their helpers.
#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_compiler::config::open;
use cubinder_compiler::diagnostic::{Colour, Diagnostic, Severity, Source, render};
use cubinder_compiler::resolve::{Resolved, compile};
use toml::de::{DeTable, DeValue};

/// One damage: these bytes are replaced.
#[derive(Debug, Clone)]
struct Damage {
    range: Range<usize>,
    replacement: String,
    what: &'static str,
}

impl Damage {
    fn apply(&self, text: &str) -> String {
        let mut damaged = text.to_owned();
        damaged.replace_range(self.range.clone(), &self.replacement);
        damaged
    }

    /// Where the damage is in the damaged text, with one byte on each side: what was taken away leaves no bytes of its own.
    fn place(&self) -> Range<usize> {
        let end = self.range.start + self.replacement.len();
        self.range.start.saturating_sub(1)..end + 1
    }
}

fn manifests() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths: Vec<PathBuf> = ["tests/data/ok", "manifests"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("the folder is there"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    paths
}

/// All damages of a manifest.
fn damages(text: &str) -> Vec<Damage> {
    let document = DeTable::parse(text).expect("the corpus is TOML");
    let mut damages = Vec::new();
    table(text, document.get_ref(), &mut damages);
    damages
}

fn table(text: &str, table: &DeTable<'_>, damages: &mut Vec<Damage>) {
    for (key, value) in table {
        name(text, key.span(), "a key is misspelt", damages);
        self::value(text, value.span(), value.get_ref(), damages);
    }
}

fn value(text: &str, range: Range<usize>, value: &DeValue<'_>, damages: &mut Vec<Damage>) {
    let mut replace = |replacement: String, what| {
        if text[range.clone()] != replacement {
            damages.push(Damage { range: range.clone(), replacement, what });
        }
    };
    match value {
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix()).expect("a number");
            let (next, before) = (number.checked_add(1), number.checked_sub(1));
            replace(next.or(before).expect("a neighbour").to_string(), "a number is another");
            replace((!number).to_string(), "a number has the other sign");
            replace(format!("\"{number}q\""), "a number is no number");
        }
        DeValue::Float(number) => {
            let number: f64 = number.as_str().replace('_', "").parse().expect("a number");
            replace(format!("{:?}", number + 0.5), "a number is more");
            replace("[]".to_owned(), "a number is an array");
        }
        DeValue::Boolean(value) => replace((!value).to_string(), "a boolean is the other"),
        DeValue::Datetime(_) => panic!("the corpus has no dates"),
        DeValue::String(_) => {
            replace("{ q = 1 }".to_owned(), "a string is a table");
            string(text, range, damages);
        }
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                // With the comma on one side.
                let next = items.get(index + 1).map(|next| item.span().start..next.span().start);
                let last = index.checked_sub(1).and_then(|before| items.get(before));
                let removed = next.or_else(|| last.map(|last| last.span().end..item.span().end));
                let removed = removed.unwrap_or_else(|| item.span());
                // Arrays of tables are written without brackets: their elements are damaged one by one.
                if text[range.clone()].starts_with('[') && !text[item.span()].starts_with("[[") {
                    damages.push(Damage {
                        range: removed,
                        replacement: String::new(),
                        what: "an element is missing",
                    });
                }
                self::value(text, item.span(), item.get_ref(), damages);
            }
        }
        DeValue::Table(inner) => table(text, inner, damages),
    }
}

/// The names, numbers and signs of a string: what it says may be an expression.
fn string(text: &str, range: Range<usize>, damages: &mut Vec<Damage>) {
    let literal = &text[range.clone()];
    let quote = if literal.starts_with("\"\"\"") || literal.starts_with("'''") { 3 } else { 1 };
    let (start, end) = (range.start + quote, range.end - quote);
    let bytes = text.as_bytes();
    let mut at = start;
    while at < end {
        let class = class(bytes[at]);
        let mut stop = at + 1;
        while stop < end && class != Class::Sign && self::class(bytes[stop]) == class {
            stop += 1;
        }
        let token = at..stop;
        match class {
            Class::Blank => {}
            Class::Word if bytes[at].is_ascii_digit() => {
                let number = text[token.clone()].parse::<i64>().map(|number| (number + 1).to_string());
                let replacement = number.unwrap_or_else(|_| format!("{}q", &text[token.clone()]));
                damages.push(Damage { range: token, replacement, what: "a number in a string is one more" });
            }
            Class::Word => name(text, token, "a word in a string is misspelt", damages),
            Class::Sign => {
                damages.push(Damage { range: token, replacement: "?".to_owned(), what: "a sign is another" });
            }
        }
        at = stop;
    }
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Class {
    Word,
    Blank,
    Sign,
}

fn class(byte: u8) -> Class {
    match byte {
        b if b.is_ascii_alphanumeric() || b == b'_' || !b.is_ascii() => Class::Word,
        b if b.is_ascii_whitespace() => Class::Blank,
        _ => Class::Sign,
    }
}

fn name(text: &str, range: Range<usize>, what: &'static str, damages: &mut Vec<Damage>) {
    let quoted = text[range.clone()].starts_with(['"', '\'']);
    let (start, end) = if quoted { (range.start + 1, range.end - 1) } else { (range.start, range.end) };
    damages.push(Damage { range: end..end, replacement: "q".to_owned(), what });
    if end - start > 1 && text.is_char_boundary(end - 1) {
        damages.push(Damage { range: end - 1..end, replacement: String::new(), what });
    }
}

/// What is compiled, without places.
fn compiled(resolved: &Resolved) -> String {
    let draft = &resolved.draft;
    let mut text = format!("{:?} {:?}", draft.plugin, settings(resolved));
    for unit in &draft.units {
        let _ = write!(text, "{:?} {} {:?} {:?}", unit.source, unit.kernel, unit.types, unit.constants);
        for arg in &unit.args {
            let _ = write!(text, "{} {:?}", arg.name, arg.value);
        }
    }
    text
}

/// How the kernels are compiled.
fn settings(resolved: &Resolved) -> String {
    let compile = &resolved.manifest.compile;
    let mut text = String::new();
    compile.targets.iter().for_each(|target| text.push_str(&format!("{} ", target.value)));
    compile.include.iter().for_each(|folder| text.push_str(&format!("{} ", folder.value)));
    compile.options.iter().for_each(|option| text.push_str(&format!("{} ", option.value)));
    compile.code.iter().for_each(|code| text.push_str(&format!("{:?} ", code.value)));
    compile.min_driver.iter().for_each(|driver| text.push_str(&driver.value.to_string()));
    text
}

/// Whether an error points at the damage, or at something that explains itself by it.
fn is_on(diagnostic: &Diagnostic, source: &Arc<Source>, place: &Range<usize>) -> bool {
    diagnostic.severity == Severity::Error
        && diagnostic.primary.iter().chain(&diagnostic.related).any(|label| {
            let range = &label.span.range;
            label.span.source.path == source.path && range.start <= place.end && place.start <= range.end
        })
}

enum Fate {
    Refused,
    Changed,
    /// An error, but not where the damage is.
    Elsewhere(String),
    /// Nothing happened.
    Survived,
}

fn fate(path: &Path, text: &str, sound: &str, damage: &Damage) -> Fate {
    let source = Source::new(path, damage.apply(text));
    match compile(&source) {
        Ok(resolved) if compiled(&resolved) == sound => Fate::Survived,
        Ok(_) => Fate::Changed,
        Err(diagnostics) if diagnostics.iter().any(|found| is_on(found, &source, &damage.place())) => {
            Fate::Refused
        }
        Err(diagnostics) => Fate::Elsewhere(render(&diagnostics, Colour::Plain)),
    }
}

#[test]
fn every_damage_is_refused_where_it_is_or_changes_what_is_compiled() {
    let mut unseen = String::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in manifests() {
        let text = open(&path).expect("a text").text.clone();
        let resolved = compile(&Source::new(&path, text.clone())).unwrap_or_else(|errors| {
            panic!("{}", render(&errors, Colour::Plain));
        });
        let sound = compiled(&resolved);
        for damage in damages(&text) {
            let counted = match fate(&path, &text, &sound, &damage) {
                Fate::Refused => "refused",
                Fate::Changed => "changed",
                Fate::Survived => {
                    let _ = writeln!(unseen, "{}", describe(&path, &text, &damage, "nothing happens"));
                    "survived"
                }
                Fate::Elsewhere(found) => {
                    let _ =
                        writeln!(unseen, "{}\n{found}", describe(&path, &text, &damage, "told elsewhere"));
                    "elsewhere"
                }
            };
            *counts.entry(counted).or_default() += 1;
        }
    }
    println!("{counts:?}");
    assert!(counts.values().sum::<usize>() > 1000, "too few damages to mean anything: {counts:?}");
    assert!(unseen.is_empty(), "{counts:?}\n{unseen}");
}

fn describe(path: &Path, text: &str, damage: &Damage, fate: &str) -> String {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name");
    let line = text[..damage.range.start].lines().count().max(1);
    let shown = text.lines().nth(line - 1).unwrap_or_default();
    let (was, is) = (&text[damage.range.clone()], &damage.replacement);
    format!("{name}:{line}: {}, `{was}` is `{is}`: {fate}\n    {shown}", damage.what)
}
