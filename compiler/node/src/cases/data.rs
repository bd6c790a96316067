use std::path::Path;

use toml::de::DeValue;

use crate::manifest::toml_reader::{Entry, Section, TomlReader};
use crate::query::read::{right, wrong};
use crate::trial::{DataFile, FunctionRef, InputData, Number, Tolerance, Trial};

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct CaseData {
    pub(super) inputs: Vec<(String, InputData)>,
    pub(super) reference: Option<FunctionRef>,
    pub(super) tolerance: Vec<(String, Tolerance)>,
    pub(super) seed: Option<u64>,
}

impl CaseData {
    pub(super) fn read(toml: &mut TomlReader, table: &mut Section<'_>, folder: &Path) -> CaseData {
        let mut data = CaseData::default();
        for entry in toml.lines(table, "inputs") {
            if let Some(input) = input(toml, &entry, folder) {
                data.inputs.push((entry.key, input));
            }
        }
        if let Some(entry) = table.take("reference")
            && let Some(text) = toml.string(&entry)
        {
            data.reference = right(toml, &entry, FunctionRef::parse(&text.value, folder));
        }
        for entry in toml.lines(table, "tolerance") {
            if let Some(tolerance) = tolerance(toml, &entry) {
                data.tolerance.push((entry.key, tolerance));
            }
        }
        if let Some(entry) = table.take("seed")
            && let Some(seed) = toml.integer(&entry)
        {
            let checked = u64::try_from(seed).map_err(|_| format!("expected at least 0, found {seed}"));
            data.seed = right(toml, &entry, checked);
        }
        data
    }

    pub(super) fn trial(self) -> Trial {
        let CaseData { inputs, reference, tolerance, seed } = self;
        Trial { inputs, reference, tolerance, seed: seed.unwrap_or(0), ..Trial::default() }
    }

    pub(super) fn or(&self, others: &CaseData) -> CaseData {
        CaseData {
            inputs: first(&self.inputs, &others.inputs),
            reference: self.reference.clone().or_else(|| others.reference.clone()),
            tolerance: first(&self.tolerance, &others.tolerance),
            seed: self.seed.or(others.seed),
        }
    }
}

pub(super) fn first<T: Clone>(one: &[(String, T)], others: &[(String, T)]) -> Vec<(String, T)> {
    let more = others.iter().filter(|(name, _)| one.iter().all(|(known, _)| known != name));
    one.iter().chain(more).cloned().collect()
}

pub(super) fn outputs(
    toml: &mut TomlReader,
    table: &mut Section<'_>,
    folder: &Path,
) -> Vec<(String, DataFile)> {
    let entries = toml.lines(table, "outputs").into_iter();
    entries.filter_map(|entry| Some((entry.key.clone(), file(toml, &entry, folder)?))).collect()
}

fn file(toml: &mut TomlReader, entry: &Entry<'_>, folder: &Path) -> Option<DataFile> {
    let text = toml.string(entry)?;
    right(toml, entry, DataFile::parse(&text.value, &entry.key, folder))
}

/// Reads `"x.npy"`, `[1, 2.5]` or `{ range = [-1, 1] }`, also a range per last position.
fn input(toml: &mut TomlReader, entry: &Entry<'_>, folder: &Path) -> Option<InputData> {
    match entry.value {
        DeValue::String(_) => file(toml, entry, folder).map(InputData::File),
        DeValue::Array(_) => numbers(toml, entry).map(InputData::Numbers),
        DeValue::Table(_) => {
            let mut table = toml.table(entry, "[cases.inputs.NAME]".to_owned())?;
            let range = toml.require(&mut table, "range", "`[-1, 1]`");
            let range = range.and_then(|entry| ranges(toml, &entry));
            toml.finish(&table);
            range
        }
        _ => {
            wrong(toml, entry, "expected a file, an array of numbers or `{ range = [-1, 1] }`");
            None
        }
    }
}

fn ranges(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<InputData> {
    const EXPECTED: &str =
        "expected `[minimum, maximum]`, or such a pair for each index of the last dimension";
    let items = toml.array(entry, "an array of two numbers")?;
    if !items.is_empty() && items.iter().all(|item| matches!(item.value, DeValue::Array(_))) {
        let pairs: Option<Vec<_>> = items.iter().map(|item| pair(toml, item, EXPECTED)).collect();
        return pairs.map(InputData::Columns);
    }
    pair(toml, entry, EXPECTED).map(|(least, most)| InputData::Range(least, most))
}

fn pair(toml: &mut TomlReader, entry: &Entry<'_>, expected: &str) -> Option<(f64, f64)> {
    let ends: Vec<f64> = numbers(toml, entry)?.iter().map(|number| number.as_f64()).collect();
    match ends[..] {
        [least, most] if least <= most && (most - least).is_finite() => Some((least, most)),
        _ => {
            wrong(toml, entry, expected);
            None
        }
    }
}

fn numbers(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Vec<Number>> {
    let items = toml.array(entry, "an array of numbers")?;
    items.iter().map(|item| number(toml, item)).collect()
}

fn number(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Number> {
    match entry.value {
        DeValue::Integer(_) => toml.integer(entry).map(Number::Int),
        DeValue::Boolean(value) => Some(Number::Int(i64::from(*value))),
        // Tensors may contain NaNs.
        DeValue::Float(float) => match float.as_str() {
            "nan" | "+nan" | "-nan" => Some(Number::Float(f64::NAN)),
            "inf" | "+inf" => Some(Number::Float(f64::INFINITY)),
            "-inf" => Some(Number::Float(f64::NEG_INFINITY)),
            _ => toml.float(entry).map(Number::Float),
        },
        _ => toml.float(entry).map(Number::Float),
    }
}

fn tolerance(toml: &mut TomlReader, entry: &Entry<'_>) -> Option<Tolerance> {
    let mut table = toml.table(entry, "[cases.tolerance.NAME]".to_owned())?;
    let mut part = |key| {
        let Some(entry) = table.take(key) else { return Some(0.0) };
        let value = number(toml, &entry)?.as_f64();
        if value >= 0.0 && value.is_finite() {
            return Some(value);
        }
        wrong(toml, &entry, format!("expected at least 0, found {value}"));
        None
    };
    let (atol, rtol) = (part("atol"), part("rtol"));
    toml.finish(&table);
    Some(Tolerance { atol: atol?, rtol: rtol? })
}
