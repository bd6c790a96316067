//! Proofs about random manifests hold for every node of their enumerable domain.

mod generate;
mod meaning;
mod tree;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};

use cubinder_analysis::check;
use cubinder_expr::{Expr, evaluate};
use cubinder_expr::{Interval, Value};
use cubinder_launch::proof::{Case, Domain, Greatest, Verdict};
use cubinder_manifest::resolve::{self, Resolved};
use cubinder_model::Variant;
use cubinder_source::diagnostic::Source;

use crate::Target;
use generate::{Manifest, Role, Size, Slot};
use meaning::Meaning;
use tree::Tree;
use world::{HELD, OUTPUT, World};

/// Random manifests and the proofs about them.
pub static TARGET: Target =
    Target::new("prover", run, seeds, include_str!("../../../dictionaries/prover.dict"));

/// Without the slow search of counterexamples.
const SMALL: Size = Size { number: 4, length: 3, depth: 5, worlds: 2_000, searches: false };
const LARGE: Size = Size { worlds: 6_000, searches: true, ..SMALL };

/// Bytes of `f32` fit 64 bits.
const MOST_ELEMENTS: i128 = i64::MAX as i128 / 4;

/// Statistics.
#[derive(Debug, Default)]
pub struct Counts {
    /// Accepted by the compiler.
    pub manifests: AtomicU64,
    /// Proved claims.
    pub proved: AtomicU64,
    /// Refuted claims.
    pub refuted: AtomicU64,
    /// The tests' evaluations.
    pub evaluations: AtomicU64,
}

fn add(count: &AtomicU64, more: usize) {
    count.fetch_add(more as u64, Ordering::Relaxed);
}

fn run(bytes: &[u8]) {
    try_bytes(bytes, SMALL, &Counts::default());
}

/// Checks these bytes' manifest; `thorough` runs all of `cubinder check`.
pub fn check_bytes(bytes: &[u8], thorough: bool, counts: &Counts) {
    try_bytes(bytes, if thorough { LARGE } else { SMALL }, counts);
}

/// Returns a seed's bytes (splitmix64).
pub fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)).to_le_bytes()
    };
    std::iter::repeat_with(word).take(48).flatten().collect()
}

fn seeds() -> Vec<Vec<u8>> {
    (0..20).map(bytes).collect()
}

struct Node {
    world: World,
    has_output: bool,
    meanings: Vec<Option<Meaning>>,
}

impl Node {
    fn new(manifest: &Manifest, mut world: World) -> Node {
        let shape = manifest.with_role(Role::Shape).find_map(|slot| slot.tree.meaning(&world));
        let dims = shape.map(|shape| shape.list().iter().map(|dim| dim.int() as i64).collect::<Vec<i64>>());
        let (low, high) = manifest.limit;
        let allowed = dims.filter(|dims| {
            let count = dims.iter().fold(1, |count: i128, &dim| count.saturating_mul(dim.into()));
            dims.len() <= 8 && count <= MOST_ELEMENTS && dims.iter().all(|dim| (low..=high).contains(dim))
        });
        let has_output = allowed.is_some();
        world.shapes[OUTPUT] = allowed.unwrap_or_default();
        let meanings = manifest.slots.iter().map(|slot| slot.tree.meaning(&world)).collect();
        Node { world, has_output, meanings }
    }

    fn meaning(&self, slot: &Slot) -> Option<&Meaning> {
        self.meanings.get(slot.index).and_then(Option::as_ref)
    }

    fn is_true(&self, slot: &Slot) -> bool {
        self.meaning(slot) == Some(&Meaning::Bool(true))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Claim {
    Always,
    Never,
    Within(Interval),
    HasValue,
}

impl Claim {
    fn holds(self, meaning: Option<&Meaning>) -> bool {
        let among = |allowed: Interval, value: &Meaning| {
            i64::try_from(value.int()).is_ok_and(|value| allowed.contains(value))
        };
        match (self, meaning) {
            (Claim::Always, meaning) => meaning == Some(&Meaning::Bool(true)),
            (Claim::Never, meaning) => meaning != Some(&Meaning::Bool(true)),
            (Claim::HasValue, meaning) => meaning.is_some(),
            (Claim::Within(_), None) => true,
            (Claim::Within(allowed), Some(Meaning::List(items))) => {
                items.iter().all(|item| among(allowed, item))
            }
            (Claim::Within(allowed), Some(value)) => among(allowed, value),
        }
    }

    fn verdict(self, domain: &Domain<'_>, expr: &Expr) -> Verdict {
        match self {
            Claim::Always => domain.always(expr),
            Claim::Never => domain.never(expr),
            Claim::Within(allowed) => domain.within(expr, allowed),
            Claim::HasValue => domain.has_value(expr),
        }
    }
}

struct Trial<'m> {
    manifest: &'m Manifest,
    size: Size,
    resolved: &'m Resolved,
    nodes: Vec<Node>,
    counts: &'m Counts,
}

fn try_bytes(bytes: &[u8], size: Size, counts: &Counts) {
    let manifest = &generate::manifest(bytes, size);
    let source = Source::new("manifests/prover.toml", manifest.text.as_str());
    let Ok(resolved) = resolve::read(&source) else { return };
    add(&counts.manifests, 1);
    let require: Vec<&Tree> = manifest.with_role(Role::Require).map(|slot| &slot.tree).collect();
    let is_allowed =
        |world: &World| require.iter().all(|tree| tree.meaning(world) == Some(Meaning::Bool(true)));
    let worlds = manifest.choices.worlds(size.worlds).filter(is_allowed);
    let nodes: Vec<Node> = worlds.map(|world| Node::new(manifest, world)).collect();
    add(&counts.evaluations, nodes.len() * manifest.slots.len());
    let trial = Trial { manifest, size, resolved: &resolved, nodes, counts };
    trial.evaluation_agrees();
    trial.claims();
    if size.searches {
        trial.obligations();
    }
}

impl Trial<'_> {
    fn slot(&self, role: Role) -> &Slot {
        self.manifest.with_role(role).next().expect("a manifest has each of them")
    }

    fn fail(&self, what: &str, slot: &Slot, world: &World) -> ! {
        panic!("{what}: `{}` in {world:?}\n{}", slot.tree.text(), self.manifest.text)
    }

    fn compiled(&self) -> Vec<(&Slot, Expr)> {
        let plugin = &self.resolved.draft.plugin;
        let mut all: Vec<(&Slot, Expr)> = Vec::new();
        let required = self.manifest.with_role(Role::Require).zip(&plugin.require);
        all.extend(required.map(|(slot, requirement)| (slot, requirement.expr.clone())));
        all.extend(plugin.outputs.iter().map(|output| (self.slot(Role::Shape), output.shape.clone())));
        for (row, variant) in plugin.variants.iter().enumerate() {
            let guard = variant.guard.as_ref().filter(|_| self.variant_of(row).is_some());
            all.extend(guard.and_then(|it| Some((self.variant_of(row)?, it.expr.clone()))));
            all.extend(self.launched(variant));
        }
        all
    }

    /// By ID: the compiler drops variants that cannot run.
    fn variant_of(&self, row: usize) -> Option<&Slot> {
        self.manifest.with_role(Role::Guard(self.resolved.draft.plugin.variants.get(row)?.id)).next()
    }

    fn launched(&self, variant: &Variant) -> Vec<(&Slot, Expr)> {
        let mut all = Vec::new();
        for step in &variant.steps {
            let when = self.manifest.with_role(Role::When).next().zip(step.when.as_ref());
            all.extend(when.map(|(slot, when)| (slot, when.expr.clone())));
        }
        for launch in variant.launches() {
            all.push((self.slot(Role::Grid), launch.grid[0].clone()));
            all.push((self.slot(Role::Block), launch.block[0].clone()));
            all.push((self.slot(Role::Shared), launch.shared_bytes.clone()));
        }
        all
    }

    fn evaluation_agrees(&self) {
        for (slot, expr) in self.compiled() {
            let early = matches!(slot.role, Role::Require | Role::Shape);
            for node in self.nodes.iter().filter(|node| early || node.has_output) {
                let expected = node.meaning(slot);
                let found = evaluate(&expr, &node.world).ok();
                if found.as_ref().map(of_value).as_ref() != expected {
                    self.fail(&format!("evaluates to {found:?} instead of {expected:?}"), slot, &node.world);
                }
            }
        }
    }

    fn compare(
        &self,
        what: &str,
        claim: Claim,
        verdict: &Verdict,
        slot: &Slot,
        domain: impl Fn(&Node) -> bool,
    ) {
        match verdict {
            Verdict::Proved => {
                add(&self.counts.proved, 1);
                for node in self.nodes.iter().filter(|node| domain(node)) {
                    if !claim.holds(node.meaning(slot)) {
                        self.fail(&format!("{what}: {claim:?} was proved but is false"), slot, &node.world);
                    }
                }
            }
            Verdict::Refuted(case) => self.compare_case(what, claim, case, slot, domain),
            Verdict::Open => {}
        }
    }

    fn compare_case(
        &self,
        what: &str,
        claim: Claim,
        case: &Case,
        slot: &Slot,
        domain: impl Fn(&Node) -> bool,
    ) {
        let mut reads_addresses = false;
        let mut visit = |tree: &Tree| reads_addresses |= matches!(tree, Tree::Aligned(..));
        self.manifest.slots.iter().for_each(|slot| slot.tree.visit(&mut visit));
        let Some(world) = World::of(case, &["a", "b"]).filter(|_| !reads_addresses) else { return };
        add(&self.counts.refuted, 1);
        let node = Node::new(self.manifest, world);
        if !self.manifest.with_role(Role::Require).all(|rule| node.is_true(rule)) || !domain(&node) {
            self.fail(
                &format!("{what} is refuted by a node that the manifest does not allow"),
                slot,
                &node.world,
            );
        }
        if claim.holds(node.meaning(slot)) {
            self.fail(&format!("{what} is refuted by a node that meets {claim:?}"), slot, &node.world);
        }
    }

    fn whole(&self) -> Domain<'_> {
        let whole = Domain::new(&self.resolved.draft.plugin).hasty();
        if self.size.searches { whole } else { whole.without_search() }
    }

    fn claims(&self) {
        let plugin = &self.resolved.draft.plugin;
        let whole = self.whole();
        for (slot, expr) in self.compiled() {
            match slot.role {
                Role::Require => {}
                Role::Shape => {
                    self.of_expression(
                        "before outputs",
                        &whole.clone().before_outputs(),
                        slot,
                        &expr,
                        |_| true,
                    );
                }
                _ => self.of_expression("all nodes", &whole, slot, &expr, |node| node.has_output),
            }
        }
        for (row, variant) in plugin.variants.iter().enumerate() {
            let (Some(guard), Some(of_guard)) = (&variant.guard, self.variant_of(row)) else { continue };
            let domain = whole.clone().assuming(&guard.expr);
            for (slot, expr) in self.launched(variant) {
                self.of_expression("where the guard holds", &domain, slot, &expr, |node| {
                    node.has_output && node.is_true(of_guard)
                });
            }
        }
        self.near_a_node();
    }

    fn of_expression(
        &self,
        what: &str,
        domain: &Domain<'_>,
        slot: &Slot,
        expr: &Expr,
        member: impl Fn(&Node) -> bool + Copy,
    ) {
        let is_bool = matches!(slot.role, Role::Guard(_) | Role::When | Role::Require);
        let mut claims = vec![Claim::HasValue];
        if is_bool {
            claims.extend([Claim::Always, Claim::Never]);
        } else {
            let ends = [(0, i64::MAX), (i64::MIN, 0), (1, 4), (-1, 8)];
            claims.extend(ends.map(|(min, max)| Claim::Within(Interval { min, max })));
        }
        for claim in claims {
            self.compare(what, claim, &claim.verdict(domain, expr), slot, member);
        }
        if is_bool && domain.proves(expr) {
            self.compare(what, Claim::Always, &Verdict::Proved, slot, member);
        }
        if !is_bool && slot.role != Role::Shape {
            let claim = match domain.greatest(expr) {
                Greatest::Nothing => Some(Claim::Never),
                Greatest::Value(max) => Some(Claim::Within(Interval { min: i64::MIN, max })),
                Greatest::Unknown => None,
            };
            let nothing = claim == Some(Claim::Never);
            let member = |node: &Node| member(node) && (!nothing || node.meaning(slot).is_some());
            if nothing && self.nodes.iter().any(member) {
                panic!("{what}: `{}` has a value\n{}", slot.tree.text(), self.manifest.text);
            }
            if let Some(claim) = claim.filter(|_| !nothing) {
                self.compare(what, claim, &Verdict::Proved, slot, member);
            }
        }
    }

    fn near_a_node(&self) {
        let Some(centre) = self.nodes.get(self.nodes.len() / 2) else { return };
        let shapes = &centre.world.shapes[..=HELD];
        let near = |dim: i64| Interval { min: dim / 2, max: dim };
        let profile: Vec<Vec<Interval>> =
            shapes.iter().map(|shape| shape.iter().map(|&dim| near(dim)).collect()).collect();
        let domain = self.whole().with_attributes(&centre.world.values).with_profile(&profile);
        let member = |node: &Node| {
            let within = |(shape, profile): (&Vec<i64>, &Vec<Interval>)| {
                shape.len() == profile.len()
                    && shape.iter().zip(profile).all(|(dim, near)| near.contains(*dim))
            };
            node.has_output
                && node.world.values == centre.world.values
                && node.world.shapes[..=HELD].iter().zip(&profile).all(within)
        };
        for (slot, expr) in self.compiled() {
            if !matches!(slot.role, Role::Require | Role::Shape) {
                self.of_expression("near one node", &domain, slot, &expr, member);
            }
        }
    }

    fn obligations(&self) {
        let checked = check::check(self.resolved, &[], self.resolved.manifest.compile.route());
        let guards: Vec<&Slot> =
            self.manifest.slots.iter().filter(|slot| matches!(slot.role, Role::Guard(_))).collect();
        let chosen = |node: &Node| node.has_output && guards.iter().any(|guard| node.is_true(guard));
        let done = |node: &Node| self.manifest.with_role(Role::When).all(|when| node.is_true(when));
        let runs =
            |node: &Node| node.meaning(self.slot(Role::Grid)).is_some_and(|grid| *grid != Meaning::Int(0));
        for obligation in checked.obligations.iter().filter(|it| it.verdict == Verdict::Proved) {
            let place = obligation.span.range.start;
            let Some(slot) = self.manifest.slots.iter().find(|slot| slot.range.contains(&place)) else {
                continue;
            };
            let words: Vec<&str> = obligation.statement.split(' ').collect();
            let claim = match words.as_slice() {
                [.., "has", "a", "value"] => Claim::HasValue,
                [.., "is", "from", min, "to", max] => match (min.parse(), max.parse()) {
                    (Ok(min), Ok(max)) => Claim::Within(Interval { min, max }),
                    _ => continue,
                },
                _ => continue,
            };
            let domain = |node: &Node| match slot.role {
                Role::Require => false,
                Role::Shape => true,
                Role::Guard(_) => node.has_output,
                Role::When => chosen(node),
                Role::Grid => chosen(node) && done(node),
                Role::Block | Role::Shared | Role::Argument => chosen(node) && done(node) && runs(node),
            };
            self.compare(&obligation.statement, claim, &Verdict::Proved, slot, domain);
        }
    }
}

fn of_value(value: &Value) -> Meaning {
    match value {
        Value::Int(value) => Meaning::Int((*value).into()),
        Value::Float(value) => Meaning::Float(*value),
        Value::Bool(value) => Meaning::Bool(*value),
        Value::Str(value) => Meaning::Text(value.clone()),
        Value::Array(items) => Meaning::List(items.iter().map(of_value).collect()),
    }
}
