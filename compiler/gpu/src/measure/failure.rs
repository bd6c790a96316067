//! Why a node cannot be measured.

use crate::DriverError;

/// Why a node was not measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// The variant that it is about, where it is about one.
    pub variant: Option<i32>,
    /// What went wrong.
    pub why: Why,
}

/// The cause of a [`Failure`].
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// The runtime would refuse the node.
    Refused(String),
    /// The variant cannot be launched, or the plugin has no code for the device.
    Unlaunchable(String),
    /// A tensor has more bytes than memory holds.
    TooLarge,
    /// The driver's; where it lasts nothing can be run any more.
    Driver(DriverError),
}

impl From<DriverError> for Why {
    fn from(error: DriverError) -> Why {
        Why::Driver(error)
    }
}

impl Why {
    pub(super) fn of(self, variant: i32) -> Failure {
        Failure { variant: Some(variant), why: self }
    }
}

impl From<Why> for Failure {
    fn from(why: Why) -> Failure {
        Failure { variant: None, why }
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Why::Refused(why) | Why::Unlaunchable(why) => f.write_str(why),
            Why::TooLarge => f.write_str("a tensor has more bytes than memory holds"),
            Why::Driver(error) if error.is_out_of_memory() => {
                write!(f, "the GPU has not enough memory left: {error}")
            }
            Why::Driver(error) => error.fmt(f),
        }
    }
}
