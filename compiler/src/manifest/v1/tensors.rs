//! `[[inputs]]` and `[[outputs]]`: types, ranks, shapes and the limits of shapes.

use std::ops::Range;

use cubinder_bundle::{Interval, ShapeLimits};
use toml::de::DeValue;

use super::super::form::{Entry, Form, Section};
use super::super::keys::{INPUT, OUTPUT};
use super::super::{InputDecl, LimitsDecl, Located, MAX_RANK, OutputDecl, Text};
use super::doc;
use super::ranges::{Sizes, counted};
use crate::diagnostic::Diagnostic;
use crate::rules;

const RANK: Sizes<'_> =
    Sizes { what: "a rank or a range of ranks from 0 to 8", most: MAX_RANK as i64, example: "\"1..=8\"" };

const DIMS: Sizes<'_> =
    Sizes { what: "a size, a range of sizes, or an array of them", most: i64::MAX, example: "\"1..=65535\"" };

const NUMEL: Sizes<'_> = Sizes {
    what: "a number of elements or a range of such numbers",
    most: i64::MAX,
    example: "\"..=2147483647\"",
};

/// The ranks of a tensor and where they are given.
struct Ranks {
    lowest: u8,
    highest: u8,
    range: Option<Range<usize>>,
}

pub(super) fn input(
    form: &mut Form<'_>,
    mut section: Section<'_>,
    broken: &mut Vec<String>,
) -> Option<InputDecl> {
    let name = tensor_name(form, &mut section, "an input");
    let ty = form.require(&mut section, "type", "\"f32\"").and_then(|entry| tensor_type(form, &entry));
    let format = tensor_format(form, &mut section);
    let rank = section.take("rank").and_then(|entry| RANK.read(form, &entry));
    let ranks = ranks(rank.as_ref());
    let limits = match section.take("limits") {
        Some(entry) => limits(form, &mut section, &entry, Some(&ranks)),
        None => LimitsDecl::default(),
    };
    let doc = doc(form, &mut section, "doc");
    form.finish(&section);
    let name = name?;
    match (ty, format) {
        (Some(ty), Ok(format)) => Some(InputDecl {
            name,
            ty,
            format,
            rank: (ranks.lowest, ranks.highest),
            rank_range: ranks.range,
            limits,
            doc,
        }),
        _ => {
            broken.push(name.value);
            None
        }
    }
}

pub(super) fn output(
    form: &mut Form<'_>,
    mut section: Section<'_>,
    broken: &mut Vec<String>,
) -> Option<OutputDecl> {
    let name = tensor_name(form, &mut section, "an output");
    let ty = form.require(&mut section, "type", "\"f32\"").and_then(|entry| tensor_type(form, &entry));
    let format = tensor_format(form, &mut section);
    let shape = form.require(&mut section, "shape", "\"...\"").and_then(|entry| shape(form, &entry));
    let limits = match section.take("limits") {
        Some(entry) => limits(form, &mut section, &entry, None),
        None => LimitsDecl::default(),
    };
    let doc = doc(form, &mut section, "doc");
    form.finish(&section);
    let name = name?;
    match (ty, format, shape) {
        (Some(ty), Ok(format), Some(shape)) => Some(OutputDecl { name, ty, format, shape, limits, doc }),
        _ => {
            broken.push(name.value);
            None
        }
    }
}

/// A format, where one is given; several are a format parameter's.
///
/// # Errors
/// It is something else, which has been reported.
fn tensor_format(form: &mut Form<'_>, section: &mut Section<'_>) -> Result<Option<Located<String>>, ()> {
    let Some(entry) = section.take("format") else { return Ok(None) };
    if entry.items().is_some() {
        let diagnostic = form.misfit(&entry, "a string");
        let written = form.written(&entry.range).unwrap_or("[...]");
        form.report(diagnostic.help(format!(
            "`[formats]` gives several a name: `F = {written}` there, and `format = \"F\"` here"
        )));
        return Err(());
    }
    form.string(&entry).map(Some).ok_or(())
}

/// A type; several are a type parameter's.
fn tensor_type(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<String>> {
    if entry.items().is_some() {
        let diagnostic = form.misfit(entry, "a string");
        let written = form.written(&entry.range).unwrap_or("[...]");
        form.report(
            diagnostic.help(format!(
                "`[types]` gives several a name: `T = {written}` there, and `type = \"T\"` here"
            )),
        );
        return None;
    }
    form.string(entry)
}

/// The expression of a shape; an array of TOML's is meant as one.
fn shape(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Text> {
    let Some(items) = entry.items() else { return form.text(entry) };
    let part = |item: &Entry<'_>| match item.value() {
        DeValue::String(text) if !text.contains(['"', '\\', '\n']) => Some(text.to_string()),
        DeValue::Integer(integer) => Some(integer.to_string()),
        _ => None,
    };
    let diagnostic = form.misfit(entry, "a string with an expression");
    let parts: Option<Vec<String>> = items.iter().map(part).collect();
    form.report(match parts {
        Some(parts) => diagnostic.help(format!("write `shape = \"[{}]\"`", parts.join(", "))),
        None => diagnostic.help("write `shape = \"[...]\"`"),
    });
    None
}

fn tensor_name(form: &mut Form<'_>, section: &mut Section<'_>, what: &str) -> Option<Located<String>> {
    let name = form.require(section, "name", "\"...\"").and_then(|entry| form.string(&entry))?;
    form.identifier(&name, what);
    Some(name)
}

/// Any rank where none is given, or one that could not be read.
fn ranks(rank: Option<&Located<Interval>>) -> Ranks {
    let fits = |size: i64| u8::try_from(size).unwrap_or(MAX_RANK);
    Ranks {
        lowest: rank.map_or(0, |rank| fits(rank.value.min)),
        highest: rank.map_or(MAX_RANK, |rank| fits(rank.value.max)),
        range: rank.map(|rank| rank.range.clone()),
    }
}

/// `limits` of the tensor in `tensor`; `ranks` are those of an input, and absent for an output.
fn limits(
    form: &mut Form<'_>,
    tensor: &mut Section<'_>,
    entry: &Entry<'_>,
    ranks: Option<&Ranks>,
) -> LimitsDecl {
    let Some(section) = form.table(entry, "limits".to_owned()) else { return LimitsDecl::default() };
    let mut section = section.within(if ranks.is_some() { &INPUT } else { &OUTPUT });
    // What is said of keys in this table explains that they are not in the tensor's.
    for key in ["name", "type", "shape"].into_iter().filter(|key| section.has(key)) {
        tensor.forgive(key);
    }
    let mut limits = ShapeLimits::default();
    if let Some(entry) = section.take("dims") {
        match entry.items() {
            Some(items) => single_dimensions(form, &entry, &items, ranks, &mut limits),
            None => limits.every = DIMS.read(form, &entry).map_or(Interval::ANY_SIZE, |size| size.value),
        }
    }
    if let Some(entry) = section.take("numel")
        && let Some(numel) = NUMEL.read(form, &entry)
    {
        limits.numel = numel.value;
        check_possible(form, &numel, &limits, ranks);
    }
    form.finish(&section);
    LimitsDecl { limits, range: entry.range.clone() }
}

/// `dims = [...]`: one range for each dimension.
fn single_dimensions(
    form: &mut Form<'_>,
    entry: &Entry<'_>,
    items: &[Entry<'_>],
    ranks: Option<&Ranks>,
    limits: &mut ShapeLimits,
) {
    let sizes: Vec<Option<Located<Interval>>> = items.iter().map(|item| DIMS.read(form, item)).collect();
    let Some(sizes) = sizes.into_iter().collect::<Option<Vec<_>>>() else { return };
    let Some(ranks) = ranks.filter(|ranks| ranks.lowest == ranks.highest) else {
        let diagnostic = Diagnostic::error("single dimensions can be limited only where the rank is fixed")
            .code(rules::BAD_RANGE)
            .at(
                form.span(entry.range.clone()),
                format!("ranges for {}", counted(sizes.len() as u64, "dimension", "dimensions")),
            );
        let diagnostic = match ranks {
            None => diagnostic.note("the rank of an output follows from its `shape`"),
            Some(Ranks { range: Some(range), lowest, highest }) => {
                let label = format!("this input has {lowest} to {highest} dimensions");
                diagnostic.related(form.span(range.clone()), label)
            }
            Some(_) => diagnostic.note("an input without `rank` may have 0 to 8 dimensions"),
        };
        let help = match ranks {
            None => "write one range for all dimensions: `dims = \"1..=65535\"`".to_owned(),
            Some(_) => {
                format!("write `rank = {}` in this input, or one range for all dimensions", sizes.len())
            }
        };
        form.report(diagnostic.help(help));
        return;
    };
    if sizes.len() != usize::from(ranks.lowest) {
        let diagnostic = Diagnostic::error("`dims` must have one range for each dimension")
            .code(rules::BAD_RANGE)
            .at(form.span(entry.range.clone()), format!("found {}", sizes.len()));
        let related = ranks.range.clone().map(|range| (range, format!("the rank is {}", ranks.lowest)));
        form.report(match related {
            Some((range, label)) => diagnostic.related(form.span(range), label),
            None => diagnostic,
        });
        return;
    }
    limits.dims = sizes.into_iter().map(|size| size.value).collect();
    let least = limits.dims.iter().map(|size| size.min).min();
    let most = limits.dims.iter().map(|size| size.max).max();
    if let Some((min, max)) = least.zip(most) {
        limits.every = Interval { min, max };
    }
}

/// Reports limits that no shape can meet.
fn check_possible(
    form: &mut Form<'_>,
    numel: &Located<Interval>,
    limits: &ShapeLimits,
    ranks: Option<&Ranks>,
) {
    let (lowest, highest) = ranks.map_or((0, MAX_RANK), |ranks| (ranks.lowest, ranks.highest));
    let product = |rank: u8, end: fn(Interval) -> i64| {
        (0..usize::from(rank)).fold(1_i64, |numel, axis| match end(limits.dim(axis)) {
            0 => 0,
            size => numel.saturating_mul(size),
        })
    };
    let ranks = || lowest..=highest;
    let least = ranks().map(|rank| product(rank, |size| size.min)).min().unwrap_or(0);
    let most = ranks().map(|rank| product(rank, |size| size.max)).max().unwrap_or(i64::MAX);
    if least <= numel.value.max && numel.value.min <= most {
        return;
    }
    let bound = if least > numel.value.max {
        format!("such dimensions make at least {}", counted(least, "element", "elements"))
    } else {
        format!("such dimensions make at most {}", counted(most, "element", "elements"))
    };
    let diagnostic = Diagnostic::error("no shape can meet both `dims` and `numel`")
        .code(rules::BAD_RANGE)
        .at(form.span(numel.range.clone()), bound);
    form.report(diagnostic);
}
