//! Reads precompiled code ([`read`]) and selects a target's file ([`serving`]); `cubinder-analysis` checks launches.
//! Must not compile or link.

mod errors;
mod file;
pub mod import;
pub mod mangled;
mod names;
mod targets;
pub mod ttir;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use errors::{AmbiguousName, MissingKernel, SameTarget, Unnamed};
pub use file::{load, load_bytes};
use names::Unclear;
pub use targets::{FromPtx, file_targets, from_ptx, lacks_files, serving, unserved};

use crate::diagnostic::{Code, Diagnostic, fold, suggest};
use crate::loaded::LoadedCode;
use crate::manifest::CodeKind;
use crate::resolve::{ForeignCode, ForeignFile, Resolved};
use crate::rules;

/// Reads code files and selects kernels. Units with errors keep readable parts.
pub fn read(plugin: &mut Resolved) -> Vec<Diagnostic> {
    let mut known: HashMap<(PathBuf, CodeKind), Result<Arc<LoadedCode>, Diagnostic>> = HashMap::new();
    let mut errors: Vec<Diagnostic> = Vec::new();
    let mut tell = |error: Diagnostic| {
        if !errors.contains(&error) {
            errors.push(error);
        }
    };
    for unit in &mut plugin.draft.units {
        let Some(code) = &mut unit.foreign else { continue };
        for file in &mut code.files {
            let read = known
                .entry((file.path.clone(), file.kind))
                .or_insert_with(|| load(&file.path, file.kind).map(Arc::new));
            match read {
                Ok(loaded) => file.loaded = Some(Arc::clone(loaded)),
                Err(error) => {
                    let error = error.clone().at(file.span.clone(), "the manifest names it here");
                    tell(match file.path.is_file() {
                        true => error,
                        false => error.help("the path is relative to the manifest's folder"),
                    });
                }
            }
        }
        twice(code).into_iter().for_each(&mut tell);
        match symbol(code) {
            Ok(Some(symbol)) => {
                code.signature.kernel.clone_from(&symbol);
                unit.kernel.clone_from(&symbol);
                let variant = plugin.draft.plugin.variants.get_mut(unit.variant);
                if let Some(launch) = variant.and_then(|variant| variant.launch_mut(unit.step)) {
                    launch.kernel = symbol;
                }
            }
            Ok(None) => {}
            Err(found) => found.into_iter().for_each(&mut tell),
        }
    }
    fold_file_errors(errors)
}

/// Merges equal diagnostics of several files or tables.
#[must_use]
pub fn fold_file_errors(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    const OF_FILES: [Code; 5] = [
        rules::KERNEL_NOT_FOUND,
        rules::LAUNCH_BOUNDS,
        rules::CODE_PARAMETERS,
        rules::CODE_TARGETS,
        rules::DRIVER_TOO_OLD,
    ];
    fold(diagnostics, |one| one.code.is_some_and(|code| OF_FILES.contains(&code)))
}

/// Reports equal targets: the choice would be arbitrary.
fn twice(code: &ForeignCode) -> Vec<Diagnostic> {
    let loaded: Vec<(&ForeignFile, &LoadedCode)> =
        code.files.iter().filter_map(|file| Some((file, file.loaded.as_deref()?))).collect();
    let mut found = Vec::new();
    for (index, (file, second)) in loaded.iter().enumerate() {
        let target = second.target;
        let Some((of_first, first)) = loaded.iter().take(index).find(|(_, known)| known.target == target)
        else {
            continue;
        };
        let which = match (first.is_alone, second.is_alone) {
            (false, false) => None,
            (true, false) => Some("the first file"),
            (false, true) => Some("the second file"),
            (true, true) => Some("each of them"),
        };
        let (second, first) = (file.span.clone(), of_first.span.clone());
        let assumed = targets::taken_alone(target);
        found.push(SameTarget { code: &code.name, target, second, first, which, assumed }.into());
    }
    found
}

/// `None` if no file was readable.
fn symbol(code: &ForeignCode) -> Result<Option<String>, Vec<Diagnostic>> {
    let loaded = || code.files.iter().filter_map(|file| Some((file, file.loaded.as_deref()?)));
    let Some((_, first)) = loaded().next() else { return Ok(None) };
    let named = code.kernel.as_ref();
    let found = names::symbol(&first.kernels, named.map(|(name, _)| name.as_str()));
    let symbol = match (found, named) {
        (Ok(symbol), _) => symbol,
        (Err(Unclear::Several(symbols)), Some((name, span))) => {
            let (count, kernels) = (symbols.len(), names::listed(symbols.into_iter()));
            let (code, span) = (code.name.as_str(), span.clone());
            return Err(vec![AmbiguousName { name, count, code, kernels, span }.into()]);
        }
        (Err(_), _) => {
            let (kernels, span) = (names::listed(symbols(first)), code.name_span.clone());
            return Err(vec![Unnamed { code: &code.name, kernels, span }.into()]);
        }
    };
    let lacking = loaded().filter(|(_, loaded)| symbols(loaded).all(|known| known != symbol));
    let missing: Vec<Diagnostic> = lacking
        .map(|(file, loaded)| {
            let near = suggest(symbol, symbols(loaded)).map(|near| format!("did you mean `{near}`?"));
            MissingKernel {
                symbol,
                kernels: names::listed(symbols(loaded)),
                file: file.span.clone(),
                named: named.map(|(_, span)| span.clone()),
                unnamed: named.is_none().then_some("without `kernel`, the kernel of the first file is used"),
                fix: near.unwrap_or_else(|| "name one of its kernels: `kernel = \"...\"`".to_owned()),
            }
            .into()
        })
        .collect();
    if missing.is_empty() { Ok(Some(symbol.to_owned())) } else { Err(missing) }
}

fn symbols(loaded: &LoadedCode) -> impl Iterator<Item = &str> {
    loaded.kernels.iter().map(|kernel| kernel.symbol.as_str())
}
