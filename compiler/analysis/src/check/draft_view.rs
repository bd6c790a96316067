use std::cell::OnceCell;
use std::collections::HashMap;

use cubinder_expr::{BinaryOp, Expr, Node};
use cubinder_launch::proof::{Devices, Domain, Pool, Verdict};
use cubinder_model::{Launch, Output, Plugin, Scratch, Target, Variant};

use super::claim::{Claim, StepId, Term, When};
use super::devices;
use super::formula::{ExprKey, has_value, is_positive, joined, rank, truth};
use crate::diagnostic::{Diagnostic, Span};
use crate::manifest::{LaunchDecl, OutputDecl, Route, StepDecl, Text, VariantDecl};
use crate::resolve::{ArgDraftValue, Resolved, Unit};
use crate::verify::variant_name;

/// Step budgets of proofs. The runtime checks claims that exceed them.
pub(super) struct Pools {
    pub(super) proofs: Pool,
    /// For limits that would fix a claim.
    pub(super) advice: Pool,
    /// For inputs that TensorRT rejects.
    pub(super) beyond: Pool,
}

impl Pools {
    /// Takes tenths of a second; shipped manifests use 1 %.
    pub(super) fn new() -> Pools {
        Pools::with_steps(8_000_000, 2_000_000, 1_000_000)
    }

    pub(super) fn with_steps(proofs: usize, advice: usize, beyond: usize) -> Pools {
        Pools { proofs: Pool::new(proofs), advice: Pool::new(advice), beyond: Pool::new(beyond) }
    }
}

/// When a step has an effect; `None`: always.
struct StepConditions {
    /// Per axis of the grid: it is above 0.
    filled: Vec<Option<Expr>>,
    /// Passed outputs and memory are not empty.
    given: Option<Expr>,
}

pub(super) struct DraftView<'r> {
    pub(super) resolved: &'r Resolved,
    pub(super) plugin: &'r Plugin,
    pub(super) targets: Vec<Target>,
    pub(super) route: Route,
    devices: Devices,
    of_nodes: Vec<Vec<Expr>>,
    steps: HashMap<StepId, StepConditions>,
    pub(super) pools: &'r Pools,
    slim: OnceCell<Plugin>,
    /// For each row, whether it provably has no nodes.
    empty: OnceCell<Vec<bool>>,
}

#[derive(Clone, Copy)]
pub(super) struct LaunchView<'r> {
    pub(super) step: StepId,
    pub(super) launch: &'r Launch,
    pub(super) decl: &'r LaunchDecl,
    resolved: &'r Resolved,
    is_one_of_several: bool,
}

pub(super) const AXES: [&str; 3] = ["x", "y", "z"];

impl LaunchView<'_> {
    /// Returns `grid x`; with several launches, ``grid x of `sum` ``.
    pub(super) fn subject(&self, part: &str) -> String {
        match self.decl.kernel.as_ref().filter(|_| self.is_one_of_several) {
            Some(kernel) => format!("{part} of `{}`", kernel.value.trim()),
            None => part.to_owned(),
        }
    }

    fn axes<'t>(
        &self,
        part: &str,
        axes: &[Expr; 3],
        texts: impl IntoIterator<Item = &'t Text>,
        when: When,
    ) -> Vec<Term> {
        let axes = axes.iter().zip(texts).zip(AXES);
        let term = |((expr, text), axis): ((&Expr, &Text), &str)| Term {
            subject: self.subject(&format!("{part} {axis}")),
            expr: expr.clone(),
            span: Span::new(&self.resolved.source, text.range.clone()),
            when,
        };
        axes.map(term).collect()
    }

    /// Omitted axes repeat the last text.
    pub(super) fn every_axis_of_grid(&self) -> Vec<Term> {
        let last = self.decl.grid.last().into_iter().cycle();
        self.axes("grid", &self.launch.grid, self.decl.grid.iter().chain(last), When::Running(self.step))
    }

    pub(super) fn grid(&self) -> Vec<Term> {
        self.axes("grid", &self.launch.grid, &self.decl.grid, When::Launched(self.step))
    }

    pub(super) fn block(&self) -> Vec<Term> {
        self.axes("block", &self.launch.block, &self.decl.block, When::Running(self.step))
    }

    pub(super) fn cluster(&self) -> Vec<Term> {
        let (Some(cluster), Some(texts)) = (&self.launch.cluster, &self.decl.cluster) else {
            return Vec::new();
        };
        self.axes("cluster", cluster, texts, When::Running(self.step))
    }

    pub(super) fn shared_bytes(&self, subject: &str) -> Option<Term> {
        Some(Term {
            subject: self.subject(subject),
            expr: self.launch.shared_bytes.clone(),
            span: Span::new(&self.resolved.source, self.decl.shared_bytes.as_ref()?.range.clone()),
            when: When::Running(self.step),
        })
    }

    /// Returns the product if an axis is computed and at least `least_factors` are not 1.
    pub(super) fn product(&self, subject: &str, axes: &[Term], least_factors: usize) -> Option<Term> {
        let factors: Vec<&Expr> =
            axes.iter().map(|axis| &axis.expr).filter(|axis| axis.constant() != Some(1)).collect();
        if factors.len() < least_factors || factors.iter().all(|axis| axis.constant().is_some()) {
            return None;
        }
        let range = axes.first()?.span.range.start..axes.last()?.span.range.end;
        Some(Term {
            subject: self.subject(subject),
            expr: joined(BinaryOp::Mul, factors)?,
            span: Span::new(&self.resolved.source, range),
            when: When::Running(self.step),
        })
    }
}

#[derive(Clone, Copy)]
pub(super) struct OutputView<'r> {
    pub(super) index: usize,
    pub(super) output: &'r Output,
    pub(super) decl: &'r OutputDecl,
}

impl<'r> OutputView<'r> {
    pub(super) fn parts(&self) -> Vec<(String, &'r Expr, &'r Text)> {
        let OutputView { output, decl, .. } = self;
        let name = &output.name;
        let mut parts = vec![(format!("the shape of `{name}`"), &output.shape, &decl.shape)];
        if let (Some(bound), Some(decl)) = (&output.size, &decl.size) {
            parts.push((format!("the upper bound of `{name}`"), &bound.upper, &decl.upper));
            let opt = decl.opt.as_ref();
            parts.extend(opt.map(|text| (format!("the usual size in `{name}`"), &bound.opt, text)));
        }
        parts
    }
}

impl<'r> DraftView<'r> {
    pub(super) fn outputs(&self) -> impl Iterator<Item = OutputView<'r>> + use<'r> {
        let outputs = self.plugin.outputs.iter().zip(&self.resolved.manifest.outputs).enumerate();
        outputs.map(|(index, (output, decl))| OutputView { index, output, decl })
    }

    pub(super) fn term(&self, subject: String, expr: &Expr, text: &Text, when: When) -> Term {
        Term { subject, expr: expr.clone(), span: self.span(text), when }
    }

    pub(super) fn note_rows(&self, diagnostic: Diagnostic, rows: &[usize]) -> Diagnostic {
        if rows.is_empty() || rows.len() >= self.plugin.variants.len() {
            return diagnostic;
        }
        diagnostic.note(format!("in {}", self.describe_all(rows)))
    }

    /// `targets` override the manifest's.
    pub(super) fn new(
        resolved: &'r Resolved,
        targets: &[Target],
        route: Route,
        pools: &'r Pools,
    ) -> DraftView<'r> {
        let own = resolved.manifest.compile.targets.iter().map(|target| target.value);
        let targets: Vec<Target> = if targets.is_empty() { own.collect() } else { targets.to_vec() };
        let plugin = &resolved.draft.plugin;
        let rows = plugin.variants.iter().enumerate();
        let steps = rows.flat_map(|(row, variant)| {
            (0..variant.steps.len()).map(move |step| {
                let launch = variant.launch(step);
                let filled =
                    launch.map_or_else(Vec::new, |launch| launch.grid.iter().map(is_filled).collect());
                let step = StepId { row, step };
                (step, StepConditions { filled, given: nothing_is_empty(resolved, step) })
            })
        });
        DraftView {
            resolved,
            plugin,
            devices: devices::running(&targets),
            targets,
            route,
            of_nodes: plugin.variants.iter().map(|variant| of_nodes(plugin, variant)).collect(),
            steps: steps.collect(),
            pools,
            slim: OnceCell::new(),
            empty: OnceCell::new(),
        }
    }

    pub(super) fn is_native(&self) -> bool {
        self.route == Route::Native
    }

    /// When an empty grid is an error.
    pub(super) fn nothing_empty(&self, step: StepId) -> Option<&Expr> {
        self.steps.get(&step)?.given.as_ref()
    }

    pub(super) fn filled(&self, step: StepId) -> &[Option<Expr>] {
        self.steps.get(&step).map_or(&[], |step| &step.filled)
    }

    pub(super) fn scratch(&self, row: usize) -> impl Iterator<Item = (&'r Scratch, &'r Text)> {
        let manifest = &self.resolved.manifest;
        self.variant(row).into_iter().flat_map(|variant| &variant.scratch).filter_map(|scratch| {
            let decl = manifest.scratch.iter().find(|decl| decl.name.value == scratch.name)?;
            Some((scratch, decl.bytes.as_ref()?))
        })
    }

    pub(super) fn when(&self, step: StepId) -> Option<&'r Expr> {
        self.variant(step.row)?.steps.get(step.step)?.when.as_ref().map(|when| &when.expr)
    }

    pub(super) fn step_decl(&self, step: StepId) -> Option<&'r StepDecl> {
        let decl = self.resolved.draft.steps.get(step.row)?.get(step.step)?;
        self.resolved.manifest.launches.get(*decl)
    }

    pub(super) fn of_nodes(&self, row: usize) -> &[Expr] {
        self.of_nodes.get(row).map_or(&[], Vec::as_slice)
    }

    /// Claims then hold vacuously.
    pub(super) fn has_no_node(&self, row: usize) -> bool {
        let empty = self.empty.get_or_init(|| without_nodes(self));
        empty.get(row).copied().unwrap_or(false)
    }

    /// Groups non-empty rows by TensorRT's knowledge before it chooses a variant.
    pub(super) fn rows_of_nodes(&self) -> Vec<Vec<usize>> {
        self.rows_alike(|first, second| self.serve_alike(first, second))
    }

    pub(super) fn rows_of_variants(&self) -> Vec<Vec<usize>> {
        let id = |row: usize| self.variant(row).map(|variant| variant.id);
        self.rows_alike(|first, second| id(first) == id(second))
    }

    fn rows_alike(&self, is_alike: impl Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
        let mut all: Vec<Vec<usize>> = Vec::new();
        for row in (0..self.plugin.variants.len()).filter(|row| !self.has_no_node(*row)) {
            match all.iter_mut().find(|rows| rows.first().is_some_and(|&first| is_alike(first, row))) {
                Some(rows) => rows.push(row),
                None => all.push(vec![row]),
            }
        }
        all
    }

    pub(super) fn choices(&self) -> &'static str {
        let manifest = &self.resolved.manifest;
        let has_values = manifest.attributes.iter().any(|decl| decl.specialize.is_some());
        match (!manifest.types.is_empty(), !manifest.formats.is_empty(), has_values) {
            (true, true, true) => "types, formats and values",
            (true, true, false) => "types and formats",
            (true, false, true) => "types and values",
            (false, true, true) => "formats and values",
            (false, true, false) => "formats",
            (false, false, true) => "values",
            (_, false, false) => "types",
        }
    }

    /// Ignores guards.
    pub(super) fn serve_alike(&self, first: usize, second: usize) -> bool {
        let nodes = |row: usize| {
            self.variant(row).map(|variant| (&variant.types, &variant.formats, &variant.specialized))
        };
        nodes(first) == nodes(second)
    }

    /// Keep it for several questions: it caches facts.
    pub(super) fn domain(&self) -> Domain<'r> {
        self.domain_of(self.plugin).sharing(&self.pools.proofs)
    }

    pub(super) fn domain_of<'p>(&self, plugin: &'p Plugin) -> Domain<'p> {
        Domain::new(plugin).on_devices(self.devices)
    }

    /// Returns one row without launches, for modified plugins' domains.
    pub(super) fn slim(&self) -> &Plugin {
        self.slim.get_or_init(|| {
            let rows = &self.plugin.variants;
            let mut row = rows.first().map(|row| Variant { guard: None, steps: Vec::new(), ..row.clone() });
            if let Some(row) = &mut row {
                for (tensor, ty) in row.types.iter_mut().enumerate() {
                    let types = rows.iter().filter_map(|row| row.types.get(tensor));
                    *ty = types.copied().min_by_key(|ty| ty.bits()).unwrap_or(*ty);
                }
            }
            Plugin { tuning: Vec::new(), variants: row.into_iter().collect(), ..self.plugin.clone() }
        })
    }

    pub(super) fn conditions(&self, claim: &Claim) -> Vec<&Expr> {
        let Some(row) = claim.conditioned_row() else { return Vec::new() };
        let mut all: Vec<&Expr> = self.of_nodes(row).iter().collect();
        let when = claim.term.when;
        if !matches!(when, When::Guarded(_)) {
            all.extend(self.guard(row));
        }
        let Some(step) = when.step() else { return all };
        all.extend(self.when(step));
        let is_filled = |axis: usize| match when {
            When::Running(_) => true,
            When::Beside(_, own) => axis != own,
            _ => false,
        };
        let axes = self.filled(step).iter().enumerate().filter(|(axis, _)| is_filled(*axis));
        all.extend(axes.filter_map(|(_, filled)| filled.as_ref()));
        all.extend(self.nothing_empty(step).filter(|_| matches!(when, When::Written(_))));
        all
    }

    pub(super) fn narrow<'p>(&'p self, claim: &Claim, domain: Domain<'p>) -> Domain<'p> {
        match claim.term.when {
            When::BeforeOutputs => domain.before_outputs(),
            _ => self.conditions(claim).into_iter().fold(domain, Domain::assuming),
        }
    }

    pub(super) fn variant(&self, row: usize) -> Option<&'r Variant> {
        self.plugin.variants.get(row)
    }

    pub(super) fn guard(&self, row: usize) -> Option<&'r Expr> {
        self.variant(row)?.guard.as_ref().map(|guard| &guard.expr)
    }

    pub(super) fn variant_decl(&self, row: usize) -> Option<&'r VariantDecl> {
        let id = self.variant(row)?.id;
        self.resolved.manifest.variants.iter().find(|decl| decl.id.value == id)
    }

    pub(super) fn guard_span(&self, row: usize) -> Option<Span> {
        Some(self.span(self.variant_decl(row)?.guard.as_ref()?))
    }

    pub(super) fn variant_span(&self, row: usize) -> Span {
        let id = self.variant_decl(row).map(|decl| decl.id.range.clone()).filter(|range| !range.is_empty());
        id.map_or_else(|| self.resolved.name_span.clone(), |range| Span::new(&self.resolved.source, range))
    }

    pub(super) fn describe(&self, row: usize) -> String {
        self.variant(row).map_or_else(|| format!("row {row}"), variant_name)
    }

    /// Returns `variant 1 (T=f16)`; of several, the first and the others' number.
    pub(super) fn describe_all(&self, rows: &[usize]) -> String {
        match rows {
            [] => String::new(),
            [row] => self.describe(*row),
            [first, others @ ..] => format!("{} and {} more", self.describe(*first), others.len()),
        }
    }

    pub(super) fn span(&self, text: &Text) -> Span {
        Span::new(&self.resolved.source, text.range.clone())
    }

    pub(super) fn units(&self) -> &'r [Unit] {
        &self.resolved.draft.units
    }

    pub(super) fn launches(&self) -> impl Iterator<Item = LaunchView<'r>> + '_ {
        self.units().iter().filter_map(|unit| self.launch_of(unit))
    }

    pub(super) fn launch_of(&self, unit: &Unit) -> Option<LaunchView<'r>> {
        let launch = self.variant(unit.variant)?.launch(unit.step)?;
        let decls = &self.resolved.manifest.launches;
        let decl = decls.get(unit.decl)?.launch()?;
        let is_one_of_several = decls.iter().filter_map(StepDecl::launch).count() > 1;
        let step = StepId { row: unit.variant, step: unit.step };
        Some(LaunchView { step, launch, decl, resolved: self.resolved, is_one_of_several })
    }
}

pub(super) fn within<'p>(domain: &Domain<'p>, given: &[&'p Expr]) -> Domain<'p> {
    given.iter().fold(domain.clone(), |domain, given| domain.assuming(given))
}

fn without_nodes(view: &DraftView<'_>) -> Vec<bool> {
    let domain = view.domain().hasty();
    let mut known: HashMap<ExprKey<'_>, bool> = HashMap::new();
    let rows = view.of_nodes.iter().map(|given| {
        *known.entry(ExprKey::from(given.as_slice())).or_insert_with_key(|ExprKey(given)| {
            !given.is_empty() && within(&domain, given).never(&truth()) == Verdict::Proved
        })
    });
    rows.collect()
}

fn nothing_is_empty(resolved: &Resolved, step: StepId) -> Option<Expr> {
    let plugin = &resolved.draft.plugin;
    let variant = plugin.variants.get(step.row)?;
    let unit = resolved.draft.unit_of(step.row, step.step).map(|(_, unit)| unit);
    let mut tensors: Vec<u32> = (plugin.inputs.len()..plugin.tensor_count())
        .filter_map(|tensor| u32::try_from(tensor).ok())
        .collect();
    let mut parts: Vec<Expr> = Vec::new();
    for arg in unit.iter().flat_map(|unit| &unit.args).filter(|arg| arg.broken.is_none()) {
        match &arg.value {
            ArgDraftValue::Tensor(tensor) if !tensors.contains(tensor) => tensors.push(*tensor),
            ArgDraftValue::Scratch(index) => {
                let bytes = variant.scratch.get(*index as usize).map(|scratch| &scratch.bytes);
                let may_be_empty = |bytes: &&Expr| bytes.constant().is_none_or(|bytes| bytes <= 0);
                parts.extend(bytes.filter(may_be_empty).map(is_positive));
            }
            _ => {}
        }
    }
    let numels = tensors.into_iter().map(|tensor| is_positive(&Expr { nodes: vec![Node::Numel(tensor)] }));
    let all: Vec<Expr> = numels.chain(parts).collect();
    joined(BinaryOp::And, &all)
}

fn of_nodes(plugin: &Plugin, variant: &Variant) -> Vec<Expr> {
    let mut found: Vec<Expr> =
        variant.specialized.iter().filter_map(|(attribute, value)| has_value(*attribute, value)).collect();
    for (tensor, format) in (0..).zip(&variant.formats) {
        let least = plugin.inputs.get(tensor as usize).map_or(0, |input| usize::from(input.rank_min));
        if format.min_rank() > least {
            let least = i64::try_from(format.min_rank()).unwrap_or(i64::MAX);
            found.push(rank(tensor, BinaryOp::Ge, least));
        }
    }
    found
}

fn is_filled(axis: &Expr) -> Option<Expr> {
    axis.constant().is_none().then(|| is_positive(axis))
}
