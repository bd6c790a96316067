//! Integration tests of the reader and writer of ONNX models.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

mod generated;
mod lossless;
