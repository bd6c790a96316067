//! How long work takes on the device, without what the host needs to queue it.
//!
//! Work is captured several times over into one graph ([`Repeated`]), so that what is measured lasts much longer than the gap between two
//! graphs. One time of it ([`Repeated::time`]) is taken between two events with the same graph queued before the first: so the device is
//! busy when the host queues what is measured, and its queueing does not count.

use crate::context::Context;
use crate::error::DriverError;
use crate::memory::Guarded;
use crate::stream::{Event, Graph, Stream};

/// What a graph lasts at least, microseconds, where not too many runs make that up.
const LEAST: f64 = 400.0;
/// What a graph lasts at most, where one run does not last longer.
const MOST: f64 = 5000.0;
/// The fewest runs in a graph that is not longer than [`MOST`].
const FEW: u32 = 20;
/// The most runs in a graph.
const MANY: u32 = 1000;

/// Work that can be timed as often as is wanted.
#[derive(Debug)]
pub struct Repeated<'s, 'c> {
    stream: &'s Stream<'c>,
    graph: Graph<'c>,
    runs: u32,
    start: Event<'c>,
    end: Event<'c>,
}

impl<'s, 'c> Repeated<'s, 'c> {
    /// What `work` queues, so many times that it lasts long enough. It has been done some times when this returns, the first time outside
    /// of any graph.
    ///
    /// # Errors
    /// Those of `work`, and the driver's: what goes wrong on the device is among them.
    pub fn new(
        stream: &'s Stream<'c>,
        work: impl Fn() -> Result<(), DriverError>,
    ) -> Result<Repeated<'s, 'c>, DriverError> {
        // What is loaded when it is first used is loaded now: that may not be possible in a capture.
        work()?;
        stream.synchronize()?;
        let mut repeated = Repeated::of(stream, &work, 1)?;
        loop {
            // The first of a graph pays for its upload.
            repeated.time()?;
            let runs = runs(repeated.time()?);
            // A graph of one counts its gap as much as its work: another one tells better.
            let is_enough = runs <= repeated.runs.saturating_mul(2);
            if is_enough {
                return Ok(repeated);
            }
            repeated = Repeated::of(stream, &work, runs)?;
        }
    }

    fn of(
        stream: &'s Stream<'c>,
        work: impl Fn() -> Result<(), DriverError>,
        runs: u32,
    ) -> Result<Repeated<'s, 'c>, DriverError> {
        let graph = Graph::capture(stream, || (0..runs).try_for_each(|_| work()))?;
        let (start, end) = (Event::new(stream.context())?, Event::new(stream.context())?);
        Ok(Repeated { stream, graph, runs, start, end })
    }

    /// How many times the work is in one graph.
    #[must_use]
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// The microseconds of one run: those of one graph, by the number of runs in it.
    ///
    /// # Errors
    /// The driver's: what goes wrong on the device is among them.
    pub fn time(&self) -> Result<f64, DriverError> {
        self.graph.launch(self.stream)?;
        self.start.record(self.stream)?;
        self.graph.launch(self.stream)?;
        self.end.record(self.stream)?;
        Ok(self.end.since(&self.start)? / f64::from(self.runs))
    }
}

/// How many runs make a graph long enough and not too long, where one takes so many microseconds.
fn runs(microseconds: f64) -> u32 {
    let enough = (LEAST / microseconds).ceil().max(f64::from(FEW));
    let fitting = (MOST / microseconds).floor();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the bounds; saturated
    let runs = enough.min(fitting) as u32;
    runs.clamp(1, MANY)
}

/// Several times of the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The one in the middle.
    pub median: f64,
    /// The shortest.
    pub least: f64,
    /// The longest.
    pub most: f64,
    /// A quarter is shorter.
    pub lower: f64,
    /// A quarter is longer.
    pub upper: f64,
}

impl Spread {
    /// None where there are no times.
    #[must_use]
    pub fn of(times: &[f64]) -> Option<Spread> {
        let mut times = times.to_vec();
        times.sort_by(f64::total_cmp);
        let (least, most) = (*times.first()?, *times.last()?);
        let at = |quarters: usize| times.get((times.len() - 1) * quarters / 4).copied();
        Some(Spread { median: at(2)?, least, most, lower: at(1)?, upper: at(3)? })
    }
}

/// How fast the device copies from its memory to its memory: bytes that are read and written in a second, by `times` copies of so many
/// bytes.
///
/// # Errors
/// The driver's: for want of memory, say.
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
        // SAFETY: both buffers have so many bytes and live until the stream has been waited for, below.
        let code = unsafe {
            (context.driver.memcpy_dtod_async)(to.address(), from.address(), bytes, stream.handle())
        };
        context.driver.check("cuMemcpyDtoDAsync", code)
    })?;
    let all = (0..times).map(|_| copying.time()).collect::<Result<Vec<f64>, _>>()?;
    stream.synchronize()?;
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    let moved = 2.0 * bytes as f64;
    Ok(Spread::of(&all).filter(|spread| spread.median > 0.0).map(|spread| moved / spread.median * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(runs(microseconds), expected, "{microseconds}");
        }
    }

    #[test]
    fn the_middle_is_that_of_sorted_times() {
        let spread = Spread::of(&[5.0, 1.0, 9.0, 3.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { median: 3.0, least: 1.0, most: 9.0, lower: 2.0, upper: 5.0 });
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[4.0]).map(|one| (one.least, one.most)), Some((4.0, 4.0)));
    }
}
