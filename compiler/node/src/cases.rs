//! Test files: nodes with shapes and optional expectations. Owns syntax (`docs/cases.md`, [`read()`]) and comparison
//! ([`run`]). Tensor values (`data`) are for `cubinder test` ([`Cases::trial`]).

mod data;
mod read;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use cubinder_expr::Value;
use cubinder_model::Plugin;

use crate::diagnostic::{Severity, Source, harmless, suggest};
use crate::eval::{Compiler, EvaluatedNode, Evaluation, ResolvedQuery, Subject, evaluate, resolve_query};
use crate::query::read::Places;
use crate::query::{Mistake, Query, check_shape};
use crate::trial::{self, DataFile, InputData, Trial};
use data::CaseData;

pub use read::read;

/// Test file.
#[derive(Debug, Clone, PartialEq)]
pub struct Cases {
    /// Text.
    pub source: Arc<Source>,
    /// Tested file, resolved against this file's folder.
    pub subject: PathBuf,
    /// Cases, in the file's order.
    pub list: Vec<Case>,
    /// Defaults for all cases.
    data: CaseData,
}

/// Case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Case {
    /// Name.
    pub name: String,
    range: Range<usize>,
    query: Query,
    places: Places,
    expected: Vec<(Range<usize>, Expected)>,
    error: Option<(Range<usize>, String)>,
    data: CaseData,
    outputs: Vec<(String, DataFile)>,
}

impl Case {
    /// Returns whether the case expects an error.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        self.error.is_some()
    }
}

impl Cases {
    /// Returns a case's node with its data; fails for an invalid input file.
    pub fn trial(&self, case: &Case) -> Result<Trial, Difference> {
        let data = case.data.or(&self.data);
        self.query(case).map(|query| Trial {
            name: case.name.clone(),
            query,
            outputs: case.outputs.clone(),
            ..data.trial()
        })
    }

    /// Lists the names of the cases.
    #[must_use]
    pub fn names(&self) -> String {
        self.list.iter().map(|case| format!("`{}`", case.name)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the defaults of all cases, without shapes.
    #[must_use]
    pub fn defaults(&self) -> Trial {
        self.data.clone().trial()
    }

    fn query(&self, case: &Case) -> Result<Query, Difference> {
        let mut query = case.query.clone();
        for (name, data) in &case.data.or(&self.data).inputs {
            let InputData::File(file) = data else { continue };
            if query.shapes.iter().any(|(known, _)| known == name) {
                continue;
            }
            let shape = file.shape().and_then(check_shape);
            let shape =
                shape.map_err(|why| self.mistake(&case.range, format!("the input `{name}`: {why}")))?;
            query.shapes.push((name.clone(), shape));
        }
        Ok(query)
    }

    fn differs(&self, range: &Range<usize>, text: String) -> Difference {
        let at = self.source.line_column(range.start);
        let place = format!("{}:{}:{}", self.source.path.display(), at.line, at.column);
        Difference { place, text, mistake: false }
    }

    fn mistake(&self, range: &Range<usize>, text: String) -> Difference {
        Difference { mistake: true, ..self.differs(range, text) }
    }

    fn of_query(&self, case: &Case, all: &[Mistake]) -> Vec<Difference> {
        let Some((range, part)) = &case.error else {
            let range = |mistake: &Mistake| {
                let is_it =
                    |(part, name, _): &&(_, String, _)| *part == mistake.part && *name == mistake.name;
                case.places.iter().find(is_it).map_or(&case.range, |(_, _, range)| range)
            };
            return all.iter().map(|it| self.mistake(range(it), it.in_one_line())).collect();
        };
        let all: Vec<&str> = all.iter().map(|mistake| mistake.diagnostic.message.as_str()).collect();
        let is_expected = all.iter().any(|message| message.contains(part));
        let text = || format!("rejected: {}; expected the message to contain `{part}`", all.join("; "));
        (!is_expected).then(|| self.differs(range, text())).into_iter().collect()
    }

    fn of_data(&self, case: &Case, plugin: &Plugin, resolved: &ResolvedQuery) -> Vec<Difference> {
        let Ok(trial) = self.trial(case) else { return Vec::new() };
        let found = trial::check(plugin, resolved, &trial).into_iter();
        found.map(|text| self.mistake(&case.range, text)).collect()
    }

    fn misnamed(&self, case: &Case, plugin: &Plugin) -> Vec<Difference> {
        let found = |(range, expected): &(Range<usize>, Expected)| {
            let text = match expected {
                Expected::Shape(name, _) => {
                    let inputs = plugin.inputs.iter().map(|input| input.name.as_str());
                    let names = inputs.chain(plugin.outputs.iter().map(|output| output.name.as_str()));
                    (!names.clone().any(|known| known == name)).then(|| no_such("tensor", name, names))
                }
                Expected::Variant(id)
                    if plugin.variants.iter().all(|variant| i64::from(variant.id) != *id) =>
                {
                    let ids: Vec<String> =
                        plugin.variants.iter().map(|variant| variant.id.to_string()).collect();
                    Some(no_such("variant", &id.to_string(), ids.iter().map(String::as_str)))
                }
                _ => None,
            };
            text.map(|text| self.mistake(range, text))
        };
        case.expected.iter().filter_map(found).collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Expected {
    Shape(String, Vec<i64>),
    Variant(i64),
    Grid([i64; 3]),
    Block([i64; 3]),
    SharedBytes(i64),
    Arg(String, Value),
}

/// Result of a case.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// Case name.
    pub name: String,
    /// Failed expectations; empty if the case passes.
    pub differences: Vec<Difference>,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Failed expectation.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Difference {
    /// Position: `tests/scale.toml:12:9`.
    pub place: String,
    /// Found and expected values.
    pub text: String,
    /// Whether the case uses unknown names.
    pub mistake: bool,
}

/// Evaluates all cases.
#[must_use]
pub fn run(cases: &Cases, subject: &Subject, compiler: &Compiler) -> Vec<Verdict> {
    cases.list.iter().map(|case| verdict(cases, case, subject, compiler, &[])).collect()
}

/// Evaluates one case on a device; the case's facts take precedence.
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
    query.device = data::first(&query.device, device);
    let mut differences = match evaluate(subject, &query, compiler) {
        Ok(outcome) => {
            let refusal = refusal(case, &outcome);
            // The other expectations are meaningless.
            let is_refused = outcome.evaluation.refused.is_some() && case.error.is_none();
            let compared = case.expected.iter().filter(|_| !is_refused).filter_map(|(range, expected)| {
                difference(expected, &outcome.evaluation).map(|text| (range.clone(), text))
            });
            refusal.into_iter().chain(compared).map(|(range, text)| cases.differs(&range, text)).collect()
        }
        Err(mistakes) => cases.of_query(case, &mistakes),
    };
    let misnamed = cases.misnamed(case, &subject.plugin);
    differences.retain(|it| misnamed.iter().all(|other| other.place != it.place));
    differences.extend(misnamed);
    if let Ok(resolved) = resolve_query(subject, &query) {
        differences.extend(cases.of_data(case, &subject.plugin, &resolved));
    }
    differences.dedup();
    Verdict { name: case.name.clone(), differences }
}

/// Returns device-independent errors in a case.
#[must_use]
pub fn mistaken(cases: &Cases, case: &Case, subject: &Subject) -> Vec<Difference> {
    let query = match cases.query(case) {
        Ok(query) => query,
        Err(difference) => return vec![difference],
    };
    let mut found = match (resolve_query(subject, &query), &case.error) {
        (Err(all), _) => cases.of_query(case, &all),
        // Rejected nodes need no data.
        (Ok(_), Some(_)) => Vec::new(),
        (Ok(resolved), None) => cases.of_data(case, &subject.plugin, &resolved),
    };
    found.extend(cases.misnamed(case, &subject.plugin));
    found
}

fn refusal(case: &Case, outcome: &EvaluatedNode) -> Option<(Range<usize>, String)> {
    let failed = outcome.diagnostics.iter().find(|found| found.severity == Severity::Error);
    if let Some(failed) = failed {
        return Some((case.range.clone(), format!("the kernel does not compile: {}", failed.message)));
    }
    let flat = |text: &str| text.replace('\n', "; ");
    match (&outcome.evaluation.refused, &case.error) {
        (None, None) => None,
        (Some(why), Some((_, part))) if why.contains(part.as_str()) => None,
        (Some(why), Some((range, part))) => Some((
            range.clone(),
            format!("rejected: {}; expected the message to contain `{part}`", flat(why)),
        )),
        (Some(why), None) => Some((case.range.clone(), format!("rejected: {}", flat(why)))),
        (None, Some((range, part))) => {
            let notes = outcome.evaluation.notes.join("; ");
            let notes = if notes.is_empty() { String::new() } else { format!(" ({notes})") };
            Some((range.clone(), format!("not rejected, expected the error `{part}`{notes}")))
        }
    }
}

fn difference(expected: &Expected, found: &Evaluation) -> Option<String> {
    let launch = found.launches.first();
    let three = |extents: Option<[u32; 3]>| extents.map(|extents| format!("{extents:?}"));
    let (what, found, expected) = match expected {
        Expected::Shape(name, shape) => {
            let tensor = found.tensors.iter().find(|tensor| tensor.name == *name);
            let found = tensor.map(|tensor| format!("{:?}", tensor.shape));
            (format!("the shape of `{name}`"), found, format!("{shape:?}"))
        }
        Expected::Variant(id) => {
            let chosen = found.variants.iter().find(|variant| variant.chosen);
            ("the variant".to_owned(), chosen.map(|variant| variant.id.to_string()), id.to_string())
        }
        Expected::Grid(grid) => {
            ("the grid".to_owned(), three(launch.and_then(|launch| launch.grid)), format!("{grid:?}"))
        }
        Expected::Block(block) => {
            ("the block".to_owned(), three(launch.and_then(|launch| launch.block)), format!("{block:?}"))
        }
        Expected::SharedBytes(bytes) => {
            let launched = launch.filter(|launch| launch.grid.is_some());
            let found = launched.map(|launch| launch.shared_bytes.to_string());
            ("the dynamic shared memory".to_owned(), found, bytes.to_string())
        }
        Expected::Arg(name, value) => {
            let arg = launch.and_then(|launch| launch.args.iter().find(|arg| arg.name == *name));
            let Some(arg) = arg else {
                let names = launch.iter().flat_map(|launch| &launch.args).map(|arg| arg.name.as_str());
                return Some(no_such("argument", name, names));
            };
            let passed = arg.tensor.clone().map(Value::Str).or_else(|| arg.value.clone());
            if passed.as_ref().is_some_and(|passed| is_same(passed, value)) {
                return None;
            }
            // Equal texts may have different types.
            let passed = passed.map_or_else(|| "unknown".to_owned(), |passed| passed.to_string());
            return Some(format!("the argument `{name}` is {passed}, expected {value}"));
        }
    };
    let found = found.unwrap_or_else(|| "unknown".to_owned());
    (found != expected).then(|| format!("{what} is {found}, expected {expected}"))
}

fn no_such<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let list: Vec<&str> = known.clone().collect();
    let list = if list.is_empty() { "none".to_owned() } else { format!("`{}`", list.join("`, `")) };
    let hint = suggest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("unknown {what} `{name}`; expected {list}{hint}")
}

/// Integers equal floats.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| is_same(found, expected))
        }
        #[allow(clippy::cast_precision_loss, clippy::float_cmp)] // literals are exact
        (Value::Float(found), Value::Int(expected)) => *found == *expected as f64,
        (found, expected) => found == expected,
    }
}

/// Formats verdicts, with totals.
#[must_use]
pub fn table(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    for verdict in verdicts {
        if verdict.differences.is_empty() {
            text.push_str(&format!("ok       {}\n", verdict.name));
        }
        for difference in &verdict.differences {
            let what = if difference.mistake { "error" } else { "differs" };
            text.push_str(&format!(
                "{what:<7}  {}: {}: {}\n",
                verdict.name, difference.place, difference.text
            ));
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

    #[test]
    fn the_reference_has_the_keys_that_are_read() {
        let example = PAGE.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let source = Source::new("cases.toml", example);
        let cases = read(&source).unwrap();
        assert_eq!(cases.list.iter().map(|case| case.expected.len()).sum::<usize>(), 7);
        let wrong = "zzz = 1\n[[cases]]\nzzz = 1\n[cases.expect]\nzzz = 1\n";
        let errors = read(&Source::new("cases.toml", wrong)).unwrap_err();
        for (heading, section) in
            [("The file", "the file"), ("`[[cases]]`", "`[[cases]]`"), ("`expect`", "`[cases.expect]`")]
        {
            let unknown = errors.iter().find(|it| it.message == format!("unknown key `zzz` in {section}"));
            let keys: Vec<&str> = unknown.unwrap().notes[0].split('`').skip(1).step_by(2).collect();
            let missing = errors.iter().filter_map(|it| {
                it.message.strip_suffix(section)?.strip_prefix("missing `")?.strip_suffix("` in ")
            });
            let missing: Vec<&str> = missing.collect();
            let part = PAGE.split(&format!("## {heading}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
            let rows = part.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
            let (mut named, mut required) = (Vec::new(), Vec::new());
            for (key, rest) in rows {
                named.push(key);
                if rest.contains(" | required | ") && key != "cases" {
                    required.push(key);
                }
            }
            let sorted = |keys: &[&str]| {
                keys.iter().map(|key| (*key).to_owned()).collect::<std::collections::BTreeSet<_>>()
            };
            assert_eq!(sorted(&named), sorted(&keys), "{section}");
            assert_eq!(sorted(&required), sorted(&missing), "{section}");
        }
    }
}
