//! The rules that `docs/architecture.md` states about crates and modules.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod module_graph;
