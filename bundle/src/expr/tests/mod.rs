//! Tests of the whole language, from text to value.

mod errors;
mod language;
mod limits;
mod properties;
mod stack;
mod support;
