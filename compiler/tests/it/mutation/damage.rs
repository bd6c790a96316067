//! Damages a manifest: every key and value, and names, numbers and signs in strings.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

#[derive(Debug, Clone)]
pub(crate) struct Damage {
    pub(crate) range: Range<usize>,
    pub(crate) replacement: String,
    pub(crate) what: &'static str,
    /// Key, or the damaged value's; user-defined names are `*`: `attributes.*.doc`.
    pub(crate) key: String,
    /// Innermost user-defined name: `x` for the rank of input `x`.
    pub(crate) name: Option<String>,
}

impl Damage {
    pub(crate) fn apply(&self, text: &str) -> String {
        let mut damaged = text.to_owned();
        damaged.replace_range(self.range.clone(), &self.replacement);
        damaged
    }

    /// One byte on each side, because removals are empty.
    pub(crate) fn place(&self) -> Range<usize> {
        let end = self.range.start + self.replacement.len();
        self.range.start.saturating_sub(1)..end + 1
    }
}

pub(crate) fn damages(text: &str) -> Vec<Damage> {
    let document = DeTable::parse(text).expect("the corpus is TOML");
    let mut finder = Finder { text, found: Vec::new(), names: Vec::new() };
    finder.table(document.get_ref(), "");
    finder.found
}

struct Finder<'t> {
    text: &'t str,
    found: Vec<Damage>,
    names: Vec<String>,
}

const NAMED: [&str; 13] = [
    "attributes",
    "scratch",
    "tables",
    "types",
    "formats",
    "combinations.types",
    "combinations.formats",
    "constants",
    "functions",
    "variants.types",
    "variants.formats",
    "variants.constants",
    "launches.args",
];

impl Finder<'_> {
    fn add(&mut self, range: Range<usize>, replacement: impl Into<String>, what: &'static str, key: &str) {
        let (replacement, key) = (replacement.into(), key.to_owned());
        if self.text[range.clone()] != replacement {
            let name = self.names.last().cloned();
            self.found.push(Damage { range, replacement, what, key, name });
        }
    }

    fn table(&mut self, table: &DeTable<'_>, path: &str) {
        let around = self.names.len();
        self.names.extend(table.get("name").and_then(|name| name.get_ref().as_str()).map(str::to_owned));
        for (key, value) in table {
            let is_named = NAMED.contains(&path);
            let name = if is_named { "*" } else { key.get_ref().as_ref() };
            let inner = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let here = self.names.len();
            self.names.extend(is_named.then(|| key.get_ref().to_string()));
            self.name(key.span(), "a key is misspelt", &inner);
            self.value(value.span(), value.get_ref(), &inner);
            self.names.truncate(here);
        }
        self.names.truncate(around);
    }

    fn value(&mut self, range: Range<usize>, value: &DeValue<'_>, key: &str) {
        match value {
            DeValue::Integer(number) => {
                let number = i64::from_str_radix(number.as_str(), number.radix()).expect("a number");
                let next = number.checked_add(1).or_else(|| number.checked_sub(1)).expect("a neighbour");
                self.add(range.clone(), next.to_string(), "a number is another", key);
                self.add(range.clone(), (!number).to_string(), "a number has the other sign", key);
                self.add(range, format!("\"{number}q\""), "a number is a word", key);
            }
            DeValue::Float(number) => {
                let number: f64 = number.as_str().replace('_', "").parse().expect("a number");
                self.add(range.clone(), format!("{:?}", number * 1.5), "a number is more", key);
                self.add(range, "[]", "a number is an array", key);
            }
            DeValue::Boolean(value) => {
                self.add(range.clone(), (!value).to_string(), "a boolean is the other", key);
                self.add(range, "[]", "a boolean is an array", key);
            }
            DeValue::Datetime(_) => panic!("the corpus has no dates"),
            DeValue::String(_) => {
                self.add(range.clone(), "{ q = 1 }", "a string is a table", key);
                self.string(range, key);
            }
            DeValue::Array(items) => self.array(range, items, key),
            DeValue::Table(inner) => self.table(inner, key),
        }
    }

    /// Arrays of tables are damaged key by key.
    fn array(&mut self, range: Range<usize>, items: &[toml::Spanned<DeValue<'_>>], key: &str) {
        for (index, item) in items.iter().enumerate() {
            if !matches!(item.get_ref(), DeValue::Table(_)) {
                let next = items.get(index + 1).map(|next| item.span().start..next.span().start);
                let last = index.checked_sub(1).and_then(|before| items.get(before));
                let removed = next.or_else(|| last.map(|last| last.span().end..item.span().end));
                self.add(removed.unwrap_or_else(|| item.span()), "", "an element is missing", key);
            }
            self.value(item.span(), item.get_ref(), key);
        }
        if items.is_empty() {
            self.add(range, "1", "an array is a number", key);
        }
    }

    fn string(&mut self, range: Range<usize>, key: &str) {
        let literal = &self.text[range.clone()];
        let quote = if literal.starts_with("\"\"\"") || literal.starts_with("'''") { 3 } else { 1 };
        let (start, end) = (range.start + quote, range.end - quote);
        let bytes = self.text.as_bytes();
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
                    let digits = self.text[token.clone()].replace('_', "");
                    let another = |number: i64| number.checked_add(1).unwrap_or(number - 1).to_string();
                    let number = digits.parse::<i64>().map(another);
                    let replacement = number.unwrap_or_else(|_| format!("{}q", &self.text[token.clone()]));
                    self.add(token, replacement, "a number in a string is another", key);
                }
                Class::Word => self.name(token, "a word in a string is misspelt", key),
                Class::Sign => self.add(token, "?", "a sign is another", key),
            }
            at = stop;
        }
        if start == end {
            self.add(start..start, "q", "an empty string is none", key);
        }
    }

    fn name(&mut self, range: Range<usize>, what: &'static str, key: &str) {
        let quoted = self.text[range.clone()].starts_with(['"', '\'']);
        let (start, end) = if quoted { (range.start + 1, range.end - 1) } else { (range.start, range.end) };
        self.add(end..end, "q", what, key);
        if end - start > 1 && self.text.is_char_boundary(end - 1) {
            self.add(end - 1..end, "", what, key);
        }
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
