//! Why a command that runs kernels has no report, and how that is told.

use std::process::ExitCode;

use cubinder_source::diagnostic::{Colour, Diagnostic, render, to_json_lines};

use crate::cli::obligations::failed_json;
use crate::cli::output::{MessageFormat, print, show};

/// The exit code where there is no GPU.
pub(in crate::cli) const NO_GPU: u8 = 3;

/// Why no kernel can be run.
pub(in crate::cli) enum Unable {
    /// There is no GPU.
    NoGpu(String),
    /// What is to be run cannot be; messages for people and for programs.
    Failed { human: String, json: String },
}

impl Unable {
    pub(in crate::cli) fn failed(why: String) -> Unable {
        let list = [Diagnostic::error(why)];
        Unable::Failed { human: render(&list, Colour::Plain), json: to_json_lines(&list).unwrap_or_default() }
    }

    /// In one line.
    pub(in crate::cli) fn words(&self) -> &str {
        match self {
            Unable::NoGpu(why) => why,
            Unable::Failed { human, .. } => human.lines().next().unwrap_or_default(),
        }
    }
}

/// Why there is no report.
pub(in crate::cli) enum Stopped {
    /// What a person has to mend.
    Wrong(Vec<Diagnostic>),
    Unable(Unable),
}

impl From<Vec<Diagnostic>> for Stopped {
    fn from(errors: Vec<Diagnostic>) -> Stopped {
        Stopped::Wrong(errors)
    }
}

impl From<Unable> for Stopped {
    fn from(unable: Unable) -> Stopped {
        Stopped::Unable(unable)
    }
}

impl Stopped {
    /// Tells it, to programs where `json` says so. That there is no GPU is for the command to tell: what follows from that differs.
    pub(in crate::cli) fn tell(self, json: bool, no_gpu: impl FnOnce(&str) -> ExitCode) -> ExitCode {
        match self {
            Stopped::Wrong(mut errors) => {
                show(&mut errors, if json { MessageFormat::Json } else { MessageFormat::Human });
                if json {
                    print(&(failed_json(&errors).to_string() + "\n"));
                }
            }
            Stopped::Unable(Unable::Failed { json: lines, .. }) if json => {
                print(&lines);
                print("{\"result\":\"failed\"}\n");
            }
            Stopped::Unable(Unable::Failed { human, .. }) => eprint!("{human}"),
            Stopped::Unable(Unable::NoGpu(why)) => return no_gpu(&why),
        }
        ExitCode::FAILURE
    }
}
