//! Operations that run on the server: their progress, their cancellation, and who executed their actions.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use prost::Message as _;
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::connection::Service;
use crate::error::shorten;
use crate::proto::longrunning::operations_client::OperationsClient;
use crate::proto::longrunning::{CancelOperationRequest, Operation};
use crate::proto::reapi;
use crate::proto::reapi::execution_stage::Value as Stage;

/// Time limit of cancellations. A signal ends the process afterwards.
pub(crate) const CANCELLATION: Duration = Duration::from_millis(900);

const METADATA: &str = "type.googleapis.com/build.bazel.remote.execution.v2.ExecuteOperationMetadata";

/// Numbers of unfinished operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Operations that wait for a worker.
    pub queued: usize,
    /// Operations on workers.
    pub running: usize,
}

/// Numbers of actions with a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Executed {
    /// Executed actions by worker. The name is empty if the server does not send it.
    pub by_worker: BTreeMap<String, u64>,
    /// Actions answered from the server's cache.
    pub cached: u64,
}

#[derive(Debug)]
pub(crate) struct Operations {
    client: OperationsClient<Service>,
    runtime: Handle,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By the lowest free number.
    unfinished: BTreeMap<usize, Unfinished>,
    executed: Executed,
    is_ending: bool,
}

#[derive(Debug, Default)]
struct Unfinished {
    /// Known after the first update.
    name: Option<String>,
    is_running: bool,
    is_queued: bool,
}

#[derive(Debug)]
pub(crate) struct Running<'o> {
    operations: &'o Operations,
    pub(crate) number: usize,
}

impl Operations {
    pub(crate) fn new(client: OperationsClient<Service>, runtime: Handle) -> Operations {
        Operations { client, runtime, state: Mutex::default() }
    }

    pub(crate) fn start(&self) -> Running<'_> {
        let unfinished = &mut self.lock().unfinished;
        let number = (0..).zip(unfinished.keys()).take_while(|(free, used)| free == *used).count();
        unfinished.insert(number, Unfinished::default());
        Running { operations: self, number }
    }

    pub(crate) fn progress(&self) -> Progress {
        let unfinished = &self.lock().unfinished;
        let running = unfinished.values().filter(|it| it.is_running).count();
        Progress { queued: unfinished.len() - running, running }
    }

    pub(crate) fn executed(&self) -> Executed {
        self.lock().executed.clone()
    }

    pub(crate) fn count(&self, result: &reapi::ActionResult, is_cached: bool) {
        let executed = &mut self.lock().executed;
        if is_cached {
            executed.cached += 1;
            return;
        }
        let worker = result.execution_metadata.as_ref().map_or("", |metadata| &metadata.worker);
        *executed.by_worker.entry(shorten(worker)).or_default() += 1;
    }

    /// Servers need not support it.
    pub(crate) async fn cancel(&self, name: String) {
        let _ = timeout(CANCELLATION, self.client.clone().cancel_operation(CancelOperationRequest { name }))
            .await;
    }

    /// Cancels all operations before the process ends. `done` is dropped afterwards.
    pub(crate) fn cancel_all(self: &Arc<Self>, done: &mpsc::Sender<Infallible>) {
        let mut state = self.lock();
        state.is_ending = true;
        for name in state.unfinished.values().filter_map(|it| it.name.clone()) {
            let (operations, done) = (Arc::clone(self), done.clone());
            self.runtime.spawn(async move {
                operations.cancel(name).await;
                drop(done);
            });
        }
    }

    /// Delays the caller while a signal ends the process, which must neither start operations nor report failures.
    pub(crate) async fn pause_if_ending(&self) {
        if self.lock().is_ending {
            sleep(CANCELLATION * 2).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running<'_> {
    /// Keeps the name and the stage.
    pub(crate) fn update(&self, update: &Operation) {
        let mut state = self.operations.lock();
        let Some(unfinished) = state.unfinished.get_mut(&self.number) else { return };
        if update.done {
            *unfinished = Unfinished::default();
            return;
        }
        if !update.name.is_empty() {
            unfinished.name = Some(update.name.clone());
        }
        let metadata = update.metadata.as_ref().filter(|metadata| metadata.type_url == METADATA);
        let metadata = metadata.map(|any| reapi::ExecuteOperationMetadata::decode(any.value.as_slice()));
        if let Some(Ok(metadata)) = metadata {
            unfinished.is_running = matches!(metadata.stage(), Stage::Executing | Stage::Completed);
            unfinished.is_queued = metadata.stage() == Stage::Queued;
        }
    }

    /// Returns the name of an operation that the server may still run.
    pub(crate) fn name(&self) -> Option<String> {
        self.operations.lock().unfinished.get(&self.number).and_then(|it| it.name.clone())
    }

    /// Returns whether the server says that no worker has the action.
    pub(crate) fn is_queued(&self) -> bool {
        self.operations.lock().unfinished.get(&self.number).is_some_and(|it| it.is_queued)
    }

    /// Forgets an operation, before another one is started.
    pub(crate) fn forget(&self) {
        self.operations.lock().unfinished.insert(self.number, Unfinished::default());
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.operations.lock().unfinished.remove(&self.number);
    }
}
