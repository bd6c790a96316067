//! The calling thread's context; temporarily current contexts.

use std::marker::PhantomData;

use super::result::Result;
use super::sys::{CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_INITIALIZED, CUDA_SUCCESS, CUcontext, CUstream};
use super::table::Driver;

impl Driver {
    /// Returns the calling thread's context, if any.
    pub fn current_context(&self) -> Result<Option<CUcontext>> {
        let mut context = CUcontext::NULL;
        // SAFETY: `context` is writable.
        let code = unsafe { (self.ctx_get_current)(&raw mut context) };
        if code == CUDA_ERROR_NOT_INITIALIZED {
            return Ok(None);
        }
        self.check("cuCtxGetCurrent", code)?;
        Ok((!context.is_null()).then_some(context))
    }

    /// Returns the number of the thread's context, if any: unique in the process, while addresses are reused.
    pub fn current_context_id(&self) -> Result<Option<u64>> {
        let mut id = 0;
        // SAFETY: `id` is writable; null is the current context.
        match unsafe { (self.ctx_get_id)(CUcontext::NULL, &raw mut id) } {
            CUDA_SUCCESS => Ok(Some(id)),
            CUDA_ERROR_NOT_INITIALIZED | CUDA_ERROR_INVALID_CONTEXT => Ok(None),
            code => self.check("cuCtxGetId", code).map(|()| None),
        }
    }

    /// Makes the context of `stream` current; allowed during captures. `None` if the thread has a context, or for a
    /// default stream.
    ///
    /// # Safety
    /// `stream` is a live or a default stream.
    pub unsafe fn enter_context_of(&self, stream: CUstream) -> Result<Option<EnteredContext<'_>>> {
        if stream.is_default() || self.current_context()?.is_some() {
            return Ok(None);
        }
        // SAFETY: `context` is writable, and the caller guarantees a valid stream.
        let context = self.read("cuStreamGetCtx", CUcontext::NULL, |context| unsafe {
            (self.stream_get_ctx)(stream, context)
        })?;
        self.push(context)?;
        Ok(Some(EnteredContext { driver: self, _thread: PhantomData }))
    }

    fn push(&self, context: CUcontext) -> Result<()> {
        // SAFETY: the driver just returned the context.
        self.check("cuCtxPushCurrent", unsafe { (self.ctx_push_current)(context) })
    }

    fn pop(&self) -> Result<()> {
        let mut context = CUcontext::NULL;
        // SAFETY: `context` is writable; an empty stack returns an error.
        self.check("cuCtxPopCurrent", unsafe { (self.ctx_pop_current)(&raw mut context) })
    }
}

/// A thread's current context, until dropped.
#[derive(Debug)]
pub struct EnteredContext<'a> {
    driver: &'a Driver,
    _thread: PhantomData<*const ()>,
}

impl EnteredContext<'_> {
    /// Makes the previous context current, unless it fails.
    pub fn leave(self) -> Result<()> {
        let left = self.driver.pop();
        std::mem::forget(self);
        left
    }
}

impl Drop for EnteredContext<'_> {
    /// Unwinding cannot report errors.
    fn drop(&mut self) {
        let _ = self.driver.pop();
    }
}
