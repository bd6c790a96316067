mod examples;
mod laws;
mod ranges;
mod speed;
mod support;
