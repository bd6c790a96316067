//! Compiling a unit with NVRTC.
