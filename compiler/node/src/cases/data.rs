//! The values of tensors in a file of cases.

use std::path::Path;

use toml::de::DeValue;

use crate::manifest::form::{Entry, Form, Section};
use crate::query::read::{right, wrong};
use crate::trial::{DataFile, FunctionRef, InputData, Number, Tolerance, Trial};

/// The keys of a case that the file may also have for all cases.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Data {
    pub(super) inputs: Vec<(String, InputData)>,
    pub(super) reference: Option<FunctionRef>,
    pub(super) tolerance: Vec<(String, Tolerance)>,
    pub(super) seed: Option<u64>,
}

impl Data {
    pub(super) fn read(form: &mut Form<'_>, table: &mut Section<'_>, folder: &Path) -> Data {
        let mut data = Data::default();
        for entry in form.lines(table, "inputs") {
            if let Some(input) = input(form, &entry, folder) {
                data.inputs.push((entry.key, input));
            }
        }
        if let Some(entry) = table.take("reference")
            && let Some(text) = form.string(&entry)
        {
            data.reference = right(form, &entry, FunctionRef::parse(&text.value, folder));
        }
        for entry in form.lines(table, "tolerance") {
            if let Some(tolerance) = tolerance(form, &entry) {
                data.tolerance.push((entry.key, tolerance));
            }
        }
        if let Some(entry) = table.take("seed")
            && let Some(seed) = form.integer(&entry)
        {
            let checked = u64::try_from(seed).map_err(|_| format!("it is {seed}, the least is 0"));
            data.seed = right(form, &entry, checked);
        }
        data
    }

    /// A trial with this data and no shapes.
    pub(super) fn trial(self) -> Trial {
        let Data { inputs, reference, tolerance, seed } = self;
        Trial { inputs, reference, tolerance, seed: seed.unwrap_or(0), ..Trial::default() }
    }

    /// Its entries, and those of `others` that it lacks.
    pub(super) fn or(&self, others: &Data) -> Data {
        Data {
            inputs: first(&self.inputs, &others.inputs),
            reference: self.reference.clone().or_else(|| others.reference.clone()),
            tolerance: first(&self.tolerance, &others.tolerance),
            seed: self.seed.or(others.seed),
        }
    }
}

/// `one`, and of `others` what is not named in it.
pub(super) fn first<T: Clone>(one: &[(String, T)], others: &[(String, T)]) -> Vec<(String, T)> {
    let more = others.iter().filter(|(name, _)| one.iter().all(|(known, _)| known != name));
    one.iter().chain(more).cloned().collect()
}

/// The files with the expected values of outputs.
pub(super) fn outputs(
    form: &mut Form<'_>,
    table: &mut Section<'_>,
    folder: &Path,
) -> Vec<(String, DataFile)> {
    let entries = form.lines(table, "outputs").into_iter();
    entries.filter_map(|entry| Some((entry.key.clone(), file(form, &entry, folder)?))).collect()
}

fn file(form: &mut Form<'_>, entry: &Entry<'_>, folder: &Path) -> Option<DataFile> {
    let text = form.string(entry)?;
    right(form, entry, DataFile::parse(&text.value, &entry.key, folder))
}

/// `"x.npy"`, `[1, 2.5]`, `{ range = [-1, 1] }` or `{ range = [[0, 0], [0, 99]] }`.
fn input(form: &mut Form<'_>, entry: &Entry<'_>, folder: &Path) -> Option<InputData> {
    match entry.value() {
        DeValue::String(_) => file(form, entry, folder).map(InputData::File),
        DeValue::Array(_) => numbers(form, entry).map(InputData::Numbers),
        DeValue::Table(_) => {
            let mut table = form.table(entry, "[cases.inputs.NAME]".to_owned())?;
            let range = form.require(&mut table, "range", "`[-1, 1]`");
            let range = range.and_then(|entry| ranges(form, &entry));
            form.finish(&table);
            range
        }
        _ => {
            wrong(form, entry, "expected a file, an array of numbers or `{ range = [-1, 1] }`");
            None
        }
    }
}

/// `[-1, 1]`, or such a pair for each place of the last dimension.
fn ranges(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<InputData> {
    const EXPECTED: &str = "expected two numbers, the least and the greatest, or such a pair for each place of the last dimension";
    let items = form.array(entry, "an array of two numbers")?;
    if !items.is_empty() && items.iter().all(|item| matches!(item.value(), DeValue::Array(_))) {
        let pairs: Option<Vec<_>> = items.iter().map(|item| pair(form, item, EXPECTED)).collect();
        return pairs.map(InputData::Columns);
    }
    pair(form, entry, EXPECTED).map(|(least, most)| InputData::Range(least, most))
}

fn pair(form: &mut Form<'_>, entry: &Entry<'_>, expected: &str) -> Option<(f64, f64)> {
    let ends: Vec<f64> = numbers(form, entry)?.iter().map(|number| number.as_f64()).collect();
    match ends[..] {
        [least, most] if least <= most && (most - least).is_finite() => Some((least, most)),
        _ => {
            wrong(form, entry, expected);
            None
        }
    }
}

fn numbers(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Vec<Number>> {
    let items = form.array(entry, "an array of numbers")?;
    items.iter().map(|item| number(form, item)).collect()
}

fn number(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Number> {
    match entry.value() {
        DeValue::Integer(_) => form.integer(entry).map(Number::Int),
        DeValue::Boolean(value) => Some(Number::Int(i64::from(*value))),
        // A tensor may hold what is no number.
        DeValue::Float(float) => match float.as_str() {
            "nan" | "+nan" | "-nan" => Some(Number::Float(f64::NAN)),
            "inf" | "+inf" => Some(Number::Float(f64::INFINITY)),
            "-inf" => Some(Number::Float(f64::NEG_INFINITY)),
            _ => form.float(entry).map(Number::Float),
        },
        _ => form.float(entry).map(Number::Float),
    }
}

/// `{ atol = 1e-3, rtol = 1e-2 }`, each 0 if it is missing.
fn tolerance(form: &mut Form<'_>, entry: &Entry<'_>) -> Option<Tolerance> {
    let mut table = form.table(entry, "[cases.tolerance.NAME]".to_owned())?;
    let mut part = |key| {
        let Some(entry) = table.take(key) else { return Some(0.0) };
        let value = number(form, &entry)?.as_f64();
        if value >= 0.0 && value.is_finite() {
            return Some(value);
        }
        wrong(form, &entry, format!("it is {value}, the least is 0"));
        None
    };
    let (atol, rtol) = (part("atol"), part("rtol"));
    form.finish(&table);
    Some(Tolerance { atol: atol?, rtol: rtol? })
}
