//! What a kernel's own body does for certain: that it waits for its whole grid, and which parameters it counts up.
//!
//! Owns finding that in the kernel's tokens, by names alone. What a condition, a macro, or a function that is called could change is left
//! out: nothing is told of a kernel that may do otherwise.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::chosen::chosen;
use super::lexer::{Lexed, Token, TokenKind, after_group, word};
use super::shared::Body;
use super::surroundings::Surroundings;
use super::{Accumulated, Kernel, Param};

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
    pub(super) fn word(&self, at: usize) -> &'t str {
        word(self.text, self.lexed.tokens.get(at))
    }

    /// The word so many tokens before another.
    pub(super) fn before(&self, at: usize, by: usize) -> &'t str {
        at.checked_sub(by).map_or("", |at| self.word(at))
    }

    pub(super) fn is_name(&self, at: usize) -> bool {
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
            let is_certain = is_of_grid && !is_chosen && !self.is_open(at.saturating_sub(2)..at + 3);
            is_certain.then(|| self.place(at, at)).flatten()
        };
        self.body.tokens.clone().zip(chosen(self)).find_map(wait)
    }

    /// Where the kernel accesses one of these arrays of the text, in every run of it.
    pub(super) fn access(&self, arrays: &HashMap<String, Range<usize>>) -> Option<Range<usize>> {
        let is_element = |at: usize| {
            arrays.contains_key(self.word(at)) && self.word(at + 1) == "[" && self.word(at + 2) != "]"
        };
        // `&s[0]` is an address; `sizeof(s[0])` and `decltype(s[0])` evaluate nothing.
        let is_evaluated = |at: usize| {
            !matches!(self.before(at, 1), "&" | "." | "->" | "::")
                && !matches!(self.before(at, 2), "sizeof" | "decltype" | "alignof" | "noexcept")
        };
        let mut places = self.body.tokens.clone().zip(chosen(self));
        let (at, _) = places.find(|(at, is_chosen)| {
            is_element(*at) && is_evaluated(*at) && !is_chosen && !self.is_open(*at..at + 1)
        })?;
        let place = arrays.get(self.word(at))?;
        // A parameter or another variable may have the name.
        let may_hide = |other: usize| {
            let is_after_type = matches!(self.before(other, 1), ">" | "*" | "&" | ",")
                || other.checked_sub(1).is_some_and(|before| self.is_name(before));
            let range = self.lexed.tokens.get(other).map(|token| token.range.start);
            self.word(other) == self.word(at)
                && is_after_type
                && !range.is_some_and(|start| place.contains(&start))
        };
        let mut all = self.body.head.clone().chain(self.body.tokens.clone());
        if all.any(may_hide) { None } else { self.place(at, at) }
    }

    /// The last axis beyond x in which the kernel reads its block's number, in every run of it. A kernel that asks how many blocks there are in
    /// that direction is right whatever there are.
    pub(super) fn grid_axis(&self) -> Option<(usize, Range<usize>)> {
        let reads = |at: usize, what: &str, axis: &str| {
            self.word(at) == what && self.word(at + 1) == "." && self.word(at + 2) == axis
        };
        [(2, "z"), (1, "y")].into_iter().find_map(|(index, axis)| {
            if self.body.tokens.clone().any(|at| reads(at, "gridDim", axis)) {
                return None;
            }
            let mut places = self.body.tokens.clone().zip(chosen(self));
            let (at, _) = places.find(|(at, is_chosen)| {
                reads(*at, "blockIdx", axis) && !is_chosen && !self.is_open(*at..at + 3)
            })?;
            Some((index, self.place(at, at + 2)?))
        })
    }

    /// The variables that are the grid, and nothing else anywhere in the body.
    fn grids(&self) -> HashSet<&'t str> {
        // `grid_group grid`, `grid = cooperative_groups::this_grid();`: the name of each, by its token.
        let mut declared: HashMap<usize, &'t str> = HashMap::new();
        for at in self.body.tokens.clone() {
            let name = match self.word(at) {
                "grid_group" => Some(at + 1).filter(|name| self.is_name(*name)),
                "this_grid" => self.named_by(at),
                _ => None,
            };
            declared.extend(name.map(|name| (name, self.word(name))));
        }
        let mut grids: HashMap<&'t str, usize> = HashMap::new();
        for name in declared.values() {
            *grids.entry(name).or_default() += 1;
        }
        // What is declared twice, or given away, may be another group elsewhere.
        grids.retain(|_, count| *count == 1);
        let all = self.body.head.clone().chain(self.body.tokens.clone());
        for at in all.filter(|at| !declared.contains_key(at) && self.may_declare(*at)) {
            grids.remove(self.word(at));
        }
        grids.into_keys().collect()
    }

    /// The name that `this_grid` at a token gives a value: `grid = cooperative_groups::this_grid();`, `auto grid{this_grid()};`.
    fn named_by(&self, at: usize) -> Option<usize> {
        // Namespaces have no more names than that.
        const MOST_NAMES: usize = 8;
        let mut first = at;
        for _ in 0..MOST_NAMES {
            if self.before(first, 1) != "::" {
                break;
            }
            let is_named = first.checked_sub(2).is_some_and(|at| self.is_name(at));
            first -= if is_named { 2 } else { 1 };
        }
        let is_whole = self.word(at + 1) == "("
            && self.word(at + 2) == ")"
            && matches!(self.word(at + 3), ";" | "," | "}" | ")");
        let is_given = match self.before(first, 1) {
            "=" => true,
            "{" | "(" => matches!(self.before(first, 3), "auto" | "grid_group"),
            _ => false,
        };
        let name = first.checked_sub(2).filter(|name| is_whole && is_given && self.is_name(*name))?;
        Some(name)
    }

    /// Whether the name at a token may be declared there, or become something else.
    fn may_declare(&self, at: usize) -> bool {
        let is_after_word = at.checked_sub(1).is_some_and(|before| self.is_name(before));
        let is_after_type = is_after_word || matches!(self.before(at, 1), ">" | "*" | "&" | "[");
        self.is_name(at) && (is_after_type || matches!(self.word(at + 1), "=" | "{" | "["))
    }

    /// The parameters whose memory an atomic function changes by what was there, where nothing in the body may have put that there.
    pub(super) fn accumulated(&self, kernel: &Kernel) -> Vec<Accumulated> {
        let mut first_atomic: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut targets = HashSet::new();
        for at in self.body.tokens.clone() {
            if let Some(target) = self.target_of(at) {
                first_atomic.entry(self.word(target)).or_insert((at, target));
                targets.insert(target);
            }
        }
        if first_atomic.is_empty() {
            return Vec::new();
        }
        // What is mentioned before may have been filled there. So may what is mentioned after: a loop or a condition may have it run first.
        let may_fill = |at: &usize| {
            let first = first_atomic.get(self.word(*at));
            first.is_some_and(|(_, target)| at < target || !targets.contains(at) && !self.is_read(*at))
        };
        let filled: HashSet<&str> =
            self.body.tokens.clone().filter(may_fill).map(|at| self.word(at)).collect();
        let chosen = chosen(self);
        let asks_constant = self.asks_constant(kernel);
        // Where a constant decides there may be no such atomic at all.
        let may_be_absent =
            |at: usize| asks_constant && chosen.get(at - self.body.tokens.start) != Some(&false);
        let is_pointer =
            |param: &&Param| param.ty.pointers > 0 && !param.ty.is_const && !param.name.is_empty();
        let accumulated = |param: &Param| {
            let &(at, target) = first_atomic.get(param.name.as_str())?;
            let is_certain =
                !filled.contains(param.name.as_str()) && !may_be_absent(at) && !self.is_open(at..target + 1);
            let range = self.place(at, at).filter(|_| is_certain)?;
            Some(Accumulated { parameter: param.name.clone(), range })
        };
        kernel.params.iter().filter(is_pointer).filter_map(accumulated).collect()
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

    /// Whether what a name points to is only read there, for certain: `name[i] == 1`, `x / *name`, `y[i] = *name`.
    fn is_read(&self, at: usize) -> bool {
        // Of an index of more tokens it is not looked at what follows.
        const MOST: usize = 64;
        let before = match self.before(at, 1) {
            "*" => self.before(at, 2),
            _ => "",
        };
        let is_value = match before {
            "/" | "%" | "+" | "-" | "<" => true,
            // What is declared could be a reference; an element is not.
            "=" => matches!(self.before(at, 3), "]" | "+" | "-" | "*" | "/") && self.word(at + 1) == ";",
            _ => false,
        };
        if is_value {
            return true;
        }
        let end = self.body.tokens.end.min(at + MOST);
        let tokens = self.lexed.tokens.get(..end).unwrap_or_default();
        let after = (self.word(at + 1) == "[").then(|| after_group(self.text, tokens, at + 1)).flatten();
        after.is_some_and(|after| match self.word(after) {
            "=" | "!" => self.word(after + 1) == "=",
            "<" | "/" | "%" => !matches!(self.word(after + 1), "=" | "<"),
            _ => false,
        })
    }

    /// Whether a condition of the body asks for what is known when the kernel is compiled.
    fn asks_constant(&self, kernel: &Kernel) -> bool {
        let of_template: HashSet<&str> =
            kernel.template.iter().flatten().map(|param| param.name.as_str()).collect();
        let is_constant = |at: usize| {
            let word = self.word(at);
            matches!(word, "constexpr" | "manifest") || self.is_name(at) && of_template.contains(word)
        };
        self.body.tokens.clone().any(|at| self.condition(at).any(is_constant))
    }

    /// The tokens of the condition that a word begins, or more.
    fn condition(&self, at: usize) -> Range<usize> {
        // More is not looked at.
        const MOST: usize = 32;
        let end_from = |first: usize| {
            let ends = |at: &usize| matches!(self.word(*at), ";" | "{" | "}" | "");
            (first..first + MOST).find(ends).unwrap_or(first + MOST)
        };
        match self.word(at) {
            "if" | "switch" | "while" => at + 1..end_from(at + 1),
            "for" => {
                let first = end_from(at + 1) + 1;
                first..end_from(first)
            }
            _ => at..at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Kernel, read};

    /// A kernel with this body, as it is read.
    fn kernel(body: &str) -> Kernel {
        let text = format!("__global__ void k(const float* x, float* y) {{ y[0] = x[0]; {body} }}");
        read(&text).kernels.swap_remove(0)
    }

    fn waits(body: &str) -> bool {
        kernel(body).grid_wait.is_some()
    }

    fn counts(body: &str) -> bool {
        let text = format!("template <int SPLIT> __global__ void k(const float* x, float* p) {{ {body} }}");
        !read(&text).kernels[0].accumulated.is_empty()
    }

    #[test]
    fn what_waits_for_the_grid_for_certain_is_found() {
        for body in [
            "cg::this_grid().sync();",
            "auto g = cg::this_grid(); for (int i = 0; i < 3; ++i) { if (i) continue; } g.sync();",
            "auto g{cg::this_grid()}; g.sync();",
            "auto g(::cg::this_grid()); cg::sync(g);",
            "cg::grid_group g = cg::this_grid(); auto n = g.size(); { { g.sync(); } }",
            "const float a[2] = {1, 2}; if (a[0]) y[0] = T{1}; else { y[1] = 2; } cg::this_grid().sync();",
            "auto f = [&](int i) { y[i] = 1; }; f(1); cg::this_grid().sync();",
            "bool b = x[0] && x[1]; cg::this_grid().sync();",
        ] {
            assert!(waits(body), "{body}");
        }
    }

    #[test]
    fn the_last_axis_of_the_grid_that_is_read_for_certain_is_found() {
        let axis = |body: &str| kernel(body).grid_axis.map(|(axis, _)| axis);
        for (body, expected) in [
            ("int row = blockIdx.y * blockDim.y + threadIdx.y;", Some(1)),
            ("int image = blockIdx . z; y[blockIdx.y] = image;", Some(2)),
            ("for (int i = blockIdx.y; i < 7; ++i) y[i] = 1;", None),
            ("y[blockIdx.x] = threadIdx.y;", None),
            ("for (int i = blockIdx.y; i < 7; i += gridDim.y) y[i] = 1;", None),
            ("if (x[0] > 0) y[blockIdx.y] = 1;", None),
            ("#ifdef DEEP\ny[blockIdx.z] = 1;\n#endif\n", None),
        ] {
            assert_eq!(axis(body), expected, "{body}");
        }
    }

    #[test]
    fn what_may_be_left_out_waits_for_nothing() {
        for body in [
            "if constexpr (!COOP) { return; } cg::this_grid().sync();",
            "if (R == 1) return; cg::this_grid().sync();",
            "if (R == 1) goto end; cg::this_grid().sync(); end:;",
            "for (int i = 1; i < R; ++i) cg::this_grid().sync();",
            "auto g = cg::this_grid(); for (int i = 1; i < R; ++i) { y[0] += 1; g.sync(); }",
            "auto g = cg::this_grid(); while (g.num_blocks() < 0) g.sync();",
            "auto wait = [&] { cg::this_grid().sync(); }; if constexpr (R > 1) wait();",
            "if (R > 1) [&] { y[0] = 1; }(), cg::this_grid().sync();",
            "R > 1 && (cg::this_grid().sync(), true);",
            "R < 2 || (cg::this_grid().sync(), true);",
            "R > 1 ? cg::this_grid().sync() : void();",
            "if (R > 1) for (auto i : {1, 2}) { cg::this_grid().sync(); }",
            "if (R > 1) f(int{1}, 2), cg::this_grid().sync();",
            "if (R > 1) int{1}, cg::this_grid().sync();",
            "if (R > 1) do { cg::this_grid().sync(); } while (0);",
            "struct S { void f() { cg::this_grid().sync(); } };",
            "{ auto g = cg::this_grid(); } { auto g = cg::this_thread_block(); g.sync(); }",
            "{ auto g = cg::this_grid(); } { cg::thread_block g{cg::this_thread_block()}; g.sync(); }",
            "auto n = cg::this_grid().size(); n.sync();",
            "\n#define LEAVE if (R == 1) return\nLEAVE; cg::this_grid().sync();",
        ] {
            assert!(!waits(body), "{body}");
        }
    }

    /// Each of a long row of names was a reason to walk back over all before it.
    #[test]
    fn a_long_row_of_names_is_read_in_one_go() {
        let row = "this_grid::".repeat(100_000);
        assert!(!waits(&format!("auto g = {row}x(); g.sync();")));
        assert!(!waits(&"::".repeat(100_000)) && !waits("= ::::this_grid();"));
    }

    #[test]
    fn what_is_counted_up_for_certain_is_found() {
        for body in [
            "atomicAdd(p, 1);",
            "if (threadIdx.x >= 4) return; atomicAdd(&p[x[0]], 1);",
            "for (int i = 0; i < 3; ++i) atomicAdd(p, x[i]); cg::this_grid().sync(); x[0] / *p;",
            "atomicAdd(p, 1); atomicMax(p + 1, 1); if (p[1] != 3 || p[0] == 1) y[0] = *p;",
            "if constexpr (R) { f(); } atomicAdd(p, 1);",
        ] {
            assert!(counts(body), "{body}");
        }
    }

    #[test]
    fn what_may_be_filled_or_left_alone_is_not_counted_up() {
        for body in [
            "if constexpr (manifest::SPLIT > 1) atomicAdd(&p[i], x[i]); else *(p + i) = x[i];",
            "if (b) atomicAdd(&p[i], x[i]); else *(p + i) = x[i];",
            "if (b) atomicAdd(&p[i], x[i]); else put(&p[i], x[i]);",
            "if (b) atomicAdd(&p[i], x[i]); else put(p[i]);",
            "if (b) atomicAdd(&p[i], x[i]); else p[i].x = 0;",
            "if (b) atomicAdd(&p[i], x[i]); else p[i] <<= 1;",
            "if constexpr (S > 1) atomicAdd(p, 1);",
            "if (manifest::SPLIT > 1) { atomicAdd(p, 1); }",
            "if (manifest::SPLIT == 1) return; atomicAdd(p, 1);",
            "for (int r = 0; r < 2; ++r) { if (r == 1) atomicAdd(&p[0], x[0]); else memset(p, 0, 4); }",
            "auto add = [&](float v) { atomicAdd(&p[0], v); }; if (threadIdx.x == 0) zero(p); add(1);",
            "atomicAdd(p, 1); float& r = *p; r = 0;",
            "for (int r = 1; r < manifest::R; ++r) atomicAdd(p, 1);",
            "if (SPLIT > 1) atomicAdd(p, 1);",
        ] {
            assert!(!counts(body), "{body}");
        }
    }
}
