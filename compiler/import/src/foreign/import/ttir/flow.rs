//! Which values of a kernel come from which, and what is read and written through them.
//!
//! A node stands for a value, or for an operation that gives several. Of a loop or a branch each value has its own, so that a pointer which is
//! carried round beside a sum is not taken for one that was read. Names are forgotten where the region that has them ends: Triton gives them again.

use std::collections::HashMap;

use super::lines::{self, Use, uses};
use crate::loaded::Answer;

/// Values, and the accesses in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The parameters come first, in their order.
    pub(super) nodes: Vec<Node>,
    pub(super) accesses: Vec<Access>,
    /// How many loops there are that are in no other.
    pub(super) loops: usize,
    /// Whether a program could wait for what another one writes, or go back without a loop: then what stands behind a condition may come later
    /// than what stands below it.
    pub(super) is_order_open: bool,
}

/// A value, or an operation.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// What it may come from.
    pub(super) sources: Vec<usize>,
    /// Whether an address that it holds may be any: it lay in memory, or nothing tells what gives it.
    pub(super) is_anywhere: bool,
    /// Whether anything takes it.
    is_used: bool,
}

/// A use of memory.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) address: usize,
    pub(super) read: Answer,
    pub(super) written: Answer,
    /// Whether it only gets values that could be addresses.
    pub(super) is_opaque: bool,
    pub(super) is_conditional: bool,
    /// The outermost loop that it is in.
    pub(super) in_loop: Option<usize>,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// Its values come from the operands behind so many, from so many of them at most.
    Computes(usize, usize),
    Reads,
    Writes,
    /// Changes memory by what was there.
    Updates,
    /// Writes, and gives what was there.
    Exchanges,
    /// May read through what it gets.
    Looks,
    /// May do anything with what it gets.
    Anything,
    /// Ends a region, with values behind so many operands.
    Ends(usize),
    Branches,
    If,
    For,
    While,
    /// Computes with a region that says how.
    Folds,
}

const ALL: Does = Does::Computes(0, usize::MAX);
const NOTHING: Does = Does::Computes(0, 0);
const FIRST: Does = Does::Computes(0, 1);

/// Operations of `tt` that compute their values from all operands (Triton 3.1 to 3.9, `TritonOps.td`).
const COMPUTING: [&str; 28] = [
    "bitcast",
    "broadcast",
    "cat",
    "clampf",
    "dot",
    "dot_scaled",
    "expand_dims",
    "fp_to_fp",
    "get_num_programs",
    "get_program_id",
    "histogram",
    "int_to_ptr",
    "join",
    "make_range",
    "mulhiui",
    "precise_divf",
    "precise_sqrt",
    "approx_divf",
    "ptr_to_int",
    "reshape",
    "splat",
    "split",
    "trans",
    "unsplat",
    "grid_dependency_wait",
    "grid_dependency_launch_dependents",
    "print",
    "assert",
];

impl Does {
    /// What an operation does that begins with this word; `text` is all of it.
    fn of(word: &str, text: &str) -> Does {
        let (dialect, name) = word.split_once('.').unwrap_or(("", word));
        match (dialect, name) {
            // A pointer and how far from it: where it points to, the pointer says.
            ("tt", "addptr" | "advance" | "gather" | "make_tensor_descriptor" | "make_tensor_ptr") => FIRST,
            ("tt", "load" | "descriptor_load" | "descriptor_gather") => Does::Reads,
            ("tt", "store" | "descriptor_store" | "descriptor_scatter") => Does::Writes,
            ("tt", "atomic_rmw") if text.starts_with("tt.atomic_rmw exch,") => Does::Exchanges,
            ("tt", "atomic_rmw" | "atomic_cas" | "descriptor_reduce") => Does::Updates,
            ("tt", "extern_elementwise" | "elementwise_inline_asm") if text.contains("pure = true") => {
                Does::Looks
            }
            ("tt", "reduce" | "scan" | "map_elementwise") => Does::Folds,
            ("tt", "return") | ("cf", "assert") | ("arith", "cmpi" | "cmpf") => NOTHING,
            ("tt", "reduce.return" | "scan.return" | "map_elementwise.return") | ("scf", "yield") => {
                Does::Ends(0)
            }
            ("tt", _) if COMPUTING.contains(&name) => ALL,
            // The first one says which of the others.
            ("arith", "select") => Does::Computes(1, usize::MAX),
            ("arith" | "math" | "ub", _) => ALL,
            ("scf", "condition") => Does::Ends(1),
            ("scf", "if") => Does::If,
            ("scf", "for") => Does::For,
            ("scf", "while") => Does::While,
            ("cf", "br" | "cond_br") => Does::Branches,
            _ => Does::Anything,
        }
    }
}

/// Where the values of a region go, or come from.
#[derive(Debug, Clone)]
enum Ends {
    /// Each has its own.
    Each(Vec<usize>),
    /// All are of one operation.
    All(usize),
    Unknown,
}

/// The lines between braces.
struct Region<'t> {
    /// The names that end with it.
    names: Vec<&'t str>,
    /// Where the values go that it ends with.
    gives: Ends,
    /// Where the arguments of its block come from.
    takes: Ends,
    /// The same of the region that follows in the same operation, where that is another one.
    next: Option<(Ends, Ends)>,
    is_conditional: bool,
    in_loop: Option<usize>,
}

/// An operation as a line has it.
struct Operation<'t> {
    text: &'t str,
    results: Vec<(&'t str, usize)>,
    has_region: bool,
}

/// What is known while the lines are read.
struct Reader<'t> {
    flow: Flow,
    /// The first node of each name, and how many there are.
    names: HashMap<&'t str, (usize, usize)>,
    regions: Vec<Region<'t>>,
    /// The arguments of the function's own blocks, and what branches give them.
    blocks: HashMap<&'t str, Vec<usize>>,
    branches: Vec<(&'t str, Vec<usize>)>,
    /// Atomic operations, with what they give.
    atomics: Vec<(usize, Option<usize>)>,
}

impl Flow {
    /// Reads the lines of a function behind its parameters, which have these names; nothing where they are not understood.
    pub(super) fn read(body: &str, parameters: &[&str]) -> Option<Flow> {
        let mut lines = body.lines().map(str::trim);
        lines.next().filter(|line| line.ends_with('{'))?;
        let mut reader = Reader {
            flow: Flow::default(),
            names: HashMap::new(),
            regions: Vec::new(),
            blocks: HashMap::new(),
            branches: Vec::new(),
            atomics: Vec::new(),
        };
        reader.open(Ends::Unknown, Ends::Unknown, None);
        for name in parameters {
            let node = reader.node(Vec::new());
            reader.name(name, node, 1)?;
        }
        for line in lines {
            reader.line(line)?;
            if reader.regions.is_empty() {
                return reader.end();
            }
        }
        None
    }
}

impl<'t> Reader<'t> {
    fn line(&mut self, line: &'t str) -> Option<()> {
        if let Some(block) = line.strip_prefix('^') {
            return self.block(block);
        }
        let has_region = line.ends_with('{');
        if line.starts_with('}') {
            return self.close(has_region);
        }
        let (results, text) = match line.split_once(" = ") {
            Some((results, text)) if results.starts_with('%') => (lines::results(results)?, text),
            _ => (Vec::new(), line),
        };
        // Each has a type in the line.
        let count = results.iter().try_fold(0_usize, |sum, (_, count)| sum.checked_add(*count))?;
        if count > line.len() {
            return None;
        }
        self.operation(&Operation { text, results, has_region })
    }

    fn operation(&mut self, it: &Operation<'t>) -> Option<()> {
        let word = it.text.split([' ', '(']).next().unwrap_or_default();
        let does = Does::of(word, it.text);
        if matches!(does, Does::If | Does::For | Does::While | Does::Folds) && !it.has_region {
            return None;
        }
        match does {
            Does::Branches => return self.branch(it.text),
            Does::For => return self.repeat(it),
            Does::While => return self.repeat_while(it),
            Does::If => {
                self.takes(it.text);
                let results = self.results(it, &[])?;
                self.open(Ends::Each(results), Ends::Unknown, None);
                self.regions.last_mut()?.is_conditional = true;
                return Some(());
            }
            Does::Ends(first) => {
                let values = self.takes(it.text);
                return self.give(values.get(first..)?);
            }
            Does::Computes(first, most) => {
                let operands = self.takes(it.text);
                let operands: Vec<usize> = operands.into_iter().skip(first).take(most).collect();
                self.results(it, &operands)?;
            }
            Does::Folds => {
                let operands = self.takes(it.text);
                let node = self.node(operands);
                self.results(it, &[node])?;
                self.open(Ends::All(node), Ends::All(node), None);
                return Some(());
            }
            Does::Reads | Does::Writes | Does::Updates | Does::Exchanges | Does::Looks | Does::Anything => {
                self.access(does, it)?;
            }
        }
        if it.has_region {
            // When and how often it runs is not known.
            self.open(Ends::Unknown, Ends::Unknown, None);
            self.regions.last_mut()?.is_conditional = true;
        }
        Some(())
    }

    /// An operation on memory, or one of which it is not known.
    fn access(&mut self, does: Does, it: &Operation<'t>) -> Option<()> {
        use Answer::{No, Unknown, Yes};
        let operands = self.takes(it.text);
        let (read, written) = match does {
            Does::Reads => (Yes, No),
            Does::Writes => (No, Yes),
            Does::Updates | Does::Exchanges => (Yes, Yes),
            Does::Looks => (Unknown, No),
            _ => (Unknown, Unknown),
        };
        let is_opaque = matches!(does, Does::Looks | Does::Anything);
        self.flow.is_order_open |= match does {
            Does::Anything => !operands.is_empty() || !it.results.is_empty(),
            // What is read again and again is waited for.
            Does::Reads => it.text.contains("isVolatile = true"),
            _ => false,
        };
        let address = if is_opaque { self.node(operands) } else { *operands.first()? };
        let given = self.results(it, &[])?;
        for node in &given {
            self.flow.nodes.get_mut(*node)?.is_anywhere = true;
        }
        if matches!(does, Does::Updates | Does::Exchanges) {
            let exchanged = if does == Does::Exchanges { Some(self.flow.accesses.len()) } else { None };
            self.atomics.extend(given.iter().map(|node| (*node, exchanged)));
        }
        let region = self.regions.last()?;
        let (is_conditional, in_loop) = (region.is_conditional, region.in_loop);
        self.flow.accesses.push(Access { address, read, written, is_opaque, is_conditional, in_loop });
        Some(())
    }

    /// `scf.for %i = %from to %to step %by iter_args(%p = %2, %q = %1) -> (...)`
    fn repeat(&mut self, it: &Operation<'t>) -> Option<()> {
        let (bounds, list) = match it.text.split_once(" iter_args(") {
            Some((bounds, rest)) => (bounds, rest.split_once(')')?.0),
            None => (it.text, ""),
        };
        let [counter, bounds @ ..]: [Use<'t>; 4] = uses(bounds).try_into().ok()?;
        let bounds = bounds.iter().map(|bound| self.take(bound)).collect();
        let (carried, nodes) = self.carried(list)?;
        let results = self.each_result(it)?;
        self.link(&nodes, &results)?;
        self.open_loop(Ends::Each(nodes.clone()), None);
        let node = self.node(bounds);
        self.name(counter.name, node, 1)?;
        carried.into_iter().zip(nodes).try_for_each(|(name, node)| self.name(name, node, 1))
    }

    /// `scf.while (%p = %2, %q = %1) : (...) -> (...)`: the first region goes on with what `scf.condition` says, the second one goes back.
    fn repeat_while(&mut self, it: &Operation<'t>) -> Option<()> {
        let list = it.text.strip_prefix("scf.while (");
        let list = list.map_or(Some(""), |list| Some(list.split_once(')')?.0))?;
        let (carried, nodes) = self.carried(list)?;
        let results = self.each_result(it)?;
        let second = (Ends::Each(nodes.clone()), Ends::Each(results.clone()));
        self.open_loop(Ends::Each(results), Some(second));
        carried.into_iter().zip(nodes).try_for_each(|(name, node)| self.name(name, node, 1))
    }

    /// The values that a loop carries round, each with a node that comes from what it begins with.
    fn carried(&mut self, list: &'t str) -> Option<(Vec<&'t str>, Vec<usize>)> {
        let pairs = lines::pairs(list)?;
        let nodes = pairs.iter().map(|(_, start)| self.take(start)).collect::<Vec<usize>>();
        let nodes = nodes.into_iter().map(|start| self.node(vec![start])).collect();
        Some((pairs.into_iter().map(|(name, _)| name).collect(), nodes))
    }

    /// `^bb0(%a: f32, %b: f32):`
    fn block(&mut self, text: &'t str) -> Option<()> {
        let (label, _) = text.split_once(['(', ':'])?;
        let names = uses(text);
        let takes = self.regions.last()?.takes.clone();
        let sources: Vec<Vec<usize>> = match &takes {
            Ends::Each(nodes) => nodes.iter().map(|node| vec![*node]).collect(),
            Ends::All(node) => vec![vec![*node]; names.len()],
            Ends::Unknown => vec![Vec::new(); names.len()],
        };
        if sources.len() != names.len() {
            return None;
        }
        let is_own = self.regions.len() == 1;
        let is_anywhere = matches!(takes, Ends::Unknown) && !is_own;
        let mut nodes = Vec::new();
        for (value, sources) in names.iter().zip(sources) {
            let node = self.node(sources);
            self.flow.nodes.get_mut(node)?.is_anywhere = is_anywhere;
            self.name(value.name, node, 1)?;
            nodes.push(node);
        }
        if let [function] = self.regions.as_mut_slice() {
            function.is_conditional = true;
            return self.blocks.insert(label, nodes).is_none().then_some(());
        }
        Some(())
    }

    /// `cf.cond_br %c, ^bb1(%x : f32), ^bb2`: in the function's own blocks alone.
    fn branch(&mut self, text: &'t str) -> Option<()> {
        let mut parts = text.split('^');
        self.takes(parts.next()?);
        for part in parts {
            let end = part.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(part.len());
            let label = &part[..end];
            self.flow.is_order_open |= self.blocks.contains_key(label);
            let values = self.takes(&part[end..]);
            self.branches.push((label, values));
        }
        (self.regions.len() == 1).then_some(())
    }

    /// What a region ends with.
    fn give(&mut self, values: &[usize]) -> Option<()> {
        match self.regions.last()?.gives.clone() {
            Ends::Each(nodes) => self.link(values, &nodes),
            Ends::All(node) => {
                self.flow.nodes.get_mut(node)?.sources.extend(values);
                Some(())
            }
            Ends::Unknown => Some(()),
        }
    }

    /// `}`, `} else {`, `} do {`: the region ends, and another one of the same operation may follow.
    fn close(&mut self, another: bool) -> Option<()> {
        let region = self.regions.pop()?;
        for name in &region.names {
            self.names.remove(name);
        }
        if another {
            let (gives, takes) = region.next.unwrap_or((region.gives, region.takes));
            self.regions.push(Region { names: Vec::new(), gives, takes, next: None, ..region });
        }
        Some(())
    }

    fn open(&mut self, gives: Ends, takes: Ends, next: Option<(Ends, Ends)>) {
        let outer = self.regions.last();
        let is_conditional = outer.is_some_and(|outer| outer.is_conditional);
        let in_loop = outer.and_then(|outer| outer.in_loop);
        self.regions.push(Region { names: Vec::new(), gives, takes, next, is_conditional, in_loop });
    }

    fn open_loop(&mut self, gives: Ends, next: Option<(Ends, Ends)>) {
        self.open(gives, Ends::Unknown, next);
        if let Some(region) = self.regions.last_mut().filter(|region| region.in_loop.is_none()) {
            region.in_loop = Some(self.flow.loops);
            self.flow.loops += 1;
        }
    }

    /// What an operation gives, all of it from these. Several values have the operation between: each with each would be too many.
    fn results(&mut self, it: &Operation<'t>, sources: &[usize]) -> Option<Vec<usize>> {
        let is_one = matches!(it.results.as_slice(), [] | [(_, 1)]);
        let sources = if is_one { sources.to_vec() } else { vec![self.node(sources.to_vec())] };
        let nodes = self.each_result(it)?;
        for node in &nodes {
            self.flow.nodes.get_mut(*node)?.sources.clone_from(&sources);
        }
        Some(nodes)
    }

    /// A node for each value that an operation gives.
    fn each_result(&mut self, it: &Operation<'t>) -> Option<Vec<usize>> {
        let mut nodes = Vec::new();
        for (name, count) in &it.results {
            let first = self.flow.nodes.len();
            nodes.extend((0..*count).map(|_| self.node(Vec::new())));
            self.name(name, first, *count)?;
        }
        Some(nodes)
    }

    /// Each of these goes into its own.
    fn link(&mut self, from: &[usize], to: &[usize]) -> Option<()> {
        for (from, to) in from.iter().zip(to) {
            self.flow.nodes.get_mut(*to)?.sources.push(*from);
        }
        (from.len() == to.len()).then_some(())
    }

    fn node(&mut self, sources: Vec<usize>) -> usize {
        self.flow.nodes.push(Node { sources, ..Node::default() });
        self.flow.nodes.len() - 1
    }

    /// Names a value until the region ends. No text has two of one name in one place.
    fn name(&mut self, name: &'t str, first: usize, count: usize) -> Option<()> {
        self.regions.last_mut()?.names.push(name);
        self.names.insert(name, (first, count)).is_none().then_some(())
    }

    fn takes(&mut self, text: &'t str) -> Vec<usize> {
        uses(text).iter().map(|value| self.take(value)).collect()
    }

    /// The node of a value that something takes; one that nothing gives may be anything.
    fn take(&mut self, value: &Use<'t>) -> usize {
        let known = self.names.get(value.name).filter(|(_, count)| value.at < *count);
        let known = known.map(|(first, _)| first + value.at);
        let node = known.unwrap_or_else(|| self.node(Vec::new()));
        if let Some(it) = self.flow.nodes.get_mut(node) {
            it.is_used = true;
            it.is_anywhere |= known.is_none();
        }
        node
    }

    /// What is known when the function has ended.
    fn end(mut self) -> Option<Flow> {
        for (label, values) in std::mem::take(&mut self.branches) {
            let nodes = self.blocks.get(label)?.clone();
            self.link(&values, &nodes)?;
        }
        for (node, exchanged) in &self.atomics {
            let is_used = self.flow.nodes.get(*node)?.is_used;
            self.flow.is_order_open |= is_used;
            // Where nobody asks what was there it is only written.
            if let (Some(access), false) = (exchanged, is_used) {
                self.flow.accesses.get_mut(*access)?.read = Answer::No;
            }
        }
        Some(self.flow)
    }
}
