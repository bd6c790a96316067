//! Inputs of actions: which of them the server has, and uploads of the others.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use prost::bytes::Bytes;
use tokio::sync::Notify;

use crate::cas::batches;
use crate::client::{Capabilities, Client};
use crate::digest::Digest;
use crate::error::Error;
use crate::retry::Deadline;

/// The content of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blob {
    /// Bytes.
    Bytes(Bytes),
    /// A file, read if the server lacks the input.
    File(PathBuf),
}

impl Blob {
    fn read(&self, digest: Digest) -> Result<Bytes, Error> {
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
    changed: Notify,
}

/// Inputs that one caller uploads. Other callers upload those that remain when it is dropped.
struct Claim<'k> {
    known: &'k KnownInputs,
    digests: Vec<Digest>,
}

impl KnownInputs {
    /// Claims the unknown inputs. Returns also whether other callers upload some of the rest.
    fn claim(&self, inputs: &HashMap<Digest, Blob>) -> (Claim<'_>, bool) {
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

    fn add<'d>(&self, digests: impl IntoIterator<Item = &'d Digest>) {
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

impl Client {
    /// Stores inputs that the server lacks. Each is asked for once, and callers wait for other callers' uploads of
    /// their inputs.
    pub(crate) async fn upload_inputs(
        &self,
        inputs: &HashMap<Digest, Blob>,
        capabilities: Capabilities,
        deadline: Deadline,
    ) -> Result<(), Error> {
        /// Digests of a request, about 100 bytes each.
        const MOST: usize = 10_000;
        loop {
            // Created before the check, so that it sees each later change.
            let changed = self.inputs.changed.notified();
            let (claim, waits) = self.inputs.claim(inputs);
            for digests in claim.digests.chunks(MOST) {
                self.upload_missing(inputs, digests, capabilities, deadline).await?;
            }
            if !waits {
                return Ok(());
            }
            if claim.digests.is_empty() {
                changed.await;
            }
        }
    }

    async fn upload_missing(
        &self,
        inputs: &HashMap<Digest, Blob>,
        digests: &[Digest],
        capabilities: Capabilities,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let mut missing = self.missing(digests, deadline).await?;
        missing.sort();
        missing.dedup();
        self.inputs.add(digests.iter().filter(|digest| missing.binary_search(digest).is_err()));
        let (mut parts, large) = batches(missing, capabilities.max_batch, |digest| digest.length);
        parts.extend(large.into_iter().map(|digest| vec![digest]));
        for part in parts {
            let mut blobs = Vec::new();
            for digest in &part {
                // `missing` returns requested digests only.
                let Some(blob) = inputs.get(digest) else { continue };
                blobs.push((*digest, blob.read(*digest)?));
            }
            let blobs: Vec<(Digest, &[u8])> =
                blobs.iter().map(|(digest, bytes)| (*digest, bytes.as_ref())).collect();
            self.upload(&blobs, capabilities, deadline).await?;
            self.inputs.add(&part);
        }
        Ok(())
    }
}
