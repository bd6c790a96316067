//! Parses `__global__` declarations. Unknown words may be macros: the kernel is uncertain.

use super::lexer::{Token, TokenKind, after_angles, after_group, at_commas, word};
use super::parameter;
use super::surroundings::{Macro, Surroundings};
use super::{Doubt, Kernel, Namespace, Param, TemplateKind, TemplateParam};

pub(super) enum Declarator {
    /// Kernel, without namespaces.
    Kernel(Box<Kernel>),
    /// `template __global__ void k<float>(...)`.
    Instantiation,
}

/// Returns `None` for unknown tokens.
pub(super) fn read(text: &str, tokens: &[Token], around: &Surroundings) -> Option<Declarator> {
    Reader { text, tokens, around, at: 0, template: None, doubt: None }.read()
}

struct Reader<'t> {
    text: &'t str,
    tokens: &'t [Token],
    around: &'t Surroundings,
    at: usize,
    template: Option<Vec<TemplateParam>>,
    doubt: Option<Doubt>,
}

struct Name {
    namespaces: Vec<Namespace>,
    at: usize,
    open: usize,
    /// Follows the closing parenthesis.
    end: usize,
}

impl Reader<'_> {
    fn word(&self, at: usize) -> &str {
        word(self.text, self.tokens.get(at))
    }

    fn doubt(&mut self, doubt: Doubt) {
        self.doubt.get_or_insert(doubt);
    }

    fn read(mut self) -> Option<Declarator> {
        while self.at < self.tokens.len() {
            match self.word(self.at) {
                "template" if self.word(self.at + 1) != "<" => return Some(Declarator::Instantiation),
                "template" => self.template()?,
                "extern" if self.word(self.at + 1).starts_with('"') => self.at += 2,
                "static" | "inline" | "extern" | "constexpr" | "void" | "auto" | "__global__"
                | "__noinline__" | "__inline__" | "__forceinline__" | "__device_builtin__" => self.at += 1,
                "__launch_bounds__" | "__maxnreg__" | "__block_size__" | "__cluster_dims__"
                | "__attribute__" | "__declspec" | "__align__" | "alignas" => match self.word(self.at + 1) {
                    "(" => self.at = after_group(self.text, self.tokens, self.at + 1)?,
                    _ => {
                        self.doubt(Doubt::Syntax);
                        self.at += 1;
                    }
                },
                "[" => self.at = after_group(self.text, self.tokens, self.at)?,
                "::" => self.at += 1,
                name if self.around.macro_of(name) == Some(Macro::Nothing) => self.at += 1,
                _ => match self.name() {
                    Some(name) => return Some(self.kernel(name)),
                    None if self.doubt.is_none() => return None,
                    None => {}
                },
            }
        }
        None
    }

    /// Returns `None` if unterminated.
    fn template(&mut self) -> Option<()> {
        let open = self.at + 1;
        let end = after_angles(self.text, self.tokens, open)?;
        if self.template.is_some() {
            self.doubt(Doubt::Syntax);
        }
        let inner = self.tokens.get(open + 1..end - 1)?;
        let mut params = Vec::new();
        for part in at_commas(self.text, inner).unwrap_or_default() {
            params.push(self.template_param(part));
        }
        if inner.is_empty() {
            self.doubt(Doubt::Specialization);
        } else if params.is_empty() {
            self.doubt(Doubt::Syntax);
        }
        self.template = Some(params);
        self.at = end;
        Some(())
    }

    fn template_param(&mut self, tokens: &[Token]) -> TemplateParam {
        let text = self.text;
        let words = || tokens.iter().map(|token| word(text, Some(token)));
        if words().any(|word| word == "...") {
            self.doubt(Doubt::Pack);
        }
        if let Some(name) = words().find(|word| self.around.macro_of(word) == Some(Macro::Anything)) {
            self.doubt(Doubt::Macro(name.to_owned()));
        }
        let equals = words().position(|word| word == "=");
        let before = tokens.get(..equals.unwrap_or(tokens.len())).unwrap_or_default();
        let is_name = |token: &&Token| token.kind == TokenKind::Word;
        let kind = match word(text, before.first()) {
            "typename" | "class" => TemplateKind::Type,
            _ if parameter::is_number(text, before) => TemplateKind::Value,
            _ => TemplateKind::Other,
        };
        // The first word is the type, `typename` or `class`.
        let name = before.iter().skip(1).rev().find(is_name).map(|token| word(text, Some(token)));
        let name = name.filter(|name| !parameter::is_fundamental(name)).unwrap_or_default().to_owned();
        TemplateParam { name, kind, has_default: equals.is_some() }
    }

    /// Unknown tokens become a doubt, or end the declaration.
    fn name(&mut self) -> Option<Name> {
        let mut parts = Vec::new();
        let mut at = self.at;
        while self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Word) {
            parts.push(at);
            at += 1;
            if self.word(at) != "::" {
                break;
            }
            at += 1;
        }
        let Some(&last) = parts.last() else {
            self.doubt(Doubt::Syntax);
            self.at += 1;
            return None;
        };
        let mut open = at;
        if self.word(open) == "<" {
            // `k<float>(` specializes; other words are types.
            self.doubt(Doubt::Specialization);
            let Some(end) = after_angles(self.text, self.tokens, open) else {
                self.at = self.tokens.len();
                return None;
            };
            open = end;
        }
        if self.word(open) != "(" {
            let name = self.word(last).to_owned();
            self.doubt(Doubt::Macro(name));
            self.at = open.max(self.at + 1);
            return None;
        }
        let Some(end) = after_group(self.text, self.tokens, open) else {
            self.at = self.tokens.len();
            return None;
        };
        if !self.ends_after(end) {
            let name = self.word(last).to_owned();
            self.doubt(Doubt::Macro(name));
            self.at = end;
            return None;
        }
        let namespaces = parts[..parts.len() - 1].iter();
        let namespaces = namespaces
            .map(|&at| Namespace { name: self.word(at).to_owned(), is_transparent: false })
            .collect();
        Some(Name { namespaces, at: last, open, end })
    }

    fn ends_after(&mut self, end: usize) -> bool {
        let rest = self.tokens.get(end..).unwrap_or_default();
        let mut words = rest.iter().map(|token| word(self.text, Some(token)));
        let is_end = words.clone().all(|word| matches!(word, "noexcept" | "->" | "void"));
        // Constraints are not parsed.
        is_end || words.next() == Some("requires")
    }

    fn kernel(mut self, name: Name) -> Declarator {
        let inner = self.tokens.get(name.open + 1..name.end - 1).unwrap_or_default();
        let params = self.params(inner);
        let constrained = self.tokens.iter().any(|token| word(self.text, Some(token)) == "requires");
        if constrained {
            self.doubt(Doubt::Syntax);
        }
        let own = self.word(name.at).to_owned();
        if self.around.macro_of(&own).is_some() {
            self.doubt(Doubt::Macro(own.clone()));
        }
        let range = |first: usize, last: usize| {
            let start = self.tokens.get(first).map_or(0, |token| token.range.start);
            start..self.tokens.get(last).map_or(start, |token| token.range.end)
        };
        let (name_range, params_range) = (range(name.at, name.at), range(name.open, name.end - 1));
        Declarator::Kernel(Box::new(Kernel {
            name: own,
            name_range,
            namespaces: name.namespaces,
            template: self.template,
            params,
            params_range,
            has_body: false,
            doubt: self.doubt,
        }))
    }

    fn params(&mut self, tokens: &[Token]) -> Vec<Param> {
        let Some(parts) = at_commas(self.text, tokens) else {
            self.doubt(Doubt::Syntax);
            return Vec::new();
        };
        if let [only] = parts.as_slice()
            && written(self.text, only) == "void"
        {
            return Vec::new();
        }
        let mut params = Vec::new();
        for part in parts {
            match parameter::read(self.text, part, self.around) {
                Ok(param) => params.push(param),
                Err(doubt) => self.doubt(doubt),
            }
        }
        params
    }
}

fn written<'t>(text: &'t str, tokens: &[Token]) -> &'t str {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return "" };
    text.get(first.range.start..last.range.end).unwrap_or_default()
}
