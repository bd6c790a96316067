//! A client of the Remote Execution API v2 (REAPI): the content-addressed store (CAS), the action cache and the
//! operations of a server.
//!
//! Owns the canonical encoding of actions ([`InputRoot`], [`Action`]), connections, credentials, retries and checks of
//! received data. [`Remote`] blocks its caller and runs the only asynchronous code of the program. Must never know
//! kernels, NVRTC or manifests.

mod action;
mod bytestream;
mod cas;
mod client;
mod compression;
mod connection;
mod credentials;
mod digest;
mod error;
mod execution;
#[cfg(test)]
mod fake_execution;
#[cfg(test)]
mod fake_server;
mod inputs;
mod operations;
mod proto;
mod remote;
mod retry;
mod signals;
mod uploads;

pub use action::{Action, Command, EncodedTree, InputRoot, Node, TreeError};
pub use connection::{Settings, Tls};
pub use credentials::Credentials;
pub use digest::Digest;
pub use error::Error;
pub use inputs::Blob;
pub use operations::{Executed, Progress};
pub use remote::{Inputs, Outputs, Remote};

/// Readers of a server's data, for fuzzing.
pub mod untrusted {
    use prost::Message as _;

    pub use crate::compression::{compress, decompress};
    use crate::{Action, Error, client, proto::reapi};

    /// Returns the total size of the files of an encoded result; `None` if the command failed.
    ///
    /// # Errors
    /// The result is invalid, or too large.
    pub fn result_size(action: &Action, encoded: &[u8]) -> Result<Option<u64>, Error> {
        let result = reapi::ActionResult::decode(encoded);
        let result = result.map_err(|error| Error::Invalid(error.to_string()))?;
        let outputs = client::outputs(action, result)?;
        Ok(outputs.map(|outputs| outputs.iter().map(|output| output.digest.length).sum()))
    }
}
