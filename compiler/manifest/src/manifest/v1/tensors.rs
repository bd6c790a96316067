//! `[[inputs]]` and `[[outputs]]`: types, ranks, shapes and the limits of shapes.

use std::ops::Range;

use cubinder_expr::{DataType, Interval};
use cubinder_model::ShapeLimits;
use cubinder_model::model::MAX_SHAPE_VALUES;
use toml::de::DeValue;

use super::super::form::{Entry, Form, Section};
use super::super::keys::{ALIAS, INPUT, OUTPUT, SHAPE_INPUT, SIZE_TENSOR};
use super::super::{InputDecl, LimitsDecl, Located, MAX_RANK, OutputDecl, SizeDecl, Text};
use super::doc;
use super::ranges::{Sizes, counted};
use crate::diagnostic::Diagnostic;
use crate::rules;

const RANK: Sizes<'_> = Sizes {
    what: "a rank or a range of ranks from 0 to 8",
    least: 0,
    most: MAX_RANK as i64,
    example: "\"1..=8\"",
};

const DIMS: Sizes<'_> = Sizes {
    what: "a size, a range of sizes, or an array of them",
    least: 0,
    most: i64::MAX,
    example: "\"1..=65535\"",
};

const NUMEL: Sizes<'_> = Sizes {
    what: "a number of elements or a range of such numbers",
    least: 0,
    most: i64::MAX,
    example: "\"..=2147483647\"",
};

const SHAPE_INPUT_RANK: Sizes<'_> = Sizes { what: "0 or 1", least: 0, most: 1, example: "1" };

/// Within what the input's type holds.
const VALUES: Sizes<'_> = Sizes {
    what: "an integer or a range of integers, of the input's type",
    least: i64::MIN,
    most: i64::MAX,
    example: "\"0..=65536\"",
};

/// The keys that make an input a shape input, an output one in place, and an output a size.
const SHAPE_INPUT_KEY: &str = "shape_input";
const ALIAS_KEY: &str = "alias";
const SIZE_KEY: &str = "size";

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
    if section.has(SHAPE_INPUT_KEY) {
        return shape_input(form, section.called(SHAPE_INPUT.title), broken);
    }
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
            values: None,
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
    if section.has(ALIAS_KEY) {
        return in_place(form, section.called(ALIAS.title), broken);
    }
    if section.has(SIZE_KEY) {
        return size_tensor(form, section.called(SIZE_TENSOR.title), broken);
    }
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
        (Some(ty), Ok(format), Some(shape)) => {
            Some(OutputDecl { name, ty, format, shape, limits, alias: None, size: None, doc })
        }
        _ => {
            broken.push(name.value);
            None
        }
    }
}

/// An input whose values are known when shapes are.
fn shape_input(form: &mut Form<'_>, mut section: Section<'_>, broken: &mut Vec<String>) -> Option<InputDecl> {
    let name = tensor_name(form, &mut section, "an input");
    if let Some(entry) = form.require(&mut section, SHAPE_INPUT_KEY, "true")
        && !matches!(entry.value(), DeValue::Boolean(true))
    {
        let diagnostic = form.misfit(&entry, "`true`");
        form.report(diagnostic.help("leave it out where the input is none"));
    }
    let ty = integer_type(form, &mut section, "a shape input");
    let rank = section.take("rank").and_then(|entry| single_rank(form, &entry));
    let ranks = Ranks {
        lowest: rank.as_ref().map_or(1, |rank| rank.value),
        highest: rank.as_ref().map_or(1, |rank| rank.value),
        range: rank.map(|rank| rank.range),
    };
    let mut limits = match section.take("limits") {
        Some(entry) => limits(form, &mut section, &entry, Some(&ranks)),
        None => LimitsDecl::default(),
    };
    count_is_told(form, &mut limits, &ranks);
    let of_type = ty.as_ref().map_or(VALUES, |(_, all)| Sizes { least: all.min, most: all.max, ..VALUES });
    let values = section.take("values").and_then(|entry| of_type.read(form, &entry));
    let doc = doc(form, &mut section, "doc");
    form.finish(&section);
    let name = name?;
    let Some((ty, all)) = ty else {
        broken.push(name.value);
        return None;
    };
    let values = Some(values.unwrap_or(Located { value: all, range: 0..0 }));
    let rank = (ranks.lowest, ranks.highest);
    Some(InputDecl { name, ty, format: None, rank, rank_range: ranks.range, limits, values, doc })
}

/// 0 or 1.
fn single_rank(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Located<u8>> {
    let rank = SHAPE_INPUT_RANK.read(form, entry)?;
    if rank.value.min != rank.value.max {
        let diagnostic = Diagnostic::error("the rank of a shape input must be one number")
            .code(rules::BAD_RANGE)
            .at(form.span(rank.range), "found a range")
            .help("write `rank = 1` for several values, `rank = 0` for one");
        form.report(diagnostic);
        return None;
    }
    Some(Located { value: u8::try_from(rank.value.min).unwrap_or(1), range: rank.range })
}

/// A shape input has no more values than TensorRT tells of.
fn count_is_told(form: &mut Form<'_>, limits: &mut LimitsDecl, ranks: &Ranks) {
    let most = |allowed: Interval| Interval { max: allowed.max.min(MAX_SHAPE_VALUES), ..allowed };
    let shape = &mut limits.limits;
    if ranks.highest == 0 {
        return;
    }
    if shape.dim(0).min > MAX_SHAPE_VALUES || shape.numel.min > MAX_SHAPE_VALUES {
        let diagnostic = Diagnostic::error(format!("a shape input has at most {MAX_SHAPE_VALUES} values"))
            .code(rules::BAD_RANGE)
            .at(form.span(limits.range.clone()), "these are more")
            .note("TensorRT tells plugins of no more when it asks for the outputs' shapes");
        form.report(diagnostic);
        *shape = ShapeLimits::default();
    }
    shape.every = most(shape.every);
    shape.dims.iter_mut().for_each(|dim| *dim = most(*dim));
}

/// The type of what holds integers, and what these can be.
fn integer_type(
    form: &mut Form<'_>,
    section: &mut Section<'_>,
    what: &str,
) -> Option<(Located<String>, Interval)> {
    let ty = form.require(section, "type", "\"i64\"").and_then(|entry| tensor_type(form, &entry))?;
    let all = match DataType::from_name(&ty.value) {
        Some(DataType::I64) => Interval { min: i64::MIN, max: i64::MAX },
        Some(DataType::I32) => Interval { min: i32::MIN.into(), max: i32::MAX.into() },
        _ => {
            let diagnostic = Diagnostic::error(format!("{what} holds `i32` or `i64`"))
                .code(rules::UNKNOWN_TYPE)
                .at(form.span(ty.range), format!("found `{}`", ty.value))
                .note("TensorRT takes integers of 32 and of 64 bits there");
            form.report(diagnostic);
            return None;
        }
    };
    Some((ty, all))
}

/// An output that shares the memory of an input. Its type and shape are known once the inputs are: [`take_over`].
fn in_place(form: &mut Form<'_>, mut section: Section<'_>, broken: &mut Vec<String>) -> Option<OutputDecl> {
    let name = tensor_name(form, &mut section, "an output");
    let alias = form.require(&mut section, ALIAS_KEY, "\"x\"").and_then(|entry| form.string(&entry));
    let doc = doc(form, &mut section, "doc");
    let own = ["type", "shape", "limits", "format"].into_iter().filter(|key| section.has(key));
    let own: Vec<&str> = own.collect();
    for entry in section.entries().into_iter().filter(|entry| own.contains(&entry.key.as_str())) {
        let diagnostic = Diagnostic::error(format!("an output in place has no `{}` of its own", entry.key))
            .code(rules::ALIAS)
            .at(form.span(entry.key_range), "it is the input's");
        form.report(diagnostic.help("leave it out"));
    }
    form.finish_except(&section, &own);
    let name = name?;
    let Some(alias) = alias else {
        broken.push(name.value);
        return None;
    };
    let ty = Located { value: String::new(), range: alias.range.clone() };
    let shape = Text::stands_for(alias.range.clone(), "[]".to_owned());
    let limits = LimitsDecl::default();
    Some(OutputDecl { name, ty, format: None, shape, limits, alias: Some(alias), size: None, doc })
}

/// Gives an output in place the type, the format and the shape of its input. Where there is no such input, which is told later, stand-ins.
pub(super) fn take_over(output: &mut OutputDecl, inputs: &[InputDecl]) {
    let Some(alias) = &output.alias else { return };
    let input = inputs.iter().find(|input| input.name.value == alias.value);
    output.ty.value = input.map_or_else(|| DataType::F32.name().to_owned(), |input| input.ty.value.clone());
    if let Some(input) = input {
        output.format.clone_from(&input.format);
        output.shape = Text::stands_for(alias.range.clone(), format!("{}.shape", alias.value));
    }
}

/// An output that holds a size.
fn size_tensor(
    form: &mut Form<'_>,
    mut section: Section<'_>,
    broken: &mut Vec<String>,
) -> Option<OutputDecl> {
    let name = tensor_name(form, &mut section, "an output");
    let ty = integer_type(form, &mut section, "a size");
    let size = form.require(&mut section, SIZE_KEY, "{ upper = \"...\" }").and_then(|entry| {
        let range = entry.range.clone();
        Some((size_bound(form, &entry)?, range))
    });
    let doc = doc(form, &mut section, "doc");
    let own: Vec<&str> = ["shape", "limits", "format"].into_iter().filter(|key| section.has(key)).collect();
    for entry in section.entries().into_iter().filter(|entry| own.contains(&entry.key.as_str())) {
        let diagnostic = Diagnostic::error(format!("an output that holds a size has no `{}`", entry.key))
            .code(rules::SIZE_TENSOR)
            .at(form.span(entry.key_range), "it is a single number: its shape is `[]`");
        form.report(diagnostic.help("leave it out; the name of this output is a dimension of other outputs"));
    }
    form.finish_except(&section, &own);
    let name = name?;
    let (Some((ty, _)), Some((size, range))) = (ty, size) else {
        broken.push(name.value);
        return None;
    };
    let shape = Text::stands_for(range, "[]".to_owned());
    let limits = LimitsDecl::default();
    Some(OutputDecl { name, ty, format: None, shape, limits, alias: None, size: Some(size), doc })
}

/// `size = { upper = ..., opt = ... }`.
fn size_bound(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<SizeDecl> {
    if matches!(entry.value(), DeValue::String(_) | DeValue::Integer(_)) {
        let diagnostic = form.misfit(entry, "a table");
        let written = form.written(&entry.range).unwrap_or("\"...\"");
        form.report(diagnostic.help(format!("write `size = {{ upper = {written} }}`")));
        return None;
    }
    let mut section = form.table(entry, SIZE_KEY.to_owned())?;
    let upper = form.require(&mut section, "upper", "\"...\"").and_then(|entry| form.expression(&entry));
    let opt = section.take("opt").and_then(|entry| form.expression(&entry));
    form.finish(&section);
    Some(SizeDecl { upper: upper?, opt })
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
