//! Finds TensorRT and TensorRT-RTX, and builds engines in a child process: with `trtexec` or `tensorrt_rtx`, or with
//! the Python bindings (`builder.py`).
//!
//! Must not load TensorRT into this process, or know manifests, plugins or ONNX.

mod build;
mod command;
mod ending;
mod errors;
mod explain;
mod find;
mod installation;
mod log;
mod python;
mod version;

pub use build::{Built, Output, Watch, build};
pub use command::{InputRange, Precision, Request};
pub use find::{Choice, Search};
pub use installation::{Installation, Kind, MissingLink, Route};
pub use log::{LogLine, Step};
pub use python::Client;
pub use version::Version;
