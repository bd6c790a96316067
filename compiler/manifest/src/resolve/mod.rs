//! Resolves a manifest's names, types and expressions into a plugin draft, without code and kernel parameters. Owns
//! the table of variants (a row per variant and choice of types) and all checks that need only the manifest. Never
//! reads files.

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

/// Plugin before its kernels are compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginDraft {
    /// Model, without arguments and code.
    pub plugin: Plugin,
    /// One unit for each launch of each variant.
    pub units: Vec<Unit>,
    /// Per variant and step: index in the manifest's launches.
    pub steps: Vec<Vec<usize>>,
    /// Ids of variants with rows excluded by guards.
    pub narrowed: BTreeSet<i32>,
}

impl PluginDraft {
    /// Returns a variant's units, in order.
    #[must_use]
    pub fn units_of(&self, variant: usize) -> &[Unit] {
        let start = self.units.partition_point(|unit| unit.variant < variant);
        let end = self.units.partition_point(|unit| unit.variant <= variant);
        self.units.get(start..end).unwrap_or_default()
    }

    /// Returns a step's unit with its index; `None` without a kernel.
    #[must_use]
    pub fn unit_of(&self, variant: usize, step: usize) -> Option<(usize, &Unit)> {
        let at = self.units.partition_point(|unit| (unit.variant, unit.step) < (variant, step));
        let unit = self.units.get(at)?;
        ((unit.variant, unit.step) == (variant, step)).then_some((at, unit))
    }
}

/// Compile of one launch of one variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// Index of the variant.
    pub variant: usize,
    /// Index among the variant's steps.
    pub step: usize,
    /// Index among the manifest's launches.
    pub decl: usize,
    /// Precompiled code, instead of a source.
    pub foreign: Option<ForeignCode>,
    /// CUDA source; empty if invalid or absent.
    pub source: PathBuf,
    /// Source span in the manifest.
    pub source_span: Span,
    /// C++ name (`circ_pad<float, 4>`) or precompiled symbol; empty if invalid or unknown.
    pub kernel: String,
    /// Kernel span in the manifest.
    pub kernel_span: Span,
    /// Spans of the grid's given axes.
    pub grid_spans: Vec<Span>,
    /// Block span, if set.
    pub block_span: Option<Span>,
    /// Type parameters with their values.
    pub types: Vec<(String, DataType)>,
    /// Format parameters with their values.
    pub formats: Vec<(String, Format)>,
    /// Whether the source may use format helpers.
    pub has_formats: bool,
    /// The plugin's types: variants share the source.
    pub plugin_types: Vec<DataType>,
    /// Variant's specialized attributes and constants.
    pub constants: Vec<(String, Value)>,
    /// Manifest tables, shared by all units.
    pub tables: Arc<[Table]>,
    /// Arguments, in the manifest's order.
    pub args: Vec<ArgDraft>,
    /// Span of the table of arguments.
    pub args_span: Span,
    /// Outputs of several arguments, over inputs, then outputs: a pointer to `const` may read another's writes.
    pub shared_outputs: Vec<u32>,
    /// Whether `args` is complete.
    pub args_are_known: bool,
}

/// Read-only data in the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Name.
    pub name: String,
    /// Type of its elements.
    pub ty: TableType,
    /// Little-endian bytes; a file's once it is read.
    pub data: Vec<u8>,
    /// File with the elements.
    pub file: Option<TableFile>,
}

/// File with the elements of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableFile {
    /// Path, resolved against the manifest's folder.
    pub path: PathBuf,
    /// Span in the manifest.
    pub span: Span,
}

/// Argument without its kernel parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgDraft {
    /// Parameter name.
    pub name: String,
    /// Span of the name.
    pub name_span: Span,
    /// Value.
    pub value: ArgDraftValue,
    /// Span of the value.
    pub value_span: Span,
    /// Tensors that an invalid value may mean, over inputs, then outputs.
    pub broken: Option<Range<u32>>,
}

/// Value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgDraftValue {
    /// Tensor, by index over inputs, then outputs.
    Tensor(u32),
    /// Scratch buffer, by index.
    Scratch(u32),
    /// Expression.
    Expr {
        /// Compiled expression.
        expr: Expr,
        /// Number, boolean or array.
        kind: Kind,
    },
}

/// A valid manifest, or a partial `sketch` of [`Unresolved`]. A sketch's placeholders satisfy every rule: proofs
/// about all nodes are valid, counterexamples are not.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Plugin draft.
    pub draft: PluginDraft,
    /// Syntax tree, with spans.
    pub manifest: Manifest,
    /// Manifest text.
    pub source: Arc<Source>,
    /// Span of the plugin's name.
    pub name_span: Span,
    /// Kernel-independent warnings, ordered by position.
    pub warnings: Vec<Diagnostic>,
    /// Names that the manifest does not use ([`Resolved::unused`]).
    pub unused_names: Vec<UnusedName>,
    /// Whether every declaration could be read.
    pub is_read: bool,
    /// Whether all bounds of nodes are valid.
    pub cases_are_known: bool,
    /// Whether the outputs' shapes are correct.
    pub shapes_are_known: bool,
}

/// Manifest with errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Unresolved {
    /// Errors and warnings, ordered by position.
    pub errors: Vec<Diagnostic>,
    /// Partial manifest, to find more errors.
    pub sketch: Option<Box<Resolved>>,
}

impl Resolved {
    /// Warns about names that neither manifest nor kernels (`in_kernels`) use.
    #[must_use]
    pub fn unused(&self, in_kernels: &BTreeSet<String>) -> Vec<Diagnostic> {
        let unused = self.unused_names.iter().filter(|unused| !in_kernels.contains(&unused.name));
        unused.map(|unused| unused.warning.clone()).collect()
    }
}

/// Reads and resolves a manifest; fails with all independent errors and warnings.
pub fn compile(source: &Arc<Source>) -> Result<Resolved, Vec<Diagnostic>> {
    read(source).map_err(|unresolved| unresolved.errors)
}

/// Reads and resolves a manifest; on errors, partially.
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
    diagnostics.extend(errors.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error));
    sort(&mut diagnostics);
    let sketch = sketch.map(|mut sketch| {
        (sketch.is_read, sketch.cases_are_known, sketch.shapes_are_known) = (false, false, false);
        sketch.warnings.clear();
        sketch
    });
    Err(Unresolved { errors: diagnostics, sketch })
}

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
    // Invalid guards leave remaining rows unknown.
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
        // Invalid parts may contain the missing use.
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

fn timing(manifest: &Manifest) -> Option<Vec<u32>> {
    let names = &manifest.plugin.timing.as_ref()?.value;
    let attributes = (0..).zip(&manifest.attributes);
    let named = attributes.filter(|(_, decl)| names.iter().any(|name| name.value == decl.name.value));
    Some(named.map(|(index, _)| index).collect())
}

fn attribute(decl: &manifest::AttributeDecl) -> Attribute {
    // Only these values have code.
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

/// Resolves a path against the manifest's folder. Keeps `..`, because of symlinks.
pub fn beside(source: &Source, path: &str) -> PathBuf {
    source.path.parent().unwrap_or(Path::new("")).join(path)
}

/// Rejects equal name, version and namespace, indistinguishable in TensorRT's registry.
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
