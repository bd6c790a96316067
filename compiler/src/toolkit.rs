//! Where NVRTC and the CUDA headers are.
