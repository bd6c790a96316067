//! Test files: nodes with their shapes, and what is expected of them.
//!
//! Owns the file's form ([`read`]) and the comparison ([`run`]). Everything that is expected is optional.
//!
//! ```toml
//! manifest = "../manifests/scale.toml"     # a library, a bundle or an engine will do too
//!
//! [[cases]]
//! name = "a vector of four"
//! shapes = { x = [2, 4] }
//! attributes = { factor = 2.0 }
//! types = { T = "f16" }
//! aligned = { x = 16 }
//! [cases.expect]
//! shapes = { y = [2, 4] }
//! variant = 1
//! grid = [1]
//! block = [256]
//! shared_bytes = 0
//! args = { count = 8 }
//! # error = "part of why the node is refused"
//! ```
//!
//! What tensors hold (`data`) is for `cubinder test`, which runs the cases on a GPU ([`Cases::trial`]).

mod data;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_expr::Value;
use cubinder_model::Plugin;
use toml::de::DeValue;

use crate::diagnostic::{Diagnostic, Source, harmless, suggest};
use crate::eval::{Compiler, Evaluation, Outcome, Subject, evaluate, state};
use crate::manifest::form::{Entry, Form, Section};
use crate::query::{Given, Mistake, Part, Query, alignment, check_shape};
use crate::trial::{DataFile, InputData, Trial, mistakes};
use data::Data;

/// A test file.
#[derive(Debug, Clone, PartialEq)]
pub struct Cases {
    /// The text.
    pub source: Arc<Source>,
    /// What the cases are about, resolved against the file's folder.
    pub subject: PathBuf,
    /// The cases, in the file's order.
    pub list: Vec<Case>,
    /// What holds for every case that says nothing else.
    data: Data,
}

/// A case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Where it begins.
    range: Range<usize>,
    query: Query,
    /// Where each part of the query stands.
    places: Vec<(Part, String, Range<usize>)>,
    expected: Vec<(Range<usize>, Expected)>,
    error: Option<(Range<usize>, String)>,
    data: Data,
    /// What outputs are to hold.
    outputs: Vec<(String, DataFile)>,
}

impl Case {
    /// Whether it is to be refused.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.error.is_some()
    }
}

impl Cases {
    /// What a case asks for, with what the file says for all cases. None where there is no such case.
    ///
    /// # Errors
    /// What is wrong with a file that says an input's shape.
    #[must_use]
    pub fn trial(&self, index: usize) -> Option<Result<Trial, Difference>> {
        self.list.get(index).map(|case| self.trial_of(case))
    }

    fn trial_of(&self, case: &Case) -> Result<Trial, Difference> {
        let data = case.data.or(&self.data);
        self.query(case).map(|query| Trial {
            name: case.name.clone(),
            query,
            inputs: data.inputs,
            outputs: case.outputs.clone(),
            reference: data.reference,
            tolerance: data.tolerance,
            seed: data.seed.unwrap_or(0),
            variant: None,
        })
    }

    /// What holds for every case that says nothing else, with no shapes.
    #[must_use]
    pub fn defaults(&self) -> Trial {
        let Data { inputs, reference, tolerance, seed } = self.data.clone();
        Trial { inputs, reference, tolerance, seed: seed.unwrap_or(0), ..Trial::default() }
    }

    /// The query of a case: a file says its input's shape where the case does not, be it named for the case or for all of them.
    fn query(&self, case: &Case) -> Result<Query, Difference> {
        let mut query = case.query.clone();
        for (name, data) in &case.data.or(&self.data).inputs {
            let InputData::File(file) = data else { continue };
            if query.shapes.iter().any(|(known, _)| known == name) {
                continue;
            }
            let shape = file.shape().and_then(check_shape);
            let shape = shape.map_err(|why| {
                let text = format!("the input `{name}`: {why}");
                Difference { place: where_is(self, &case.range), text, mistake: true }
            })?;
            query.shapes.push((name.clone(), shape));
        }
        Ok(query)
    }
}

/// Something that is expected.
#[derive(Debug, Clone, PartialEq)]
enum Expected {
    Shape(String, Vec<i64>),
    Variant(i64),
    Grid([i64; 3]),
    Block([i64; 3]),
    SharedBytes(i64),
    Arg(String, Value),
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// The case's name.
    pub name: String,
    /// Everything that is not as expected. None: the case is right.
    pub differences: Vec<Difference>,
}

/// Something that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Where the expectation stands: `tests/scale.toml:12:9`.
    pub place: String,
    /// What was found and what was expected.
    pub text: String,
    /// Whether the case itself is wrong: it says something that is not there.
    pub mistake: bool,
}

/// Reads a test file.
///
/// # Errors
/// Every mistake of form.
pub fn read(source: &Arc<Source>) -> Result<Cases, Vec<Diagnostic>> {
    let mut form = Form::new(source);
    let cases = document(&mut form, source);
    let diagnostics = form.into_diagnostics();
    match cases {
        Some(cases) if diagnostics.is_empty() => Ok(cases),
        _ => Err(diagnostics),
    }
}

fn document(form: &mut Form<'_>, source: &Arc<Source>) -> Option<Cases> {
    form.parse().and_then(|document| {
        let mut root = Section::root(document.get_ref());
        let subject = form.require(&mut root, "manifest", "\"../manifests/NAME.toml\"");
        let subject = subject.and_then(|entry| form.string(&entry));
        let folder = source.path.parent().map(PathBuf::from).unwrap_or_default();
        let data = Data::read(form, &mut root, &folder);
        let tables = form.tables(&mut root, "cases");
        if tables.is_empty() {
            let error =
                Diagnostic::error("the file has no cases").at(form.span(0..0), "expected `[[cases]]`");
            form.report(error);
        }
        let list: Vec<Case> = tables.into_iter().map(|table| case(form, table, &folder)).collect();
        form.finish(&root);
        Some(Cases { source: Arc::clone(source), subject: folder.join(subject?.value), list, data })
    })
}

fn case(form: &mut Form<'_>, mut table: Section<'_>, folder: &Path) -> Case {
    let mut case = Case {
        name: String::new(),
        range: table.range.clone(),
        query: Query::default(),
        places: Vec::new(),
        expected: Vec::new(),
        error: None,
        data: Data::default(),
        outputs: Vec::new(),
    };
    if let Some(name) =
        form.require(&mut table, "name", "\"what it is about\"").and_then(|entry| form.string(&entry))
    {
        case.name = name.value;
    }
    for entry in form.lines(&mut table, "shapes") {
        case.places.push((Part::Shape, entry.key.clone(), entry.range.clone()));
        if let Some(shape) = shape(form, &entry) {
            case.query.shapes.push((entry.key, shape));
        }
    }
    for entry in form.lines(&mut table, "values") {
        case.places.push((Part::Values, entry.key.clone(), entry.range.clone()));
        if let Some(held) = value(form, &entry, true) {
            match held.as_ints() {
                Some(held) => case.query.values.push((entry.key, held)),
                None => wrong(form, &entry, "it is no array of integers"),
            }
        }
    }
    for entry in form.lines(&mut table, "device") {
        case.places.push((Part::Device, entry.key.clone(), entry.range.clone()));
        if let Some(fact) = form.integer(&entry) {
            case.query.device.push((entry.key, fact));
        }
    }
    for entry in form.lines(&mut table, "attributes") {
        case.places.push((Part::Attribute, entry.key.clone(), entry.range.clone()));
        if let Some(value) = value(form, &entry, true) {
            case.query.attributes.push((entry.key, Given::Value(value)));
        }
    }
    for entry in form.lines(&mut table, "types") {
        case.places.push((Part::Type, entry.key.clone(), entry.range.clone()));
        if let Some(ty) = form.string(&entry) {
            case.query.types.push((entry.key, ty.value));
        }
    }
    for entry in form.lines(&mut table, "formats") {
        case.places.push((Part::Format, entry.key.clone(), entry.range.clone()));
        if let Some(format) = form.string(&entry) {
            case.query.formats.push((entry.key, format.value));
        }
    }
    for entry in form.lines(&mut table, "aligned") {
        case.places.push((Part::Aligned, entry.key.clone(), entry.range.clone()));
        let Some(bytes) = form.integer(&entry) else { continue };
        match u64::try_from(bytes).map_err(|_| format!("{bytes} is no power of two")).and_then(alignment) {
            Ok(bytes) => case.query.aligned.push((entry.key, bytes)),
            Err(why) => wrong(form, &entry, &why),
        }
    }
    case.data = Data::read(form, &mut table, folder);
    if let Some(entry) = table.take("expect")
        && let Some(section) = form.table(&entry, "[cases.expect]".to_owned())
    {
        expect(form, section, &mut case, folder);
    }
    form.finish(&table);
    case
}

fn expect(form: &mut Form<'_>, mut table: Section<'_>, case: &mut Case, folder: &Path) {
    for entry in form.lines(&mut table, "shapes") {
        if let Some(shape) = shape(form, &entry) {
            case.expected.push((entry.range.clone(), Expected::Shape(entry.key, shape)));
        }
    }
    if let Some(entry) = table.take("variant")
        && let Some(id) = form.integer(&entry)
    {
        case.expected.push((entry.range, Expected::Variant(id)));
    }
    for (key, make) in [("grid", Expected::Grid as fn([i64; 3]) -> Expected), ("block", Expected::Block)] {
        if let Some(entry) = table.take(key)
            && let Some(extents) = extents(form, &entry)
        {
            case.expected.push((entry.range, make(extents)));
        }
    }
    if let Some(entry) = table.take("shared_bytes")
        && let Some(bytes) = form.integer(&entry)
    {
        case.expected.push((entry.range, Expected::SharedBytes(bytes)));
    }
    for entry in form.lines(&mut table, "args") {
        if let Some(value) = value(form, &entry, true) {
            case.expected.push((entry.range.clone(), Expected::Arg(entry.key, value)));
        }
    }
    case.outputs = data::outputs(form, &mut table, folder);
    if let Some(entry) = table.take("error")
        && let Some(text) = form.string(&entry)
    {
        case.error = Some((text.range, text.value));
    }
    form.finish(&table);
}

fn wrong(form: &mut Form<'_>, entry: &Entry<'_>, why: &str) {
    let error = Diagnostic::error(format!("`{}`: {why}", entry.key)).at(form.span(entry.range.clone()), "");
    form.report(error);
}

pub(crate) fn integers(form: &mut Form<'_>, entry: &Entry<'_>, expected: &str) -> Option<Vec<i64>> {
    form.array(entry, expected)?.iter().map(|item| form.integer(item)).collect()
}

pub(crate) fn shape(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<i64>> {
    let dims = integers(form, entry, "an array of dimensions, such as `[2, 3]`")?;
    match check_shape(dims) {
        Ok(dims) => Some(dims),
        Err(why) => {
            wrong(form, entry, &why);
            None
        }
    }
}

/// One to three numbers; what is not there is 1.
fn extents(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<[i64; 3]> {
    let found = integers(form, entry, "an array of one to three numbers")?;
    if found.is_empty() || found.len() > 3 {
        wrong(form, entry, &format!("it has {} numbers, expected one to three", found.len()));
        return None;
    }
    let mut extents = [1; 3];
    for (extent, value) in extents.iter_mut().zip(found) {
        *extent = value;
    }
    Some(extents)
}

/// A number, a boolean, a string or, where `list` allows it, an array of them.
pub(crate) fn value(form: &mut Form<'_>, entry: &Entry<'_>, list: bool) -> Option<Value> {
    match entry.value() {
        DeValue::Integer(_) => form.integer(entry).map(Value::Int),
        DeValue::Float(_) => form.float(entry).map(Value::Float),
        DeValue::Boolean(value) => Some(Value::Bool(*value)),
        DeValue::String(_) => form.string(entry).map(|text| Value::Str(text.value)),
        DeValue::Array(_) if list => {
            let items = form.array(entry, "an array")?;
            items.iter().map(|item| value(form, item, false)).collect::<Option<_>>().map(Value::Array)
        }
        _ => {
            wrong(form, entry, "expected a number, a boolean, a string or an array of them");
            None
        }
    }
}

/// Evaluates every case and holds it against what it expects.
#[must_use]
pub fn run(cases: &Cases, subject: &Subject, compiler: &Compiler) -> Vec<Verdict> {
    cases.list.iter().map(|case| verdict(cases, case, subject, compiler, &[])).collect()
}

/// Evaluates one case, on a device of which these facts are known where the case does not say them.
#[must_use]
pub fn verdict(
    cases: &Cases,
    case: &Case,
    subject: &Subject,
    compiler: &Compiler,
    device: &[(String, i64)],
) -> Verdict {
    let mut query = match cases.query(case) {
        Ok(query) => query,
        Err(difference) => return Verdict { name: case.name.clone(), differences: vec![difference] },
    };
    let unsaid = |(name, _): &&(String, i64)| query.device.iter().all(|(known, _)| known != name);
    let unsaid: Vec<(String, i64)> = device.iter().filter(unsaid).cloned().collect();
    query.device.extend(unsaid);
    let differs = |range: &Range<usize>, text: String| Difference {
        place: where_is(cases, range),
        text,
        mistake: false,
    };
    let mistaken = |range: &Range<usize>, text: String| Difference { mistake: true, ..differs(range, text) };
    let mut differences = match (evaluate(subject, &query, compiler), &case.error) {
        (Ok(outcome), error) => {
            let refusal = refusal(case, &outcome, error.as_ref());
            // What is refused against expectation has nothing else to be compared.
            let is_refused = outcome.evaluation.refused.is_some() && error.is_none();
            let others = if is_refused { Vec::new() } else { compare(case, &outcome.evaluation) };
            refusal.into_iter().chain(others).map(|(range, text)| differs(&range, text)).collect()
        }
        (Err(mistakes), Some((range, part))) => {
            another_error(&mistakes, part).map(|text| differs(range, text)).into_iter().collect()
        }
        (Err(mistakes), None) => mistakes
            .iter()
            .map(|mistake| mistaken(&place_of(case, mistake), one_line(&mistake.diagnostic)))
            .collect::<Vec<_>>(),
    };
    let misnamed = misnamed(case, &subject.plugin);
    // What is nowhere is told once.
    let is_told = |it: &Difference| misnamed.iter().any(|(range, _)| where_is(cases, range) == it.place);
    differences.retain(|it| !is_told(it));
    differences.extend(misnamed.iter().map(|(range, text)| mistaken(range, text.clone())));
    if let (Ok(stated), Ok(trial)) = (state(subject, &query), cases.trial_of(case)) {
        let all = mistakes(&subject.plugin, &stated, &trial);
        differences.extend(all.into_iter().map(|text| mistaken(&case.range, text)));
    }
    differences.dedup();
    Verdict { name: case.name.clone(), differences }
}

/// Everything that is wrong with a case on every device: what it says of the node, data that are not there or do not fit, and expectations of
/// tensors, variants and errors that there are not.
#[must_use]
pub fn mistaken(cases: &Cases, case: &Case, subject: &Subject) -> Vec<Difference> {
    let told = |(range, text): (Range<usize>, String)| Difference {
        place: where_is(cases, &range),
        text,
        mistake: true,
    };
    let query = match cases.query(case) {
        Ok(query) => query,
        Err(difference) => return vec![difference],
    };
    let of_node: Vec<_> = match (state(subject, &query), &case.error) {
        (Err(all), Some((range, part))) => {
            another_error(&all, part).map(|text| (range.clone(), text)).into_iter().collect()
        }
        (Err(all), None) => all.iter().map(|it| (place_of(case, it), one_line(&it.diagnostic))).collect(),
        // What is refused needs no data.
        (Ok(_), Some(_)) => Vec::new(),
        (Ok(stated), None) => {
            let trial = cases.trial_of(case).ok();
            let of_data = trial.map(|trial| mistakes(&subject.plugin, &stated, &trial)).unwrap_or_default();
            of_data.into_iter().map(|text| (case.range.clone(), text)).collect()
        }
    };
    of_node.into_iter().chain(misnamed(case, &subject.plugin)).map(told).collect()
}

/// What is said where none of the mistakes is the one that is expected.
fn another_error(all: &[Mistake], part: &str) -> Option<String> {
    let all: Vec<&str> = all.iter().map(|mistake| mistake.diagnostic.message.as_str()).collect();
    let is_there = all.iter().any(|message| message.contains(part));
    (!is_there).then(|| format!("it is refused: {}; expected `{part}` in that", all.join("; ")))
}

/// Expectations of tensors and variants that the plugin does not have.
fn misnamed(case: &Case, plugin: &Plugin) -> Vec<(Range<usize>, String)> {
    let found = |(range, expected): &(Range<usize>, Expected)| {
        let text = match expected {
            Expected::Shape(name, _) => {
                let inputs = plugin.inputs.iter().map(|input| input.name.as_str());
                let names = inputs.chain(plugin.outputs.iter().map(|output| output.name.as_str()));
                (!names.clone().any(|known| known == name)).then(|| no_such("tensor", name, names))
            }
            Expected::Variant(id) if plugin.variants.iter().all(|variant| i64::from(variant.id) != *id) => {
                let ids: Vec<String> = plugin.variants.iter().map(|variant| variant.id.to_string()).collect();
                Some(no_such("variant", &id.to_string(), ids.iter().map(String::as_str)))
            }
            _ => None,
        };
        text.map(|text| (range.clone(), text))
    };
    case.expected.iter().filter_map(found).collect()
}

/// Where a mistake of the query is: at what names it, else at the case.
fn place_of(case: &Case, mistake: &Mistake) -> Range<usize> {
    let named = case.places.iter().find(|(part, name, _)| *part == mistake.part && *name == mistake.name);
    named.map_or_else(|| case.range.clone(), |(_, _, range)| range.clone())
}

fn one_line(diagnostic: &Diagnostic) -> String {
    // Its help names options of the command line, unless it is a suggestion.
    let help = diagnostic.help.iter().filter(|help| help.starts_with("did you mean"));
    let parts = std::iter::once(&diagnostic.message).chain(&diagnostic.notes).chain(help);
    parts.map(String::as_str).collect::<Vec<_>>().join("; ")
}

/// What there is to say about the refusal, or that there is none.
fn refusal(
    case: &Case,
    outcome: &Outcome,
    error: Option<&(Range<usize>, String)>,
) -> Option<(Range<usize>, String)> {
    let failed =
        outcome.diagnostics.iter().find(|found| found.severity == crate::diagnostic::Severity::Error);
    if let Some(failed) = failed {
        return Some((case.range.clone(), format!("the kernel does not compile: {}", failed.message)));
    }
    let flat = |text: &str| text.replace('\n', "; ");
    match (&outcome.evaluation.refused, error) {
        (None, None) => None,
        (Some(why), Some((_, part))) if why.contains(part.as_str()) => None,
        (Some(why), Some((range, part))) => {
            Some((range.clone(), format!("it is refused: {}; expected `{part}` in that", flat(why))))
        }
        (Some(why), None) => Some((case.range.clone(), format!("it is refused: {}", flat(why)))),
        (None, Some((range, part))) => {
            let notes = outcome.evaluation.notes.join("; ");
            let notes = if notes.is_empty() { String::new() } else { format!(" ({notes})") };
            Some((range.clone(), format!("it is not refused, expected the error `{part}`{notes}")))
        }
    }
}

/// Every expectation that is not met.
fn compare(case: &Case, found: &Evaluation) -> Vec<(Range<usize>, String)> {
    let differs = |(range, expected): &(Range<usize>, Expected)| {
        difference(expected, found).map(|text| (range.clone(), text))
    };
    case.expected.iter().filter_map(differs).collect()
}

fn difference(expected: &Expected, found: &Evaluation) -> Option<String> {
    let launch = found.launches.first();
    let unequal = |what: &str, found: Option<String>, expected: String| {
        let found = found.unwrap_or_else(|| "not known".to_owned());
        (found != expected).then(|| format!("{what} is {found}, expected {expected}"))
    };
    let three = |extents: [u32; 3]| format!("{extents:?}");
    match expected {
        Expected::Shape(name, shape) => {
            let tensor = found.tensors.iter().find(|tensor| tensor.name == *name);
            let what = format!("the shape of `{name}`");
            unequal(&what, tensor.map(|tensor| format!("{:?}", tensor.shape)), format!("{shape:?}"))
        }
        Expected::Variant(id) => {
            let chosen = found.variants.iter().find(|variant| variant.chosen);
            unequal("the variant", chosen.map(|variant| variant.id.to_string()), id.to_string())
        }
        Expected::Grid(grid) => {
            unequal("the grid", launch.and_then(|launch| launch.grid).map(three), format!("{grid:?}"))
        }
        Expected::Block(block) => {
            unequal("the block", launch.and_then(|launch| launch.block).map(three), format!("{block:?}"))
        }
        Expected::SharedBytes(bytes) => unequal(
            "the dynamic shared memory",
            launch.filter(|launch| launch.grid.is_some()).map(|launch| launch.shared_bytes.to_string()),
            bytes.to_string(),
        ),
        Expected::Arg(name, value) => {
            let arg = launch.and_then(|launch| launch.args.iter().find(|arg| arg.name == *name));
            let Some(arg) = arg else {
                let names = launch.iter().flat_map(|launch| &launch.args).map(|arg| arg.name.as_str());
                return Some(no_such("argument", name, names));
            };
            let passed = match &arg.tensor {
                Some(tensor) => Some(Value::Str(tensor.clone())),
                None => arg.value.clone(),
            };
            let same = passed.as_ref().is_some_and(|passed| is_same(passed, value));
            let text = passed.map_or_else(|| "not known".to_owned(), |passed| passed.to_string());
            (!same).then(|| format!("the argument `{name}` is {text}, expected {value}"))
        }
    }
}

fn no_such<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let list: Vec<&str> = known.clone().collect();
    let list = if list.is_empty() { "none".to_owned() } else { format!("`{}`", list.join("`, `")) };
    let hint = suggest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("there is no {what} `{name}`, there is {list}{hint}")
}

/// Whole numbers stand for floats.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_same(found, expected))
        }
        #[allow(clippy::cast_precision_loss, clippy::float_cmp)] // what a person writes is meant exactly
        (Value::Float(found), Value::Int(expected)) => *found == *expected as f64,
        (found, expected) => found == expected,
    }
}

fn where_is(cases: &Cases, range: &Range<usize>) -> String {
    let at = cases.source.place(range.start);
    format!("{}:{}:{}", cases.source.path.display(), at.line, at.column)
}

/// The verdicts for people: one line for each case and each difference, then how many there are.
#[must_use]
pub fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        if verdict.differences.is_empty() {
            text.push_str(&format!("ok       {}\n", verdict.name));
        }
        for difference in &verdict.differences {
            let what = if difference.mistake { "mistake" } else { "differs" };
            text.push_str(&format!("{what}  {}: {}: {}\n", verdict.name, difference.place, difference.text));
        }
    }
    let wrong = verdicts.iter().filter(|verdict| !verdict.differences.is_empty()).count();
    text.push_str(&match (verdicts.len(), wrong) {
        (all, 0) => format!("{all} as expected\n"),
        (all, wrong) => format!("{} as expected, {wrong} not\n", all - wrong),
    });
    harmless(&text, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/cases.md");

    /// The page's example has every key, and its tables have the keys that are read, and what is required.
    #[test]
    fn the_reference_has_the_keys_that_are_read() {
        let example = PAGE.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let source = Source::new("cases.toml", example);
        let cases = read(&source).unwrap();
        assert_eq!(cases.list.iter().map(|case| case.expected.len()).sum::<usize>(), 7);
        let mut form = Form::new(&source);
        document(&mut form, &source).unwrap();
        for (heading, section) in
            [("The file", ""), ("`[[cases]]`", "[[cases]]"), ("`expect`", "[cases.expect]")]
        {
            let asked = form.asked.iter().find(|asked| asked.name == section);
            let asked = asked.unwrap_or_else(|| panic!("{section}: {:?}", form.asked));
            let part = PAGE.split(&format!("## {heading}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
            let rows = part.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
            let (mut named, mut required) = (Vec::new(), Vec::new());
            for (key, rest) in rows {
                named.push(key);
                // The file's cases are asked for as tables; that there are none is an error of its own.
                if rest.contains(" | required | ") && key != "cases" {
                    required.push(key);
                }
            }
            let sorted = |keys: &[&str]| {
                keys.iter().map(|key| (*key).to_owned()).collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(sorted(&named), sorted(&asked.keys), "{section}");
            assert_eq!(sorted(&required), sorted(&asked.required), "{section}");
        }
    }
}
