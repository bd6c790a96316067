//! NVRTC's messages as diagnostics in the user's own files.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_model::Target;

use super::host;
use super::log::{Level, Log, Message, Place};
use crate::codegen::{PRELUDE_NAME, TranslationUnit};
use crate::cuda::{lookup, token_before};
use crate::diagnostic::{Code, Diagnostic, Severity, Source, Span};
use crate::rules;
use crate::source;

/// The file to which NVRTC attributes errors in name expressions (13.0).
const NAME_MAP: &str = "__nv_name_map";

/// Turns the messages of one compile into diagnostics. `library` are the folders of CUDA's headers, which are not the author's to mend.
pub(super) fn diagnose(log: &Log, unit: &TranslationUnit, library: &[PathBuf]) -> Vec<Diagnostic> {
    let mut files = Files { unit, library, opened: HashMap::new() };
    let (named, others): (Vec<&Message>, Vec<&Message>) = log
        .messages
        .iter()
        .partition(|message| message.place.as_ref().is_some_and(|place| place.file == NAME_MAP));
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for message in others {
        let diagnostic = files.diagnostic(message);
        // A character of several bytes gives a message for each.
        let is_of_header = |known: &Diagnostic| {
            let is_of_header =
                [HEADER_DOES_NOT_COMPILE, LIBRARY_DOES_NOT_COMPILE].map(|end| known.message.ends_with(end));
            known.message == diagnostic.message && is_of_header.contains(&true)
        };
        if !diagnostics.contains(&diagnostic) && !diagnostics.iter().any(is_of_header) {
            diagnostics.push(diagnostic);
        }
    }
    // Where the text itself has errors, a kernel that cannot be named is a consequence, as warnings may be.
    let broken = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if broken {
        diagnostics.retain(|diagnostic| diagnostic.severity == Severity::Error);
    }
    let mut diagnostics = first_of_each_line(diagnostics, unit);
    if !named.is_empty() && !broken {
        diagnostics.push(unknown_kernel(&named, unit));
    }
    diagnostics
}

/// Of the errors of one line the first, which says how many follow it: they are mostly its consequences.
fn first_of_each_line(diagnostics: Vec<Diagnostic>, unit: &TranslationUnit) -> Vec<Diagnostic> {
    let line = |diagnostic: &Diagnostic| {
        let span = &diagnostic.primary.as_ref()?.span;
        let is_text = diagnostic.code == Some(rules::KERNEL_ERROR) && diagnostic.severity == Severity::Error;
        let line = span.source.line_column(span.range.start).line;
        let is_manifest = span.source.path == unit.kernel_span.source.path;
        (is_text && !is_manifest).then(|| (span.source.path.clone(), line))
    };
    let mut kept: Vec<(Diagnostic, usize)> = Vec::new();
    let mut following = 0;
    let mut is_lost = false;
    for diagnostic in diagnostics {
        let is_at_end = diagnostic.message.ends_with(" at the end of the file") && !kept.is_empty();
        if diagnostic.severity == Severity::Error && (is_lost || is_at_end) {
            following += 1;
            continue;
        }
        is_lost |= loses_the_way(&diagnostic);
        let own = line(&diagnostic);
        let same = kept.iter_mut().find(|(known, _)| own.is_some() && line(known) == own);
        match same {
            Some((_, more)) => *more += 1,
            None => kept.push((diagnostic, 0)),
        }
    }
    let counted = |count: usize| match count {
        1 => "1 more error".to_owned(),
        count => format!("{count} more errors"),
    };
    let told = kept.into_iter().map(|(diagnostic, more)| match more {
        0 => diagnostic,
        more => diagnostic.note(format!("{} from the same line", counted(more))),
    });
    let mut told: Vec<Diagnostic> = told.collect();
    if let Some(last) = told.last_mut().filter(|_| following > 0) {
        last.notes.push(format!("{} may follow from it", counted(following)));
    }
    told
}

/// Whether the compiler finds no way back after an error (13.0): what it says about the rest are consequences.
fn loses_the_way(error: &Diagnostic) -> bool {
    let Some(label) = &error.primary else { return false };
    let is_between = error.related.iter().any(|label| label.text == MISSING_SEMICOLON);
    let expects = error.message == "expected a `;`";
    let at = label.span.source.text.get(label.span.range.clone()).unwrap_or_default();
    (is_between && !expects) || (expects && at == "}")
}

/// Beside the place of an error.
const MISSING_SEMICOLON: &str = "is a `;` missing after this?";

/// How to fix too many bytes of parameters.
pub const PASS_LESS: &str = "pass less by value: large tables belong into an input tensor";
/// How to fix too much static shared memory.
pub const MAKE_IT_DYNAMIC: &str = "make it `extern __shared__` and set `shared_bytes` in the launch";

/// How a message ends that is about a header which is not the author's to mend.
pub const HEADER_DOES_NOT_COMPILE: &str = "does not compile";

/// How a message ends that is about one of CUDA's headers, of which the author has chosen a wrong one.
const LIBRARY_DOES_NOT_COMPILE: &str = "holds what NVRTC does not compile";

/// The file that NVRTC itself puts before every text (13.0).
const BUILT_IN: &str = "__nv_nvrtc_builtin_header.h";

/// What a generated header or one of NVRTC's own cannot be blamed for: something from outside has changed it.
fn in_a_header(text: &str, place: &Place, unit: &TranslationUnit) -> Diagnostic {
    let what =
        if place.file == PRELUDE_NAME { "the generated header `cubinder.h`" } else { "NVRTC's own header" };
    Diagnostic::error(format!("{what} {HEADER_DOES_NOT_COMPILE}"))
        .code(rules::KERNEL_ERROR)
        .at(unit.kernel_span.clone(), "compiled for this kernel")
        .note(format!("NVRTC says: {text}"))
}

/// The kernel's name in the manifest fits nothing in the source.
fn unknown_kernel(messages: &[&Message], unit: &TranslationUnit) -> Diagnostic {
    let kernel = &unit.kernel;
    let overloaded = messages.iter().find_map(|message| {
        let (_, rest) = message.text.split_once("instance of overloaded function \"")?;
        Some(rest.split_once('"')?.0)
    });
    if let Some(name) = overloaded {
        let message = format!("`{kernel}` could be several functions of `{}`", unit.name);
        return Diagnostic::error(message)
            .code(rules::KERNEL_NOT_FOUND)
            .at(unit.kernel_span.clone(), "")
            .note(format!("`{name}` is overloaded, and a kernel is named without its parameters"))
            .help(format!(
                "rename the one that is meant, or add a `__global__` function with a name of its own; of a template \
                 beside a plain function, give the arguments: `{name}<float>`"
            ));
    }
    let said = messages.iter().map(|message| ticks(&message.text));
    let said = said.filter(|text| !text.starts_with("Error in parsing name expression"));
    let said: Vec<String> = said
        .map(|text| text.split(". Input name expression was").next().unwrap_or_default().to_owned())
        .collect();
    lookup::explain_unknown(kernel, &unit.kernel_span, &unit.source, &unit.name, &said)
}

/// More than a kernel can have, as the stages behind the front end say it (NVRTC 13.0): without a place that helps, and with the
/// kernel's mangled name.
fn limit(text: &str, unit: &TranslationUnit) -> Option<Diagnostic> {
    let numbers = |(_, rest): (&str, &str)| {
        let (needed, rest) = rest.split_once(" bytes")?;
        let (_, rest) = rest.split_once(", ")?;
        let most = rest.trim_start_matches("max ").split([' ', ')']).next()?;
        Some((byte_count(needed)?, byte_count(most)?))
    };
    let at_kernel = |message: String, code: Code| {
        let diagnostic = Diagnostic::error(message).code(code);
        let diagnostic = diagnostic.at(unit.kernel_span.clone(), "compiled for this kernel");
        match symbol(text) {
            Some(symbol) => diagnostic.note(format!("NVRTC says so of `{symbol}` in `{}`", unit.name)),
            None => diagnostic,
        }
    };
    if let Some((needed, most)) = text.split_once("Formal parameter space overflowed (").and_then(numbers) {
        let message = format!("the parameters take {needed} bytes, the limit is {most}");
        return Some(at_kernel(message, rules::PARAMETER_BYTES).help(PASS_LESS));
    }
    let (needed, most) = text.split_once("uses too much shared data (").and_then(numbers)?;
    let message = format!("the kernel has {needed} bytes of static shared memory, the limit is {most}");
    Some(at_kernel(message, rules::STATIC_SHARED_MEMORY).help(MAKE_IT_DYNAMIC))
}

/// What helps where ptxas says that an instruction needs a newer GPU (NVRTC 13.0: `Instruction 'griddepcontrol' requires .target sm_90 or
/// higher`).
pub(super) fn newer_needed(said: &[String]) -> Option<String> {
    let version = |line: &String| -> Option<u32> {
        let (_, rest) = line.split_once("requires .target sm_")?;
        rest.strip_suffix(" or higher")?.parse().ok()
    };
    let needed = said.iter().filter_map(version).max()?;
    Some(format!(
        "put what needs it between lines `#if __CUDA_ARCH__ >= {needed}0` and `#endif`, or compile for no target below `sm_{needed}`"
    ))
}

/// The mangled name in such a message: `Entry function 'k' uses`, `in function k`.
fn symbol(text: &str) -> Option<&str> {
    let quoted = text.split_once("function '").and_then(|(_, rest)| rest.split('\'').next());
    quoted.or_else(|| text.split_once("in function ").map(|(_, symbol)| symbol.trim()))
}

/// `32764` or `0xc000`.
fn byte_count(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The texts that a log points into.
struct Files<'a> {
    unit: &'a TranslationUnit,
    library: &'a [PathBuf],
    opened: HashMap<String, Option<Arc<Source>>>,
}

impl Files<'_> {
    fn diagnostic(&mut self, message: &Message) -> Diagnostic {
        let message = &Message { text: message.text.trim_end_matches(':').to_owned(), ..message.clone() };
        if let Some(limit) = limit(&message.text, self.unit) {
            return limit;
        }
        let text = ticks(&message.text);
        if let Some(place) = &message.place
            && (place.file == PRELUDE_NAME || place.file == BUILT_IN)
            && message.level == Level::Error
        {
            return in_a_header(&text, place, self.unit);
        }
        if let Some(place) = message.place.as_ref().filter(|_| message.level == Level::Error)
            && message.context.is_empty()
            && let Some(diagnostic) = self.in_the_library(&text, place)
        {
            return diagnostic;
        }
        if message.text.starts_with("A function without execution space annotations") {
            return self.unmarked(message);
        }
        let mut diagnostic = match message.level {
            Level::Error => Diagnostic::error(text).code(rules::KERNEL_ERROR),
            Level::Warning => Diagnostic::warning(text),
        };
        match &message.place {
            Some(place) => {
                diagnostic = match self.span(place) {
                    Some(span) => diagnostic.at(span, ""),
                    None => diagnostic.note(format!("at {}:{}", place.file, place.line)),
                };
                if let Some(span) = self.included_at(&place.file) {
                    diagnostic = diagnostic.related(span, "included here");
                }
            }
            None => {
                diagnostic = diagnostic
                    .at(self.unit.kernel_span.clone(), "compiled for this kernel")
                    .note(format!("the source is `{}`", self.unit.name));
            }
        }
        for line in &message.context {
            diagnostic = self.context(diagnostic, line);
        }
        if let Some(before) = self.lacks_semicolon(&diagnostic) {
            diagnostic = diagnostic.related(before, MISSING_SEMICOLON);
        }
        match &message.number {
            Some(number) if message.level == Level::Warning => {
                diagnostic.help(format!("mend it, or add the option `--diag-suppress={number}`"))
            }
            _ => {
                let file = message.place.as_ref().map_or("", |place| &place.file);
                match host::help(&diagnostic.message, file) {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic,
                }
            }
        }
    }

    /// The end of what stands before the place of an error, where that looks as if it lacks its `;`: NVRTC complains about the first
    /// word behind it, on a line below.
    fn lacks_semicolon(&self, error: &Diagnostic) -> Option<Span> {
        let says = |start: &str| error.message.starts_with(start);
        let is_of_syntax =
            says("expected a") || says("attribute") || error.message.ends_with(" is not allowed");
        let span = error.primary.as_ref().map(|label| &label.span).filter(|_| is_of_syntax)?;
        if error.severity != Severity::Error || span.source.path != self.unit.source.path {
            return None;
        }
        let text = &span.source.text;
        let before = token_before(text, span.range.start)?;
        let between = &text[before.end..span.range.start];
        let ends = matches!(&text[before.clone()], ";" | "{" | "," | "(" | ":" | ">");
        (between.contains('\n') && !ends).then(|| Span::new(&span.source, before))
    }

    /// A function that is neither a kernel nor for kernels. NVRTC's own advice, an option, would make the kernel none.
    fn unmarked(&mut self, message: &Message) -> Diagnostic {
        let span = message.place.as_ref().and_then(|place| self.span(place));
        let name = span.as_ref().map(|span| &span.source.text[span.range.clone()]);
        let name = name.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
        let what = match name {
            Some(name) => format!("the function `{name}` is marked neither `__global__` nor `__device__`"),
            None => "a function is marked neither `__global__` nor `__device__`".to_owned(),
        };
        let error = Diagnostic::error(what).code(rules::KERNEL_ERROR);
        let error = match (span, &message.place) {
            (Some(span), _) => error.at(span, ""),
            (None, Some(place)) => error.note(format!("at {}:{}", place.file, place.line)),
            (None, None) => error.at(self.unit.kernel_span.clone(), "compiled for this kernel"),
        };
        error.help("write `__global__` before a kernel, and `__device__` before what kernels call")
    }

    /// A line that says how the compiler came to the place, such as
    /// `instantiation of "void k(T *) [with T=float]" at line 3 of kernels/a.cu`.
    fn context(&mut self, diagnostic: Diagnostic, line: &str) -> Diagnostic {
        if line == "detected during:" {
            return diagnostic;
        }
        let line = line.strip_prefix("detected during ").unwrap_or(line);
        // Candidates are mostly those of a header.
        let line = line.split(" (declared at line ").next().unwrap_or(line);
        let place = line.rsplit_once(" at line ").and_then(|(what, place)| {
            let (number, file) = place.split_once(" of ")?;
            let file = file.trim_matches('"');
            let place = Place { file: file.to_owned(), line: number.parse().ok()?, excerpt: None };
            Some((what, self.span(&place)?))
        });
        match place {
            Some((what, span)) => diagnostic.related(span, ticks(what)),
            None => diagnostic.note(ticks(line)),
        }
    }

    fn span(&mut self, place: &Place) -> Option<Span> {
        let source = self.source(&place.file)?;
        let line = line_range(&source.text, place.line)?;
        let token = match &place.excerpt {
            // The caret counts only where the log shows the very line that the file has.
            Some((excerpt, column)) if source.text[line.clone()].trim_end() == excerpt.trim_end() => {
                Some(token_at(&source.text, line.start + column, &line)).filter(|token| !token.is_empty())
            }
            _ => None,
        };
        let range = token.unwrap_or_else(|| trimmed(&source.text, line));
        Some(Span { source, range })
    }

    /// A file that NVRTC names: the author's, the prelude, or a header on disk.
    fn source(&mut self, file: &str) -> Option<Arc<Source>> {
        if file == self.unit.name {
            return Some(Arc::clone(&self.unit.source));
        }
        if file == PRELUDE_NAME {
            return Some(Arc::clone(&self.unit.prelude));
        }
        let open = || {
            let text = String::from_utf8_lossy(&source::read(Path::new(file), source::LARGEST_TEXT).ok()?)
                .into_owned();
            Some(Source::new(file, text))
        };
        self.opened.entry(file.to_owned()).or_insert_with(open).clone()
    }

    /// An error in one of CUDA's headers, which nothing in the author's text led the compiler to but the `#include`: told there, once for each.
    fn in_the_library(&self, text: &str, place: &Place) -> Option<Diagnostic> {
        let folder = self.library.iter().filter(|folder| Path::new(&place.file).starts_with(folder));
        let folder = folder.max_by_key(|folder| folder.components().count())?;
        let below = Path::new(&place.file).strip_prefix(folder).ok()?;
        // There is better advice about this one.
        if below == Path::new("cuda.h") {
            return None;
        }
        let is_there = |name: &str| folder.join(name).is_file();
        // Of several the one from the same part of the library is the likeliest.
        let is_near =
            |name: &str| is_there(name) && Path::new(name).components().next() == below.components().next();
        let ways: [&dyn Fn(&str) -> bool; 3] = [&|name| Path::new(name) == below, &is_near, &is_there];
        let (name, span) = ways.iter().find_map(|way| self.directive(way))?;
        let file = below.display();
        Some(
            Diagnostic::error(format!("`{name}` {LIBRARY_DOES_NOT_COMPILE}"))
                .code(rules::KERNEL_ERROR)
                .at(span, "included here")
                .note(format!("NVRTC says of line {} of `{file}`: {text}", place.line))
                .help(
                    "include the headers alone that the kernel itself needs: many of CUDA's libraries also have headers for host code, \
                     which NVRTC does not compile, such as `<cub/cub.cuh>` beside `<cub/block/block_reduce.cuh>`",
                ),
        )
    }

    /// Where the author's file includes this header by name.
    fn included_at(&self, file: &str) -> Option<Span> {
        let is_named = |name: &str| Path::new(file).ends_with(name.trim_start_matches("./"));
        if file == self.unit.name { None } else { self.directive(&is_named).map(|(_, span)| span) }
    }

    /// The first `#include` of the author's file of which the name is as wanted, and its line.
    fn directive(&self, is_wanted: &dyn Fn(&str) -> bool) -> Option<(String, Span)> {
        let source = &self.unit.source;
        let named = |directive: crate::directives::Directive| {
            let name = directive.name().filter(|name| !name.is_empty() && is_wanted(name))?.to_owned();
            Some((name, directive.at))
        };
        let (name, at) = crate::directives::directives(&source.text).into_iter().find_map(named)?;
        let start = source.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = source.text[at..].find('\n').map_or(source.text.len(), |newline| at + newline);
        Some((name, Span { source: Arc::clone(source), range: trimmed(&source.text, start..end) }))
    }
}

/// The bytes of a line, counted from 1, without its line break.
fn line_range(text: &str, line: usize) -> Option<Range<usize>> {
    let mut start = 0;
    for _ in 1..line {
        start += text[start..].find('\n')? + 1;
    }
    let end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
    Some(start..end)
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let line = &text[range.clone()];
    let start = range.start + (line.len() - line.trim_start().len());
    start..start.max(range.start + line.trim_end().len())
}

/// The word, or the single character, that starts at `at` in `line`.
fn token_at(text: &str, at: usize, line: &Range<usize>) -> Range<usize> {
    let mut start = at.min(line.end);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let rest = &text[start..line.end];
    let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let length = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
    start..start + length
}

/// Quoted code in NVRTC's and ptxas' messages, between backticks as everywhere else.
fn ticks(text: &str) -> String {
    let text = match text.strip_prefix("Entry function '").and_then(|rest| rest.split_once('\'')) {
        Some((symbol, rest)) => &format!("entry function `{symbol}`{rest}"),
        None => text,
    };
    if text.matches('"').count().is_multiple_of(2) { text.replace('"', "`") } else { text.to_owned() }
}

/// The diagnostics of one unit for several targets, each said once. One that some targets do not have says which do; where only
/// notes differ, each says what it is of.
#[must_use]
pub fn merge_targets(of_targets: &[(Target, Vec<Diagnostic>)]) -> Vec<Diagnostic> {
    let mut merged: Vec<Merged> = Vec::new();
    for (target, diagnostics) in of_targets {
        for diagnostic in diagnostics {
            match merged.iter_mut().find(|known| known.is_like(diagnostic)) {
                Some(known) => known.add(diagnostic, *target),
                None => merged.push(Merged::new(diagnostic, *target)),
            }
        }
    }
    merged.into_iter().map(|merged| merged.finish(of_targets.len())).collect()
}

/// A diagnostic of some targets.
struct Merged {
    /// The notes left out.
    diagnostic: Diagnostic,
    targets: Vec<Target>,
    /// Each note, with the targets that have it.
    notes: Vec<(String, Vec<Target>)>,
}

impl Merged {
    fn new(diagnostic: &Diagnostic, target: Target) -> Merged {
        let mut merged =
            Merged { diagnostic: without_notes(diagnostic), targets: Vec::new(), notes: Vec::new() };
        merged.add(diagnostic, target);
        merged
    }

    fn is_like(&self, other: &Diagnostic) -> bool {
        self.diagnostic == without_notes(other)
    }

    fn add(&mut self, diagnostic: &Diagnostic, target: Target) {
        let of = |targets: &mut Vec<Target>| {
            if targets.last() != Some(&target) {
                targets.push(target);
            }
        };
        of(&mut self.targets);
        for note in &diagnostic.notes {
            match self.notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, targets)) => of(targets),
                None => self.notes.push((note.clone(), vec![target])),
            }
        }
    }

    fn finish(self, all: usize) -> Diagnostic {
        let names = |targets: &[Target]| {
            let names: Vec<String> = targets.iter().map(|target| format!("`{target}`")).collect();
            names.join(", ")
        };
        let mut diagnostic = self.diagnostic;
        for (note, targets) in &self.notes {
            let is_of_all = targets.len() == self.targets.len();
            diagnostic = diagnostic.note(match is_of_all {
                true => note.clone(),
                false => format!("for {}: {note}", names(targets)),
            });
        }
        // A place that is the target itself says so.
        let says_so = matches!((&diagnostic.primary, self.targets.as_slice()), (Some(label), [only])
            if label.span.source.text.get(label.span.range.clone())
                .is_some_and(|text| text.trim_matches(['"', '\'']) == only.to_string()));
        if self.targets.len() == all || says_so {
            return diagnostic;
        }
        diagnostic.note(format!("only for {}", names(&self.targets)))
    }
}

fn without_notes(diagnostic: &Diagnostic) -> Diagnostic {
    Diagnostic { notes: Vec::new(), ..diagnostic.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_any_text() {
        let text = "a\n\tint ä = y;\n";
        let line = line_range(text, 2).unwrap();
        assert_eq!(&text[trimmed(text, line.clone())], "int ä = y;");
        assert_eq!(&text[token_at(text, line.start + 1, &line)], "int");
        // The middle of `ä`, and beyond the end.
        assert_eq!(&text[token_at(text, line.start + 6, &line)], "ä");
        assert_eq!(&text[token_at(text, line.start + 99, &line)], "");
        assert_eq!(line_range(text, 4), None);
    }

    #[test]
    fn a_message_of_every_target_is_said_once() {
        // At the target itself it need not be said.
        let manifest = Source::new("m.toml", "\"sm_90\"");
        let at = Diagnostic::error("no").at(Span::new(&manifest, 0..7), "here");
        let of_one = [("sm_80".parse().unwrap(), vec![]), ("sm_90".parse().unwrap(), vec![at.clone()])];
        assert_eq!(merge_targets(&of_one), [at]);
        let (one, two): (Target, Target) = ("sm_80".parse().unwrap(), "sm_90".parse().unwrap());
        let (both, only) = (Diagnostic::error("both"), Diagnostic::warning("only"));
        let merged = merge_targets(&[
            (one, vec![both.clone(), both.clone()]),
            (two, vec![both.clone(), only.clone()]),
        ]);
        assert_eq!(merged, [both.clone(), only.note("only for `sm_90`")]);
        let with = |note: &str| vec![both.clone().note("of all").note(note)];
        let merged = merge_targets(&[(one, with("1")), (two, with("2"))]);
        assert_eq!(merged, [both.note("of all").note("for `sm_80`: 1").note("for `sm_90`: 2")]);
    }
}
