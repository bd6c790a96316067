use clap::error::{ContextKind, ContextValue, ErrorKind};
use cubinder_source::diagnostic::{Diagnostic, suggest};

/// Returns `None` for `--help` and `--version`.
pub(super) fn diagnostic(error: &clap::Error) -> Option<Diagnostic> {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        return None;
    }
    let mut diagnostic = Diagnostic::error(message(error));
    if let Some(valid) =
        text(error, ContextKind::ValidValue).or_else(|| text(error, ContextKind::ValidSubcommand))
    {
        diagnostic = diagnostic.note(format!("expected one of {valid}"));
    }
    // The usage of conflicting arguments contains both.
    let usage = error.get(ContextKind::Usage).filter(|_| error.kind() != ErrorKind::ArgumentConflict);
    if let Some(usage) = usage {
        let usage = usage.to_string();
        let usage = usage.trim().trim_start_matches("Usage:").trim();
        diagnostic = diagnostic.note(format!("usage: {usage}"));
    }
    let near = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
        .into_iter()
        .find_map(|kind| suggested(error, kind));
    let help = match (of_another_command(error), near) {
        (Some(help), _) => help.to_owned(),
        (None, Some(near)) => format!("did you mean {}?", near.replace("`, `", "` or `")),
        (None, None) => "see `--help`".to_owned(),
    };
    Some(diagnostic.help(help))
}

fn of_another_command(error: &clap::Error) -> Option<&'static str> {
    if error.kind() != ErrorKind::UnknownArgument {
        let both = [ContextKind::InvalidArg, ContextKind::PriorArg]
            .map(|kind| text(error, kind).unwrap_or_default());
        let names = |part: &str| both.iter().any(|argument| argument.contains(part));
        let is_on = error.kind() == ErrorKind::ArgumentConflict && names("`[FILE]`") && names("`--cases");
        return is_on.then_some("use `--on FILE` to replace the file that the cases name");
    }
    let usage = error.get(ContextKind::Usage)?.to_string();
    let is_of = |command: &str| usage.contains(&format!("cubinder {command}"));
    match text(error, ContextKind::InvalidArg)?.trim_matches('`') {
        "--arch" | "--gpu-architecture" | "--gencode" if is_of("compile") || is_of("check") => {
            Some("use `--target`: `--target sm_89,compute_80`")
        }
        "--target" if is_of("eval") => Some("use `--arch`: `--arch sm_89`"),
        _ => None,
    }
}

fn message(error: &clap::Error) -> String {
    let of = |kind| text(error, kind).unwrap_or_default();
    let (arg, value) = (of(ContextKind::InvalidArg), of(ContextKind::InvalidValue));
    match error.kind() {
        ErrorKind::UnknownArgument if arg.starts_with("`-") => format!("unknown option {arg}"),
        ErrorKind::UnknownArgument => format!("unexpected argument {arg}"),
        ErrorKind::InvalidSubcommand => format!("unknown command {}", of(ContextKind::InvalidSubcommand)),
        ErrorKind::MissingSubcommand => "missing command".to_owned(),
        ErrorKind::MissingRequiredArgument => format!("missing {arg}"),
        ErrorKind::InvalidValue if value.is_empty() || value == "``" => format!("missing value of {arg}"),
        ErrorKind::InvalidValue => format!("invalid value {value} of {arg}"),
        ErrorKind::ValueValidation => {
            let why = std::error::Error::source(error).map(|why| format!(": {why}")).unwrap_or_default();
            format!("invalid value {value} of {arg}{why}")
        }
        ErrorKind::ArgumentConflict if of(ContextKind::PriorArg) == arg => {
            format!("{arg} cannot be used more than once")
        }
        ErrorKind::ArgumentConflict => format!("{arg} cannot be used with {}", of(ContextKind::PriorArg)),
        _ => {
            // clap's first line is always present.
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.trim_start_matches("error: ").replace('\'', "`")
        }
    }
}

/// Returns only the nearest suggestion if one typo away: clap's Jaro distance prefers `schema` to `check` for `chekc`.
fn suggested(error: &clap::Error, kind: ContextKind) -> Option<String> {
    let wrong = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg, ContextKind::InvalidValue];
    let wrong = wrong.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    });
    match (error.get(kind)?, wrong) {
        (ContextValue::Strings(texts), Some(wrong)) => {
            let near = suggest(wrong, texts.iter().map(String::as_str));
            near.map(|near| format!("`{near}`")).or_else(|| text(error, kind))
        }
        _ => text(error, kind),
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    let quote = |text: &str| format!("`{text}`");
    match error.get(kind)? {
        ContextValue::String(text) => Some(quote(text)),
        ContextValue::Strings(texts) if !texts.is_empty() => {
            Some(texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    }
}
