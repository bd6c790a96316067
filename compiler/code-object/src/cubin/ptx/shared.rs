//! Sums shared memory of entries and their callees.

use std::collections::{HashMap, HashSet};

use super::scan::Module;
use super::variable::{Variable, variables};
use super::words;
use crate::cubin::Dynamic;

/// Names followed into functions, for all entries.
const MOST_STEPS: usize = 1 << 22;
/// Maximum length in bytes.
const LONGEST_DECLARATION: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharedMemory {
    /// A lower bound: aligned parts have an unknown order. ptxas 12.9 and 13.0 count all variables of bodies, and named ones of the module.
    pub(super) bytes: u32,
    pub(super) dynamic: Dynamic,
}

#[derive(Debug, Clone, Copy)]
enum Symbol {
    Function(usize),
    Static(usize, u32),
    Dynamic,
}

#[derive(Debug, Default)]
struct Body {
    bytes: u32,
    is_dynamic: bool,
    functions: Vec<usize>,
    variables: Vec<(usize, u32)>,
}

pub(super) fn entries(module: &Module<'_>) -> Vec<SharedMemory> {
    let named = symbols(module);
    let functions: Vec<Body> = module.functions.iter().map(|(_, text)| body(text, &named)).collect();
    let mut left = MOST_STEPS;
    let entries = module.entries.iter().map(|entry| body(entry.body.unwrap_or_default(), &named));
    entries.map(|entry| reached(&entry, &functions, &mut left)).collect()
}

fn symbols<'t>(module: &Module<'t>) -> HashMap<&'t str, Symbol> {
    let functions = module.functions.iter().enumerate();
    let mut named: HashMap<&str, Symbol> =
        functions.map(|(index, (name, _))| (*name, Symbol::Function(index))).collect();
    let of_module = module.variables.iter().filter(|one| one.space == ".shared");
    let all = of_module.flat_map(|one| variables(one.text).into_iter().map(move |variable| (one, variable)));
    named.extend(all.enumerate().map(|(index, (one, Variable { name, bytes }))| match bytes {
        Some(bytes) if !one.is_extern => (name, Symbol::Static(index, bytes)),
        _ => (name, Symbol::Dynamic),
    }));
    named
}

fn body(text: &str, named: &HashMap<&str, Symbol>) -> Body {
    let (bytes, is_dynamic) = declared(text);
    let mut body = Body { bytes, is_dynamic, ..Body::default() };
    let mut known: HashSet<&str> = HashSet::new();
    for word in words(text) {
        let Some(named) = named.get(word).filter(|_| known.insert(word)) else { continue };
        match named {
            Symbol::Function(index) => body.functions.push(*index),
            Symbol::Static(index, bytes) => body.variables.push((*index, *bytes)),
            Symbol::Dynamic => body.is_dynamic = true,
        }
    }
    body
}

/// Also returns whether one is dynamic.
fn declared(body: &str) -> (u32, bool) {
    let (mut all, mut is_dynamic) = (0_u32, false);
    for (at, word) in body.match_indices(".shared") {
        // `ld.shared.b32` is a load.
        let before = &body[..at];
        if !before.ends_with(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}')) {
            continue;
        }
        let rest = &body[at + word.len()..];
        let end = rest.bytes().take(LONGEST_DECLARATION).position(|byte| byte == b';');
        let statement = end.and_then(|end| rest.get(..end)).unwrap_or_default();
        let is_extern = before.trim_end().ends_with(".extern");
        is_dynamic |= is_extern;
        let bytes = variables(statement).into_iter().filter_map(|one| one.bytes).filter(|_| !is_extern);
        all = bytes.fold(all, u32::saturating_add);
    }
    (all, is_dynamic)
}

fn reached(entry: &Body, functions: &[Body], left: &mut usize) -> SharedMemory {
    let mut known: HashSet<usize> = HashSet::new();
    let mut counted: HashSet<usize> = HashSet::new();
    let mut open = vec![entry];
    let (mut bytes, mut is_dynamic) = (0_u32, false);
    while let Some(body) = open.pop() {
        is_dynamic |= body.is_dynamic;
        let of_module = body.variables.iter().filter(|(index, _)| counted.insert(*index));
        bytes = of_module.fold(bytes.saturating_add(body.bytes), |all, (_, more)| all.saturating_add(*more));
        for index in &body.functions {
            let Some(called) = functions.get(*index).filter(|_| *left > 0 && known.insert(*index)) else {
                continue;
            };
            *left = left.saturating_sub(1 + called.functions.len() + called.variables.len());
            open.push(called);
        }
    }
    let dynamic = match is_dynamic {
        true => Dynamic::Yes,
        false if *left == 0 => Dynamic::NotTold,
        false => Dynamic::No,
    };
    SharedMemory { bytes, dynamic }
}
