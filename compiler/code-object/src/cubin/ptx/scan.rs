//! One way over a PTX text: what stands at its top level.
//!
//! Owns where entries begin and end. Each byte is looked at a bounded number of times: what belongs to an entry is not looked through for
//! another one. Reads integers and no type.

use std::collections::HashMap;

use super::{CubinError, Entry, entry};

/// What stands at the beginning of a text, as it is written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head<'t> {
    /// Behind `.version`.
    pub(super) version: Option<&'t str>,
    /// Behind `.target`: the first of the list.
    pub(super) target: Option<&'t str>,
}

/// What a text has.
#[derive(Debug)]
pub(super) struct Module<'t> {
    pub(super) head: Head<'t>,
    pub(super) address_bits: u32,
    /// Each symbol once; of a declaration and a definition the definition.
    pub(super) entries: Vec<Entry<'t>>,
    /// The names of `.extern .func`.
    pub(super) declared: Vec<&'t str>,
    /// Functions that are there: their names and bodies.
    pub(super) functions: Vec<(&'t str, &'t str)>,
    pub(super) variables: Vec<Declaration<'t>>,
}

/// A declaration of variables of the whole module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declaration<'t> {
    /// `.global`, `.const`, `.shared`.
    pub(super) space: &'t str,
    /// Whether another file is to have them; of shared memory, the launch.
    pub(super) is_extern: bool,
    /// What stands behind the space, up to the semicolon.
    pub(super) text: &'t str,
}

/// What a text has, or what could be read of its beginning and why the rest could not. It has no comments, and nothing between quotes.
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
    // The function whose body may follow.
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

/// The words and signs of a text.
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

fn is_sign(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'{' | b'}' | b'[' | b']' | b';' | b',' | b'=' | b'"')
}

/// What cannot stand between an entry's name and its body: something else begins there.
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

    /// The next sign, or the next word: all up to a blank or a sign.
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

    /// The next token, which stays there.
    pub(super) fn peek(&self) -> Option<&'t str> {
        Tokens { text: self.text, at: self.at }.next()
    }

    /// The next word; nothing where a sign stands there.
    pub(super) fn word(&mut self) -> Option<&'t str> {
        self.peek().filter(|token| !token.bytes().next().is_some_and(is_sign))?;
        self.next()
    }

    /// What stands up to the parenthesis that closes, behind the one that opens; nothing where none does.
    pub(super) fn parentheses(&mut self) -> Option<&'t str> {
        let rest = self.text.get(self.at..)?;
        // Nothing but another entry's body has these, which is then in the place of the parenthesis.
        let end = rest.find([')', '{', ';']).unwrap_or(rest.len());
        self.at += end;
        let inner = rest.get(..end)?;
        rest.get(end..)?.starts_with(')').then(|| self.at += 1)?;
        Some(inner)
    }

    /// What stands between the brace that was read and its partner, or the end.
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

    /// The name of a function: what it gives back, and attributes, stand before it.
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

    /// What stands up to the semicolon.
    fn statement(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.find(';').unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    /// An entry from its name on.
    fn entry(&mut self) -> Option<Result<Entry<'t>, CubinError>> {
        let name = self.word().filter(|word| !begins_another(word))?;
        let mut list = "";
        if self.peek() == Some("(") {
            self.next();
            let Some(inner) = self.parentheses() else {
                return Some(Err(CubinError::Ptx(format!("the parameters of `{name}` do not end"))));
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
                // A `.pragma` ends with what stands between quotes and a semicolon; it is no end of the entry.
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

/// A number as PTX writes it (PTX ISA 9.0, "Integer Constants"): `64`, `64U`, `0x40`, `0100`, `0b1000000`.
pub(super) fn integer(word: &str) -> Option<u32> {
    let word = word.strip_suffix('U').unwrap_or(word);
    let of = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| word.strip_prefix(prefix));
    let (digits, radix) = match (of(["0x", "0X"]), of(["0b", "0B"])) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 2),
        _ if word.len() > 1 && word.starts_with('0') => (word, 8),
        _ => (word, 10),
    };
    // `from_str_radix` takes a sign too.
    digits.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(())?;
    u32::from_str_radix(digits, radix).ok()
}
