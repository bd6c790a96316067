//! Tests of proofs: plugins that ship, what narrows what, and laws over plugins made at random.

mod examples;
mod laws;
mod ranges;
mod speed;
mod support;
