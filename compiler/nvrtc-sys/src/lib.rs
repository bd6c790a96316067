//! NVRTC's C interface, loaded at run time by absolute path.
