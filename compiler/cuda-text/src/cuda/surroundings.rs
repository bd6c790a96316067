//! Classifies macros, conditions and includes around kernels. Must not expand anything.

use std::collections::HashMap;
use std::ops::Range;

use super::Doubt;
use super::lexer::{Directive, Lexed, TokenKind, word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Macro {
    /// Number.
    Number,
    /// The macro is empty, or `__restrict__`.
    Nothing,
    /// Any text.
    Anything,
}

pub(super) struct Surroundings {
    macros: HashMap<String, Macro>,
    /// Preceding tokens, and open conditions afterwards.
    conditions: Vec<(usize, usize)>,
    pub(super) doubts: Vec<Doubt>,
    /// Brackets mismatch within a condition: all is uncertain.
    pub(super) is_broken: bool,
}

const HEADERS: &str = "
    assert.h cooperative_groups.h cuComplex.h cubinder.h cuda.h cuda_awbarrier.h cuda_bf16.h
    cuda_fp16.h cuda_fp4.h cuda_fp6.h cuda_fp8.h cuda_pipeline.h cuda_pipeline_primitives.h
    cuda_runtime.h curand_kernel.h device_launch_parameters.h float.h limits.h math.h
    math_constants.h mma.h stddef.h stdint.h stdio.h string.h vector_types.h
";

const FOLDERS: [&str; 5] = ["cooperative_groups/", "cub/", "cuda/", "nv/", "thrust/"];

/// Detects CUDA headers by name.
pub fn is_cuda_header(name: &str) -> bool {
    HEADERS.split_whitespace().any(|header| header == name)
        || FOLDERS.iter().any(|folder| name.starts_with(folder))
}

impl Surroundings {
    pub(super) fn read(text: &str, lexed: &Lexed) -> Surroundings {
        let mut around = Surroundings {
            macros: HashMap::new(),
            conditions: Vec::new(),
            doubts: Vec::new(),
            is_broken: lexed.is_odd,
        };
        let mut depth = 0_i64;
        let after = lexed.tokens.iter().map(|token| {
            depth += match word(text, Some(token)) {
                "(" | "[" | "{" => 1,
                ")" | "]" | "}" => -1,
                _ => 0,
            };
            depth
        });
        let depths: Vec<i64> = std::iter::once(0).chain(after).collect();
        let mut open: Vec<i64> = Vec::new();
        for directive in without_guard(text, lexed) {
            let depth = depths.get(directive.before).copied().unwrap_or_default();
            match word(text, directive.tokens.first()) {
                "define" => around.define(text, directive),
                "undef" => around.add_macro(word(text, directive.tokens.get(1)), Macro::Anything),
                "include" | "include_next" | "import" => around.include(text, directive),
                condition => {
                    match condition {
                        "if" | "ifdef" | "ifndef" => open.push(depth),
                        "else" | "elif" | "elifdef" | "elifndef" => {
                            around.is_broken |= open.last() != Some(&depth);
                        }
                        "endif" => around.is_broken |= open.pop() != Some(depth),
                        _ => continue,
                    }
                    around.conditions.push((directive.before, open.len()));
                }
            }
        }
        around
    }

    fn define(&mut self, text: &str, directive: &Directive) {
        let Some(name_token) = directive.tokens.get(1) else { return };
        let name = word(text, Some(name_token));
        let body = directive.tokens.get(2..).unwrap_or_default();
        if body.iter().any(|token| word(text, Some(token)) == "__global__") {
            self.doubt(Doubt::KernelMacro(name.to_owned()));
        }
        let has_parameters = body
            .first()
            .is_some_and(|first| word(text, Some(first)) == "(" && first.range.start == name_token.range.end);
        let meaning = match body {
            [] => Macro::Nothing,
            [only] if only.kind == TokenKind::Number => Macro::Number,
            [only] if matches!(word(text, Some(only)), "__restrict__" | "__restrict") => Macro::Nothing,
            _ => Macro::Anything,
        };
        self.add_macro(name, if has_parameters { Macro::Anything } else { meaning });
    }

    /// Macros with conflicting definitions may mean anything.
    fn add_macro(&mut self, name: &str, meaning: Macro) {
        let known = self.macros.entry(name.to_owned()).or_insert(meaning);
        if *known != meaning {
            *known = Macro::Anything;
        }
    }

    fn include(&mut self, text: &str, directive: &Directive) {
        let (Some(first), Some(last)) = (directive.tokens.get(1), directive.tokens.last()) else { return };
        let whole = text.get(first.range.start..last.range.end).unwrap_or_default();
        let name = match first.kind {
            TokenKind::Quoted => word(text, Some(first)).trim_matches('"'),
            _ => whole.trim_matches(['<', '>']),
        };
        let is_of_cpp =
            first.kind != TokenKind::Quoted && whole.starts_with('<') && !name.contains(['.', '/']);
        let is_known = is_cuda_header(name);
        if !is_of_cpp && !is_known {
            self.doubt(Doubt::Include(name.to_owned()));
        }
    }

    fn doubt(&mut self, doubt: Doubt) {
        if !self.doubts.contains(&doubt) && self.doubts.len() < MAX_DOUBTS {
            self.doubts.push(doubt);
        }
    }

    pub(super) fn is_conditional(&self, tokens: &Range<usize>) -> bool {
        let before = self.conditions.partition_point(|(at, _)| *at <= tokens.start);
        let open = before.checked_sub(1).and_then(|last| self.conditions.get(last)).map_or(0, |last| last.1);
        open > 0 || self.conditions.get(before).is_some_and(|(at, _)| *at < tokens.end)
    }

    pub(super) fn macro_of(&self, word: &str) -> Option<Macro> {
        self.macros.get(word).copied()
    }
}

const MAX_DOUBTS: usize = 8;

fn without_guard<'l>(text: &str, lexed: &'l Lexed) -> &'l [Directive] {
    let lines = lexed.directives.as_slice();
    let [first, second, inner @ .., last] = lines else { return lines };
    let name = |line: &Directive| word(text, line.tokens.first()).to_owned();
    let same = word(text, first.tokens.get(1)) == word(text, second.tokens.get(1));
    let is_whole = second.before == 0 && last.before == lexed.tokens.len();
    let is_guard = name(first) == "ifndef" && name(second) == "define" && name(last) == "endif";
    if !(same && is_whole && is_guard) {
        return lines;
    }
    // The last line must close the first condition.
    let mut open = 0_usize;
    for line in inner {
        match word(text, line.tokens.first()) {
            "if" | "ifdef" | "ifndef" => open += 1,
            "endif" | "else" | "elif" | "elifdef" | "elifndef" if open == 0 => return lines,
            "endif" => open -= 1,
            _ => {}
        }
    }
    if open == 0 { inner } else { lines }
}
