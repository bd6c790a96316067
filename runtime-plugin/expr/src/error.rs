pub(crate) type Span = std::ops::Range<usize>;

/// Codes C0101 to C0106 of the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Unknown name, function, type or field.
    UnknownName,
    /// Not an expression, or too large.
    Syntax,
    /// Wrong kind, or not a value.
    WrongKind,
    /// Never has a value.
    NoValue,
    /// Known later than its place requires.
    OutOfPlace,
    /// Wrong number of arguments, or recursive.
    BadCall,
}

/// An error in an expression's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExprError {
    /// Class.
    pub class: ErrorClass,
    /// Position in the text.
    pub span: Span,
    /// Lower case, no full stop.
    pub message: String,
    /// Label for the place.
    pub label: String,
    /// How to fix it.
    pub help: Option<String>,
    /// Similar names, or the called function.
    pub about: Vec<String>,
    /// Related place with a label.
    pub also: Option<(Span, String)>,
    /// Helper function with the error, if `span` is its call.
    pub function: Option<String>,
    /// Whether a size limit is exceeded.
    pub is_about_size: bool,
}

impl ExprError {
    pub(super) fn new(
        class: ErrorClass,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> ExprError {
        let (message, label) = (message.into(), label.into());
        let (about, is_about_size) = (Vec::new(), false);
        ExprError {
            class,
            span,
            message,
            label,
            help: None,
            about,
            also: None,
            function: None,
            is_about_size,
        }
    }

    pub(super) fn syntax(span: Span, message: impl Into<String>, label: impl Into<String>) -> ExprError {
        ExprError::new(ErrorClass::Syntax, span, message, label)
    }

    pub(super) fn too_large(span: Span, message: String, label: &str) -> ExprError {
        ExprError { is_about_size: true, ..ExprError::syntax(span, message, label) }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> ExprError {
        self.help = Some(help.into());
        self
    }

    pub(super) fn help_near(self, near: Option<&str>, other: &str) -> ExprError {
        self.help(near.map_or_else(|| other.to_owned(), |near| format!("did you mean `{near}`?")))
    }

    pub(super) fn about(mut self, name: impl Into<String>) -> ExprError {
        self.about.push(name.into());
        self
    }

    pub(super) fn did_you_mean<'a>(self, name: &str, candidates: impl Iterator<Item = &'a str>) -> ExprError {
        let near = nearest_all(name, candidates);
        let listed: Vec<String> = near.iter().map(|near| format!("`{near}`")).collect();
        let listed = match listed.as_slice() {
            [] => return self,
            [only] => only.clone(),
            [before @ .., last] => format!("{} or {last}", before.join(", ")),
        };
        near.into_iter().fold(self.help(format!("did you mean {listed}?")), ExprError::about)
    }

    pub(super) fn also(mut self, span: Span, label: impl Into<String>) -> ExprError {
        self.also = Some((span, label.into()));
        self
    }
}

/// At most a third of the letters differ.
pub(super) fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest_all(name, candidates).into_iter().next()
}

fn nearest_all<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 3;
    let candidates: Vec<&str> = candidates.take(MAX_CANDIDATES + 1).collect();
    if name.len() > LONGEST_NAME || candidates.len() > MAX_CANDIDATES {
        return Vec::new();
    }
    let allowed = (name.chars().count() / 3).max(1);
    let name = name.to_ascii_lowercase();
    let distance = |candidate: &str| strsim::osa_distance(&name, &candidate.to_ascii_lowercase());
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST_NAME)
        .map(|candidate| (distance(candidate), candidate))
        .filter(|&(distance, candidate)| distance <= allowed && distance < candidate.chars().count())
        .collect();
    near.sort_unstable();
    near.dedup();
    let least = near.first().map(|(distance, _)| *distance);
    near.into_iter()
        .take_while(|(distance, _)| Some(*distance) == least)
        .map(|(_, candidate)| candidate)
        .take(MOST)
        .collect()
}

/// Comparison takes quadratic time.
const LONGEST_NAME: usize = 64;
/// Generated manifests may have many unknown names.
const MAX_CANDIDATES: usize = 256;

pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    const MOST: usize = 12;
    let shown: Vec<String> = names.take(MOST).map(|name| format!("`{name}`")).collect();
    match count {
        0 => "no names are declared here".to_owned(),
        count if count > MOST => format!("the names here are {} and {} more", shown.join(", "), count - MOST),
        _ => format!("the names here are {}", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{ExprError, MAX_CANDIDATES, nearest};

    #[test]
    fn names_that_are_equally_near_are_all_said() {
        let help = |name: &str| {
            let names = ["words", "wordy", "world", "other"];
            ExprError::syntax(0..1, "", "").did_you_mean(name, names.into_iter()).help
        };
        assert_eq!(help("word").as_deref(), Some("did you mean `words`, `wordy` or `world`?"));
        assert_eq!(help("wordys").as_deref(), Some("did you mean `words` or `wordy`?"));
        assert_eq!(help("othr").as_deref(), Some("did you mean `other`?"));
        assert_eq!(help("q"), None);
    }

    #[test]
    fn long_lists_of_candidates_are_not_searched() {
        let names: Vec<String> = (0..=MAX_CANDIDATES).map(|number| format!("name{number}")).collect();
        let near = |count| nearest("nam7", names.iter().take(count).map(String::as_str));
        assert_eq!(near(MAX_CANDIDATES), Some("name7"));
        assert_eq!(near(MAX_CANDIDATES + 1), None);
    }

    #[test]
    fn nearest_finds_typos_and_refuses_strangers() {
        let names = ["pads", "mode", "value"];
        let find = |name| nearest(name, names.into_iter());
        assert_eq!(find("pds"), Some("pads"));
        assert_eq!(find("psda"), None);
        assert_eq!(find("apds"), Some("pads"));
        assert_eq!(find("Mode"), Some("mode"));
        assert_eq!(find("valeu"), Some("value"));
        assert_eq!(find("q"), None);
        assert_eq!(find(&"x".repeat(10_000)), None);
    }

    #[test]
    fn the_length_of_a_name_limits_the_edits() {
        let is_near = |name: &str, candidate: &str| nearest(name, [candidate].into_iter()).is_some();
        assert!(is_near("shapes", "shams"), "two of six letters");
        assert!(!is_near("shape", "sham"), "two of five letters");
        let longest = "x".repeat(64);
        assert!(is_near(&longest, &longest[1..]));
        assert!(!is_near(&format!("{longest}x"), &longest));
        assert!(!is_near(&longest, &format!("{longest}x")));
    }
}
