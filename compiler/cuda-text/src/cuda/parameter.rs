use super::lexer::{Token, TokenKind, after_angles, after_group, word};
use super::surroundings::{Macro, Surroundings};
use super::{Doubt, Param, Type};

pub(super) fn is_fundamental(word: &str) -> bool {
    matches!(
        word,
        "void" | "bool" | "char" | "short" | "int" | "long" | "signed" | "unsigned" | "float" | "double"
    ) || matches!(word, "wchar_t" | "char8_t" | "char16_t" | "char32_t")
}

pub(super) fn is_number(text: &str, tokens: &[Token]) -> bool {
    let mut words = tokens.iter().map(|token| word(text, Some(token))).filter(|word| *word != "const");
    words.next().is_some_and(|word| {
        is_fundamental(word) && word != "void"
            || matches!(word, "size_t" | "auto" | "int32_t" | "uint32_t" | "int64_t" | "uint64_t")
    }) && !words.any(|word| matches!(word, "*" | "&"))
}

pub(super) fn read(text: &str, tokens: &[Token], around: &Surroundings) -> Result<Param, Doubt> {
    let words = || tokens.iter().map(|token| word(text, Some(token)));
    if let Some(name) = words().find(|word| around.macro_of(word) == Some(Macro::Anything)) {
        return Err(Doubt::Macro(name.to_owned()));
    }
    if words().any(|word| word == "...") {
        return Err(Doubt::Pack);
    }
    let equals = words().position(|word| word == "=").unwrap_or(tokens.len());
    let declared = tokens.get(..equals).unwrap_or_default();
    let (Some(first), Some(last)) = (declared.first(), declared.last()) else { return Err(Doubt::Syntax) };
    let range = first.range.start..last.range.end;
    let mut reader = Reader { text, tokens: declared, around, at: 0 };
    let (base, is_const, is_fundamental) = reader.base()?;
    let is_restrict =
        declared.iter().any(|token| matches!(word(text, Some(token)), "__restrict__" | "__restrict"));
    let mut ty = Type { base, pointers: 0, is_const: false, is_other: false, is_restrict };
    let name = reader.declarator(&mut ty, is_const)?;
    if reader.at < declared.len() {
        return Err(reader.left_over());
    }
    // The word may be a macro.
    if name.is_empty() && ty.pointers == 0 && !is_fundamental {
        return Err(Doubt::Macro(ty.base));
    }
    Ok(Param { name, range, ty })
}

struct Reader<'t> {
    text: &'t str,
    tokens: &'t [Token],
    around: &'t Surroundings,
    at: usize,
}

impl Reader<'_> {
    fn word(&self) -> &str {
        word(self.text, self.tokens.get(self.at))
    }

    fn is_name(&self) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.kind == TokenKind::Word)
    }

    fn left_over(&self) -> Doubt {
        if self.is_name() { Doubt::Macro(self.word().to_owned()) } else { Doubt::Syntax }
    }

    /// Returns whether one is `const`.
    fn qualifiers(&mut self) -> Result<bool, Doubt> {
        let mut is_const = false;
        loop {
            match self.word() {
                "const" => is_const = true,
                "volatile" | "register" | "__restrict__" | "__restrict" | "__grid_constant__"
                | "typename" | "struct" | "class" => {}
                name if self.around.macro_of(name) == Some(Macro::Nothing) => {}
                "[" if word(self.text, self.tokens.get(self.at + 1)) == "[" => {
                    self.skip_group()?;
                    continue;
                }
                _ => return Ok(is_const),
            }
            self.at += 1;
        }
    }

    /// Type before pointers; whether `const` and fundamental.
    fn base(&mut self) -> Result<(String, bool, bool), Doubt> {
        let mut is_const = self.qualifiers()?;
        let mut words: Vec<&str> = Vec::new();
        while is_fundamental(self.word()) {
            words.push(word(self.text, self.tokens.get(self.at)));
            self.at += 1;
            is_const |= self.qualifiers()?;
        }
        if !words.is_empty() {
            return Ok((words.join(" "), is_const, true));
        }
        if matches!(self.word(), "auto" | "decltype" | "enum" | "union" | "alignas" | "__align__") {
            return Err(Doubt::Syntax);
        }
        let mut name = String::new();
        if self.word() == "::" {
            self.at += 1;
        }
        loop {
            if !self.is_name() {
                return Err(Doubt::Syntax);
            }
            name.push_str(self.word());
            self.at += 1;
            if self.word() == "<" {
                let end = after_angles(self.text, self.tokens, self.at).ok_or(Doubt::Syntax)?;
                name.push_str(&spaced(self.text, self.tokens.get(self.at..end).unwrap_or_default()));
                self.at = end;
            }
            if self.word() != "::" {
                break;
            }
            name.push_str("::");
            self.at += 1;
        }
        is_const |= self.qualifiers()?;
        Ok((name, is_const, false))
    }

    /// `is_const` describes the type so far.
    fn declarator(&mut self, ty: &mut Type, mut is_const: bool) -> Result<String, Doubt> {
        loop {
            match self.word() {
                "*" => {
                    self.at += 1;
                    ty.pointers = ty.pointers.saturating_add(1);
                    ty.is_const = is_const;
                    is_const = self.qualifiers()?;
                }
                "&" => {
                    self.at += 1;
                    ty.is_other = true;
                    self.qualifiers()?;
                }
                _ => break,
            }
        }
        let mut name = String::new();
        if self.is_name() {
            name = self.word().to_owned();
            self.at += 1;
        } else if self.word() == "(" {
            // A pointer to a function or arrays.
            return Err(Doubt::Syntax);
        }
        if self.word() == "[" {
            ty.pointers = ty.pointers.saturating_add(1);
            ty.is_const = is_const;
            self.skip_group()?;
            ty.is_other |= self.word() == "[";
            while self.word() == "[" {
                self.skip_group()?;
            }
        }
        Ok(name)
    }

    fn skip_group(&mut self) -> Result<(), Doubt> {
        self.at = after_group(self.text, self.tokens, self.at).ok_or(Doubt::Syntax)?;
        Ok(())
    }
}

fn spaced(text: &str, tokens: &[Token]) -> String {
    let mut out = String::new();
    let mut last_is_word = false;
    for token in tokens {
        let is_word = token.kind != TokenKind::Symbol;
        if is_word && last_is_word {
            out.push(' ');
        }
        out.push_str(word(text, Some(token)));
        if word(text, Some(token)) == "," {
            out.push(' ');
        }
        last_is_word = is_word;
    }
    out
}
