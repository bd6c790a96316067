//! Placeholders in imported manifests, in capitals, for values that users must supply. Owns their spelling.

/// Type of a tensor's elements.
pub const ELEMENT: &str = "TYPE_OF_ELEMENTS";
/// Blocks of a grid.
pub const BLOCKS: &str = "NUMBER_OF_BLOCKS";
/// Programs of a Triton grid.
pub const PROGRAMS: &str = "NUMBER_OF_PROGRAMS";
/// Threads of a block.
pub const THREADS: &str = "NUMBER_OF_THREADS";
/// Dynamic shared memory.
pub const SHARED_BYTES: &str = "BYTES_OF_SHARED_MEMORY";

/// Each precedes a name.
const WITH_A_NAME: [&str; 5] = ["SHAPE_OF_", "TENSOR_", "VALUE_OF_", "CONSTANT_", "WHERE_"];

/// Names the shape of an output.
pub fn shape_of(name: &str) -> String {
    format!("SHAPE_OF_{name}")
}

/// Names the tensor for a pointer.
pub fn tensor(name: &str) -> String {
    format!("TENSOR_{name}")
}

/// Names a parameter's value.
pub fn value_of(name: &str) -> String {
    format!("VALUE_OF_{name}")
}

/// Names the check for `bits` bits; replacing [`value_of`] replaces it.
pub fn fits(name: &str, bits: u32) -> String {
    let value = value_of(name);
    let most = i64::MAX >> 64_u32.saturating_sub(bits);
    format!("{} <= ({value}) and ({value}) <= {most}", -most - 1)
}

/// Names a parameter's fixed value.
pub fn constant_of(name: &str) -> String {
    format!("CONSTANT_{name}")
}

/// Names the condition for a word, which manifests cannot compare.
pub fn where_it_is(name: &str, word: &str) -> String {
    let clean: String = word.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("WHERE_{name}_IS_{clean}")
}

/// Names a type of known size.
pub fn unknown_type(bytes: u32) -> String {
    format!("TYPE_OF_{bytes}_BYTES")
}

/// Returns whether a word is a placeholder.
#[must_use]
pub fn is_unsaid(word: &str) -> bool {
    let is_type = || {
        let bytes = word.strip_prefix("TYPE_OF_").and_then(|rest| rest.strip_suffix("_BYTES"));
        bytes.is_some_and(|bytes| bytes.parse::<u32>().is_ok())
    };
    [ELEMENT, BLOCKS, PROGRAMS, THREADS, SHARED_BYTES].contains(&word)
        || WITH_A_NAME.iter().any(|prefix| word.strip_prefix(prefix).is_some_and(|name| !name.is_empty()))
        || is_type()
}
