//! Streams of large blobs, resumed after a broken connection.

use tonic::Code;

use crate::client::Client;
use crate::compression::{SHORTEST, compress, decompress};
use crate::digest::Digest;
use crate::error::Error;
use crate::proto::bytestream::{QueryWriteStatusRequest, ReadRequest, WriteRequest};
use crate::retry::{Deadline, Failure, with_retries};

const READ: &str = "ByteStream.Read";
const WRITE: &str = "ByteStream.Write";
const QUERY: &str = "ByteStream.QueryWriteStatus";

/// Bytes of a message.
const CHUNK: usize = 256 << 10;

/// The beginning of a blob, and how the last attempt ended.
struct Part {
    bytes: Vec<u8>,
    end: Result<(), Failure>,
}

impl Client {
    /// Reads a blob; `None` if the server lacks it.
    pub(crate) async fn read_stream(
        &self,
        digest: Digest,
        has_zstd: bool,
        deadline: Deadline,
    ) -> Result<Option<Vec<u8>>, Error> {
        let blob = tokio::sync::Mutex::new(Vec::new());
        let is_compressed = has_zstd && digest.length >= SHORTEST;
        let read = with_retries(READ, deadline, || async {
            let mut blob = blob.lock().await;
            // Offsets count uncompressed bytes.
            let Part { bytes, end } = self.read_part(digest, is_compressed, blob.len() as u64).await;
            blob.extend(bytes);
            end?;
            match (blob.len() as u64).cmp(&digest.length) {
                std::cmp::Ordering::Equal => Ok(()),
                std::cmp::Ordering::Less => {
                    Err(Failure::Transient(Error::Invalid("a stream ends early".to_owned()), None))
                }
                std::cmp::Ordering::Greater => {
                    Err(Failure::Permanent(Error::Invalid("a stream exceeds its blob".to_owned())))
                }
            }
        });
        match read.await {
            Ok(()) => {}
            Err(error) if error.code() == Some(Code::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        }
        let blob = blob.into_inner();
        match Digest::compute(&blob) == digest {
            true => Ok(Some(blob)),
            false => Err(Error::Invalid("a blob differs from its digest".to_owned())),
        }
    }

    async fn read_part(&self, digest: Digest, is_compressed: bool, offset: u64) -> Part {
        // One byte more shows a stream that is too long.
        let limit = usize::try_from(digest.length - offset.min(digest.length))
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let kind = if is_compressed { "compressed-blobs/zstd" } else { "blobs" };
        let request = ReadRequest {
            resource_name: self.resource(&format!("{kind}/{digest}")),
            read_offset: i64::try_from(offset).unwrap_or(i64::MAX),
            read_limit: 0,
        };
        let mut received = Vec::new();
        let end = async {
            let failure = |status: tonic::Status| Failure::of_call(READ, &status);
            let mut stream = self.stream.clone().read(request).await.map_err(failure)?.into_inner();
            // Compressed data may be longer than the blob by its frames.
            let most =
                if is_compressed { limit.saturating_add(limit / 64).saturating_add(1 << 16) } else { limit };
            while let Some(message) = stream.message().await.map_err(failure)? {
                received.extend_from_slice(&message.data);
                if received.len() > most {
                    return Err(Failure::Permanent(Error::Invalid("a stream exceeds its blob".to_owned())));
                }
            }
            Ok(())
        };
        let end = end.await;
        let bytes = if is_compressed { decompress(&received, limit) } else { received };
        Part { bytes, end }
    }

    /// Writes a blob.
    pub(crate) async fn write_stream(
        &self,
        digest: Digest,
        bytes: &[u8],
        has_zstd: bool,
        deadline: Deadline,
    ) -> Result<(), Error> {
        let is_compressed = has_zstd && digest.length >= SHORTEST;
        let data: Vec<u8> = if is_compressed { compress(bytes) } else { bytes.to_vec() };
        let data = prost::bytes::Bytes::from(data);
        let kind = if is_compressed { "compressed-blobs/zstd" } else { "blobs" };
        let name = self.resource(&format!("uploads/{}/{kind}/{digest}", unique_id()));
        let attempts = std::sync::atomic::AtomicU32::new(0);
        with_retries(WRITE, deadline, || async {
            let is_first = attempts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            let offset = if is_first { 0 } else { self.committed(&name, data.len()).await? };
            self.write_from(&name, data.clone(), offset, digest).await
        })
        .await
    }

    async fn write_from(
        &self,
        name: &str,
        data: prost::bytes::Bytes,
        offset: usize,
        digest: Digest,
    ) -> Result<(), Failure> {
        let name = name.to_owned();
        let length = data.len();
        let starts = std::iter::once(offset).chain((offset..length).step_by(CHUNK).skip(1));
        let messages = starts.map(move |start| {
            let end = length.min(start + CHUNK);
            WriteRequest {
                resource_name: name.clone(),
                write_offset: i64::try_from(start).unwrap_or(i64::MAX),
                finish_write: end == length,
                data: data.slice(start..end),
            }
        });
        let answer = self.stream.clone().write(tokio_stream::iter(messages)).await;
        let committed =
            answer.map_err(|status| Failure::of_call(WRITE, &status))?.into_inner().committed_size;
        // A server that has the blob answers early, with the blob's length or -1.
        let is_complete = [i64::try_from(length).ok(), i64::try_from(digest.length).ok(), Some(-1)];
        match is_complete.contains(&Some(committed)) {
            true => Ok(()),
            false => Err(Failure::Transient(Error::Invalid("a blob was stored partially".to_owned()), None)),
        }
    }

    /// Returns the offset from which an interrupted write continues.
    async fn committed(&self, name: &str, length: usize) -> Result<usize, Failure> {
        let request = QueryWriteStatusRequest { resource_name: name.to_owned() };
        match self.stream.clone().query_write_status(request).await {
            Ok(answer) => {
                let committed = usize::try_from(answer.into_inner().committed_size).ok();
                let committed = committed.filter(|committed| *committed <= length);
                committed.ok_or_else(|| Failure::Permanent(Error::Invalid("an impossible offset".to_owned())))
            }
            // The server kept nothing, or cannot resume.
            Err(status) if matches!(status.code(), Code::NotFound | Code::Unimplemented) => Ok(0),
            Err(status) => Err(Failure::of_call(QUERY, &status)),
        }
    }

    fn resource(&self, name: &str) -> String {
        if self.instance.is_empty() { name.to_owned() } else { format!("{}/{name}", self.instance) }
    }
}

/// Returns a random UUID (version 4).
fn unique_id() -> String {
    let bits = fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let parts =
        [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| hex.get(range).unwrap_or_default().to_owned());
    parts.join("-")
}
