//! One row's steps that can run, with scratch memory and compile units.

use std::collections::BTreeSet;

use cubinder_expr::DataType;
use cubinder_expr::TensorKind;
use cubinder_model::{Fill, Memory, Scratch, Step, Work};

use super::conditions::{Condition, condition};
use super::errors::{
    InputNotFillable, NothingLaunched, OutputNotFillable, SharedInputNotFillable, StepNeverDone,
    UnknownMemory,
};
use super::expression::{Compiler, Expected, RowScope, constant};
use super::launch;
use super::rows::Row;
use super::{ArgDraft, ArgDraftValue, Unit, tensor_kinds};
use crate::diagnostic::{Diagnostic, suggest};
use crate::manifest::toml_reader::list;
use crate::manifest::{FillDecl, InputDecl, Manifest, OutputDecl, Text, WorkDecl};

#[derive(Default)]
pub(super) struct RowSteps {
    pub(super) scratch: Vec<Scratch>,
    pub(super) steps: Vec<Step>,
    pub(super) decls: Vec<usize>,
    pub(super) units: Vec<Unit>,
    /// Whether valid; placeholders for invalid parts satisfy every rule.
    pub(super) is_right: bool,
}

pub(super) fn resolve(compiler: &mut Compiler<'_>, row: &Row, plugin_types: &[DataType]) -> RowSteps {
    let manifest = compiler.declared.manifest;
    let scope = compiler.row_scope(row);
    let mut found = RowSteps { is_right: !manifest.launches.is_empty(), ..RowSteps::default() };
    for (number, decl) in manifest.launches.iter().enumerate() {
        let when = match condition(compiler, decl, &scope) {
            Condition::Done(when) => when,
            Condition::Never => continue,
            Condition::Wrong => {
                found.is_right = false;
                None
            }
        };
        let work = match &decl.work {
            WorkDecl::Fill(fill) => {
                memory(compiler, fill, row.index).map(|memory| Work::Fill(Fill { memory, byte: fill.byte }))
            }
            WorkDecl::Launch(decl) => {
                let step = found.steps.len();
                let one = launch::resolve(compiler, decl, row, plugin_types, &scope);
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
    found.is_right &= launches_something(compiler, &found, row.index);
    let used: BTreeSet<u32> = scratch_indices(&mut found).map(|index| *index).collect();
    let (scratch, is_right) = scratch(compiler, &scope, &used);
    found.is_right &= is_right;
    found.scratch = scratch;
    // Unused buffers are not numbered.
    for index in scratch_indices(&mut found) {
        *index = u32::try_from(used.range(..*index).count()).unwrap_or(u32::MAX);
    }
    share_outputs(&mut found, manifest);
    found
}

fn share_outputs(found: &mut RowSteps, manifest: &Manifest) {
    let inputs = u32::try_from(manifest.inputs.len()).unwrap_or(u32::MAX);
    let is_shared = |(tensor, output): &(u32, &OutputDecl)| {
        let is_alias =
            |input: &InputDecl| output.alias.as_ref().is_some_and(|it| it.value == input.name.value);
        let input = (0..).zip(&manifest.inputs).find(|(_, input)| is_alias(input)).map(|(index, _)| index);
        // An invalid argument may mean any.
        let passes = |arg: &ArgDraft, tensor: u32| match (&arg.broken, &arg.value) {
            (Some(meant), _) => meant.contains(&tensor),
            (None, value) => *value == ArgDraftValue::Tensor(tensor),
        };
        let is_user = |arg: &&ArgDraft| passes(arg, *tensor) || input.is_some_and(|input| passes(arg, input));
        let fills = |step: &&Step| match step.work {
            Work::Fill(Fill { memory: Memory::Output(output), .. }) => {
                inputs.saturating_add(output) == *tensor
            }
            _ => false,
        };
        let users = found.units.iter().flat_map(|unit| &unit.args).filter(is_user).count();
        users + found.steps.iter().filter(fills).count() > 1
    };
    let shared = (inputs..).zip(&manifest.outputs).filter(is_shared);
    let shared: Vec<u32> = shared.map(|(tensor, _)| tensor).collect();
    found.units.iter_mut().for_each(|unit| unit.shared_outputs.clone_from(&shared));
}

fn launches_something(compiler: &mut Compiler<'_>, found: &RowSteps, index: usize) -> bool {
    let launches = &compiler.declared.manifest.launches;
    if !found.units.is_empty() || !launches.iter().any(|decl| decl.launch().is_some()) {
        return !found.units.is_empty();
    }
    let conditions = launches.iter().filter_map(|decl| decl.when.as_ref()).map(|text| &text.range);
    let mut others = compiler.declared.spans(conditions);
    if !others.is_empty() {
        let span = others.remove(0);
        compiler.report(NothingLaunched { span, others }, Some(index));
    }
    false
}

/// Returns used scratch buffers, and whether they are valid. Names in a size may be unknown to rows without it.
/// Unused buffers are compiled for errors.
fn scratch(compiler: &mut Compiler<'_>, scope: &RowScope, used: &BTreeSet<u32>) -> (Vec<Scratch>, bool) {
    let mut is_right = true;
    let manifest = compiler.declared.manifest;
    let mut buffers = Vec::new();
    for (index, decl) in (0..).zip(&manifest.scratch) {
        let is_used = used.contains(&index);
        if !is_used && is_named(manifest, &decl.name.value) {
            continue;
        }
        let typed =
            decl.bytes.as_ref().and_then(|text| compiler.expression(text, "bytes", Expected::Int, scope));
        is_right &= typed.is_some();
        if is_used {
            let bytes = typed.map_or_else(|| constant(0), |typed| typed.expr);
            buffers.push(Scratch { name: decl.name.value.clone(), bytes });
        }
    }
    (buffers, is_right)
}

fn is_named(manifest: &Manifest, name: &str) -> bool {
    let is_it = |text: &Option<Text>| text.as_ref().is_some_and(|text| text.value.trim() == name);
    manifest.launches.iter().any(|decl| match &decl.work {
        WorkDecl::Fill(fill) => is_it(&fill.memory),
        WorkDecl::Launch(launch) => launch.args.iter().flatten().any(|arg| is_it(&arg.value)),
    })
}

fn scratch_indices(found: &mut RowSteps) -> impl Iterator<Item = &mut u32> {
    let of_fills = found.steps.iter_mut().filter_map(|step| match &mut step.work {
        Work::Fill(Fill { memory: Memory::Scratch(index), .. }) => Some(index),
        _ => None,
    });
    let args = found.units.iter_mut().flat_map(|unit| &mut unit.args);
    of_fills.chain(args.filter_map(|arg| match &mut arg.value {
        ArgDraftValue::Scratch(index) => Some(index),
        _ => None,
    }))
}

fn memory(compiler: &mut Compiler<'_>, fill: &FillDecl, index: usize) -> Option<Memory> {
    let declared = compiler.declared;
    let text = fill.memory.as_ref()?;
    let (name, span) = (text.value.trim(), declared.span(&text.range));
    compiler.use_name(name);
    if compiler.is_unclear(name) {
        return None;
    }
    if let Some(position) = declared.scratch_buffer(name) {
        return Some(Memory::Scratch(position));
    }
    let outputs = &declared.manifest.outputs;
    if let Some((position, output)) = (0..).zip(outputs).find(|(_, output)| output.name.value == name) {
        if tensor_kinds::kind_of(declared, output) != TensorKind::DataDependent {
            return Some(Memory::Output(position));
        }
        compiler.report(OutputNotFillable { name, span }, Some(index));
        return None;
    }
    let shared = outputs.iter().find(|it| it.alias.as_ref().is_some_and(|alias| alias.value == name));
    let error: Diagnostic = match (declared.input(name), shared.map(|output| &output.name)) {
        (Some(_), Some(output)) => {
            let (output, output_span) = (output.value.as_str(), declared.span(&output.range));
            SharedInputNotFillable { name, span, output, output_span }.into()
        }
        (Some(input), None) => {
            InputNotFillable { name, span, input: declared.span(&input.name.range) }.into()
        }
        (None, _) => {
            let outputs = outputs.iter().map(|output| output.name.value.as_str());
            let buffers = declared.manifest.scratch.iter().map(|scratch| scratch.name.value.as_str());
            let known: Vec<&str> = outputs.chain(buffers).collect();
            let near = suggest(name, known.iter().copied());
            let span = declared.span(&text.locate(0..text.value.len()));
            UnknownMemory { name, span, known: list(&known), near }.into()
        }
    };
    compiler.report(error, Some(index));
    None
}

pub(super) fn report_never_done(compiler: &mut Compiler<'_>, rows: &[&Row], done: &[RowSteps]) {
    for (number, decl) in compiler.declared.manifest.launches.iter().enumerate() {
        let Some(text) = &decl.when else { continue };
        if rows.is_empty() || done.iter().any(|row| row.decls.contains(&number)) {
            continue;
        }
        // Other conditions were reported when evaluated.
        let is_false = rows.iter().all(|row| {
            let scope = compiler.row_scope(row);
            matches!(condition(compiler, decl, &scope), Condition::Never)
        });
        if is_false {
            compiler.report(StepNeverDone { span: compiler.span(&text.range) }, None);
        }
    }
}
