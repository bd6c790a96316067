//! What a kernel's own body does for certain: that it waits for its whole grid, and which parameters it counts up.
//!
//! Owns finding that in the kernel's tokens, by names alone. What a condition, a macro, or a function that is called could change is left
//! out: nothing is told of a kernel that may do otherwise.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::lexer::{Lexed, Token, TokenKind, after_group, word};
use super::shared::Body;
use super::surroundings::Surroundings;
use super::{Accumulated, Param};

/// CUDA's atomic functions whose result depends on what was there (CUDA C++ programming guide 13.0, "atomic functions"); each also ends in
/// `_block` or `_system`.
const ATOMICS: [&str; 10] = [
    "atomicAdd",
    "atomicSub",
    "atomicMin",
    "atomicMax",
    "atomicInc",
    "atomicDec",
    "atomicCAS",
    "atomicAnd",
    "atomicOr",
    "atomicXor",
];

/// A body in its text.
pub(super) struct InBody<'t> {
    pub(super) text: &'t str,
    pub(super) lexed: &'t Lexed,
    pub(super) around: &'t Surroundings,
    pub(super) body: &'t Body,
}

impl<'t> InBody<'t> {
    fn word(&self, at: usize) -> &'t str {
        word(self.text, self.lexed.tokens.get(at))
    }

    /// The word so many tokens before another.
    fn before(&self, at: usize, by: usize) -> &'t str {
        at.checked_sub(by).map_or("", |at| self.word(at))
    }

    fn is_name(&self, at: usize) -> bool {
        self.lexed.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Word)
    }

    fn has(&self, name: &str) -> bool {
        self.body.tokens.clone().any(|at| self.word(at) == name)
    }

    fn place(&self, first: usize, last: usize) -> Option<Range<usize>> {
        let tokens: &[Token] = &self.lexed.tokens;
        Some(tokens.get(first)?.range.start..tokens.get(last)?.range.end)
    }

    /// Whether the preprocessor may change these tokens.
    fn is_open(&self, tokens: Range<usize>) -> bool {
        self.around.is_conditional(&tokens)
            || tokens.into_iter().any(|at| self.around.macro_of(self.word(at)).is_some())
    }

    /// Where the kernel waits for all blocks of its grid (`cooperative_groups::grid_group::sync`), in every run of it that gets there.
    pub(super) fn grid_wait(&self) -> Option<Range<usize>> {
        // A kernel that asks whether it can is right either way.
        if !(self.has("this_grid") || self.has("grid_group")) || self.has("is_valid") {
            return None;
        }
        let grids = self.grids();
        let wait = |(at, is_chosen): (usize, bool)| -> Option<Range<usize>> {
            if self.word(at) != "sync" || self.word(at + 1) != "(" {
                return None;
            }
            let is_of_grid = match self.before(at, 1) {
                "." => {
                    let is_direct = self.before(at, 2) == ")"
                        && self.before(at, 3) == "("
                        && self.before(at, 4) == "this_grid";
                    is_direct
                        || grids.contains(self.before(at, 2)) && !matches!(self.before(at, 3), "." | "->")
                }
                "::" | ";" | "{" | "}" => grids.contains(self.word(at + 2)) && self.word(at + 3) == ")",
                _ => false,
            };
            let is_certain = is_of_grid && !is_chosen && !self.is_open(at..at + 2);
            is_certain.then(|| self.place(at, at)).flatten()
        };
        self.body.tokens.clone().zip(self.is_chosen()).find_map(wait)
    }

    /// The variables that are the grid.
    fn grids(&self) -> HashSet<&'t str> {
        let mut found = HashSet::new();
        for at in self.body.tokens.clone() {
            match self.word(at) {
                "grid_group" => found.extend(self.is_name(at + 1).then(|| self.word(at + 1))),
                "this_grid" => {
                    // `grid = cooperative_groups::this_grid()`
                    let mut first = at;
                    while self.before(first, 1) == "::"
                        && first.checked_sub(2).is_some_and(|at| self.is_name(at))
                    {
                        first -= 2;
                    }
                    if self.before(first, 1) == "=" {
                        found.insert(self.before(first, 2));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// For each token of the body whether a condition may leave it out: it is in an `if`, `else` or `switch`, or after a `?`.
    fn is_chosen(&self) -> Vec<bool> {
        let (mut blocks, mut groups): (Vec<bool>, Vec<bool>) = (Vec::new(), Vec::new());
        // A condition has begun, and the statement that it is of has not ended.
        let mut is_pending = false;
        let mut all = Vec::with_capacity(self.body.tokens.len());
        for at in self.body.tokens.clone() {
            match self.word(at) {
                "(" => groups.push(matches!(self.before(at, 1), "if" | "constexpr" | "switch")),
                ")" => is_pending |= groups.pop() == Some(true),
                "{" => {
                    blocks.push(is_pending || blocks.last() == Some(&true));
                    is_pending = false;
                }
                "}" => {
                    blocks.pop();
                    is_pending = false;
                }
                "else" | "?" => is_pending = true,
                ";" if groups.is_empty() => is_pending = false,
                _ => {}
            }
            all.push(is_pending || groups.last() == Some(&true) || blocks.last() == Some(&true));
        }
        all
    }

    /// The parameters whose memory an atomic function changes by what was there, where nothing in the body may have put that there.
    pub(super) fn accumulated(&self, params: &[Param]) -> Vec<Accumulated> {
        let mut first_atomic: HashMap<&str, (usize, usize)> = HashMap::new();
        for at in self.body.tokens.clone() {
            if let Some(target) = self.target_of(at) {
                first_atomic.entry(self.word(target)).or_insert((at, target));
            }
        }
        // What is mentioned before may have been filled there, and what is assigned to anywhere, too.
        let may_fill = |at: &usize| {
            let first = first_atomic.get(self.word(*at));
            first.is_some_and(|(_, target)| at < target || self.is_assigned(*at))
        };
        let filled: HashSet<&str> =
            self.body.tokens.clone().filter(may_fill).map(|at| self.word(at)).collect();
        let is_pointer =
            |param: &&Param| param.ty.pointers > 0 && !param.ty.is_const && !param.name.is_empty();
        let accumulated = |param: &Param| {
            let &(at, target) = first_atomic.get(param.name.as_str())?;
            let is_certain = !filled.contains(param.name.as_str()) && !self.is_open(at..target + 1);
            let range = self.place(at, at).filter(|_| is_certain)?;
            Some(Accumulated { parameter: param.name.clone(), range })
        };
        params.iter().filter(is_pointer).filter_map(accumulated).collect()
    }

    /// The name whose memory the atomic function at a token changes: `atomicAdd(name`, `atomicAdd(&name`.
    fn target_of(&self, at: usize) -> Option<usize> {
        let name = self.word(at);
        let plain = name.strip_suffix("_block").or(name.strip_suffix("_system")).unwrap_or(name);
        let is_call = ATOMICS.contains(&plain) && self.word(at + 1) == "(";
        if !is_call || matches!(self.before(at, 1), "." | "->") {
            return None;
        }
        let target = if self.word(at + 2) == "&" { at + 3 } else { at + 2 };
        let is_whole = matches!(self.word(target + 1), "," | "[" | "+");
        (self.is_name(target) && is_whole).then_some(target)
    }

    /// Whether what a name points to gets a value there, as far as can be told: `*name =`, `name[i] =`.
    fn is_assigned(&self, at: usize) -> bool {
        // Of an index of more tokens it is not looked at what follows.
        const MOST: usize = 64;
        let end = self.body.tokens.end.min(at + MOST);
        let tokens = self.lexed.tokens.get(..end).unwrap_or_default();
        let mut next = at + 1;
        while next < end {
            match self.word(next) {
                "[" => match after_group(self.text, tokens, next) {
                    Some(after) => next = after,
                    None => return true,
                },
                ")" => next += 1,
                word => return word == "=" && self.word(next + 1) != "=",
            }
        }
        true
    }
}
