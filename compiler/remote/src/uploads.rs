use std::collections::HashMap;

use crate::cas::batches;
use crate::client::{Capabilities, Client};
use crate::digest::Digest;
use crate::error::Error;
use crate::inputs::Blob;
use crate::retry::Deadline;

impl Client {
    /// Stores inputs that the server lacks. Asks for each once, and waits for other callers' uploads.
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
