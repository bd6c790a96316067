use std::marker::PhantomData;

use serde_json::{Value as Json, json};

use super::description::{Kinds, Nested};
use super::errors::EmptyPath;
use super::toml_reader::{Entry, Section, TomlReader};
use super::{Located, Text, json};

pub(crate) trait ValueType {
    type Value<'t>;
    const NAME: &'static str;
    const NESTED: Nested = Nested::None;

    fn schema() -> Json;

    fn read<'t>(toml: &mut TomlReader, entry: &Entry<'t>) -> Option<Self::Value<'t>>;
}

pub(crate) trait Row<'t>: Sized {
    fn read(toml: &mut TomlReader, section: &Section<'t>) -> Self;

    fn read_all(toml: &mut TomlReader, section: Section<'t>) -> Self {
        let row = Self::read(toml, &section);
        toml.finish(&section);
        row
    }
}

impl<'t> Section<'t> {
    pub(crate) fn get<T: ValueType>(&self, toml: &mut TomlReader, key: &str) -> Option<T::Value<'t>> {
        let mut entry = self.entry(key)?;
        entry.example = self.description.and_then(|table| table.key(key)).map_or("", |key| key.example);
        let outer = std::mem::replace(&mut toml.above, self.description);
        let value = T::read(toml, &entry);
        toml.above = outer;
        value
    }
}

pub(crate) trait Declaration: Sized {
    const KINDS: &'static Kinds;

    fn help(_: &TomlReader, _: &Entry<'_>) -> Option<String> {
        None
    }

    fn read(toml: &mut TomlReader, name: Located<String>, section: Section<'_>) -> Option<Self>;
}

pub(crate) trait NamedDeclaration: Declaration {
    /// Type name in errors: `an attribute`.
    const NAMED: &'static str;
    /// Whether each has its own header: `[attributes.NAME]`.
    const HAS_HEADER: bool = true;

    fn reserved() -> Vec<&'static str> {
        Vec::new()
    }
}

pub(crate) trait Line {
    type Value;
    const NAME: &'static str;
    const STRINGS: bool = false;
    const ESSENTIAL: bool = true;

    fn reserved() -> Vec<&'static str> {
        Vec::new()
    }

    fn help(_: &Entry<'_>) -> Option<String> {
        None
    }

    fn schema() -> Json;

    fn read(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Self::Value>;
}

pub(crate) struct TableOf<T>(PhantomData<T>);

impl<T: Declaration> ValueType for TableOf<T> {
    type Value<'t> = T;
    const NAME: &'static str = "table";
    const NESTED: Nested = Nested::Table(T::KINDS);

    fn schema() -> Json {
        T::KINDS.schema()
    }

    fn read<'t>(toml: &mut TomlReader, entry: &Entry<'t>) -> Option<T> {
        match toml.open(entry, T::KINDS) {
            Some(section) => T::read(toml, entry.name(), section),
            None => toml.report_no_table(entry, T::help(toml, entry)),
        }
    }
}

pub(crate) struct ArrayOf<T>(PhantomData<T>);

impl<T: Declaration> ValueType for ArrayOf<T> {
    type Value<'t> = Vec<T>;
    const NAME: &'static str = "array of tables";
    const NESTED: Nested = Nested::Array(T::KINDS);

    fn schema() -> Json {
        T::KINDS.array_schema()
    }

    fn read<'t>(toml: &mut TomlReader, entry: &Entry<'t>) -> Option<Vec<T>> {
        let path = T::KINDS.tables.last().map_or("", |table| table.path.trim_end_matches("[]"));
        let items = toml.tables_of(entry, path)?;
        Some(items.iter().filter_map(|item| TableOf::<T>::read(toml, item)).collect())
    }
}

pub(crate) struct NamedTables<T>(PhantomData<T>);

impl<T: NamedDeclaration> ValueType for NamedTables<T> {
    type Value<'t> = Vec<T>;
    const NAME: &'static str = "table of tables";
    const NESTED: Nested = Nested::Named(T::KINDS);

    fn schema() -> Json {
        names_to(&T::KINDS.schema(), &T::reserved())
    }

    fn read<'t>(toml: &mut TomlReader, entry: &Entry<'t>) -> Option<Vec<T>> {
        if T::HAS_HEADER && toml.report_flat(entry) {
            return None;
        }
        toml.lines_of(entry, |toml, entry| {
            toml.identifier(&entry.name(), T::NAMED);
            TableOf::<T>::read(toml, entry)
        })
    }
}

pub(crate) struct Lines<L>(PhantomData<L>);

impl<L: Line> ValueType for Lines<L> {
    type Value<'t> = Vec<L::Value>;
    const NAME: &'static str = L::NAME;
    const NESTED: Nested = Nested::Lines { strings: L::STRINGS };

    fn schema() -> Json {
        names_to(&L::schema(), &L::reserved())
    }

    fn read<'t>(toml: &mut TomlReader, entry: &Entry<'t>) -> Option<Vec<L::Value>> {
        if entry.lines().is_none() {
            if L::ESSENTIAL {
                toml.give_up();
            }
            return toml.report_no_table(entry, L::help(entry));
        }
        toml.lines_of(entry, L::read)
    }
}

fn names_to(value: &Json, reserved: &[&str]) -> Json {
    let mut names = json!({ "pattern": format!("^{}$", json::IDENTIFIER) });
    if !reserved.is_empty() {
        names["not"] = json!({ "enum": reserved });
    }
    json!({ "type": "object", "propertyNames": names, "additionalProperties": value })
}

/// Declares a `static` [`Table`](super::description::Table) and its struct, a field per key.
///
/// A field is `NAME: TYPE = PRESENCE, EXAMPLE or EXPECTED;`; errors about a missing key show `EXPECTED`. A string
/// after the name is a key that is not an identifier.
macro_rules! table {
    ($(
        $(#[doc = $doc:literal])+
        $vis:vis struct $row:ident = $table_vis:vis $table:ident: $path:literal as $title:literal {
            $($(#[doc = $key_doc:literal])+
            $field:ident $($name:literal)?: $value:ty = $presence:ident $(($default:literal))? $(, $example:literal $(or $expected:literal)?)?;)*
        }
    )+) => {$(
        $(#[doc = $doc])+
        $table_vis static $table: $crate::manifest::description::Table = $crate::manifest::description::Table {
            path: $path,
            title: $title,
            doc: $crate::manifest::description::sentence(concat!($($doc),+)),
            keys: &[$($crate::manifest::description::Key {
                name: table!(@name $field $($name)?),
                presence: $crate::manifest::description::Presence::$presence $(($default))?,
                doc: $crate::manifest::description::sentence(concat!($($key_doc),+)),
                example: concat!($($example)?),
                expected: [$($($expected,)?)? concat!($($example)?)][0],
                value: <$value as $crate::manifest::value_type::ValueType>::NAME,
                schema: <$value as $crate::manifest::value_type::ValueType>::schema,
                nested: <$value as $crate::manifest::value_type::ValueType>::NESTED,
            }),*],
        };

        $(#[doc = $doc])+
        $vis struct $row<'t> {
            $($(#[doc = $key_doc])+
            $vis $field: Option<<$value as $crate::manifest::value_type::ValueType>::Value<'t>>,)*
        }

        impl<'t> $crate::manifest::value_type::Row<'t> for $row<'t> {
            fn read(
                toml: &mut $crate::manifest::toml_reader::TomlReader,
                section: &$crate::manifest::toml_reader::Section<'t>,
            ) -> Self {
                $row { $($field: section.get::<$value>(toml, table!(@name $field $($name)?))),* }
            }
        }
    )+};
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}
pub(crate) use table;

/// Declares value types: result, name in the reference, JSON Schema and reader.
macro_rules! value_types {
    ($($(#[doc = $doc:literal])+ $vis:vis $name:ident -> $value:ty: $text:literal, $schema:expr, $read:expr;)+) => {$(
        $(#[doc = $doc])+
        $vis enum $name {}

        impl $crate::manifest::value_type::ValueType for $name {
            type Value<'t> = $value;
            const NAME: &'static str = $text;

            fn schema() -> serde_json::Value {
                $schema
            }

            fn read<'t>(
                toml: &mut $crate::manifest::toml_reader::TomlReader,
                entry: &$crate::manifest::toml_reader::Entry<'t>,
            ) -> Option<$value> {
                $read(toml, entry)
            }
        }
    )+};
}
pub(crate) use value_types;

value_types! {
    /// String.
    pub(crate) AnyText -> String: "string", json!({ "type": "string" }), |toml: &mut TomlReader, entry| Some(toml.string(entry)?.value);
    /// Name for expressions and C++.
    pub(crate) Identifier -> Located<String>: "identifier", json::identifier(), TomlReader::string;
    /// String, or number or boolean literal.
    pub(crate) Expression -> Text: "expression", json::expression(), TomlReader::expression;
    /// Only a string.
    pub(crate) ExpressionText -> Text: "expression (a string)", json!({ "type": "string" }), TomlReader::text;
    /// File, relative to the manifest's folder.
    pub(crate) FilePath -> Located<String>: "path", json!({ "type": "string", "pattern": "\\S" }), file_path;
    /// `true` or `false`.
    pub(crate) Switch -> Located<bool>: "boolean", json!({ "type": "boolean" }), switch;
    /// Line information for profilers.
    pub(crate) Debug -> bool: "`\"line\"`", json!({ "enum": ["line"] }), TomlReader::line_information;
}

fn file_path(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<String>> {
    let file = toml.string(entry)?;
    if file.value.trim().is_empty() {
        let what = if entry.key == "source" { "a CUDA file" } else { "a file" };
        toml.report(EmptyPath { key: entry.key.clone(), what, place: toml.span(&file), help: None });
        return None;
    }
    Some(file)
}

/// The range includes the key.
fn switch(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<bool>> {
    let Some(value) = entry.value.as_bool() else {
        toml.report(toml.wrong_type(entry, "`true` or `false`"));
        return None;
    };
    Some(Located { value, range: entry.key_range.start..entry.range.end })
}
