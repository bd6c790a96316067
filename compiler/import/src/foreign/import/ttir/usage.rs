//! What a kernel does with the memory behind each of its pointers.

use super::flow::{Access, Flow};
use crate::loaded::{Answer, Usage};

/// Where addresses come from: parameters, by their bits.
const FROM_PARAMETER: u64 = 1;
/// Memory, or nothing that is known.
const FROM_ANYWHERE: u64 = 2;

/// How many parameters may be addresses. CUDA 12.1 passes 32,764 bytes (CUDA C++ Programming Guide, `__global__` function parameters).
const MOST: usize = 4096;

/// Parameters by their bits, as far as something is known of them.
#[derive(Default)]
struct Seen {
    read: u64,
    may_be_read: u64,
    written: u64,
    may_be_written: u64,
}

/// What is done with each parameter; `addresses` says which of them are one.
pub(super) fn usages(flow: &Flow, addresses: &[bool]) -> Vec<Usage> {
    let parameters: Vec<usize> =
        addresses.iter().enumerate().filter_map(|(at, is)| is.then_some(at)).collect();
    let mut found = vec![Usage::NONE; addresses.len()];
    let targets = targets(flow);
    let origins = {
        let anywhere = flow.nodes.iter().enumerate().filter(|(_, node)| node.is_anywhere);
        let anywhere = anywhere.map(|(at, _)| (at, FROM_ANYWHERE));
        let parameters = parameters.iter().map(|at| (*at, FROM_PARAMETER));
        reached(&targets, anywhere.chain(parameters))
    };
    let is_anywhere = |access: &Access| {
        let from = origins.get(access.address).copied().unwrap_or_default();
        // A number that is no pointer moves one, and is none.
        !access.is_opaque && (from & FROM_ANYWHERE != 0 || from & FROM_PARAMETER == 0)
    };
    for some in parameters.chunks(u64::BITS as usize) {
        let known = match parameters.len() <= MOST {
            true => {
                let bits = some.iter().enumerate().map(|(bit, at)| (*at, 1 << bit));
                seen(flow, &reached(&targets, bits), is_anywhere)
            }
            false => Seen { may_be_read: u64::MAX, may_be_written: u64::MAX, ..Seen::default() },
        };
        for (bit, at) in some.iter().enumerate() {
            if let Some(usage) = found.get_mut(*at) {
                *usage = Usage {
                    read: answer(known.read, known.may_be_read, bit),
                    written: answer(known.written, known.may_be_written, bit),
                };
            }
        }
    }
    found
}

fn answer(yes: u64, maybe: u64, bit: usize) -> Answer {
    let has = |mask: u64| mask >> bit & 1 == 1;
    match (has(yes), has(maybe)) {
        (true, _) => Answer::Yes,
        (false, true) => Answer::Unknown,
        (false, false) => Answer::No,
    }
}

/// The accesses in their order. What is read behind a write of the same memory may be what was written; so may, in a loop, what is read behind a
/// condition before it, and wherever programs wait for each other what is read behind a condition.
fn seen(flow: &Flow, masks: &[u64], is_anywhere: impl Fn(&Access) -> bool) -> Seen {
    let touched = |access: &Access| {
        let mask = masks.get(access.address).copied().unwrap_or_default();
        if is_anywhere(access) { (0, u64::MAX) } else { (mask, mask) }
    };
    let mut written_in = vec![0; flow.loops];
    for access in flow.accesses.iter().filter(|access| access.written != Answer::No) {
        if let Some(written) = access.in_loop.and_then(|at| written_in.get_mut(at)) {
            *written |= touched(access).1;
        }
    }
    let mut seen = Seen::default();
    for access in &flow.accesses {
        let (certain, possible) = touched(access);
        let in_loop = access.in_loop.and_then(|at| written_in.get(at)).copied().unwrap_or_default();
        let hidden = match (access.is_conditional, flow.is_order_open) {
            (true, true) => u64::MAX,
            (true, false) => seen.may_be_written | in_loop,
            (false, _) => seen.may_be_written,
        };
        match access.read {
            Answer::Yes => {
                seen.read |= certain & !hidden;
                seen.may_be_read |= possible;
            }
            Answer::Unknown => seen.may_be_read |= possible,
            Answer::No => {}
        }
        match access.written {
            Answer::Yes => {
                seen.written |= certain;
                seen.may_be_written |= possible;
            }
            Answer::Unknown => seen.may_be_written |= possible,
            Answer::No => {}
        }
    }
    seen
}

/// What comes from each node.
fn targets(flow: &Flow) -> Vec<Vec<usize>> {
    let mut targets = vec![Vec::new(); flow.nodes.len()];
    for (at, node) in flow.nodes.iter().enumerate() {
        for source in &node.sources {
            if let Some(of_source) = targets.get_mut(*source) {
                of_source.push(at);
            }
        }
    }
    targets
}

/// The bits that come to each node from those that have some.
fn reached(targets: &[Vec<usize>], from: impl Iterator<Item = (usize, u64)>) -> Vec<u64> {
    let mut masks = vec![0; targets.len()];
    let mut open = Vec::new();
    for (at, bits) in from {
        if let Some(mask) = masks.get_mut(at) {
            *mask |= bits;
            open.push(at);
        }
    }
    while let Some(at) = open.pop() {
        let bits = masks.get(at).copied().unwrap_or_default();
        for target in targets.get(at).into_iter().flatten() {
            if let Some(mask) = masks.get_mut(*target).filter(|mask| bits & !**mask != 0) {
                *mask |= bits;
                open.push(*target);
            }
        }
    }
    masks
}
