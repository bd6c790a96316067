//! The policy for failed calls: which are repeated, when, and until when.

use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use prost::Message as _;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::error::Error;

const ATTEMPTS: u32 = 5;
/// The mean of the first wait; doubles with each attempt.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The end of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    base: Duration,
    limit: Duration,
    end: Instant,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Deadline {
        Deadline { base: limit, limit, end: Instant::now() + limit }
    }

    /// Starts the same limit anew, for the next call.
    pub(crate) fn restart(self) -> Deadline {
        Deadline::after(self.base)
    }

    pub(crate) fn stall(self) -> Duration {
        self.base
    }

    /// Adds the time that `bytes` take at the slowest accepted rate.
    pub(crate) fn for_bytes(self, bytes: u64) -> Deadline {
        /// Bytes per second; a slower server costs more time than a compile.
        const SLOWEST: u64 = 256 << 10;
        let more = Duration::from_secs(bytes / SLOWEST);
        Deadline { base: self.base, limit: self.limit + more, end: self.end + more }
    }

    pub(crate) async fn limit<T>(
        &self,
        call: &'static str,
        attempt: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match timeout_at(self.end, attempt).await {
            Ok(result) => result,
            Err(_) => Err(Failure::Permanent(Error::Timeout { call, limit: self.limit })),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// Another attempt may succeed, after this time if the server names it.
    Transient(Error, Option<Duration>),
    Permanent(Error),
}

impl Failure {
    pub(crate) fn of_call(call: &'static str, status: &Status) -> Failure {
        let error = Error::of_call(call, status);
        // A source means that the connection failed, not the server.
        let is_transient = status.source().is_some()
            || matches!(status.code(), Code::Unavailable | Code::Aborted | Code::ResourceExhausted);
        match is_transient {
            true => {
                let wait = status.get_details_retry_info().and_then(|info| info.retry_delay);
                Failure::Transient(error, wait)
            }
            false => Failure::Permanent(error),
        }
    }
}

pub(crate) fn to_status(status: &tonic_types::Status) -> Status {
    let details = status.encode_to_vec().into();
    Status::with_details(Code::from_i32(status.code), status.message.clone(), details)
}

/// Waits grow exponentially, with jitter.
pub(crate) async fn with_retries<T, F>(
    call: &'static str,
    deadline: Deadline,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Failure>>,
{
    let mut mean = FIRST_WAIT;
    for number in 1.. {
        let (error, named) = match deadline.limit(call, attempt()).await {
            Ok(result) => return Ok(result),
            Err(Failure::Permanent(error)) => return Err(error),
            Err(Failure::Transient(error, named)) => (error, named),
        };
        let wait = named.unwrap_or_else(|| mean.mul_f64(0.5 + fastrand::f64()));
        if number >= ATTEMPTS || wait >= deadline.end.saturating_duration_since(Instant::now()) {
            return Err(error);
        }
        sleep(wait).await;
        mean = (mean * 2).min(LONGEST_WAIT);
    }
    Err(Error::Timeout { call, limit: deadline.limit })
}
