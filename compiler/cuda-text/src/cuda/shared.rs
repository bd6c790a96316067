//! Which kernels use shared memory whose size the launch gives, and constant memory that nothing fills.
//!
//! Owns finding `extern __shared__` and `__constant__` in a text and what leads to them: by names alone, so what a name could hide is left
//! out.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::lexer::{Lexed, Token, TokenKind, word};
use super::surroundings::Surroundings;

/// A function or a class with its braces.
pub(super) struct Body {
    /// The kernel that it is, by its index.
    pub(super) kernel: Option<usize>,
    /// Its name; empty where it has none.
    pub(super) name: String,
    /// The tokens before the braces.
    pub(super) head: Range<usize>,
    /// The braces and what is between them.
    pub(super) tokens: Range<usize>,
}

/// The name of the function that a declaration declares, if it is one.
pub(super) fn function_name<'t>(text: &'t str, lexed: &Lexed, range: Range<usize>) -> Option<&'t str> {
    let tokens = lexed.tokens.get(range).unwrap_or_default();
    let mut pairs = tokens.iter().zip(tokens.iter().skip(1));
    let name = pairs.find(|(name, open)| {
        name.kind == TokenKind::Word
            && word(text, Some(open)) == "("
            && !word(text, Some(name)).starts_with("__")
    });
    name.map(|(name, _)| word(text, Some(name)))
}

/// A variable, by which memory is named.
struct Array {
    /// The token `__shared__` or `__constant__`.
    at: usize,
    name: String,
    place: Range<usize>,
}

/// The arrays `extern __shared__ T name[]`, by name, with their declarations. Empty if the text has other shared memory as well: an
/// access beyond an array without bytes may then stay within the block's memory.
pub(super) fn dynamic(
    text: &str,
    lexed: &Lexed,
    around: &Surroundings,
    bodies: &[Body],
) -> HashMap<String, Range<usize>> {
    let reader = Reader { text, lexed, around, bodies };
    let all = (0..lexed.tokens.len()).filter(|at| reader.word(*at) == "__shared__");
    let arrays: Option<Vec<Array>> = all.map(|at| reader.array(at)).collect();
    arrays.unwrap_or_default().into_iter().map(|array| (array.name, array.place)).collect()
}

/// The kernels that use constant memory for certain that has no value in the text, by their index, and the variable.
pub(super) fn unfilled(
    text: &str,
    lexed: &Lexed,
    around: &Surroundings,
    bodies: &[Body],
) -> BTreeMap<usize, Range<usize>> {
    let reader = Reader { text, lexed, around, bodies };
    let all = 0..lexed.tokens.len();
    let variables = all.filter(|at| reader.word(*at) == "__constant__").filter_map(|at| reader.constant(at));
    let variables: Vec<Array> = variables.collect();
    if variables.is_empty() { BTreeMap::new() } else { reader.users(&variables) }
}

/// Whether a word stands in the type of a plain number or a vector of CUDA's: `unsigned`, `float4`, `int32_t`.
fn is_of_number(word: &str) -> bool {
    let stem =
        word.strip_suffix("_t").unwrap_or(word).trim_end_matches(|letter: char| letter.is_ascii_digit());
    let stems = [
        "const",
        "static",
        "unsigned",
        "signed",
        "bool",
        "char",
        "short",
        "int",
        "long",
        "longlong",
        "float",
        "double",
        "uchar",
        "ushort",
        "uint",
        "ulong",
        "ulonglong",
        "half",
        "__half",
        "__nv_bfloat",
    ];
    stems.contains(&stem)
}

struct Reader<'t> {
    text: &'t str,
    lexed: &'t Lexed,
    around: &'t Surroundings,
    bodies: &'t [Body],
}

impl<'t> Reader<'t> {
    fn word(&self, at: usize) -> &'t str {
        word(self.text, self.lexed.tokens.get(at))
    }

    /// `extern __shared__ T name[]` that no condition takes away.
    fn array(&self, at: usize) -> Option<Array> {
        // What can stand in a declaration before and after.
        const MOST: usize = 24;
        let ends = |at: &usize| matches!(self.word(*at), ";" | "{" | "}");
        let start =
            (at.saturating_sub(MOST)..at).rev().find(ends).map_or(at.saturating_sub(MOST), |end| end + 1);
        let first = (start..at + 2).find(|at| self.word(*at) == "extern")?;
        let open = (at..at + MOST).take_while(|at| !ends(at)).find(|at| self.word(*at) == "[")?;
        let name = self.word(open.checked_sub(1)?);
        if self.around.is_conditional(&(first..open + 1)) || self.around.macro_of(name).is_some() {
            return None;
        }
        let from = self.lexed.tokens.get(first.min(at))?.range.start;
        let to = self.lexed.tokens.get(open - 1)?.range.end;
        Some(Array { at, name: name.to_owned(), place: from..to })
    }

    /// `__constant__ T name[];` without a value.
    fn constant(&self, at: usize) -> Option<Array> {
        // What can stand in a declaration.
        const MOST: usize = 24;
        let is = |at: usize, signs: &[&str]| signs.contains(&self.word(at));
        let end =
            (at..at + MOST).find(|at| is(*at, &[";", "=", "{", "}", "("])).filter(|end| is(*end, &[";"]))?;
        let behind = (at..=end).find(|at| is(*at, &["[", ",", ";"]))?;
        let before = (at.saturating_sub(MOST)..at).rev().take_while(|at| !is(*at, &[";", "{", "}"]));
        let is_elsewhere = before.chain(at..end).any(|at| self.word(at) == "extern");
        let name = self.word(behind.checked_sub(1)?);
        // A class may bring its values along.
        if !(at + 1..behind - 1).all(|at| is_of_number(self.word(at))) {
            return None;
        }
        if is_elsewhere || self.around.is_conditional(&(at..end)) || self.around.macro_of(name).is_some() {
            return None;
        }
        let from = self.lexed.tokens.get(at)?.range.start;
        let to = self.lexed.tokens.get(behind - 1)?.range.end;
        Some(Array { at, name: name.to_owned(), place: from..to })
    }

    fn users(&self, arrays: &[Array]) -> BTreeMap<usize, Range<usize>> {
        let mentions = self.mentions(arrays);
        let mut declared: HashMap<&str, usize> = HashMap::new();
        for body in self.bodies {
            *declared.entry(&body.name).or_default() += 1;
        }
        let chooses: Vec<bool> = self.bodies.iter().map(|body| self.chooses(body)).collect();
        let mut found: Vec<Option<Range<usize>>> = vec![None; self.bodies.len()];
        let mut open: Vec<(usize, Range<usize>)> = Vec::new();
        for array in arrays {
            // Bodies stand one after the other.
            let index = self.bodies.partition_point(|body| body.tokens.end <= array.at);
            match self.bodies.get(index).filter(|body| body.tokens.contains(&array.at)) {
                Some(_) => open.push((index, array.place.clone())),
                None => {
                    let users = mentions.get(array.name.as_str()).into_iter().flatten();
                    open.extend(users.map(|user| (*user, array.place.clone())));
                }
            }
        }
        let mut using: HashMap<&str, usize> = HashMap::new();
        while let Some((index, place)) = open.pop() {
            let (Some(body), Some(known)) = (self.bodies.get(index), found.get_mut(index)) else { continue };
            if known.is_some() || chooses.get(index) == Some(&true) {
                continue;
            }
            *known = Some(place.clone());
            let count = using.entry(&body.name).or_default();
            *count += 1;
            // Of several functions of one name it is not known which is called.
            if body.kernel.is_none() && declared.get(body.name.as_str()) == Some(count) {
                let users = mentions.get(body.name.as_str()).into_iter().flatten();
                open.extend(users.map(|user| (*user, place.clone())));
            }
        }
        let of_kernels = self.bodies.iter().zip(found);
        of_kernels.filter_map(|(body, place)| Some((body.kernel?, place?))).collect()
    }

    /// Whether a constant may leave a part of a body out.
    fn chooses(&self, body: &Body) -> bool {
        body.tokens.clone().any(|at| self.word(at) == "if" && self.word(at + 1) == "constexpr")
    }

    /// The bodies that use a name of a function or of an array outside of all bodies, by that name.
    fn mentions(&self, arrays: &[Array]) -> HashMap<&'t str, Vec<usize>> {
        let names: std::collections::HashSet<&str> = self
            .bodies
            .iter()
            .filter(|body| body.kernel.is_none())
            .map(|body| body.name.as_str())
            .chain(arrays.iter().map(|array| array.name.as_str()))
            .filter(|name| !name.is_empty() && self.around.macro_of(name).is_none())
            .collect();
        let mut mentions: HashMap<&'t str, Vec<usize>> = HashMap::new();
        for (index, body) in self.bodies.iter().enumerate() {
            let mut of_body: HashMap<&'t str, bool> = HashMap::new();
            let is_name = |token: &Token| token.kind == TokenKind::Word;
            let all = body.head.clone().chain(body.tokens.clone());
            for at in all.filter(|at| self.lexed.tokens.get(*at).is_some_and(is_name)) {
                let name = self.word(at);
                if !names.contains(name) {
                    continue;
                }
                let in_head = body.head.contains(&at);
                let is_own = in_head && name == body.name;
                let before = at.checked_sub(1).map_or("", |before| self.word(before));
                if is_own || matches!(before, "." | "->") || self.around.is_conditional(&(at..at + 1)) {
                    continue;
                }
                // A parameter or a variable of the body may hide it.
                let hides = in_head || self.declares(at, before);
                *of_body.entry(name).or_insert(true) &= !hides;
            }
            for (name, _) in of_body.into_iter().filter(|(_, is_used)| *is_used) {
                mentions.entry(name).or_default().push(index);
            }
        }
        mentions
    }

    /// Whether the name at a token is declared there: `float s`, `float* s =`.
    fn declares(&self, at: usize, before: &str) -> bool {
        let is_word = at
            .checked_sub(1)
            .and_then(|before| self.lexed.tokens.get(before))
            .is_some_and(|token| token.kind == TokenKind::Word);
        let is_keyword =
            matches!(before, "return" | "else" | "do" | "case" | "throw" | "sizeof" | "__shared__");
        let ends = matches!(self.word(at + 1), "=" | ";");
        (is_word && !is_keyword) || (matches!(before, "*" | "&") && ends)
    }
}
