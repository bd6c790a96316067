//! The steps of one row, in order: which are done there, the memory that they share, and what has to be compiled for them.
//!
//! A step whose condition comes to false in a row is left out there with everything that only it needs: its kernel is not compiled,
//! and a scratch buffer that no other step uses takes no memory.

use std::ops::Range;

use cubinder_expr::DataType;
use cubinder_expr::{Node, TensorKind};
use cubinder_model::{Fill, Guard, Memory, Scratch, Step, Work};

use super::expression::{Compiler, Expected, Place};
use super::launch::{self, constant};
use super::rows::Row;
use super::{ArgDraft, ArgDraftValue, Unit, tensor_kinds};
use crate::diagnostic::{Diagnostic, suggest};
use crate::manifest::{FillDecl, Located, Manifest, OutputDecl, StepDecl, Text, WorkDecl};
use crate::rules;

/// What a row does.
pub(super) struct RowSteps {
    pub(super) scratch: Vec<Scratch>,
    pub(super) steps: Vec<Step>,
    /// The index of each step's declaration among the manifest's launches.
    pub(super) decls: Vec<usize>,
    /// One for each launch.
    pub(super) units: Vec<Unit>,
    /// Whether nothing in it is wrong. What stands for a wrong part keeps to every rule.
    pub(super) is_right: bool,
}

/// A step's condition in a row.
enum When {
    /// It is done, always or where this holds.
    Done(Option<Guard>),
    /// It is left out.
    Never,
    /// The condition is wrong, which was told.
    Wrong,
}

/// Compiles the steps for a row.
pub(super) fn resolve(
    compiler: &mut Compiler<'_>,
    row: &Row,
    plugin_types: &[DataType],
    index: usize,
) -> RowSteps {
    let manifest = compiler.manifest;
    let place = compiler.in_row(row, index);
    let mut found = RowSteps {
        scratch: Vec::new(),
        steps: Vec::new(),
        decls: Vec::new(),
        units: Vec::new(),
        is_right: !manifest.launches.is_empty(),
    };
    for (number, decl) in manifest.launches.iter().enumerate() {
        let when = match condition(compiler, decl, &place) {
            When::Done(when) => when,
            When::Never => continue,
            When::Wrong => {
                found.is_right = false;
                None
            }
        };
        let work = match &decl.work {
            WorkDecl::Fill(fill) => {
                memory(compiler, fill, index).map(|memory| Work::Fill(Fill { memory, byte: fill.byte }))
            }
            WorkDecl::Launch(decl) => {
                let step = found.steps.len();
                let one = launch::resolve(compiler, decl, row, plugin_types, &place, index);
                found.is_right &= one.is_right;
                found.units.push(Unit { step, decl: number, ..one.unit });
                Some(Work::Launch(Box::new(one.launch)))
            }
        };
        found.is_right &= work.is_some();
        if let Some(work) = work {
            found.steps.push(Step { when, work });
            found.decls.push(number);
        }
    }
    found.is_right &= launches_something(compiler, &found, index);
    let used = used(&found);
    let (scratch, is_right) = scratch(compiler, &place, &used);
    found.is_right &= is_right;
    found.scratch = scratch;
    renumber(&mut found, &used);
    share_outputs(&mut found, manifest);
    found
}

/// Tells each unit which outputs more is given to than one argument, under their own names or those of the inputs whose memory they
/// share.
fn share_outputs(found: &mut RowSteps, manifest: &Manifest) {
    let inputs = manifest.inputs.len();
    let number = |tensor: usize| u32::try_from(tensor).unwrap_or(u32::MAX);
    let shared_input = |alias: &Located<String>| {
        manifest.inputs.iter().position(|input| input.name.value == alias.value).map(number)
    };
    let names = manifest.outputs.iter().map(|output| output.alias.as_ref().and_then(shared_input));
    let tensors: Vec<(u32, Option<u32>)> =
        names.enumerate().map(|(output, input)| (number(inputs + output), input)).collect();
    let of_fills: Vec<usize> = found
        .steps
        .iter()
        .filter_map(|step| match step.work {
            Work::Fill(Fill { memory: Memory::Output(output), .. }) => Some(inputs + output as usize),
            _ => None,
        })
        .collect();
    // An argument that is wrong may be meant as any of them.
    let passes = |arg: &ArgDraft, tensor: u32| match (&arg.broken, &arg.value) {
        (Some(meant), _) => meant.contains(&tensor),
        (None, value) => *value == ArgDraftValue::Tensor(tensor),
    };
    let users = |tensor: u32, input: Option<u32>| {
        let args = found.units.iter().flat_map(|unit| &unit.args);
        let args = args.filter(|arg| passes(arg, tensor) || input.is_some_and(|input| passes(arg, input)));
        args.count() + of_fills.iter().filter(|fill| **fill == tensor as usize).count()
    };
    let shared = tensors.into_iter().filter(|(tensor, input)| users(*tensor, *input) > 1);
    let shared: Vec<u32> = shared.map(|(tensor, _)| tensor).collect();
    found.units.iter_mut().for_each(|unit| unit.shared_outputs.clone_from(&shared));
}

fn condition(compiler: &mut Compiler<'_>, decl: &StepDecl, place: &Place) -> When {
    let Some(text) = &decl.when else { return When::Done(None) };
    let Some(typed) = compiler.expression(text, "when", Expected::Bool, place) else { return When::Wrong };
    match typed.expr.nodes.as_slice() {
        [Node::Bool(true)] => When::Done(None),
        [Node::Bool(false)] => When::Never,
        _ => When::Done(Some(Guard { expr: typed.expr, text: text.value.clone() })),
    }
}

/// Whether a row has a launch, which every variant must have: said at its variant.
fn launches_something(compiler: &mut Compiler<'_>, found: &RowSteps, index: usize) -> bool {
    let launches = |decl: &StepDecl| decl.launch().is_some();
    if !found.units.is_empty() || !compiler.manifest.launches.iter().any(launches) {
        return !found.units.is_empty();
    }
    let conditions = compiler.manifest.launches.iter().filter_map(|decl| decl.when.as_ref());
    if let Some(text) = conditions.clone().next() {
        let mut diagnostic =
            Diagnostic::error("a variant launches no kernel: each step's condition is false there")
                .code(rules::STEP_CONDITION)
                .at(compiler.span_of(text), "this is always false there");
        for other in conditions.skip(1) {
            diagnostic = diagnostic.related(compiler.span_of(other), "and this");
        }
        let diagnostic = diagnostic.help(
            "every variant launches at least one kernel: correct the conditions, or take the variant out",
        );
        compiler.report(diagnostic, Some(index));
    }
    false
}

/// The scratch buffers that the row's steps use, and whether they are right. What stands for a wrong size is 0.
///
/// A row that does not use a buffer may lack what its size is computed from. What no step names at all is read in every row, so that it is
/// told what is wrong with it.
fn scratch(compiler: &mut Compiler<'_>, place: &Place, used: &[u32]) -> (Vec<Scratch>, bool) {
    let mut is_right = true;
    let manifest = compiler.manifest;
    let mut buffers = Vec::new();
    for (index, decl) in (0..).zip(&manifest.scratch) {
        let is_used = used.contains(&index);
        if !is_used && is_named(manifest, &decl.name.value) {
            continue;
        }
        let typed =
            decl.bytes.as_ref().and_then(|text| compiler.expression(text, "bytes", Expected::Int, place));
        is_right &= typed.is_some();
        if is_used {
            let bytes = typed.map_or_else(|| constant(0), |typed| typed.expr);
            buffers.push(Scratch { name: decl.name.value.clone(), bytes });
        }
    }
    (buffers, is_right)
}

/// Whether some step, done or not, fills or passes what has this name.
fn is_named(manifest: &Manifest, name: &str) -> bool {
    let is_it = |text: &Option<Text>| text.as_ref().is_some_and(|text| text.value.trim() == name);
    manifest.launches.iter().any(|decl| match &decl.work {
        WorkDecl::Fill(fill) => is_it(&fill.memory),
        WorkDecl::Launch(launch) => launch.args.iter().flatten().any(|arg| is_it(&arg.value)),
    })
}

/// The scratch buffers that the row's steps use, in order, as they are declared.
fn used(found: &RowSteps) -> Vec<u32> {
    let of_fill = |step: &Step| match step.work {
        Work::Fill(Fill { memory: Memory::Scratch(index), .. }) => Some(index),
        _ => None,
    };
    let passed = found.units.iter().flat_map(|unit| &unit.args).filter_map(|arg| match arg.value {
        ArgDraftValue::Scratch(index) => Some(index),
        _ => None,
    });
    let mut used: Vec<u32> = found.steps.iter().filter_map(of_fill).chain(passed).collect();
    used.sort_unstable();
    used.dedup();
    used
}

/// Numbers buffers by their place among those that are used.
fn renumber(found: &mut RowSteps, used: &[u32]) {
    let place = |index: u32| {
        let place = used.binary_search(&index).unwrap_or(used.len());
        u32::try_from(place).unwrap_or(u32::MAX)
    };
    for step in &mut found.steps {
        if let Work::Fill(Fill { memory: Memory::Scratch(index), .. }) = &mut step.work {
            *index = place(*index);
        }
    }
    for arg in found.units.iter_mut().flat_map(|unit| &mut unit.args) {
        if let ArgDraftValue::Scratch(index) = &mut arg.value {
            *index = place(*index);
        }
    }
}

/// What a memset fills; nothing where that is wrong, which was told. A scratch buffer is numbered as it is declared.
fn memory(compiler: &mut Compiler<'_>, fill: &FillDecl, index: usize) -> Option<Memory> {
    let manifest = compiler.manifest;
    let text = fill.memory.as_ref()?;
    let name = text.value.trim();
    compiler.use_name(name);
    if compiler.is_unclear(name) {
        return None;
    }
    let number = |position: usize| u32::try_from(position).unwrap_or(u32::MAX);
    if let Some(position) = scratch_buffer(manifest, text) {
        return Some(Memory::Scratch(position));
    }
    if let Some(position) = manifest.outputs.iter().position(|output| output.name.value == name) {
        let output = manifest.outputs.get(position);
        if output.is_some_and(|output| tensor_kinds::kind_of(manifest, output) == TensorKind::DataDependent) {
            let diagnostic = Diagnostic::error(format!("`{name}` cannot be filled"))
                .code(rules::NOT_FILLABLE)
                .at(compiler.span_of(text), "its shape depends on data: how large it is is not known here")
                .help("let a kernel write it");
            compiler.report(diagnostic, Some(index));
            return None;
        }
        return Some(Memory::Output(number(position)));
    }
    let shared = |output: &&OutputDecl| output.alias.as_ref().is_some_and(|alias| alias.value == name);
    let input = manifest.inputs.iter().find(|input| input.name.value == name);
    let diagnostic = match (input, manifest.outputs.iter().find(shared)) {
        (Some(_), Some(output)) => {
            let output = &output.name;
            Diagnostic::error(format!(
                "`{name}` shares the memory of `{}` and must not be filled",
                output.value
            ))
            .code(rules::NOT_FILLABLE)
            .at(compiler.span_of(text), format!("what `{name}` holds would be lost"))
            .related(compiler.span(output.range.clone()), "this output shares it")
            .help("let a kernel write the elements that change")
        }
        (Some(input), None) => Diagnostic::error(format!("`{name}` is an input, and inputs are not written"))
            .code(rules::NOT_FILLABLE)
            .at(compiler.span_of(text), "filled here")
            .related(compiler.span(input.name.range.clone()), "declared here")
            .help("fill an output or a scratch buffer"),
        (None, _) => unknown_memory(compiler, text, text.locate(0..text.value.len())),
    };
    compiler.report(diagnostic, Some(index));
    None
}

fn unknown_memory(compiler: &Compiler<'_>, text: &Text, range: Range<usize>) -> Diagnostic {
    let manifest = compiler.manifest;
    let name = text.value.trim();
    let outputs = manifest.outputs.iter().map(|output| &output.name.value);
    let known: Vec<&str> = outputs
        .chain(manifest.scratch.iter().map(|scratch| &scratch.name.value))
        .map(String::as_str)
        .collect();
    let diagnostic = Diagnostic::error(format!("no output and no scratch buffer is called `{name}`"))
        .code(rules::UNKNOWN_NAME)
        .at(compiler.span(range), "not declared");
    match suggest(name, known.iter().copied()) {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(format!(
            "declare it, `[scratch.NAME]` with `bytes`, or fill one of {}",
            crate::manifest::form::list(&known)
        )),
    }
}

/// The index of the scratch buffer that the text names, as they are declared.
pub(super) fn scratch_buffer(manifest: &Manifest, text: &Text) -> Option<u32> {
    let position = manifest.scratch.iter().position(|decl| decl.name.value == text.value.trim())?;
    u32::try_from(position).ok()
}

/// Steps that are done in no row, told once: what is compiled for none is never looked at.
/// `rows` are those that are not left out, with their places among all.
pub(super) fn never_done(
    compiler: &mut Compiler<'_>,
    rows: &[(usize, &Row)],
    done: &[RowSteps],
) -> Vec<usize> {
    let manifest = compiler.manifest;
    let mut never = Vec::new();
    for (number, decl) in manifest.launches.iter().enumerate() {
        let Some(text) = &decl.when else { continue };
        if rows.is_empty() || done.iter().any(|row| row.decls.contains(&number)) {
            continue;
        }
        // Where a condition or what is filled is wrong, that was told.
        let is_false = rows.iter().all(|(index, row)| {
            let place = compiler.in_row(row, *index);
            matches!(condition(compiler, decl, &place), When::Never)
        });
        if !is_false {
            continue;
        }
        let diagnostic = Diagnostic::error("this step is never done")
            .code(rules::STEP_CONDITION)
            .at(compiler.span_of(text), "always false")
            .help("correct the condition, or take the step out");
        compiler.report(diagnostic, None);
        never.push(number);
    }
    never
}
