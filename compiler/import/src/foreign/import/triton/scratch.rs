//! Counts scratch pointers that Triton appends: none up to 3.1, one in 3.2 and 3.3, two since 3.4. Code is more
//! reliable than the version.

use std::path::Path;

use cubinder_model::KernelFacts;

use super::errors::{OtherParameters, OtherScratch};
use super::{ADDED, Compiled, MAX_BYTES};
use crate::cubin;
use crate::diagnostic::Diagnostic;
use crate::loaded::Function;
use crate::manifest::CodeKind;
use crate::source;

/// Fails if the code has fewer parameters, or too many more.
pub(super) fn added(json: &Path, function: &Function) -> Result<usize, Diagnostic> {
    let taken = CodeKind::ALL.into_iter().find_map(|kind| parameters(json, kind, &function.name));
    // `cubinder check` reports missing code.
    let Some((kind, taken)) = taken else { return Ok(ADDED.len()) };
    let own = function.arguments.len();
    match taken.checked_sub(own) {
        Some(added) if added <= ADDED.len() => Ok(added),
        _ => {
            let ttir = json.with_extension("ttir");
            let text = ttir.file_name().unwrap_or_default().to_string_lossy();
            let code = json.with_extension(kind.name());
            let (path, most) = (code.display(), ADDED.len());
            Err(OtherParameters { path, count: taken, ttir: &text, written: own, most }.into())
        }
    }
}

/// All code must have as many: one launch passes them.
pub(super) fn is_alike(all: &[Compiled]) -> Result<(), Diagnostic> {
    let Some(first) = all.first() else { return Ok(()) };
    let Some(other) = all.iter().find(|compiled| compiled.added != first.added) else { return Ok(()) };
    let outputs = [first, other].map(|it| {
        let version = it.metadata.triton_version.as_deref().unwrap_or("an unknown version");
        format!("`{}` takes {} (Triton {version})", it.folder(), it.added)
    });
    Err(OtherScratch { outputs: outputs.into() }.into())
}

fn parameters(json: &Path, kind: CodeKind, symbol: &str) -> Option<(CodeKind, usize)> {
    let bytes = source::bytes(&json.with_extension(kind.name()), MAX_BYTES).ok()?;
    let kernels: Vec<KernelFacts> = match kind {
        CodeKind::Cubin => cubin::read(&bytes).ok()?.kernels,
        CodeKind::Ptx => cubin::read_ptx(&bytes).ok()?.kernels,
    };
    let kernel = kernels.into_iter().find(|kernel| kernel.symbol == symbol)?;
    Some((kind, kernel.params.len()))
}
