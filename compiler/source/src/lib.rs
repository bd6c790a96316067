//! Diagnostics with spans, the catalogue of rules, and file access.

pub mod atomic_file;
pub mod columns;
pub mod diagnostic;
pub mod path;
pub mod reported_path;
pub mod rules;
pub mod source;
pub mod words;
