//! `[[inputs]]` and `[[outputs]]`.

use std::ops::Range;

use cubinder_expr::{DataType, Interval};
use cubinder_model::ShapeLimits;
use cubinder_model::model::MAX_SHAPE_VALUES;
use toml::de::DeValue;

use super::ranges::{Sizes, counted};
use super::*;

const RANK: Sizes = Sizes { most: MAX_RANK as i64, ..Sizes::new("a rank or a range of ranks from 0 to 8") };
const DIMS: Sizes = Sizes::new("a size, a range of sizes, or an array of them");
const NUMEL: Sizes = Sizes::new("a number of elements or a range of such numbers");
const SHAPE_INPUT_RANK: Sizes = Sizes { most: 1, ..Sizes::new("0 or 1") };

table! {
    /// An input tensor.
    struct Input = INPUT: "inputs[]" as "[[inputs]]" {
        /// Its name in expressions and arguments.
        name: InputName = Required, "\"x\"";
        /// The element type.
        ty "type": TensorType = Required, "\"T\"" or "\"f32\"";
        /// The memory layout.
        format: TensorFormat = Default("\"linear\""), "\"F\"";
        /// Number of dimensions.
        rank: Rank = Default("\"0..=8\""), "\"1..=8\"";
        /// Allowed shapes; others are rejected.
        limits: TableOf<WrittenLimits> = Optional;
        /// A description, shown by `inspect --plugin`.
        doc: AnyText = Optional, "\"what it is\"";
    }

    /// An input of a few integers that determine shapes, available as `NAME.values`.
    struct ShapeInput = SHAPE_INPUT: "inputs[].shape_input" as "[[inputs]] with shape_input" {
        /// Its name in expressions and arguments.
        name: InputName = Required, "\"target\"";
        /// Marks a shape input.
        shape_input: True = Required, "true";
        /// The element type.
        ty "type": ShapeInputType = Required, "\"i64\"";
        /// 1 for several values, 0 for one.
        rank: ShapeInputRank = Default("1"), "1";
        /// Allowed number of values, by default 0 to 8; others are rejected.
        limits: TableOf<WrittenLimits> = Optional;
        /// Allowed values; others are rejected.
        values: IntegerRange = Optional, "\"0..=65536\"";
        /// A description, shown by `inspect --plugin`.
        doc: AnyText = Optional, "\"what it is\"";
    }

    /// An output tensor.
    struct Output = OUTPUT: "outputs[]" as "[[outputs]]" {
        /// Its name in expressions and arguments.
        name: OutputName = Required, "\"y\"";
        /// The element type.
        ty "type": TensorType = Required, "\"T\"" or "\"f32\"";
        /// The memory layout.
        format: TensorFormat = Default("\"linear\""), "\"F\"";
        /// An array of integers over attributes and the shapes of inputs.
        shape: Shape = Required, "\"x.shape\"";
        /// Allowed shapes; others are rejected.
        limits: TableOf<WrittenLimits> = Optional;
        /// A description, shown by `inspect --plugin`.
        doc: AnyText = Optional, "\"what it is\"";
    }

    /// An output that shares the memory of an input: the kernels change it in place. Type, format and shape are the input's.
    struct Alias = ALIAS: "outputs[].alias" as "[[outputs]] with alias" {
        /// Its name in expressions and arguments.
        name: OutputName = Required, "\"in_place\"";
        /// The input whose memory it shares: not a shape input, and not shared by another output.
        alias: Identifier = Required, "\"x\"";
        /// A description, shown by `inspect --plugin`.
        doc: AnyText = Optional, "\"what it is\"";
    }

    /// An output with a size that the kernels compute. Its name is a dimension in the shapes of other outputs.
    struct SizeTensor = SIZE_TENSOR: "outputs[].size_tensor" as "[[outputs]] with size" {
        /// Its name in expressions and arguments.
        name: OutputName = Required, "\"count\"";
        /// The element type.
        ty "type": SizeType = Required, "\"i64\"";
        /// Bounds of the size.
        size: TableOf<SizeDecl> = Required;
        /// A description, shown by `inspect --plugin`.
        doc: AnyText = Optional, "\"what it is\"";
    }

    /// Bounds of a size before the kernels run, from attributes and the inputs' shapes.
    struct SizeKeys = SIZE_BOUND: "outputs[].size" as "size" {
        /// The largest possible size, for which TensorRT reserves memory. Larger sizes are not detected.
        upper: Expression = Required, "\"numel(x)\"" or "\"...\"";
        /// The size that TensorRT optimizes for. Default: `upper`.
        opt: Expression = Optional, "\"numel(x) // 2\"";
    }

    /// Allowed shapes of a tensor, besides its rank. Proofs about launches use them.
    struct Limits = LIMITS: "inputs[].limits" as "limits" {
        /// Range of every dimension, or, for inputs of fixed rank, one for each.
        dims: Dimensions = Default("\"0..\""), "\"1..=65535\"";
        /// Range of the number of elements.
        numel: Count = Default("\"0..\""), "\"..=2147483647\"";
    }
}

value_types! {
    /// Input name.
    InputName -> Located<String>: "identifier", json::identifier(), |toml, entry| tensor_name(toml, entry, "an input");
    /// Output name.
    OutputName -> Located<String>: "identifier", json::identifier(), |toml, entry| tensor_name(toml, entry, "an output");
    /// Element type or type parameter.
    TensorType -> Located<String>: "element type or type parameter", json::identifier(),
        |toml, entry| type_or_format(toml, entry, "[types]", "T");
    /// Shape input's type with its integer range.
    ShapeInputType -> (Located<String>, Interval): "`\"i32\"` or `\"i64\"`", json!({ "enum": ["i32", "i64"] }),
        |toml, entry| integer_type(toml, entry, "a shape input");
    /// Size's type with its integer range.
    SizeType -> (Located<String>, Interval): "`\"i32\"` or `\"i64\"`", json!({ "enum": ["i32", "i64"] }),
        |toml, entry| integer_type(toml, entry, "a size");
    /// Layout or format parameter; `None` if invalid.
    TensorFormat -> Option<Located<String>>: "format or format parameter", json::identifier(),
        |toml, entry| Some(type_or_format(toml, entry, "[formats]", "F"));
    /// Rank or range of ranks.
    Rank -> Located<Interval>: "integer or range from 0 to 8", json!({ "anyOf": [
        { "type": "integer", "minimum": 0, "maximum": MAX_RANK },
        { "type": "string", "pattern": json::range(&format!("[0-{MAX_RANK}]")) },
    ] }), |toml, entry| RANK.read(toml, entry);
    /// Shape input's rank.
    ShapeInputRank -> Located<u8>: "0 or 1", json!({ "type": "integer", "minimum": 0, "maximum": 1 }), single_rank;
    /// Only `true`.
    True -> (): "`true`", json!({ "const": true }), only_true;
    /// Parsed once the type is known.
    IntegerRange -> Entry<'t>: "integer or range",
        json!({ "anyOf": [{ "type": "integer" }, { "type": "string", "pattern": json::range(json::INTEGER) }] }), TomlReader::unread;
    /// Shape expression.
    Shape -> Text: "expression (a string)", json!({ "type": "string" }), shape;
    /// Size, range, or one for each dimension.
    Dimensions -> WrittenDimensions: "integer, range, or array of them", json!({ "anyOf": [
        { "type": "integer", "minimum": 0 },
        { "type": "string", "pattern": json::range(json::SIZE) },
        { "type": "array", "items": json::size(), "maxItems": MAX_RANK },
    ] }), dimensions;
    /// Size or range of sizes.
    Count -> Located<Interval>: "integer or range", json::size(), |toml, entry| NUMEL.read(toml, entry);
}

impl Declaration for SizeDecl {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&SIZE_BOUND], but_for: None };

    fn help(toml: &TomlReader, entry: &Entry<'_>) -> Option<String> {
        let is_expression = matches!(entry.value, DeValue::String(_) | DeValue::Integer(_));
        let written = toml.written(&entry.range).unwrap_or("\"...\"");
        is_expression.then(|| format!("write `size = {{ upper = {written} }}`"))
    }

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<SizeDecl> {
        let SizeKeys { upper, opt } = Row::read_all(toml, section);
        Some(SizeDecl { upper: upper?, opt })
    }
}

enum WrittenDimensions {
    Every(Interval),
    Single(Located<Vec<Interval>>),
}

struct WrittenLimits {
    dims: Option<WrittenDimensions>,
    numel: Option<Located<Interval>>,
    range: Range<usize>,
}

impl Declaration for WrittenLimits {
    const KINDS: &'static Kinds = &Kinds { keys: &[], tables: &[&LIMITS], but_for: None };

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<WrittenLimits> {
        let range = section.value_range.clone();
        let Limits { dims, numel } = Row::read_all(toml, section);
        Some(WrittenLimits { dims, numel, range })
    }
}

struct Ranks {
    lowest: u8,
    highest: u8,
    range: Option<Range<usize>>,
}

impl Declaration for InputDecl {
    const KINDS: &'static Kinds =
        &Kinds { keys: &["shape_input"], tables: &[&SHAPE_INPUT, &INPUT], but_for: None };

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<InputDecl> {
        if section.has("shape_input") {
            return shape_input(toml, section);
        }
        let Input { name, ty, format, rank, limits, doc } = Row::read_all(toml, section);
        let ranks = ranks(rank.as_ref());
        let limits = check_limits(toml, limits, Some(&ranks));
        let (name, doc) = (name?, doc.unwrap_or_default());
        let rank = (ranks.lowest, ranks.highest);
        let (Some(ty), None | Some(Some(_))) = (ty, &format) else { return toml.mark_broken(name) };
        let (format, rank_range) = (format.flatten(), ranks.range);
        Some(InputDecl { name, ty, format, rank, rank_range, limits, values: None, doc })
    }
}

impl Declaration for OutputDecl {
    const KINDS: &'static Kinds =
        &Kinds { keys: &["alias", "size"], tables: &[&ALIAS, &SIZE_TENSOR, &OUTPUT], but_for: None };

    fn read(toml: &mut TomlReader, _: Located<String>, section: Section<'_>) -> Option<OutputDecl> {
        if section.has("alias") {
            return in_place(toml, section);
        }
        if section.has("size") {
            return size_tensor(toml, section);
        }
        let Output { name, ty, format, shape, limits, doc } = Row::read_all(toml, section);
        let limits = check_limits(toml, limits, None);
        let (name, doc) = (name?, doc.unwrap_or_default());
        let (Some(ty), None | Some(Some(_)), Some(shape)) = (ty, &format, shape) else {
            return toml.mark_broken(name);
        };
        let format = format.flatten();
        Some(OutputDecl { name, ty, format, shape, limits, alias: None, size: None, doc })
    }
}

fn shape_input(toml: &mut TomlReader, section: Section<'_>) -> Option<InputDecl> {
    let ShapeInput { name, shape_input: _reported, ty, rank, limits, values, doc } =
        Row::read_all(toml, section);
    let single = rank.as_ref().map_or(1, |rank| rank.value);
    let ranks = Ranks { lowest: single, highest: single, range: rank.map(|rank| rank.range) };
    let mut limits = check_limits(toml, limits, Some(&ranks));
    limit_count(toml, &mut limits, &ranks);
    let (least, most) = ty.as_ref().map_or((i64::MIN, i64::MAX), |(_, all)| (all.min, all.max));
    let all = Sizes { least, most, ..Sizes::new("an integer or a range of integers, of the input's type") };
    let values = values.and_then(|entry| all.read(toml, &entry));
    let name = name?;
    let Some((ty, all)) = ty else { return toml.mark_broken(name) };
    let values = Some(values.unwrap_or(Located { value: all, range: 0..0 }));
    let (rank, doc) = ((single, single), doc.unwrap_or_default());
    Some(InputDecl { name, ty, format: None, rank, rank_range: ranks.range, limits, values, doc })
}

fn only_true(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<()> {
    if entry.value.as_bool() != Some(true) {
        let help = Some("remove it if this is not a shape input".to_owned());
        toml.report(WrongType { help, ..toml.wrong_type(entry, "`true`") });
        return None;
    }
    Some(())
}

fn single_rank(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Located<u8>> {
    let rank = SHAPE_INPUT_RANK.read(toml, entry)?;
    if rank.value.min != rank.value.max {
        toml.report(ShapeInputRankRange { place: toml.span(&rank) });
        return None;
    }
    Some(Located { value: u8::try_from(rank.value.min).unwrap_or(1), range: rank.range })
}

/// Applies TensorRT's maximum number of values.
fn limit_count(toml: &mut TomlReader, limits: &mut LimitsDecl, ranks: &Ranks) {
    let most = |allowed: Interval| Interval { max: allowed.max.min(MAX_SHAPE_VALUES), ..allowed };
    let shape = &mut limits.limits;
    if ranks.highest == 0 {
        return;
    }
    if shape.dim(0).min > MAX_SHAPE_VALUES || shape.numel.min > MAX_SHAPE_VALUES {
        toml.report(TooManyShapeValues { most: MAX_SHAPE_VALUES, place: toml.span(limits.range.clone()) });
        *shape = ShapeLimits::default();
    }
    shape.every = most(shape.every);
    shape.dims.iter_mut().for_each(|dim| *dim = most(*dim));
}

fn integer_type(
    toml: &mut TomlReader,
    entry: &Entry<'_>,
    what: &'static str,
) -> Option<(Located<String>, Interval)> {
    let ty = type_or_format(toml, entry, "[types]", "T")?;
    let all = match DataType::from_name(&ty.value) {
        Some(DataType::I64) => Interval { min: i64::MIN, max: i64::MAX },
        Some(DataType::I32) => Interval { min: i32::MIN.into(), max: i32::MAX.into() },
        _ => {
            toml.report(NotIntegerType { what, place: toml.span(&ty), found: ty.value });
            return None;
        }
    };
    Some((ty, all))
}

fn in_place(toml: &mut TomlReader, mut section: Section<'_>) -> Option<OutputDecl> {
    for entry in foreign_keys(&mut section, &["type", "shape", "limits", "format"]) {
        toml.report(KeyOfAlias { place: toml.span(entry.key_range), key: entry.key });
    }
    let Alias { name, alias, doc } = Row::read_all(toml, section);
    let name = name?;
    let Some(alias) = alias else { return toml.mark_broken(name) };
    let ty = Located { value: String::new(), range: alias.range.clone() };
    let shape = Text::stands_for(alias.range.clone(), "[]".to_owned());
    let (limits, doc) = (LimitsDecl::default(), doc.unwrap_or_default());
    Some(OutputDecl { name, ty, format: None, shape, limits, alias: Some(alias), size: None, doc })
}

fn foreign_keys<'t>(section: &mut Section<'t>, keys: &[&str]) -> Vec<Entry<'t>> {
    let found: Vec<Entry<'t>> = keys.iter().filter_map(|key| section.entry(key)).collect();
    found.iter().for_each(|entry| section.set_reported(&entry.key));
    found
}

/// Placeholders if the input is unknown.
pub(super) fn inherit(output: &mut OutputDecl, inputs: &[InputDecl]) {
    let Some(alias) = &output.alias else { return };
    let input = inputs.iter().find(|input| input.name.value == alias.value);
    output.ty.value = input.map_or_else(|| DataType::F32.name().to_owned(), |input| input.ty.value.clone());
    if let Some(input) = input {
        output.format.clone_from(&input.format);
        output.shape = Text::stands_for(alias.range.clone(), format!("{}.shape", alias.value));
    }
}

fn size_tensor(toml: &mut TomlReader, mut section: Section<'_>) -> Option<OutputDecl> {
    for entry in foreign_keys(&mut section, &["shape", "limits", "format"]) {
        toml.report(KeyOfSizeTensor { place: toml.span(entry.key_range), key: entry.key });
    }
    let range = section.entry("size").map_or(0..0, |size| size.range);
    let SizeTensor { name, ty, size, doc } = Row::read_all(toml, section);
    let name = name?;
    let (Some((ty, _)), Some(size)) = (ty, size) else { return toml.mark_broken(name) };
    let shape = Text::stands_for(range, "[]".to_owned());
    let (limits, doc) = (LimitsDecl::default(), doc.unwrap_or_default());
    Some(OutputDecl { name, ty, format: None, shape, limits, alias: None, size: Some(size), doc })
}

fn type_or_format(
    toml: &mut TomlReader,
    entry: &Entry<'_>,
    table: &str,
    name: &str,
) -> Option<Located<String>> {
    if entry.items().is_none() {
        return toml.string(entry);
    }
    let (key, written) = (&entry.key, toml.written(&entry.range).unwrap_or("[...]"));
    let help =
        format!("declare a parameter: `{name} = {written}` in `{table}`, and `{key} = \"{name}\"` here");
    toml.report(WrongType { help: Some(help), ..toml.wrong_type(entry, "a string") });
    None
}

/// Knows TOML arrays.
fn shape(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Text> {
    let Some(items) = entry.items() else { return toml.text(entry) };
    let part = |item: &Entry<'_>| match item.value {
        DeValue::String(text) if !text.contains(['"', '\\', '\n']) => Some(text.to_string()),
        DeValue::Integer(integer) => Some(integer.to_string()),
        _ => None,
    };
    let parts: Option<Vec<String>> = items.iter().map(part).collect();
    let array = parts.map_or_else(|| "...".to_owned(), |parts| parts.join(", "));
    let help = Some(format!("write `shape = \"[{array}]\"`"));
    toml.report(WrongType { help, ..toml.wrong_type(entry, "a string with an expression") });
    None
}

fn tensor_name(toml: &mut TomlReader, entry: &Entry<'_>, what: &str) -> Option<Located<String>> {
    let name = toml.string(entry)?;
    toml.identifier(&name, what);
    Some(name)
}

fn ranks(rank: Option<&Located<Interval>>) -> Ranks {
    let fits = |size: i64| u8::try_from(size).unwrap_or(MAX_RANK);
    Ranks {
        lowest: rank.map_or(0, |rank| fits(rank.value.min)),
        highest: rank.map_or(MAX_RANK, |rank| fits(rank.value.max)),
        range: rank.map(|rank| rank.range.clone()),
    }
}

fn dimensions(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<WrittenDimensions> {
    let Some(items) = entry.items() else {
        return DIMS.read(toml, entry).map(|size| WrittenDimensions::Every(size.value));
    };
    let sizes: Vec<Option<Located<Interval>>> = items.iter().map(|item| DIMS.read(toml, item)).collect();
    let value = sizes.into_iter().map(|size| Some(size?.value)).collect::<Option<Vec<_>>>()?;
    Some(WrittenDimensions::Single(Located { value, range: entry.range.clone() }))
}

/// `ranks` is `None` for outputs.
fn check_limits(toml: &mut TomlReader, written: Option<WrittenLimits>, ranks: Option<&Ranks>) -> LimitsDecl {
    let Some(written) = written else { return LimitsDecl::default() };
    let mut limits = ShapeLimits::default();
    match written.dims {
        Some(WrittenDimensions::Every(size)) => limits.every = size,
        Some(WrittenDimensions::Single(sizes)) => single_dimensions(toml, sizes, ranks, &mut limits),
        None => {}
    }
    if let Some(numel) = written.numel {
        limits.numel = numel.value;
        check_possible(toml, &numel, &limits, ranks);
    }
    LimitsDecl { limits, range: written.range }
}

fn single_dimensions(
    toml: &mut TomlReader,
    written: Located<Vec<Interval>>,
    ranks: Option<&Ranks>,
    limits: &mut ShapeLimits,
) {
    let sizes = written.value;
    let Some(fixed) = ranks.filter(|ranks| ranks.lowest == ranks.highest) else {
        let found = counted(sizes.len() as u64, "dimension", "dimensions");
        let help = match ranks {
            None => "write one range for all dimensions: `dims = \"1..=65535\"`".to_owned(),
            Some(_) => {
                format!("write `rank = {}` in this input, or one range for all dimensions", sizes.len())
            }
        };
        let note = match ranks {
            None => Some("the rank of an output follows from its `shape`"),
            Some(Ranks { range: None, .. }) => Some("an input without `rank` may have 0 to 8 dimensions"),
            Some(_) => None,
        };
        let (lowest, highest) = ranks.map_or((0, 0), |ranks| (ranks.lowest, ranks.highest));
        let ranks = ranks.and_then(|ranks| ranks.range.clone()).map(|range| toml.span(range));
        let place = toml.span(written.range);
        toml.report(DimensionsOfAnyRank { found, place, ranks, lowest, highest, note, help });
        return;
    };
    if sizes.len() != usize::from(fixed.lowest) {
        let declared = fixed.range.clone().map(|range| toml.span(range));
        let (found, place, rank) = (sizes.len(), toml.span(written.range), fixed.lowest);
        toml.report(DimensionCount { found, place, rank, declared });
        return;
    }
    limits.dims = sizes;
    let least = limits.dims.iter().map(|size| size.min).min();
    let most = limits.dims.iter().map(|size| size.max).max();
    if let Some((min, max)) = least.zip(most) {
        limits.every = Interval { min, max };
    }
}

fn check_possible(
    toml: &mut TomlReader,
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
        format!("these dimensions have at least {}", counted(least, "element", "elements"))
    } else {
        format!("these dimensions have at most {}", counted(most, "element", "elements"))
    };
    toml.report(UnmeetableLimits { bound, place: toml.span(numel) });
}
