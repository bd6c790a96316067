//! Binds shapes, shape input values and dimension names.
//!
//! A name has one extent. The manifests' expression language computes `2*batch` or `s0 + 4`; others are plain:
//! `onnx::Add_0_dim_1`, `batch size`.

use std::collections::{BTreeMap, BTreeSet};

use crate::Model;
use cubinder_expr as expr;
use cubinder_expr::{Environment, Scope, Value};

use super::errors::{ContradictedDim, ContradictedShape, DimTwice, NoDim, UnequalDims};
use super::errors::{UnknownDim, UnknownTensor};
use super::names::quoted;
use super::tensors::{Dim, Tensor, Tensors};
use crate::diagnostic::{Diagnostic, suggest};

/// User-supplied values, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworkShapes {
    /// Shapes of network inputs or other tensors.
    pub shapes: Vec<(String, Vec<i64>)>,
    /// Values of integer tensors.
    pub values: Vec<(String, Vec<i64>)>,
    /// Extents of dimension names.
    pub dims: Vec<(String, i64)>,
}

impl NetworkShapes {
    /// Parses `NAME=INTEGER` pairs; rejects repeated ones.
    pub fn dims(texts: &[String]) -> Result<Vec<(String, i64)>, Vec<Diagnostic>> {
        let (mut dims, mut errors): (Vec<(String, i64)>, Vec<Diagnostic>) = (Vec::new(), Vec::new());
        for text in texts {
            let pair = text.rsplit_once('=').map(|(name, value)| (name.trim(), value.trim().parse::<i64>()));
            match pair {
                Some((name, _)) if dims.iter().any(|(known, _)| known == name) => {
                    errors.push(DimTwice { name }.into());
                }
                Some((name, Ok(extent @ 0..))) if !name.is_empty() => dims.push((name.to_owned(), extent)),
                _ => errors.push(NoDim { text }.into()),
            }
        }
        if errors.is_empty() { Ok(dims) } else { Err(errors) }
    }
}

pub(super) fn bind(
    model: &Model,
    tensors: &mut Tensors,
    given: &NetworkShapes,
) -> Result<Vec<(String, i64)>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let names = tensors.dim_names();
    let mut bound = Bound { known: BTreeMap::new() };
    for (name, extent) in &given.dims {
        if is_used(&names, name) {
            bound.known.insert(name.clone(), (*extent, format!("`--dim {name}={extent}`")));
        } else {
            errors.push(no_dim(name, &names));
        }
    }
    let mut whole = Vec::new();
    for (name, shape) in &given.shapes {
        match tensors.find(model, name) {
            None => errors.push(no_tensor("shape", name, model)),
            Some(graph) => match bound.unify(name, tensors.get(graph, name), shape) {
                Ok(()) => whole.push((graph, name, shape.clone(), None)),
                Err(error) => errors.push(error),
            },
        }
    }
    for (name, values) in &given.values {
        match tensors.find(model, name) {
            None => errors.push(no_tensor("values", name, model)),
            Some(graph) => {
                let is_one = tensors.get(graph, name).and_then(Tensor::rank) == Some(0);
                let shape =
                    if is_one { Vec::new() } else { vec![i64::try_from(values.len()).unwrap_or(i64::MAX)] };
                whole.push((graph, name, shape, Some(values.clone())));
            }
        }
    }
    errors.extend(bound.contradictions());
    if !errors.is_empty() {
        return Err(errors);
    }
    tensors.rename(&|name| bound.extent(name).map(Dim::Known));
    for (graph, name, shape, values) in whole {
        let known = |numbers: Vec<i64>| numbers.into_iter().map(Dim::Known).collect();
        let element = tensors.get(graph, name).and_then(|tensor| tensor.element);
        tensors.give(graph, name, Tensor { element, dims: Some(known(shape)), values: values.map(known) });
    }
    let new = bound.known.iter().filter(|(name, _)| bound.computed(name).is_none());
    Ok(new.map(|(name, (extent, _))| (name.clone(), *extent)).collect())
}

fn is_used(names: &BTreeSet<String>, name: &str) -> bool {
    let is_part =
        |whole: &String| is_expression(whole) && words(whole).any(|word| word.is_name() && word.text == name);
    names.contains(name) || names.iter().any(is_part)
}

#[derive(Debug, Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    /// Function name: a parenthesis follows.
    is_called: bool,
}

impl Word<'_> {
    fn is_name(&self) -> bool {
        let first = self.text.chars().next();
        !self.is_called && first.is_some_and(|first| first.is_alphabetic() || first == '_')
    }
}

/// Splits into names, numbers and characters. `-` without blanks belongs to a name (`seq-len`): exporters write `s0 - s1`.
fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | ':');
    let is_first = |letter: char| letter.is_alphabetic() || letter == '_';
    let end_of = move |text: &str| text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let mut end = if is_part(first) { end_of(rest) } else { first.len_utf8() };
        while is_first(first)
            && let Some(more) = rest[end..].strip_prefix('-').filter(|more| more.starts_with(is_first))
        {
            end += 1 + end_of(more);
        }
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(Word { text: word, is_called: after.trim_start().starts_with('(') })
    })
}

/// Such dimensions compile with numbers.
fn is_expression(text: &str) -> bool {
    let mut parts = words(text).filter(|word| !word.text.trim().is_empty());
    let is_one = parts.next().is_none_or(|first| first.is_name()) && parts.next().is_none();
    // Distinct, so that no difference is a zero divisor.
    let number = std::cell::Cell::new(101);
    let next = |_: &str| Some(number.replace(number.get() + 13));
    !is_one && compile(text, next).is_some()
}

/// `None` if invalid or unknown.
fn compile(text: &str, extent: impl Fn(&str) -> Option<i64>) -> Option<expr::Expr> {
    let mut numbers = String::new();
    for word in words(text) {
        match word.text {
            name if word.is_name() => numbers.push_str(&extent(name)?.to_string()),
            // PyTorch's spelling.
            "Max" | "Min" => numbers.push_str(&word.text.to_lowercase()),
            other => numbers.push_str(other),
        }
    }
    Some(expr::compile(&numbers, &Scope::default()).ok()?.expr)
}

fn no_dim(name: &str, names: &BTreeSet<String>) -> Diagnostic {
    let note = match names.is_empty() {
        true => "the model has no named dimensions".to_owned(),
        false => format!("the dimensions are {}", quoted(names.iter().take(16))),
    };
    UnknownDim { name, note, near: suggest(name, names.iter().map(String::as_str)) }.into()
}

fn no_tensor(option: &str, name: &str, model: &Model) -> Diagnostic {
    let inputs = model.graphs.first().map(|graph| graph.inputs.as_slice()).unwrap_or_default();
    let inputs = inputs.iter().map(|input| input.name.as_str());
    let list = Some(quoted(inputs.clone().take(16))).filter(|list| !list.is_empty());
    UnknownTensor { option, name, inputs: list, near: suggest(name, inputs) }.into()
}

struct Bound {
    known: BTreeMap<String, (i64, String)>,
}

impl Bound {
    fn unify(&mut self, name: &str, tensor: Option<&Tensor>, shape: &[i64]) -> Result<(), Diagnostic> {
        let Some(dims) = tensor.and_then(|tensor| tensor.dims.as_ref()) else { return Ok(()) };
        let text = shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        let contradicted = || {
            let shape = tensor.and_then(Tensor::shape_text).unwrap_or_default();
            ContradictedShape { name, text: &text, shape }.into()
        };
        if dims.len() != shape.len() {
            return Err(contradicted());
        }
        for (dim, extent) in dims.iter().zip(shape) {
            match dim {
                Dim::Known(known) if known != extent => return Err(contradicted()),
                Dim::Named(dim) => {
                    let by = format!("`--shape {name}={text}`");
                    let (known, before) = self.known.entry(dim.clone()).or_insert((*extent, by.clone()));
                    if known != extent {
                        let (known, extent) = (*known, *extent);
                        return Err(UnequalDims { dim, known, before, extent, by: &by }.into());
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn extent(&self, name: &str) -> Option<i64> {
        let given = self.known.get(name).map(|(extent, _)| *extent);
        given.or_else(|| self.computed(name)).filter(|extent| *extent >= 0)
    }

    fn computed(&self, name: &str) -> Option<i64> {
        if !is_expression(name) {
            return None;
        }
        let expr = compile(name, |name| self.known.get(name).map(|(extent, _)| *extent))?;
        match expr::evaluate(&expr, &Nothing) {
            Ok(Value::Int(extent)) => Some(extent),
            _ => None,
        }
    }

    fn contradictions(&self) -> impl Iterator<Item = Diagnostic> {
        self.known.iter().filter_map(|(name, (extent, by))| {
            let computed = self.computed(name).filter(|computed| computed != extent)?;
            Some(ContradictedDim { name, extent: *extent, by, computed }.into())
        })
    }
}

struct Nothing;

impl Environment for Nothing {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(known: &[(&str, i64)]) -> Bound {
        let known = known.iter().map(|(name, extent)| ((*name).to_owned(), (*extent, "it".to_owned())));
        Bound { known: known.collect() }
    }

    #[test]
    fn what_is_computed_is_an_expression_and_everything_else_a_name() {
        for text in [
            "s0 + 4",
            "2*batch",
            "batch-1",
            "seq - len",
            "2*seq-len",
            "s0//2",
            "Max(1, s0)",
            "a.b + onnx::Add_0_dim_1",
            "-s0",
        ] {
            assert!(is_expression(text), "{text}");
        }
        for text in [
            "s0",
            "batch size",
            "onnx::Add_0_dim_1",
            "a.b",
            "?",
            "",
            "2 batch",
            "größe",
            "s0 +",
            "Max",
            "seq-len",
            "a-b-c",
        ] {
            assert!(!is_expression(text), "{text}");
        }
    }

    #[test]
    fn expressions_follow_from_names_and_are_held_against_them() {
        let known = bound(&[("s0", 5), ("onnx::Add_1", 3), ("batch size", 2)]);
        let cases = [
            ("s0 + 4", Some(9)),
            ("2*s0 - onnx::Add_1", Some(7)),
            ("batch size", Some(2)),
            ("s0-onnx::Add_1", None),
            ("s0 - onnx::Add_1", Some(2)),
            ("Max(s0, onnx::Add_1)", Some(5)),
            ("s0 // 2", Some(2)),
            ("s0 - 6", None),
            ("s1 + 4", None),
            ("s0 / 2", None),
        ];
        for (text, extent) in cases {
            assert_eq!(known.extent(text), extent, "{text}");
        }
        assert_eq!(known.contradictions().count(), 0);
        let wrong = bound(&[("s0", 5), ("s0 + 4", 7), ("s1 + 4", 7), ("s0 - 6", 1)]);
        let messages: Vec<String> = wrong.contradictions().map(|error| error.message).collect();
        assert_eq!(
            messages,
            [
                "`s0 + 4` is 7 from it, but 9 from other dimensions",
                "`s0 - 6` is 1 from it, but -1 from other dimensions"
            ]
        );
    }
}
