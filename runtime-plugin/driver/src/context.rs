//! The calling thread's context, and temporarily current contexts.

use std::marker::PhantomData;

use super::result::Result;
use super::sys::{CUDA_ERROR_NOT_INITIALIZED, CUcontext, CUstream};
use super::table::Driver;

impl Driver {
    /// Returns the calling thread's context; `None` without one, or if the driver is not initialized.
    pub fn current_context(&self) -> Result<Option<CUcontext>> {
        let mut context = CUcontext::NULL;
        // SAFETY: `context` is a writable handle.
        let code = unsafe { (self.ctx_get_current)(&raw mut context) };
        if code == CUDA_ERROR_NOT_INITIALIZED {
            return Ok(None);
        }
        self.check("cuCtxGetCurrent", code)?;
        Ok((!context.is_null()).then_some(context))
    }

    /// Makes the context of `stream` current, if the thread has none. Returns `None` if the thread has a context or the
    /// stream is a default stream. Allowed during stream captures.
    ///
    /// # Safety
    /// `stream` is a live stream of this driver or one of the default streams.
    pub unsafe fn enter_context_of(&self, stream: CUstream) -> Result<Option<EnteredContext<'_>>> {
        if stream.is_default() || self.current_context()?.is_some() {
            return Ok(None);
        }
        // SAFETY: the pointer is to a writable handle; the stream is the caller's promise.
        let context = self.read("cuStreamGetCtx", CUcontext::NULL, |context| unsafe {
            (self.stream_get_ctx)(stream, context)
        })?;
        self.push(context)?;
        Ok(Some(EnteredContext { driver: self, _thread: PhantomData }))
    }

    fn push(&self, context: CUcontext) -> Result<()> {
        // SAFETY: the driver just returned this context; a destroyed one returns an error.
        self.check("cuCtxPushCurrent", unsafe { (self.ctx_push_current)(context) })
    }

    fn pop(&self) -> Result<()> {
        let mut context = CUcontext::NULL;
        // SAFETY: `context` is a writable handle; an empty stack returns an error.
        self.check("cuCtxPopCurrent", unsafe { (self.ctx_pop_current)(&raw mut context) })
    }
}

/// A context that is current in this thread until [`EnteredContext::leave`] or drop.
#[derive(Debug)]
pub struct EnteredContext<'a> {
    driver: &'a Driver,
    _thread: PhantomData<*const ()>,
}

impl EnteredContext<'_> {
    /// Makes the previous context current. After an error the context stays current.
    pub fn leave(self) -> Result<()> {
        let left = self.driver.pop();
        std::mem::forget(self);
        left
    }
}

impl Drop for EnteredContext<'_> {
    /// Only while unwinding, where an error cannot be reported.
    fn drop(&mut self) {
        let _ = self.driver.pop();
    }
}
