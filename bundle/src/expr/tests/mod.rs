//! Tests of the whole language, from text to value.

mod language;
mod properties;
mod stack;
mod support;
