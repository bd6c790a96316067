//! Tests of the whole language, from text to value.

mod language;
mod stack;
mod support;
