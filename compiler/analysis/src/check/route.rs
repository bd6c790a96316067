//! Reports obstacles to the native route ([`cubinder_launch::native`]) once per plugin. Variants that TensorRT
//! cannot choose are omitted with a warning if others remain.

use std::collections::BTreeSet;

use cubinder_expr::{BindingTime, Expr, Interval, Kind, binding_time};
use cubinder_launch::Role;
use cubinder_launch::native::{Obstacle, argument_mismatch, obstacles};
use cubinder_launch::proof::{Domain, Verdict};
use cubinder_model::{Plugin, Target, Variant};

use super::errors::{NoNativeRoute, VariantsLeftOut};
use super::expressible::is_expressible;
use crate::diagnostic::{Diagnostic, Span};
use crate::foreign;
use crate::precompiled;
use crate::resolve::{ArgDraftValue, ForeignCode, Resolved, Unit};

/// Checks a plugin for the native route, selected at span `asked_at`. `lowest_ptx` is the lowest PTX target.
#[must_use]
pub fn check_route(
    plugin: &Resolved,
    asked_at: Option<&Span>,
    lowest_ptx: Option<Target>,
) -> Vec<Diagnostic> {
    let variants = || 0..plugin.draft.plugin.variants.len();
    let mut problems: Vec<Problem> = Vec::new();
    for problem in variants().flat_map(|index| self::problems(plugin, lowest_ptx, index)) {
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    if !problems.is_empty() {
        let errors = problems.into_iter().map(|Problem { text, help }| error(plugin, asked_at, text, help));
        return errors.collect();
    }
    let (chosen, left_out): (Vec<usize>, Vec<usize>) =
        variants().partition(|index| can_be_chosen(&plugin.draft.plugin, *index));
    if chosen.is_empty() {
        let problem = "it cannot choose a variant, because every guard reads addresses or the device";
        let help = "add a last variant without a guard, or whose guard reads only shapes";
        return vec![error(plugin, asked_at, problem.to_owned(), help)];
    }
    left_out_of(plugin, &left_out).into_iter().collect()
}

/// Returns whether TensorRT can choose the variant without addresses and device.
#[must_use]
pub fn can_be_chosen(plugin: &Plugin, variant: usize) -> bool {
    let obstacles =
        plugin.variants.get(variant).map(|variant| obstacles(plugin, variant)).unwrap_or_default();
    !obstacles.iter().any(|obstacle| matches!(obstacle, Obstacle::Guard(_)))
}

fn left_out_of(plugin: &Resolved, left_out: &[usize]) -> Option<Diagnostic> {
    let variants = left_out.iter().filter_map(|index| plugin.draft.plugin.variants.get(*index));
    let ids: BTreeSet<i32> = variants.map(|variant| variant.id).collect();
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let (variants, guards) = match ids.as_slice() {
        [] => return None,
        [one] => (format!("variant {one} is"), "its guard reads"),
        more => (format!("variants {} are", more.join(", ")), "their guards read"),
    };
    Some(VariantsLeftOut { variants, guards, span: plugin.name_span.clone() }.into())
}

fn error(plugin: &Resolved, asked_at: Option<&Span>, obstacle: String, help: &'static str) -> Diagnostic {
    let (span, label) = match asked_at {
        Some(span) => (span, "requested here"),
        None => (&plugin.name_span, "requested by `--route native`"),
    };
    let (plugin, span) = (plugin.manifest.plugin.name.value.as_str(), span.clone());
    NoNativeRoute { plugin, obstacle, help, span, label }.into()
}

#[derive(PartialEq)]
struct Problem {
    text: String,
    help: &'static str,
}

impl Problem {
    fn of_code(code: &str, problem: impl std::fmt::Display, help: &'static str) -> Problem {
        Problem { text: format!("`{code}` is precompiled {problem}"), help }
    }
}

impl From<Obstacle> for Problem {
    fn from(obstacle: Obstacle) -> Problem {
        Problem { text: obstacle.to_string(), help: help(&obstacle) }
    }
}

fn problems(plugin: &Resolved, lowest_ptx: Option<Target>, index: usize) -> Vec<Problem> {
    let draft = &plugin.draft;
    let Some(variant) = draft.plugin.variants.get(index) else { return Vec::new() };
    let obstacles = obstacles(&draft.plugin, variant).into_iter();
    let obstacles = obstacles.filter(|obstacle| !matches!(obstacle, Obstacle::Guard(_)));
    let mut found: Vec<Problem> = obstacles.map(Problem::from).collect();
    for unit in draft.units_of(index) {
        if let Some(code) = &unit.foreign {
            found.extend(problems_of_code(&draft.plugin, variant, lowest_ptx, unit, code));
        }
        found.extend(unit.args.iter().filter_map(|arg| {
            let ArgDraftValue::Expr { expr, kind } = &arg.value else { return None };
            let role = Role::Argument(arg.name.clone());
            match binding_time(expr) {
                BindingTime::Shape if has_floats(kind) => Some(Obstacle::Float(role).into()),
                BindingTime::Launch | BindingTime::Run => Some(Obstacle::RunTime(role).into()),
                _ => None,
            }
        }));
        found.extend(inexpressible(&draft.plugin, variant, unit));
    }
    found
}

fn problems_of_code(
    plugin: &Plugin,
    variant: &Variant,
    lowest_ptx: Option<Target>,
    unit: &Unit,
    code: &ForeignCode,
) -> Vec<Problem> {
    let name = code.name.as_str();
    let lacking = lowest_ptx.filter(|target| foreign::serving(code, *target, true).is_none());
    let no_ptx = lacking.map(|target| Problem {
        text: format!("no PTX of `{name}` for `{target}`"),
        help: "add its PTX to `[[code]]`: TensorRT does not accept machine code on this route",
    });
    let mut rules = code.files.iter().filter_map(|file| file.loaded.as_ref()?.rules.get(&unit.kernel));
    let has_clusters = rules.any(|rules| rules.cluster.is_some() || rules.blocks_are_clusters);
    let bound = precompiled::check(plugin, unit).bound;
    let misfit = bound.and_then(|bound| argument_mismatch(plugin, &bound.args));
    let has_condition = variant.steps.get(unit.step).is_some_and(|step| step.when.is_some());
    let domain = variant.guard.iter().fold(Domain::new(plugin), |domain, guard| domain.assuming(&guard.expr));
    let some = Interval { min: 1, max: i64::MAX };
    let is_never_empty = variant.launch(unit.step).is_some_and(|launch| {
        launch.grid.iter().all(|extent| domain.within(extent, some) == Verdict::Proved)
    });
    const ORDER: &str =
        "order the kernel's parameters: inputs in the manifest's order, 4-byte numbers, outputs";
    const CONDITION: &str = "and cannot return at once if `when` is false";
    const EMPTY: &str = "and its grid is not proved to be above 0: for 0, TensorRT launches one block, which would not return at once";
    let order = misfit.map(|misfit| format!("and launched unchanged: {misfit}"));
    let found = [
        no_ptx,
        has_clusters.then(|| Obstacle::Clusters.into()),
        order.map(|order| Problem::of_code(name, order, ORDER)),
        has_condition
            .then(|| Problem::of_code(name, CONDITION, "move the condition to the guards of variants")),
        (!is_never_empty).then(|| {
            let code = format!("`{name}` is precompiled, ");
            Problem { text: code + EMPTY, help: "exclude empty tensors with `require`: `numel(x) > 0`" }
        }),
    ];
    found.into_iter().flatten().collect()
}

fn has_floats(kind: &Kind) -> bool {
    match kind {
        Kind::Float => true,
        Kind::Array(element) => has_floats(element),
        Kind::Int | Kind::Bool | Kind::Str => false,
    }
}

/// Omits floats, a separate obstacle.
fn inexpressible(plugin: &Plugin, variant: &Variant, unit: &Unit) -> Vec<Problem> {
    let Some(launch) = variant.launch(unit.step) else { return Vec::new() };
    let axes = ['x', 'y', 'z'];
    let grid = launch.grid.iter().zip(axes).map(|(expr, axis)| (Role::Grid(axis), expr));
    let block = launch.block.iter().zip(axes).map(|(expr, axis)| (Role::Block(axis), expr));
    let args = unit.args.iter().filter_map(|arg| match &arg.value {
        ArgDraftValue::Expr { expr, kind } if !has_floats(kind) => {
            Some((Role::Argument(arg.name.clone()), expr))
        }
        _ => None,
    });
    let parts = grid.chain(block).chain([(Role::SharedBytes, &launch.shared_bytes)]).chain(args);
    let is_wrong = |expr: &Expr| binding_time(expr) == BindingTime::Shape && !is_expressible(expr, plugin);
    let problem = |role: Role| Problem {
        text: format!("{role} may not be expressible with TensorRT's operations"),
        help: "compute it with integers, without arrays whose length depends on shapes",
    };
    parts.filter(|(_, expr)| is_wrong(expr)).map(|(role, _)| problem(role)).collect()
}

fn help(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::SizeOfOutput(_) | Obstacle::ShapeInput(_) => {
            "compute output shapes from input shapes and attributes"
        }
        Obstacle::Steps(_) => "merge the steps into one kernel",
        Obstacle::Fill => "fill the memory in a kernel",
        Obstacle::Scratch(_) => "remove the scratch memory, or use an output instead",
        Obstacle::Clusters => "launch it without clusters",
        Obstacle::Cooperative => "remove `cooperative` and synchronization between blocks",
        Obstacle::Guard(_) => "make the guard depend only on shapes",
        Obstacle::RunTime(_) => "compute it from shapes and attributes",
        Obstacle::Float(_) => "pass integers, and compute the float in the kernel",
    }
}
