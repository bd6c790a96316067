//! Queues of work, work that is captured to be queued again as one, and points in time.

use std::marker::PhantomData;
use std::ptr::null_mut;

use cudarc::driver::sys::{CUevent, CUgraph, CUgraphExec, CUstream, CUstream_flags, CUstreamCaptureMode};

use crate::context::Context;
use crate::driver::call;
use crate::error::DriverError;

/// A queue of work on the device.
#[derive(Debug)]
pub struct Stream<'c> {
    context: &'c Context,
    handle: CUstream,
}

impl<'c> Stream<'c> {
    /// The context's default stream. Work on it cannot be captured.
    #[must_use]
    pub fn of_context(context: &'c Context) -> Stream<'c> {
        Stream { context, handle: null_mut() }
    }

    /// One of its own, that waits for no other.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(context: &'c Context) -> Result<Stream<'c>, DriverError> {
        let mut handle = null_mut();
        // SAFETY: `handle` is a place for one handle.
        unsafe { call!(cuStreamCreate(&raw mut handle, CUstream_flags::CU_STREAM_NON_BLOCKING as u32)) }?;
        Ok(Stream { context, handle })
    }

    /// Waits until all that was queued on it is done.
    ///
    /// # Errors
    /// What went wrong on the device, among others.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the handle is one of this driver.
        unsafe { call!(cuStreamSynchronize(self.handle)) }
    }

    pub(crate) fn context(&self) -> &'c Context {
        self.context
    }

    pub(crate) fn handle(&self) -> CUstream {
        self.handle
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it was created in `new`, and graphs and events do not keep it. Destructors report nothing.
            let _ = unsafe { call!(cuStreamDestroy_v2(self.handle)) };
        }
    }
}

/// Work that is queued as one: between two kernels of it nothing goes through the host.
#[derive(Debug)]
pub(crate) struct Graph<'c> {
    _context: PhantomData<&'c Context>,
    handle: CUgraphExec,
}

impl<'c> Graph<'c> {
    /// What `work` queues on `stream`, which is not done now.
    ///
    /// # Errors
    /// Those of `work`, and the driver's: where something of it cannot be captured, say.
    pub(crate) fn capture(
        stream: &Stream<'c>,
        work: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<Graph<'c>, DriverError> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the handle is one of this driver; the default stream is answered with an error.
        unsafe { call!(cuStreamBeginCapture_v2(stream.handle(), mode)) }?;
        let worked = work();
        let mut graph: CUgraph = null_mut();
        // SAFETY: `graph` is a place for one handle. The capture ends whatever came of the work, as it must.
        let ended = unsafe { call!(cuStreamEndCapture(stream.handle(), &raw mut graph)) };
        let captured = worked.and(ended).and_then(|()| {
            let mut handle = null_mut();
            // SAFETY: `handle` is a place for one handle, `graph` one of this driver; no flags.
            unsafe { call!(cuGraphInstantiateWithFlags(&raw mut handle, graph, 0)) }?;
            Ok(Graph { handle, _context: PhantomData })
        });
        if !graph.is_null() {
            // SAFETY: what was instantiated from it does not need it any more. Its own failure would say less than what is at hand.
            let _ = unsafe { call!(cuGraphDestroy(graph)) };
        }
        captured
    }

    /// Queues it. Who captured work keeps what it refers to until the graph is done, as [`Repeated`](crate::timing::Repeated) does.
    pub(crate) fn launch(&self, stream: &Stream<'_>) -> Result<(), DriverError> {
        // SAFETY: both handles are of this driver, and so are the kernels' in it, because of what is said above. What the kernels do to the
        // device's memory is their author's business.
        unsafe { call!(cuGraphLaunch(self.handle, stream.handle())) }
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: it was instantiated in `capture` and nobody else knows it; one that is still running ends first (`cuda.h` 13.0,
        // `cuGraphExecDestroy`). Destructors report nothing.
        let _ = unsafe { call!(cuGraphExecDestroy(self.handle)) };
    }
}

/// A point in a stream, and when it was reached.
#[derive(Debug)]
pub(crate) struct Event<'c> {
    _context: PhantomData<&'c Context>,
    handle: CUevent,
}

impl<'c> Event<'c> {
    pub(crate) fn new(_context: &'c Context) -> Result<Event<'c>, DriverError> {
        let mut handle = null_mut();
        // SAFETY: `handle` is a place for one handle; no flags: its time is kept.
        unsafe { call!(cuEventCreate(&raw mut handle, 0)) }?;
        Ok(Event { handle, _context: PhantomData })
    }

    /// It is reached once all that was queued before is done.
    pub(crate) fn record(&self, stream: &Stream<'_>) -> Result<(), DriverError> {
        // SAFETY: both handles are of this driver.
        unsafe { call!(cuEventRecord(self.handle, stream.handle())) }
    }

    /// Waits until it is reached; the microseconds since `start` was.
    pub(crate) fn since(&self, start: &Event<'_>) -> Result<f64, DriverError> {
        // SAFETY: the handle is one of this driver.
        unsafe { call!(cuEventSynchronize(self.handle)) }?;
        let mut milliseconds = 0.0_f32;
        // SAFETY: `milliseconds` is a place for one `float`, and both handles are of this driver.
        unsafe { call!(cuEventElapsedTime(&raw mut milliseconds, start.handle, self.handle)) }?;
        Ok(f64::from(milliseconds) * 1000.0)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created in `new` and nobody else knows it. Destructors report nothing.
        let _ = unsafe { call!(cuEventDestroy_v2(self.handle)) };
    }
}
