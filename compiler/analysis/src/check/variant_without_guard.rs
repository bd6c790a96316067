//! Types and formats for which every variant has a guard: what if all of them fail?

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};

use cubinder_expr::{BinaryOp, Expr};
use cubinder_launch::proof::{Case, Domain, Verdict};

use super::formula::{feed, joined};
use super::site::Site;
use super::witness::describe;
use crate::diagnostic::Diagnostic;
use crate::manifest::Route;
use crate::rules;

/// One warning for all types that have no such variant.
pub(super) fn check(site: &Site<'_>, never: &[usize], always: &[usize]) -> Option<Diagnostic> {
    let domain = site.domain();
    let hasty = domain.clone().hasty();
    let mut known: HashMap<u64, Vec<Answer<'_>>> = HashMap::new();
    let mut without: Vec<(usize, Option<String>)> = Vec::new();
    for rows in site.rows_of_nodes() {
        // Where a guard never fails there is always a variant; where none ever holds, that was told already.
        if rows.iter().any(|row| always.contains(row)) || rows.iter().all(|row| never.contains(row)) {
            continue;
        }
        let guards: Option<Vec<&Expr>> = rows.iter().map(|&row| site.guard(row)).collect();
        let Some(guards) = guards else { continue };
        let Some(any) = joined(BinaryOp::Or, guards) else { continue };
        let given = rows.first().map_or(&[][..], |&row| site.of_nodes(row));
        let mut hasher = DefaultHasher::new();
        given.iter().for_each(|given| feed(given, &mut hasher));
        feed(&any, &mut hasher);
        let alike = known.entry(hasher.finish()).or_default();
        let verdict = match alike.iter().find(|(known, other, _)| *known == given && *other == any) {
            Some((_, _, verdict)) => verdict.clone(),
            // Of all cases only the first is told.
            None if without.is_empty() => within(&domain, given).always(&any),
            None => within(&hasty, given).always(&any),
        };
        let case = match &verdict {
            Verdict::Refuted(case) if without.is_empty() => Some(told(site, &any, case)),
            _ => None,
        };
        let is_proved = verdict == Verdict::Proved;
        alike.push((given, any, verdict));
        if is_proved {
            continue;
        }
        without.extend(rows.last().map(|&row| (row, case)));
    }
    let (row, case) = without.first()?;
    let types = without.iter().map(|(row, _)| *row).collect::<Vec<usize>>();
    let label = match case {
        Some(case) if !case.is_empty() => format!("for {case} this one and those before it fail"),
        _ => "this one may fail as well as those before it".to_owned(),
    };
    let diagnostic = Diagnostic::warning("no variant is left when every guard fails")
        .code(rules::NO_VARIANT_WITHOUT_GUARD)
        .at(site.guard_span(*row).unwrap_or_else(|| site.variant_span(*row)), label)
        .note(match site.route {
            Route::Plugin => "a launch for which no guard holds is refused at run time",
            Route::Native => {
                "TensorRT chooses one variant when it builds the engine: where no guard is proved for all shapes of the profile there is no engine"
            }
        })
        .help(
            "add a variant without a guard at the end, or say with `limits` or `require` what is not meant",
        );
    let all = site.rows_of_nodes().len();
    Some(if types.len() < all {
        diagnostic.note(format!("for the {} of {}", site.choices(), site.describe_all(&types)))
    } else {
        diagnostic
    })
}

fn told(site: &Site<'_>, any: &Expr, case: &Case) -> String {
    describe(site.plugin, case, &[any])
}

/// What is given, that some guard holds, and what was found.
type Answer<'s> = (&'s [Expr], Expr, Verdict);

/// The cases of a domain in which all of this holds.
pub(super) fn within<'p>(domain: &Domain<'p>, given: &'p [Expr]) -> Domain<'p> {
    given.iter().fold(domain.clone(), Domain::assuming)
}
