//! Checks that outputs are written, and outputs and scratch memory before they are read. Pointers to `const` read,
//! others may write; before the compile, any argument may write.

use cubinder_expr::{BinaryOp, Expr, Node, NodeId, Value};
use cubinder_launch::proof::{Domain, Verdict};
use cubinder_model::{Fill, Memory, Plugin, Work};

use super::UnitCode;
use super::claim::StepId;
use super::draft_view::DraftView;
use super::errors::{
    MayBeReadBeforeWrite, OutputMayStayUnwritten, OutputNotPassed, OutputOnlyRead, ReadBeforeWrite,
    ReadBesideWrite, UnwrittenScratch,
};
use super::formula::{divides, is_positive, joined};
use super::remedy::ROUND_UP;
use super::witness::{describe, value};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::manifest::{FillDecl, Route, Text, WorkDecl};
use crate::resolve::ArgDraftValue;
use crate::rules;

struct Access {
    memory: Memory,
    step: StepId,
    writes: bool,
    span: Span,
}

struct Finding {
    memory: Memory,
    problem: Problem,
    diagnostic: Diagnostic,
}

#[derive(Clone, Copy, PartialEq)]
enum Problem {
    Unwritten,
    MayStayUnwritten,
    ReadFirst,
    MayBeReadFirst,
}

impl Finding {
    fn new(memory: Memory, problem: Problem, diagnostic: impl Into<Diagnostic>) -> Finding {
        Finding { memory, problem, diagnostic: diagnostic.into() }
    }
}

/// Reports outputs that no step writes, always or (unless `inexpressible`) for some inputs.
pub(super) fn outputs(view: &DraftView<'_>, inexpressible: &[usize]) -> Vec<Diagnostic> {
    if !is_known(view) {
        return Vec::new();
    }
    let found = merged(view, |row| {
        let accesses = accesses(view, row, None);
        let outputs = 0..view.plugin.outputs.len();
        outputs.filter_map(|output| unwritten(view, row, &accesses, output)).collect()
    });
    let reported =
        found.into_iter().filter(|it| inexpressible.is_empty() || it.problem != Problem::MayStayUnwritten);
    reported.map(|finding| finding.diagnostic).collect()
}

/// Reports, for compiled kernels, outputs that are only read, and memory that is read first. Supersedes [`outputs`].
pub(super) fn compiled(view: &DraftView<'_>, compiled: &[UnitCode<'_>]) -> Vec<Diagnostic> {
    let rows = 0..view.plugin.variants.len();
    let of_rows: Vec<Vec<Access>> = rows.map(|row| accesses(view, row, Some(compiled))).collect();
    let is_read = |output: &usize| {
        let memory = output_memory(*output);
        of_rows.iter().flatten().any(|access| access.memory == memory && !access.writes)
    };
    let read: Vec<usize> = (0..view.plugin.outputs.len()).filter(is_read).collect();
    let found = merged(view, |row| {
        let Some(accesses) = of_rows.get(row) else { return Vec::new() };
        let outputs = read.iter().copied();
        let outputs = outputs.filter_map(|output| {
            let found = unwritten(view, row, accesses, output);
            found.or_else(|| read_first(view, row, accesses, output_memory(output)))
        });
        let scratch = 0..view.variant(row).map_or(0, |variant| variant.scratch.len());
        outputs.chain(scratch.filter_map(|index| unwritten_scratch(view, row, accesses, index))).collect()
    });
    found.into_iter().map(|finding| finding.diagnostic).collect()
}

/// An invalid argument could be any output.
fn is_known(view: &DraftView<'_>) -> bool {
    let manifest = &view.resolved.manifest;
    let is_memory = |text: &Text| {
        let name = text.value.trim();
        manifest.outputs.iter().any(|output| output.name.value == name)
            || manifest.scratch.iter().any(|scratch| scratch.name.value == name)
    };
    let is_right = manifest.launches.iter().all(|decl| match &decl.work {
        WorkDecl::Fill(fill) => fill.memory.as_ref().is_some_and(is_memory),
        WorkDecl::Launch(launch) => launch.args.is_some(),
    });
    is_right && view.units().iter().all(|unit| unit.args_are_known)
}

fn output_memory(index: usize) -> Memory {
    Memory::Output(u32::try_from(index).unwrap_or(u32::MAX))
}

fn output_of(plugin: &Plugin, tensor: usize) -> Option<usize> {
    plugin.storage_of(tensor).checked_sub(plugin.inputs.len())
}

fn accesses(view: &DraftView<'_>, row: usize, compiled: Option<&[UnitCode<'_>]>) -> Vec<Access> {
    let mut all = Vec::new();
    let inputs = view.plugin.inputs.len();
    let steps = view.variant(row).map_or(&[][..], |variant| &variant.steps);
    for (number, work) in steps.iter().map(|step| &step.work).enumerate() {
        let step = StepId { row, step: number };
        if let Work::Fill(Fill { memory, .. }) = work {
            if let Some(WorkDecl::Fill(FillDecl { memory: Some(text), .. })) =
                view.step_decl(step).map(|it| &it.work)
            {
                all.push(Access { memory: *memory, step, writes: true, span: view.span(text) });
            }
            continue;
        }
        let Some((unit_number, unit)) = view.resolved.draft.unit_of(row, number) else { continue };
        let compiled = compiled.and_then(|compiled| compiled.get(unit_number));
        let read_only = compiled.map_or(&[][..], |it| it.read_only);
        for arg in &unit.args {
            let memories: Vec<Memory> = match (&arg.broken, &arg.value) {
                (Some(meant), _) => {
                    let outputs = (inputs..).take(view.plugin.outputs.len());
                    let meant = outputs.filter(|it| u32::try_from(*it).is_ok_and(|it| meant.contains(&it)));
                    meant.map(|tensor| output_memory(tensor - inputs)).collect()
                }
                (None, ArgDraftValue::Tensor(tensor)) => {
                    output_of(view.plugin, *tensor as usize).map(output_memory).into_iter().collect()
                }
                (None, ArgDraftValue::Scratch(index)) => vec![Memory::Scratch(*index)],
                (None, ArgDraftValue::Expr { .. }) => Vec::new(),
            };
            let writes = !read_only.contains(&arg.name);
            let access = |memory| Access { memory, step, writes, span: arg.value_span.clone() };
            all.extend(memories.into_iter().map(access));
        }
    }
    all
}

fn unwritten(view: &DraftView<'_>, row: usize, accesses: &[Access], index: usize) -> Option<Finding> {
    let output = view.plugin.outputs.get(index)?;
    let (name, memory) = (output.name.clone(), output_memory(index));
    let uses: Vec<&Access> = accesses.iter().filter(|it| it.memory == memory).collect();
    let writers: Vec<StepId> = uses.iter().filter(|it| it.writes).map(|it| it.step).collect();
    if writers.is_empty() {
        let diagnostic: Diagnostic = match uses.first() {
            Some(first) => OutputOnlyRead { output: name, span: first.span.clone() }.into(),
            None => {
                let units = view.resolved.draft.units_of(row);
                let kernel = if units.len() == 1 { "the kernel" } else { "a kernel" };
                OutputNotPassed { output: name, kernel, span: units.first()?.args_span.clone() }.into()
            }
        };
        return Some(Finding::new(memory, Problem::Unwritten, diagnostic));
    }
    // An aliased output keeps its input's contents.
    if output.alias.is_some() {
        return None;
    }
    let is_there = has_elements(view.plugin, index);
    let UndoneSteps { case, blamed } = unmet(view, row, &is_there.iter().collect::<Vec<_>>(), &writers)?;
    let first = blamed.first()?;
    let (known, refuted) = match first.is_condition {
        true => ("be true", "this is false"),
        false => ("be above 0", "this is 0"),
    };
    let label = match case.as_deref() {
        None => format!("not proved to {known} whenever `{name}` has elements"),
        Some("") => refuted.to_owned(),
        Some(case) => format!("for {case}, {refuted}"),
    };
    let (note, help) = match (output.depends_on_data(), view.route) {
        // Kernels determine the output's size.
        (true, _) => (
            "if the written size is not 0, the output contains uninitialized memory",
            "add a step that writes it otherwise, or make `upper` 0 where it is empty",
        ),
        (false, Route::Plugin) => (
            "such launches are rejected: the output would contain uninitialized memory",
            "fill it first with an unconditional `memset`, or add a step that writes it otherwise",
        ),
        // The native route has only one kernel.
        (false, Route::Native) => (
            "TensorRT uses the uninitialized memory without a check; building the engine warns about anything not proved for the profile",
            "make the kernel run and write it unconditionally",
        ),
    };
    let help = match blamed.iter().any(|need| rounds_down(view, row, need)) {
        true => format!("{ROUND_UP}; if it can still be 0, {help}"),
        false => help.to_owned(),
    };
    let found = Diagnostic::from(OutputMayStayUnwritten {
        output: name,
        label,
        note,
        help,
        span: view.span(first.text),
    });
    let diagnostic = blamed.iter().skip(1).fold(found, |diagnostic, need| {
        let label = match (&case, need.is_condition) {
            (None, _) => "this is not proved either",
            (Some(_), true) => "and this is false",
            (Some(_), false) => "and this is 0",
        };
        diagnostic.related(view.span(need.text), label)
    });
    Some(Finding::new(memory, Problem::MayStayUnwritten, diagnostic))
}

fn rounds_down(view: &DraftView<'_>, row: usize, need: &Need<'_>) -> bool {
    let Some(given) = view.nothing_empty(need.step).filter(|_| !need.is_condition && divides(&need.enough))
    else {
        return false;
    };
    let domain = view.guard(row).into_iter().chain([given]).fold(view.domain(), Domain::assuming);
    domain.always(&need.enough) != Verdict::Proved
}

fn unwritten_scratch(view: &DraftView<'_>, row: usize, accesses: &[Access], index: usize) -> Option<Finding> {
    let memory = Memory::Scratch(u32::try_from(index).ok()?);
    let uses = || accesses.iter().filter(|access| access.memory == memory);
    if uses().any(|access| access.writes) {
        return read_first(view, row, accesses, memory);
    }
    let buffer = view.variant(row)?.scratch.get(index)?.name.clone();
    let unwritten = UnwrittenScratch { buffer, span: uses().next()?.span.clone() };
    Some(Finding::new(memory, Problem::Unwritten, unwritten))
}

/// Reports reads before an unconditional write. Accesses through one pointer are ordered; a separate pointer to `const`
/// reads earlier contents.
fn read_first(view: &DraftView<'_>, row: usize, accesses: &[Access], memory: Memory) -> Option<Finding> {
    let (name, rule, is_there) = read_memory(view, row, memory)?;
    let report = |problem, diagnostic: Diagnostic| Some(Finding::new(memory, problem, diagnostic.code(rule)));
    let uses: Vec<&Access> = accesses.iter().filter(|access| access.memory == memory).collect();
    for reader in uses.iter().filter(|access| !access.writes) {
        let before = uses.iter().filter(|it| it.writes && it.step.step < reader.step.step);
        let before: Vec<StepId> = before.map(|it| it.step).collect();
        let read = reader.span.clone();
        if before.is_empty() {
            // Kernels with a grid barrier may be correct.
            if let Some(beside) = uses.iter().find(|it| it.writes && it.step == reader.step) {
                let found = ReadBesideWrite { memory: name, read, written: beside.span.clone() };
                return report(Problem::MayBeReadFirst, found.into());
            }
            let written = uses.iter().find(|access| access.writes)?.span.clone();
            return report(Problem::ReadFirst, ReadBeforeWrite { memory: name, read, written }.into());
        }
        let assumed = view.when(reader.step).into_iter().chain(view.filled(reader.step).iter().flatten());
        let assumed: Vec<&Expr> = assumed.chain(&is_there).collect();
        let Some(UndoneSteps { case, blamed }) = unmet(view, row, &assumed, &before) else { continue };
        let case = case.filter(|case| !case.is_empty()).map(|case| format!(", also for {case}"));
        let found = MayBeReadBeforeWrite { memory: name, read, case: case.unwrap_or_default() };
        let diagnostic = blamed.iter().fold(Diagnostic::from(found), |diagnostic, need| {
            let label = match need.is_condition {
                true => "written only if this is true",
                false => "written only if this is above 0",
            };
            diagnostic.related(view.span(need.text), label)
        });
        return report(Problem::MayBeReadFirst, diagnostic);
    }
    None
}

/// Returns name, violated rule, and condition for elements; `None` for outputs in place.
fn read_memory(view: &DraftView<'_>, row: usize, memory: Memory) -> Option<(String, Code, Option<Expr>)> {
    match memory {
        Memory::Scratch(index) => {
            let scratch = view.variant(row)?.scratch.get(index as usize)?;
            Some((format!("the scratch buffer `{}`", scratch.name), rules::UNWRITTEN_SCRATCH, None))
        }
        Memory::Output(index) => {
            let output = view.plugin.outputs.get(index as usize)?;
            let is_there = has_elements(view.plugin, index as usize);
            let own = output.alias.is_none();
            own.then(|| (format!("the output `{}`", output.name), rules::UNWRITTEN_OUTPUT, is_there))
        }
    }
}

/// Returns `None` if always.
fn has_elements(plugin: &Plugin, output: usize) -> Option<Expr> {
    let found = plugin.outputs.get(output)?;
    if !found.depends_on_data() {
        let numel = u32::try_from(plugin.inputs.len() + output).ok()?;
        return Some(is_positive(&Expr { nodes: vec![Node::Numel(numel)] }));
    }
    let Some(Node::Array(items)) = found.shape.nodes.last() else { return None };
    let dimension = |item: &NodeId| {
        let dimension = found.shape.part(*item)?;
        let [Node::Size(tensor)] = dimension.nodes.as_slice() else { return Some(dimension) };
        let size = (*tensor as usize).checked_sub(plugin.inputs.len())?;
        Some(plugin.outputs.get(size)?.size.as_ref()?.upper.clone())
    };
    let parts = items.iter().filter_map(dimension).filter(|it| it.constant().is_none());
    let parts: Vec<Expr> = parts.map(|it| is_positive(&it)).collect();
    joined(BinaryOp::And, &parts)
}

struct Need<'r> {
    step: StepId,
    text: &'r Text,
    holds: Expr,
    /// Stronger, with a shorter proof.
    enough: Expr,
    is_condition: bool,
}

fn needs<'r>(view: &DraftView<'r>, step: StepId) -> Vec<Need<'r>> {
    let Some(decl) = view.step_decl(step) else { return Vec::new() };
    let condition = view.when(step).zip(decl.when.as_ref());
    let condition = condition.map(|(when, text)| Need {
        step,
        text,
        holds: when.clone(),
        enough: when.clone(),
        is_condition: true,
    });
    let texts = decl.launch().map_or(&[][..], |launch| &launch.grid);
    let axes = view.filled(step).iter().enumerate().filter_map(|(axis, filled)| {
        // If no memory is empty, the runtime rejects an empty grid.
        let enough = filled.clone()?;
        let holds = joined(BinaryOp::Or, [view.nothing_empty(step)?, &enough])?;
        Some(Need { step, text: texts.get(axis).or(texts.first())?, holds, enough, is_condition: false })
    });
    condition.into_iter().chain(axes).collect()
}

struct UndoneSteps<'r> {
    case: Option<String>,
    /// Per step, the false or unproved condition.
    blamed: Vec<Need<'r>>,
}

/// `None` if a step provably has an effect, given the guard and `assumed`.
fn unmet<'r>(
    view: &DraftView<'r>,
    row: usize,
    assumed: &[&Expr],
    steps: &[StepId],
) -> Option<UndoneSteps<'r>> {
    let needs: Vec<Vec<Need<'r>>> = steps.iter().map(|step| needs(view, *step)).collect();
    let any_of = |part: for<'n> fn(&'n Need<'r>) -> &'n Expr| {
        let whens = needs.iter().map(|needs| joined(BinaryOp::And, needs.iter().map(part)));
        joined(BinaryOp::Or, &whens.collect::<Option<Vec<Expr>>>()?)
    };
    let any = any_of(|need| &need.holds)?;
    let conditions: Vec<&Expr> = view.guard(row).into_iter().chain(assumed.iter().copied()).collect();
    let domain = conditions.iter().fold(view.domain(), |domain, condition| domain.assuming(condition));
    if any_of(|need| &need.enough).is_some_and(|enough| domain.proves(&enough)) {
        return None;
    }
    let verdict = domain.always(&any);
    let case = match &verdict {
        Verdict::Proved => return None,
        Verdict::Refuted(case) => Some(describe(view.plugin, case, &[&any])),
        Verdict::Open => None,
    };
    let is_blamed = |need: &Need<'_>| match &verdict {
        Verdict::Refuted(case) => value(&need.holds, case) != Ok(Value::Bool(true)),
        Verdict::Open => domain.always(&need.holds) != Verdict::Proved,
        Verdict::Proved => false,
    };
    let blamed = needs.into_iter().filter_map(|mut needs| {
        let at = needs.iter().position(is_blamed).unwrap_or(0);
        (at < needs.len()).then(|| needs.swap_remove(at))
    });
    Some(UndoneSteps { case, blamed: blamed.collect() })
}

fn merged(view: &DraftView<'_>, of_row: impl Fn(usize) -> Vec<Finding>) -> Vec<Finding> {
    let key = |row: usize, finding: &Finding| {
        // Rows number only scratch buffers that they use.
        let name = match finding.memory {
            Memory::Scratch(index) => view.variant(row)?.scratch.get(index as usize)?.name.clone(),
            Memory::Output(index) => view.plugin.outputs.get(index as usize)?.name.clone(),
        };
        Some((name, finding.problem, finding.diagnostic.primary.as_ref()?.span.clone()))
    };
    let mut all: Vec<(_, Finding, Vec<usize>)> = Vec::new();
    for row in 0..view.plugin.variants.len() {
        for finding in of_row(row) {
            let key = key(row, &finding);
            match all.iter_mut().find(|(known, ..)| *known == key) {
                Some((_, _, rows)) => rows.push(row),
                None => all.push((key, finding, vec![row])),
            }
        }
    }
    let note = |(_, found, rows): (_, Finding, Vec<usize>)| {
        let mut diagnostic = view.note_rows(found.diagnostic, &rows);
        if let Memory::Output(index) = found.memory {
            let decl = view.resolved.manifest.outputs.get(index as usize);
            diagnostic.subject = decl.map(|decl| Span::new(&view.resolved.source, decl.name.range.clone()));
        }
        Finding { diagnostic, ..found }
    };
    all.into_iter().map(note).collect()
}
