use std::time::Duration;

use prost::Message as _;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt as _;

use crate::action::Action;
use crate::client::{Capabilities, Client, Output, outputs};
use crate::digest::Digest;
use crate::error::{Error, shorten};
use crate::operations::Running;
use crate::proto::longrunning::{Operation, operation};
use crate::proto::reapi;
use crate::retry::{Deadline, Failure, to_status, with_retries};

const EXECUTE: &str = "Execute";

/// The type of a finished operation's response.
const RESPONSE: &str = "type.googleapis.com/build.bazel.remote.execution.v2.ExecuteResponse";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Execution<'a> {
    pub(crate) action: &'a Action,
    /// Whether the server must not answer from its cache.
    pub(crate) skips_cache: bool,
    pub(crate) deadline: Deadline,
    /// The end of the time in the queue, and its length.
    pub(crate) queue: Option<(Instant, Duration)>,
    /// The time in which the server must accept the action.
    pub(crate) start: Duration,
}

impl Client {
    /// The server has the action's inputs.
    pub(crate) async fn execute(
        &self,
        execution: Execution<'_>,
        capabilities: Capabilities,
    ) -> Result<Option<Vec<Output>>, Error> {
        let Execution { action, deadline, start, .. } = execution;
        self.operations.pause_if_ending().await;
        let running = self.operations.start();
        let response = with_retries(EXECUTE, deadline, || self.attempt(execution, &running)).await;
        self.operations.pause_if_ending().await;
        if let Some(name) = running.name() {
            self.operations.cancel(name).await;
        }
        let response = response?;
        let result =
            response.result.ok_or_else(|| Error::Invalid("an operation has no result".to_owned()))?;
        self.operations.count(&result, response.cached_result);
        if result.exit_code != 0 {
            let stderr = self.printed(&result, capabilities, Deadline::after(start)).await;
            return Err(Error::Command { exit_code: result.exit_code, stderr });
        }
        outputs(action, result)
    }

    /// Starts an operation, or waits for an earlier attempt's, whose stream broke.
    async fn attempt(
        &self,
        execution: Execution<'_>,
        running: &Running<'_>,
    ) -> Result<reapi::ExecuteResponse, Failure> {
        let known = running.name();
        let is_known = known.is_some();
        let first = async {
            let mut stream = match known {
                Some(name) => self.wait(name, running.number).await?,
                None => self.start(execution, running.number).await?,
            };
            let update = stream.message().await?;
            Ok::<_, Status>((stream, update))
        };
        let limit = execution.start;
        let late = |_| Failure::Permanent(Error::Timeout { call: EXECUTE, limit });
        let failure = |status: Status| self.failure(&status);
        let (mut stream, mut next) = match timeout(limit, first).await.map_err(late)? {
            Err(status) if is_known && status.code() == Code::NotFound => {
                running.forget();
                return Err(Failure::Transient(Error::Invalid("an operation is unknown".to_owned()), None));
            }
            result => result.map_err(failure)?,
        };
        while let Some(update) = next {
            running.update(&update);
            if update.done {
                return self.response(update);
            }
            next = match execution.queue.filter(|_| running.is_queued()) {
                None => self.next(&mut stream, limit).await?,
                Some((end, queue)) => {
                    let late = |_| Failure::Permanent(Error::NoWorker { limit: queue });
                    timeout_at(end, self.next(&mut stream, limit)).await.map_err(late)??
                }
            };
        }
        Err(Failure::Transient(Error::Invalid("a stream ends early".to_owned()), None))
    }

    /// While the stream is silent, the server must answer other calls within `limit`.
    async fn next(
        &self,
        stream: &mut Streaming<Operation>,
        limit: Duration,
    ) -> Result<Option<Operation>, Failure> {
        loop {
            match timeout(limit, stream.message()).await {
                Ok(update) => return update.map_err(|status| self.failure(&status)),
                Err(_) => self.check_alive(limit).await?,
            }
        }
    }

    async fn start(&self, execution: Execution<'_>, number: usize) -> Result<Streaming<Operation>, Status> {
        let request = reapi::ExecuteRequest {
            instance_name: self.instance.clone(),
            skip_cache_lookup: execution.skips_cache,
            action_digest: Some(execution.action.digest.to_message()),
            inline_output_files: execution.action.outputs.clone(),
            digest_function: reapi::digest_function::Value::Sha256.into(),
        };
        Ok(self.executions(number).execute(request).await?.into_inner())
    }

    async fn wait(&self, name: String, number: usize) -> Result<Streaming<Operation>, Status> {
        let request = reapi::WaitExecutionRequest { name };
        Ok(self.executions(number).wait_execution(request).await?.into_inner())
    }

    fn response(&self, finished: Operation) -> Result<reapi::ExecuteResponse, Failure> {
        let invalid = |text: &str| Failure::Permanent(Error::Invalid(text.to_owned()));
        // Another worker may not have the internal error of this one.
        let failure = |status: &tonic_types::Status| match self.failure(&to_status(status)) {
            Failure::Permanent(error) if error.code() == Some(Code::Internal) => {
                Failure::Transient(error, None)
            }
            failure => failure,
        };
        let response = match finished.result {
            Some(operation::Result::Response(response)) if response.type_url == RESPONSE => response,
            Some(operation::Result::Error(status)) => return Err(failure(&status)),
            _ => return Err(invalid("an operation has no response")),
        };
        let response = reapi::ExecuteResponse::decode(response.value.as_slice());
        let response = response.map_err(|_| invalid("an operation's response"))?;
        match response.status.as_ref().filter(|status| status.code != 0) {
            Some(status) => Err(failure(status)),
            None => Ok(response),
        }
    }

    /// Also forgets the inputs that the server lost.
    fn failure(&self, status: &Status) -> Failure {
        if status.code() == Code::FailedPrecondition {
            self.inputs.forget(&missing_inputs(status));
        }
        Failure::of_call(EXECUTE, status)
    }

    /// Returns the beginning of the messages.
    async fn printed(
        &self,
        result: &reapi::ActionResult,
        capabilities: Capabilities,
        deadline: Deadline,
    ) -> String {
        /// Longer messages are not read.
        const MOST: u64 = 64 << 10;
        for (inline, digest) in
            [(&result.stderr_raw, &result.stderr_digest), (&result.stdout_raw, &result.stdout_digest)]
        {
            let digest = digest.as_ref().and_then(Digest::from_message);
            let stored = match digest.filter(|digest| inline.is_empty() && digest.length <= MOST) {
                Some(digest) => self.download(&[digest], capabilities, deadline).await.ok().flatten(),
                None => None,
            };
            let stored = stored.into_iter().flat_map(std::collections::HashMap::into_values).next();
            let bytes = stored.as_ref().unwrap_or(inline);
            if !bytes.is_empty() {
                return shorten(&String::from_utf8_lossy(bytes));
            }
        }
        String::new()
    }
}

/// Returns the inputs that a failed precondition names: `blobs/<hash>/<length>`.
fn missing_inputs(status: &Status) -> Vec<Digest> {
    let failure = status.get_details_precondition_failure();
    let violations = failure.into_iter().flat_map(|failure| failure.violations);
    let missing = violations.filter(|violation| violation.r#type == "MISSING");
    missing.filter_map(|violation| Digest::parse(violation.subject.strip_prefix("blobs/")?)).collect()
}
