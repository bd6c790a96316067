//! A kernel's parameter names and types, from the debug information of one compile.
