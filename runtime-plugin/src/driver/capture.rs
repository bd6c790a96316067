//! The calling thread's stream capture mode.

use super::error::DriverError;
use super::sys::{CU_STREAM_CAPTURE_MODE_RELAXED, CUstreamCaptureMode};
use super::table::Driver;

/// Runs `work` in the mode in which this thread may load code while another thread captures a stream (any thread's
/// capture forbids that by default), then restores the thread's mode, also where `work` fails or unwinds.
///
/// # Errors
/// What `work` returns; otherwise the driver's refusal to change the mode or to change it back.
pub fn in_relaxed_capture_mode<T, E: From<DriverError>>(
    driver: &Driver,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let mut relaxed = Relaxed { driver, before: CU_STREAM_CAPTURE_MODE_RELAXED, restored: false };
    if let Err(error) = driver.exchange_capture_mode(&mut relaxed.before) {
        relaxed.restored = true; // nothing was changed
        return Err(error.into());
    }
    let result = work();
    let restored = relaxed.restore();
    let value = result?;
    restored?;
    Ok(value)
}

struct Relaxed<'a> {
    driver: &'a Driver,
    before: CUstreamCaptureMode,
    restored: bool,
}

impl Relaxed<'_> {
    fn restore(&mut self) -> Result<(), DriverError> {
        self.restored = true;
        let mut mode = self.before;
        self.driver.exchange_capture_mode(&mut mode)
    }
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        if !self.restored {
            // Only while unwinding: there is nobody left to tell.
            let _ = self.restore();
        }
    }
}
