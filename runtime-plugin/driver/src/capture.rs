use super::result::{DriverError, Result};
use super::sys::{CU_STREAM_CAPTURE_MODE_RELAXED, CUstreamCaptureMode};
use super::table::Driver;

/// Runs `work` in relaxed mode, which allows loading during others' captures.
pub fn in_relaxed_capture_mode<T, E: From<DriverError>>(
    driver: &Driver,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let relaxed = RelaxedCapture::enter(driver)?;
    let result = work();
    let restored = relaxed.leave();
    let value = result?;
    restored?;
    Ok(value)
}

/// The calling thread's relaxed mode, until dropped.
pub struct RelaxedCapture<'a> {
    driver: &'a Driver,
    before: CUstreamCaptureMode,
    restored: bool,
}

impl<'a> RelaxedCapture<'a> {
    /// Enters the mode; unchanged after an error.
    pub fn enter(driver: &'a Driver) -> Result<RelaxedCapture<'a>> {
        let mut before = CU_STREAM_CAPTURE_MODE_RELAXED;
        driver.exchange_capture_mode(&mut before)?;
        Ok(RelaxedCapture { driver, before, restored: false })
    }

    /// Restores the previous mode.
    pub fn leave(mut self) -> Result<()> {
        self.restore()
    }

    fn restore(&mut self) -> Result<()> {
        self.restored = true;
        let mut mode = self.before;
        self.driver.exchange_capture_mode(&mut mode)
    }
}

impl Drop for RelaxedCapture<'_> {
    fn drop(&mut self) {
        if !self.restored {
            let _ = self.restore();
        }
    }
}
