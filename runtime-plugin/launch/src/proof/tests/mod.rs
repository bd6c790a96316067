//! Tests of proofs.

mod examples;
mod laws;
mod ranges;
mod speed;
mod support;
