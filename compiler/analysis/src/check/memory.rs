//! What the steps write and read: every output is written, and outputs and scratch memory are written before they are read.
//!
//! Owns the accesses of each step, as far as they are known: a pointer to `const` reads, any other may write. Before the kernels' parameters
//! are known each argument may.

use cubinder_expr::Value;
use cubinder_expr::{BinaryOp, Expr, Node, NodeId};
use cubinder_launch::proof::{Domain, Verdict};
use cubinder_model::{Fill, Memory, Plugin, Work};

use super::Compiled;
use super::formula::{is_positive, joined};
use super::remedy;
use super::site::{At, Site};
use super::witness::{describe, value};
use crate::diagnostic::{Code, Diagnostic, Severity, Span};
use crate::manifest::{Route, Text, WorkDecl};
use crate::resolve::ArgDraftValue;
use crate::rules;

/// Memory that a step uses.
struct Access {
    memory: Memory,
    at: At,
    /// Whether the step may write it; otherwise it reads it.
    writes: bool,
    /// The place of the argument, or of what is filled.
    span: Span,
}

/// Outputs that nothing writes, or nothing for some cases; before the kernels are known. `inexpressible` are those whose shape is wrong:
/// then nothing is said of cases.
pub(super) fn outputs(site: &Site<'_>, inexpressible: &[usize]) -> Vec<Diagnostic> {
    if !is_known(site) {
        return Vec::new();
    }
    let is_told = |found: &Diagnostic| inexpressible.is_empty() || found.severity == Severity::Error;
    merged(site, |row| {
        let accesses = accesses(site, row, None);
        (0..site.plugin.outputs.len())
            .filter_map(|output| unwritten(site, row, &accesses, output))
            .filter(is_told)
            .collect()
    })
}

/// The same of outputs that a kernel only reads, for all rows, and memory that is read before anything wrote it.
pub(super) fn compiled(site: &Site<'_>, compiled: &[Compiled<'_>]) -> Vec<Diagnostic> {
    let rows = 0..site.plugin.variants.len();
    let of_rows: Vec<Vec<Access>> = rows.map(|row| accesses(site, row, Some(compiled))).collect();
    let is_read = |output: &usize| {
        let memory = output_memory(*output);
        of_rows.iter().flatten().any(|access| access.memory == memory && !access.writes)
    };
    let read: Vec<usize> = (0..site.plugin.outputs.len()).filter(is_read).collect();
    merged(site, |row| {
        let Some(accesses) = of_rows.get(row) else { return Vec::new() };
        let outputs = read.iter().copied();
        let outputs = outputs.filter_map(|output| {
            let found = unwritten(site, row, accesses, output);
            found.or_else(|| read_first(site, row, accesses, output_memory(output)))
        });
        let scratch = 0..site.variant(row).map_or(0, |variant| variant.scratch.len());
        outputs.chain(scratch.filter_map(|index| unwritten_scratch(site, row, accesses, index))).collect()
    })
}

/// Takes out of what [`outputs`] told what [`compiled`] tells of the same outputs, and better.
pub(super) fn supersede(earlier: &mut Vec<Diagnostic>, later: &[Diagnostic]) {
    let about = |found: &Diagnostic| {
        let output = found.message.split('`').nth(1)?.to_owned();
        let source = &found.primary.as_ref()?.span.source;
        (found.code == Some(rules::UNWRITTEN_OUTPUT)).then(|| (output, source.path.clone()))
    };
    let told: Vec<_> = later.iter().filter_map(about).collect();
    earlier.retain(|found| about(found).is_none_or(|output| !told.contains(&output)));
}

/// Whether all that writes is known: what is wrong otherwise may be meant for any output.
fn is_known(site: &Site<'_>) -> bool {
    let manifest = &site.resolved.manifest;
    let is_memory = |text: &Text| {
        let name = text.value.trim();
        manifest.outputs.iter().any(|output| output.name.value == name)
            || manifest.scratch.iter().any(|scratch| scratch.name.value == name)
    };
    let is_right = manifest.launches.iter().all(|decl| match &decl.work {
        WorkDecl::Fill(fill) => fill.memory.as_ref().is_some_and(is_memory),
        WorkDecl::Launch(launch) => launch.args.is_some(),
    });
    is_right && site.units().iter().all(|unit| unit.args_are_known)
}

fn output_memory(index: usize) -> Memory {
    Memory::Output(u32::try_from(index).unwrap_or(u32::MAX))
}

/// The output that a tensor is, or that shares the memory of the input that it is.
fn output_of(plugin: &Plugin, tensor: usize) -> Option<usize> {
    plugin.storage_of(tensor).checked_sub(plugin.inputs.len())
}

/// What the steps of a row use, in order.
fn accesses(site: &Site<'_>, row: usize, compiled: Option<&[Compiled<'_>]>) -> Vec<Access> {
    let mut all = Vec::new();
    let inputs = site.plugin.inputs.len();
    let outputs = site.plugin.outputs.len();
    let steps = site.variant(row).map_or(&[][..], |variant| &variant.steps);
    for (step, work) in steps.iter().map(|step| &step.work).enumerate() {
        let at = At { row, step };
        match work {
            Work::Fill(Fill { memory, .. }) => {
                let text = site.step_decl(at).and_then(|decl| match &decl.work {
                    WorkDecl::Fill(fill) => fill.memory.as_ref(),
                    WorkDecl::Launch(_) => None,
                });
                all.extend(text.map(|text| Access {
                    memory: *memory,
                    at,
                    writes: true,
                    span: site.span(text),
                }));
            }
            Work::Launch(_) => {
                let Some((number, unit)) = site.resolved.draft.unit_of(row, step) else { continue };
                let compiled = compiled.and_then(|compiled| compiled.get(number));
                let read_only = compiled.map_or(&[][..], |it| it.read_only);
                for arg in &unit.args {
                    let memories: Vec<Memory> = match (&arg.broken, &arg.value) {
                        // What is wrong may be meant as any of these.
                        (Some(meant), _) => (0..outputs)
                            .filter(|output| {
                                u32::try_from(inputs + output).is_ok_and(|it| meant.contains(&it))
                            })
                            .map(output_memory)
                            .collect(),
                        (None, ArgDraftValue::Tensor(tensor)) => {
                            output_of(site.plugin, *tensor as usize).map(output_memory).into_iter().collect()
                        }
                        (None, ArgDraftValue::Scratch(index)) => vec![Memory::Scratch(*index)],
                        (None, ArgDraftValue::Expr { .. }) => Vec::new(),
                    };
                    let writes = !read_only.contains(&arg.name);
                    let span = &arg.value_span;
                    all.extend(memories.into_iter().map(|memory| Access {
                        memory,
                        at,
                        writes,
                        span: span.clone(),
                    }));
                }
            }
        }
    }
    all
}

/// An output that no step of a row writes, or only steps with conditions of which none may hold.
fn unwritten(site: &Site<'_>, row: usize, accesses: &[Access], index: usize) -> Option<Diagnostic> {
    let output = site.plugin.outputs.get(index)?;
    let uses: Vec<&Access> = accesses.iter().filter(|it| it.memory == output_memory(index)).collect();
    let writers: Vec<At> = uses.iter().filter(|it| it.writes).map(|it| it.at).collect();
    if writers.is_empty() {
        return Some(match uses.first() {
            Some(first) => {
                Diagnostic::error(format!("the output `{}` is only read: no step writes it", output.name))
                    .code(rules::UNWRITTEN_OUTPUT)
                    .at(first.span.clone(), "a pointer to `const` gets it")
                    .help("let a kernel write it, or take `const` out of the parameter that does")
            }
            None => not_passed(site, row, &output.name)?,
        });
    }
    // Where nothing writes an output that shares an input's memory it holds what the input held.
    if output.alias.is_some() {
        return None;
    }
    let is_there = has_elements(site.plugin, index);
    let Unmet { case, blamed } = unmet(site, row, &is_there.iter().collect::<Vec<_>>(), &writers)?;
    let first = blamed.first()?;
    let label = match (case.as_deref(), first.is_condition) {
        (None, true) => format!("not known to hold wherever `{}` has elements", output.name),
        (None, false) => format!("not known to be above 0 wherever `{}` has elements", output.name),
        (Some(""), true) => "this does not hold".to_owned(),
        (Some(""), false) => "this is 0".to_owned(),
        (Some(case), true) => format!("for {case} this does not hold"),
        (Some(case), false) => format!("for {case} this is 0"),
    };
    let diagnostic = Diagnostic::warning(format!("the output `{}` may stay unwritten", output.name))
        .code(rules::UNWRITTEN_OUTPUT)
        .at(site.span(first.text), label);
    let diagnostic = blamed.iter().skip(1).fold(diagnostic, |diagnostic, need| {
        let label = match (&case, need.is_condition) {
            (None, _) => "nor is this, as far as is known",
            (Some(_), true) => "nor does this hold",
            (Some(_), false) => "and this is 0",
        };
        diagnostic.related(site.span(need.text), label)
    });
    let (note, help) = match output.depends_on_data() {
        // How much there is of it the kernels say.
        true => (
            "where the size that is written is not 0, it holds whatever the memory held",
            "give every case a step that writes it, or say with `upper` for which cases it is empty",
        ),
        false => unwritten_then(site.route),
    };
    Some(diagnostic.note(note).help(match blamed.iter().any(|need| rounds_down(site, row, need)) {
        true => format!("{}; if it may still be 0, {help}", remedy::ROUND_UP),
        false => help.to_owned(),
    }))
}

/// Whether an axis of a grid may be 0 though nothing is empty, because a division leaves out the rest.
fn rounds_down(site: &Site<'_>, row: usize, need: &Need<'_>) -> bool {
    let Some(given) = site.given(need.at).filter(|_| !need.is_condition && remedy::divides(&need.enough))
    else {
        return false;
    };
    let domain = site.guard(row).into_iter().chain([given]).fold(site.domain(), Domain::assuming);
    domain.always(&need.enough) != Verdict::Proved
}

/// What comes of a run that leaves an output unwritten, and what mends it.
const fn unwritten_then(route: Route) -> (&'static str, &'static str) {
    match route {
        Route::Plugin => (
            "such a run is refused: what is not written holds whatever the memory held",
            "fill it first with a `memset` that has no condition, or give every case a step that writes it",
        ),
        // One kernel is all that it has.
        Route::Native => (
            "TensorRT goes on with whatever the memory held, and nobody checks it: what is not proved for the profile is a warning when the engine is built",
            "have the kernel run, and write it, in every case",
        ),
    }
}

/// No argument passes the output and no memset fills it.
fn not_passed(site: &Site<'_>, row: usize, name: &str) -> Option<Diagnostic> {
    let units = site.resolved.draft.units_of(row);
    let unit = units.first()?;
    let message = match units.len() {
        1 => format!("no argument passes the output `{name}` to the kernel"),
        _ => format!("no argument passes the output `{name}` to a kernel"),
    };
    Some(
        Diagnostic::error(message)
            .code(rules::UNWRITTEN_OUTPUT)
            .at(unit.args_span.clone(), "nothing could write it")
            .help(format!("pass it: `<parameter> = \"{name}\"`")),
    )
}

/// A buffer that no step writes, or that one reads before.
fn unwritten_scratch(site: &Site<'_>, row: usize, accesses: &[Access], index: usize) -> Option<Diagnostic> {
    let name = &site.variant(row)?.scratch.get(index)?.name;
    let memory = Memory::Scratch(u32::try_from(index).ok()?);
    let mut uses = accesses.iter().filter(|access| access.memory == memory).peekable();
    let first = uses.peek().map(|first| first.span.clone())?;
    if uses.any(|access| access.writes) {
        return read_first(site, row, accesses, memory);
    }
    let message = format!("nothing writes the scratch buffer `{name}`");
    Some(
        Diagnostic::error(message)
            .code(rules::UNWRITTEN_SCRATCH)
            .at(first, "it is only read, through a pointer to `const`")
            .help("let a step before write it, or fill it with `memset`"),
    )
}

/// Memory that a step reads and that no step before it writes, or only steps with conditions of which none may hold. What a step reads and
/// writes through one pointer its kernel may keep in order; a pointer to `const` beside that is for what was there before.
fn read_first(site: &Site<'_>, row: usize, accesses: &[Access], memory: Memory) -> Option<Diagnostic> {
    let (what, rule, is_there) = read_memory(site, row, memory)?;
    let uses: Vec<&Access> = accesses.iter().filter(|access| access.memory == memory).collect();
    for reader in uses.iter().filter(|access| !access.writes) {
        let before = uses.iter().filter(|it| it.writes && it.at.step < reader.at.step);
        let before: Vec<At> = before.map(|it| it.at).collect();
        if before.is_empty() {
            if let Some(beside) = uses.iter().find(|it| it.writes && it.at == reader.at) {
                return Some(read_beside(&what, rule, reader, beside));
            }
            let later = uses.iter().find(|access| access.writes)?;
            return Some(
                Diagnostic::error(format!("{what} is read before anything wrote it"))
                    .code(rule)
                    .at(reader.span.clone(), "read here, through a pointer to `const`")
                    .related(later.span.clone(), "written here, by a later step")
                    .help("change the order of the steps, or fill it first with `memset`"),
            );
        }
        let assumed = site.when(reader.at).into_iter().chain(site.filled(reader.at).iter().flatten());
        let assumed: Vec<&Expr> = assumed.chain(&is_there).collect();
        let Some(Unmet { case, blamed }) = unmet(site, row, &assumed, &before) else { continue };
        let label = match case.as_deref() {
            None | Some("") => "read here".to_owned(),
            Some(case) => format!("read here, also for {case}"),
        };
        let diagnostic = Diagnostic::warning(format!("{what} may be read before anything wrote it"))
            .code(rule)
            .at(reader.span.clone(), label);
        let diagnostic = blamed.iter().fold(diagnostic, |diagnostic, need| {
            let label = match need.is_condition {
                true => "it is written only where this holds",
                false => "it is written only where this is above 0",
            };
            diagnostic.related(site.span(need.text), label)
        });
        return Some(
            diagnostic.help("give the step that reads it the same condition, or fill it first with `memset`"),
        );
    }
    None
}

/// Memory that the step which is the first to write it gets through a pointer to `const` too. A kernel whose blocks wait for each other can
/// be right, so it is a warning.
fn read_beside(what: &str, rule: Code, reader: &Access, writer: &Access) -> Diagnostic {
    Diagnostic::warning(format!("{what} may be read before anything wrote it"))
        .code(rule)
        .at(reader.span.clone(), "read here, through a pointer to `const`")
        .related(writer.span.clone(), "only this step itself writes it")
        .note("no step before this one writes it: what is read holds whatever the memory held")
        .help("pass what the kernel is to read, or fill it first with `memset`; where the kernel writes it first, let it read through that pointer")
}

/// How messages call memory, the rule that it has to be written before it is read, and when there is something in it; nothing for an
/// output that shares an input's memory, which holds what the input held.
fn read_memory(site: &Site<'_>, row: usize, memory: Memory) -> Option<(String, Code, Option<Expr>)> {
    match memory {
        Memory::Scratch(index) => {
            let scratch = site.variant(row)?.scratch.get(index as usize)?;
            Some((format!("the scratch buffer `{}`", scratch.name), rules::UNWRITTEN_SCRATCH, None))
        }
        Memory::Output(index) => {
            let output = site.plugin.outputs.get(index as usize)?;
            let is_there = has_elements(site.plugin, index as usize);
            let own = output.alias.is_none();
            own.then(|| (format!("the output `{}`", output.name), rules::UNWRITTEN_OUTPUT, is_there))
        }
    }
}

/// That an output has elements; of one that depends on data: that it can have some. None where that is always.
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

/// Something that has to hold so that a step is done and does something.
struct Need<'r> {
    at: At,
    text: &'r Text,
    holds: Expr,
    /// What is enough for that, and asks for less: a proof of it takes fewer steps.
    enough: Expr,
    /// Whether it is the step's condition; else an axis of its grid, which must not be 0.
    is_condition: bool,
}

/// All that: its condition holds, and its grid is not rightly 0. What always holds is left out.
fn needs<'r>(site: &Site<'r>, at: At) -> Vec<Need<'r>> {
    let Some(decl) = site.step_decl(at) else { return Vec::new() };
    let condition = site.when(at).zip(decl.when.as_ref());
    let condition = condition.map(|(when, text)| Need {
        at,
        text,
        holds: when.clone(),
        enough: when.clone(),
        is_condition: true,
    });
    let texts = decl.launch().map_or(&[][..], |launch| &launch.grid);
    let axes = site.filled(at).iter().enumerate().filter_map(|(axis, filled)| {
        // A grid of 0 where nothing is empty is refused, and so is one without a value.
        let enough = filled.clone()?;
        let holds = joined(BinaryOp::Or, [site.given(at)?, &enough])?;
        Some(Need { at, text: texts.get(axis).or(texts.first())?, holds, enough, is_condition: false })
    });
    condition.into_iter().chain(axes).collect()
}

/// That none of some steps may do anything.
struct Unmet<'r> {
    /// A case for that, for people, empty where it depends on nothing; none where no case is known.
    case: Option<String>,
    /// Of each step what is false then, or what is not known to hold.
    blamed: Vec<Need<'r>>,
}

/// Whether it is proved that one of some steps does something; else what is known. `assumed` holds beside the row's guard.
fn unmet<'r>(site: &Site<'r>, row: usize, assumed: &[&Expr], steps: &[At]) -> Option<Unmet<'r>> {
    let needs: Vec<Vec<Need<'r>>> = steps.iter().map(|at| needs(site, *at)).collect();
    let any_of = |part: for<'n> fn(&'n Need<'r>) -> &'n Expr| {
        let whens = needs.iter().map(|needs| joined(BinaryOp::And, needs.iter().map(part)));
        joined(BinaryOp::Or, &whens.collect::<Option<Vec<Expr>>>()?)
    };
    let any = any_of(|need| &need.holds)?;
    let conditions: Vec<&Expr> = site.guard(row).into_iter().chain(assumed.iter().copied()).collect();
    let domain = conditions.iter().fold(site.domain(), |domain, condition| domain.assuming(condition));
    if any_of(|need| &need.enough).is_some_and(|enough| domain.proves(&enough)) {
        return None;
    }
    let verdict = domain.always(&any);
    let case = match &verdict {
        Verdict::Proved => return None,
        Verdict::Refuted(case) => Some(describe(site.plugin, case, &[&any])),
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
    Some(Unmet { case, blamed: blamed.collect() })
}

/// What is said of rows, each message once: with the rows where these are not all.
fn merged(site: &Site<'_>, of_row: impl Fn(usize) -> Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut all: Vec<(Diagnostic, Vec<usize>)> = Vec::new();
    for row in 0..site.plugin.variants.len() {
        for diagnostic in of_row(row) {
            let key = |diagnostic: &Diagnostic| -> (Option<Code>, String, Option<Span>) {
                (
                    diagnostic.code,
                    diagnostic.message.clone(),
                    diagnostic.primary.as_ref().map(|it| it.span.clone()),
                )
            };
            match all.iter_mut().find(|(known, _)| key(known) == key(&diagnostic)) {
                Some((_, rows)) => rows.push(row),
                None => all.push((diagnostic, vec![row])),
            }
        }
    }
    let count = site.plugin.variants.len();
    let told = all.into_iter().map(|(diagnostic, rows)| match rows.len() == count {
        true => diagnostic,
        false => diagnostic.note(format!("in {}", site.describe_all(&rows))),
    });
    told.collect()
}
