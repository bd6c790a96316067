//! `[[code]]`. A parameter is `name == value`, or `name: type` with the type `[const] base[*]` or `base[length]`,
//! followed by `aligned(n)` for pointers or `multiple_of(n)` for integers.

use std::ops::Range;

use cubinder_expr::Value;
use toml::de::DeValue;

use super::*;
use crate::manifest::toml_reader::{found, is_identifier};

/// Guaranteed by TensorRT and the workspace.
const MAX_ALIGNMENT: u32 = 256;

table! {
    /// A precompiled kernel.
    struct Code = CODE: "code[]" as "[[code]]" {
        /// Its name in launches.
        name: CodeName = Required, "\"pad\"";
        /// The types, formats, constants and `specialize` values that the code was compiled for. Default: all.
        serves "for": Lines<ServeDecl> = Optional, "T = \"f16\"";
        /// The kernel's symbol, or its C++ name if that is unambiguous. Optional if the files contain one kernel.
        kernel: Symbol = Optional, "\"circ_pad_kernel\"";
        /// The kernel's parameters in order, and the values that the code was compiled for.
        parameters: Parameters = Required,
            "[\"x: const f16* aligned(16)\", \"y: f16*\", \"count: i32 multiple_of(16)\", \"pads: i64[4]\", \"BLOCK == 1024\"]";
        /// Files of machine code, one for each architecture.
        cubin: Files = Optional, "[\"pad.sm_80.cubin\", \"pad.sm_90.cubin\"]";
        /// PTX files.
        ptx: Files = Optional, "[\"pad.ptx\"]";
        /// The compiler that produced them, shown by `inspect --plugin`.
        made_by: AnyText = Optional, "\"triton 3.9.0\"";
    }
}

value_types! {
    /// Name of code.
    CodeName -> Located<String>: "identifier", json::identifier(), code_name;
    /// Symbol in a file.
    Symbol -> Located<String>: "symbol",
        json!({ "type": "string", "pattern": "^(\\S+|[^\\t\\n\\r]*<[^\\t\\n\\r]*)$" }), symbol;
    /// Parameters.
    Parameters -> Vec<ParameterDecl>: "array of `\"name: type\"` and `\"name == value\"`",
        json!({ "type": "array", "items": { "type": "string", "pattern": json::parameter() } }), parameters;
    /// Distinct files.
    Files -> Vec<Located<String>>: "array of paths", json!({
        "type": "array", "items": { "type": "string", "pattern": "\\S" }, "minItems": 1, "uniqueItems": true,
    }), paths;
}

impl Line for ServeDecl {
    type Value = ServeDecl;
    const NAME: &'static str = "table: name to type, format, number or boolean";
    const STRINGS: bool = true;
    const ESSENTIAL: bool = false;

    fn schema() -> serde_json::Value {
        json!({ "type": ["string", "integer", "number", "boolean"] })
    }

    fn read(toml: &mut TomlReader, line: &Entry<'_>) -> Option<ServeDecl> {
        let value = match line.value {
            DeValue::String(text) => Value::Str(text.clone().into_owned()),
            DeValue::Integer(_) => toml.integer(line).map(Value::Int)?,
            DeValue::Float(_) => toml.float(line).map(Value::Float)?,
            DeValue::Boolean(value) => Value::Bool(*value),
            _ => {
                let help = Some("for several, write several `[[code]]` tables with this name".to_owned());
                let expected = "one type or format as a string, or one number or boolean";
                toml.report(WrongType { help, ..toml.wrong_type(line, expected) });
                return None;
            }
        };
        Some(ServeDecl { name: line.name(), value: Located { value, range: line.range.clone() } })
    }
}

impl Declaration for CodeDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&CODE], but_for: None };

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<CodeDecl> {
        let range = section.range.clone();
        let has_files = section.has("cubin") || section.has("ptx");
        let before = toml.count();
        let Code { name, serves, kernel, parameters, cubin, ptx, made_by } = Row::read(toml, &section);
        let is_whole = toml.count() == before;
        toml.finish(&section);
        let cubins = cubin.into_iter().flatten().map(|path| (CodeKind::Cubin, path));
        let files = cubins.chain(ptx.into_iter().flatten().map(|path| (CodeKind::Ptx, path))).collect();
        Some(CodeDecl {
            name: name?,
            serves: serves.unwrap_or_default(),
            kernel,
            parameters: parameters.unwrap_or_default(),
            is_whole,
            files,
            has_files,
            made_by: made_by.unwrap_or_default(),
            range,
        })
    }
}

fn code_name(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<String>> {
    let name = toml.string(entry)?;
    toml.identifier(&name, "code");
    Some(name)
}

fn symbol(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<String>> {
    let name = toml.string(entry)?;
    // Template instances may contain spaces.
    let is_blank = |c: char| c.is_whitespace() && (c != ' ' || !name.value.contains('<'));
    let is_symbol = !name.value.trim().is_empty() && !name.value.contains(|c| is_blank(c) || c.is_control());
    if !is_symbol {
        toml.report(BadSymbol { found: found(&name.value), place: toml.span(&name) });
    }
    is_symbol.then_some(name)
}

fn paths(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Located<String>>> {
    if entry.items().is_some_and(|items| items.is_empty()) {
        let message = format!("`{}` must name at least one file", entry.key);
        let (label, place) = ("this is empty", toml.span(entry));
        toml.report(EmptyArray { message, label, place, note: None });
    }
    let (empty, paths): (Vec<_>, Vec<_>) =
        toml.strings(entry)?.into_iter().partition(|path| path.value.trim().is_empty());
    for path in &empty {
        let (key, what) = (entry.key.clone(), "files");
        toml.report(EmptyPath { key, what, place: toml.span(path), help: None });
    }
    Some(toml.each_once(paths, |_| "duplicate file".to_owned()))
}

fn parameters(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<ParameterDecl>> {
    let items = toml.values(entry, "an array of strings such as `\"count: i32\"`")?;
    let mut parameters: Vec<ParameterDecl> = Vec::new();
    for item in &items {
        let Some(text) = toml.text(item) else { continue };
        let read = match parameter(&text) {
            Ok(read) => read,
            Err(error) => {
                let found = found(text.value.get(error.part.clone()).unwrap_or_default());
                let (message, place) = (error.message, toml.span(text.locate(error.part)));
                toml.report(BadParameter { message, found, place, help: error.help });
                continue;
            }
        };
        if let Some(first) = parameters.iter().find(|known| known.name.value == read.name.value) {
            let message = format!("duplicate parameter `{}`", read.name.value);
            let (second, first) = (toml.span(&read.name), toml.span(&first.name));
            toml.report(Repeated { message, second, first });
            continue;
        }
        parameters.push(read);
    }
    Some(parameters)
}

struct ParameterError {
    part: Range<usize>,
    message: &'static str,
    help: &'static str,
}

const EXAMPLES: &str =
    "write it as `x: const f32*`, `count: i32`, `pads: i64[4]`, `n: i32 multiple_of(16)` or `BLOCK == 1024`";

impl ParameterError {
    fn new(part: Range<usize>, message: &'static str) -> ParameterError {
        ParameterError { part, message, help: EXAMPLES }
    }
}

fn parameter(text: &Text) -> Result<ParameterDecl, ParameterError> {
    let all = text.value.as_str();
    let range = text.range.clone();
    if let Some((name, value)) = all.split_once("==") {
        let name = name_of(text, name)?;
        let part = all.len() - value.len()..all.len();
        let message = "the value after `==` must be a number or a boolean";
        let value = fixed(value.trim()).ok_or(ParameterError::new(part, message))?;
        return Ok(ParameterDecl { name, range, kind: ParameterKind::Fixed(value) });
    }
    let message = "a parameter must have a name and a type";
    let (name, ty) = all.split_once(':').ok_or(ParameterError::new(0..all.len(), message))?;
    let passed = passed(text, all.len() - ty.len())?;
    let name = name_of(text, name)?;
    Ok(ParameterDecl { name, range, kind: ParameterKind::Passed(passed) })
}

fn name_of(text: &Text, name: &str) -> Result<Located<String>, ParameterError> {
    let (start, trimmed) = (name.len() - name.trim_start().len(), name.trim());
    if !is_identifier(trimmed) {
        return Err(ParameterError::new(0..name.len(), "the name of a parameter must be an identifier"));
    }
    Ok(Located { value: trimmed.to_owned(), range: text.locate(start..start + trimmed.len()) })
}

fn fixed(text: &str) -> Option<Value> {
    match text {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => {
            let float = || text.parse::<f64>().ok().filter(|value| value.is_finite()).map(Value::Float);
            text.parse().ok().map(Value::Int).or_else(float)
        }
    }
}

fn passed(text: &Text, from: usize) -> Result<PassedDecl, ParameterError> {
    let all = text.value.as_str();
    let mut end = all.trim_end().len();
    let mut multiple = None;
    let words = ["aligned", "multiple_of"];
    let found = words.iter().find_map(|word| Some((*word, from + all.get(from..end)?.find(word)?)));
    if let Some((word, start)) = found {
        let number = all.get(start + word.len()..end).unwrap_or_default().trim();
        let number = number.strip_prefix('(').and_then(|number| number.strip_suffix(')'));
        let number = number.and_then(|number| number.trim().parse::<u32>().ok()).filter(|number| *number > 0);
        let is_alignment = |number: &u32| number.is_power_of_two() && *number <= MAX_ALIGNMENT;
        let number = number.filter(|number| word == "multiple_of" || is_alignment(number));
        multiple = Some(number.ok_or(ParameterError {
            part: start..end,
            message: "`aligned` and `multiple_of` require a number in parentheses",
            help: "write `aligned(16)` for pointers, a power of two up to 256; `multiple_of(16)` for integers",
        })?);
        end = all.get(..start).map_or(start, |before| before.trim_end().len());
    }
    let ty = all.get(from..end).unwrap_or_default();
    let (ty, len) = match ty.strip_suffix(']').and_then(|ty| ty.rsplit_once('[')) {
        Some((ty, len)) => {
            let len = len.trim().parse::<u32>().ok().filter(|len| (1..=4096).contains(len));
            let len = len.ok_or(ParameterError {
                part: from..end,
                message: "the length of an array must be a number from 1 to 4096",
                help: "write an array by value as `i64[4]`",
            })?;
            (ty, Some(len))
        }
        None => (ty, None),
    };
    let pointee = ty.trim_end().strip_suffix('*');
    let (ty, is_pointer) = (pointee.unwrap_or(ty), pointee.is_some());
    let words: Vec<&str> = ty.split_whitespace().collect();
    let is_const = words.contains(&"const");
    let base: Vec<&str> = words.into_iter().filter(|word| *word != "const").collect();
    let is_name = |word: &&str| is_identifier(word);
    if base.is_empty() || !base.iter().all(is_name) || (is_pointer && len.is_some()) {
        return Err(ParameterError::new(from..end.max(from), "invalid parameter type"));
    }
    if let Some((word, start)) = found
        && (word == "aligned") != is_pointer
    {
        return Err(ParameterError {
            part: start..all.trim_end().len(),
            message: "this does not apply to the parameter's type",
            help: "use `aligned(n)` for pointers, `multiple_of(n)` for integers",
        });
    }
    let start = from + (ty.len() - ty.trim_start().len());
    let range = text.locate(start..end.max(start));
    Ok(PassedDecl {
        base: Located { value: base.join(" "), range },
        is_pointer,
        is_const: is_const && is_pointer,
        len,
        multiple,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ParameterDecl, (&'static str, String)> {
        let text = Text::new("", 0..0, text.to_owned());
        parameter(&text).map_err(|error| (error.message, text.value[error.part].to_owned()))
    }

    fn shown(text: &str) -> String {
        let decl = read(text).unwrap();
        match decl.kind {
            ParameterKind::Fixed(value) => format!("{} is {value}", decl.name.value),
            ParameterKind::Passed(passed) => format!(
                "{} {}{}{} {:?} {:?}",
                decl.name.value,
                if passed.is_const { "const " } else { "" },
                passed.base.value,
                if passed.is_pointer { "*" } else { "" },
                passed.len,
                passed.multiple
            ),
        }
    }

    #[test]
    fn parameters_are_read() {
        assert_eq!(shown("x: const f16* aligned(16)"), "x const f16* None Some(16)");
        assert_eq!(shown(" y :__half * "), "y __half* None None");
        assert_eq!(shown("z: unsigned int const *"), "z const unsigned int* None None");
        assert_eq!(shown("n: i32 multiple_of( 16 )"), "n i32 None Some(16)");
        assert_eq!(shown("pads: i64[4]"), "pads i64 Some(4) None");
        assert_eq!(shown("BLOCK == 1024"), "BLOCK is 1024");
        assert_eq!(shown("fast == true"), "fast is true");
        assert_eq!(shown("alpha==0.5"), "alpha is 0.5");
    }

    #[test]
    fn what_is_no_parameter_is_refused() {
        let no_type = "invalid parameter type";
        assert_eq!(read("x").unwrap_err().0, "a parameter must have a name and a type");
        assert_eq!(read("x:").unwrap_err().0, no_type);
        assert_eq!(read("x: f32**").unwrap_err().0, no_type);
        assert_eq!(read("x: f32*[4]").unwrap_err().0, "invalid parameter type");
        assert_eq!(read("2x: f32").unwrap_err().0, "the name of a parameter must be an identifier");
        assert_eq!(
            read("n: i32 aligned(16)").unwrap_err(),
            ("this does not apply to the parameter's type", "aligned(16)".to_owned())
        );
        let number = "`aligned` and `multiple_of` require a number in parentheses";
        assert_eq!(read("x: f32* aligned(24)").unwrap_err().0, number);
        assert_eq!(read("x: f32* aligned 16").unwrap_err().0, number);
        assert_eq!(read("n: i32 multiple_of(0)").unwrap_err().0, number);
        assert_eq!(read("n == x").unwrap_err().0, "the value after `==` must be a number or a boolean");
        assert_eq!(
            read("a: i64[0]").unwrap_err().0,
            "the length of an array must be a number from 1 to 4096"
        );
    }

    proptest::proptest!(
        #[test]
        fn any_text_is_answered(text in "[a-zé:=*\\[\\]() 0-9]{0,32}") {
            if let Err((_, part)) = read(&text) {
                proptest::prop_assert!(text.contains(&part));
            }
        }
    );
}
