//! Schema edition 1.
//!
//! A key stands here when something executes it; any other key is unknown.

use std::ops::Range;

use cubinder_bundle::{AttributeType, DataType, Value};
use toml::de::DeValue;

use super::form::{Entry, Form, Section, found, is_identifier, list};
use super::{
    ArgDecl, AttributeDecl, ConstantDecl, FunctionDecl, InputDecl, LaunchDecl, Located, MAX_RANK, Manifest,
    OutputDecl, PluginDecl, RequireDecl, Text, TypeDecl, VariantDecl,
};
use crate::diagnostic::{Diagnostic, suggest};

/// TensorRT's limit on a plugin's name, version and namespace, without the final NUL (`NvInferRuntime.h`,
/// TensorRT-RTX 1.7: 1024 bytes with it).
const MAX_NAME_BYTES: usize = 1023;

/// Names of ONNX attributes that TensorRT's ONNX parser keeps for itself (TensorRT-RTX 1.7).
const RESERVED_ATTRIBUTES: [&str; 4] =
    ["aot", "plugin_namespace", "plugin_version", "tensorrt_plugin_shape_input_indices"];

/// Reads everything but `schema`.
pub(super) fn read(form: &mut Form<'_>, mut root: Section<'_>) -> Manifest {
    let mut broken = Vec::new();
    let plugin = plugin(form, &mut root);
    let attributes = named_tables(form, &mut root, "attributes", &mut broken, attribute);
    let inputs = list_of(form, &mut root, "inputs", &mut broken, input);
    let outputs = list_of(form, &mut root, "outputs", &mut broken, output);
    let types = lines(form, &mut root, "types", &mut broken, type_parameter);
    let constants = lines(form, &mut root, "constants", &mut broken, constant);
    let functions = lines(form, &mut root, "functions", &mut broken, function);
    let variants = variants(form, &mut root, &mut broken);
    let launches = launches(form, &mut root);
    form.finish(&root);
    Manifest { plugin, attributes, inputs, outputs, types, constants, functions, variants, launches, broken }
}

fn plugin(form: &mut Form<'_>, root: &mut Section<'_>) -> PluginDecl {
    let mut decl = PluginDecl {
        name: Located { value: String::new(), range: 0..0 },
        namespace: String::new(),
        version: "1".to_owned(),
        summary: String::new(),
        require: Vec::new(),
    };
    let Some(entry) = root.take("plugin") else {
        let diagnostic = Diagnostic::error("the manifest has no `[plugin]` table")
            .at(form.span(0..0), "expected `[plugin]` with `name` and `namespace`");
        form.report(diagnostic);
        return decl;
    };
    let Some(mut section) = form.table(&entry, "[plugin]".to_owned()) else { return decl };
    if let Some(name) = form.require(&mut section, "name", "\"...\"").and_then(|entry| form.string(&entry)) {
        form.identifier(&name, "a plugin");
        length(form, &name);
        decl.name = name;
    }
    if let Some(namespace) = section.take("namespace").and_then(|entry| form.string(&entry)) {
        check_namespace(form, &namespace);
        length(form, &namespace);
        decl.namespace = namespace.value;
    }
    if let Some(version) = section.take("version").and_then(|entry| form.string(&entry)) {
        check_version(form, &version);
        length(form, &version);
        decl.version = version.value;
    }
    decl.summary = doc(form, &mut section, "summary");
    if let Some(entry) = section.take("require") {
        let rules = form.array(&entry, "an array of tables `{ expr = \"...\", message = \"...\" }`");
        decl.require = rules.unwrap_or_default().iter().filter_map(|rule| require(form, rule)).collect();
    }
    form.finish(&section);
    decl
}

fn require(form: &mut Form<'_>, rule: &Entry<'_>) -> Option<RequireDecl> {
    let mut section = form.table(rule, "require".to_owned())?;
    let expr = form.require(&mut section, "expr", "\"...\"").and_then(|entry| form.text(&entry));
    let message = form.require(&mut section, "message", "\"...\"").and_then(|entry| form.string(&entry));
    form.finish(&section);
    let (expr, message) = (expr?, message?);
    if message.value.trim().is_empty() {
        let diagnostic = Diagnostic::error("the `message` of a rule must not be empty")
            .at(form.span(message.range), "this is what the person reads whose node breaks the rule");
        form.report(diagnostic);
    }
    Some(RequireDecl { expr, message: message.value })
}

fn attribute(form: &mut Form<'_>, name: Located<String>, mut section: Section<'_>) -> Option<AttributeDecl> {
    form.identifier(&name, "an attribute");
    if RESERVED_ATTRIBUTES.contains(&name.value.as_str()) {
        let diagnostic = Diagnostic::error(format!("an attribute cannot be called `{}`", name.value))
            .at(form.span(name.range.clone()), "TensorRT's ONNX parser gives this name a meaning of its own");
        form.report(diagnostic);
    }
    let ty = form.require(&mut section, "type", "\"...\"").and_then(|entry| form.string(&entry));
    let ty = ty.and_then(|ty| {
        let names: Vec<&str> = AttributeType::ALL.iter().map(|ty| ty.name()).collect();
        let known = AttributeType::from_name(&ty.value);
        if known.is_none() {
            unknown_type(form, &ty, "attribute type", &names);
        }
        known
    });
    let default = section.take("default");
    let doc = doc(form, &mut section, "doc");
    form.finish(&section);
    let ty = ty?;
    let default = default.and_then(|entry| default_value(form, &entry, ty));
    Some(AttributeDecl { name, ty, default, doc })
}

/// The default of an attribute, converted to its type. A float is what ONNX carries: a double rounded to 32 bits.
fn default_value(form: &mut Form<'_>, entry: &Entry<'_>, ty: AttributeType) -> Option<Value> {
    let element = match ty {
        AttributeType::I32Array => AttributeType::I32,
        AttributeType::F32Array => AttributeType::F32,
        scalar => return default_scalar(form, entry, scalar, ty),
    };
    let items = form.array(entry, &format!("an array: the attribute's type is `{}`", ty.name()))?;
    let items: Vec<Option<Value>> =
        items.iter().map(|item| default_scalar(form, item, element, ty)).collect();
    items.into_iter().collect::<Option<Vec<Value>>>().map(Value::Array)
}

/// The default of an attribute of type `declared`, or one of its elements, which must be of type `ty`.
fn default_scalar(
    form: &mut Form<'_>,
    entry: &Entry<'_>,
    ty: AttributeType,
    declared: AttributeType,
) -> Option<Value> {
    let value = value(form, entry)?;
    let value = if ty == AttributeType::F32 { to_f32(value) } else { value };
    if ty.admits(&value) && is_finite(&value) {
        return Some(value);
    }
    let too_large = match (&value, ty) {
        (Value::Int(_), AttributeType::I32) => ", which does not fit into 32 bits",
        (Value::Int(_), AttributeType::F32) => ", which a float of 32 bits does not hold exactly",
        (Value::Float(_), AttributeType::F32) => ", which a float of 32 bits cannot hold",
        _ => "",
    };
    let diagnostic = Diagnostic::error(format!("the default is not of type `{}`", declared.name()))
        .at(form.span(entry.range.clone()), format!("found {}{too_large}", entry.found()));
    form.report(diagnostic);
    None
}

fn to_f32(value: Value) -> Value {
    #[allow(clippy::cast_possible_truncation)]
    let round = |value: f64| Value::Float(f64::from(value as f32));
    match value {
        Value::Float(value) => round(value),
        // `default = 1` is meant as 1.0; an integer that a float cannot hold exactly stays one and is refused.
        Value::Int(value) if value.unsigned_abs() <= 1 << 24 => {
            i32::try_from(value).map_or(Value::Int(value), |value| round(f64::from(value)))
        }
        value => value,
    }
}

fn is_finite(value: &Value) -> bool {
    !matches!(value, Value::Float(value) if !value.is_finite())
}

/// A value as TOML has it.
fn value(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Value> {
    match entry.value() {
        DeValue::String(text) => Some(Value::Str(text.clone().into_owned())),
        DeValue::Integer(_) => form.integer(entry).map(Value::Int),
        DeValue::Float(_) => form.float(entry).map(Value::Float),
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        DeValue::Array(_) => {
            let items = form.array(entry, "an array")?;
            items.iter().map(|item| value(form, item)).collect::<Option<Vec<_>>>().map(Value::Array)
        }
        DeValue::Datetime(_) | DeValue::Table(_) => {
            let diagnostic = Diagnostic::error(format!("`{}` must be a value", entry.key)).at(
                form.span(entry.range.clone()),
                format!("found {}; expected a number, a boolean, a string or an array", entry.found()),
            );
            form.report(diagnostic);
            None
        }
    }
}

fn input(form: &mut Form<'_>, mut section: Section<'_>, broken: &mut Vec<String>) -> Option<InputDecl> {
    let name = tensor_name(form, &mut section, "an input");
    let ty = form.require(&mut section, "type", "\"...\"").and_then(|entry| form.string(&entry));
    let rank = section.take("rank").and_then(|entry| rank(form, &entry)).unwrap_or((0, MAX_RANK));
    let doc = doc(form, &mut section, "doc");
    form.finish(&section);
    let name = name?;
    match ty {
        Some(ty) => Some(InputDecl { name, ty, rank, doc }),
        None => {
            broken.push(name.value);
            None
        }
    }
}

fn output(form: &mut Form<'_>, mut section: Section<'_>, broken: &mut Vec<String>) -> Option<OutputDecl> {
    let name = tensor_name(form, &mut section, "an output");
    let ty = form.require(&mut section, "type", "\"...\"").and_then(|entry| form.string(&entry));
    let shape = form.require(&mut section, "shape", "\"...\"").and_then(|entry| form.text(&entry));
    let doc = doc(form, &mut section, "doc");
    form.finish(&section);
    let name = name?;
    match (ty, shape) {
        (Some(ty), Some(shape)) => Some(OutputDecl { name, ty, shape, doc }),
        _ => {
            broken.push(name.value);
            None
        }
    }
}

fn tensor_name(form: &mut Form<'_>, section: &mut Section<'_>, what: &str) -> Option<Located<String>> {
    let name = form.require(section, "name", "\"...\"").and_then(|entry| form.string(&entry))?;
    form.identifier(&name, what);
    Some(name)
}

/// A rank or a range of ranks: `4`, `"4"`, `"1..=8"`.
fn rank(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<(u8, u8)> {
    let parsed = match entry.value() {
        DeValue::Integer(_) => {
            let rank = u8::try_from(form.integer(entry)?).ok();
            rank.map(|rank| (rank, rank))
        }
        DeValue::String(text) => match text.split_once("..=") {
            Some((low, high)) => low.trim().parse().ok().zip(high.trim().parse().ok()),
            None => text.trim().parse().ok().map(|rank| (rank, rank)),
        },
        _ => None,
    };
    let parsed = parsed.filter(|&(low, high): &(u8, u8)| low <= high && high <= MAX_RANK);
    if parsed.is_none() {
        let diagnostic = Diagnostic::error("`rank` must be a rank or a range of ranks from 0 to 8")
            .at(form.span(entry.range.clone()), format!("found {}", entry.found()))
            .help("write `rank = 4` or `rank = \"1..=8\"`");
        form.report(diagnostic);
    }
    parsed
}

fn type_parameter(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<TypeDecl> {
    let name = entry.name();
    form.identifier(&name, "a type parameter");
    if DataType::from_name(&name.value).is_some() {
        let diagnostic = Diagnostic::error(format!("a type parameter cannot be called `{}`", name.value))
            .at(form.span(name.range.clone()), "this is an element type");
        form.report(diagnostic);
    }
    let items = form.array(entry, "an array of element types, such as `[\"f32\", \"f16\"]`")?;
    if items.is_empty() {
        let diagnostic =
            Diagnostic::error(format!("the type parameter `{}` has no alternatives", name.value))
                .at(form.span(entry.range.clone()), "expected at least one element type");
        form.report(diagnostic);
        return None;
    }
    let mut alternatives: Vec<(DataType, Range<usize>)> = Vec::new();
    let mut whole = true;
    for item in &items {
        let Some(ty) = element_type(form, item) else {
            whole = false;
            continue;
        };
        if let Some((_, first)) = alternatives.iter().find(|(known, _)| *known == ty) {
            let diagnostic = Diagnostic::error(format!("`{}` lists `{}` twice", name.value, ty.name()))
                .at(form.span(item.range.clone()), "the second time")
                .related(form.span(first.clone()), "the first time");
            form.report(diagnostic);
            continue;
        }
        alternatives.push((ty, item.range.clone()));
    }
    whole.then(|| TypeDecl { name, alternatives: alternatives.into_iter().map(|(ty, _)| ty).collect() })
}

fn element_type(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<DataType> {
    let name = form.string(entry)?;
    let known = DataType::from_name(&name.value);
    if known.is_none() {
        let names: Vec<&str> = DataType::ALL.iter().map(|ty| ty.name()).collect();
        unknown_type(form, &name, "element type", &names);
    }
    known
}

fn unknown_type(form: &mut Form<'_>, name: &Located<String>, what: &str, known: &[&str]) {
    let diagnostic = Diagnostic::error(format!("unknown {what} `{}`", name.value))
        .at(
            form.span(name.range.clone()),
            format!("not {} {what}", if what.starts_with('a') || what.starts_with('e') { "an" } else { "a" }),
        )
        .note(format!("the {what}s are {}", list(known)));
    let diagnostic = match suggest(&name.value, known.iter().copied()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic,
    };
    form.report(diagnostic);
}

fn constant(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<ConstantDecl> {
    let name = entry.name();
    form.identifier(&name, "a constant");
    let value = match entry.value() {
        DeValue::Integer(_) => form.integer(entry).map(Value::Int)?,
        DeValue::Float(_) => form.float(entry).map(Value::Float)?,
        DeValue::Boolean(value) => Value::Bool(*value),
        _ => {
            let diagnostic =
                Diagnostic::error(format!("the constant `{}` must be a number or a boolean", name.value))
                    .at(form.span(entry.range.clone()), format!("found {}", entry.found()));
            form.report(diagnostic);
            return None;
        }
    };
    Some(ConstantDecl { name, value })
}

fn function(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<FunctionDecl> {
    let name = entry.name();
    form.identifier(&name, "a function");
    let mut section = form.table(entry, format!("functions.{}", name.value))?;
    let params = form.require(&mut section, "params", "[\"...\"]").and_then(|entry| form.strings(&entry));
    let body = form.require(&mut section, "body", "\"...\"").and_then(|entry| form.expression(&entry));
    form.finish(&section);
    let (params, body) = (params?, body?);
    for (index, param) in params.iter().enumerate() {
        form.identifier(param, "a parameter");
        if let Some(first) = params.iter().take(index).find(|first| first.value == param.value) {
            let diagnostic =
                Diagnostic::error(format!("`{}` has two parameters `{}`", name.value, param.value))
                    .at(form.span(param.range.clone()), "the second one")
                    .related(form.span(first.range.clone()), "the first one");
            form.report(diagnostic);
        }
    }
    Some(FunctionDecl { name, params, body })
}

fn variants(form: &mut Form<'_>, root: &mut Section<'_>, broken: &mut Vec<String>) -> Vec<VariantDecl> {
    let sections = form.tables(root, "variants");
    if sections.is_empty() {
        return vec![VariantDecl { id: Located { value: 1, range: 0..0 }, constants: Vec::new() }];
    }
    sections.into_iter().filter_map(|section| variant(form, section, broken)).collect()
}

fn variant(form: &mut Form<'_>, mut section: Section<'_>, broken: &mut Vec<String>) -> Option<VariantDecl> {
    let id = form.require(&mut section, "id", "1").and_then(|entry| {
        let number = form.integer(&entry)?;
        let id = i32::try_from(number).ok().filter(|&id| id >= 1);
        if id.is_none() {
            let diagnostic =
                Diagnostic::error("the `id` of a variant must be at least 1 and fit into 32 bits")
                    .at(form.span(entry.range.clone()), format!("found `{number}`"))
                    .note("it is TensorRT's tactic number, and 0 is kept by TensorRT");
            form.report(diagnostic);
        }
        id.map(|value| Located { value, range: entry.range })
    });
    let constants = lines(form, &mut section, "constants", broken, constant);
    form.finish(&section);
    id.map(|id| VariantDecl { id, constants })
}

fn launches(form: &mut Form<'_>, root: &mut Section<'_>) -> Vec<LaunchDecl> {
    let sections = form.tables(root, "launches");
    if sections.is_empty() {
        let diagnostic = Diagnostic::error("the manifest launches nothing")
            .at(form.span(0..0), "expected one `[[launches]]` table")
            .note("a launch names a CUDA source, a kernel in it, grid, block and arguments");
        form.report(diagnostic);
    }
    if let Some(second) = sections.get(1) {
        let diagnostic = Diagnostic::error("a plugin has one launch")
            .at(form.span(second.range.clone()), "this is a second one");
        form.report(diagnostic);
    }
    sections.into_iter().filter_map(|section| launch(form, section)).collect()
}

fn launch(form: &mut Form<'_>, mut section: Section<'_>) -> Option<LaunchDecl> {
    let range = section.range.clone();
    let source = form.require(&mut section, "source", "\"kernel.cu\"").and_then(|entry| form.text(&entry));
    let kernel = form.require(&mut section, "kernel", "\"...\"").and_then(|entry| form.text(&entry));
    let grid = form.require(&mut section, "grid", "[\"...\"]").and_then(|entry| dimensions(form, &entry));
    let block = form.require(&mut section, "block", "[\"...\"]").and_then(|entry| dimensions(form, &entry));
    let shared_bytes = section.take("shared_bytes").and_then(|entry| form.expression(&entry));
    let args_entry = form.require(&mut section, "args", "{ ... }");
    let args_range = args_entry.as_ref().map_or(0..0, |entry| entry.key_range.clone());
    let args = args_entry.and_then(|entry| form.table(&entry, "[launches.args]".to_owned()));
    let args = args.map(|args| arguments(form, &args));
    form.finish(&section);
    if let Some(source) = &source
        && source.value.trim().is_empty()
    {
        let diagnostic =
            Diagnostic::error("`source` must name a CUDA file").at(form.span(source.range.clone()), "");
        form.report(diagnostic);
    }
    Some(LaunchDecl {
        range,
        source: source?,
        kernel: kernel?,
        grid: grid?,
        block: block?,
        shared_bytes,
        args: args?,
        args_range,
    })
}

/// One to three expressions. What is wrong with one does not hide what is wrong with the others.
fn dimensions(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<Text>> {
    let items =
        form.array(entry, "an array of one to three expressions, such as `[\"ceil_div(numel(y), 256)\"]`")?;
    if items.is_empty() || items.len() > 3 {
        let diagnostic =
            Diagnostic::error(format!("`{}` must have one to three expressions: x, y and z", entry.key))
                .at(form.span(entry.range.clone()), format!("found {}", items.len()));
        form.report(diagnostic);
    }
    Some(items.iter().filter_map(|item| form.expression(item)).collect())
}

fn arguments(form: &mut Form<'_>, section: &Section<'_>) -> Vec<ArgDecl> {
    let mut args = Vec::new();
    for entry in section.entries() {
        let name = entry.name();
        form.identifier(&name, "an argument");
        if let Some(value) = form.expression(&entry) {
            args.push(ArgDecl { name, value });
        }
    }
    args
}

/// The tables `[key.NAME]`.
fn named_tables<T>(
    form: &mut Form<'_>,
    root: &mut Section<'_>,
    key: &'static str,
    broken: &mut Vec<String>,
    read: impl Fn(&mut Form<'_>, Located<String>, Section<'_>) -> Option<T>,
) -> Vec<T> {
    let read = |form: &mut Form<'_>, entry: &Entry<'_>| {
        let section = form.table(entry, format!("[{key}.{}]", entry.key))?;
        read(form, entry.name(), section)
    };
    lines(form, root, key, broken, read)
}

/// The lines of the table `[key]`, in the file's order; the names of those that cannot be read become broken ones.
fn lines<T>(
    form: &mut Form<'_>,
    parent: &mut Section<'_>,
    key: &'static str,
    broken: &mut Vec<String>,
    read: impl Fn(&mut Form<'_>, &Entry<'_>) -> Option<T>,
) -> Vec<T> {
    let mut items = Vec::new();
    for entry in form.lines(parent, key) {
        match read(form, &entry) {
            Some(item) => items.push(item),
            None => broken.push(entry.key),
        }
    }
    items
}

/// The tables `[[key]]`.
fn list_of<T>(
    form: &mut Form<'_>,
    root: &mut Section<'_>,
    key: &'static str,
    broken: &mut Vec<String>,
    read: impl Fn(&mut Form<'_>, Section<'_>, &mut Vec<String>) -> Option<T>,
) -> Vec<T> {
    let sections = form.tables(root, key);
    sections.into_iter().filter_map(|section| read(form, section, broken)).collect()
}

fn doc(form: &mut Form<'_>, section: &mut Section<'_>, key: &'static str) -> String {
    section.take(key).and_then(|entry| form.string(&entry)).map(|text| text.value).unwrap_or_default()
}

fn check_namespace(form: &mut Form<'_>, namespace: &Located<String>) {
    if namespace.value.is_empty() || namespace.value.split('.').all(is_identifier) {
        return;
    }
    let diagnostic =
        Diagnostic::error("a namespace must be empty or made of identifiers with dots between them")
            .at(form.span(namespace.range.clone()), found(&namespace.value))
            .help("write it as `sample` or `com.example`");
    form.report(diagnostic);
}

fn check_version(form: &mut Form<'_>, version: &Located<String>) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    if !version.value.is_empty() && version.value.bytes().all(allowed) {
        return;
    }
    let diagnostic = Diagnostic::error("a version must be made of letters, digits, `.`, `_`, `+` and `-`")
        .at(form.span(version.range.clone()), found(&version.value));
    form.report(diagnostic);
}

fn length(form: &mut Form<'_>, name: &Located<String>) {
    if name.value.len() <= MAX_NAME_BYTES {
        return;
    }
    let diagnostic = Diagnostic::error(format!("a name may have at most {MAX_NAME_BYTES} bytes"))
        .at(form.span(name.range.clone()), format!("this has {}", name.value.len()))
        .note("this is TensorRT's limit");
    form.report(diagnostic);
}
