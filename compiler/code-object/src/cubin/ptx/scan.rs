//! Scans the top level of PTX for entries, in linear time.

use std::collections::HashMap;

use super::{CubinError, Entry, entry};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'t> {
    /// Word after `.version`.
    pub(super) version: Option<&'t str>,
    pub(super) target: Option<&'t str>,
}

#[derive(Debug)]
pub(super) struct Module<'t> {
    pub(super) head: Head<'t>,
    pub(super) address_bits: u32,
    /// Entries, unique by symbol; definitions replace declarations.
    pub(super) entries: Vec<Entry<'t>>,
    pub(super) declared: Vec<&'t str>,
    pub(super) functions: Vec<(&'t str, &'t str)>,
    pub(super) variables: Vec<Declaration<'t>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Declaration<'t> {
    pub(super) space: &'t str,
    /// `.extern`: another file defines it, or the launch if shared memory.
    pub(super) is_extern: bool,
    /// From the state space to the semicolon.
    pub(super) text: &'t str,
}

/// Parses a text without comments and quotes; errors include the readable head.
pub(super) fn module(text: &str) -> Result<Module<'_>, (Head<'_>, CubinError)> {
    let mut tokens = Tokens::new(text);
    let mut module = Module {
        head: Head::default(),
        address_bits: 32,
        entries: Vec::new(),
        declared: Vec::new(),
        functions: Vec::new(),
        variables: Vec::new(),
    };
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut error = None;
    let mut is_extern = false;
    let mut function = None;
    while let Some(token) = tokens.next() {
        match token {
            "{" => {
                let body = tokens.braces();
                module.functions.extend(function.take().map(|name| (name, body)));
            }
            ";" => (is_extern, function) = (false, None),
            ".version" => module.head.version = module.head.version.or(tokens.word()),
            ".target" => module.head.target = module.head.target.or(tokens.word()),
            ".address_size" => {
                module.address_bits = tokens.word().and_then(integer).unwrap_or(32);
            }
            ".extern" => is_extern = true,
            ".func" if is_extern => {
                module.declared.extend(tokens.function());
                is_extern = false;
            }
            ".func" => function = tokens.function(),
            ".shared" | ".global" | ".const" => {
                module.variables.push(Declaration { space: token, is_extern, text: tokens.statement() });
                is_extern = false;
            }
            ".entry" => {
                (is_extern, function) = (false, None);
                match tokens.entry() {
                    Some(Ok(new)) => match known.get(&new.facts.symbol) {
                        Some(index) => {
                            if let Some(old) = module.entries.get_mut(*index).filter(|old| old.body.is_none())
                            {
                                *old = new;
                            }
                        }
                        None => {
                            known.insert(new.facts.symbol.clone(), module.entries.len());
                            module.entries.push(new);
                        }
                    },
                    Some(Err(wrong)) => error = error.or(Some(wrong)),
                    None => {}
                }
            }
            _ => {}
        }
    }
    match error {
        Some(error) => Err((module.head, error)),
        None => Ok(module),
    }
}

pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

fn is_sign(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'{' | b'}' | b'[' | b']' | b';' | b',' | b'=' | b'"')
}

fn begins_another(word: &str) -> bool {
    matches!(
        word,
        ".entry" | ".func" | ".visible" | ".extern" | ".weak" | ".version" | ".target" | ".global" | ".const"
    )
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Tokens<'t> {
        Tokens { text, at: 0 }
    }

    pub(super) fn next(&mut self) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        let from = self.at;
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || is_sign(*byte);
        self.at = match bytes.get(from..)?.iter().position(is_end) {
            Some(0) => from + 1,
            Some(length) => from + length,
            None => bytes.len(),
        };
        self.text.get(from..self.at)
    }

    pub(super) fn peek(&self) -> Option<&'t str> {
        Tokens { text: self.text, at: self.at }.next()
    }

    pub(super) fn word(&mut self) -> Option<&'t str> {
        self.peek().filter(|token| !token.bytes().next().is_some_and(is_sign))?;
        self.next()
    }

    pub(super) fn parentheses(&mut self) -> Option<&'t str> {
        let rest = self.text.get(self.at..)?;
        // Unclosed lists end before a body or with the statement.
        let end = rest.find([')', '{', ';']).unwrap_or(rest.len());
        self.at += end;
        let inner = rest.get(..end)?;
        rest.get(end..)?.starts_with(')').then(|| self.at += 1)?;
        Some(inner)
    }

    /// Up to the matching brace or the end.
    pub(super) fn braces(&mut self) -> &'t str {
        let from = self.at;
        let mut depth = 1_usize;
        for byte in self.text.bytes().skip(from) {
            self.at += 1;
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return self.text.get(from..self.at - 1).unwrap_or_default();
            }
        }
        self.text.get(from..).unwrap_or_default()
    }

    fn function(&mut self) -> Option<&'t str> {
        loop {
            match self.peek()? {
                "(" => {
                    self.next();
                    self.parentheses()?;
                }
                word if word.starts_with('.') && !begins_another(word) => {
                    self.next();
                }
                _ => return self.word().filter(|word| !begins_another(word)),
            }
        }
    }

    fn statement(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.find(';').unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn entry(&mut self) -> Option<Result<Entry<'t>, CubinError>> {
        let name = self.word().filter(|word| !begins_another(word))?;
        let mut list = "";
        if self.peek() == Some("(") {
            self.next();
            let Some(inner) = self.parentheses() else {
                return Some(Err(CubinError::Ptx(format!("the parameter list of `{name}` is not closed"))));
            };
            list = inner;
        }
        let from = self.at;
        let mut end = from;
        let (mut before, mut body) = ("", None);
        while let Some(token) = self.peek() {
            match token {
                "{" => {
                    self.next();
                    body = Some(self.braces());
                    break;
                }
                // A `.pragma` ends with quotes and a semicolon.
                ";" if before != "\"" => break,
                word if begins_another(word) => break,
                _ => {
                    before = token;
                    self.next();
                    end = self.at;
                }
            }
        }
        Some(entry(name, list, self.text.get(from..end).unwrap_or_default(), body))
    }
}

/// Parses `64`, `64U`, `0x40`, `0100`, `0b1000000` (PTX ISA 9.0, "Integer Constants").
pub(super) fn integer(word: &str) -> Option<u32> {
    let word = word.strip_suffix('U').unwrap_or(word);
    let of = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| word.strip_prefix(prefix));
    let (digits, radix) = match (of(["0x", "0X"]), of(["0b", "0B"])) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ if word.len() > 1 && word.starts_with('0') => (word, 8),
        _ => (word, 10),
    };
    // `from_str_radix` accepts signs.
    digits.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(())?;
    u32::from_str_radix(digits, radix).ok()
}
