use std::marker::PhantomData;
use std::ptr::null_mut;

use cudarc::driver::sys::{CUevent, CUgraph, CUgraphExec, CUstream, CUstream_flags, CUstreamCaptureMode};

use crate::context::Context;
use crate::driver::call;
use crate::error::DriverError;

/// Queue of work on the device.
#[derive(Debug)]
pub struct Stream<'c> {
    context: &'c Context,
    handle: CUstream,
}

impl<'c> Stream<'c> {
    /// Returns the uncapturable default stream.
    #[must_use]
    pub fn of_context(context: &'c Context) -> Stream<'c> {
        Stream { context, handle: null_mut() }
    }

    /// Creates a non-blocking stream.
    pub fn new(context: &'c Context) -> Result<Stream<'c>, DriverError> {
        let mut handle = null_mut();
        // SAFETY: `handle` has room for a handle.
        unsafe { call!(cuStreamCreate(&raw mut handle, CUstream_flags::CU_STREAM_NON_BLOCKING as u32)) }?;
        Ok(Stream { context, handle })
    }

    /// Waits for queued work; the error may be its own.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the handle is this driver's and live.
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
            // SAFETY: created in `new` and destroyed only here; graphs and events do not use it.
            let _ = unsafe { call!(cuStreamDestroy_v2(self.handle)) };
        }
    }
}

#[derive(Debug)]
pub(crate) struct Graph<'c> {
    _context: PhantomData<&'c Context>,
    handle: CUgraphExec,
}

impl<'c> Graph<'c> {
    pub(crate) fn capture(
        stream: &Stream<'c>,
        work: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<Graph<'c>, DriverError> {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the handle is this driver's; the default stream returns an error.
        unsafe { call!(cuStreamBeginCapture_v2(stream.handle(), mode)) }?;
        let worked = work();
        let mut graph: CUgraph = null_mut();
        // SAFETY: `graph` has room for a handle. Captures must end even if `work` fails.
        let ended = unsafe { call!(cuStreamEndCapture(stream.handle(), &raw mut graph)) };
        let captured = worked.and(ended).and_then(|()| {
            let mut handle = null_mut();
            // SAFETY: `handle` has room for a handle, `graph` is this driver's.
            unsafe { call!(cuGraphInstantiateWithFlags(&raw mut handle, graph, 0)) }?;
            Ok(Graph { handle, _context: PhantomData })
        });
        if !graph.is_null() {
            // SAFETY: `graph` is this driver's, and the instantiated graph does not need it. Earlier errors matter more.
            let _ = unsafe { call!(cuGraphDestroy(graph)) };
        }
        captured
    }

    /// The caller keeps memory and code until the work has ended.
    pub(crate) fn launch(&self, stream: &Stream<'_>) -> Result<(), DriverError> {
        // SAFETY: both handles are this driver's; the caller keeps kernels and memory until the work has ended.
        unsafe { call!(cuGraphLaunch(self.handle, stream.handle())) }
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: instantiated in `capture`, and not used later; a running graph ends first (`cuda.h` 13.0,
        // `cuGraphExecDestroy`).
        let _ = unsafe { call!(cuGraphExecDestroy(self.handle)) };
    }
}

#[derive(Debug)]
pub(crate) struct Event<'c> {
    _context: PhantomData<&'c Context>,
    handle: CUevent,
}

impl<'c> Event<'c> {
    pub(crate) fn new(_context: &'c Context) -> Result<Event<'c>, DriverError> {
        let mut handle = null_mut();
        // SAFETY: `handle` has room for a handle.
        unsafe { call!(cuEventCreate(&raw mut handle, 0)) }?;
        Ok(Event { handle, _context: PhantomData })
    }

    pub(crate) fn record(&self, stream: &Stream<'_>) -> Result<(), DriverError> {
        // SAFETY: both handles are this driver's and live.
        unsafe { call!(cuEventRecord(self.handle, stream.handle())) }
    }

    /// Waits; returns microseconds since `start`.
    pub(crate) fn since(&self, start: &Event<'_>) -> Result<f64, DriverError> {
        // SAFETY: the handle is this driver's and live.
        unsafe { call!(cuEventSynchronize(self.handle)) }?;
        let mut milliseconds = 0.0_f32;
        // SAFETY: `milliseconds` has room for a `float`, and both handles are this driver's.
        unsafe { call!(cuEventElapsedTime(&raw mut milliseconds, start.handle, self.handle)) }?;
        Ok(f64::from(milliseconds) * 1000.0)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: created in `new`, and not used later.
        let _ = unsafe { call!(cuEventDestroy_v2(self.handle)) };
    }
}
