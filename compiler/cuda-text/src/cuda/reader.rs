use std::ops::Range;

use super::declaration::{self, Declarator};
use super::lexer::{Lexed, TokenKind, after_group, lex, word};
use super::surroundings::Surroundings;
use super::{Doubt, Kernels, Namespace, name, parameter};

/// Reads a text's kernels.
#[must_use]
pub fn read(text: &str) -> Kernels {
    let lexed = lex(text);
    let around = Surroundings::read(text, &lexed);
    let is_broken = around.is_broken;
    let mut reader = Reader {
        text,
        lexed: &lexed,
        around,
        scopes: Vec::new(),
        namespaces: Vec::new(),
        seen: 0,
        is_broken,
        found: Kernels::default(),
    };
    reader.read();
    reader.finish()
}

/// Each kernel copies the names.
const MAX_NAMESPACES: usize = 32;

struct Reader<'t> {
    text: &'t str,
    lexed: &'t Lexed,
    around: Surroundings,
    /// Names per open brace.
    scopes: Vec<usize>,
    namespaces: Vec<Namespace>,
    /// Parsed `__global__`.
    seen: usize,
    /// All is uncertain.
    is_broken: bool,
    found: Kernels,
}

#[derive(Default, Clone, Copy)]
struct Open {
    start: usize,
    globals: usize,
    /// Constraints may contain braces.
    is_constrained: bool,
}

impl<'t> Reader<'t> {
    fn word(&self, at: usize) -> &'t str {
        word(self.text, self.lexed.tokens.get(at))
    }

    fn read(&mut self) {
        let mut at = 0;
        let mut open = Open::default();
        let from = |start: usize| Open { start, ..Open::default() };
        while at < self.lexed.tokens.len() {
            let mut next = at + 1;
            match self.word(at) {
                "(" | "[" => next = self.after_group(at),
                "requires" | "concept" => open.is_constrained = true,
                "__global__" => open.globals += 1,
                ";" => {
                    self.declaration(open, at, false);
                    open = from(next);
                }
                "{" if !open.is_constrained && self.enter(open.start..at) => open = from(next),
                "{" => {
                    next = self.after_group(at);
                    if !open.is_constrained || open.globals > 0 {
                        self.declaration(open, at, true);
                        open = from(next);
                    }
                }
                "}" => {
                    self.leave();
                    open = from(next);
                }
                _ => {}
            }
            at = next;
        }
    }

    fn after_group(&mut self, open: usize) -> usize {
        let end = after_group(self.text, &self.lexed.tokens, open);
        self.is_broken |= end.is_none();
        end.unwrap_or(self.lexed.tokens.len())
    }

    fn enter(&mut self, head: Range<usize>) -> bool {
        let mut at = head.start;
        if self.word(at) == "extern" && head.len() == 2 {
            self.scopes.push(0);
            return true;
        }
        let mut is_inline = false;
        if self.word(at) == "inline" {
            is_inline = true;
            at += 1;
        }
        if self.word(at) != "namespace" || at >= head.end {
            return false;
        }
        let mut names = Vec::new();
        at += 1;
        while at < head.end {
            let name = self.word(at).to_owned();
            match name.as_str() {
                "inline" => is_inline = true,
                "::" => {}
                "[" => {
                    at = self.after_group(at);
                    continue;
                }
                _ => {
                    let is_name =
                        self.lexed.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Word);
                    self.is_broken |= !is_name || self.around.macro_of(&name).is_some();
                    if is_name {
                        names.push(Namespace { name, is_transparent: is_inline });
                    }
                    is_inline = false;
                }
            }
            at += 1;
        }
        if names.is_empty() {
            names.push(Namespace { name: String::new(), is_transparent: true });
        }
        // A conditional namespace may differ or be missing.
        self.is_broken |= self.around.is_conditional(&(head.start..head.end + 1));
        if self.namespaces.len() + names.len() > MAX_NAMESPACES {
            self.is_broken = true;
            names.clear();
        }
        self.scopes.push(names.len());
        self.namespaces.extend(names);
        true
    }

    fn leave(&mut self) {
        match self.scopes.pop() {
            Some(names) => self.namespaces.truncate(self.namespaces.len().saturating_sub(names)),
            None => self.is_broken = true,
        }
    }

    fn declaration(&mut self, open: Open, end: usize, has_body: bool) {
        let range = open.start..end;
        let head = self.lexed.tokens.get(range.clone()).unwrap_or_default();
        if open.globals == 0 {
            self.other(range);
            return;
        }
        match declaration::read(self.text, head, &self.around) {
            Some(Declarator::Kernel(mut kernel)) => {
                self.seen += open.globals;
                kernel.has_body = has_body;
                let mut namespaces = self.namespaces.clone();
                namespaces.append(&mut kernel.namespaces);
                kernel.namespaces = namespaces;
                // Includes the brace or semicolon.
                if self.around.is_conditional(&(range.start..range.end + 1)) {
                    kernel.doubt = Some(Doubt::Conditional);
                }
                self.found.kernels.push(*kernel);
            }
            Some(Declarator::Instantiation) => self.seen += open.globals,
            None => {}
        }
    }

    fn function_name(&self, range: Range<usize>) -> Option<&'t str> {
        let tokens = self.lexed.tokens.get(range).unwrap_or_default();
        let mut pairs = tokens.iter().zip(tokens.iter().skip(1));
        let name = pairs.find(|(name, open)| {
            name.kind == TokenKind::Word
                && word(self.text, Some(open)) == "("
                && !word(self.text, Some(name)).starts_with("__")
        });
        name.map(|(name, _)| word(self.text, Some(name)))
    }

    fn other(&mut self, range: Range<usize>) {
        match self.word(range.start) {
            // Type aliases import no names.
            "using" if self.word(range.start + 2) == "=" => {}
            // `using namespace a;`, `using a::b;`, `namespace a = b;`
            "using" | "namespace" => self.found.has_imports = true,
            _ => {
                if let Some(name) = self.function_name(range) {
                    self.found.functions.push(name.to_owned());
                }
            }
        }
    }

    fn own_types(&self) -> Vec<String> {
        let mut own: Vec<String> = Vec::new();
        for at in 0..self.lexed.tokens.len() {
            let name = self.word(at);
            if parameter::is_fundamental(name) || !name::is_known_type(name) {
                continue;
            }
            let before = at.checked_sub(1).map_or("", |before| self.word(before));
            let is_declared = matches!(before, "struct" | "class" | "union" | "enum" | "using")
                || self.word(at + 1) == ";"
                || self.around.macro_of(name).is_some();
            if is_declared && !own.iter().any(|known| known == name) {
                own.push(name.to_owned());
            }
        }
        own
    }

    fn finish(mut self) -> Kernels {
        let is_global = |token| word(self.text, Some(token)) == "__global__";
        let all = self.lexed.tokens.iter().filter(|token| is_global(token)).count();
        // `__attribute__((global))`
        let is_attribute =
            |at: usize| self.word(at) == "(" && self.word(at + 1) == "global" && self.word(at + 2) == ")";
        let has_attribute = (0..self.lexed.tokens.len()).any(is_attribute);
        self.is_broken |= !self.scopes.is_empty();
        let own_types = self.own_types();
        let mut found = self.found;
        found.own_types = own_types;
        found.doubts = std::mem::take(&mut self.around.doubts);
        if self.is_broken || all > self.seen || has_attribute {
            found.doubts.push(Doubt::Syntax);
        }
        if self.is_broken {
            for kernel in &mut found.kernels {
                kernel.doubt = Some(Doubt::Syntax);
            }
        }
        found
    }
}
