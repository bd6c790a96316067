//! What a person sees while something long runs.
//!
//! Owns standard error while bars are shown. On a terminal: one bar a task, removed when it is done. Elsewhere: one line when
//! a task starts and one when it ends, nothing in between. Never decides what is done, only shows it.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanDuration, MultiProgress, ProgressBar, ProgressStyle};

/// Progress of several tasks that run at the same time.
pub(crate) struct Progress {
    bars: Option<MultiProgress>,
}

impl Progress {
    /// Bars if standard error is a terminal, lines otherwise.
    pub(crate) fn new() -> Self {
        Self { bars: std::io::stderr().is_terminal().then(MultiProgress::new) }
    }

    /// A line for people, above the bars.
    pub(crate) fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// A download of `bytes` that is starting; `purpose` says what it is for.
    pub(crate) fn download(&self, label: &str, purpose: &str, bytes: u64) -> Task<'_> {
        let bar = self.bars.as_ref().map(|bars| {
            let bar = bars.add(ProgressBar::new(bytes));
            bar.set_style(style(
                "{spinner} {msg:38} {bar:24} {percent:>3} %  {bytes}/{total_bytes}  {bytes_per_sec}",
            ));
            bar.set_message(label.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        if bar.is_none() {
            eprintln!("fetching {label}: {purpose} ({})", HumanBytes(bytes));
        }
        Task { owner: self, bar, label: label.to_owned(), bytes, start: Instant::now() }
    }
}

/// A bar's style; the plain one if the template is wrong.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// One running task. Dropped without [`Task::finish`], its bar goes away and nothing is said.
pub(crate) struct Task<'a> {
    owner: &'a Progress,
    bar: Option<ProgressBar>,
    label: String,
    bytes: u64,
    start: Instant,
}

impl Task<'_> {
    /// `bytes` of the download have arrived.
    pub(crate) fn arrived(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(bytes.min(self.bytes));
        }
    }

    /// What the task is doing now, after the download.
    pub(crate) fn phase(&self, verb: &str) {
        if let Some(bar) = &self.bar {
            bar.set_style(style("{spinner} {msg}"));
            bar.set_message(format!("{} ({verb})", self.label));
        }
    }

    /// The task is done: one line stays.
    pub(crate) fn finish(self, verb: &str) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let time = self.start.elapsed();
        self.owner.say(&format!("{verb} {} ({}, {})", self.label, HumanBytes(self.bytes), duration(time)));
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A time for people: `340 ms`, `12.3 s`, `4 minutes`.
pub(crate) fn duration(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else if time < Duration::from_secs(120) {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        HumanDuration(time).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(duration(Duration::from_millis(340)), "340 ms");
        assert_eq!(duration(Duration::from_millis(12_340)), "12.3 s");
        assert_eq!(duration(Duration::from_secs(240)), "4 minutes");
    }
}
