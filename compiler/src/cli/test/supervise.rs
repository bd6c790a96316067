use std::time::Duration;

use cubinder_gpu::DeviceInfo;
use cubinder_node::trial::Trial;

use super::protocol::{Event, Fault, Job, Kind, VariantResult};
use crate::cli::gpu::Stopped;
use crate::cli::gpu::process::{Lost, Process};

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TrialReport {
    pub(super) differs: Vec<String>,
    pub(super) refused: Option<String>,
    pub(super) ran: Vec<VariantResult>,
}

impl TrialReport {
    pub(super) fn faults(&self) -> impl Iterator<Item = (&VariantResult, &Fault)> {
        self.ran.iter().flat_map(|ran| ran.faults.iter().map(move |fault| (ran, fault)))
    }

    pub(super) fn is_wrong(&self) -> bool {
        !self.differs.is_empty() || self.refused.is_some() || self.faults().next().is_some()
    }

    fn add(&mut self, mut ran: VariantResult) {
        match self.ran.iter_mut().find(|known| known.id == ran.id && ran.id != 0) {
            Some(known) => {
                let earlier = std::mem::take(&mut known.faults);
                let is_new = |fault: &Fault| !ran.faults.contains(fault);
                let earlier: Vec<Fault> = earlier.into_iter().filter(is_new).collect();
                ran.faults.extend(earlier);
                *known = ran;
            }
            None => self.ran.push(ran),
        }
    }
}

const PURPOSE: &str = "runs kernels";

pub(super) struct Supervisor {
    timeout: Duration,
    process: Option<Process>,
    gpu: DeviceInfo,
    lost: Option<String>,
}

impl Supervisor {
    pub(super) fn start(timeout: Duration) -> Result<Supervisor, Stopped> {
        let (process, gpu) = Process::start(PURPOSE, timeout)?;
        Ok(Supervisor { timeout, process: Some(process), gpu, lost: None })
    }

    pub(super) fn gpu(&self) -> &DeviceInfo {
        &self.gpu
    }

    pub(super) fn run(&mut self, trial: &Trial, case: Option<usize>) -> TrialReport {
        let mut outcome = TrialReport::default();
        let mut skip = Vec::new();
        loop {
            let Some(process) = self.process() else {
                let why = self.lost.clone().unwrap_or_default();
                outcome.add(lost(
                    None,
                    Kind::GpuLost,
                    format!("not run: the worker process cannot be restarted: {why}"),
                ));
                return outcome;
            };
            let job = Job { trial: trial.clone(), case, skip: skip.clone() };
            match self.job(process, &job, &mut outcome) {
                Ended::Done => return outcome,
                Ended::Lost(Some(variant)) if !skip.contains(&variant) => skip.push(variant),
                // Without a running variant, the next worker would fail too.
                Ended::Lost(_) => return outcome,
            }
        }
    }

    fn process(&mut self) -> Option<Process> {
        if self.process.is_none() && self.lost.is_none() {
            match Process::start(PURPOSE, self.timeout) {
                Ok((process, _)) => self.process = Some(process),
                Err(stopped) => self.lost = Some(stopped.headline().to_owned()),
            }
        }
        self.process.take()
    }

    fn job(&mut self, mut process: Process, job: &Job, outcome: &mut TrialReport) -> Ended {
        let mut state = JobState { outcome, under_way: None };
        if let Err(why) = process.send(job) {
            return state.lost(Kind::Crash, process.end(&why));
        }
        loop {
            let event = match process.next(self.timeout) {
                Ok(event) => event,
                Err(lost) => {
                    let kind = if matches!(lost, Lost::Silent) { Kind::Timeout } else { Kind::Crash };
                    return state.lost(kind, process.end_after(lost, self.timeout));
                }
            };
            match state.take(event) {
                Ok(None) => {}
                Ok(Some(ended)) => {
                    if ended == Ended::Done {
                        self.process = Some(process);
                    }
                    return ended;
                }
                Err(why) => return state.lost(Kind::Crash, process.end(why)),
            }
        }
    }
}

#[derive(Debug, PartialEq)]
enum Ended {
    Done,
    /// The running variant of an unusable worker.
    Lost(Option<i32>),
}

struct JobState<'o> {
    outcome: &'o mut TrialReport,
    under_way: Option<i32>,
}

impl JobState<'_> {
    /// Rejects out-of-order events.
    fn take(&mut self, event: Event) -> Result<Option<Ended>, &'static str> {
        match (event, self.under_way) {
            (Event::Starts(variant), None) => self.under_way = Some(variant),
            (Event::Unfit(id), Some(variant)) if id == variant => self.under_way = None,
            (Event::Ran(ran), variant) if ran.id == variant.unwrap_or(0) => {
                self.under_way = None;
                let is_broken = ran.is_broken;
                self.outcome.add(ran);
                if is_broken {
                    return Ok(Some(Ended::Lost(variant)));
                }
            }
            (Event::Refused(why), None) => self.outcome.refused = Some(why),
            (Event::Differs(list), None) => self.outcome.differs = list,
            (Event::Done, None) => return Ok(Some(Ended::Done)),
            _ => return Err("unexpected output of the worker process"),
        }
        Ok(None)
    }

    fn lost(&mut self, kind: Kind, text: String) -> Ended {
        self.outcome.add(lost(self.under_way, kind, text));
        Ended::Lost(self.under_way)
    }
}

fn lost(variant: Option<i32>, kind: Kind, text: String) -> VariantResult {
    let fault = Fault::new(kind, text);
    VariantResult {
        id: variant.unwrap_or(0),
        faults: vec![fault],
        is_broken: true,
        ..VariantResult::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(events: Vec<Event>) -> Result<(Option<Ended>, Vec<i32>), &'static str> {
        let mut outcome = TrialReport::default();
        let mut state = JobState { outcome: &mut outcome, under_way: None };
        let mut next = None;
        for event in events {
            next = state.take(event)?;
        }
        Ok((next, outcome.ran.iter().map(|ran| ran.id).collect()))
    }

    fn ran(id: i32) -> Event {
        Event::Ran(VariantResult { id, ..VariantResult::default() })
    }

    #[test]
    fn every_variant_that_starts_has_its_result() {
        let whole = || {
            vec![
                Event::Starts(1),
                ran(1),
                Event::Starts(2),
                Event::Unfit(2),
                Event::Starts(3),
                ran(3),
                Event::Done,
            ]
        };
        assert_eq!(after(whole()), Ok((Some(Ended::Done), vec![1, 3])));
        for left_out in 0..whole().len() - 1 {
            let mut events = whole();
            events.remove(left_out);
            assert!(after(events).is_err(), "without event {left_out}");
        }
        assert!(after(vec![ran(1)]).is_err());
        assert_eq!(after(vec![ran(0), Event::Done]), Ok((Some(Ended::Done), vec![0])));
        let broken = Event::Ran(VariantResult { id: 4, is_broken: true, ..VariantResult::default() });
        assert_eq!(after(vec![Event::Starts(4), broken]), Ok((Some(Ended::Lost(Some(4))), vec![4])));
    }

    #[test]
    fn a_variant_that_runs_again_counts_once() {
        assert_eq!(after(vec![Event::Starts(1), ran(1), Event::Starts(1), ran(1)]), Ok((None, vec![1])));
    }
}
