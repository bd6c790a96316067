//! Device times of queued work, without host overhead. A graph repeats the work to outlast gaps between graphs, and
//! runs before the first event to keep the device busy while the host queues.

use std::marker::PhantomData;

use crate::context::Context;
use crate::driver::call;
use crate::error::DriverError;
use crate::memory::Guarded;
use crate::stream::{Event, Graph, Stream};

/// Minimum microseconds of a graph.
const LEAST: f64 = 400.0;
/// Intended microseconds of a longer graph.
const AIMED: f64 = 500.0;
/// Maximum attempts at a longer graph.
const CORRECTIONS: u32 = 5;
/// Maximum microseconds of several runs.
const MOST: f64 = 5000.0;
/// Minimum runs, if they fit into [`MOST`].
const FEW: u32 = 20;
/// Maximum runs in a graph.
const MANY: u32 = 1000;

/// Work that can be timed while its buffers are alive:
///
/// ```no_run
/// use cubinder_gpu::{DriverError, Guarded, Stream, timing::Repeated};
///
/// fn time(stream: &Stream<'_>, buffer: Guarded<'_>) -> Result<f64, DriverError> {
///     let repeated = Repeated::new(stream, || { buffer.address(); Ok(()) })?;
///     let time = repeated.time();
///     drop(repeated);
///     drop(buffer);
///     time
/// }
/// ```
///
/// ```compile_fail,E0505
/// use cubinder_gpu::{DriverError, Guarded, Stream, timing::Repeated};
///
/// fn time(stream: &Stream<'_>, buffer: Guarded<'_>) -> Result<f64, DriverError> {
///     let repeated = Repeated::new(stream, || { buffer.address(); Ok(()) })?;
///     drop(buffer);
///     repeated.time()
/// }
/// ```
#[derive(Debug)]
pub struct Repeated<'s, 'c, 'w> {
    stream: &'s Stream<'c>,
    graph: Graph<'c>,
    runs: u32,
    start: Event<'c>,
    end: Event<'c>,
    _work: PhantomData<&'w ()>,
}

impl<'s, 'c, 'w> Repeated<'s, 'c, 'w> {
    /// Runs `work`, which must borrow its buffers, then captures and runs repetitions. On errors, queued work has ended.
    pub fn new(
        stream: &'s Stream<'c>,
        work: impl Fn() -> Result<(), DriverError> + 'w,
    ) -> Result<Repeated<'s, 'c, 'w>, DriverError> {
        // Lazy loading may fail in a capture.
        let worked = work();
        let waited = stream.synchronize();
        worked.and(waited)?;
        let mut repeated = Repeated::capture(stream, &work, 1)?;
        let mut left = CORRECTIONS;
        loop {
            // The first launch includes the upload.
            repeated.time()?;
            let microseconds = repeated.time()?;
            if left == 0 || runs(microseconds, LEAST) <= repeated.runs {
                return Ok(repeated);
            }
            left -= 1;
            repeated = Repeated::capture(stream, &work, runs(microseconds, AIMED))?;
        }
    }

    fn capture(
        stream: &'s Stream<'c>,
        work: impl Fn() -> Result<(), DriverError>,
        runs: u32,
    ) -> Result<Repeated<'s, 'c, 'w>, DriverError> {
        let graph = Graph::capture(stream, || (0..runs).try_for_each(|_| work()))?;
        let (start, end) = (Event::new(stream.context())?, Event::new(stream.context())?);
        Ok(Repeated { stream, graph, runs, start, end, _work: PhantomData })
    }

    /// Returns the runs per graph.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Returns the mean microseconds per run, or the queued work's error.
    pub fn time(&self) -> Result<f64, DriverError> {
        self.graph.launch(self.stream)?;
        self.start.record(self.stream)?;
        self.graph.launch(self.stream)?;
        self.end.record(self.stream)?;
        Ok(self.end.since(&self.start)? / f64::from(self.runs))
    }
}

impl Drop for Repeated<'_, '_, '_> {
    fn drop(&mut self) {
        // Queued work may run after an error.
        let _ = self.stream.synchronize();
    }
}

fn runs(microseconds: f64, least: f64) -> u32 {
    let enough = (least / microseconds).ceil().max(f64::from(FEW));
    let fitting = (MOST / microseconds).floor();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the bounds; saturated
    let runs = enough.min(fitting) as u32;
    runs.clamp(1, MANY)
}

/// Distribution of times.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Spread {
    /// Median.
    #[serde(rename = "microseconds")]
    pub median: f64,
    /// The shortest.
    pub least: f64,
    /// The longest.
    pub most: f64,
    /// First quartile.
    pub lower_quartile: f64,
    /// Third quartile.
    pub upper_quartile: f64,
}

impl Spread {
    /// Returns `None` if `times` is empty.
    #[must_use]
    pub fn from_times(times: &[f64]) -> Option<Spread> {
        let mut times = times.to_vec();
        times.sort_by(f64::total_cmp);
        let (least, most) = (*times.first()?, *times.last()?);
        let at = |quarters: usize| times.get((times.len() - 1) * quarters / 4).copied();
        Some(Spread { median: at(2)?, least, most, lower_quartile: at(1)?, upper_quartile: at(3)? })
    }

    /// Rounds to nanoseconds, the precision of the measurement.
    #[must_use]
    pub fn rounded(self) -> Spread {
        let Spread { median, least, most, lower_quartile, upper_quartile } = self;
        let [median, least, most, lower_quartile, upper_quartile] =
            [median, least, most, lower_quartile, upper_quartile]
                .map(|time| (time * 1000.0).round() / 1000.0);
        Spread { median, least, most, lower_quartile, upper_quartile }
    }
}

/// Measures device copies: bytes read and written per second.
pub fn copy_rate(
    context: &Context,
    stream: &Stream<'_>,
    bytes: usize,
    times: u32,
) -> Result<Option<f64>, DriverError> {
    let buffer = || Guarded::new(context, bytes, 256, false, 0);
    let (from, to) = (buffer()?, buffer()?);
    context.synchronize()?;
    let copying = Repeated::new(stream, || {
        // SAFETY: both buffers have `bytes` bytes, which `Repeated` borrows.
        unsafe { call!(cuMemcpyDtoDAsync_v2(to.address(), from.address(), bytes, stream.handle())) }
    })?;
    let all = (0..times).map(|_| copying.time()).collect::<Result<Vec<f64>, _>>()?;
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    let moved = 2.0 * bytes as f64;
    Ok(Spread::from_times(&all)
        .filter(|spread| spread.median > 0.0)
        .map(|spread| moved / spread.median * 1e6))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::ffi::c_int;
    use std::rc::Rc;

    use cudarc::driver::sys::CUevent;

    use super::*;
    use crate::driver::stand_in;

    const SUCCESS: c_int = 0;
    const INVALID_VALUE: c_int = 1;

    #[test]
    fn graphs_are_long_enough_and_not_too_long() {
        for (microseconds, expected) in [
            (1.0, 400),
            (0.1, 1000),
            (3.0, 134),
            (100.0, 20),
            (250.0, 20),
            (300.0, 16),
            (1000.0, 5),
            (9000.0, 1),
            (0.0, 1000),
        ] {
            assert_eq!(runs(microseconds, LEAST), expected, "{microseconds}");
        }
    }

    fn calls(refused: &'static str, work: impl FnOnce(&Context, &Stream<'_>)) -> Vec<&'static str> {
        let called = Rc::new(RefCell::new(Vec::new()));
        let log = called.clone();
        stand_in::install(move |call, _| {
            log.borrow_mut().push(call);
            if call == refused { INVALID_VALUE } else { SUCCESS }
        });
        let context = Context::without_device();
        work(&context, &Stream::of_context(&context));
        called.take()
    }

    #[test]
    fn a_graph_lasts_long_enough_whatever_lies_between_two() {
        for gap in [0.0, 1.0, 4.0, 10.0, 30.0, 60.0] {
            for one in [0.2, 0.5, 1.0, 2.1, 6.0, 15.0, 21.0, 50.0, 240.0, 260.0, 1000.0, 6000.0] {
                let captured = Rc::new(Cell::new((0_u32, 0_u32)));
                let device = captured.clone();
                stand_in::install(move |call, arguments| {
                    let (runs, graphs) = device.get();
                    if call == "cuStreamBeginCapture" {
                        device.set((0, graphs + 1));
                    }
                    if let Some((to, ..)) = arguments.downcast_ref::<(*mut f32, CUevent, CUevent)>() {
                        #[allow(clippy::cast_possible_truncation)]
                        let milliseconds = ((gap + one * f64::from(runs)) / 1000.0) as f32;
                        // SAFETY: the caller passes a pointer to a number of this type.
                        unsafe { to.write(milliseconds) };
                    }
                    SUCCESS
                });
                let context = Context::without_device();
                let work = || {
                    let (runs, graphs) = captured.get();
                    captured.set((runs + 1, graphs));
                    Ok(())
                };
                let runs = Repeated::new(&Stream::of_context(&context), work).unwrap().runs();
                let (lasts, found) = (f64::from(runs) * one, (gap, one));
                assert!(lasts + gap >= LEAST || runs == MANY, "{found:?}: {runs} last {lasts}");
                assert!(lasts <= MOST || runs == 1, "{found:?}: {runs} last {lasts}");
                assert!(captured.get().1 <= 1 + CORRECTIONS, "{found:?}");
            }
        }
    }

    #[test]
    fn nothing_that_runs_is_freed_whatever_goes_wrong() {
        let is_waited_for = |calls: &[&str]| {
            let after_launch = calls.rsplit(|call| *call == "cuGraphLaunch").next().unwrap_or_default();
            let before_free = after_launch.split(|call| *call == "cuMemFree").next().unwrap_or_default();
            calls.contains(&"cuMemFree") && before_free.iter().any(|call| call.ends_with("Synchronize"))
        };
        let found = calls("cuEventRecord", |context, stream| {
            assert!(copy_rate(context, stream, 64, 1).is_err());
        });
        assert!(found.contains(&"cuGraphLaunch") && is_waited_for(&found), "{found:?}");
        let found = calls("", |context, stream| {
            let _buffer = Guarded::new(context, 64, 256, false, 0).unwrap();
            let error = DriverError { call: "cuLaunchKernelEx", code: INVALID_VALUE, name: None, text: None };
            assert!(Repeated::new(stream, || Err(error.clone())).is_err());
        });
        let expected =
            ["cuMemAlloc", "cuMemsetD8Async", "cuStreamSynchronize", "cuCtxSynchronize", "cuMemFree"];
        assert_eq!(found, expected);
    }

    #[test]
    fn timed_work_is_waited_for_when_it_is_dropped() {
        let found = calls("", |_, stream| drop(Repeated::new(stream, || Ok(())).unwrap()));
        let after_launch = found.rsplit(|call| *call == "cuGraphLaunch").next().unwrap_or_default();
        assert!(after_launch.contains(&"cuStreamSynchronize"), "{found:?}");
    }

    #[test]
    fn the_middle_is_that_of_sorted_times() {
        let spread = Spread::from_times(&[5.0, 1.0, 9.0, 3.0, 2.0]).unwrap();
        assert_eq!(
            spread,
            Spread { median: 3.0, least: 1.0, most: 9.0, lower_quartile: 2.0, upper_quartile: 5.0 }
        );
        assert_eq!(Spread::from_times(&[]), None);
        assert_eq!(Spread::from_times(&[4.0]).map(|one| (one.least, one.most)), Some((4.0, 4.0)));
    }
}
