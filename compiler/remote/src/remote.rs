//! The blocking interface, and the circuit breaker.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::Instant;
use tonic::Code;

use crate::action::Action;
#[cfg(doc)]
use crate::action::Command;
use crate::client::{Capabilities, Client, Output};
use crate::connection::{self, Settings};
use crate::credentials::Headers;
use crate::digest::Digest;
use crate::error::Error;
use crate::execution::Execution;
use crate::inputs::Blob;
use crate::operations::{Executed, Operations, Progress};
use crate::retry::Deadline;
use crate::signals;

/// Contents of an action's output files by path.
pub type Outputs = BTreeMap<String, Vec<u8>>;

/// Contents of an action's inputs.
pub type Inputs = HashMap<Digest, Blob>;

/// Includes the time in a queue.
const EXECUTION: Duration = Duration::from_secs(1200);

/// After these consecutive failures the server is not called.
const MAX_FAILURES: u32 = 3;

/// A server's cache; may be used from several threads. Connects at the first call.
#[derive(Debug)]
pub struct Remote {
    settings: Settings,
    started: OnceLock<Result<Started, Error>>,
    breaker: Mutex<Breaker>,
    /// Actions whose cached results cannot be used.
    skipped: Mutex<HashSet<Digest>>,
}

#[derive(Debug)]
struct Started {
    /// Present until it is dropped.
    runtime: Option<Runtime>,
    headers: Headers,
    client: Client,
}

/// Does not wait for threads that resolve names.
impl Drop for Started {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

#[derive(Debug, Default)]
struct Breaker {
    consecutive: u32,
    /// Results that the caller could not use: the calls for them succeeded.
    invalid: u32,
    is_open: bool,
    cannot_upload: bool,
    /// The first failure; `Some(None)` once reported.
    first: Option<Option<Error>>,
}

impl Remote {
    /// Reads no file: the first call reads the settings' files.
    #[must_use]
    pub fn new(settings: Settings) -> Remote {
        Remote { settings, started: OnceLock::new(), breaker: Mutex::default(), skipped: Mutex::default() }
    }

    /// Returns the outputs of an action, if the server has a result.
    #[must_use]
    pub fn look_up(&self, action: &Action) -> Option<Outputs> {
        if self.breaker().is_open {
            return None;
        }
        self.run(|client, deadline| async move {
            let capabilities = client.capabilities(deadline).await?;
            let Some(outputs) = client.result(action, deadline).await? else { return Ok(None) };
            // Servers may delete blobs of a result.
            contents(client, outputs, capabilities, deadline).await
        })?
    }

    /// Executes an action on a worker, and returns its outputs. `None` if it fails.
    ///
    /// `inputs` has all files and directories of the action, and its messages.
    #[must_use]
    pub fn execute(&self, action: &Action, inputs: &Inputs) -> Option<Outputs> {
        if self.breaker().is_open {
            return None;
        }
        self.try_execute(action, inputs).map_err(|error| self.record(&error)).ok()?
    }

    /// Executes an action as [`Remote::execute`], but returns its failure, uncounted.
    ///
    /// # Errors
    /// The server or the worker failed.
    pub fn try_execute(&self, action: &Action, inputs: &Inputs) -> Result<Option<Outputs>, Error> {
        let skips_cache = action.do_not_cache || lock(&self.skipped).contains(&action.digest);
        self.try_run(|client, deadline| async move {
            let capabilities = client.capabilities(deadline).await?;
            if !capabilities.executes {
                return Err(Error::Unsupported("execution".into()));
            }
            client.upload_inputs(inputs, capabilities, deadline).await?;
            if let Some(end) = self.settings.on_signal {
                signals::listen(&client.operations, end);
            }
            let start = self.settings.timeout;
            let deadline = Deadline::after(action.limit.unwrap_or(EXECUTION));
            let queue = action.queue.map(|limit| (Instant::now() + limit, limit));
            let execution = Execution { action, skips_cache, deadline, queue, start };
            let outputs = match client.execute(execution, capabilities).await {
                // The server lost an input that it had before.
                Err(error) if error.code() == Some(Code::FailedPrecondition) => {
                    client.upload_inputs(inputs, capabilities, Deadline::after(start)).await?;
                    client.execute(execution, capabilities).await
                }
                result => result,
            };
            let Some(outputs) = outputs? else { return Ok(None) };
            contents(client, outputs, capabilities, Deadline::after(start)).await
        })
    }

    /// Returns the numbers of operations that wait and run now.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.operations().map(|operations| operations.progress()).unwrap_or_default()
    }

    /// Returns which workers executed actions until now.
    #[must_use]
    pub fn executed(&self) -> Executed {
        self.operations().map(|operations| operations.executed()).unwrap_or_default()
    }

    fn operations(&self) -> Option<&Arc<Operations>> {
        self.started.get()?.as_ref().ok().map(|started| &started.client.operations)
    }

    /// Makes workers execute the action, even if the server has a result: the caller cannot use it.
    pub fn skip_cached(&self, action: &Action) {
        lock(&self.skipped).insert(action.digest);
    }

    /// Returns whether [`Remote::store`] may succeed.
    #[must_use]
    pub fn can_store(&self) -> bool {
        let breaker = self.breaker();
        self.settings.can_upload && !breaker.is_open && !breaker.cannot_upload
    }

    /// Stores an action's outputs, if the settings and the server allow it.
    pub fn store(&self, action: &Action, outputs: &Outputs) {
        if !self.can_store() {
            return;
        }
        let stored = self.try_run(|client, deadline| async move {
            let capabilities = client.capabilities(deadline).await?;
            if !capabilities.accepts_results {
                return Err(Error::ReadOnly);
            }
            let files: Vec<(String, Digest)> =
                outputs.iter().map(|(path, bytes)| (path.clone(), Digest::compute(bytes))).collect();
            let contents =
                files.iter().zip(outputs.values()).map(|((_, digest), bytes)| (*digest, bytes.as_slice()));
            let messages = action.blobs.iter().map(|(digest, bytes)| (*digest, bytes.as_slice()));
            let mut blobs: Vec<(Digest, &[u8])> = contents.chain(messages).collect();
            blobs.sort();
            blobs.dedup();
            let digests: Vec<Digest> = blobs.iter().map(|(digest, _)| *digest).collect();
            let missing = client.missing(&digests, deadline).await?;
            let is_missing = |(digest, _): &&(Digest, &[u8])| missing.contains(digest);
            let wanted: Vec<_> = blobs.iter().filter(is_missing).copied().collect();
            client.upload(&wanted, capabilities, deadline).await?;
            match client.update(action, &files, deadline).await {
                // The server lost a blob that it had before.
                Err(error) if matches!(error.code(), Some(Code::FailedPrecondition | Code::NotFound)) => {
                    client.upload(&blobs, capabilities, deadline).await?;
                    client.update(action, &files, deadline).await
                }
                result => result,
            }
        });
        match stored {
            Ok(()) => {}
            Err(error) if error.is_of_uploads() => {
                let mut breaker = self.breaker();
                if !breaker.is_open {
                    breaker.cannot_upload = true;
                    breaker.first.get_or_insert(Some(error));
                }
            }
            Err(error) => self.record(&error),
        }
    }

    /// Records an action that the caller cannot send.
    pub fn report_unsent(&self, reason: &str) {
        self.record(&Error::Input(reason.to_owned()));
    }

    /// Records a result that the caller cannot use.
    pub fn report_invalid(&self, reason: &str) {
        let mut breaker = self.breaker();
        breaker.invalid += 1;
        breaker.is_open |= breaker.invalid >= MAX_FAILURES;
        breaker.first.get_or_insert_with(|| Some(Error::Invalid(reason.to_owned())));
    }

    /// Returns the first failure once, and whether calls have stopped.
    #[must_use]
    pub fn take_failure(&self) -> Option<(Error, bool)> {
        let mut breaker = self.breaker();
        let error = breaker.first.as_mut()?.take()?;
        Some((error, breaker.is_open))
    }

    /// Runs an operation until its deadline. The breaker counts failures.
    fn run<'a, T, F>(&'a self, operation: impl FnOnce(&'a Client, Deadline) -> F) -> Option<T>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.try_run(operation).map_err(|error| self.record(&error)).ok()
    }

    fn try_run<'a, T, F>(&'a self, operation: impl FnOnce(&'a Client, Deadline) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let Started { runtime, headers, client } = self.started()?;
        headers.refresh()?;
        let runtime = runtime.as_ref().ok_or_else(|| Error::Connection("it is closed".to_owned()))?;
        let result = runtime.block_on(operation(client, Deadline::after(self.settings.timeout)))?;
        self.breaker().consecutive = 0;
        Ok(result)
    }

    fn started(&self) -> Result<&Started, Error> {
        let start = || {
            let headers = Headers::new(self.settings.credentials.clone(), connection::uri(&self.settings))?;
            let endpoint = connection::endpoint(&self.settings)?;
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(1).thread_name("remote").enable_all();
            let runtime = builder.build().map_err(|error| Error::Connection(error.to_string()))?;
            let client = {
                let _guard = runtime.enter();
                let channel = || connection::connect(&endpoint);
                Client::new(channel, &headers, &self.settings.instance, runtime.handle().clone())
            };
            Ok(Started { runtime: Some(runtime), headers, client })
        };
        self.started.get_or_init(start).as_ref().map_err(Clone::clone)
    }

    fn record(&self, error: &Error) {
        let mut breaker = self.breaker();
        // Operations that waited when the breaker opened fail for the same reason.
        if breaker.is_open {
            return;
        }
        breaker.consecutive += 1;
        let is_unreachable = matches!(error, Error::Call { call, .. } | Error::Timeout { call, .. } if *call == "GetCapabilities");
        breaker.is_open = error.is_permanent() || is_unreachable || breaker.consecutive >= MAX_FAILURES;
        breaker.first.get_or_insert_with(|| Some(error.clone()));
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        lock(&self.breaker)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn contents(
    client: &Client,
    mut outputs: Vec<Output>,
    capabilities: Capabilities,
    deadline: Deadline,
) -> Result<Option<Outputs>, Error> {
    let missing = outputs.iter().filter(|output| output.content.is_none());
    let missing: Vec<Digest> = missing.map(|output| output.digest).collect();
    let Some(blobs) = client.download(&missing, capabilities, deadline).await? else { return Ok(None) };
    for output in outputs.iter_mut().filter(|output| output.content.is_none()) {
        output.content = blobs.get(&output.digest).cloned();
    }
    Ok(outputs.into_iter().map(|output| Some((output.path, output.content?))).collect())
}

#[cfg(test)]
#[path = "execution_tests.rs"]
mod execution_tests;
#[cfg(test)]
#[path = "operations_tests.rs"]
mod operations_tests;
#[cfg(test)]
#[path = "proxy_tests.rs"]
mod proxy_tests;
#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "tls_tests.rs"]
mod tls_tests;
