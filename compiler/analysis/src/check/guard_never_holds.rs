//! A guard that no case meets: in all rows of its variant an error, in some a warning, because these are compiled for nothing.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hasher as _};

use cubinder_expr::Expr;
use cubinder_expr::Value;
use cubinder_launch::proof::{Devices, Verdict};

use super::format_words;
use super::formula::feed;
use super::site::Site;
use super::variant_without_guard::within;
use crate::diagnostic::{Diagnostic, Span};
use crate::rules;

/// The rows whose guard never holds.
pub(super) fn check(site: &Site<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<usize> {
    let mut never = Vec::new();
    // On every device: the same manifest may be compiled for other targets.
    let domain = site.domain().on_devices(Devices::ANY).hasty();
    let mut answers = Answers::new(|given, guard| within(&domain, given).never(guard) == Verdict::Proved);
    let mut holds_never =
        |row: usize| site.guard(row).is_some_and(|guard| answers.of(site.of_nodes(row), guard));
    for rows in rows_of_variants(site) {
        let broken: Vec<usize> = rows.iter().copied().filter(|&row| holds_never(row)).collect();
        if let (Some(&first), Some(span)) =
            (broken.first(), rows.first().and_then(|&row| site.guard_span(row)))
        {
            let diagnostic = if broken.len() == rows.len() {
                let diagnostic = Diagnostic::error("this guard never holds")
                    .at(span, "false for every node and shape that the manifest allows")
                    .help("correct it, or take the variant out: it would never run");
                let diagnostic = format_words::explain(site, &rows, diagnostic);
                specialized(site, first)
                    .into_iter()
                    .fold(diagnostic, |diagnostic, (span, label)| diagnostic.related(span, label))
            } else {
                let others: Vec<usize> = rows.iter().copied().filter(|row| !broken.contains(row)).collect();
                let Difference { what, help } = difference(site, &broken, &others);
                Diagnostic::warning(format!("this guard never holds for some {what} of the variant"))
                    .at(span, format!("always false for {}", site.describe(first)))
                    .note(format!("{} of {} rows are compiled and never run", broken.len(), rows.len()))
                    .help(help)
            };
            diagnostics.push(diagnostic.code(rules::GUARD_NEVER_HOLDS));
        }
        never.extend(broken);
    }
    never
}

/// What rows for which a guard never holds have, and others of the variant do not.
struct Difference {
    /// `types`.
    what: &'static str,
    /// How to say for which rows the variant is.
    help: String,
}

/// The first parameter that alone tells the rows apart; none of them where only several together do.
fn difference(site: &Site<'_>, broken: &[usize], others: &[usize]) -> Difference {
    let manifest = &site.resolved.manifest;
    let types = manifest.types.iter().map(|decl| ("types", &decl.name.value));
    let formats = manifest.formats.iter().map(|decl| ("formats", &decl.name.value));
    let specialized = manifest.attributes.iter().filter(|decl| decl.specialize.is_some());
    let values = specialized.map(|decl| ("values", &decl.name.value));
    let apart = types.chain(formats).chain(values).find_map(|(what, name)| {
        let of = |rows: &[usize]| -> BTreeSet<&str> {
            rows.iter().filter_map(|&row| in_label(&site.variant(row)?.label, name)).collect()
        };
        let meant = of(others);
        of(broken).is_disjoint(&meant).then_some((what, name, meant))
    });
    match apart {
        Some(("values", name, meant)) => {
            let meant: Vec<String> = meant.iter().map(|value| format!("{name} == {value}")).collect();
            let help = format!("say in the guard for which values it is meant: `{}`", meant.join(" or "));
            Difference { what: "values", help }
        }
        Some((what, name, meant)) => {
            let meant: Vec<String> = meant.iter().map(|value| format!("\"{value}\"")).collect();
            let help = format!(
                "say with `{what}` of the variant for which {what} it is meant: `{what} = {{ {name} = [{}] }}`",
                meant.join(", ")
            );
            Difference { what, help }
        }
        None => Difference {
            what: site.choices(),
            help: format!("say for which {} the variant is meant", site.choices()),
        },
    }
}

/// What a parameter is in a row, by the row's label: `T=f16 F=hwc8 VEC=4`.
fn in_label<'l>(label: &'l str, name: &str) -> Option<&'l str> {
    label.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The values of the attributes that a row is compiled for.
fn specialized(site: &Site<'_>, row: usize) -> Vec<(Span, String)> {
    let attributes = site.variant(row).map_or(&[][..], |variant| variant.specialized.as_slice());
    let place = |(attribute, _): &(u32, Value)| {
        let decl = site.resolved.manifest.attributes.get(*attribute as usize)?;
        let range = decl.specialize.as_ref()?.range.clone();
        let label = format!("`{}` is one of these", decl.name.value);
        Some((Span::new(&site.resolved.source, range), label))
    };
    attributes.iter().filter_map(place).collect()
}

/// Answers about guards, each found once: many rows have the same.
pub(super) struct Answers<'r, F> {
    find: F,
    known: HashMap<u64, Vec<Answer<'r>>>,
}

/// What is given, the guard, and what was found.
type Answer<'r> = (&'r [Expr], &'r Expr, bool);

impl<'r, F: Fn(&'r [Expr], &'r Expr) -> bool> Answers<'r, F> {
    pub(super) fn new(find: F) -> Answers<'r, F> {
        Answers { find, known: HashMap::new() }
    }

    pub(super) fn of(&mut self, given: &'r [Expr], guard: &'r Expr) -> bool {
        let mut hasher = DefaultHasher::new();
        given.iter().for_each(|given| feed(given, &mut hasher));
        feed(guard, &mut hasher);
        let alike = self.known.entry(hasher.finish()).or_default();
        if let Some((.., answer)) = alike.iter().find(|(known, other, _)| *known == given && *other == guard)
        {
            return *answer;
        }
        let answer = (self.find)(given, guard);
        alike.push((given, guard, answer));
        answer
    }
}

/// The rows of each variant that nodes can have: those with one id.
pub(super) fn rows_of_variants(site: &Site<'_>) -> Vec<Vec<usize>> {
    let mut variants: Vec<(i32, Vec<usize>)> = Vec::new();
    let rows = site.plugin.variants.iter().enumerate();
    for (row, variant) in rows.filter(|(row, _)| !site.has_no_node(*row)) {
        match variants.iter_mut().find(|(id, _)| *id == variant.id) {
            Some((_, rows)) => rows.push(row),
            None => variants.push((variant.id, vec![row])),
        }
    }
    variants.into_iter().map(|(_, rows)| rows).collect()
}
