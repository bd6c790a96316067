use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prost::bytes::Bytes;
use tokio::sync::Notify;

use crate::digest::Digest;
use crate::error::Error;

/// The content of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blob {
    /// Bytes.
    Bytes(Bytes),
    /// A file, read if the server lacks the input.
    File(PathBuf),
}

impl Blob {
    pub(crate) fn read(&self, digest: Digest) -> Result<Bytes, Error> {
        let bytes = match self {
            Blob::Bytes(bytes) => bytes.clone(),
            Blob::File(path) => {
                let error = |reason: String| Error::File { role: "an input", path: path.clone(), reason };
                let bytes = std::fs::read(path).map_err(|found| error(found.to_string()))?;
                if Digest::compute(&bytes) != digest {
                    return Err(error("it has changed".to_owned()));
                }
                bytes.into()
            }
        };
        Ok(bytes)
    }
}

/// Inputs that the server has, or that a caller uploads.
#[derive(Debug, Default)]
pub(crate) struct KnownInputs {
    is_stored: Mutex<HashMap<Digest, bool>>,
    pub(crate) changed: Notify,
}

/// Inputs that one caller uploads. When dropped, other callers upload the rest.
pub(crate) struct Claim<'k> {
    known: &'k KnownInputs,
    pub(crate) digests: Vec<Digest>,
}

impl KnownInputs {
    /// Claims the unknown inputs. Returns also whether other callers upload some others.
    pub(crate) fn claim(&self, inputs: &HashMap<Digest, Blob>) -> (Claim<'_>, bool) {
        let mut is_stored = self.lock();
        let (mut digests, mut waits) = (Vec::new(), false);
        for digest in inputs.keys() {
            match is_stored.get(digest) {
                Some(is_stored) => waits |= !is_stored,
                None => digests.push(*digest),
            }
        }
        digests.sort();
        is_stored.extend(digests.iter().map(|digest| (*digest, false)));
        (Claim { known: self, digests }, waits)
    }

    pub(crate) fn add<'d>(&self, digests: impl IntoIterator<Item = &'d Digest>) {
        self.lock().extend(digests.into_iter().map(|digest| (*digest, true)));
        self.changed.notify_waiters();
    }

    /// Forgets that the server has these inputs, or all inputs for an empty list.
    pub(crate) fn forget(&self, digests: &[Digest]) {
        let is_kept = |digest: &Digest| !digests.is_empty() && !digests.contains(digest);
        self.lock().retain(|digest, is_stored| !*is_stored || is_kept(digest));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Digest, bool>> {
        self.is_stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut is_stored = self.known.lock();
        for digest in &self.digests {
            if is_stored.get(digest) == Some(&false) {
                is_stored.remove(digest);
            }
        }
        self.known.changed.notify_waiters();
    }
}
