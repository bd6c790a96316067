//! Values that completions offer for open-ended arguments.

use std::ffi::OsStr;
use std::sync::LazyLock;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use cubinder_compiler::target_choice::TargetChoice;
use cubinder_model::fit::KNOWN;
use cubinder_source::rules;

#[derive(Clone)]
pub(super) struct Suggesting<P> {
    parser: P,
    values: fn() -> Vec<PossibleValue>,
}

impl<P: TypedValueParser> TypedValueParser for Suggesting<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.values)().into_iter()))
    }
}

static GPUS: LazyLock<Vec<String>> =
    LazyLock::new(|| KNOWN.iter().map(|arch| format!("sm_{arch}")).collect());
static PTX: LazyLock<Vec<String>> =
    LazyLock::new(|| KNOWN.iter().map(|arch| format!("compute_{arch}")).collect());

fn known(values: &'static [String]) -> impl Iterator<Item = PossibleValue> {
    values.iter().map(|value| PossibleValue::new(value.as_str()))
}

pub(super) fn gpu<P>(parser: P) -> Suggesting<P> {
    Suggesting { parser, values: || known(&GPUS).collect() }
}

pub(super) fn target<P>(parser: P) -> Suggesting<P> {
    Suggesting { parser, values: || known(&GPUS).chain(known(&PTX)).collect() }
}

/// Includes values that are resolved on this machine.
pub(super) fn target_choice<P>(parser: P) -> Suggesting<P> {
    let values = || {
        let words = TargetChoice::WORDS.into_iter().map(PossibleValue::new);
        words.chain(known(&GPUS)).chain(known(&PTX)).collect()
    };
    Suggesting { parser, values }
}

pub(super) fn rule_code<P>(parser: P) -> Suggesting<P> {
    let values = || {
        let code = |rule: &rules::Rule| PossibleValue::new(rule.code.0).help(rule.title());
        rules::CATALOGUE.iter().map(code).collect()
    };
    Suggesting { parser, values }
}
