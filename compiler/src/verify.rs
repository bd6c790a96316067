//! Arguments of the manifest against the kernel's signature and against each code object.
