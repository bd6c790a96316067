use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prost::Message as _;
use prost::bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio_stream::Stream;
use tonic::transport::ServerTlsConfig;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::compression;
use crate::digest::Digest;
use crate::proto::build::bazel::semver::SemVer;
use crate::proto::bytestream::byte_stream_server::{ByteStream, ByteStreamServer};
use crate::proto::bytestream::{
    QueryWriteStatusRequest, QueryWriteStatusResponse, ReadRequest, ReadResponse, WriteRequest, WriteResponse,
};
use crate::proto::longrunning::Operation;
use crate::proto::longrunning::operations_server::OperationsServer;
use crate::proto::reapi::action_cache_server::{ActionCache, ActionCacheServer};
use crate::proto::reapi::capabilities_server::{Capabilities, CapabilitiesServer};
use crate::proto::reapi::content_addressable_storage_server::{
    ContentAddressableStorage, ContentAddressableStorageServer,
};
use crate::proto::reapi::execution_server::ExecutionServer;
use crate::proto::reapi::{self, compressor, digest_function};

#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    /// Calls of this name that fail, with their status.
    pub(crate) failing: Option<(&'static str, u32, Code)>,
    pub(crate) retry_after: Option<Duration>,
    /// Calls of this name that never return.
    pub(crate) hanging: Option<&'static str>,
    pub(crate) corrupts: bool,
    /// Reads that end early, without an error.
    pub(crate) short_reads: u32,
    pub(crate) broken_reads: u32,
    /// Writes that break after their first message.
    pub(crate) broken_writes: u32,
    /// Pause before each message of a write is read.
    pub(crate) slow_writes: Duration,
    /// What the server says about a broken write instead of its progress.
    pub(crate) progress: Option<QueryWriteStatusResponse>,
    /// Reads that pause forever after their first message.
    pub(crate) stalls: bool,
    pub(crate) losing_updates: u32,
    /// The length in results.
    pub(crate) length: Option<i64>,
    /// The path in results.
    pub(crate) path: Option<&'static str>,
    /// Sends data without end.
    pub(crate) endless: bool,
    /// Streams that break after their first update.
    pub(crate) broken_executions: u32,
    /// Executions that find an input missing.
    pub(crate) losing_executions: u32,
    pub(crate) lost_input: Option<String>,
    pub(crate) errors: Vec<tonic_types::Status>,
    pub(crate) statuses: Vec<tonic_types::Status>,
    pub(crate) is_cached: bool,
    pub(crate) exit_code: i32,
    /// What commands print to stdout instead of stderr.
    pub(crate) printed: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) faults: Faults,
    pub(crate) blobs: HashMap<String, Vec<u8>>,
    pub(crate) results: HashMap<String, reapi::ActionResult>,
    pub(crate) calls: Vec<&'static str>,
    /// Partial writes by resource name.
    partial: HashMap<String, Vec<u8>>,
    pub(crate) tokens: Vec<String>,
    pub(crate) written: Vec<(String, Vec<u8>)>,
    pub(crate) operations: HashMap<String, watch::Sender<Operation>>,
    /// `skip_cache_lookup` of each execution.
    pub(crate) skipped_cache: Vec<bool>,
    /// Numbers of digests per request.
    pub(crate) asked: Vec<usize>,
    /// Beginning and end of each execution.
    pub(crate) busy: Vec<(Instant, Instant)>,
}

#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) has_zstd: bool,
    pub(crate) is_inline: bool,
    pub(crate) accepts_results: bool,
    pub(crate) max_batch: i64,
    pub(crate) executes: bool,
    pub(crate) function: digest_function::Value,
    /// Major numbers: deprecated, lowest, highest.
    pub(crate) versions: [Option<i32>; 3],
    pub(crate) workers: usize,
    /// Run times of actions, in turn.
    pub(crate) times: &'static [Duration],
}

impl Default for Options {
    fn default() -> Options {
        let function = digest_function::Value::Sha256;
        Options {
            has_zstd: false,
            is_inline: false,
            accepts_results: true,
            max_batch: 10_000,
            executes: true,
            function,
            versions: [None, Some(2), Some(2)],
            workers: 100,
            times: &[Duration::ZERO],
        }
    }
}

/// Runs until it is dropped.
pub(crate) struct FakeServer {
    pub(crate) authority: String,
    service: Service,
    _runtime: Runtime,
}

#[derive(Debug, Clone)]
pub(crate) struct Service {
    state: Arc<Mutex<State>>,
    pub(crate) options: Options,
    pub(crate) workers: Arc<Semaphore>,
}

impl FakeServer {
    pub(crate) fn start(options: Options) -> FakeServer {
        FakeServer::start_with(options, None)
    }

    pub(crate) fn start_with(options: Options, tls: Option<ServerTlsConfig>) -> FakeServer {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let workers = Arc::new(Semaphore::new(options.workers));
        let service = Service { state: Arc::default(), options, workers };
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let authority = listener.local_addr().unwrap().to_string();
        // The limit of many servers.
        let mut builder = tonic::transport::Server::builder().max_concurrent_streams(Some(100));
        if let Some(tls) = tls {
            builder = builder.tls_config(tls).unwrap();
        }
        let router = builder
            .add_service(CapabilitiesServer::new(service.clone()))
            .add_service(ActionCacheServer::new(service.clone()))
            .add_service(ContentAddressableStorageServer::new(service.clone()))
            .add_service(ByteStreamServer::new(service.clone()))
            .add_service(ExecutionServer::new(service.clone()))
            .add_service(OperationsServer::new(service.clone()));
        // Delays of 40 ms would be those of this server.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        runtime.spawn(router.serve_with_incoming(incoming));
        FakeServer { authority, service, _runtime: runtime }
    }

    pub(crate) fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.service.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn calls(&self, name: &str) -> usize {
        self.state().calls.iter().filter(|call| **call == name).count()
    }
}

pub(crate) fn take(count: &mut u32) -> bool {
    let is_left = *count > 0;
    *count = count.saturating_sub(1);
    is_left
}

impl Service {
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn enter<T>(&self, call: &'static str, request: &Request<T>) -> Result<(), Status> {
        let hangs = {
            let mut state = self.lock();
            state.calls.push(call);
            if let Some(token) = request.metadata().get("authorization") {
                state.tokens.push(token.to_str().unwrap().to_owned());
            }
            let retry_after = state.faults.retry_after;
            if let Some((name, count, code)) = &mut state.faults.failing
                && *name == call
                && take(count)
            {
                if retry_after == Some(Duration::MAX) {
                    return Err(longest_wait(*code));
                }
                let details = ErrorDetails::with_retry_info(retry_after);
                return Err(match retry_after {
                    Some(_) => Status::with_error_details(*code, "wait", details),
                    None => Status::new(*code, "not now"),
                });
            }
            state.faults.hanging == Some(call)
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        Ok(())
    }

    fn blob(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.lock();
        let mut blob = state.blobs.get(name)?.clone();
        if let Some(byte) = blob.first_mut().filter(|_| state.faults.corrupts) {
            *byte ^= 1;
        }
        Some(blob)
    }
}

/// An error whose wait `ErrorDetails` would shorten.
fn longest_wait(code: Code) -> Status {
    let wait = prost_types::Duration { seconds: i64::MAX, nanos: 0 }.encode_to_vec();
    let info = [&[0x0a, u8::try_from(wait.len()).unwrap()], wait.as_slice()].concat();
    let info =
        prost_types::Any { type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(), value: info };
    let status = tonic_types::Status { code: code.into(), message: "wait".to_owned(), details: vec![info] };
    Status::with_details(code, "wait", status.encode_to_vec().into())
}

fn name(digest: &reapi::Digest) -> String {
    format!("{}/{}", digest.hash, digest.size_bytes)
}

pub(crate) fn status(code: Code) -> Option<tonic_types::Status> {
    Some(tonic_types::Status { code: code.into(), ..Default::default() })
}

#[tonic::async_trait]
impl Capabilities for Service {
    async fn get_capabilities(
        &self,
        request: Request<reapi::GetCapabilitiesRequest>,
    ) -> Result<Response<reapi::ServerCapabilities>, Status> {
        self.enter("GetCapabilities", &request).await?;
        let Options { has_zstd, accepts_results, max_batch, executes, function, versions, .. } = self.options;
        let compressors = if has_zstd { vec![compressor::Value::Zstd.into()] } else { Vec::new() };
        let cache = reapi::CacheCapabilities {
            digest_functions: vec![function.into()],
            action_cache_update_capabilities: Some(reapi::ActionCacheUpdateCapabilities {
                update_enabled: accepts_results,
            }),
            max_batch_total_size_bytes: max_batch,
            supported_compressors: compressors,
            ..Default::default()
        };
        let execution =
            reapi::ExecutionCapabilities { exec_enabled: executes, digest_function: function.into() };
        let [deprecated_api_version, low_api_version, high_api_version] =
            versions.map(|major| major.map(|major| SemVer { major, minor: 1, ..Default::default() }));
        Ok(Response::new(reapi::ServerCapabilities {
            cache_capabilities: Some(cache),
            execution_capabilities: Some(execution),
            deprecated_api_version,
            low_api_version,
            high_api_version,
        }))
    }
}

#[tonic::async_trait]
impl ActionCache for Service {
    async fn get_action_result(
        &self,
        request: Request<reapi::GetActionResultRequest>,
    ) -> Result<Response<reapi::ActionResult>, Status> {
        self.enter("GetActionResult", &request).await?;
        let digest = request.into_inner().action_digest.unwrap();
        let result = self.lock().results.get(&name(&digest)).cloned();
        let mut result = result.ok_or_else(|| Status::not_found("no result"))?;
        let faults = self.lock().faults.clone();
        for file in &mut result.output_files {
            let digest = file.digest.as_mut().unwrap();
            if self.options.is_inline {
                file.contents = self.blob(&name(digest)).unwrap_or_default();
            }
            digest.size_bytes = faults.length.unwrap_or(digest.size_bytes);
            file.path = faults.path.map_or_else(|| file.path.clone(), str::to_owned);
        }
        Ok(Response::new(result))
    }

    async fn update_action_result(
        &self,
        request: Request<reapi::UpdateActionResultRequest>,
    ) -> Result<Response<reapi::ActionResult>, Status> {
        self.enter("UpdateActionResult", &request).await?;
        let request = request.into_inner();
        let result = request.action_result.unwrap();
        let mut state = self.lock();
        if take(&mut state.faults.losing_updates) {
            state.blobs.clear();
        }
        let has = |file: &reapi::OutputFile| state.blobs.contains_key(&name(file.digest.as_ref().unwrap()));
        if !result.output_files.iter().all(has) {
            return Err(Status::failed_precondition("missing blobs"));
        }
        state.results.insert(name(&request.action_digest.unwrap()), result.clone());
        Ok(Response::new(result))
    }
}

#[tonic::async_trait]
impl ContentAddressableStorage for Service {
    async fn find_missing_blobs(
        &self,
        request: Request<reapi::FindMissingBlobsRequest>,
    ) -> Result<Response<reapi::FindMissingBlobsResponse>, Status> {
        self.enter("FindMissingBlobs", &request).await?;
        let mut missing_blob_digests = request.into_inner().blob_digests;
        self.lock().asked.push(missing_blob_digests.len());
        missing_blob_digests.retain(|digest| !self.lock().blobs.contains_key(&name(digest)));
        Ok(Response::new(reapi::FindMissingBlobsResponse { missing_blob_digests }))
    }

    async fn batch_update_blobs(
        &self,
        request: Request<reapi::BatchUpdateBlobsRequest>,
    ) -> Result<Response<reapi::BatchUpdateBlobsResponse>, Status> {
        self.enter("BatchUpdateBlobs", &request).await?;
        let blobs = request.into_inner().requests;
        let total: usize = blobs.iter().map(|blob| blob.data.len()).sum();
        if total as i64 > self.options.max_batch {
            return Err(Status::invalid_argument("batch too large"));
        }
        let mut responses = Vec::new();
        for blob in blobs {
            let digest = blob.digest.unwrap();
            if Digest::from_message(&digest) != Some(Digest::compute(&blob.data)) {
                return Err(Status::invalid_argument("wrong digest"));
            }
            self.lock().blobs.insert(name(&digest), blob.data);
            responses.push(reapi::batch_update_blobs_response::Response {
                digest: Some(digest),
                status: status(Code::Ok),
            });
        }
        Ok(Response::new(reapi::BatchUpdateBlobsResponse { responses }))
    }

    async fn batch_read_blobs(
        &self,
        request: Request<reapi::BatchReadBlobsRequest>,
    ) -> Result<Response<reapi::BatchReadBlobsResponse>, Status> {
        self.enter("BatchReadBlobs", &request).await?;
        let digests = request.into_inner().digests.into_iter();
        let responses = digests.map(|digest| {
            let blob = self.blob(&name(&digest));
            let code = if blob.is_some() { Code::Ok } else { Code::NotFound };
            reapi::batch_read_blobs_response::Response {
                digest: Some(digest),
                data: blob.unwrap_or_default(),
                status: status(code),
                ..Default::default()
            }
        });
        Ok(Response::new(reapi::BatchReadBlobsResponse { responses: responses.collect() }))
    }
}

/// Returns the kind and the blob's name of `[uploads/<id>/]<kind>/<hash>/<length>`.
fn parse(resource: &str) -> (bool, String) {
    let parts: Vec<&str> = resource.split('/').collect();
    let name = parts[parts.len() - 2..].join("/");
    (resource.contains("compressed-blobs/zstd/"), name)
}

#[tonic::async_trait]
impl ByteStream for Service {
    type ReadStream = Pin<Box<dyn Stream<Item = Result<ReadResponse, Status>> + Send>>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        self.enter("Read", &request).await?;
        let request = request.into_inner();
        let (is_compressed, name) = parse(&request.resource_name);
        let blob = self.blob(&name).ok_or_else(|| Status::not_found("no blob"))?;
        let rest = &blob[usize::try_from(request.read_offset).unwrap()..];
        let data = if is_compressed { compression::compress(rest) } else { rest.to_vec() };
        let mut messages: Vec<Result<ReadResponse, Status>> = data
            .chunks(1_000)
            .map(|chunk| Ok(ReadResponse { data: Bytes::copy_from_slice(chunk) }))
            .collect();
        let mut state = self.lock();
        if take(&mut state.faults.short_reads) {
            messages.truncate(messages.len() / 2);
        } else if take(&mut state.faults.broken_reads) {
            messages.truncate(messages.len() / 2);
            messages.push(Err(Status::unavailable("broken")));
        }
        if state.faults.stalls {
            let first = tokio_stream::iter(messages.into_iter().take(1));
            let stream = tokio_stream::StreamExt::chain(first, tokio_stream::pending());
            return Ok(Response::new(Box::pin(stream)));
        }
        if state.faults.endless {
            let message = ReadResponse { data: Bytes::from(vec![0; 1_000]) };
            return Ok(Response::new(Box::pin(tokio_stream::iter(std::iter::repeat_with(move || {
                Ok(message.clone())
            })))));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(messages))))
    }

    async fn write(
        &self,
        request: Request<Streaming<WriteRequest>>,
    ) -> Result<Response<WriteResponse>, Status> {
        self.enter("Write", &request).await?;
        let mut stream = request.into_inner();
        let mut resource = String::new();
        while let Some(message) = stream.message().await? {
            if resource.is_empty() {
                resource = message.resource_name;
            }
            let pause = self.lock().faults.slow_writes;
            tokio::time::sleep(pause).await;
            let mut state = self.lock();
            let written = state.partial.entry(resource.clone()).or_default();
            if written.len() as i64 != message.write_offset {
                return Err(Status::invalid_argument("wrong offset"));
            }
            written.extend_from_slice(&message.data);
            let length = written.len() as i64;
            if take(&mut state.faults.broken_writes) {
                return Err(Status::unavailable("broken"));
            }
            if message.finish_write {
                let written = state.partial.remove(&resource).unwrap();
                let (is_compressed, name) = parse(&resource);
                let blob =
                    if is_compressed { compression::decompress(&written, usize::MAX) } else { written };
                if Digest::compute(&blob).to_string() != name {
                    return Err(Status::invalid_argument("wrong digest"));
                }
                state.blobs.insert(name, blob);
                return Ok(Response::new(WriteResponse { committed_size: length }));
            }
        }
        Err(Status::invalid_argument("the write did not finish"))
    }

    async fn query_write_status(
        &self,
        request: Request<QueryWriteStatusRequest>,
    ) -> Result<Response<QueryWriteStatusResponse>, Status> {
        self.enter("QueryWriteStatus", &request).await?;
        let state = self.lock();
        if let Some(progress) = state.faults.progress {
            return Ok(Response::new(progress));
        }
        let written = state.partial.get(&request.into_inner().resource_name);
        let written = written.ok_or_else(|| Status::not_found("no write"))?;
        Ok(Response::new(QueryWriteStatusResponse { committed_size: written.len() as i64, complete: false }))
    }
}
