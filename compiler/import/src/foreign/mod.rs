//! Reads the files of precompiled code.
//!
//! Owns which files can be used ([`read`]) and which of them serves a target ([`serving`]); `cubinder-analysis` checks launches of the code.
//! Never compiles or links anything: a file is taken as it is or refused with what to do.

mod file;
pub mod import;
mod names;
mod targets;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

pub use file::{load, loaded};
use names::Named;
pub use targets::{FromPtx, from_ptx, given, lacks_files, serving, unserved};

use crate::diagnostic::{Code, Diagnostic, Span, fold, suggest};
use crate::loaded::Loaded;
use crate::manifest::CodeKind;
use crate::resolve::{ForeignCode, ForeignFile, Resolved};
use crate::rules;

/// Reads the files of a plugin's code into it, and settles which kernel of them is launched. A unit of which something is wrong keeps what
/// could be read.
pub fn read(plugin: &mut Resolved) -> Vec<Diagnostic> {
    let mut known: HashMap<(PathBuf, CodeKind), Result<Arc<Loaded>, Diagnostic>> = HashMap::new();
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
    as_one(errors)
}

/// Of what is said of several files of code, or of several tables of it, in the same words, one message with all places.
#[must_use]
pub fn as_one(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    const OF_FILES: [Code; 5] = [
        rules::KERNEL_NOT_FOUND,
        rules::LAUNCH_BOUNDS,
        rules::CODE_PARAMETERS,
        rules::CODE_TARGETS,
        rules::DRIVER_TOO_OLD,
    ];
    fold(diagnostics, |one| one.code.is_some_and(|code| OF_FILES.contains(&code)))
}

/// Files that are for the same GPUs: it would be chance which of them runs.
fn twice(code: &ForeignCode) -> Vec<Diagnostic> {
    let loaded: Vec<(&ForeignFile, &Loaded)> =
        code.files.iter().filter_map(|file| Some((file, file.loaded.as_deref()?))).collect();
    let mut found = Vec::new();
    for (index, (file, second)) in loaded.iter().enumerate() {
        let target = second.target;
        let Some((of_first, first)) = loaded.iter().take(index).find(|(_, known)| known.target == target)
        else {
            continue;
        };
        let error = Diagnostic::error(format!("two files of `{}` are for `{target}`", code.name))
            .code(rules::CODE_FILE)
            .at(file.span.clone(), "the second one")
            .related(of_first.span.clone(), "the first one")
            .help("leave one of them out; or say in `for` of two `[[code]]` tables which types and constants each was made for");
        found.push(match (first.is_alone, second.is_alone) {
            (false, false) => error,
            (true, false) => error.note(format!("the first one {}", targets::taken_alone(target))),
            (false, true) => error.note(format!("the second one {}", targets::taken_alone(target))),
            (true, true) => error.note(format!("each of them {}", targets::taken_alone(target))),
        });
    }
    found
}

/// The kernel that is launched: what the manifest says, or the only one of the files. Nothing where no file could be read.
fn symbol(code: &ForeignCode) -> Result<Option<String>, Vec<Diagnostic>> {
    let loaded = || code.files.iter().filter_map(|file| Some((file, file.loaded.as_deref()?)));
    let Some((_, first)) = loaded().next() else { return Ok(None) };
    let symbol = match &code.kernel {
        // The others have the same kernel by the same symbol, or lack it.
        Some((name, span)) => match names::named(&first.kernels, name) {
            Named::One(symbol) => symbol.to_owned(),
            Named::Several(symbols) => return Err(vec![ambiguous(code, name, span, &symbols)]),
            Named::Unknown => name.clone(),
        },
        None => match first.kernels.as_slice() {
            [one] => one.symbol.clone(),
            _ => return Err(vec![several(code, first)]),
        },
    };
    let has = |loaded: &Loaded| loaded.kernels.iter().any(|kernel| kernel.symbol == symbol);
    let missing: Vec<Diagnostic> = loaded()
        .filter(|(_, loaded)| !has(loaded))
        .map(|(file, loaded)| not_there(code, file, loaded, &symbol))
        .collect();
    if missing.is_empty() { Ok(Some(symbol)) } else { Err(missing) }
}

fn ambiguous(code: &ForeignCode, name: &str, span: &Span, symbols: &[&str]) -> Diagnostic {
    Diagnostic::error(format!("`{name}` may be any of {} kernels of `{}`", symbols.len(), code.name))
        .code(rules::KERNEL_NOT_FOUND)
        .at(span.clone(), "the kernel is named here")
        .note(format!("they are {}", names::listed(symbols.iter().copied())))
        .help("name the instance, such as `kernel = \"perm<float, 1>\"`, or the symbol")
}

fn several(code: &ForeignCode, loaded: &Loaded) -> Diagnostic {
    Diagnostic::error(format!("nothing says which kernel of its files `{}` is", code.name))
        .code(rules::KERNEL_NOT_FOUND)
        .at(code.name_span.clone(), "the files have several")
        .note(format!("they are {}", names::listed(symbols(loaded))))
        .help("say `kernel = \"...\"` in this `[[code]]`")
}

fn not_there(code: &ForeignCode, file: &ForeignFile, loaded: &Loaded, symbol: &str) -> Diagnostic {
    let error = Diagnostic::error(format!("the file has no kernel `{symbol}`"))
        .code(rules::KERNEL_NOT_FOUND)
        .at(file.span.clone(), format!("it has {}", names::listed(symbols(loaded))));
    let error = match &code.kernel {
        Some((_, span)) => error.related(span.clone(), "the kernel is named here"),
        None => error.note("the kernel is that of the first file, because none is named"),
    };
    match suggest(symbol, loaded.kernels.iter().map(|kernel| kernel.symbol.as_str())) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("name one of its kernels: `kernel = \"...\"`"),
    }
}

fn symbols(loaded: &Loaded) -> impl Iterator<Item = &str> {
    loaded.kernels.iter().map(|kernel| kernel.symbol.as_str())
}
