//! Reports guards that are never satisfied: an error in all rows of a variant, otherwise a warning.

use std::collections::{BTreeSet, HashMap};

use cubinder_expr::{Expr, Value};
use cubinder_launch::proof::{Devices, Domain, Verdict};

use super::draft_view::{DraftView, within};
use super::errors::{GuardNeverHolds, GuardNeverHoldsForSome};
use super::format_words;
use super::formula::ExprKey;
use crate::diagnostic::{Diagnostic, Span};

/// Returns the rows with such guards.
pub(super) fn check(view: &DraftView<'_>, diagnostics: &mut Vec<Diagnostic>) -> Vec<usize> {
    let mut never = Vec::new();
    let mut holds_never = of_guards(view, |domain, guard| domain.never(guard) == Verdict::Proved);
    for rows in view.rows_of_variants() {
        let (broken, others): (Vec<usize>, Vec<usize>) = rows.iter().partition(|&&row| holds_never(row));
        let span = rows.first().and_then(|&row| view.guard_span(row));
        if let (Some(&first), Some(span)) = (broken.first(), span) {
            diagnostics.push(if others.is_empty() {
                let diagnostic = format_words::explain(view, &rows, GuardNeverHolds { span }.into());
                let related = |diagnostic: Diagnostic, (span, label)| diagnostic.related(span, label);
                specialized(view, first).into_iter().fold(diagnostic, related)
            } else {
                let (choices, help) = difference(view, &broken, &others);
                let (variant, broken, rows) = (view.describe(first), broken.len(), rows.len());
                GuardNeverHoldsForSome { choices, variant, broken, rows, help, span }.into()
            });
        }
        never.extend(broken);
    }
    never
}

/// Returns the distinguishing parameters, and how to restrict the variant.
fn difference(view: &DraftView<'_>, broken: &[usize], others: &[usize]) -> (&'static str, String) {
    let manifest = &view.resolved.manifest;
    let types = manifest.types.iter().map(|decl| ("types", &decl.name.value));
    let formats = manifest.formats.iter().map(|decl| ("formats", &decl.name.value));
    let specialized = manifest.attributes.iter().filter(|decl| decl.specialize.is_some());
    let values = specialized.map(|decl| ("values", &decl.name.value));
    let apart = types.chain(formats).chain(values).find_map(|(kind, name)| {
        let of = |rows: &[usize]| -> BTreeSet<&str> {
            rows.iter().filter_map(|&row| in_label(&view.variant(row)?.label, name)).collect()
        };
        let meant = of(others);
        of(broken).is_disjoint(&meant).then_some((kind, name, meant))
    });
    match apart {
        Some(("values", name, meant)) => {
            let meant: Vec<String> = meant.iter().map(|value| format!("{name} == {value}")).collect();
            ("values", format!("restrict the guard to valid values: `{}`", meant.join(" or ")))
        }
        Some((kind, name, meant)) => {
            let meant: Vec<String> = meant.iter().map(|value| format!("\"{value}\"")).collect();
            let help =
                format!("restrict the variant's {kind}: `{kind} = {{ {name} = [{}] }}`", meant.join(", "));
            (kind, help)
        }
        None => (view.choices(), format!("restrict the {} of the variant", view.choices())),
    }
}

/// Reads a value from a label such as `T=f16 F=hwc8 VEC=4`.
fn in_label<'l>(label: &'l str, name: &str) -> Option<&'l str> {
    label.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn specialized(view: &DraftView<'_>, row: usize) -> Vec<(Span, String)> {
    let attributes = view.variant(row).map_or(&[][..], |variant| variant.specialized.as_slice());
    let place = |(attribute, _): &(u32, Value)| {
        let decl = view.resolved.manifest.attributes.get(*attribute as usize)?;
        let range = decl.specialize.as_ref()?.range.clone();
        let label = format!("`{}` is one of these", decl.name.value);
        Some((Span::new(&view.resolved.source, range), label))
    };
    attributes.iter().filter_map(place).collect()
}

/// Caches a question on all devices: targets may change.
pub(super) fn of_guards<'s>(
    view: &'s DraftView<'_>,
    is_so: impl Fn(Domain<'s>, &Expr) -> bool,
) -> impl FnMut(usize) -> bool {
    let domain = view.domain().on_devices(Devices::ANY).hasty();
    let mut known: HashMap<(ExprKey<'s>, ExprKey<'s>), bool> = HashMap::new();
    move |row| {
        view.guard(row).is_some_and(|guard| {
            let key = (ExprKey::from(view.of_nodes(row)), ExprKey(vec![guard]));
            *known.entry(key).or_insert_with_key(|(given, _)| is_so(within(&domain, &given.0), guard))
        })
    }
}
