use std::collections::BTreeSet;

use cubinder_gpu::measure::{Measured, Timing};
use cubinder_model::{Plugin, Variant};
use cubinder_node::eval::{Subject, resolve_query};
use cubinder_node::tuning::{ALIKE, Point};

pub(super) struct MeasuredCase {
    pub(super) point: Point,
    pub(super) measured: Measured,
}

pub(super) fn ranking(measured: &Measured) -> Vec<&Timing> {
    let mut order: Vec<&Timing> = measured.variants.iter().collect();
    order.sort_by(|one, other| one.microseconds.median.total_cmp(&other.microseconds.median));
    order
}

/// Maximum ratio of time quartiles on an unshared device.
const STEADY: f64 = 1.05;

pub(super) fn of_all(subject: &Subject, done: &[MeasuredCase], is_whole: bool) -> Vec<String> {
    let mut notes: Vec<String> = taken_note(done).into_iter().chain(spread_note(done)).collect();
    if is_whole {
        let never = never_fastest(subject, done).into_iter();
        notes.extend(never.map(|id| format!("variant {id} is never the fastest: consider removing it")));
    }
    notes
}

/// All rows of an id must be measured.
fn never_fastest(subject: &Subject, done: &[MeasuredCase]) -> Vec<i32> {
    let plugin = &subject.plugin;
    let measured: BTreeSet<usize> = done.iter().flat_map(|done| rows(subject, done)).collect();
    let ids: BTreeSet<i32> = plugin.variants.iter().map(|variant| variant.id).collect();
    let is_known = |id: i32| {
        let mut rows = plugin.variants.iter().enumerate().filter(|(_, variant)| variant.id == id);
        rows.all(|(row, _)| measured.contains(&row))
    };
    let is_never =
        |id: i32| !done.iter().any(|done| is_among_fastest(done, id)) && !is_last_resort(plugin, id);
    ids.into_iter().filter(|id| is_known(*id) && is_never(*id)).collect()
}

fn rows(subject: &Subject, done: &MeasuredCase) -> Vec<usize> {
    let Ok(resolved) = resolve_query(subject, &done.point.query) else { return Vec::new() };
    let node = resolved.signature();
    let is_measured = |variant: &Variant| {
        let mut timed = done.measured.variants.iter();
        node.is_served_by(variant) && timed.any(|timed| timed.variant == variant.id)
    };
    let rows = subject.plugin.variants.iter().enumerate();
    rows.filter(|(_, variant)| is_measured(variant)).map(|(row, _)| row).collect()
}

fn taken_note(done: &[MeasuredCase]) -> Option<String> {
    let ratio = |done: &MeasuredCase| {
        let best = ranking(&done.measured).first()?.microseconds.median;
        let taken = done.measured.variants.iter().find(|timed| timed.variant == done.measured.automatic)?;
        Some(taken.microseconds.median / best)
    };
    let ratios: Vec<(f64, &MeasuredCase)> =
        done.iter().filter_map(|done| Some((ratio(done)?, done))).collect();
    let right = ratios.iter().filter(|(ratio, _)| *ratio <= ALIKE).count();
    let (worst, case) = ratios.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let mut note = format!("the current choice is among the fastest in {right} of {} cases", ratios.len());
    if *worst > ALIKE {
        let name = case.point.case.as_deref().unwrap_or_default();
        note.push_str(&format!("; the worst ratio to the fastest is {worst:.2}, in `{name}`"));
    }
    Some(note)
}

fn spread_note(done: &[MeasuredCase]) -> Option<String> {
    let spread = |timed: &Timing| timed.microseconds.upper_quartile / timed.microseconds.lower_quartile;
    let worst = |done: &MeasuredCase| done.measured.variants.iter().map(spread).max_by(f64::total_cmp);
    let all: Vec<(f64, &MeasuredCase)> = done.iter().filter_map(|done| Some((worst(done)?, done))).collect();
    let unsteady = all.iter().filter(|(spread, _)| *spread > STEADY).count();
    let (worst, case) = all.iter().max_by(|one, other| one.0.total_cmp(&other.0)).filter(|_| unsteady > 0)?;
    Some(format!(
        "in {unsteady} of {} cases a variant's quartiles differ by more than {:.0} %, at most {:.0} %, in `{}`: other programs may use the GPU",
        all.len(),
        (STEADY - 1.0) * 100.0,
        (worst - 1.0) * 100.0,
        case.point.case.as_deref().unwrap_or_default()
    ))
}

fn is_among_fastest(done: &MeasuredCase, id: i32) -> bool {
    let median = |timed: &Timing| timed.microseconds.median;
    let best = ranking(&done.measured).first().map(|timed| median(timed));
    let own = done.measured.variants.iter().find(|timed| timed.variant == id).map(median);
    best.zip(own).is_some_and(|(best, own)| own <= best * ALIKE)
}

/// Returns whether it is the fallback of some types, formats and attributes.
fn is_last_resort(plugin: &Plugin, id: i32) -> bool {
    let is_last = |own: &Variant| {
        let alike = |other: &&Variant| {
            other.types == own.types && other.formats == own.formats && other.specialized == own.specialized
        };
        plugin.variants.iter().rfind(alike).is_some_and(|last| last.id == id)
    };
    plugin.variants.iter().any(|own| own.id == id && is_last(own))
}

#[cfg(test)]
mod tests {
    use cubinder_node::eval;
    use cubinder_node::query::Query;
    use cubinder_source::diagnostic::Source;

    use cubinder_gpu::timing::Spread;

    use super::*;

    const MANIFEST: &str = r#"schema = 1
[plugin]
name = "copy"
version = "1"
[types]
T = ["f32", "f16"]
[[inputs]]
name = "x"
type = "T"
rank = 1
[[outputs]]
name = "y"
type = "T"
shape = "x.shape"
[[variants]]
id = 1
guard = "numel(y) % 4 == 0"
constants = { V = 4 }
[[variants]]
id = 3
guard = "numel(y) % 2 == 0"
constants = { V = 2 }
[[variants]]
id = 4
constants = { V = 1 }
[[variants]]
id = 2
types = { T = ["f16"] }
constants = { V = 8 }
[[launches]]
source = "k.cu"
kernel = "k<T, V>"
grid = [1]
block = [256]
[launches.args]
x = "x"
y = "y"
"#;

    fn done(ty: &str, times: &[(i32, f64)]) -> MeasuredCase {
        let timed = |(variant, time): &(i32, f64)| Timing {
            variant: *variant,
            label: String::new(),
            microseconds: Spread::from_times(&[*time]).unwrap(),
            launches: 1,
            runs: 1,
        };
        let point = Point {
            query: Query {
                types: vec![("T".to_owned(), ty.to_owned())],
                shapes: vec![("x".to_owned(), vec![8])],
                ..Query::default()
            },
            ..Point::default()
        };
        let variants = times.iter().map(timed).collect();
        MeasuredCase { point, measured: Measured { bytes: 1, automatic: 1, variants } }
    }

    #[test]
    fn a_variant_could_go_where_all_of_it_was_measured() {
        let subject = match eval::manifest(&Source::new("copy.toml", MANIFEST)) {
            Ok(mut subjects) => subjects.list.remove(0),
            Err(errors) => panic!("{errors:?}"),
        };
        let f32 = [(1, 2.0), (3, 1.0), (4, 3.0)];
        let f16 = [(1, 2.0), (3, 1.0), (4, 3.0), (2, 5.0)];
        let never = |done: &[MeasuredCase]| never_fastest(&subject, done);
        assert_eq!(
            never(&[done("f32", &f32), done("f16", &f16)]),
            [1],
            "the others are the only variants of some nodes"
        );
        assert_eq!(never(&[done("f32", &f32), done("f32", &f32)]), [0; 0], "f16 was not measured");
        assert_eq!(never(&[done("f32", &f32), done("f16", &f16[1..])]), [0; 0], "not measured for f16");
        let good = [(1, 1.0), (3, 0.995)];
        assert_eq!(never(&[done("f32", &good), done("f16", &f16)]), [0; 0], "the difference is noise");
        let notes = of_all(&subject, &[done("f32", &f32), done("f16", &f16)], true);
        assert_eq!(notes.iter().filter(|note| note.contains("never")).count(), 1, "{notes:?}");
        let notes = of_all(&subject, &[done("f32", &f32), done("f16", &f16)], false);
        assert!(!notes.iter().any(|note| note.contains("never")), "{notes:?}");
    }
}
