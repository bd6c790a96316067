//! Integration tests, in one program because each links the compiler.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

mod alike;
mod bad_input;
mod build;
mod cache;
mod check_messages;
mod check_plugins;
mod cli;
mod compat;
mod depfile;
mod docs;
mod doctor;
mod eval;
mod extract;
mod foreign;
mod foreign_pointers;
mod inspect_damage;
mod json_paths;
mod json_schema;
mod kernels;
mod library;
mod manifest_corpus;
mod mutation;
mod native;
mod new;
mod occupancy;
mod onnx;
mod options;
mod paths;
mod provenance;
mod reproducible;
mod sequences;
mod shipped_manifests;
mod special_files;
mod tables;
mod thin;
mod triton_folders;
mod units;

#[path = "../support/mod.rs"]
mod support;
