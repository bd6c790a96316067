//! Tests of the whole language, from text to value.

mod errors;
mod generator;
mod language;
mod layout;
mod limits;
mod oracle;
mod properties;
mod stack;
mod support;
