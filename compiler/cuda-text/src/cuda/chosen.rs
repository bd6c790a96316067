//! Which parts of a body a condition may leave out.
//!
//! Owns following statements and brackets, in one pass over the body's tokens. In doubt a part is one that may be left out.

use super::in_body::InBody;
use super::surroundings::Macro;

/// A pair of brackets that is open; the lowest stands for the outside of the body.
#[derive(Default)]
struct Open {
    /// All that is in it may be left out.
    is_chosen: bool,
    /// What a condition has begun has not ended.
    is_pending: bool,
    /// Braces around statements, and not around values.
    is_block: bool,
}

impl Open {
    const fn leaves_out(&self) -> bool {
        self.is_chosen || self.is_pending
    }
}

/// For each token of the body whether a condition may leave it out. Loops may have no rounds, and lambdas may not be called.
pub(super) fn chosen(body: &InBody<'_>) -> Vec<bool> {
    let mut open = vec![Open::default()];
    // The kernel may have ended before, or be elsewhere.
    let mut may_have_left = false;
    let mut all = Vec::with_capacity(body.body.tokens.len());
    for at in body.body.tokens.clone() {
        let word = body.word(at);
        may_have_left |= leaves(word) || body.around.macro_of(word) == Some(Macro::Anything);
        let is_now = open.last().is_some_and(Open::leaves_out);
        match word {
            "(" | "{" | "[" => {
                let is_lambda = word == "[" && !is_index(body, at);
                if let Some(last) = open.last_mut() {
                    last.is_pending |= is_lambda;
                }
                let is_block = word == "{" && begins_block(body, at);
                open.push(Open { is_chosen: is_now || is_lambda, is_pending: false, is_block });
            }
            ")" | "}" | "]" => {
                let closed = open.pop();
                if open.is_empty() {
                    open.push(Open::default());
                }
                let ends = closed.is_some_and(|closed| closed.is_block) && ends_statement(body, at);
                if let Some(last) = open.last_mut().filter(|_| ends) {
                    last.is_pending = false;
                }
            }
            _ => {
                if let Some(last) = open.last_mut() {
                    last.is_pending = word != ";" && (last.is_pending || begins_choice(body, at));
                }
            }
        }
        all.push(may_have_left || is_now || open.last().is_some_and(Open::leaves_out));
    }
    all
}

/// Whether a word ends the kernel or goes on elsewhere, or may.
fn leaves(word: &str) -> bool {
    matches!(word, "return" | "goto" | "throw" | "asm" | "__asm" | "__asm__" | "__trap" | "__exit")
}

/// Whether what follows a token, up to the end of the statement, may be left out.
fn begins_choice(body: &InBody<'_>, at: usize) -> bool {
    match body.word(at) {
        "if" | "else" | "switch" | "for" | "while" | "do" | "try" | "catch" | "?" | "and" | "or" => true,
        // What is declared within a class runs elsewhere.
        "struct" | "class" | "union" | "template" => true,
        word @ ("&" | "|") => body.before(at, 1) == word,
        _ => false,
    }
}

/// Whether a `[` is of an index, and not of a lambda or an attribute.
fn is_index(body: &InBody<'_>, at: usize) -> bool {
    let is_name = at.checked_sub(1).is_some_and(|before| body.is_name(before));
    is_name || matches!(body.before(at, 1), "]" | ")")
}

/// Whether a `{` is of statements: after `{1, 2}` and `T{1}` a statement goes on.
fn begins_block(body: &InBody<'_>, at: usize) -> bool {
    matches!(
        body.before(at, 1),
        ")" | "]" | "else" | "do" | "try" | ";" | "{" | "}" | ":" | "mutable" | "noexcept"
    )
}

/// Whether nothing after a `}` belongs to the statement before it.
fn ends_statement(body: &InBody<'_>, at: usize) -> bool {
    body.is_name(at + 1) || matches!(body.word(at + 1), "" | ";" | "{" | "}" | "::" | "*")
}
