//! What keeps a plugin from the native route, on which TensorRT launches its kernels itself.
//!
//! Owns these reports, once for a plugin: an obstacle ([`cubinder_launch::native`]) is an error, and a variant that TensorRT
//! could not choose is left out with a warning, as long as there are others.

use std::collections::BTreeSet;

use cubinder_expr::Interval;
use cubinder_expr::{BindingTime, Kind, binding_time};
use cubinder_launch::Role;
use cubinder_launch::native::{Obstacle, misfit, obstacles};
use cubinder_launch::proof::{Domain, Verdict};
use cubinder_model::{Launch, Plugin, Target, Variant};

use super::errors::{NoNativeRoute, VariantsLeftOut};
use super::expressible::is_expressible;
use crate::diagnostic::{Diagnostic, Span};
use crate::foreign;
use crate::precompiled;
use crate::resolve::{ArgDraft, ArgDraftValue, ForeignCode, Resolved, Unit};

/// Checks a plugin for the native route. `asked_at` is where a file selects the route, `lowest_ptx` the lowest PTX target.
#[must_use]
pub fn check_route(
    plugin: &Resolved,
    asked_at: Option<&Span>,
    lowest_ptx: Option<Target>,
) -> Vec<Diagnostic> {
    let variants = || 0..plugin.draft.plugin.variants.len();
    let mut reported = BTreeSet::new();
    let problems = variants().flat_map(|index| problems(plugin, lowest_ptx, index));
    let problems = problems.filter(|(problem, _)| reported.insert(problem.clone()));
    let found: Vec<Diagnostic> =
        problems.map(|(problem, help)| error(plugin, asked_at, problem, help)).collect();
    if !found.is_empty() {
        return found;
    }
    let (chosen, left_out): (Vec<usize>, Vec<usize>) =
        variants().partition(|index| can_be_chosen(&plugin.draft.plugin, *index));
    if chosen.is_empty() {
        let problem = "TensorRT could choose none of the variants, because the guards of all ask for addresses or the device";
        let help = "add a variant whose guard asks for shapes alone, or that has none, as the last one";
        return vec![error(plugin, asked_at, problem.to_owned(), help)];
    }
    left_out_of(plugin, &left_out).into_iter().collect()
}

/// Whether TensorRT can choose the variant: it does so while it builds, and knows neither addresses nor the device then.
#[must_use]
pub fn can_be_chosen(plugin: &Plugin, variant: usize) -> bool {
    let obstacles =
        plugin.variants.get(variant).map(|variant| obstacles(plugin, variant)).unwrap_or_default();
    !obstacles.iter().any(|obstacle| matches!(obstacle, Obstacle::Guard(_)))
}

/// A warning about variants that are left out.
fn left_out_of(plugin: &Resolved, left_out: &[usize]) -> Option<Diagnostic> {
    let variants = left_out.iter().filter_map(|index| plugin.draft.plugin.variants.get(*index));
    let ids: BTreeSet<i32> = variants.map(|variant| variant.id).collect();
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let (variants, guards) = match ids.as_slice() {
        [] => return None,
        [one] => (format!("variant {one} is"), "its guard asks"),
        more => (format!("variants {} are", more.join(", ")), "their guards ask"),
    };
    Some(VariantsLeftOut { variants, guards, span: plugin.name_span.clone() }.into())
}

fn error(plugin: &Resolved, asked_at: Option<&Span>, obstacle: String, help: &'static str) -> Diagnostic {
    let (span, label) = match asked_at {
        Some(span) => (span, "asked for here"),
        None => (&plugin.name_span, "`--route native` asks for it"),
    };
    let (plugin, span) = (plugin.manifest.plugin.name.value.as_str(), span.clone());
    NoNativeRoute { plugin, obstacle, help, span, label }.into()
}

/// What is wrong with a variant, and what mends it.
fn problems(plugin: &Resolved, lowest_ptx: Option<Target>, index: usize) -> Vec<(String, &'static str)> {
    let draft = &plugin.draft;
    let Some(variant) = draft.plugin.variants.get(index) else { return Vec::new() };
    let obstacles = obstacles(&draft.plugin, variant).into_iter();
    let obstacles = obstacles.filter(|obstacle| !matches!(obstacle, Obstacle::Guard(_)));
    let mut found: Vec<(String, &'static str)> =
        obstacles.map(|obstacle| (obstacle.to_string(), help(&obstacle))).collect();
    for unit in draft.units_of(index) {
        if let Some(code) = &unit.foreign {
            found.extend(of_foreign(&draft.plugin, variant, lowest_ptx, unit, code));
        }
        found.extend(of_args(unit));
        found.extend(inexpressible(&draft.plugin, variant, unit));
    }
    found
}

/// What keeps code from it that another compiler made: TensorRT launches it as it is.
fn of_foreign(
    plugin: &Plugin,
    variant: &Variant,
    lowest_ptx: Option<Target>,
    unit: &Unit,
    code: &ForeignCode,
) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    let name = &code.name;
    if let Some(target) = lowest_ptx.filter(|target| foreign::serving(code, *target, true).is_none()) {
        let help = "name PTX of it in `[[code]]`: TensorRT takes no machine code on this route";
        found.push((format!("there is no PTX of `{name}` for `{target}`"), help));
    }
    let rules = code.files.iter().filter_map(|file| file.loaded.as_ref()?.rules.get(&unit.kernel));
    if rules.into_iter().any(|rules| rules.cluster.is_some() || rules.blocks_are_clusters) {
        found.push((Obstacle::Clusters.to_string(), help(&Obstacle::Clusters)));
    }
    let bound = precompiled::check(plugin, unit).bound;
    if let Some(misfit) = bound.and_then(|bound| misfit(plugin, &bound.args)) {
        let help = "have the kernel take the inputs in the manifest's order, then numbers of 4 bytes, then the outputs";
        found
            .push((format!("`{name}` comes from another compiler and is launched as it is: {misfit}"), help));
    }
    let step = variant.steps.get(unit.step);
    if step.is_some_and(|step| step.when.is_some()) {
        let help = "have the manifest say it in the guards of variants";
        found.push((
            format!(
                "`{name}` comes from another compiler and cannot leave at once where `when` does not hold"
            ),
            help,
        ));
    }
    if !variant.launch(unit.step).is_some_and(|launch| is_never_empty(plugin, variant, launch)) {
        let help = "say in `require` that no tensor is empty: `numel(x) > 0`";
        found.push((
            format!("`{name}` comes from another compiler, and it is not proved that its grid is never 0: TensorRT launches one block then, which would not leave at once"),
            help,
        ));
    }
    found
}

/// All nodes that a variant may run.
fn domain<'p>(plugin: &'p Plugin, variant: &'p Variant) -> Domain<'p> {
    let domain = Domain::new(plugin);
    match &variant.guard {
        Some(guard) => domain.assuming(&guard.expr),
        None => domain,
    }
}

/// Whether a grid is proved to have a block for all that the variant may run.
fn is_never_empty(plugin: &Plugin, variant: &Variant, launch: &Launch) -> bool {
    let domain = domain(plugin, variant);
    let some = Interval { min: 1, max: i64::MAX };
    launch.grid.iter().all(|extent| domain.within(extent, some) == Verdict::Proved)
}

/// What only the arguments tell, which are not in the model yet.
fn of_args(unit: &Unit) -> impl Iterator<Item = (String, &'static str)> {
    unit.args.iter().filter_map(|arg| {
        let ArgDraftValue::Expr { expr, kind } = &arg.value else { return None };
        let role = Role::Argument(arg.name.clone());
        let obstacle = match binding_time(expr) {
            BindingTime::Shape if has_floats(kind) => Obstacle::Float(role),
            BindingTime::Launch | BindingTime::Run => Obstacle::RunTime(role),
            _ => return None,
        };
        Some((obstacle.to_string(), help(&obstacle)))
    })
}

/// Whether an argument is a float, or an array of them: what depends on shapes was told then.
fn is_float_argument(arg: &ArgDraft) -> bool {
    matches!(&arg.value, ArgDraftValue::Expr { kind, .. } if has_floats(kind))
}

fn has_floats(kind: &Kind) -> bool {
    match kind {
        Kind::Float => true,
        Kind::Array(element) => has_floats(element),
        Kind::Int | Kind::Bool | Kind::Str => false,
    }
}

/// The parts of a launch of which it is not plain that TensorRT's operations can say them.
fn inexpressible(plugin: &Plugin, variant: &Variant, unit: &Unit) -> Vec<(String, &'static str)> {
    const INTEGERS: &str = "compute it with integers, without arrays whose length depends on shapes";
    let Some(launch) = variant.launch(unit.step) else { return Vec::new() };
    let axes = ['x', 'y', 'z'];
    let grid = launch.grid.iter().zip(axes).map(|(expr, axis)| (Role::Grid(axis), expr));
    let block = launch.block.iter().zip(axes).map(|(expr, axis)| (Role::Block(axis), expr));
    let args = unit.args.iter().filter_map(|arg| match &arg.value {
        ArgDraftValue::Expr { expr, .. } => Some((Role::Argument(arg.name.clone()), expr)),
        ArgDraftValue::Tensor(_) | ArgDraftValue::Scratch(_) => None,
    });
    let parts = grid.chain(block).chain([(Role::SharedBytes, &launch.shared_bytes)]).chain(args);
    let is_float = |role: &Role| matches!(role, Role::Argument(name) if unit.args.iter().any(|arg| arg.name == *name && is_float_argument(arg)));
    let of_shapes = parts.filter(|(role, expr)| binding_time(expr) == BindingTime::Shape && !is_float(role));
    let wrong = of_shapes.filter(|(_, expr)| !is_expressible(expr, plugin));
    wrong
        .map(|(role, _)| {
            (format!("{role} is not plainly made of what TensorRT's operations can say"), INTEGERS)
        })
        .collect()
}

/// What would have to change.
fn help(obstacle: &Obstacle) -> &'static str {
    match obstacle {
        Obstacle::SizeOfOutput(_) | Obstacle::ShapeInput(_) => {
            "have the shapes of outputs follow from those of inputs and attributes"
        }
        Obstacle::Steps(_) => "do all of it in one kernel",
        Obstacle::Fill => "have a kernel do it",
        Obstacle::Scratch(_) => "do without scratch memory, or give the kernel an output for it",
        Obstacle::Clusters => "launch it without clusters",
        Obstacle::Cooperative => "take `cooperative` out, and let blocks not wait for each other",
        Obstacle::Guard(_) => "have the guard ask for shapes alone",
        Obstacle::RunTime(_) => "let it follow from shapes and attributes",
        Obstacle::Float(_) => "pass integers, and have the kernel compute the float",
    }
}
