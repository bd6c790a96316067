//! Which kernels may wait for the step before them.
//!
//! Owns finding the instruction in a text and what leads to it: by names alone, so what a name could hide counts as a wait. Comments
//! count for nothing.

use std::collections::{BTreeSet, HashMap, HashSet};

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
    // Which bodies mention a name that a function has: each is looked at once, however long the chain of calls.
    let names: HashSet<&str> = bodies.iter().map(|body| body.name.as_str()).collect();
    let mut mentions: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, body) in bodies.iter().enumerate() {
        let tokens = lexed.tokens.get(body.tokens.clone()).unwrap_or_default();
        let words = tokens.iter().filter(|token| token.kind == TokenKind::Word);
        for name in words.map(|token| word(text, Some(token))).filter(|name| names.contains(name)) {
            let users = mentions.entry(name).or_default();
            if users.last() != Some(&index) {
                users.push(index);
            }
        }
    }
    let mut found = vec![false; bodies.len()];
    let mut told: HashSet<&str> = HashSet::new();
    let mut open: Vec<usize> =
        bodies.iter().enumerate().filter(|(_, body)| waits_itself(body)).map(|(index, _)| index).collect();
    while let Some(index) = open.pop() {
        let (Some(body), Some(known)) = (bodies.get(index), found.get_mut(index)) else { continue };
        *known = true;
        if body.kernel.is_none() && told.insert(&body.name) {
            open.extend(mentions.get(body.name.as_str()).into_iter().flatten());
        }
    }
    bodies.iter().zip(found).filter(|(_, waits)| *waits).filter_map(|(body, _)| body.kernel).collect()
}
