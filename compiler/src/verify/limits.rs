//! What a code object allows, against blocks and shared memory that the manifest computes.
//!
//! Owns the limits that are known only after the compile: threads, by launch bounds and registers, and dynamic shared memory
//! beside the static one. Constants are [`super::check_code`]'s. What cannot be proved the runtime holds against the
//! driver's own numbers before each launch (`CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK`, and what is left of the shared memory).

use cubinder_bundle::expr::{Environment, Expr, evaluate};
use cubinder_bundle::proof::{Case, Domain, Verdict};
use cubinder_bundle::{Interval, KernelFacts, Launch, Plugin, Target, Value};

use super::code::{block_registers, constant, max_shared_bytes};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::resolve::Unit;
use crate::rules;

/// Something that must hold for every launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Obligation {
    /// The rule it belongs to.
    pub rule: Code,
    /// What must hold, for people: `a block of the kernel has at most 256 threads`.
    pub statement: String,
    /// Where the manifest names the kernel.
    pub span: Span,
    /// What is known of it. What is not proved the runtime checks.
    pub verdict: Verdict,
}

/// What came of holding a unit's launch against its code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// An error for what no launch can meet, a warning for what some launch cannot.
    pub diagnostics: Vec<Diagnostic>,
    /// Everything that had to be proved.
    pub obligations: Vec<Obligation>,
}

/// Obligations of several rows: those with one statement about one kernel once, with the worst that is known.
#[must_use]
pub fn worst<'a>(obligations: impl IntoIterator<Item = &'a Obligation>) -> Vec<Obligation> {
    let severity = |verdict: &Verdict| match verdict {
        Verdict::Proved => 0,
        Verdict::Open => 1,
        Verdict::Refuted(_) => 2,
    };
    let mut merged: Vec<Obligation> = Vec::new();
    for obligation in obligations {
        let same = |known: &&mut Obligation| {
            known.span == obligation.span
                && known.rule == obligation.rule
                && known.statement == obligation.statement
        };
        match merged.iter_mut().find(same) {
            Some(known) if severity(&obligation.verdict) > severity(&known.verdict) => {
                known.verdict = obligation.verdict.clone();
            }
            Some(_) => {}
            None => merged.push(obligation.clone()),
        }
    }
    merged
}

/// A bound on something that is computed, and the targets that set it.
struct Claim<'a> {
    rule: Code,
    /// `threads of a block`
    subject: &'static str,
    /// What else counts towards the bound.
    beside: String,
    expr: &'a Expr,
    /// What the expression may come to at most.
    most: i64,
    help: &'static str,
    targets: Vec<Target>,
}

/// Holds a launch against the kernel's code for each target, over every node and shape that the plugin can meet.
#[must_use]
pub fn check_limits(plugin: &Plugin, unit: &Unit, codes: &[(Target, &KernelFacts)]) -> Limits {
    let Some(variant) = plugin.variants.get(unit.variant) else { return Limits::default() };
    let Some(launch) = variant.launches.get(unit.launch) else { return Limits::default() };
    let domain = Domain::of(plugin);
    let domain = match &variant.guard {
        Some(guard) => domain.assuming(&guard.expr),
        None => domain,
    };
    let within = |expr: &Expr, allowed: Interval| domain.within(expr, allowed);
    settle(plugin, unit, claims(launch, codes), codes.len(), &within)
}

/// The bounds, those that several targets share once.
fn claims<'a>(launch: &'a Launch, codes: &[(Target, &KernelFacts)]) -> Vec<Claim<'a>> {
    let mut claims: Vec<Claim<'a>> = Vec::new();
    for (target, kernel) in codes {
        let found = [threads(launch, kernel), shared(launch, *target, kernel)];
        for mut claim in found.into_iter().flatten() {
            let same = |known: &&mut Claim<'_>| known.rule == claim.rule && known.most == claim.most;
            match claims.iter_mut().find(same) {
                Some(known) => known.targets.push(*target),
                None => {
                    claim.targets.push(*target);
                    claims.push(claim);
                }
            }
        }
    }
    claims
}

/// The threads of a block, where one axis is computed and the others are constants. Where several are computed it is left to
/// the runtime: their product is no expression of the manifest.
fn threads<'a>(launch: &'a Launch, kernel: &KernelFacts) -> Option<Claim<'a>> {
    let mut computed = launch.block.iter().filter(|axis| constant(axis).is_none());
    let (expr, None) = (computed.next()?, computed.next()) else { return None };
    let others = launch.block.iter().filter_map(constant).try_fold(1_i64, i64::checked_mul)?;
    let by_bounds = kernel.max_threads.map(i64::from);
    let by_registers = kernel.registers.and_then(most_threads);
    let (most, rule, help) = match (by_bounds, by_registers) {
        (Some(bounds), registers) if registers.is_none_or(|registers| bounds <= registers) => (
            bounds,
            rules::LAUNCH_BOUNDS,
            "make the block smaller, or the kernel's `__launch_bounds__` larger",
        ),
        (_, Some(registers)) => (
            registers,
            rules::REGISTERS,
            "make the block smaller, or say the largest with `__launch_bounds__` in the kernel",
        ),
        _ => return None,
    };
    let beside = if others == 1 { String::new() } else { format!(" times {others} in the other axes") };
    // The limit of every GPU is another rule's.
    let is_a_limit = most < MAX_THREADS && others > 0;
    is_a_limit.then(|| Claim {
        rule,
        subject: "threads of a block",
        beside,
        expr,
        most: most / others,
        help,
        targets: Vec::new(),
    })
}

/// Threads of a block on every GPU (CUDA C++ Programming Guide 13.0, table of technical specifications).
const MAX_THREADS: i64 = 1024;

/// The most threads for which there are registers, in whole warps.
fn most_threads(registers: u32) -> Option<i64> {
    const WARP: i64 = 32;
    let fits = |threads: &i64| {
        block_registers(*threads, registers).is_some_and(|all| all <= super::code::MAX_BLOCK_REGISTERS)
    };
    (1..=MAX_THREADS / WARP).map(|warps| warps * WARP).take_while(fits).last()
}

fn shared<'a>(launch: &'a Launch, target: Target, kernel: &KernelFacts) -> Option<Claim<'a>> {
    let expr = &launch.shared_bytes;
    let fixed = i64::from(kernel.shared_bytes?);
    // Without static memory the limit is known before the compile: another check's.
    if constant(expr).is_some() || fixed == 0 {
        return None;
    }
    let most = i64::from(max_shared_bytes(target.arch)?) - fixed;
    Some(Claim {
        rule: rules::SHARED_MEMORY_LIMIT,
        subject: "bytes of dynamic shared memory",
        beside: if fixed == 0 {
            String::new()
        } else {
            format!(" beside {fixed} bytes of static shared memory")
        },
        expr,
        most,
        help: "lower `shared_bytes`, limit the shapes with `limits`, or leave out the targets that have less",
        targets: Vec::new(),
    })
}

fn settle(
    plugin: &Plugin,
    unit: &Unit,
    claims: Vec<Claim<'_>>,
    targets: usize,
    within: &dyn Fn(&Expr, Interval) -> Verdict,
) -> Limits {
    let mut limits = Limits::default();
    for claim in claims {
        let verdict = within(claim.expr, Interval { min: i64::MIN, max: claim.most });
        if let Verdict::Refuted(case) = &verdict {
            let beyond = Interval { min: claim.most.saturating_add(1), max: i64::MAX };
            let is_always = within(claim.expr, beyond) == Verdict::Proved;
            limits.diagnostics.push(message(plugin, unit, &claim, case, is_always, targets));
        }
        limits.obligations.push(Obligation {
            rule: claim.rule,
            statement: format!("{}{} are at most {}", claim.subject, claim.beside, claim.most),
            span: unit.kernel_span.clone(),
            verdict,
        });
    }
    limits
}

fn message(
    plugin: &Plugin,
    unit: &Unit,
    claim: &Claim<'_>,
    case: &Case,
    is_always: bool,
    targets: usize,
) -> Diagnostic {
    let Claim { subject, beside, most, .. } = claim;
    let told = if is_always { "always asks" } else { "may ask" };
    let text = format!("the launch {told} for more {subject} than the kernel can have");
    let diagnostic = if is_always { Diagnostic::error(text) } else { Diagnostic::warning(text) };
    let found = match evaluate(claim.expr, &World(case)) {
        Ok(value) => format!("for {} it asks for {value}{beside}, of at most {most}", describe(plugin, case)),
        Err(error) => format!("for {} {error}", describe(plugin, case)),
    };
    let diagnostic = diagnostic
        .code(claim.rule)
        .at(unit.kernel_span.clone(), "compiled for this kernel")
        .note(found)
        .help(claim.help);
    let diagnostic = match is_always {
        true => diagnostic,
        false => diagnostic.note("such a launch is refused at run time, with a message that says this"),
    };
    if claim.targets.len() == targets {
        return diagnostic;
    }
    let names: Vec<String> = claim.targets.iter().map(|target| format!("`{target}`")).collect();
    diagnostic.note(format!("only for {}", names.join(", ")))
}

/// A case as expressions see it. Addresses are not known.
struct World<'c>(&'c Case);

impl Environment for World<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.0.attributes.get(usize::try_from(index).ok()?)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.0.shapes.get(usize::try_from(tensor).ok()?).map(Vec::as_slice)
    }
}

/// `x = [1, 65536], n = 3`
fn describe(plugin: &Plugin, case: &Case) -> String {
    let shapes =
        plugin.inputs.iter().zip(&case.shapes).map(|(input, shape)| format!("{} = {shape:?}", input.name));
    let attributes = plugin.attributes.iter().zip(&case.attributes);
    let values = attributes.map(|(attribute, value)| format!("{} = {value}", attribute.name));
    shapes.chain(values).collect::<Vec<String>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{draft_with, facts};
    use super::*;
    use crate::diagnostic::{Colour, render};

    /// What is told of a launch where `x` is of one dimension from 1 to `longest`.
    fn told(launch: &str, codes: &[(&str, KernelFacts)], longest: i64) -> (String, Vec<String>) {
        let draft = draft_with(launch, "x = \"x\"\ny = \"y\"");
        let (plugin, unit) = (&draft.plugin, &draft.units[0]);
        let codes: Vec<(Target, &KernelFacts)> =
            codes.iter().map(|(target, facts)| (target.parse().unwrap(), facts)).collect();
        // Stands for the proof, which has its own tests: tries every shape.
        let within = |expr: &Expr, allowed: Interval| {
            let case = |length: i64| Case {
                attributes: vec![Value::Float(1.0), Value::Str("wrap".to_owned())],
                shapes: vec![vec![length], vec![length]],
            };
            let is_refuted = |case: &Case| {
                let value = evaluate(expr, &World(case)).unwrap().as_int().unwrap();
                !allowed.contains(value)
            };
            (1..=longest).map(case).find(is_refuted).map_or(Verdict::Proved, Verdict::Refuted)
        };
        let claims = claims(&plugin.variants[0].launches[0], &codes);
        let limits = settle(plugin, unit, claims, codes.len(), &within);
        let shown = limits.obligations.into_iter().map(|obligation| {
            let verdict = if obligation.verdict == Verdict::Proved { "proved" } else { "not proved" };
            format!("{}: {verdict}", obligation.statement)
        });
        (render(&limits.diagnostics, Colour::Plain), shown.collect())
    }

    fn code(max_threads: Option<u32>, registers: u32, shared: u32) -> KernelFacts {
        KernelFacts {
            max_threads,
            registers: Some(registers),
            shared_bytes: Some(shared),
            ..facts(&[(0, 8), (8, 8)])
        }
    }

    #[test]
    fn what_is_computed_is_held_against_the_code() {
        let bounds = [("sm_86", code(Some(256), 32, 0)), ("sm_90", code(Some(256), 32, 0))];
        let cases = [
            told("block = [\"numel(x)\"]", &bounds, 300),
            told("block = [\"numel(x) + 256\"]", &bounds, 300),
            told("block = [\"numel(x)\", 4]", &bounds, 300),
            told(
                "block = [\"numel(x)\"]",
                &[("sm_86", code(Some(1024), 32, 0)), ("sm_90", code(None, 100, 0))],
                1000,
            ),
            told(
                "block = [32]\nshared_bytes = \"numel(x) * 1024\"",
                &[("sm_86", code(None, 32, 1024)), ("sm_90", code(None, 32, 1024))],
                200,
            ),
        ];
        let shown: Vec<String> = cases
            .into_iter()
            .map(|(told, obligations)| format!("{told}== {}\n", obligations.join("; ")))
            .collect();
        insta::assert_snapshot!("limits", shown.join("\n"));
    }

    #[test]
    fn what_always_fits_is_proved_and_constants_are_not_asked_about() {
        let bounds = [("sm_90", code(Some(256), 32, 0))];
        let proved = vec!["threads of a block are at most 256: proved".to_owned()];
        assert_eq!(told("block = [\"numel(x)\"]", &bounds, 256), (String::new(), proved));
        for launch in ["block = [256]\nshared_bytes = 1024", "block = [\"numel(x)\", \"x.rank\"]"] {
            assert_eq!(told(launch, &bounds, 256), (String::new(), Vec::new()));
        }
    }

    #[test]
    fn threads_follow_from_registers() {
        assert_eq!(most_threads(64), Some(1024));
        assert_eq!(most_threads(65), Some(896));
        assert_eq!(most_threads(255), Some(256));
    }
}
