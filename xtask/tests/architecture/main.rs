//! The rules of `docs/architecture.md` about crates and modules.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod module_graph;
