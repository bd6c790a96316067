//! A client of the Remote Execution API v2 (REAPI): the content-addressed store (CAS) and the action cache of a server.
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
mod fake_server;
mod proto;
mod remote;
mod retry;

pub use action::{Action, Command, EncodedTree, InputRoot, Node, TreeError};
pub use connection::{Settings, Tls};
pub use credentials::Credentials;
pub use digest::Digest;
pub use error::Error;
pub use execution::Blob;
pub use remote::{Inputs, Outputs, Remote};
