//! Empty: the package only pins the crate with the headers.
