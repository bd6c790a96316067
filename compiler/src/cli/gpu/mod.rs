//! Shared code of the GPU commands. Kernels run in another process, because a faulty one can end it.

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

pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) subject: Subject,
    pub(super) cases: Option<Cases>,
}

impl Opened {
    /// Opens `file`, or the subject of its cases, which `on` replaces.
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

fn of_same_plugin(subjects: &mut Vec<Subject>, named: &Path) {
    let is_manifest = named.extension().is_some_and(|extension| extension == "toml");
    let own = if is_manifest { eval::open(named).ok().and_then(|mut own| own.list.pop()) } else { None };
    let Some(own) = own.map(|own| own.plugin.full_name()) else { return };
    if subjects.iter().any(|subject| subject.plugin.full_name() == own) {
        subjects.retain(|subject| subject.plugin.full_name() == own);
    }
}

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
