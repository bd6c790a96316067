//! Names, types and expressions of a manifest become a draft of the plugin model.
//!
//! Owns what names mean, the table of variants (one row for each variant and each choice of types, in that order) and
//! the checks that need only the manifest. A draft lacks what only a compile can tell: the order and types of the
//! kernels' parameters, and the code. Never reads a file: a kernel's source is a path here.

mod choices;
mod counts;
mod cpp_names;
mod expression;
mod foreign;
mod kernel;
mod launch;
mod layouts;
mod left_out;
mod messages;
mod names;
mod origin;
mod output_types;
mod restrict;
mod rows;
mod steps;
mod tables;
mod tensor_kinds;
mod unsaid;
mod usage;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_expr::{DataType, Format, Value};
use cubinder_expr::{Expr, Kind};
use cubinder_model::{Attribute, Guard, Input, Plugin, Variant};

use crate::diagnostic::{Diagnostic, Severity, Source, Span, has_errors, sort};
use crate::manifest::{self, MAX_RANK, Manifest, TableData, TableType};
use crate::rules;
use expression::Compiler;
pub use foreign::element;
pub use foreign::{ForeignCode, ForeignFile};
use rows::Row;
pub use usage::UnusedName;

/// A plugin before its kernels are compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginDraft {
    /// The model; its launches have no arguments and no code yet.
    pub plugin: Plugin,
    /// One unit for each launch of each variant, in the order of variants, then of steps.
    pub units: Vec<Unit>,
    /// For each variant and each of its steps the index of the declaration among the manifest's launches.
    pub steps: Vec<Vec<usize>>,
    /// The variants, by their ids, whose guards took rows out: those for values of attributes for which they are false.
    pub narrowed: BTreeSet<i32>,
}

impl PluginDraft {
    /// The units of a variant, in the order of its steps.
    #[must_use]
    pub fn units_of(&self, variant: usize) -> &[Unit] {
        let start = self.units.partition_point(|unit| unit.variant < variant);
        let end = self.units.partition_point(|unit| unit.variant <= variant);
        self.units.get(start..end).unwrap_or_default()
    }

    /// The unit of a step of a variant, with its index; none where the step launches nothing.
    #[must_use]
    pub fn unit_of(&self, variant: usize, step: usize) -> Option<(usize, &Unit)> {
        let at = self.units.partition_point(|unit| (unit.variant, unit.step) < (variant, step));
        let unit = self.units.get(at)?;
        ((unit.variant, unit.step) == (variant, step)).then_some((at, unit))
    }
}

/// What has to be compiled for one launch of one variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Index of the variant in the plugin.
    pub variant: usize,
    /// Index of the launch among the variant's steps.
    pub step: usize,
    /// Index of its declaration among the manifest's launches, of which a variant may leave some out.
    pub decl: usize,
    /// The code, where another compiler made it: then there is no source.
    pub foreign: Option<ForeignCode>,
    /// The CUDA source, resolved against the manifest's folder. Empty where it is wrong, and where there is none.
    pub source: PathBuf,
    /// Where the manifest names the source.
    pub source_span: Span,
    /// The kernel as C++ names it, type parameters and constants replaced: `circ_pad<float, 4>`; of code that is there already its
    /// symbol, once that is known. Empty where it is wrong.
    pub kernel: String,
    /// Where the manifest names the kernel.
    pub kernel_span: Span,
    /// Where each axis of the grid is said; one that is not said is 1.
    pub grid_spans: Vec<Span>,
    /// The block in the manifest, as a whole; none where nothing is said.
    pub block_span: Option<Span>,
    /// The variant's type parameters: `T` and what it is.
    pub types: Vec<(String, DataType)>,
    /// The variant's format parameters: `F` and what it is.
    pub formats: Vec<(String, Format)>,
    /// Whether the manifest has formats, beside row major ones: the source may use what there is for them.
    pub has_formats: bool,
    /// Every type of the plugin, each once: those of its tensors and its type parameters, in any variant. The source is the
    /// same for all variants, so it may use any of them.
    pub plugin_types: Vec<DataType>,
    /// The attributes that the variant is compiled for, and its constants.
    pub constants: Vec<(String, Value)>,
    /// The tables of the manifest, in its order; the same for every unit.
    pub tables: Arc<[Table]>,
    /// The arguments by name, in the manifest's order.
    pub args: Vec<ArgDraft>,
    /// Where the table of arguments is.
    pub args_span: Span,
    /// The outputs that more is given to than one argument of the variant, by index over inputs, then outputs: one that is a pointer to
    /// `const` may read what others write.
    pub shared_outputs: Vec<u32>,
    /// Whether the arguments are all that the manifest has: false only where one has no name or their table is none.
    pub args_are_known: bool,
}

/// Read-only data that is compiled beside the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// What its elements are.
    pub ty: TableType,
    /// The elements, at least one; those of a file once it is read.
    pub data: TableData,
    /// The file that they are in.
    pub file: Option<TableFile>,
}

/// A file that holds the elements of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    /// Resolved against the manifest's folder.
    pub path: PathBuf,
    /// Where the manifest names it.
    pub span: Span,
}

/// An argument before the kernel's parameters are known.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgDraft {
    /// The parameter's name.
    pub name: String,
    /// Where the name is.
    pub name_span: Span,
    /// What is passed.
    pub value: ArgDraftValue,
    /// Where the value is.
    pub value_span: Span,
    /// Where the value is wrong, the tensors that may have been meant, over inputs, then outputs. No rule says anything of such a
    /// value, and what stands for it is 0.
    pub broken: Option<Range<u32>>,
}

/// What an argument passes.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgDraftValue {
    /// A tensor's device pointer: index over inputs, then outputs.
    Tensor(u32),
    /// The device pointer of a scratch buffer of the variant, by index.
    Scratch(u32),
    /// A value.
    Expr {
        /// How it is computed.
        expr: Expr,
        /// What it is: a number, a boolean or an array of them.
        kind: Kind,
    },
}

/// A manifest that is right; or, as the `sketch` of a [`Wrong`] one, what could be made of it. There a stand-in that keeps to
/// every rule takes the place of what is wrong and of what depends on it: a guard that is not there, a requirement that always holds, a
/// shape of one element without limits, a grid and block of 1, no shared memory. So more cases are possible than the author meant:
/// what is proved of all of them holds, and a single case tells nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The plugin.
    pub draft: PluginDraft,
    /// What was written: the places of everything in the draft.
    pub manifest: Manifest,
    /// The text it was read from.
    pub source: Arc<Source>,
    /// Where the plugin's name is, for messages about the plugin as a whole.
    pub name_span: Span,
    /// What the author should look at, in order of place, whatever is in the kernels.
    pub warnings: Vec<Diagnostic>,
    /// Type parameters and constants that nothing in the manifest uses: see [`Resolved::unused`].
    pub unused_names: Vec<UnusedName>,
    /// Whether every declaration of the manifest could be read.
    pub is_read: bool,
    /// Whether the cases are those that the author meant: everything that bounds them is right.
    pub cases_are_known: bool,
    /// Whether the outputs' shapes are those that the author meant.
    pub shapes_are_known: bool,
}

/// A manifest with mistakes.
#[derive(Debug, Clone, PartialEq)]
pub struct Wrong {
    /// Every mistake that can be told apart from the others, in order of place, with the warnings of its form between them.
    pub errors: Vec<Diagnostic>,
    /// What could be made of it: it serves only to look for more mistakes. See [`Resolved`].
    pub sketch: Option<Box<Resolved>>,
}

impl Resolved {
    /// The warnings about type parameters and constants that neither the manifest nor a kernel uses. `in_kernels` are the names
    /// that the kernels' texts take from the generated header.
    #[must_use]
    pub fn unused(&self, in_kernels: &BTreeSet<String>) -> Vec<Diagnostic> {
        let unused = self.unused_names.iter().filter(|unused| !in_kernels.contains(&unused.name));
        unused.map(|unused| unused.warning.clone()).collect()
    }
}

/// Reads and resolves a manifest.
///
/// # Errors
/// Every mistake that can be told apart from the others, in order of place, with the warnings between them.
pub fn compile(source: &Arc<Source>) -> Result<Resolved, Vec<Diagnostic>> {
    read(source).map_err(|wrong| wrong.errors)
}

/// Reads and resolves a manifest, as far as it can be.
///
/// # Errors
/// The mistakes, with what could be made of the manifest beside them.
pub fn read(source: &Arc<Source>) -> Result<Resolved, Wrong> {
    if let Some(error) = unsaid::check(source) {
        return Err(Wrong { errors: vec![error], sketch: None });
    }
    let read = manifest::read(source);
    let Some(manifest) = read.manifest else { return Err(Wrong { errors: read.diagnostics, sketch: None }) };
    let resolved = sketch(&manifest, source);
    if read.diagnostics.is_empty() {
        return resolved;
    }
    let (errors, sketch) = match resolved {
        Ok(resolved) => (Vec::new(), Some(Box::new(resolved))),
        Err(wrong) => (wrong.errors, wrong.sketch),
    };
    let mut diagnostics = read.diagnostics;
    // What is only a warning may follow from the mistakes of form.
    diagnostics.extend(errors.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error));
    sort(&mut diagnostics);
    let sketch = sketch.map(|sketch| {
        Box::new(Resolved {
            is_read: false,
            cases_are_known: false,
            shapes_are_known: false,
            warnings: Vec::new(),
            ..*sketch
        })
    });
    Err(Wrong { errors: diagnostics, sketch })
}

/// Gives names, types and expressions their meaning.
///
/// # Errors
/// Every mistake that can be told apart from the others, in order of place. For a manifest that was read with errors
/// there may be none left to tell.
pub fn resolve(manifest: &Manifest, source: &Arc<Source>) -> Result<Resolved, Vec<Diagnostic>> {
    sketch(manifest, source).map_err(|wrong| wrong.errors)
}

fn sketch(manifest: &Manifest, source: &Arc<Source>) -> Result<Resolved, Wrong> {
    let too_many = counts::check(manifest, source);
    if !too_many.is_empty() {
        return Err(Wrong { errors: too_many, sketch: None });
    }
    let mut diagnostics = names::check(manifest, source);
    diagnostics.extend(tensor_kinds::check(manifest, source));
    diagnostics.extend(foreign::check(manifest, source));
    let rows::Table { rows, unclear } = rows::expand(manifest, source, &mut diagnostics);
    let mut compiler = Compiler::new(manifest, source, &rows, unclear);
    let (require, require_is_right) = compiler.require();
    let (outputs, outputs_are_right) = compiler.outputs();
    let (tables, tables_are_right) = tables::resolve(&mut compiler);
    let by_rules = left_out::by_rules(&rows, &require);
    let guards = rows.iter().enumerate().zip(&by_rules);
    let mut guards: Vec<Option<Guard>> =
        guards.map(|((index, row), is_gone)| (!is_gone).then(|| compiler.guard(row, index))?).collect();
    compiler.settle(by_rules.iter().filter(|is_gone| !**is_gone).count());
    diagnostics.extend(counts::check_guards(manifest, &rows, &mut guards, source));
    let by_guards = left_out::by_guards(&rows, &guards, &by_rules);
    let excluded = left_out::excluded(manifest, &rows, &by_rules, source);
    let unserved = left_out::unserved(manifest, &rows, &by_rules, &by_guards, source);
    let narrowed = rows.iter().zip(&by_guards).filter(|(_, is_gone)| **is_gone).map(|(row, _)| row.id);
    let narrowed: BTreeSet<i32> = narrowed.collect();
    let is_there: Vec<bool> = by_rules.iter().zip(&by_guards).map(|(a, b)| !a && !b).collect();
    let there: Vec<(usize, &Row)> = rows.iter().enumerate().filter(|(index, _)| is_there[*index]).collect();
    let guards_are_known = guards_are_known(manifest, &rows, &guards, &by_rules);
    if guards_are_known {
        let can_run =
            |(index, _): &&(usize, &Row)| !left_out::never_holds(guards.get(*index).and_then(Option::as_ref));
        let left: Vec<&Row> = there.iter().filter(can_run).map(|(_, row)| *row).collect();
        diagnostics.extend(output_types::check(manifest, &left, |name| compiler.is_unclear(name), source));
    }
    let plugin_types = rows::types(there.iter().map(|(_, row)| *row));
    let resolve = |(index, row): &(usize, &Row)| steps::resolve(&mut compiler, row, &plugin_types, *index);
    let steps: Vec<steps::RowSteps> = there.iter().map(resolve).collect();
    steps::never_done(&mut compiler, &there, &steps);
    let (messages, unused) = compiler.finish(&rows, there.len());
    diagnostics.extend(excluded);
    diagnostics.extend(unserved);
    diagnostics.extend(messages);
    diagnostics.extend(unused.warnings);
    if has_errors(&diagnostics) {
        // Something that is wrong elsewhere may be the use that a warning misses.
        diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
    }
    sort(&mut diagnostics);
    let steps_are_right = steps.iter().all(|steps| steps.is_right);
    let there = rows.into_iter().zip(guards).zip(is_there).filter(|(_, is_there)| *is_there);
    let table = there.map(|(row, _)| row).zip(steps);
    let is_right = steps_are_right
        && require_is_right
        && outputs_are_right
        && tables_are_right
        && !has_errors(&diagnostics);
    let mut resolved = Resolved {
        draft: PluginDraft { narrowed, ..draft(manifest, table, require, outputs, &tables) },
        manifest: manifest.clone(),
        source: Arc::clone(source),
        name_span: Span::new(source, manifest.plugin.name.range.clone()),
        warnings: Vec::new(),
        unused_names: unused.names,
        is_read: true,
        cases_are_known: require_is_right,
        shapes_are_known: outputs_are_right,
    };
    if is_right {
        resolved.warnings = diagnostics;
        return Ok(resolved);
    }
    Err(Wrong { errors: diagnostics, sketch: Some(Box::new(resolved)) })
}

/// Whether every guard that is written down has a meaning, so that it is known which rows are left.
fn guards_are_known(manifest: &Manifest, rows: &[Row], guards: &[Option<Guard>], is_gone: &[bool]) -> bool {
    let is_written = |row: &Row| manifest.variants.get(row.variant).is_some_and(|decl| decl.guard.is_some());
    let is_known = |((row, guard), is_gone): ((&Row, &Option<Guard>), &bool)| {
        *is_gone || guard.is_some() || !is_written(row)
    };
    rows.iter().zip(guards).zip(is_gone).all(is_known)
}

fn draft(
    manifest: &Manifest,
    table: impl Iterator<Item = ((Row, Option<Guard>), steps::RowSteps)>,
    require: Vec<cubinder_model::Requirement>,
    outputs: Vec<cubinder_model::Output>,
    tables: &Arc<[Table]>,
) -> PluginDraft {
    let (mut variants, mut units, mut decls) = (Vec::new(), Vec::new(), Vec::new());
    for ((row, guard), steps) in table {
        let placed = |unit| Unit { variant: variants.len(), tables: Arc::clone(tables), ..unit };
        units.extend(steps.units.into_iter().map(placed));
        variants.push(Variant {
            id: row.id,
            label: row.label(),
            types: row.tensor_types,
            formats: row.tensor_formats,
            specialized: row.specialized.into_iter().map(|it| (it.attribute, it.value)).collect(),
            guard,
            scratch: steps.scratch,
            steps: steps.steps,
        });
        decls.push(steps.decls);
    }
    let plugin = Plugin {
        name: manifest.plugin.name.value.clone(),
        namespace: manifest.plugin.namespace.clone(),
        version: manifest.plugin.version.clone(),
        summary: manifest.plugin.summary.clone(),
        attributes: manifest.attributes.iter().map(attribute).collect(),
        inputs: manifest.inputs.iter().map(input).collect(),
        outputs,
        require,
        timing: timing(manifest),
        variants,
        tuning: Vec::new(),
    };
    PluginDraft { plugin, units, steps: decls, narrowed: BTreeSet::new() }
}

/// The attributes on which the time of a node depends, in the order of the attributes.
fn timing(manifest: &Manifest) -> Option<Vec<u32>> {
    let names = &manifest.plugin.timing.as_ref()?.value;
    let attributes = (0..).zip(&manifest.attributes);
    let named = attributes.filter(|(_, decl)| names.iter().any(|name| name.value == decl.name.value));
    Some(named.map(|(index, _)| index).collect())
}

fn attribute(decl: &manifest::AttributeDecl) -> Attribute {
    // Code is there for these values alone.
    let allowed = decl.specialize.as_ref().or(decl.one_of.as_ref());
    let (minimum, maximum) = decl.range.clone().map(|range| range.value).unwrap_or_default();
    Attribute {
        name: decl.name.value.clone(),
        ty: decl.ty,
        default: decl.default.clone(),
        length: decl.length.as_ref().map(|length| length.value),
        minimum,
        maximum,
        one_of: allowed.map(|allowed| allowed.value.clone()).unwrap_or_default(),
        doc: decl.doc.clone(),
    }
}

fn input(decl: &manifest::InputDecl) -> Input {
    Input {
        name: decl.name.value.clone(),
        rank_min: decl.rank.0,
        rank_max: decl.rank.1,
        limits: decl.limits.limits.clone(),
        values: decl.values.as_ref().map(|values| values.value),
        doc: decl.doc.clone(),
    }
}

/// A path that a manifest names, against the manifest's folder. Nothing is folded away: `..` behind a link means what the
/// file system says.
pub fn beside(source: &Source, path: &str) -> PathBuf {
    source.path.parent().unwrap_or(Path::new("")).join(path)
}

/// Refuses plugins that TensorRT's registry could not tell apart: equal in name, version and namespace.
#[must_use]
pub fn check_unique<P: Borrow<Resolved>>(plugins: &[P]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for (index, second) in plugins.iter().map(Borrow::borrow).enumerate() {
        let identity = |resolved: &Resolved| {
            let plugin = &resolved.draft.plugin;
            (plugin.name.clone(), plugin.version.clone(), plugin.namespace.clone())
        };
        let (name, version, namespace) = identity(second);
        let first =
            plugins.iter().map(Borrow::borrow).take(index).find(|first| identity(first) == identity(second));
        if let Some(first) = first {
            let message = format!(
                "two manifests define the plugin `{name}`, version `{version}`, namespace `{namespace}`"
            );
            diagnostics.push(
                Diagnostic::error(message)
                    .code(rules::PLUGIN_TWICE)
                    .at(second.name_span.clone(), "the second one")
                    .related(first.name_span.clone(), "the first one")
                    .note("TensorRT finds a plugin by name, version and namespace")
                    .help("give one of them another name, version or namespace"),
            );
        }
    }
    diagnostics
}

#[cfg(test)]
mod tests;
