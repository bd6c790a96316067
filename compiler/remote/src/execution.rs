//! Execution of actions by the server's workers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;

use std::time::Duration;

use prost::Message as _;
use prost::bytes::Bytes;
use tokio::time::timeout;
use tonic::{Code, Status, Streaming};

use crate::action::Action;
use crate::cas::batches;
use crate::client::{Capabilities, Client, Output, outputs};
use crate::digest::Digest;
use crate::error::{Error, shorten};
use crate::proto::google::longrunning::{Operation, operation};
use crate::proto::reapi;
use crate::retry::{Deadline, Failure, with_retries};

const EXECUTE: &str = "Execute";

/// The type of a finished operation's response.
const RESPONSE: &str = "type.googleapis.com/build.bazel.remote.execution.v2.ExecuteResponse";

/// The content of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blob {
    /// Bytes.
    Bytes(Bytes),
    /// A file, read if the server lacks the input.
    File(PathBuf),
}

impl Blob {
    fn read(&self, digest: Digest) -> Result<Bytes, Error> {
        let bytes = match self {
            Blob::Bytes(bytes) => bytes.clone(),
            Blob::File(path) => {
                let error = |reason: String| Error::File { role: "an input", path: path.clone(), reason };
                let bytes = std::fs::read(path).map_err(|found| error(found.to_string()))?;
                if Digest::compute(&bytes) != digest {
                    return Err(error("it has changed".to_owned()));
                }
                bytes.into()
            }
        };
        Ok(bytes)
    }
}

impl Client {
    /// Stores inputs that the server lacks. Each is asked for once, and concurrent callers wait.
    pub(crate) async fn upload_inputs(
        &self,
        inputs: &HashMap<Digest, Blob>,
        capabilities: Capabilities,
        deadline: Deadline,
    ) -> Result<(), Error> {
        /// Digests of a request, about 100 bytes each.
        const MOST: usize = 10_000;
        // The time of another caller's transfers does not count.
        let mut present = self.present.lock().await;
        let mut unknown: Vec<Digest> =
            inputs.keys().filter(|digest| !present.contains(*digest)).copied().collect();
        unknown.sort();
        for digests in unknown.chunks(MOST) {
            let missing = self.missing(digests, deadline).await?;
            let (mut parts, large) = batches(missing, capabilities.max_batch, |digest| digest.length);
            parts.extend(large.into_iter().map(|digest| vec![digest]));
            for part in parts {
                let mut blobs = Vec::new();
                for digest in part {
                    let blob = inputs.get(&digest);
                    let blob = blob.ok_or(Error::Unsupported("the request for missing inputs"))?;
                    blobs.push((digest, blob.read(digest)?));
                }
                let blobs: Vec<(Digest, &[u8])> =
                    blobs.iter().map(|(digest, bytes)| (*digest, bytes.as_ref())).collect();
                self.upload(&blobs, capabilities, deadline).await?;
            }
            present.extend(digests);
        }
        Ok(())
    }

    /// Forgets which inputs the server has.
    pub(crate) async fn forget_inputs(&self) {
        self.present.lock().await.clear();
    }

    /// Executes an action whose inputs the server has. `None` if the command rejects its inputs. The server must
    /// accept the action within `start`.
    pub(crate) async fn execute(
        &self,
        action: &Action,
        deadline: Deadline,
        start: Duration,
    ) -> Result<Option<Vec<Output>>, Error> {
        // The operation of an earlier attempt, whose stream broke.
        let name = Mutex::new(None);
        let response = with_retries(EXECUTE, deadline, || async {
            let known = lock(&name).clone();
            let first = async {
                let mut stream = match known {
                    Some(name) => self.wait(name).await?,
                    None => self.start(action).await?,
                };
                let update = stream.message().await?;
                Ok((stream, update))
            };
            let result = match timeout(start, first).await {
                Ok(Ok((stream, update))) => follow(stream, update, &name).await,
                Ok(Err(status)) => Err(Failure::of_call(EXECUTE, &status)),
                Err(_) => Err(Failure::Permanent(Error::Timeout { call: EXECUTE, limit: start })),
            };
            if matches!(&result, Err(Failure::Permanent(error)) if error.code() == Some(Code::NotFound))
                && lock(&name).take().is_some()
            {
                // The server forgot the operation.
                let error = Error::Invalid("an operation is unknown".to_owned());
                return Err(Failure::Transient(error, None));
            }
            result
        });
        let response = response.await?;
        if let Some(status) = response.status.filter(|status| status.code != 0) {
            return Err(Error::of_call(EXECUTE, &Status::new(Code::from_i32(status.code), status.message)));
        }
        let result =
            response.result.ok_or_else(|| Error::Invalid("an operation has no result".to_owned()))?;
        if result.exit_code != 0 && Some(result.exit_code) != action.invalid_input {
            let stderr = shorten(&String::from_utf8_lossy(&result.stderr_raw));
            return Err(Error::Command { exit_code: result.exit_code, stderr });
        }
        outputs(action, result)
    }

    async fn start(&self, action: &Action) -> Result<Streaming<Operation>, Status> {
        let request = reapi::ExecuteRequest {
            instance_name: self.instance.clone(),
            action_digest: Some(action.digest.to_message()),
            inline_output_files: action.outputs.clone(),
            digest_function: reapi::digest_function::Value::Sha256.into(),
            ..Default::default()
        };
        Ok(self.executions.clone().execute(request).await?.into_inner())
    }

    async fn wait(&self, name: String) -> Result<Streaming<Operation>, Status> {
        let request = reapi::WaitExecutionRequest { name };
        Ok(self.executions.clone().wait_execution(request).await?.into_inner())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads updates of an operation until it is done.
async fn follow(
    mut stream: Streaming<Operation>,
    first: Option<Operation>,
    name: &Mutex<Option<String>>,
) -> Result<reapi::ExecuteResponse, Failure> {
    let failure = |status: Status| Failure::of_call(EXECUTE, &status);
    let mut next = first;
    while let Some(update) = next {
        if !update.name.is_empty() {
            *lock(name) = Some(update.name);
        }
        if !update.done {
            next = stream.message().await.map_err(failure)?;
            continue;
        }
        return match update.result {
            Some(operation::Result::Response(response)) if response.type_url == RESPONSE => {
                let invalid = |_| Failure::Permanent(Error::Invalid("an operation's response".to_owned()));
                reapi::ExecuteResponse::decode(response.value.as_slice()).map_err(invalid)
            }
            Some(operation::Result::Error(status)) => {
                Err(failure(Status::new(Code::from_i32(status.code), status.message)))
            }
            _ => Err(Failure::Permanent(Error::Invalid("an operation has no response".to_owned()))),
        };
    }
    Err(Failure::Transient(Error::Invalid("a stream ends early".to_owned()), None))
}
