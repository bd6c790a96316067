//! Executions of the server with faults: workers sleep for the time of an action.

use std::pin::Pin;
use std::time::Instant;

use prost::Message as _;
use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::digest::Digest;
use crate::fake_server::{Service, State, status, take};
use crate::proto::longrunning::operations_server::Operations;
use crate::proto::longrunning::{CancelOperationRequest, Operation, operation};
use crate::proto::reapi::execution_server::Execution;
use crate::proto::reapi::execution_stage::Value as Stage;
use crate::proto::reapi::{self};

type Updates = Pin<Box<dyn Stream<Item = Result<Operation, Status>> + Send>>;

fn any(name: &str, message: &impl prost::Message) -> prost_types::Any {
    let type_url = format!("type.googleapis.com/build.bazel.remote.execution.v2.{name}");
    prost_types::Any { type_url, value: message.encode_to_vec() }
}

fn update(name: &str, stage: Stage) -> Operation {
    let metadata = reapi::ExecuteOperationMetadata { stage: stage.into(), ..Default::default() };
    let metadata = Some(any("ExecuteOperationMetadata", &metadata));
    Operation { name: name.to_owned(), metadata, ..Default::default() }
}

fn lost_input(lost: &str) -> tonic_types::Status {
    let details = ErrorDetails::with_precondition_failure_violation("MISSING", format!("blobs/{lost}"), "");
    let status = Status::with_error_details(Code::FailedPrecondition, "lost", details);
    tonic_types::Status::decode(status.details()).unwrap()
}

impl Service {
    fn start(&self, request: &reapi::ExecuteRequest) -> String {
        let mut state = self.lock();
        let number = state.operations.len();
        let name = format!("operations/{number}");
        let updates = watch::Sender::new(update(&name, Stage::Queued));
        state.operations.insert(name.clone(), updates.clone());
        state.skipped_cache.push(request.skip_cache_lookup);
        tokio::spawn(self.clone().work(number, name.clone(), updates));
        name
    }

    async fn work(self, number: usize, name: String, updates: watch::Sender<Operation>) {
        let _worker = self.workers.acquire().await.unwrap();
        let start = Instant::now();
        updates.send_replace(update(&name, Stage::Executing));
        let times = self.options.times;
        tokio::time::sleep(times[number % times.len()]).await;
        let result = self.result(number);
        self.lock().busy.push((start, Instant::now()));
        updates.send_if_modified(|operation| {
            let is_running = !operation.done;
            if is_running {
                *operation =
                    Operation { done: true, result: Some(result), ..update(&name, Stage::Completed) };
            }
            is_running
        });
    }

    fn result(&self, number: usize) -> operation::Result {
        let mut state = self.lock();
        if let Some(error) = state.faults.errors.pop() {
            return operation::Result::Error(error);
        }
        let mut status = state.faults.statuses.pop();
        if take(&mut state.faults.losing_executions) {
            state.blobs.clear();
            status = self::status(Code::FailedPrecondition);
        }
        if let Some(lost) = state.faults.lost_input.take() {
            state.blobs.remove(&lost).unwrap();
            status = Some(lost_input(&lost));
        }
        let result = status.is_none().then(|| self.action_result(&mut state, number));
        let cached_result = state.faults.is_cached;
        let response = reapi::ExecuteResponse { result, cached_result, status, ..Default::default() };
        operation::Result::Response(any("ExecuteResponse", &response))
    }

    fn action_result(&self, state: &mut State, number: usize) -> reapi::ActionResult {
        let (exit_code, printed) = (state.faults.exit_code, state.faults.printed.clone());
        let worker = format!("worker-{}", number % 2);
        let metadata = reapi::ExecutedActionMetadata { worker, ..Default::default() };
        let mut store = |bytes: Vec<u8>| {
            let digest = Digest::compute(&bytes);
            state.blobs.insert(digest.to_string(), bytes);
            Some(digest.to_message())
        };
        let files = state.written.clone().into_iter().map(|(path, bytes)| {
            let contents = if self.options.is_inline { bytes.clone() } else { Vec::new() };
            reapi::OutputFile { path, digest: store(bytes), contents, ..Default::default() }
        });
        let output_files = files.collect();
        let mut result = reapi::ActionResult {
            output_files,
            exit_code,
            execution_metadata: Some(metadata),
            ..Default::default()
        };
        match printed {
            Some(bytes) => result.stdout_digest = store(bytes),
            None => result.stderr_raw = b"out of\nmemory".to_vec(),
        }
        result
    }

    fn updates(&self, name: &str) -> Result<Response<Updates>, Status> {
        let mut state = self.lock();
        let operation = state.operations.get(name).ok_or_else(|| Status::not_found("no operation"))?;
        let mut operation = operation.subscribe();
        let is_broken = take(&mut state.faults.broken_executions);
        let (sender, updates) = mpsc::channel(2);
        tokio::spawn(async move {
            loop {
                let update = operation.borrow_and_update().clone();
                if is_broken {
                    let update = Operation { done: false, result: None, ..update };
                    sender.send(Ok(update)).await.unwrap_or_default();
                    sender.send(Err(Status::unavailable("broken"))).await.unwrap_or_default();
                    return;
                }
                let is_done = update.done;
                if sender.send(Ok(update)).await.is_err() || is_done || operation.changed().await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(updates))))
    }
}

#[tonic::async_trait]
impl Execution for Service {
    type ExecuteStream = Updates;
    type WaitExecutionStream = Updates;

    async fn execute(
        &self,
        request: Request<reapi::ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        self.enter("Execute", &request).await?;
        let name = self.start(request.get_ref());
        self.updates(&name)
    }

    async fn wait_execution(
        &self,
        request: Request<reapi::WaitExecutionRequest>,
    ) -> Result<Response<Self::WaitExecutionStream>, Status> {
        self.enter("WaitExecution", &request).await?;
        self.updates(&request.get_ref().name)
    }
}

#[tonic::async_trait]
impl Operations for Service {
    async fn cancel_operation(
        &self,
        request: Request<CancelOperationRequest>,
    ) -> Result<Response<()>, Status> {
        self.enter("CancelOperation", &request).await?;
        let name = request.into_inner().name;
        let state = self.lock();
        let operation = state.operations.get(&name).ok_or_else(|| Status::not_found("no operation"))?;
        let error = status(Code::Cancelled).map(operation::Result::Error);
        operation.send_replace(Operation { name, done: true, result: error, ..Default::default() });
        Ok(Response::new(()))
    }
}
