//! Finds TensorRT and TensorRT-RTX, builds engines in a child process (`trtexec`, `tensorrt_rtx`, or `builder.py`), and
//! runs them with Python bindings (`runner.py`).
//!
//! Must not load TensorRT into this process, or know manifests, plugins or ONNX.

mod build;
mod build_failures;
mod command;
mod ending;
mod errors;
mod explain;
mod find;
mod installation;
mod log;
mod process;
mod python;
mod run;
mod run_failures;
mod version;

pub use build::{Built, Output, build};
pub use command::{InputRange, Request};
pub use find::{Choice, Search};
pub use installation::{Installation, Kind, MissingLink, Route};
pub use log::{LogLine, Step, Tensor};
pub use process::Watch;
pub use python::Client;
pub use run::{Ran, RunRequest, run};
pub use version::Version;
