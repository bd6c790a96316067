//! `[tables]`.

use cubinder_expr::Value;
use toml::de::DeValue;

use super::*;

table! {
    /// A table: read-only data that kernels see as `manifest::NAME`.
    struct Data = DATA: "tables.*" as "[tables.NAME]" {
        /// The element type.
        ty "type": TypeOfElements = Required, "\"f32\"";
        /// The elements: at least one, at most 1 MiB. Expressions can use constants and functions.
        values: Elements = Required, "\"[exp(-0.5 * float(i)) for i in range(256)]\"" or "[...]";
    }

    /// A table whose elements are in a file.
    struct DataFile = DATA_FILE: "tables.*(file)" as "[tables.NAME] with file" {
        /// The element type.
        ty "type": TypeOfElements = Required, "\"f32\"";
        /// A file of little-endian elements without a header.
        file: FilePath = Required, "\"window.bin\"";
    }
}

value_types! {
    /// Element type.
    TypeOfElements -> Located<TableType>: "table type", json!({ "enum": TableType::ALL.map(TableType::name) }), element_type;
    /// Elements.
    Elements -> Entry<'t>: "array of numbers or booleans, or an expression",
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": ["integer", "number", "boolean"] }, "minItems": 1 },
        ] }), TomlReader::unread;
}

impl NamedDeclaration for TableDecl {
    const NAMED: &'static str = "a table";
}

impl Declaration for TableDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &["file"], tables: &[&DATA_FILE, &DATA], but_for: None };

    fn read(toml: &mut TomlReader, name: Located<String>, mut section: Section<'_>) -> Option<TableDecl> {
        if section.has("file") {
            if let Some(values) = section.entry("values") {
                toml.report(ValuesAndFile { place: toml.span(values.key_range) });
                section.set_reported("values");
            }
            let DataFile { ty, file } = Row::read_all(toml, section);
            return Some(TableDecl { name, ty: ty?, values: TableValues::File(file?) });
        }
        let Data { ty, values } = Row::read_all(toml, section);
        let ty = ty?;
        let values = values_of(toml, &ty, &values?)?;
        Some(TableDecl { name, ty, values })
    }
}

fn element_type(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<TableType>> {
    let name = toml.string(entry)?;
    let ty = TableType::from_name(&name.value);
    if ty.is_none() {
        unknown_type(toml, &name, "table type", &TableType::ALL.map(TableType::name));
    }
    Some(Located { value: ty?, range: name.range })
}

fn values_of(toml: &mut TomlReader, ty: &Located<TableType>, entry: &Entry<'_>) -> Option<TableValues> {
    let items = match entry.value {
        DeValue::String(_) => return toml.text(entry).map(TableValues::Computed),
        _ => toml.values(entry, "an array of numbers or booleans, or an expression")?,
    };
    if let Some(error) = size_error(ty.value, items.len()) {
        toml.report(TableSize { message: error.message, label: error.label, place: toml.span(entry) });
        return None;
    }
    let mut data = Vec::new();
    for item in &items {
        let value = value(toml, item)?;
        match ty.value.bytes(&value) {
            Ok(bytes) => data.extend(bytes),
            // Arrays may have thousands of errors.
            Err(why) => {
                let (found, place, declared) = (item.found(), toml.span(item), toml.span(ty));
                toml.report(WrongElement { ty: ty.value.name(), found, why, place, declared });
                return None;
            }
        }
    }
    Some(TableValues::Listed(data))
}

fn value(toml: &mut TomlReader, item: &Entry<'_>) -> Option<Value> {
    match item.value {
        DeValue::Integer(_) => toml.integer(item).map(Value::Int),
        // Overflow to infinity is invalid.
        DeValue::Float(float) if matches!(float.as_str().trim_start_matches(['+', '-']), "inf" | "nan") => {
            float.as_str().parse().ok().map(Value::Float)
        }
        DeValue::Float(_) => toml.float(item).map(Value::Float),
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        _ => {
            toml.report(BadElement { found: item.found(), place: toml.span(item) });
            None
        }
    }
}

pub(crate) struct SizeError {
    pub(crate) message: String,
    pub(crate) label: String,
}

/// Rejects empty tables, and large ones, which compile slowly.
pub(crate) fn size_error(ty: TableType, length: usize) -> Option<SizeError> {
    let bytes = length.saturating_mul(ty.size());
    if length == 0 {
        return Some(SizeError {
            message: "a table must have at least one element".to_owned(),
            label: "this is empty".to_owned(),
        });
    }
    (bytes > MAX_TABLE_BYTES).then(|| SizeError {
        message: format!("a table must have at most {MAX_TABLE_BYTES} bytes"),
        label: format!("{length} elements of `{}` are {bytes} bytes", ty.name()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_something_and_at_most_a_mebibyte() {
        let is_right = |ty, length| size_error(ty, length).is_none();
        assert!(!is_right(TableType::U8, 0));
        assert!(is_right(TableType::U8, 1) && is_right(TableType::U8, 1 << 20));
        assert!(is_right(TableType::F64, 1 << 17) && !is_right(TableType::F64, (1 << 17) + 1));
        let label = size_error(TableType::F32, 300_000).map(|error| error.label);
        assert_eq!(label.as_deref(), Some("300000 elements of `f32` are 1200000 bytes"));
    }
}
