//! The keys of manifests. Each `table!` yields reader, reference (`docs/manifest.md`) and JSON Schema.

mod attributes;
mod code;
mod combinations;
mod compile;
mod constraints;
mod launches;
pub(super) mod names;
mod plugin;
mod ranges;
pub(super) mod tables;
mod tensors;
mod values;
mod variants;

use serde_json::json;

pub(crate) use compile::parse_targets;
pub use launches::LAUNCH;

pub use super::description::{Key, Kinds, Nested, Presence, Table};
use super::errors::*;
use super::toml_reader::{Entry, Section, TomlReader, list};
use super::value_type::{
    AnyText, ArrayOf, Debug, Declaration, Expression, ExpressionText, FilePath, Identifier, Line, Lines,
    NamedDeclaration, NamedTables, Row, Switch, TableOf, table, value_types,
};
use super::*;
use crate::diagnostic::{lacking_type, suggest_type};
use names::{Constant, FormatParameter, TypeParameter};

table! {
    /// One plugin.
    struct Root = pub ROOT: "" as "the file" {
        /// The edition of this language. Must come before the first table.
        schema: Edition = Required, "1";
        /// The operator.
        plugin: TableOf<PluginDecl> = Required;
        /// The attributes of nodes.
        attributes: NamedTables<AttributeDecl> = Optional, "pads";
        /// The input tensors, in the node's order.
        inputs: ArrayOf<InputDecl> = Optional;
        /// The output tensors, in the node's order.
        outputs: ArrayOf<OutputDecl> = Optional;
        /// Type parameters and their element types; the plugin is compiled for every combination.
        types: Lines<TypeParameter> = Optional, "T = [\"f32\", \"f16\"]";
        /// Format parameters and their memory layouts, combined as types are.
        formats: Lines<FormatParameter> = Optional, "F = [\"linear\", \"hwc8\"]";
        /// Allowed combinations of types and formats: those that match any of these tables. Default: all.
        combinations: ArrayOf<CombinationDecl> = Optional;
        /// Named numbers, equal in every variant.
        constants: Lines<Constant> = Optional, "BLOCK = 256";
        /// Named expressions with parameters.
        functions: NamedTables<FunctionDecl> = Optional, "before";
        /// Implementations of the operator, the preferred one first. Default: one, with id 1.
        variants: ArrayOf<VariantDecl> = Optional;
        /// Read-only data compiled into the code.
        tables: NamedTables<TableDecl> = Optional, "window";
        /// Temporary memory that the steps of one run share.
        scratch: NamedTables<ScratchDecl> = Optional, "partial";
        /// Precompiled kernels, as machine code or PTX.
        code: ArrayOf<CodeDecl> = Optional;
        /// The steps of a run, in order: kernels to launch and memory to fill.
        launches: ArrayOf<StepDecl> = Required;
        /// Compile options that override `cubinder.toml`.
        compile: TableOf<CompileDecl> = Optional;
    }
}

value_types! {
    /// Schema edition, already read.
    Edition -> (): "the integer 1", json!({ "const": NEWEST_SCHEMA }), |_, _| Some(());
}

pub(super) fn read(toml: &mut TomlReader, mut section: Section<'_>) -> Option<Manifest> {
    report_root_keys(toml, &mut section);
    let root: Root<'_> = Row::read(toml, &section);
    if !section.has("plugin") {
        toml.report(NoPlugin { place: toml.span(0..0) });
    }
    let launches = root.launches.as_deref().unwrap_or_default();
    let listed = section.entry("launches").map_or(Some(0), |entry| Some(entry.items()?.len()));
    // An invalid element may be a launch.
    if listed == Some(launches.len()) {
        launches::check_launches(toml, launches);
    }
    section.allow_missing();
    toml.finish(&section);
    let inputs = root.inputs.unwrap_or_default();
    let mut outputs = root.outputs.unwrap_or_default();
    outputs.iter_mut().for_each(|output| tensors::inherit(output, &inputs));
    let lists_variants =
        section.entry("variants").is_some_and(|entry| entry.items().is_some_and(|items| !items.is_empty()));
    let variants =
        if lists_variants { root.variants.unwrap_or_default() } else { vec![variants::only_variant()] };
    root.schema.map(|()| Manifest {
        plugin: root.plugin.unwrap_or_default(),
        attributes: root.attributes.unwrap_or_default(),
        inputs,
        outputs,
        types: root.types.unwrap_or_default(),
        formats: root.formats.unwrap_or_default(),
        combinations: root.combinations.unwrap_or_default(),
        constants: root.constants.unwrap_or_default(),
        functions: root.functions.unwrap_or_default(),
        variants,
        tables: root.tables.unwrap_or_default(),
        scratch: root.scratch.unwrap_or_default(),
        code: root.code.unwrap_or_default(),
        launches: root.launches.unwrap_or_default(),
        compile: root.compile.unwrap_or_default(),
        broken: std::mem::take(&mut toml.broken),
    })
}

/// Stops after a misplaced or misspelt table.
fn report_root_keys(toml: &mut TomlReader, root: &mut Section<'_>) {
    for entry in root.entries().into_iter().filter(|entry| ROOT.key(&entry.key).is_none()) {
        if let Some(header) = header_of(&entry.key) {
            let (table, place) = ("the file".to_owned(), toml.span(entry.key_range));
            let help = Some(format!("write `{header}`"));
            toml.report(UnknownKey { key: entry.key.clone(), table, place, note: None, help });
            root.set_reported(&entry.key);
            toml.explained.push(entry.key);
        } else if suggest(&entry.key, ROOT.keys.iter().map(|key| key.name)).is_none() {
            continue;
        }
        toml.give_up();
    }
}

fn header_of(key: &str) -> Option<String> {
    let outer = ROOT.keys.iter().filter(|outer| !matches!(outer.nested, Nested::Named(_)));
    let mut inner = outer.flat_map(|outer| outer.nested.tables().iter().map(|table| (outer.name, *table)));
    inner.find_map(|(outer, table)| match table.key(key)?.nested {
        Nested::Table(_) | Nested::Lines { .. } => Some(format!("[{outer}.{key}]")),
        Nested::Array(_) => Some(format!("[[{outer}.{key}]]")),
        _ => None,
    })
}

/// Explains why other languages' types are missing.
pub(crate) fn no_tensors_of(lacking: &str) -> String {
    match lacking {
        "f4" => "Cubinder does not support tensors of 4-bit floats yet".to_owned(),
        lacking => format!("TensorRT does not support `{lacking}` tensors"),
    }
}

fn unknown_type(toml: &mut TomlReader, name: &Located<String>, what: &'static str, known: &[&str]) {
    let mut notes = vec![format!("the {what}s are {}", list(known))];
    let mut help = None;
    match lacking_type(&name.value, known.iter().copied()) {
        Some(lacking) if what == "attribute type" && lacking.starts_with('u') => {
            let signed = "for nonnegative values, use a signed type with `range = \"0..\"`";
            help = Some(signed.to_owned());
        }
        Some(_) if matches!(what, "attribute type" | "table type") => {}
        Some(lacking) => notes.push(no_tensors_of(&lacking)),
        None => {
            let near = suggest_type(&name.value, known.iter().copied());
            help = near.map(|near| format!("did you mean `{near}`?"));
        }
    }
    let article = if what.starts_with(['a', 'e']) { "an" } else { "a" };
    toml.report(UnknownType { what, article, name: name.value.clone(), notes, place: toml.span(name), help });
}

#[cfg(test)]
mod tests;
