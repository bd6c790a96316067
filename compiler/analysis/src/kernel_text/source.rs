use std::path::Path;
use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Source, Span, suggest};
use crate::resolve::Unit;
use crate::rules;

/// Reads a file, or returns why it is unreadable.
pub type OpenSource<'a> = dyn Fn(&Path) -> Result<Arc<Source>, Vec<Diagnostic>> + Sync + 'a;

/// Opens a unit's kernel file; errors are at the file's span.
pub fn open_source(unit: &Unit, open: &OpenSource<'_>) -> Result<Arc<Source>, Vec<Diagnostic>> {
    open(&unit.source).map_err(|found| {
        let located = |error: Diagnostic| not_found(error, &unit.source, &unit.source_span);
        found.into_iter().map(located).collect()
    })
}

fn not_found(error: Diagnostic, path: &Path, span: &Span) -> Diagnostic {
    let error = error.code(rules::SOURCE_NOT_FOUND).at(span.clone(), "the manifest names it here");
    if path.symlink_metadata().is_ok() {
        return error;
    }
    let beside = sources_beside(path);
    if beside.is_empty() {
        return error.help("the path is relative to the manifest's folder");
    }
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = folder_of(path);
    match suggest(&wanted, beside.iter().map(String::as_str)) {
        Some(name) => error.help(format!("did you mean `{name}`?")),
        None => error.help(format!(
            "the path is relative to the manifest's folder; CUDA files in `{}`: `{}`",
            folder.display(),
            beside.join("`, `")
        )),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn sources_beside(path: &Path) -> Vec<String> {
    const MOST: usize = 8;
    let Ok(entries) = std::fs::read_dir(folder_of(path)) else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".cu")).collect();
    names.sort();
    names.truncate(MOST);
    names
}
