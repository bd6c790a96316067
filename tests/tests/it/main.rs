//! End-to-end tests. Plugin libraries are loaded in other processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod book;
mod build_systems;
mod buildbox;
mod builder;
mod command;
mod compiler_crashes;
mod compiler_faults;
mod conformance;
mod driver_faults;
mod elsewhere;
mod engine;
mod engine_build;
mod engine_run;
mod examples;
mod gpu_workers;
mod inspect;
mod installed;
mod kernel_bench;
mod lowering;
mod native_cases;
mod native_route;
mod networks;
mod onnx;
mod pages;
mod pip_wheel;
mod plan_size;
mod quick;
mod registry;
mod run_path;
mod shared_cache;
mod support;
mod testing;
mod torch;
mod tuning;

#[path = "../../../compiler/tests/support/models.rs"]
mod models;
