//! Streams of large blobs, resumed after a broken connection.

use std::time::Duration;

use tokio::time::{sleep, timeout};
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

/// How far an interrupted write came.
enum Progress {
    Complete,
    Offset(usize),
    /// Starts again, under another name.
    Lost,
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
            let stall = deadline.stall();
            let Part { bytes, end } = self.read_part(digest, is_compressed, blob.len() as u64, stall).await;
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

    async fn read_part(&self, digest: Digest, is_compressed: bool, offset: u64, stall: Duration) -> Part {
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
            let late = |_| Failure::Permanent(Error::Timeout { call: READ, limit: stall });
            let mut client = self.stream.clone();
            let stream = timeout(stall, client.read(request)).await.map_err(late)?;
            let mut stream = stream.map_err(failure)?.into_inner();
            // Compressed data may be longer than the blob by its frames.
            let most =
                if is_compressed { limit.saturating_add(limit / 64).saturating_add(1 << 16) } else { limit };
            while let Some(message) =
                timeout(stall, stream.message()).await.map_err(late)?.map_err(failure)?
            {
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
        // The name of an interrupted write.
        let started = tokio::sync::Mutex::new(None::<String>);
        with_retries(WRITE, deadline, || async {
            let mut started = started.lock().await;
            let progress = match started.as_deref() {
                Some(name) => self.progress(name, data.len()).await?,
                None => Progress::Lost,
            };
            let (offset, known) = match progress {
                Progress::Complete => return Ok(()),
                Progress::Offset(offset) => (offset, started.clone()),
                Progress::Lost => (0, None),
            };
            let new = || self.resource(&format!("uploads/{}/{kind}/{digest}", unique_id()));
            let name = known.unwrap_or_else(new);
            *started = Some(name.clone());
            self.write_from(&name, data.clone(), offset, digest, deadline.stall()).await
        })
        .await
    }

    async fn write_from(
        &self,
        name: &str,
        data: prost::bytes::Bytes,
        offset: usize,
        digest: Digest,
        stall: Duration,
    ) -> Result<(), Failure> {
        let name = name.to_owned();
        let (sender, mut sent) = tokio::sync::watch::channel(());
        let length = data.len();
        let starts = std::iter::once(offset).chain((offset..length).step_by(CHUNK).skip(1));
        let messages = starts.map(move |start| {
            let end = length.min(start + CHUNK);
            sender.send_replace(());
            WriteRequest {
                resource_name: name.clone(),
                write_offset: i64::try_from(start).unwrap_or(i64::MAX),
                finish_write: end == length,
                data: data.slice(start..end),
            }
        });
        let mut client = self.stream.clone();
        let answer = client.write(tokio_stream::iter(messages));
        // The transport takes a message when the server has room for it.
        let stalled = async {
            let mut is_sent = true;
            while is_sent {
                let Ok(changed) = timeout(stall, sent.changed()).await else { return };
                is_sent = changed.is_ok();
            }
            sleep(stall).await;
        };
        let answer = tokio::select! {
            answer = answer => answer,
            () = stalled => return Err(Failure::Permanent(Error::Timeout { call: WRITE, limit: stall })),
        };
        let committed =
            answer.map_err(|status| Failure::of_call(WRITE, &status))?.into_inner().committed_size;
        // A server that has the blob answers early, with the blob's length or -1.
        let is_complete = [i64::try_from(length).ok(), i64::try_from(digest.length).ok(), Some(-1)];
        match is_complete.contains(&Some(committed)) {
            true => Ok(()),
            false => Err(Failure::Transient(Error::Invalid("a blob was stored partially".to_owned()), None)),
        }
    }

    async fn progress(&self, name: &str, length: usize) -> Result<Progress, Failure> {
        let request = QueryWriteStatusRequest { resource_name: name.to_owned() };
        match self.stream.clone().query_write_status(request).await {
            Ok(answer) => {
                let answer = answer.into_inner();
                if answer.complete || answer.committed_size == -1 {
                    return Ok(Progress::Complete);
                }
                let committed = usize::try_from(answer.committed_size).ok();
                let committed = committed.filter(|committed| *committed <= length);
                Ok(committed.map_or(Progress::Lost, Progress::Offset))
            }
            // The server kept nothing, or cannot resume.
            Err(status) if matches!(status.code(), Code::NotFound | Code::Unimplemented) => {
                Ok(Progress::Lost)
            }
            Err(status) => Err(Failure::of_call(QUERY, &status)),
        }
    }

    fn resource(&self, name: &str) -> String {
        if self.instance.is_empty() { name.to_owned() } else { format!("{}/{name}", self.instance) }
    }
}

fn unique_id() -> String {
    let bits = fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let parts =
        [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| hex.get(range).unwrap_or_default().to_owned());
    parts.join("-")
}
