//! The command's side: it starts the process that runs kernels, sends it jobs, and starts another where it is lost.

use std::ffi::OsString;
use std::time::Duration;

use cubinder_node::trial::Trial;

use super::protocol::{Event, Fault, Job, Kind, Ran};
use crate::cli::gpu::Unable;
use crate::cli::gpu::process::{Lost, Process};
use crate::cli::gpu::protocol::Gpu;

/// Everything that came of a trial.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Outcome {
    /// What the case expects otherwise of the launch.
    pub(super) differs: Vec<String>,
    /// Why the runtime refuses the node.
    pub(super) refused: Option<String>,
    pub(super) ran: Vec<Ran>,
}

impl Outcome {
    /// The variants whose faults are there.
    pub(super) fn faults(&self) -> impl Iterator<Item = (&Ran, &Fault)> {
        self.ran.iter().flat_map(|ran| ran.faults.iter().map(move |fault| (ran, fault)))
    }

    /// Whether anything is wrong with a node that should run.
    pub(super) fn is_wrong(&self) -> bool {
        !self.differs.is_empty() || self.refused.is_some() || self.faults().next().is_some()
    }

    /// What came of a variant; it may have run in an earlier process as well, and what it did wrong there was wrong.
    fn add(&mut self, mut ran: Ran) {
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

/// The process that runs kernels, whichever it is at the moment.
pub(super) struct Supervisor {
    arguments: Vec<OsString>,
    timeout: Duration,
    process: Option<Process>,
    gpu: Gpu,
    /// Why no other process could be started: nothing is run any more.
    lost: Option<String>,
}

impl Supervisor {
    /// Starts the first process with the command line of this one.
    pub(super) fn start(timeout: Duration) -> Result<Supervisor, Unable> {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        let (process, gpu) = Process::start(&arguments, timeout)?;
        Ok(Supervisor { arguments, timeout, process: Some(process), gpu, lost: None })
    }

    pub(super) fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Runs all variants that serve a trial, in as many processes as it takes.
    pub(super) fn run(&mut self, trial: &Trial, case: Option<usize>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut skip = Vec::new();
        loop {
            let Some(process) = self.process() else {
                let why = self.lost.clone().unwrap_or_default();
                outcome.add(lost(
                    None,
                    Kind::GpuLost,
                    format!(
                        "it was not run, because no process that runs kernels can be started any more: {why}"
                    ),
                ));
                return outcome;
            };
            let job = Job { trial: trial.clone(), case, skip: skip.clone() };
            match self.job(process, &job, &mut outcome) {
                Ended::Done => return outcome,
                Ended::Lost(Some(variant)) if !skip.contains(&variant) => skip.push(variant),
                // Without a variant under way it would be lost the same way again.
                Ended::Lost(_) => return outcome,
            }
        }
    }

    /// The process at hand, or another; none where none can be started, now or before.
    fn process(&mut self) -> Option<Process> {
        if self.process.is_none() && self.lost.is_none() {
            match Process::start(&self.arguments, self.timeout) {
                Ok((process, _)) => self.process = Some(process),
                Err(why) => {
                    let words = why.words();
                    self.lost = Some(words.strip_prefix("error: ").unwrap_or(words).to_owned());
                }
            }
        }
        self.process.take()
    }

    fn job(&mut self, mut process: Process, job: &Job, outcome: &mut Outcome) -> Ended {
        let mut heard = Heard { outcome, under_way: None };
        if let Err(why) = process.send(job) {
            return heard.lost(Kind::Crash, process.end(&why));
        }
        loop {
            let event = match process.next(self.timeout) {
                Ok(event) => event,
                Err(Lost::Silent) => {
                    process.end("");
                    let text = format!("nothing came of it in {} s", self.timeout.as_secs());
                    return heard.lost(Kind::Timeout, text);
                }
                Err(Lost::Ended) => {
                    let text = process.end("the process that runs kernels ended");
                    return heard.lost(Kind::Crash, text);
                }
                Err(Lost::Garbled(why)) => return heard.lost(Kind::Crash, process.end(&why)),
            };
            match heard.take(event) {
                Ok(Next::More) => {}
                Ok(Next::Done) => {
                    self.process = Some(process);
                    return Ended::Done;
                }
                Ok(Next::Broken(variant)) => return Ended::Lost(variant),
                Err(why) => return heard.lost(Kind::Crash, process.end(why)),
            }
        }
    }
}

enum Ended {
    Done,
    /// With the process, while this variant was running.
    Lost(Option<i32>),
}

/// What came of a job so far.
struct Heard<'o> {
    outcome: &'o mut Outcome,
    /// The variant that was started and of which nothing came yet.
    under_way: Option<i32>,
}

/// What comes after an event.
#[derive(Debug, PartialEq)]
enum Next {
    More,
    Done,
    /// Nothing can be run in the process any more, after what came of this variant.
    Broken(Option<i32>),
}

impl Heard<'_> {
    /// Takes the next event of a job.
    ///
    /// # Errors
    /// Where it cannot come now: then some other one was lost, and what was heard says nothing.
    fn take(&mut self, event: Event) -> Result<Next, &'static str> {
        match (event, self.under_way) {
            (Event::Starts(variant), None) => self.under_way = Some(variant),
            (Event::Unfit(id), Some(variant)) if id == variant => self.under_way = None,
            (Event::Ran(ran), variant) if ran.id == variant.unwrap_or(0) => {
                self.under_way = None;
                let is_broken = ran.is_broken;
                self.outcome.add(ran);
                if is_broken {
                    return Ok(Next::Broken(variant));
                }
            }
            (Event::Refused(why), None) => self.outcome.refused = Some(why),
            (Event::Differs(list), None) => self.outcome.differs = list,
            (Event::Done, None) => return Ok(Next::Done),
            _ => return Err("the process that runs kernels skipped something that it has to say"),
        }
        Ok(Next::More)
    }

    fn lost(&mut self, kind: Kind, text: String) -> Ended {
        self.outcome.add(lost(self.under_way, kind, text));
        Ended::Lost(self.under_way)
    }
}

fn lost(variant: Option<i32>, kind: Kind, text: String) -> Ran {
    let fault = Fault { kind, tensor: None, text, elements: None, addresses: None };
    Ran { id: variant.unwrap_or(0), faults: vec![fault], is_broken: true, ..Ran::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(events: Vec<Event>) -> Result<(Next, Vec<i32>), &'static str> {
        let mut outcome = Outcome::default();
        let mut heard = Heard { outcome: &mut outcome, under_way: None };
        let mut next = Next::More;
        for event in events {
            next = heard.take(event)?;
        }
        Ok((next, outcome.ran.iter().map(|ran| ran.id).collect()))
    }

    fn ran(id: i32) -> Event {
        Event::Ran(Ran { id, ..Ran::default() })
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
        assert_eq!(after(whole()), Ok((Next::Done, vec![1, 3])));
        for left_out in 0..whole().len() - 1 {
            let mut events = whole();
            events.remove(left_out);
            assert!(after(events).is_err(), "without event {left_out}");
        }
        assert!(after(vec![ran(1)]).is_err());
        assert_eq!(after(vec![ran(0), Event::Done]), Ok((Next::Done, vec![0])));
        let broken = Event::Ran(Ran { id: 4, is_broken: true, ..Ran::default() });
        assert_eq!(after(vec![Event::Starts(4), broken]), Ok((Next::Broken(Some(4)), vec![4])));
    }

    #[test]
    fn a_variant_that_runs_again_counts_once() {
        assert_eq!(
            after(vec![Event::Starts(1), ran(1), Event::Starts(1), ran(1)]),
            Ok((Next::More, vec![1]))
        );
    }
}
