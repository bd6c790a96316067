//! Which kernels may wait for the step before them.
//!
//! Owns finding the instruction in a text and what leads to it: by names alone, so what a name could hide counts as a wait. Comments
//! count for nothing.

use std::collections::BTreeSet;

use super::lexer::{Lexed, Token, TokenKind, word};
use super::shared::Body;

/// The function of CUDA's run time, and the instruction of PTX (ISA 9.0, `griddepcontrol`).
const WAITS: [&str; 2] = ["cudaGridDependencySynchronize", "griddepcontrol.wait"];

/// The kernels of which it cannot be said that they do not wait, by their index.
pub(super) fn waiting(text: &str, lexed: &Lexed, bodies: &[Body]) -> BTreeSet<usize> {
    let waits = |token: &Token| {
        let said = word(text, Some(token));
        match token.kind {
            TokenKind::Word => said == WAITS[0],
            TokenKind::Quoted => said.contains(WAITS[1]),
            TokenKind::Number | TokenKind::Symbol => false,
        }
    };
    let kernels = || bodies.iter().filter_map(|body| body.kernel);
    let waits_itself =
        |body: &Body| lexed.tokens.get(body.tokens.clone()).is_some_and(|tokens| tokens.iter().any(waits));
    let is_class = |body: &Body| {
        let mut head = body.head.clone().map(|at| word(text, lexed.tokens.get(at)));
        head.any(|word| matches!(word, "struct" | "class" | "union"))
    };
    // A macro can stand anywhere, and a member be called without the name of its class.
    let is_hidden = lexed.directives.iter().flat_map(|line| &line.tokens).any(waits)
        || bodies.iter().any(|body| body.kernel.is_none() && is_class(body) && waits_itself(body));
    if is_hidden {
        return kernels().collect();
    }
    let mut found: Vec<bool> = bodies.iter().map(waits_itself).collect();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    loop {
        let waiting = bodies.iter().zip(&found).filter(|(body, waits)| **waits && body.kernel.is_none());
        let now: BTreeSet<&str> = waiting.map(|(body, _)| body.name.as_str()).collect();
        if now == names {
            break;
        }
        names = now;
        for (body, found) in bodies.iter().zip(&mut found) {
            let tokens = lexed.tokens.get(body.tokens.clone()).unwrap_or_default();
            *found |= tokens
                .iter()
                .any(|token| token.kind == TokenKind::Word && names.contains(word(text, Some(token))));
        }
    }
    bodies.iter().zip(found).filter(|(_, waits)| *waits).filter_map(|(body, _)| body.kernel).collect()
}
