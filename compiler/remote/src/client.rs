use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tonic::Code;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use crate::action::Action;
use crate::connection::Service;
use crate::credentials::Headers;
use crate::digest::Digest;
use crate::error::Error;
use crate::inputs::KnownInputs;
use crate::operations::Operations;
use crate::proto::build::bazel::semver::SemVer;
use crate::proto::bytestream::byte_stream_client::ByteStreamClient;
use crate::proto::longrunning::operations_client::OperationsClient;
use crate::proto::reapi;
use crate::proto::reapi::action_cache_client::ActionCacheClient;
use crate::proto::reapi::capabilities_client::CapabilitiesClient;
use crate::proto::reapi::content_addressable_storage_client::ContentAddressableStorageClient;
use crate::proto::reapi::execution_client::ExecutionClient;
use crate::retry::{Deadline, Failure, with_retries};

/// Maximum size of a received message: gRPC's default, which servers keep, with room for framing.
const MAX_MESSAGE: usize = (4 << 20) + (64 << 10);
/// In bytes, far above the size of compiled code.
const MAX_OUTPUTS: u64 = 256 << 20;
/// In bytes, with room for digests.
const MAX_BATCH: u64 = 3 << 20;

/// Executions per connection: servers limit its open calls, often to 100.
const EXECUTIONS: usize = 64;
/// Connections for executions.
const CONNECTIONS: usize = 16;

/// Clones share the connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) instance: String,
    pub(crate) store: ContentAddressableStorageClient<Service>,
    pub(crate) stream: ByteStreamClient<Service>,
    pub(crate) inputs: KnownInputs,
    pub(crate) operations: Arc<Operations>,
    executions: [ExecutionClient<Service>; CONNECTIONS],
    results: ActionCacheClient<Service>,
    queries: CapabilitiesClient<Service>,
    /// Asked once: a silent server is not used.
    capabilities: OnceCell<Result<Capabilities, Error>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    pub(crate) max_batch: u64,
    /// Zstandard for [`ByteStreamClient`].
    pub(crate) has_zstd: bool,
    pub(crate) accepts_results: bool,
    pub(crate) executes: bool,
}

/// An output of an action, perhaps with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) path: String,
    pub(crate) digest: Digest,
    pub(crate) content: Option<Vec<u8>>,
}

impl Client {
    /// `channel` connects at its first call.
    pub(crate) fn new(
        channel: impl Fn() -> Channel,
        headers: &Headers,
        instance: &str,
        runtime: Handle,
    ) -> Client {
        let new = || InterceptedService::new(channel(), headers.clone());
        let service = new();
        let executions =
            std::array::from_fn(|_| ExecutionClient::new(new()).max_decoding_message_size(MAX_MESSAGE));
        let operations = Operations::new(OperationsClient::new(service.clone()), runtime);
        let store = ContentAddressableStorageClient::new(service.clone());
        let stream = ByteStreamClient::new(service.clone());
        let results = ActionCacheClient::new(service.clone());
        Client {
            instance: instance.to_owned(),
            store: store.max_decoding_message_size(MAX_MESSAGE),
            stream: stream.max_decoding_message_size(MAX_MESSAGE),
            inputs: KnownInputs::default(),
            operations: Arc::new(operations),
            executions,
            results: results.max_decoding_message_size(MAX_MESSAGE),
            queries: CapabilitiesClient::new(service),
            capabilities: OnceCell::new(),
        }
    }

    pub(crate) fn executions(&self, number: usize) -> ExecutionClient<Service> {
        self.executions[number / EXECUTIONS % CONNECTIONS].clone()
    }

    /// Fails if the server does not answer within `limit`.
    pub(crate) async fn check_alive(&self, limit: Duration) -> Result<(), Failure> {
        const CALL: &str = "GetCapabilities";
        let request = reapi::GetCapabilitiesRequest { instance_name: self.instance.clone() };
        match timeout(limit, self.queries.clone().get_capabilities(request)).await {
            Ok(answer) => answer.map(|_| ()).map_err(|status| Failure::of_call(CALL, &status)),
            Err(_) => Err(Failure::Permanent(Error::Timeout { call: CALL, limit })),
        }
    }

    pub(crate) async fn capabilities(&self, deadline: Deadline) -> Result<Capabilities, Error> {
        const CALL: &str = "GetCapabilities";
        let query = || async {
            let deadline = deadline.restart();
            let found = with_retries(CALL, deadline, || async {
                let request = reapi::GetCapabilitiesRequest { instance_name: self.instance.clone() };
                let answer = self.queries.clone().get_capabilities(request).await;
                answer.map_err(|status| Failure::of_call(CALL, &status))
            });
            Capabilities::read(&found.await?.into_inner())
        };
        self.capabilities.get_or_init(query).await.clone()
    }

    /// Returns the outputs in the order of the action's paths; `None` without a successful result.
    pub(crate) async fn result(
        &self,
        action: &Action,
        deadline: Deadline,
    ) -> Result<Option<Vec<Output>>, Error> {
        const CALL: &str = "GetActionResult";
        let deadline = deadline.restart();
        let found = with_retries(CALL, deadline, || async {
            let request = reapi::GetActionResultRequest {
                instance_name: self.instance.clone(),
                action_digest: Some(action.digest.to_message()),
                inline_output_files: action.outputs.clone(),
                digest_function: reapi::digest_function::Value::Sha256.into(),
                ..Default::default()
            };
            let answer = self.results.clone().get_action_result(request).await;
            answer.map_err(|status| Failure::of_call(CALL, &status))
        });
        match found.await {
            Ok(answer) => outputs(action, answer.into_inner()),
            Err(error) if error.code() == Some(Code::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores the action's result, whose blobs the server has.
    pub(crate) async fn update(
        &self,
        action: &Action,
        outputs: &[(String, Digest)],
        deadline: Deadline,
    ) -> Result<(), Error> {
        const CALL: &str = "UpdateActionResult";
        let deadline = deadline.restart();
        let files = outputs.iter().map(|(path, digest)| reapi::OutputFile {
            path: path.clone(),
            digest: Some(digest.to_message()),
            ..Default::default()
        });
        let result = reapi::ActionResult { output_files: files.collect(), ..Default::default() };
        let updated = with_retries(CALL, deadline, || async {
            let request = reapi::UpdateActionResultRequest {
                instance_name: self.instance.clone(),
                action_digest: Some(action.digest.to_message()),
                action_result: Some(result.clone()),
                digest_function: reapi::digest_function::Value::Sha256.into(),
            };
            let answer = self.results.clone().update_action_result(request).await;
            answer.map_err(|status| Failure::of_call(CALL, &status))
        });
        updated.await.map(|_| ())
    }
}

/// Returns the outputs in the order of the action's paths; `None` if the command failed.
pub(crate) fn outputs(action: &Action, result: reapi::ActionResult) -> Result<Option<Vec<Output>>, Error> {
    if result.exit_code != 0 {
        return Ok(None);
    }
    let mut files = result.output_files;
    let (mut found, mut total) = (Vec::new(), 0_u64);
    for path in &action.outputs {
        let Some(at) = files.iter().position(|file| file.path == *path) else {
            return Err(Error::Invalid(format!("a result lacks the file `{path}`")));
        };
        let file = files.swap_remove(at);
        let digest = file.digest.as_ref().and_then(Digest::from_message);
        let digest =
            digest.ok_or_else(|| Error::Invalid(format!("the file `{path}` has no valid digest")))?;
        let is_inline = !file.contents.is_empty() || digest.length == 0;
        let content = is_inline.then_some(file.contents);
        if content.as_ref().is_some_and(|content| Digest::compute(content) != digest) {
            return Err(Error::Invalid(format!("the file `{path}` differs from its digest")));
        }
        total = total.saturating_add(digest.length);
        if total > MAX_OUTPUTS {
            return Err(Error::Invalid(format!("the files of a result exceed {MAX_OUTPUTS} bytes")));
        }
        found.push(Output { path: path.clone(), digest, content });
    }
    Ok(Some(found))
}

impl Capabilities {
    fn read(answer: &reapi::ServerCapabilities) -> Result<Capabilities, Error> {
        check_version(answer)?;
        let cache = answer.cache_capabilities.as_ref().ok_or(Error::Unsupported("caches".into()))?;
        if !cache.digest_functions().any(|it| it == reapi::digest_function::Value::Sha256) {
            return Err(Error::Unsupported("SHA-256 digests".into()));
        }
        // Zero means no limit.
        let limit = u64::try_from(cache.max_batch_total_size_bytes).ok().filter(|limit| *limit > 0);
        let updates = cache.action_cache_update_capabilities.as_ref();
        Ok(Capabilities {
            max_batch: limit.unwrap_or(MAX_BATCH).min(MAX_BATCH),
            has_zstd: cache.supported_compressors().any(|it| it == reapi::compressor::Value::Zstd),
            executes: answer.execution_capabilities.as_ref().is_some_and(|execution| execution.exec_enabled),
            accepts_results: updates.is_some_and(|updates| updates.update_enabled),
        })
    }
}

/// Requires a version 2 between the lowest version, perhaps deprecated, and the highest, if sent.
fn check_version(answer: &reapi::ServerCapabilities) -> Result<(), Error> {
    let Some(high) = &answer.high_api_version else { return Ok(()) };
    let low = answer.deprecated_api_version.as_ref().or(answer.low_api_version.as_ref()).unwrap_or(high);
    if (low.major..=high.major).contains(&2) {
        return Ok(());
    }
    let text = |version: &SemVer| format!("{}.{}", version.major, version.minor);
    let versions = format!("version 2 of the protocol, but {} to {}", text(low), text(high));
    Err(Error::Unsupported(versions.into()))
}
