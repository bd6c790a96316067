//! Detects code of older sources. Element types change only conversions; constant integers only integer arithmetic
//! (`NAME.source` of Triton 3.9.0).

use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// Equal for all float element types.
    pub(super) without_types: u64,
    /// Also omits integer arithmetic and moves.
    pub(super) without_integers: u64,
}

/// Conversions of Triton 3.9's `arith` or `tt` dialect.
fn is_conversion(word: &str) -> bool {
    const ARITH: &str = "extf truncf bitcast sitofp uitofp fptosi fptoui extsi extui trunci index_cast";
    is_of("arith.", ARITH, word) || is_of("tt.", "fp_to_fp bitcast", word)
}

fn is_of_integers(word: &str) -> bool {
    const ARITH: &str = "constant select andi ori xori cmpi shli shrsi shrui addi subi muli divsi divui remsi remui maxsi maxui minsi \
                         minui ceildivsi ceildivui floordivsi";
    is_of("arith.", ARITH, word) || is_of("tt.", "addptr splat broadcast expand_dims advance", word)
}

fn is_of(dialect: &str, operations: &str, word: &str) -> bool {
    word.strip_prefix(dialect).is_some_and(|word| operations.split(' ').any(|operation| operation == word))
}

pub(super) fn fingerprint(operations: &str) -> Fingerprint {
    let (mut without_types, mut without_integers) = (DefaultHasher::new(), DefaultHasher::new());
    for (word, rest) in operations.lines().filter_map(operation) {
        if is_conversion(word) {
            continue;
        }
        (word, whole_number(word, rest)).hash(&mut without_types);
        if !is_of_integers(word) {
            word.hash(&mut without_integers);
        }
    }
    Fingerprint { without_types: without_types.finish(), without_integers: without_integers.finish() }
}

fn operation(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let operation = match line.split_once(" = ") {
        Some((results, operation)) if results.starts_with('%') => operation,
        _ => line,
    };
    let end = operation.find([' ', '(']).unwrap_or(operation.len());
    let (word, rest) = operation.split_at(end);
    let word = word.trim_matches('"');
    word.contains('.').then_some((word, rest))
}

/// Excludes floats, which are rounded to their type.
fn whole_number<'r>(word: &str, rest: &'r str) -> Option<&'r str> {
    let (value, _) = rest.split_once(" : ").filter(|_| word == "arith.constant")?;
    let value = value.trim().trim_start_matches("dense<").trim_end_matches('>');
    value.parse::<i64>().is_ok().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "%0 = tt.get_program_id x : i32\n%c = arith.constant 3 : i32\n%1 = arith.muli %0, %c : i32\n\
        %v = tt.load %x : f32\n%k = arith.constant 1.000000e-01 : f32\n%w = arith.mulf %v, %k : f32\ntt.store %y, %w : f32\n";

    #[test]
    fn types_and_constants_are_no_difference() {
        let plain = fingerprint(PLAIN);
        let half = PLAIN
            .replace("1.000000e-01", "9.997560e-02")
            .replace("%w = ", "%e = arith.extf %v : f16 to f32\n%w = ");
        assert_eq!(fingerprint(&half), plain);
        let folded = PLAIN.replace("%1 = arith.muli %0, %c : i32\n", "");
        assert_eq!(fingerprint(&folded).without_integers, plain.without_integers);
        assert_ne!(fingerprint(&folded).without_types, plain.without_types);
    }

    #[test]
    fn other_operations_and_other_numbers_are() {
        let plain = fingerprint(PLAIN);
        let other = fingerprint(&PLAIN.replace("constant 3 ", "constant 4 "));
        assert_ne!(other.without_types, plain.without_types);
        assert_eq!(other.without_integers, plain.without_integers);
        let other = fingerprint(&PLAIN.replace("arith.mulf", "arith.addf"));
        assert_ne!(other.without_integers, plain.without_integers);
    }
}
