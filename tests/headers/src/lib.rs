//! Empty: this package only pins the crate that carries the headers.
