//! TensorRT's C++ plugin interfaces seen from Rust.
