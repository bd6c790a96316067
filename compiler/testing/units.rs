//! NVRTC, if installed; units of short texts; diagnostics as text.

// Each crate uses only some of these items.
#![allow(dead_code)]

use std::path::Path;
use std::sync::{Arc, OnceLock};

use cubinder_expr::DataType;
use nvrtc_sys::Nvrtc;

use crate::codegen::{TranslationUnit, translation_unit};
use crate::diagnostic::{Colour, Diagnostic, Source, Span, render};
use crate::resolve::{self, Resolved, Unit};
use crate::toolkit::{Overrides, Toolkit};

/// `path` is the manifest's name.
#[track_caller]
pub(crate) fn resolved(path: &str, text: &str) -> Resolved {
    match resolve::compile(&Source::new(path, text)) {
        Ok(resolved) => resolved,
        Err(errors) => panic!("{}", render(&errors, Colour::Plain)),
    }
}

/// Returns the environment's toolkit. If missing, reports the skipped test, or panics with
/// `CUBINDER_REQUIRE_TOOLKIT=1`.
pub(crate) fn toolkit(test: &str) -> Option<Toolkit> {
    match Toolkit::locate(&Overrides::from_env(None)) {
        Ok(toolkit) => Some(toolkit),
        Err(error) if std::env::var_os("CUBINDER_REQUIRE_TOOLKIT").is_some_and(|value| value == "1") => {
            panic!("{test} needs NVRTC: {} {:?}", error.message, error.notes)
        }
        Err(error) => {
            println!("skipped: {test}: {} {:?}", error.message, error.notes);
            None
        }
    }
}

/// Returns the toolkit and its NVRTC, loaded once per process.
pub(crate) fn nvrtc(test: &str) -> Option<(Toolkit, &'static Arc<Nvrtc>)> {
    static LOADED: OnceLock<Arc<Nvrtc>> = OnceLock::new();
    let toolkit = toolkit(test)?;
    let nvrtc = LOADED.get_or_init(|| Arc::new(Nvrtc::load(&toolkit.nvrtc).unwrap()));
    Some((toolkit, nvrtc))
}

/// Returns the unit of `kernels/test.cu` in `folder`, declared by `kernels/test.toml`.
pub(crate) fn unit(folder: &Path, text: &str, kernel: &str, types: &[DataType]) -> TranslationUnit {
    let (draft, source) = draft(folder, text, kernel, types);
    translation_unit(&draft, source, "kernels/test.cu", None)
}

/// Returns the parts of [`unit`].
pub(crate) fn draft(folder: &Path, text: &str, kernel: &str, types: &[DataType]) -> (Unit, Arc<Source>) {
    let manifest = Source::new("manifests/test.toml", format!("kernel = \"{kernel}\"\n"));
    let span = |range| Span { source: Arc::clone(&manifest), range };
    let path = folder.join("kernels/test.cu");
    let draft = Unit {
        variant: 0,
        step: 0,
        decl: 0,
        foreign: None,
        source: path.clone(),
        source_span: span(0..0),
        kernel: kernel.to_owned(),
        kernel_span: span(9..11 + kernel.len()),
        grid_spans: Vec::new(),
        block_span: None,
        formats: Vec::new(),
        has_formats: false,
        types: types.iter().map(|ty| (ty.name().to_owned(), *ty)).collect(),
        plugin_types: types.to_vec(),
        constants: Vec::new(),
        tables: Arc::new([]),
        args: Vec::new(),
        args_span: span(0..0),
        shared_outputs: Vec::new(),
        args_are_known: true,
    };
    (draft, Source::new(path, text))
}

/// Formats severity, message, positions with the marked text, notes, help.
pub(crate) fn show(diagnostics: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&format!(
            "{}: {}\n",
            format!("{:?}", diagnostic.severity).to_lowercase(),
            diagnostic.message
        ));
        for (mark, label) in diagnostic
            .primary
            .iter()
            .map(|label| ("-->", label))
            .chain(diagnostic.related.iter().map(|label| ("...", label)))
        {
            let span = &label.span;
            let before = &span.source.text[..span.range.start];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            let file = span.source.path.file_name().unwrap_or_default().to_string_lossy();
            out.push_str(&format!(
                "  {mark} {file}:{line}:{column} `{}`",
                &span.source.text[span.range.clone()]
            ));
            out.push_str(&if label.text.is_empty() {
                "\n".to_owned()
            } else {
                format!(": {}\n", label.text)
            });
        }
        diagnostic.notes.iter().for_each(|note| out.push_str(&format!("  note: {note}\n")));
        diagnostic.help.iter().for_each(|help| out.push_str(&format!("  help: {help}\n")));
        out.push('\n');
    }
    out
}
