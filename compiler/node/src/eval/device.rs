//! A query's device facts. Architectures determine some; callers know the multiprocessors.

use cubinder_expr::{DeviceFact, Expr, Node};
use cubinder_launch::Device;
use cubinder_model::{Arch, Variant};

use super::names::check_names;
use super::occupancy::Multiprocessor;
use super::report::{FactOrigin, FactReport};
use super::subject::{Origin, Subject};
use crate::errors::MissingFact;
use crate::query::{Mistake, Part, Query};
use crate::resolve::ArgDraftValue;

pub(super) struct DeviceFacts {
    pub(super) device: Option<Device>,
    pub(super) facts: Vec<FactReport>,
    pub(super) sms: Option<i64>,
    /// Device for measurements, without shared memory.
    pub(super) measured_on: Option<Device>,
}

pub(super) fn device_facts(
    subject: &Subject,
    query: &Query,
    arch: Option<Arch>,
    mistakes: &mut Vec<Mistake>,
) -> DeviceFacts {
    let names = DeviceFact::ALL.map(DeviceFact::name);
    check_names(Part::Device, "GPU property", &query.device, &names, mistakes);
    let needed: Vec<DeviceFact> = DeviceFact::ALL.into_iter().filter(|fact| asks(subject, *fact)).collect();
    let given =
        |fact: DeviceFact| query.device.iter().find(|(name, _)| name == fact.name()).map(|(_, value)| *value);
    let sms = given(DeviceFact::Sms);
    let capability = DeviceFact::Capability;
    let capability = given(capability).or_else(|| of_arch(arch?, capability));
    let measured_on =
        sms.zip(capability).map(|(sms, capability)| Device { sms, shared_bytes: 0, capability });
    if needed.is_empty() {
        return DeviceFacts { device: None, facts: Vec::new(), sms, measured_on };
    }
    let mut facts = Vec::new();
    let [multiprocessors, shared_bytes, capability] = DeviceFact::ALL.map(|fact| {
        let given = given(fact).map(|value| (value, FactOrigin::Given));
        let known = given.or_else(|| Some((of_arch(arch?, fact)?, FactOrigin::Arch)));
        if !needed.contains(&fact) {
            return known.map_or(fact.range().0, |(value, _)| value);
        }
        let Some((value, from)) = known else {
            mistakes.push(missing(fact));
            return fact.range().0;
        };
        facts.push(FactReport { name: fact.name(), value, from });
        value
    });
    let device = Some(Device { sms: multiprocessors, shared_bytes, capability });
    DeviceFacts { device, facts, sms, measured_on }
}

fn missing(fact: DeviceFact) -> Mistake {
    let name = fact.name();
    let remedy = match fact {
        DeviceFact::Sms => "`--device sms=132`".to_owned(),
        _ => format!("`--device {name}=...`, or specify the GPU: `--arch sm_90`"),
    };
    Mistake::new(Part::Device, name, MissingFact { fact: name, remedy })
}

fn of_arch(arch: Arch, fact: DeviceFact) -> Option<i64> {
    match fact {
        DeviceFact::Sms => None,
        DeviceFact::SharedBytes => Some(i64::from(Multiprocessor::for_arch(arch)?.block_shared_bytes)),
        DeviceFact::Capability => Some(i64::from(arch.major) * 10 + i64::from(arch.minor)),
    }
}

fn asks(subject: &Subject, fact: DeviceFact) -> bool {
    let reads = |expr: &Expr| expr.nodes.contains(&Node::Device(fact));
    // A manifest's arguments are in its units.
    let units = match &subject.origin {
        Origin::Manifest(resolved) => resolved.draft.units.as_slice(),
        Origin::Compiled(_) => &[],
    };
    let in_args = units.iter().flat_map(|unit| &unit.args).any(|arg| match &arg.value {
        ArgDraftValue::Expr { expr, .. } => reads(expr),
        ArgDraftValue::Tensor(_) | ArgDraftValue::Scratch(_) => false,
    });
    in_args || subject.plugin.variants.iter().flat_map(Variant::exprs).any(reads)
}
