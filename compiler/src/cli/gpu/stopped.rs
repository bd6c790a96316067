//! Why a GPU command has no report.

use std::process::ExitCode;

use cubinder_source::diagnostic::{Colour, Diagnostic, render, to_json_lines};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cli::output::{MessageFormat, fail, print, show};

const NO_GPU: u8 = 3;

pub(in crate::cli) enum Stopped {
    Mistaken(Vec<Diagnostic>),
    NoGpu(String),
    Failed(Messages),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::cli) struct Messages {
    human: String,
    json: String,
    headline: String,
}

impl From<&[Diagnostic]> for Messages {
    fn from(errors: &[Diagnostic]) -> Messages {
        Messages {
            human: render(errors, Colour::Plain),
            json: to_json_lines(errors).unwrap_or_default(),
            headline: errors.first().map(|error| error.message.clone()).unwrap_or_default(),
        }
    }
}

impl From<Vec<Diagnostic>> for Stopped {
    fn from(errors: Vec<Diagnostic>) -> Stopped {
        Stopped::Mistaken(errors)
    }
}

impl Stopped {
    pub(in crate::cli) fn failed(why: impl Into<String>) -> Stopped {
        Stopped::Failed([Diagnostic::error(why)][..].into())
    }

    pub(in crate::cli) fn headline(&self) -> &str {
        match self {
            Stopped::Mistaken(errors) => errors.first().map_or("", |error| &error.message),
            Stopped::NoGpu(why) => why,
            Stopped::Failed(messages) => &messages.headline,
        }
    }

    /// `verb` names the use of the GPU; `allowed` is `--allow-no-gpu`, if present.
    pub(in crate::cli) fn report(self, json: bool, verb: &str, allowed: Option<bool>) -> ExitCode {
        match self {
            Stopped::Mistaken(errors) => return fail(errors, MessageFormat::new(json)),
            Stopped::Failed(messages) if json => {
                print(&messages.json);
                print("{\"result\":\"failed\"}\n");
            }
            Stopped::Failed(messages) => eprint!("{}", messages.human),
            Stopped::NoGpu(why) => return no_gpu(&why, json, verb, allowed),
        }
        ExitCode::FAILURE
    }
}

fn no_gpu(why: &str, json: bool, verb: &str, allowed: Option<bool>) -> ExitCode {
    if json {
        let mut result = json!({"result": "no_gpu", "why": why});
        allowed.into_iter().for_each(|allowed| result["allowed"] = allowed.into());
        print(&(result.to_string() + "\n"));
    } else if allowed == Some(true) {
        eprintln!("skipped: no GPU, nothing was tested: {why}");
    } else {
        let error = Diagnostic::error(format!("no GPU to {verb} on")).note(why);
        let help = allowed.map(|_| "use `--allow-no-gpu` to skip instead of failing".to_owned());
        show(&mut [Diagnostic { help, ..error }], MessageFormat::Human);
    }
    if allowed == Some(true) { ExitCode::SUCCESS } else { ExitCode::from(NO_GPU) }
}
