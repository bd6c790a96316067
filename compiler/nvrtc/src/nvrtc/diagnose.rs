use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_model::Target;

use super::cause::{Cause, Excess};
use super::errors::{Ambiguous, GivenHeader, LibraryHeader, ParameterSpace, SharedMemory};
use super::host;
use super::log::{Context, Location, Log, Message};
use crate::codegen::{PRELUDE_NAME, TranslationUnit};
use crate::cuda::{lookup, token_before};
use crate::diagnostic::{Diagnostic, Label, Severity, Source, Span};
use crate::rules;
use crate::source;

/// Compile message with its cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileMessage {
    /// Cause.
    pub cause: Cause,
    /// Author of the text with the error.
    pub author: Author,
    /// Message in the user's files.
    pub diagnostic: Diagnostic,
}

/// Author of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// Kernel author.
    User,
    /// Cubinder (the generated header) or NVRTC (a built-in header).
    Compiler,
    /// NVIDIA: CUDA's headers.
    Cuda,
}

impl CompileMessage {
    pub(super) fn new(diagnostic: impl Into<Diagnostic>) -> CompileMessage {
        CompileMessage { cause: Cause::Other, author: Author::User, diagnostic: diagnostic.into() }
    }
}

/// Returns the messages without their causes.
#[must_use]
pub fn diagnostics(messages: Vec<CompileMessage>) -> Vec<Diagnostic> {
    messages.into_iter().map(|message| message.diagnostic).collect()
}

/// `library`: CUDA's include folders, which users cannot fix.
pub(super) fn diagnose(log: &Log, unit: &TranslationUnit, library: &[PathBuf]) -> Vec<CompileMessage> {
    let mut files = Files { unit, library, opened: HashMap::new() };
    let (of_name, others): (Vec<&Message>, Vec<&Message>) =
        log.messages.iter().partition(|message| message.is_of_name());
    let mut findings: Vec<Finding<'_>> = Vec::new();
    for message in others {
        let finding = files.locate(message);
        if !findings.iter().any(|earlier| finding.repeats(earlier)) {
            findings.push(finding);
        }
    }
    // These cause kernel name errors and warnings.
    let is_error = |finding: &Finding<'_>| finding.message.severity == Severity::Error;
    let broken = findings.iter().any(is_error);
    findings.retain(|finding| !broken || is_error(finding));
    let messages = findings.into_iter().map(|finding| files.render(finding)).collect();
    let mut messages = first_of_each_line(messages, unit);
    if !of_name.is_empty() && !broken {
        messages.push(unknown_kernel(&of_name, unit));
    }
    messages
}

/// The others are mostly consequences.
fn first_of_each_line(messages: Vec<CompileMessage>, unit: &TranslationUnit) -> Vec<CompileMessage> {
    let line = |CompileMessage { diagnostic, .. }: &CompileMessage| {
        let span = &diagnostic.primary.as_ref()?.span;
        let is_text = diagnostic.code == Some(rules::KERNEL_ERROR) && diagnostic.severity == Severity::Error;
        let line = span.source.line_column(span.range.start).line;
        let is_manifest = span.source.path == unit.kernel_span.source.path;
        (is_text && !is_manifest).then(|| (span.source.path.clone(), line))
    };
    let mut kept: Vec<(CompileMessage, usize)> = Vec::new();
    let mut following = 0;
    let mut is_lost = false;
    for message in messages {
        let is_at_end = message.cause == Cause::EndOfFile && !kept.is_empty();
        if message.diagnostic.severity == Severity::Error && (is_lost || is_at_end) {
            following += 1;
            continue;
        }
        is_lost |= message.cause == Cause::UnrecoverableSyntax;
        let own = line(&message);
        let same = kept.iter_mut().find(|(earlier, _)| own.is_some() && line(earlier) == own);
        match same {
            Some((_, more)) => *more += 1,
            None => kept.push((message, 0)),
        }
    }
    let counted = |count: usize| match count {
        1 => "1 more error".to_owned(),
        count => format!("{count} more errors"),
    };
    let last = kept.len().saturating_sub(1);
    for (index, (message, more)) in kept.iter_mut().enumerate() {
        let notes = &mut message.diagnostic.notes;
        if *more > 0 {
            notes.push(format!("{} from the same line", counted(*more)));
        }
        if index == last && following > 0 {
            notes.push(format!("{} may be caused by it", counted(following)));
        }
    }
    kept.into_iter().map(|(message, _)| message).collect()
}

/// Precedes every text (13.0).
const BUILT_IN: &str = "__nv_nvrtc_builtin_header.h";

fn unknown_kernel(messages: &[&Message], unit: &TranslationUnit) -> CompileMessage {
    let TranslationUnit { kernel, name: file, kernel_span, .. } = unit;
    let names = |name: fn(&Cause) -> Option<&String>| messages.iter().filter_map(move |it| name(&it.cause));
    let overloaded =
        names(|cause| if let Cause::Overloaded(name) = cause { Some(name) } else { None }).next();
    if let Some(name) = overloaded {
        let (kernel, file, name) = (kernel.clone(), file.clone(), name.clone());
        return CompileMessage::new(Ambiguous { kernel, file, name, span: kernel_span.clone() });
    }
    let reported = messages.iter().filter(|message| message.cause != Cause::NameExpression);
    let reported: Vec<String> = reported.map(|message| message.text.clone()).collect();
    let undefined = names(|cause| if let Cause::UndefinedName(name) = cause { Some(name) } else { None });
    let undefined: Vec<&str> = undefined.map(String::as_str).collect();
    let diagnostic = lookup::explain_unknown(kernel, kernel_span, &unit.source, file, &reported, &undefined);
    let arguments = kernel.split_once('<').map_or("", |(_, arguments)| arguments);
    let mut words = arguments.split(|c: char| !c.is_alphanumeric() && c != '_');
    let undefined = words.find(|word| undefined.contains(word));
    let cause = undefined.map_or(Cause::Other, |name| Cause::UndefinedName(name.to_owned()));
    CompileMessage { cause, author: Author::User, diagnostic }
}

struct Finding<'m> {
    message: &'m Message,
    place: Place,
}

enum Place {
    GivenHeader(&'static str),
    /// One of CUDA's headers.
    LibraryHeader(LibraryHeader),
    /// `None` if the file is unreadable or no location is known.
    Text(Option<Span>),
}

impl Finding<'_> {
    /// Headers are reported once, and NVRTC reports each byte of a character.
    fn repeats(&self, earlier: &Finding<'_>) -> bool {
        match (&self.place, &earlier.place) {
            (Place::GivenHeader(header), Place::GivenHeader(other)) => header == other,
            (Place::LibraryHeader(header), Place::LibraryHeader(other)) => header.name == other.name,
            (Place::Text(span), Place::Text(other)) => {
                span == other && self.message.says_the_same(earlier.message)
            }
            _ => false,
        }
    }
}

struct Files<'a> {
    unit: &'a TranslationUnit,
    library: &'a [PathBuf],
    opened: HashMap<String, Option<Arc<Source>>>,
}

impl Files<'_> {
    fn locate<'m>(&mut self, message: &'m Message) -> Finding<'m> {
        let in_header = || {
            let location = message.location.as_ref().filter(|_| message.severity == Severity::Error)?;
            match location.file.as_str() {
                PRELUDE_NAME => Some(Place::GivenHeader("the generated header `cubinder.h`")),
                BUILT_IN => Some(Place::GivenHeader("NVRTC's own header")),
                _ if message.context.is_empty() => {
                    self.in_the_library(message.text.clone(), location).map(Place::LibraryHeader)
                }
                _ => None,
            }
        };
        let place = in_header().unwrap_or_else(|| {
            Place::Text(message.location.as_ref().and_then(|location| self.span(location)))
        });
        Finding { message, place }
    }

    fn render(&mut self, Finding { message, place }: Finding<'_>) -> CompileMessage {
        let TranslationUnit { name, kernel_span, .. } = self.unit;
        let (file, kernel) = (name.clone(), kernel_span.clone());
        let (mut cause, reported) = (message.cause.clone(), message.text.clone());
        let (author, diagnostic) = match (place, cause.clone()) {
            (Place::GivenHeader(header), _) => {
                (Author::Compiler, GivenHeader { header, reported, kernel }.into())
            }
            (Place::LibraryHeader(error), _) => (Author::Cuda, error.into()),
            (_, Cause::ParameterSpace(Excess { needed, limit, symbol })) => {
                (Author::User, ParameterSpace { needed, limit, symbol, file, kernel }.into())
            }
            (_, Cause::SharedMemory(Excess { needed, limit, symbol })) => {
                (Author::User, SharedMemory { needed, limit, symbol, file, kernel }.into())
            }
            (Place::Text(span), Cause::UnmarkedFunction) => (Author::User, self.unmarked(message, span)),
            (Place::Text(span), _) => (Author::User, self.reported(message, span, &mut cause)),
        };
        CompileMessage { cause, author, diagnostic }
    }

    /// Reports in NVRTC's words; updates the cause if the parser does not recover.
    fn reported(&mut self, message: &Message, span: Option<Span>, cause: &mut Cause) -> Diagnostic {
        let mut diagnostic = match message.severity {
            Severity::Error => Diagnostic::error(&message.text).code(rules::KERNEL_ERROR),
            Severity::Warning => Diagnostic::warning(&message.text),
        };
        diagnostic = self.with_place(diagnostic, message.location.as_ref(), span);
        match &message.location {
            Some(location) => {
                if let Some(span) = self.included_at(&location.file) {
                    diagnostic = diagnostic.related(span, "included here");
                }
            }
            None => diagnostic = diagnostic.note(format!("the source is `{}`", self.unit.name)),
        }
        for Context { text, location } in &message.context {
            let span = location.as_ref().map(|location| self.span(location));
            diagnostic = match (location, span) {
                (_, Some(Some(span))) => diagnostic.related(span, text),
                (Some(Location { file, line, .. }), _) => {
                    diagnostic.note(format!("{text} at line {line} of `{file}`"))
                }
                (None, _) => diagnostic.note(text),
            };
        }
        let missing = self.missing_semicolon(cause, &diagnostic);
        let is_lost = match (&cause, &diagnostic.primary) {
            (Cause::ExpectedSemicolon, Some(Label { span, .. })) => {
                span.source.text.get(span.range.clone()) == Some("}")
            }
            _ => missing.is_some(),
        };
        if let Some(before) = missing {
            diagnostic = diagnostic.related(before, "is a `;` missing after this?");
        }
        diagnostic.help = match &message.number {
            Some(number) if message.severity == Severity::Warning => {
                Some(format!("fix it, or add the option `--diag-suppress={number}`"))
            }
            _ => {
                let token = diagnostic
                    .primary
                    .as_ref()
                    .and_then(|Label { span, .. }| span.source.text.get(span.range.clone()));
                let file = message.location.as_ref().map_or("", |location| &location.file);
                host::help(cause, file, token.unwrap_or_default())
            }
        };
        if is_lost {
            *cause = Cause::UnrecoverableSyntax;
        }
        diagnostic
    }

    fn with_place(
        &self,
        diagnostic: Diagnostic,
        location: Option<&Location>,
        span: Option<Span>,
    ) -> Diagnostic {
        match (location, span) {
            (None, _) => diagnostic.at(self.unit.kernel_span.clone(), "compiled for this kernel"),
            (_, Some(span)) => diagnostic.at(span, ""),
            (Some(location), None) => diagnostic.note(format!("at {}:{}", location.file, location.line)),
        }
    }

    /// Returns the end of the text before the marked token, which follows the missing semicolon, perhaps on a later line.
    fn missing_semicolon(&self, cause: &Cause, error: &Diagnostic) -> Option<Span> {
        let is_of_syntax = matches!(cause, Cause::ExpectedSemicolon | Cause::Syntax);
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

    /// NVRTC suggests an option that would break kernels.
    fn unmarked(&self, message: &Message, span: Option<Span>) -> Diagnostic {
        let name = span.as_ref().map(|span| &span.source.text[span.range.clone()]);
        let name = name.filter(|name| name.chars().all(|c| c.is_alphanumeric() || c == '_'));
        let function = name.map_or_else(|| "a function".to_owned(), |name| format!("the function `{name}`"));
        let error = Diagnostic::error(format!("{function} is marked neither `__global__` nor `__device__`"));
        self.with_place(error.code(rules::KERNEL_ERROR), message.location.as_ref(), span)
            .help("mark kernels `__global__`, and functions that kernels call `__device__`")
    }

    fn span(&mut self, location: &Location) -> Option<Span> {
        let source = self.source(&location.file)?;
        let line = line_range(&source.text, location.line)?;
        let token = match &location.excerpt {
            // The caret applies only to the logged line.
            Some((excerpt, column)) if source.text[line.clone()].trim_end() == excerpt.trim_end() => {
                Some(token_at(&source.text, line.start + column, &line)).filter(|token| !token.is_empty())
            }
            _ => None,
        };
        let range = token.unwrap_or_else(|| trimmed(&source.text, line));
        Some(Span { source, range })
    }

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

    /// Reports the user's `#include` that led to the error.
    fn in_the_library(&self, reported: String, location: &Location) -> Option<LibraryHeader> {
        let folder = self.library.iter().filter(|folder| Path::new(&location.file).starts_with(folder));
        let folder = folder.max_by_key(|folder| folder.components().count())?;
        let below = Path::new(&location.file).strip_prefix(folder).ok()?;
        // `cuda.h` has better advice.
        if below == Path::new("cuda.h") {
            return None;
        }
        let is_in_folder = |name: &str| folder.join(name).is_file();
        // Prefer a header from the same part of the library.
        let is_near = |name: &str| {
            is_in_folder(name) && Path::new(name).components().next() == below.components().next()
        };
        let ways: [&dyn Fn(&str) -> bool; 3] = [&|name| Path::new(name) == below, &is_near, &is_in_folder];
        let (name, directive) = ways.iter().find_map(|way| self.directive(way))?;
        let file = below.display().to_string();
        Some(LibraryHeader { name, file, line: location.line, reported, directive })
    }

    fn included_at(&self, file: &str) -> Option<Span> {
        let is_named = |name: &str| Path::new(file).ends_with(name.trim_start_matches("./"));
        if file == self.unit.name { None } else { self.directive(&is_named).map(|(_, span)| span) }
    }

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

/// Merges a unit's diagnostics for several targets, naming the targets of partial ones.
#[must_use]
pub fn merge_targets(of_targets: &[(Target, Vec<Diagnostic>)]) -> Vec<Diagnostic> {
    let mut merged: Vec<Merged> = Vec::new();
    for (target, diagnostics) in of_targets {
        for found in diagnostics {
            let diagnostic = Diagnostic { notes: Vec::new(), ..found.clone() };
            let index =
                merged.iter().position(|known| known.diagnostic == diagnostic).unwrap_or(merged.len());
            if index == merged.len() {
                merged.push(Merged { diagnostic, targets: Vec::new(), notes: Vec::new() });
            }
            let Merged { targets, notes, .. } = &mut merged[index];
            add(targets, *target);
            for note in &found.notes {
                match notes.iter_mut().find(|(known, _)| known == note) {
                    Some((_, targets)) => add(targets, *target),
                    None => notes.push((note.clone(), vec![*target])),
                }
            }
        }
    }
    merged.into_iter().map(|merged| merged.diagnostic(of_targets.len())).collect()
}

fn add(targets: &mut Vec<Target>, target: Target) {
    if targets.last() != Some(&target) {
        targets.push(target);
    }
}

struct Merged {
    diagnostic: Diagnostic,
    targets: Vec<Target>,
    notes: Vec<(String, Vec<Target>)>,
}

impl Merged {
    fn diagnostic(self, all: usize) -> Diagnostic {
        let names = |targets: &[Target]| {
            targets.iter().map(|target| format!("`{target}`")).collect::<Vec<_>>().join(", ")
        };
        let Merged { mut diagnostic, targets, notes } = self;
        diagnostic.notes = notes
            .into_iter()
            .map(|(note, of_note)| match of_note.len() == targets.len() {
                true => note,
                false => format!("for {}: {note}", names(&of_note)),
            })
            .collect();
        // A span over the target already names it.
        let is_target = matches!((&diagnostic.primary, targets.as_slice()), (Some(label), [only])
            if label.span.source.text.get(label.span.range.clone())
                .is_some_and(|text| text.trim_matches(['"', '\'']) == only.to_string()));
        match targets.len() == all || is_target {
            true => diagnostic,
            false => diagnostic.note(format!("only for {}", names(&targets))),
        }
    }
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
        assert_eq!(&text[token_at(text, line.start + 6, &line)], "ä");
        assert_eq!(&text[token_at(text, line.start + 99, &line)], "");
        assert_eq!(line_range(text, 4), None);
    }

    #[test]
    fn a_message_of_every_target_is_said_once() {
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
