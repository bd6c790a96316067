use std::fmt;

use crate::device::Device;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Plugin(String),
    #[error("PyTorch's `{function}` failed{reason}")]
    Torch { function: &'static str, reason: Reason },
    #[error("`{call}` returned the CUDA error {code}")]
    Driver { call: &'static str, code: i32 },
    #[error("{plugin}: {found} arguments and results, expected {expected}")]
    Count { plugin: String, found: Counts, expected: Counts },
    #[error("{0} has no gradient: call it under `torch.no_grad()`, or detach its inputs")]
    Gradient(String),
    #[error("{plugin}: the inputs are on {first} and {other}; move them to one device")]
    Devices { plugin: String, first: Device, other: Device },
    #[error("{plugin}: plugins have no type for {}", type_name(*.number))]
    InputType { plugin: String, number: i32 },
    #[error("{0}: PyTorch has no type for an output")]
    OutputType(String),
    #[error(
        "the attribute `{name}` is {value:e}, beyond the range of single precision, in which ONNX stores floats"
    )]
    Single { name: String, value: f64 },
}

impl Error {
    pub(crate) fn of_driver(call: &'static str, code: i32) -> Result<(), Error> {
        if code == 0 { Ok(()) } else { Err(Error::Driver { call, code }) }
    }
}

/// The text of PyTorch's exception. Before 2.13, PyTorch logs it.
#[derive(Debug)]
pub(crate) struct Reason(pub(crate) Option<String>);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(text) => write!(f, ": {text}"),
            None => f.write_str("; PyTorch logged the reason"),
        }
    }
}

/// Numbers of arguments and results.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts(pub(crate) usize, pub(crate) usize);

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {}", self.0, self.1)
    }
}

/// Returns the name of a `c10::ScalarType` that plugins lack.
fn type_name(number: i32) -> String {
    let name = match number {
        2 => "int16",
        7 => "float64",
        8 => "complex32",
        9 => "complex64",
        10 => "complex128",
        23 => "float8_e5m2",
        27 => "uint16",
        28 => "uint32",
        29 => "uint64",
        _ => return format!("PyTorch's type {number}"),
    };
    format!("torch.{name}")
}
