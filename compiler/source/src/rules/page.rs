//! A rule's page: its title, its examples, and how a terminal shows it.
//!
//! Owns the little of Markdown that the pages use: one title, headings of the second level, paragraphs, lists and fenced
//! blocks. Never wraps: the pages are written for lines of that length.

use crate::diagnostic::Code;

/// A rule with its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its code.
    pub code: Code,
    /// The page, in Markdown.
    pub page: &'static str,
}

/// What an example is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// A manifest.
    Toml,
    /// The CUDA source that manifests of the page name.
    Cuda,
    /// The PTX that they name.
    Ptx,
}

/// A fenced block of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// What it is written in.
    pub language: Language,
    /// Whether it breaks the rule; absent where it belongs to both, to what breaks it and what does not.
    pub is_bad: Option<bool>,
    /// All of it.
    pub text: &'static str,
}

impl Rule {
    /// What is wrong, in a few words.
    #[must_use]
    pub fn title(&self) -> &'static str {
        let line = self.page.lines().next().unwrap_or_default();
        line.split_once(": ").map_or(line, |(_, title)| title).trim()
    }

    /// The examples, in the page's order. Several bad manifests belong together, as several good ones do.
    #[must_use]
    pub fn examples(&self) -> Vec<Example> {
        let mut examples = Vec::new();
        let mut rest = self.page;
        while let Some((_, from)) = rest.split_once("\n```") {
            let Some((label, body)) = from.split_once('\n') else { break };
            let Some((text, behind)) = body.split_once("\n```") else { break };
            let mut words = label.split_whitespace();
            let language = match words.next() {
                Some("toml") => Some(Language::Toml),
                Some("cuda") => Some(Language::Cuda),
                Some("ptx") => Some(Language::Ptx),
                _ => None,
            };
            let is_bad = words.next().map(|word| word == "bad");
            examples.extend(language.map(|language| Example { language, is_bad, text }));
            rest = behind;
        }
        examples
    }

    /// The page for a terminal: headings are underlined, code is indented.
    #[must_use]
    pub fn plain(&self) -> String {
        let mut text = String::with_capacity(self.page.len() + 256);
        let mut in_code = false;
        let mut after_fence = false;
        for line in self.page.lines() {
            if line.starts_with("```") {
                in_code = !in_code;
                after_fence = in_code;
                continue;
            }
            let heading = if in_code { None } else { heading(line) };
            match heading {
                Some((words, rule)) => {
                    let ruler = rule.repeat(words.chars().count());
                    text.push_str(&format!("{words}\n{ruler}\n"));
                }
                None if in_code && !line.is_empty() => text.push_str(&format!("    {line}\n")),
                None if line.is_empty() && after_fence => {}
                None => text.push_str(&format!("{line}\n")),
            }
            after_fence = false;
        }
        text
    }
}

/// The words of a heading and what is under them.
fn heading(line: &str) -> Option<(&str, &'static str)> {
    let sub = line.strip_prefix("## ").map(|words| (words, "-"));
    sub.or_else(|| line.strip_prefix("# ").map(|words| (words, "=")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        code: Code("C0001"),
        page: "# C0001: a title\n\nWords.\n\n## A heading\n\n```toml bad\n# no heading\n\nb = 1\n```\n\nMore:\n\n```cuda\nvoid f();\n```\n",
    };

    #[test]
    fn a_page_has_a_title_and_examples() {
        assert_eq!(RULE.title(), "a title");
        assert_eq!(
            RULE.examples(),
            [
                Example { language: Language::Toml, is_bad: Some(true), text: "# no heading\n\nb = 1" },
                Example { language: Language::Cuda, is_bad: None, text: "void f();" },
            ]
        );
    }

    #[test]
    fn a_terminal_shows_it_without_signs() {
        assert_eq!(
            RULE.plain(),
            "C0001: a title\n==============\n\nWords.\n\nA heading\n---------\n\n    # no heading\n\n    b = 1\n\nMore:\n\n    void f();\n"
        );
    }
}
