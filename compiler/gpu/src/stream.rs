//! Queues of work, work that is captured to be queued again as one, and points in time.

use crate::context::Context;
use crate::error::DriverError;
use crate::sys::{CAPTURE_RELAXED, CUevent, CUgraph, CUgraphExec, CUstream, STREAM_NON_BLOCKING};

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
        Stream { context, handle: CUstream::NULL }
    }

    /// One of its own, that waits for no other.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(context: &'c Context) -> Result<Stream<'c>, DriverError> {
        let mut handle = CUstream::NULL;
        // SAFETY: `handle` is a place for one handle.
        let code = unsafe { (context.driver.stream_create)(&raw mut handle, STREAM_NON_BLOCKING) };
        context.driver.check("cuStreamCreate", code)?;
        Ok(Stream { context, handle })
    }

    /// Waits until all that was queued on it is done.
    ///
    /// # Errors
    /// What went wrong on the device, among others.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the handle is one of this driver.
        let code = unsafe { (self.context.driver.stream_synchronize)(self.handle) };
        self.context.driver.check("cuStreamSynchronize", code)
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
        if self.handle != CUstream::NULL {
            // SAFETY: it was created in `new`, and graphs and events do not keep it. Destructors report nothing.
            let _ = unsafe { (self.context.driver.stream_destroy)(self.handle) };
        }
    }
}

/// Work that is queued as one: between two kernels of it nothing goes through the host.
#[derive(Debug)]
pub(crate) struct Graph<'c> {
    context: &'c Context,
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
        let context = stream.context();
        let driver = &context.driver;
        // SAFETY: the handle is one of this driver; the default stream is answered with an error.
        let code = unsafe { (driver.stream_begin_capture)(stream.handle(), CAPTURE_RELAXED) };
        driver.check("cuStreamBeginCapture", code)?;
        let worked = work();
        let mut graph = CUgraph::NULL;
        // SAFETY: `graph` is a place for one handle. The capture ends whatever came of the work, as it must.
        let code = unsafe { (driver.stream_end_capture)(stream.handle(), &raw mut graph) };
        let ended = worked.and_then(|()| driver.check("cuStreamEndCapture", code));
        let made = ended.and_then(|()| {
            let mut handle = CUgraphExec::NULL;
            // SAFETY: `handle` is a place for one handle, `graph` one of this driver; no flags.
            let code = unsafe { (driver.graph_instantiate)(&raw mut handle, graph, 0) };
            driver.check("cuGraphInstantiate", code).map(|()| Graph { context, handle })
        });
        if graph != CUgraph::NULL {
            // SAFETY: what was made from it does not need it any more. Its own failure would say less than what is at hand.
            let _ = unsafe { (driver.graph_destroy)(graph) };
        }
        made
    }

    /// Queues it. Who captured work keeps what it refers to until the graph is done, as [`Repeated`](crate::timing::Repeated) does.
    pub(crate) fn launch(&self, stream: &Stream<'_>) -> Result<(), DriverError> {
        // SAFETY: both handles are of this driver, and so are the kernels' in it, because of what is said above. What the kernels do to the
        // device's memory is their author's business.
        let code = unsafe { (self.context.driver.graph_launch)(self.handle, stream.handle()) };
        self.context.driver.check("cuGraphLaunch", code)
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made in `capture` and nobody else knows it; one that is still running ends first (`cuda.h` 13.0,
        // `cuGraphExecDestroy`). Destructors report nothing.
        let _ = unsafe { (self.context.driver.graph_exec_destroy)(self.handle) };
    }
}

/// A point in a stream, and when it was reached.
#[derive(Debug)]
pub(crate) struct Event<'c> {
    context: &'c Context,
    handle: CUevent,
}

impl<'c> Event<'c> {
    pub(crate) fn new(context: &'c Context) -> Result<Event<'c>, DriverError> {
        let mut handle = CUevent::NULL;
        // SAFETY: `handle` is a place for one handle; no flags: its time is kept.
        let code = unsafe { (context.driver.event_create)(&raw mut handle, 0) };
        context.driver.check("cuEventCreate", code)?;
        Ok(Event { context, handle })
    }

    /// It is reached once all that was queued before is done.
    pub(crate) fn record(&self, stream: &Stream<'_>) -> Result<(), DriverError> {
        // SAFETY: both handles are of this driver.
        let code = unsafe { (self.context.driver.event_record)(self.handle, stream.handle()) };
        self.context.driver.check("cuEventRecord", code)
    }

    /// Waits until it is reached; the microseconds since `start` was.
    pub(crate) fn since(&self, start: &Event<'_>) -> Result<f64, DriverError> {
        let driver = &self.context.driver;
        // SAFETY: the handle is one of this driver.
        driver.check("cuEventSynchronize", unsafe { (driver.event_synchronize)(self.handle) })?;
        let mut milliseconds = 0.0_f32;
        // SAFETY: `milliseconds` is a place for one `float`, and both handles are of this driver.
        let code = unsafe { (driver.event_elapsed_time)(&raw mut milliseconds, start.handle, self.handle) };
        driver.check("cuEventElapsedTime", code)?;
        Ok(f64::from(milliseconds) * 1000.0)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: it was created in `new` and nobody else knows it. Destructors report nothing.
        let _ = unsafe { (self.context.driver.event_destroy)(self.handle) };
    }
}
