//! Test cases for tuning: the manifest's key `tune`.

use std::path::{Path, PathBuf};

use crate::cases::{self, Cases};
use crate::diagnostic::{Diagnostic, Span};
use crate::errors::CasesOfOther;
use crate::file_kind::{self, Kind};
use crate::manifest::Located;
use crate::path;
use crate::resolve::{Resolved, beside};
use crate::rules;
use crate::source;

/// Reads the cases to measure; `None` if the manifest names none.
#[must_use]
pub fn cases(manifest: &Resolved) -> Option<Result<Cases, Vec<Diagnostic>>> {
    manifest.manifest.plugin.tune.as_ref().map(|named| read(manifest, named))
}

/// Returns the file's path.
#[must_use]
pub fn cases_path(manifest: &Resolved) -> Option<PathBuf> {
    manifest.manifest.plugin.tune.as_ref().map(|named| beside(&manifest.source, &named.value))
}

fn read(manifest: &Resolved, named: &Located<String>) -> Result<Cases, Vec<Diagnostic>> {
    let path = beside(&manifest.source, &named.value);
    let span = Span::new(&manifest.source, named.range.clone());
    let here = |error: Diagnostic| {
        error
            .code(rules::TUNE_FILE)
            .at(span.clone(), "the manifest names it here")
            .help("set `tune` to a file of cases (docs/cases.md), relative to the manifest's folder")
    };
    let source = source::text(&path);
    let source = source.map_err(|errors| errors.into_iter().map(here).collect::<Vec<_>>())?;
    file_kind::expect(Kind::Cases, &path, &source.text).map_err(|error| vec![here(error)])?;
    let cases = cases::read(&source)?;
    if !is_same(&cases.subject, &manifest.source.path) {
        let shown = |path: &Path| path::shown(path).display().to_string();
        let (found, subject, own) = (shown(&path), shown(&cases.subject), shown(&manifest.source.path));
        return Err(vec![CasesOfOther { found, subject, own, span }.into()]);
    }
    Ok(cases)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).zip(real(other)).is_some_and(|(one, other)| one == other)
}
