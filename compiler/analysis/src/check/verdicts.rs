//! Decides claims. Equal claims are proved once; proofs and counterexamples without a guard are reused with it; equal
//! domains share facts.

use std::collections::HashMap;

use cubinder_expr::Expr;
use cubinder_launch::proof::{Case, Domain, Verdict};

use super::claim::{Claim, Group, Predicate, Settled, When};
use super::draft_view::DraftView;
use super::formula::{ExprKey, element_is_within, is_there, is_within};
use super::report::{oblige, report};
use super::volume::{is_beyond, taken};
use super::witness::outside;
use super::{CheckedDraft, Obligation};

/// A claim's domain, shared by equal guards and conditions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Cases {
    BeforeOutputs,
    All,
    Guarded(usize),
}

struct Domains<'p> {
    all: Domain<'p>,
    taken: Domain<'p>,
    beyond: Domain<'p>,
}

impl<'p> Domains<'p> {
    fn new(view: &'p DraftView<'_>, all: Domain<'p>, taken: Domain<'p>) -> Domains<'p> {
        Domains { beyond: all.clone().sharing(&view.pools.beyond), all, taken }
    }
}

/// Decides claims: an obligation each, an error if always false, a warning for a counterexample that TensorRT accepts.
pub(super) fn decide(view: &DraftView<'_>, mut claims: Vec<Claim>, checked: &mut CheckedDraft) {
    claims.retain(|claim| claim.conditioned_row().is_none_or(|row| !view.has_no_node(row)));
    let (mut groups, cases) = grouped(view, &claims);
    let mut order: Vec<(Cases, usize)> = cases.into_iter().zip(0..).collect();
    order.sort();
    let plugin = taken(view.slim());
    let whole = Domains::new(view, view.domain(), view.domain_of(&plugin).sharing(&view.pools.proofs));
    let mut unguarded: HashMap<ExprKey<'_>, Vec<(&Predicate, Settled)>> = HashMap::new();
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(_, first)) = same.first() else { continue };
        let claim = groups[first].claim;
        let (all, taken) = (whole.all.clone(), whole.taken.clone());
        let narrowed = Domains::new(view, view.narrow(claim, all), view.narrow(claim, taken));
        for &(cases, index) in same {
            let claim = groups[index].claim;
            if cases == Cases::BeforeOutputs {
                groups[index].settled = settle_one(&narrowed, claim, None);
                continue;
            }
            let alike = unguarded.entry(ExprKey(vec![&claim.term.expr])).or_default();
            let known = alike.iter().find(|(predicate, _)| **predicate == claim.predicate);
            let wider = known.map_or_else(|| settle_one(&whole, claim, None), |(_, known)| known.clone());
            if known.is_none() {
                alike.push((&claim.predicate, wider.clone()));
            }
            groups[index].settled = match cases {
                Cases::Guarded(_) => settle_one(&narrowed, claim, Some(wider)),
                _ => wider,
            };
        }
    }
    checked.diagnostics.extend(report(view, &groups));
    oblige_all(view, groups, &mut checked.obligations);
}

fn grouped<'c>(view: &DraftView<'_>, claims: &'c [Claim]) -> (Vec<Group<'c>>, Vec<Cases>) {
    let mut numbers: HashMap<ExprKey<'_>, usize> = HashMap::new();
    let (mut groups, mut all_cases): (Vec<Group<'_>>, Vec<Cases>) = (Vec::new(), Vec::new());
    let mut places: HashMap<_, Vec<usize>> = HashMap::new();
    for claim in claims {
        let cases = match (claim.term.when, view.conditions(claim)) {
            (When::BeforeOutputs, _) => Cases::BeforeOutputs,
            (_, conditions) if conditions.is_empty() => Cases::All,
            (_, conditions) => {
                let next = numbers.len();
                Cases::Guarded(*numbers.entry(ExprKey(conditions)).or_insert(next))
            }
        };
        let term = &claim.term;
        let key = (cases, claim.rule, &term.span.range, &term.subject, ExprKey(vec![&term.expr]));
        let alike = places.entry(key).or_default();
        match alike.iter().find(|index| groups[**index].claim.predicate == claim.predicate) {
            Some(index) => groups[*index].rows.extend(claim.row()),
            None => {
                alike.push(groups.len());
                let rows = claim.row().into_iter().collect();
                groups.push(Group { claim, rows, settled: Verdict::Open.into() });
                all_cases.push(cases);
            }
        }
    }
    (groups, all_cases)
}

/// `wider` is the result for a wider domain.
fn settle_one(domains: &Domains<'_>, claim: &Claim, wider: Option<Settled>) -> Settled {
    if let (Predicate::Within(allowed), Some(value)) = (&claim.predicate, claim.term.expr.constant()) {
        let is_right = allowed.contains(value);
        let case = Case::default();
        let verdict = if is_right { Verdict::Proved } else { Verdict::Refuted(case) };
        return Settled { is_always_wrong: !is_right, ..Settled::from(verdict) };
    }
    let all = &domains.all;
    if let Predicate::Misfit(_) = claim.predicate {
        return Settled { is_always_wrong: true, ..Settled::from(claim.verdict(all)) };
    }
    let verdict = match wider.as_ref().map(|wider| (&wider.verdict, wider.is_proved_for_taken)) {
        None => match claim.verdict(&all.clone().without_search()) {
            // Only tensors that TensorRT rejects can refute it.
            Verdict::Open if claim.verdict(&domains.taken.clone().without_search()) == Verdict::Proved => {
                return Settled {
                    is_beyond: true,
                    is_proved_for_taken: true,
                    ..Settled::from(Verdict::Open)
                };
            }
            Verdict::Open => claim.verdict(all),
            known => known,
        },
        Some((Verdict::Proved, _)) => return Settled::from(Verdict::Proved),
        Some((Verdict::Refuted(case), false)) => claim.verdict(&all.clone().trying(case.clone())),
        Some((Verdict::Refuted(case), true)) => {
            match claim.verdict(&all.clone().trying(case.clone()).without_search()) {
                Verdict::Open => claim.verdict(&domains.beyond),
                known => known,
            }
        }
        Some((Verdict::Open, _)) => claim.verdict(&all.clone().without_search()),
    };
    let wider = wider.unwrap_or(Settled::from(Verdict::Open));
    let Verdict::Refuted(case) = verdict else {
        let is_beyond = wider.is_proved_for_taken && verdict == Verdict::Open;
        return Settled { is_beyond, ..Settled::from(verdict) };
    };
    let is_always_wrong = wider.is_always_wrong
        || right(claim, &case)
            .is_some_and(|right| domains.all.clone().hasty().never(&right) == Verdict::Proved);
    let is_taken = is_always_wrong || !is_beyond(&case);
    let settled = Settled { is_always_wrong, ..Settled::from(Verdict::Refuted(case)) };
    match is_taken {
        true => settled,
        false if wider.is_proved_for_taken => {
            Settled { is_beyond: true, is_proved_for_taken: true, ..settled }
        }
        false if wider.is_beyond => settle_taken(&domains.taken.clone().without_search(), claim, settled),
        false => settle_taken(&domains.taken, claim, settled),
    }
}

fn settle_taken(domain: &Domain<'_>, claim: &Claim, beyond: Settled) -> Settled {
    match claim.verdict(domain) {
        Verdict::Refuted(case) => Settled::from(Verdict::Refuted(case)),
        other => Settled { is_beyond: true, is_proved_for_taken: other == Verdict::Proved, ..beyond },
    }
}

/// Condition that a counterexample violates.
fn right(claim: &Claim, case: &Case) -> Option<Expr> {
    match &claim.predicate {
        Predicate::Within(allowed) => Some(match outside(&claim.term.expr, case, *allowed) {
            Some((Some(index), _)) => element_is_within(&claim.term.expr, index, *allowed),
            _ => is_within(&claim.term.expr, *allowed),
        }),
        Predicate::Holds(condition) => Some(condition.clone()),
        Predicate::HasValue => Some(is_there(&claim.term.expr)),
        Predicate::Fits(_) | Predicate::Misfit(_) => None,
    }
}

/// One per span and statement, with the worst verdict.
fn oblige_all(view: &DraftView<'_>, groups: Vec<Group<'_>>, obligations: &mut Vec<Obligation>) {
    let mut places: HashMap<_, usize> = HashMap::new();
    for group in groups {
        let obligation = oblige(view, group);
        let key = (obligation.rule, obligation.span.range.clone(), obligation.statement.clone());
        match places.get(&key) {
            Some(&known) if obligation.severity() > obligations[known].severity() => {
                obligations[known] = obligation;
            }
            Some(_) => {}
            None => {
                places.insert(key, obligations.len());
                obligations.push(obligation);
            }
        }
    }
}
