//! What the commands that run kernels on a GPU have in common.
//!
//! Owns: what is to be run ([`Opened`]), the process that runs it ([`process`], and from its inside [`worker`]), a node with its shapes
//! ([`shaped`]), and why there is no report ([`stopped`]). A kernel that writes where it should not takes its process with it, so none
//! runs in that of the command.

pub(super) mod process;
pub(super) mod protocol;
pub(super) mod shaped;
mod stopped;
pub(super) mod worker;

use std::path::{Path, PathBuf};

use cubinder_manifest::file_kind::{self, Kind};
use cubinder_node::cases::{self, Cases};
use cubinder_node::eval::{self, Subject};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;

use super::node::WhichNode;
pub(super) use stopped::{Messages, Stopped};

/// What is to be run, before anything is compiled.
pub(super) struct Opened {
    /// The manifest, library, bundle or engine.
    pub(super) path: PathBuf,
    pub(super) subject: Subject,
    pub(super) cases: Option<Cases>,
}

impl Opened {
    /// What `file` is, or names where it is one of cases; `on` in the place of what it names.
    pub(super) fn open(file: &Path, on: Option<&Path>, which: &WhichNode) -> Result<Opened, Vec<Diagnostic>> {
        let cases = cases_of(file)?;
        let named = cases.as_ref().map_or(file, |cases| &cases.subject);
        let path = on.unwrap_or(named).to_owned();
        let mut subjects = eval::open(&path)?.list;
        if on.is_some() && subjects.len() > 1 && which.is_open() {
            of_same_plugin(&mut subjects, named);
        }
        let subject = which.choose_one(subjects, &path)?;
        Ok(Opened { path, subject, cases })
    }
}

/// Leaves the plugin of the manifest `named`, where it is one and the plugin is among them.
fn of_same_plugin(subjects: &mut Vec<Subject>, named: &Path) {
    let is_manifest = named.extension().is_some_and(|extension| extension == "toml");
    let own = if is_manifest { eval::open(named).ok().and_then(|mut own| own.list.pop()) } else { None };
    let Some(own) = own.map(|own| own.plugin.full_name()) else { return };
    if subjects.iter().any(|subject| subject.plugin.full_name() == own) {
        subjects.retain(|subject| subject.plugin.full_name() == own);
    }
}

/// The cases, where the file is one of cases.
fn cases_of(path: &Path) -> Result<Option<Cases>, Vec<Diagnostic>> {
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(None);
    }
    let source = source::text(path)?;
    if Kind::detect(&source.text) == Some(Kind::Manifest) {
        return Ok(None);
    }
    file_kind::expect(Kind::Cases, path, &source.text)?;
    cases::read(&source).map(Some)
}
