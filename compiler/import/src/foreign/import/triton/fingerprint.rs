//! What a kernel does whatever its types are and whatever was folded into it, so that code of an older source can be told.
//!
//! Owns what of Triton's text follows the types and the constants of a compile. Read off `NAME.source` of Triton 3.9.0: for other element types
//! there are other conversions and nothing else; where an integer is a constant, no more than the arithmetic of integers differs.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A kernel's operations, in two numbers that are the same for the same operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint {
    /// All but conversions: the same for all floats as element types.
    pub(super) without_types: u64,
    /// Nor the arithmetic of integers, and what only moves values: the same whichever integers are constants.
    pub(super) without_integers: u64,
}

/// Whether an operation converts types (`arith` and `tt` of Triton 3.9).
fn is_conversion(word: &str) -> bool {
    const ARITH: &str = "extf truncf bitcast sitofp uitofp fptosi fptoui extsi extui trunci index_cast";
    is_of("arith.", ARITH, word) || is_of("tt.", "fp_to_fp bitcast", word)
}

/// Whether an operation computes integers and addresses, or moves values.
fn is_of_integers(word: &str) -> bool {
    const ARITH: &str = "constant select andi ori xori cmpi shli shrsi shrui addi subi muli divsi divui remsi remui maxsi maxui minsi \
                         minui ceildivsi ceildivui floordivsi";
    is_of("arith.", ARITH, word) || is_of("tt.", "addptr splat broadcast expand_dims advance", word)
}

/// Whether a word is one of these operations of a dialect.
fn is_of(dialect: &str, operations: &str, word: &str) -> bool {
    word.strip_prefix(dialect).is_some_and(|word| operations.split(' ').any(|operation| operation == word))
}

/// The work that operations do.
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

/// The name of an operation and what stands behind it.
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

/// A constant that is no float: floats are rounded to their types.
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
