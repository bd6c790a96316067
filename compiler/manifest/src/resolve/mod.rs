//! Names, types and expressions of a manifest become a draft of the plugin model.
//!
//! Owns what names mean, the table of variants (one row for each variant and each choice of types, in that order) and
//! the checks that need only the manifest. A draft lacks what only a compile can tell: the order and types of the
//! kernels' parameters, and the code. Never reads a file: a kernel's source is a path here.

mod choices;
mod conditions;
mod counts;
mod cpp_names;
mod declaration_labels;
mod declarations;
mod errors;
mod excluded_rows;
mod expression;
mod foreign;
mod free_names;
mod guards;
mod kernel;
mod launch;
mod layouts;
mod messages;
mod names;
mod output_types;
mod placeholders;
mod restrict;
mod rows;
mod steps;
mod tables;
mod tensor_kinds;
mod usage;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_expr::{DataType, Format, Value};
use cubinder_expr::{Expr, Kind};
use cubinder_model::{Attribute, Input, Plugin, Variant};

use crate::diagnostic::{Diagnostic, Severity, Source, Span, has_errors, sort};
use crate::manifest::{self, Manifest, TableType};
use declarations::Declarations;
use expression::Compiler;
pub use foreign::element;
pub use foreign::{ForeignCode, ForeignFile};
pub use names::with_article;
use rows::{Candidate, Exclusion, Row};
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
    /// The bytes of the elements, at least one, little-endian; those of a file once it is read.
    pub data: Vec<u8>,
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

/// A manifest that is right; or, as the `sketch` of an [`Unresolved`] one, a partially resolved one. There, replacements that satisfy
/// every rule stand for wrong parts and those that depend on them: a guard that is not there, a requirement that always holds, a
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

/// A manifest with errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Unresolved {
    /// Every independent error, in order of place, with the warnings of its form between them.
    pub errors: Vec<Diagnostic>,
    /// The partially resolved manifest: it serves only to find more errors. See [`Resolved`].
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
/// Every independent error, in order of place, with the warnings between them.
pub fn compile(source: &Arc<Source>) -> Result<Resolved, Vec<Diagnostic>> {
    read(source).map_err(|unresolved| unresolved.errors)
}

/// Reads and resolves a manifest, as far as it can be.
///
/// # Errors
/// The errors, with the partially resolved manifest.
pub fn read(source: &Arc<Source>) -> Result<Resolved, Unresolved> {
    if let Some(error) = placeholders::check(source) {
        return Err(Unresolved { errors: vec![error], sketch: None });
    }
    let read = manifest::read(source);
    let Some(manifest) = read.manifest else {
        return Err(Unresolved { errors: read.diagnostics, sketch: None });
    };
    let resolved = resolve(&manifest, source);
    if read.diagnostics.is_empty() {
        return resolved;
    }
    let (errors, sketch) = match resolved {
        Ok(resolved) => (Vec::new(), Some(Box::new(resolved))),
        Err(unresolved) => (unresolved.errors, unresolved.sketch),
    };
    let mut diagnostics = read.diagnostics;
    // Warnings may follow from the errors of form.
    diagnostics.extend(errors.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error));
    sort(&mut diagnostics);
    let sketch = sketch.map(|mut sketch| {
        (sketch.is_read, sketch.cases_are_known, sketch.shapes_are_known) = (false, false, false);
        sketch.warnings.clear();
        sketch
    });
    Err(Unresolved { errors: diagnostics, sketch })
}

/// Resolves names, types and expressions. A manifest that was read with errors may have no further ones.
fn resolve(manifest: &Manifest, source: &Arc<Source>) -> Result<Resolved, Unresolved> {
    let declared = Declarations { manifest, source };
    let too_many = counts::check(declared);
    if !too_many.is_empty() {
        return Err(Unresolved { errors: too_many, sketch: None });
    }
    let mut diagnostics = names::check(declared);
    diagnostics.extend(tensor_kinds::check(declared));
    diagnostics.extend(foreign::check(declared));
    let (rows, unclear) = rows::expand(declared, &mut diagnostics);
    diagnostics.extend(layouts::check(declared, &rows, &unclear));
    let mut compiler = Compiler::new(declared, &rows, unclear);
    let (require, require_is_right) = compiler.require();
    let (outputs, outputs_are_right) = compiler.outputs();
    let (tables, tables_are_right) = tables::resolve(&mut compiler);
    let candidates = rows.into_iter().map(|row| Candidate { row, guard: None, exclusion: None });
    let mut candidates: Vec<Candidate> = candidates.collect();
    excluded_rows::by_requirements(&mut candidates, &require);
    let mut checked = 0;
    for Candidate { row, guard, .. } in candidates.iter_mut().filter(|it| it.exclusion.is_none()) {
        *guard = guards::guard(&mut compiler, row);
        checked += 1;
    }
    compiler.messages.settle(checked);
    diagnostics.extend(counts::check_guards(declared, &mut candidates));
    excluded_rows::by_guards(&mut candidates);
    diagnostics.extend(excluded_rows::check(declared, &candidates));
    let by_guard = candidates.iter().filter(|candidate| candidate.exclusion == Some(Exclusion::Guard));
    let narrowed: BTreeSet<i32> = by_guard.map(|candidate| candidate.row.id).collect();
    let active: Vec<&Candidate> = candidates.iter().filter(|it| it.exclusion.is_none()).collect();
    let has_guard = |row: &Row| manifest.variants.get(row.variant).is_some_and(|decl| decl.guard.is_some());
    // A guard that is written down and has no meaning leaves open which rows remain.
    if active.iter().all(|candidate| candidate.guard.is_some() || !has_guard(&candidate.row)) {
        let can_run = active.iter().filter(|it| !excluded_rows::never_holds(it.guard.as_ref()));
        let rows: Vec<&Row> = can_run.map(|candidate| &candidate.row).collect();
        diagnostics.extend(output_types::check(declared, &rows, |name| compiler.is_unclear(name)));
    }
    let active_rows: Vec<&Row> = active.iter().map(|candidate| &candidate.row).collect();
    let plugin_types = rows::types(active_rows.iter().copied());
    let steps = active_rows.iter().map(|row| steps::resolve(&mut compiler, row, &plugin_types));
    let steps: Vec<steps::RowSteps> = steps.collect();
    steps::report_never_done(&mut compiler, &active_rows, &steps);
    let describe = |row: usize| Some(candidates.get(row)?.row.describe());
    let (unused_in_manifest, unused_names) = usage::unused(declared, &compiler.used, &compiler.used_in_rows);
    diagnostics.extend(compiler.messages.finish(active_rows.len(), &describe));
    diagnostics.extend(unused_in_manifest);
    if has_errors(&diagnostics) {
        // Something that is wrong elsewhere may be the use that a warning misses.
        diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
    }
    sort(&mut diagnostics);
    let is_right = steps.iter().all(|steps| steps.is_right)
        && require_is_right
        && outputs_are_right
        && tables_are_right
        && !has_errors(&diagnostics);
    let table = candidates.into_iter().filter(|candidate| candidate.exclusion.is_none()).zip(steps);
    let mut resolved = Resolved {
        draft: PluginDraft { narrowed, ..draft(manifest, table, require, outputs, &tables) },
        manifest: manifest.clone(),
        source: Arc::clone(source),
        name_span: declared.span(&manifest.plugin.name.range),
        warnings: Vec::new(),
        unused_names,
        is_read: true,
        cases_are_known: require_is_right,
        shapes_are_known: outputs_are_right,
    };
    if is_right {
        resolved.warnings = diagnostics;
        return Ok(resolved);
    }
    Err(Unresolved { errors: diagnostics, sketch: Some(Box::new(resolved)) })
}

fn draft(
    manifest: &Manifest,
    table: impl Iterator<Item = (Candidate, steps::RowSteps)>,
    require: Vec<cubinder_model::Requirement>,
    outputs: Vec<cubinder_model::Output>,
    tables: &Arc<[Table]>,
) -> PluginDraft {
    let (mut variants, mut units, mut decls) = (Vec::new(), Vec::new(), Vec::new());
    for (Candidate { row, guard, .. }, steps) in table {
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
        ty: decl.ty.value,
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

/// Rejects plugins that TensorRT's registry could not distinguish: equal in name, version and namespace.
#[must_use]
pub fn check_unique<P: Borrow<Resolved>>(plugins: &[P]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let identity = |resolved: &Resolved| {
        let plugin = &resolved.draft.plugin;
        (plugin.name.clone(), plugin.version.clone(), plugin.namespace.clone())
    };
    for (index, second) in plugins.iter().map(Borrow::borrow).enumerate() {
        let (name, version, namespace) = &identity(second);
        let mut before = plugins.iter().map(Borrow::borrow).take(index);
        if let Some(first) = before.find(|first| identity(first) == identity(second)) {
            let (second, first) = (second.name_span.clone(), first.name_span.clone());
            diagnostics.push(errors::PluginTwice { name, version, namespace, second, first }.into());
        }
    }
    diagnostics
}

#[cfg(test)]
mod tests;
