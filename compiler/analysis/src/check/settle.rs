//! Claims, settled.
//!
//! Owns how often something is proved: claims that say the same of the same cases are one, what holds without a guard holds with
//! it, a case that refutes without a guard is tried first with it, and claims about the same cases share what is known of these.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use cubinder_expr::Expr;
use cubinder_launch::proof::{Case, Domain, Verdict};

use super::claim::{Claim, What, When, oblige, told_once, verdict};
use super::formula::{element_is_within, feed, is_there, is_within};
use super::site::Site;
use super::volume::{is_beyond, taken};
use super::witness::outside;
use super::{Checked, Obligation};

/// Claims of several rows that are settled together.
pub(super) struct Group {
    pub(super) claim: Claim,
    pub(super) rows: Vec<usize>,
    pub(super) settled: Settled,
}

/// What is known of a claim.
#[derive(Clone)]
pub(super) struct Settled {
    pub(super) verdict: Verdict,
    /// No case is as it must be.
    pub(super) is_always_wrong: bool,
    /// No case is known against it but those that TensorRT does not take.
    pub(super) is_beyond: bool,
    /// It is proved for the tensors that TensorRT takes.
    is_proved_for_taken: bool,
}

impl Settled {
    fn of(verdict: Verdict) -> Settled {
        Settled { verdict, is_always_wrong: false, is_beyond: false, is_proved_for_taken: false }
    }

    /// A case that people should hear of.
    pub(super) fn told(&self) -> Option<&Case> {
        match &self.verdict {
            Verdict::Refuted(case) if !self.is_beyond => Some(case),
            _ => None,
        }
    }
}

/// The cases of claims: guards and other conditions that are alike are one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Cases {
    BeforeOutputs,
    All,
    Guarded(usize),
}

/// Cases, and those of them with tensors that TensorRT takes.
struct Domains<'p> {
    all: Domain<'p>,
    taken: Domain<'p>,
    /// All, for looking where only tensors can be that TensorRT does not take.
    beyond: Domain<'p>,
}

/// Settles claims: obligations, an error for what is always wrong, a warning for what a case refutes that can be met.
/// Of rows that no node can have nothing is claimed: it would be proved and tell nothing.
pub(super) fn settle(site: &Site<'_>, mut claims: Vec<Claim>, checked: &mut Checked) {
    claims.retain(|claim| claim.of_row().is_none_or(|row| !site.has_no_node(row)));
    if claims.is_empty() {
        return;
    }
    let mut groups = grouped(site, claims);
    let mut order: Vec<(Cases, usize)> = groups.iter().map(|(_, cases)| *cases).zip(0..).collect();
    order.sort();
    let plugin = taken(site.slim());
    let all = site.domain();
    let beyond = all.clone().sharing(site.beyond);
    let whole = Domains { all, taken: site.domain_of(&plugin).sharing(site.pool), beyond };
    let mut known = Known::default();
    // What is known of the cases of one guard is kept until the last claim about them.
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(_, first)) = same.first() else { continue };
        let claim = &groups[first].0.claim;
        let all = claim.narrow(site, whole.all.clone());
        let beyond = all.clone().sharing(site.beyond);
        let domains = Domains { all, taken: claim.narrow(site, whole.taken.clone()), beyond };
        for &(cases, at) in same {
            let (group, _) = &mut groups[at];
            group.settled = match cases {
                Cases::BeforeOutputs => settle_one(&domains, &group.claim, None),
                Cases::All => known.without_guard(&whole, &group.claim),
                Cases::Guarded(_) => {
                    let wider = known.without_guard(&whole, &group.claim);
                    settle_one(&domains, &group.claim, Some(wider))
                }
            };
        }
    }
    let groups: Vec<Group> = groups.into_iter().map(|(group, _)| group).collect();
    checked.diagnostics.extend(told_once(site, &groups));
    oblige_all(site, groups, &mut checked.obligations);
}

/// Claims that say the same of the same cases together, in the order of their first.
fn grouped(site: &Site<'_>, claims: Vec<Claim>) -> Vec<(Group, Cases)> {
    let mut numbers = Numbers::default();
    let mut cases = |claim: &Claim| match (claim.when, claim.conditions(site)) {
        (When::BeforeOutputs, _) => Cases::BeforeOutputs,
        (_, conditions) if conditions.is_empty() => Cases::All,
        (_, conditions) => Cases::Guarded(numbers.of(conditions)),
    };
    let mut groups: Vec<(Group, Cases)> = Vec::new();
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for claim in claims {
        let cases = cases(&claim);
        let mut hasher = DefaultHasher::new();
        (cases, claim.rule, &claim.span.range, &claim.subject).hash(&mut hasher);
        feed(&claim.expr, &mut hasher);
        let alike = places.entry(hasher.finish()).or_default();
        let is_same = |at: &usize| {
            groups.get(*at).is_some_and(|(Group { claim: known, .. }, known_cases)| {
                *known_cases == cases
                    && known.rule == claim.rule
                    && known.span == claim.span
                    && known.subject == claim.subject
                    && known.what == claim.what
                    && known.expr == claim.expr
            })
        };
        match alike.iter().copied().find(is_same) {
            Some(at) => groups[at].0.rows.extend(claim.row()),
            None => {
                alike.push(groups.len());
                let rows = claim.row().into_iter().collect();
                groups.push((Group { claim, rows, settled: Settled::of(Verdict::Open) }, cases));
            }
        }
    }
    groups
}

/// Gives the same number to conditions that are alike.
#[derive(Default)]
struct Numbers<'s> {
    known: HashMap<u64, Vec<(Vec<&'s Expr>, usize)>>,
    count: usize,
}

impl<'s> Numbers<'s> {
    fn of(&mut self, conditions: Vec<&'s Expr>) -> usize {
        let mut hasher = DefaultHasher::new();
        conditions.iter().for_each(|condition| feed(condition, &mut hasher));
        let alike = self.known.entry(hasher.finish()).or_default();
        if let Some((_, number)) = alike.iter().find(|(other, _)| *other == conditions) {
            return *number;
        }
        alike.push((conditions, self.count));
        self.count += 1;
        self.count - 1
    }
}

/// What is known of claims where no guard narrows the cases.
#[derive(Default)]
struct Known {
    by_hash: HashMap<u64, Vec<(What, Expr, Settled)>>,
}

impl Known {
    fn without_guard(&mut self, whole: &Domains<'_>, claim: &Claim) -> Settled {
        let mut hasher = DefaultHasher::new();
        feed(&claim.expr, &mut hasher);
        let alike = self.by_hash.entry(hasher.finish()).or_default();
        let is_same = |(what, expr, _): &&(What, Expr, Settled)| *what == claim.what && *expr == claim.expr;
        if let Some((.., settled)) = alike.iter().find(is_same) {
            return settled.clone();
        }
        let settled = settle_one(whole, claim, None);
        alike.push((claim.what.clone(), claim.expr.clone(), settled.clone()));
        settled
    }
}

/// Settles one claim; `wider` is what is known of it for more cases than these.
fn settle_one(domains: &Domains<'_>, claim: &Claim, wider: Option<Settled>) -> Settled {
    if let (What::Within(allowed), Some(value)) = (&claim.what, claim.expr.constant()) {
        let is_right = allowed.contains(value);
        let case = Case::default();
        let verdict = if is_right { Verdict::Proved } else { Verdict::Refuted(case) };
        return Settled { is_always_wrong: !is_right, ..Settled::of(verdict) };
    }
    let all = &domains.all;
    if let What::Misfit(_) = claim.what {
        return Settled { is_always_wrong: true, ..Settled::of(verdict(all, claim)) };
    }
    let verdict = match wider.as_ref().map(|wider| (&wider.verdict, wider.is_proved_for_taken)) {
        None => match verdict(&all.clone().without_search(), claim) {
            // What only tensors can break that TensorRT does not take is not worth the search for them.
            Verdict::Open if verdict(&domains.taken.clone().without_search(), claim) == Verdict::Proved => {
                return Settled { is_beyond: true, is_proved_for_taken: true, ..Settled::of(Verdict::Open) };
            }
            Verdict::Open => verdict(all, claim),
            known => known,
        },
        Some((Verdict::Proved, _)) => return Settled::of(Verdict::Proved),
        Some((Verdict::Refuted(case), false)) => verdict(&all.clone().trying(case.clone()), claim),
        Some((Verdict::Refuted(case), true)) => {
            match verdict(&all.clone().trying(case.clone()).without_search(), claim) {
                Verdict::Open => verdict(&domains.beyond, claim),
                known => known,
            }
        }
        Some((Verdict::Open, _)) => verdict(&all.clone().without_search(), claim),
    };
    let wider = wider.unwrap_or(Settled::of(Verdict::Open));
    let Verdict::Refuted(case) = verdict else {
        let is_beyond = wider.is_proved_for_taken && verdict == Verdict::Open;
        return Settled { is_beyond, ..Settled::of(verdict) };
    };
    let is_always_wrong = wider.is_always_wrong
        || right(claim, &case)
            .is_some_and(|right| domains.all.clone().hasty().never(&right) == Verdict::Proved);
    let is_taken = is_always_wrong || !is_beyond(&case);
    let settled = Settled { is_always_wrong, ..Settled::of(Verdict::Refuted(case)) };
    match is_taken {
        true => settled,
        false if wider.is_proved_for_taken => {
            Settled { is_beyond: true, is_proved_for_taken: true, ..settled }
        }
        false if wider.is_beyond => settle_taken(&domains.taken.clone().without_search(), claim, settled),
        false => settle_taken(&domains.taken, claim, settled),
    }
}

/// Looks for a case among the tensors that TensorRT takes, where the one that is known is not among them.
fn settle_taken(domain: &Domain<'_>, claim: &Claim, beyond: Settled) -> Settled {
    match verdict(domain, claim) {
        Verdict::Refuted(case) => Settled::of(Verdict::Refuted(case)),
        other => Settled { is_beyond: true, is_proved_for_taken: other == Verdict::Proved, ..beyond },
    }
}

/// What a case would have to meet to be as it must be, where another case is not.
fn right(claim: &Claim, case: &Case) -> Option<Expr> {
    match &claim.what {
        What::Within(allowed) => Some(match outside(&claim.expr, case, *allowed) {
            Some((Some(index), _)) => element_is_within(&claim.expr, index, *allowed),
            _ => is_within(&claim.expr, *allowed),
        }),
        What::Holds(condition) => Some(condition.clone()),
        What::HasValue => Some(is_there(&claim.expr)),
        What::Fits(_) | What::Misfit(_) => None,
    }
}

/// One obligation for a place and a statement: the worst over the rows.
fn oblige_all(site: &Site<'_>, groups: Vec<Group>, obligations: &mut Vec<Obligation>) {
    let mut places: HashMap<(usize, usize, String), Vec<usize>> = HashMap::new();
    for group in groups {
        let obligation = oblige(site, group);
        let range = &obligation.span.range;
        let alike = places.entry((range.start, range.end, obligation.statement.clone())).or_default();
        let is_same = |at: &usize| {
            obligations
                .get(*at)
                .is_some_and(|known| known.rule == obligation.rule && known.span == obligation.span)
        };
        match alike.iter().copied().find(is_same) {
            Some(at) if obligation.severity() > obligations[at].severity() => obligations[at] = obligation,
            Some(_) => {}
            None => {
                alike.push(obligations.len());
                obligations.push(obligation);
            }
        }
    }
}
