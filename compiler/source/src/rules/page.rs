//! A rule's page in a Markdown subset: title, second-level headings, paragraphs, lists, fenced blocks; unwrapped.

use crate::diagnostic::Code;

/// Rule with its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Rule code.
    pub code: Code,
    /// Markdown page.
    pub page: &'static str,
}

impl Rule {
    /// Returns the title.
    #[must_use]
    pub fn title(&self) -> &'static str {
        let line = self.page.lines().next().unwrap_or_default();
        line.split_once(": ").map_or(line, |(_, title)| title).trim()
    }

    /// Formats the page for a terminal.
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
    fn a_page_has_a_title() {
        assert_eq!(RULE.title(), "a title");
    }

    #[test]
    fn a_terminal_shows_it_without_signs() {
        assert_eq!(
            RULE.plain(),
            "C0001: a title\n==============\n\nWords.\n\nA heading\n---------\n\n    # no heading\n\n    b = 1\n\nMore:\n\n    void f();\n"
        );
    }
}
