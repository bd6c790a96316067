//! Proofs for all shapes of a profile: engines that TensorRT launches check none.

use cubinder_expr::{Builtin, Expr, Formula, Node};
use cubinder_expr::{Interval, Value};
use cubinder_launch as launch;
use cubinder_launch::native::{self, Unproved};
use cubinder_launch::proof::{Domain, Greatest, Verdict};
use cubinder_launch::{Facts, Steps};
use cubinder_model::{CodeRef, Launch, Output, Requirement, Variant};
use trt_abi::Result;

use super::node::NamedNode;
use super::profile::Profile;

#[derive(Debug)]
pub(super) struct BuiltFor {
    pub(super) profile: Profile,
    /// The kernel returns early if one is violated.
    pub(super) required: Vec<Requirement>,
    variants: Vec<Proved>,
}

#[derive(Debug)]
struct Proved {
    index: usize,
    open: Vec<OpenClaim>,
}

#[derive(Debug)]
struct OpenClaim {
    what: String,
    /// Proved false for the whole profile.
    never: bool,
}

impl BuiltFor {
    /// Fails if no shape satisfies a rule.
    pub(super) fn prove(node: &NamedNode, profile: Profile) -> Result<BuiltFor> {
        let required = required(node, &profile)?;
        let guarded = domain(node, &profile);
        let proved = node
            .reachable(None)
            .filter(|variant| variant.guard.as_ref().is_none_or(|guard| guarded.proves(&guard.expr)));
        let variants = proved.filter_map(|variant| {
            Some(Proved { index: place(node, variant)?, open: open(node, &profile, variant) })
        });
        let variants = variants.collect();
        Ok(BuiltFor { profile, required, variants })
    }

    fn proved(&self, node: &NamedNode, variant: &Variant) -> Option<&Proved> {
        let index = place(node, variant)?;
        self.variants.iter().find(|proved| proved.index == index)
    }

    /// For other shapes its kernel returns early, or a warning was logged.
    pub(super) fn offers(&self, node: &NamedNode, variant: &Variant) -> bool {
        let is_proved =
            self.proved(node, variant).is_some_and(|proved| proved.open.iter().all(|open| !open.never));
        is_proved && (self.required.is_empty() || !is_own(variant))
    }

    /// Returns claims to prove before TensorRT may launch the variant: its guard, always false claims, precompiled
    /// kernels' requirements.
    pub(super) fn asks_for(&self, node: &NamedNode, variant: &Variant) -> Vec<String> {
        let guard = variant.guard.iter().map(|guard| format!("`{}`", guard.text));
        let never = self.proved(node, variant).into_iter().flat_map(|proved| &proved.open);
        let never = never.filter(|open| open.never).map(|open| open.what.clone());
        let required = self.required.iter().filter(|_| is_own(variant));
        guard.chain(never).chain(required.map(|requirement| format!("`{}`", requirement.text))).collect()
    }

    pub(super) fn unproved(&self, node: &NamedNode, variant: &Variant) -> Vec<String> {
        let open = self.proved(node, variant).into_iter().flat_map(|proved| &proved.open);
        open.map(|open| open.what.clone()).collect()
    }
}

/// Returns unproved claims: values are in range, outputs are written.
fn open(node: &NamedNode, profile: &Profile, variant: &Variant) -> Vec<OpenClaim> {
    let Some(launch) = variant.launch(0) else { return Vec::new() };
    let when = variant.steps.first().and_then(|step| step.when.as_ref());
    let running = native::running(when, launch);
    let all = domain(node, profile).without_search();
    let done = running.iter().fold(domain(node, profile).without_search(), Domain::assuming);
    let fits = |Unproved { role, range, never }: Unproved| OpenClaim {
        what: format!("{role} is in {}..={}", range.min, range.max),
        never,
    };
    let parts = native::unproved(&done, launch, declared(node, launch)).into_iter().map(fits);
    let writes = native::writes(node.definition.plugin(), when, launch).into_iter();
    let writes = writes.filter(|(_, holds)| all.always(holds) != Verdict::Proved);
    let written = writes.map(|(output, holds)| OpenClaim {
        what: format!("`{output}` is written"),
        never: all.never(&holds) == Verdict::Proved,
    });
    parts.chain(written).collect()
}

fn declared(node: &NamedNode, launch: &Launch) -> u32 {
    let Some(CodeRef { code, symbol, .. }) = launch.code.first() else { return 0 };
    let kernels = node.definition.code().get(*code as usize).map_or(&[][..], |object| &object.kernels);
    kernels.iter().find(|kernel| kernel.symbol == *symbol).and_then(|kernel| kernel.shared_bytes).unwrap_or(0)
}

fn place(node: &NamedNode, variant: &Variant) -> Option<usize> {
    node.definition.plugin().variants.iter().position(|known| std::ptr::eq(known, variant))
}

fn is_own(variant: &Variant) -> bool {
    variant.launch(0).is_some_and(native::is_own)
}

fn domain<'a>(node: &'a NamedNode, profile: &'a Profile) -> Domain<'a> {
    Domain::new(node.definition.plugin()).with_attributes(&node.attributes).with_profile(&profile.inputs)
}

fn required(node: &NamedNode, profile: &Profile) -> Result<Vec<Requirement>> {
    profile.check(node)?;
    let plugin = node.definition.plugin();
    let ends = |end: fn(&Interval) -> i64| -> Vec<Vec<i64>> {
        profile.inputs.iter().map(|ranges| ranges.iter().map(end).collect()).collect()
    };
    let (least, most) = (ends(|range| range.min), ends(|range| range.max));
    let least_shapes: Vec<&[i64]> = least.iter().map(Vec::as_slice).collect();
    let most_shapes: Vec<&[i64]> = most.iter().map(Vec::as_slice).collect();
    let least = Facts { shapes: &least_shapes, ..node.facts() };
    let most = Facts { shapes: &most_shapes, ..node.facts() };
    if least_shapes == most_shapes {
        let mut steps = Steps::default();
        let held = launch::check(plugin, launch::rules_of_shapes(plugin), &most, &mut steps);
        held.and_then(|()| launch::output_shapes(plugin, &most, &mut steps))
            .map_err(|unmet| node.invalid(unmet))?;
        return Ok(Vec::new());
    }
    // Limits apply to dimensions and their product: shapes between two valid ends are valid.
    let keeps = |limit: &Requirement, facts: &Facts<'_>| {
        Steps::default().value(&limit.expr, facts) == Ok(Value::Bool(true))
    };
    let is_kept = |limit: &Requirement| keeps(limit, &least) && keeps(limit, &most);
    let of_inputs = plugin.inputs.iter().zip(&profile.inputs).zip(0..);
    let of_inputs = of_inputs.flat_map(|((input, ranges), index)| {
        let shape = Expr { nodes: vec![Node::Shape(index)] };
        native::limits(&input.name, &shape, ranges.len(), &input.limits)
    });
    let mut open: Vec<Requirement> = of_inputs.filter(|limit| !is_kept(limit)).collect();
    let domain = || domain(node, profile).before_outputs().without_search();
    for (index, requirement) in plugin.require.iter().enumerate() {
        if is_open(node, &domain().with_requirements(index), requirement)? {
            open.push(requirement.clone());
        }
    }
    let domain = domain();
    for output in &plugin.outputs {
        let rank = output_rank(&domain, output).ok_or_else(|| {
            node.invalid(format_args!(
                "the rank of `{}` cannot be derived from the ranks of the inputs",
                output.name
            ))
        })?;
        let sizes = native::sizes(&output.name, &output.shape, rank);
        for limit in
            sizes.into_iter().chain(native::limits(&output.name, &output.shape, rank, &output.limits))
        {
            if is_open(node, &domain, &limit)? {
                open.push(limit);
            }
        }
    }
    Ok(open)
}

fn output_rank(domain: &Domain<'_>, output: &Output) -> Option<usize> {
    let mut length = Formula::default();
    let array = length.copy(&output.shape);
    length.add(Node::Call(Builtin::Len, vec![array]));
    match domain.greatest(&length.finish()) {
        Greatest::Value(rank) => usize::try_from(rank).ok(),
        Greatest::Nothing | Greatest::Unknown => None,
    }
}

fn is_open(node: &NamedNode, domain: &Domain<'_>, requirement: &Requirement) -> Result<bool> {
    let Requirement { expr, text, message } = requirement;
    if domain.never(expr) == Verdict::Proved {
        return Err(node.invalid(format_args!("`{text}` is false for all shapes of the profile: {message}")));
    }
    Ok(!domain.proves(expr))
}
