//! Blobs: small ones in batches, large ones as streams. Every received blob is compared with its digest.

use std::collections::HashMap;

use tonic::Code;

use crate::client::{Capabilities, Client};
use crate::digest::Digest;
use crate::error::Error;
use crate::proto::reapi;
use crate::retry::{Deadline, Failure, to_status, with_retries};

const READ: &str = "BatchReadBlobs";
const UPDATE: &str = "BatchUpdateBlobs";

/// Digests and message framing of a blob in a batch, in bytes.
const OVERHEAD: u64 = 256;

/// Splits items into batches within the server's limit; an item that exceeds it is a stream.
pub(crate) fn batches<T>(items: Vec<T>, limit: u64, length: impl Fn(&T) -> u64) -> (Vec<Vec<T>>, Vec<T>) {
    let (small, large): (Vec<T>, Vec<T>) =
        items.into_iter().partition(|item| length(item) + OVERHEAD <= limit);
    let mut all: Vec<Vec<T>> = Vec::new();
    let mut free = 0;
    for item in small {
        let needed = length(&item) + OVERHEAD;
        match all.last_mut().filter(|_| needed <= free) {
            Some(batch) => {
                free -= needed;
                batch.push(item);
            }
            None => {
                free = limit - needed;
                all.push(vec![item]);
            }
        }
    }
    (all, large)
}

/// The first failed blob decides about the batch.
fn check_status(call: &'static str, status: Option<&tonic_types::Status>) -> Result<(), Failure> {
    match status {
        Some(status) if status.code != 0 => Err(Failure::of_call(call, &to_status(status))),
        _ => Ok(()),
    }
}

fn invalid(text: &str) -> Failure {
    Failure::Permanent(Error::Invalid(text.to_owned()))
}

impl Client {
    /// Returns the blobs, whose size the caller limits; `None` if the server lacks one.
    pub(crate) async fn download(
        &self,
        digests: &[Digest],
        capabilities: Capabilities,
        deadline: Deadline,
    ) -> Result<Option<HashMap<Digest, Vec<u8>>>, Error> {
        let mut wanted = digests.to_vec();
        wanted.sort();
        wanted.dedup();
        let mut found = HashMap::new();
        let (small, large) = batches(wanted, capabilities.max_batch, |digest| digest.length);
        for batch in &small {
            let deadline = deadline.restart().for_bytes(batch.iter().map(|digest| digest.length).sum());
            match with_retries(READ, deadline, || self.read_batch(batch)).await {
                Ok(blobs) => found.extend(blobs),
                Err(error) if error.code() == Some(Code::NotFound) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        for digest in large {
            let deadline = deadline.restart().for_bytes(digest.length);
            match self.read_stream(digest, capabilities.has_zstd, deadline).await? {
                Some(blob) => found.insert(digest, blob),
                None => return Ok(None),
            };
        }
        Ok(Some(found))
    }

    async fn read_batch(&self, digests: &[Digest]) -> Result<Vec<(Digest, Vec<u8>)>, Failure> {
        let request = reapi::BatchReadBlobsRequest {
            instance_name: self.instance.clone(),
            digests: digests.iter().map(|digest| digest.to_message()).collect(),
            digest_function: reapi::digest_function::Value::Sha256.into(),
            ..Default::default()
        };
        let answer = self.store.clone().batch_read_blobs(request).await;
        let answer = answer.map_err(|status| Failure::of_call(READ, &status))?.into_inner();
        let mut found = Vec::new();
        for blob in answer.responses {
            check_status(READ, blob.status.as_ref())?;
            let digest = blob.digest.as_ref().and_then(Digest::from_message);
            let digest = digest.filter(|digest| digests.contains(digest));
            let digest = digest.ok_or_else(|| invalid("a batch has a blob that was not requested"))?;
            if Digest::compute(&blob.data) != digest {
                return Err(invalid("a blob differs from its digest"));
            }
            found.push((digest, blob.data));
        }
        match digests.iter().all(|digest| found.iter().any(|(known, _)| known == digest)) {
            true => Ok(found),
            false => Err(invalid("a batch lacks a requested blob")),
        }
    }

    /// Returns the blobs that the server lacks, in ascending order.
    pub(crate) async fn missing(&self, digests: &[Digest], deadline: Deadline) -> Result<Vec<Digest>, Error> {
        const CALL: &str = "FindMissingBlobs";
        let deadline = deadline.restart();
        let found = with_retries(CALL, deadline, || async {
            let request = reapi::FindMissingBlobsRequest {
                instance_name: self.instance.clone(),
                blob_digests: digests.iter().map(|digest| digest.to_message()).collect(),
                digest_function: reapi::digest_function::Value::Sha256.into(),
            };
            let answer = self.store.clone().find_missing_blobs(request).await;
            answer.map_err(|status| Failure::of_call(CALL, &status))
        });
        let found = found.await?.into_inner().missing_blob_digests;
        let is_asked = |digest: &Digest| digests.binary_search(digest).is_ok();
        Ok(found.iter().filter_map(Digest::from_message).filter(is_asked).collect())
    }

    /// Stores blobs without asking which the server has.
    pub(crate) async fn upload(
        &self,
        blobs: &[(Digest, &[u8])],
        capabilities: Capabilities,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let (small, large) = batches(blobs.to_vec(), capabilities.max_batch, |(digest, _)| digest.length);
        for batch in &small {
            let deadline = deadline.restart().for_bytes(batch.iter().map(|(digest, _)| digest.length).sum());
            with_retries(UPDATE, deadline, || self.update_batch(batch)).await?;
        }
        for (digest, bytes) in large {
            let deadline = deadline.restart().for_bytes(digest.length);
            self.write_stream(digest, bytes, capabilities.has_zstd, deadline).await?;
        }
        Ok(())
    }

    async fn update_batch(&self, blobs: &[(Digest, &[u8])]) -> Result<(), Failure> {
        let requests = blobs.iter().map(|(digest, bytes)| reapi::batch_update_blobs_request::Request {
            digest: Some(digest.to_message()),
            data: bytes.to_vec(),
            ..Default::default()
        });
        let request = reapi::BatchUpdateBlobsRequest {
            instance_name: self.instance.clone(),
            requests: requests.collect(),
            digest_function: reapi::digest_function::Value::Sha256.into(),
        };
        let answer = self.store.clone().batch_update_blobs(request).await;
        let answer = answer.map_err(|status| Failure::of_call(UPDATE, &status))?.into_inner();
        answer.responses.iter().try_for_each(|blob| check_status(UPDATE, blob.status.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_to_the_limit() {
        let lengths = vec![100, 700, 10, 2_000, 0, 512];
        let (small, large) = batches(lengths, 1_024, |length| *length);
        assert_eq!((small, large), (vec![vec![100], vec![700], vec![10, 0], vec![512]], vec![2_000]));
    }
}
