//! The catalogue of rules: a code for each kind of mistake in a manifest or in the kernels that it names.
//!
//! Owns the codes. Each rule has a page, `docs/rules/C0101.md`, which `cubinder explain C0101` prints; tests compare its examples with the checks. A
//! code is never reused: see [`is_retired`]. Never decides whether a rule is violated: each stage does that.

mod page;

pub use page::Rule;

use crate::diagnostic::Code;

/// Declares the codes, the list of all of them, and the catalogue with their pages.
macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*

        /// Every code, in the order of the catalogue.
        pub const ALL: &[Code] = &[$($name),*];

        /// Every rule with its page, in the same order.
        pub const CATALOGUE: &[Rule] = &[
            $(Rule { code: $name, page: include_str!(concat!("../../../../docs/rules/", $code, ".md")) }),*
        ];
    };
}

/// Codes of removed rules, which no new rule takes.
const RETIRED: [u16; 3] = [414, 415, 416];

/// Whether a text is the code of a removed rule.
#[must_use]
pub fn is_retired(text: &str) -> bool {
    number(text).is_some_and(|number| RETIRED.contains(&number))
}

/// The rule that a person means: `C0101`, `c0101`, `101`.
#[must_use]
pub fn find(text: &str) -> Option<&'static Rule> {
    let wanted = number(text)?;
    CATALOGUE.iter().find(|rule| number(rule.code.0) == Some(wanted))
}

/// The rule that a person probably means by a code that [`find`] does not know: of those of its hundred the nearest.
#[must_use]
pub fn nearest(text: &str) -> Option<&'static Rule> {
    let wanted = number(text)?;
    let numbered = CATALOGUE.iter().filter_map(|rule| Some((number(rule.code.0)?, rule)));
    let group = numbered.filter(|(known, _)| known / 100 == wanted / 100);
    group.min_by_key(|(known, _)| known.abs_diff(wanted)).map(|(_, rule)| rule)
}

fn number(text: &str) -> Option<u16> {
    let text = text.trim();
    let digits = text.strip_prefix(['C', 'c']).unwrap_or(text);
    let plain = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

rules! {
    // The form of the manifest.
    /// The text is no TOML.
    NOT_TOML = "C0001";
    /// The schema edition is missing or not known.
    SCHEMA_EDITION = "C0002";
    /// A key that this edition does not have.
    UNKNOWN_KEY = "C0003";
    /// A key or a table that must be there.
    MISSING_KEY = "C0004";
    /// A value of another type or form than the key takes.
    WRONG_VALUE = "C0005";
    /// A name that cannot be one: no identifier, too long, reserved.
    BAD_NAME = "C0006";
    /// A range that cannot be read, is empty or beyond what can be: ranks, lengths, limits.
    BAD_RANGE = "C0007";
    /// No type or format has this name.
    UNKNOWN_TYPE = "C0008";
    /// One name or value twice where each must be there once.
    DECLARED_TWICE = "C0009";
    /// The default of an attribute is not of its type or breaks the attribute's own constraints.
    BAD_DEFAULT = "C0010";
    /// The number of a variant is not one that TensorRT takes.
    VARIANT_ID = "C0011";
    /// Constraints of an attribute that contradict each other or its type.
    BAD_CONSTRAINT = "C0012";

    // Names and expressions.
    /// A name that nothing declares.
    UNKNOWN_NAME = "C0101";
    /// The text is no expression.
    NOT_AN_EXPRESSION = "C0102";
    /// A value of another kind than the operation or the key takes.
    WRONG_KIND = "C0103";
    /// An expression that has no value, whatever the node and the shapes.
    NO_VALUE = "C0104";
    /// A name that is declared, but not to be used in this place.
    OUT_OF_PLACE = "C0105";
    /// A call with the wrong number of arguments, or of itself.
    BAD_CALL = "C0106";
    /// Something that is declared and never used.
    UNUSED = "C0107";
    /// An expression that may have no value for some node or shape.
    MAY_HAVE_NO_VALUE = "C0108";

    // Variants, guards and rules about nodes.
    /// A guard that can never hold.
    GUARD_NEVER_HOLDS = "C0201";
    /// A guard that never fails.
    GUARD_NEVER_FAILS = "C0202";
    /// Types for which no variant is left when every guard fails.
    NO_VARIANT_WITHOUT_GUARD = "C0203";
    /// A rule about nodes that no node can meet, or that every node meets.
    REQUIRE_IS_CONSTANT = "C0204";
    /// A type or format parameter that nothing decides.
    UNDECIDED_TYPE = "C0205";
    /// More variants than a plugin can have.
    TOO_MANY_VARIANTS = "C0206";
    /// A variant that can never be chosen, because one before it takes everything.
    UNREACHABLE_VARIANT = "C0207";
    /// Two plugins of one name, version and namespace.
    PLUGIN_TWICE = "C0208";
    /// A format that tensors of a type or rank cannot have.
    NO_SUCH_LAYOUT = "C0209";
    /// An attribute that decides between variants, and that `timing` leaves out.
    TIMING_LEAVES_OUT = "C0210";

    // Launches.
    /// A grid beyond the limits of every GPU.
    GRID_LIMIT = "C0301";
    /// A block beyond the limits of every GPU.
    BLOCK_LIMIT = "C0302";
    /// More shared memory than a block can have.
    SHARED_MEMORY_LIMIT = "C0303";
    /// A value that does not fit the kernel's parameter.
    ARGUMENT_OVERFLOW = "C0304";
    /// An output shape that TensorRT cannot express.
    INEXPRESSIBLE_SHAPE = "C0305";
    /// An output that no kernel gets.
    UNWRITTEN_OUTPUT = "C0306";
    /// An input that no kernel gets and no expression reads.
    UNREAD_INPUT = "C0307";
    /// A dimension of an output that is below zero.
    NEGATIVE_DIMENSION = "C0308";
    /// Scratch memory of a size that cannot be.
    SCRATCH_LIMIT = "C0309";
    /// Scratch memory that is read before anything wrote it.
    UNWRITTEN_SCRATCH = "C0310";
    /// A step's condition that never holds or always does.
    STEP_CONDITION = "C0311";
    /// A memset of what must not be filled.
    NOT_FILLABLE = "C0312";
    /// A cluster that is too large, or of which the grid is no multiple.
    CLUSTER_LIMIT = "C0313";
    /// A cooperative launch that may not fit on the device.
    COOPERATIVE_GRID = "C0314";

    // Kernels.
    /// The kernel's file cannot be read.
    SOURCE_NOT_FOUND = "C0401";
    /// The file has no such kernel.
    KERNEL_NOT_FOUND = "C0402";
    /// The kernel has no such parameter.
    UNKNOWN_PARAMETER = "C0403";
    /// A parameter that gets no argument.
    MISSING_ARGUMENT = "C0404";
    /// An argument of another type than the parameter.
    ARGUMENT_MISFIT = "C0405";
    /// The name of the kernel is no name of a kernel.
    BAD_KERNEL_NAME = "C0406";
    /// The kernel does not compile.
    KERNEL_ERROR = "C0407";
    /// Parameters that share a name or have none.
    PARAMETER_NAMES = "C0408";
    /// An input that the kernel could write to.
    WRITABLE_INPUT = "C0409";
    /// Dynamic shared memory of which the launch gives none.
    NO_DYNAMIC_SHARED_MEMORY = "C0410";
    /// A kernel that is launched before the step before it has ended, and does not wait for that.
    NO_DEPENDENCY_WAIT = "C0411";
    /// One memory for two parameters, of which one is `__restrict__`.
    RESTRICTED_ALIAS = "C0412";
    /// The file of a table that cannot be read, or is none of its type.
    TABLE_FILE = "C0413";

    // Machine code.
    /// Parameters that differ from one compile to the next.
    PARAMETERS_DIFFER = "C0501";
    /// More bytes of parameters than a launch can pass.
    PARAMETER_BYTES = "C0502";
    /// More static shared memory than a kernel can have.
    STATIC_SHARED_MEMORY = "C0503";
    /// More registers than there are.
    REGISTERS = "C0504";
    /// A block that the kernel itself does not allow.
    LAUNCH_BOUNDS = "C0505";
    /// Clusters that the kernel asks for and the launch does not, or other ones.
    CLUSTER = "C0506";

    // What is compiled for.
    /// A target that this NVRTC cannot compile for.
    TARGET_NOT_SERVED = "C0601";
    /// A driver that cannot load what this NVRTC makes.
    DRIVER_TOO_OLD = "C0602";
    /// A kind of code for which there is no target.
    CODE_WITHOUT_TARGET = "C0603";
    /// An option that NVRTC does not take or that Cubinder sets itself.
    NVRTC_OPTION = "C0604";
    /// Code for a GPU that has not what the launch asks for.
    FEATURE_OF_TARGET = "C0605";

    // What ONNX can carry.
    /// An attribute that ONNX and TensorRT's parser cannot carry exactly.
    INEXACT_ATTRIBUTE = "C0701";

    // Shape inputs, outputs in place, sizes that depend on data.
    /// A shape input where memory of the device belongs.
    SHAPE_INPUT = "C0801";
    /// An output in place that cannot be.
    ALIAS = "C0802";
    /// A size that depends on data and cannot be one.
    SIZE_TENSOR = "C0803";

    // Code that other compilers made.
    /// A variant for which there is no code, or more than one.
    CODE_ROWS = "C0901";
    /// A file of code that cannot be used.
    CODE_FILE = "C0902";
    /// Parameters that are not those of the code.
    CODE_PARAMETERS = "C0903";
    /// A target for which there is no code.
    CODE_TARGETS = "C0904";
    /// Something for which the code was made and which is not so.
    CODE_ASSUMPTION = "C0905";

    // What is measured.
    /// A file of cases to measure that cannot be used.
    TUNE_FILE = "C1001";

    // The native route.
    /// A plugin that TensorRT cannot launch itself.
    NO_NATIVE_ROUTE = "C1101";
    /// A variant that is left out where TensorRT launches kernels itself.
    LEFT_OUT_OF_ROUTE = "C1102";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_however_they_are_written() {
        for text in ["C0101", "c0101", "101", "0101", " C0101 ", "C101"] {
            assert_eq!(find(text).map(|rule| rule.code), Some(UNKNOWN_NAME), "{text}");
        }
        for text in ["", "C", "C0", "C9999", "E0101", "0x65", "C01010", "-101", "99999999999999999999"] {
            assert_eq!(find(text).map(|rule| rule.code), None, "{text}");
        }
    }

    #[test]
    fn a_slip_is_recognised() {
        assert_eq!(nearest("C0702").map(|rule| rule.code), Some(INEXACT_ATTRIBUTE));
        assert_eq!(nearest("99").map(|rule| rule.code), Some(BAD_CONSTRAINT));
        assert!(nearest("C9900").is_none());
        assert!(nearest("what").is_none());
    }

    #[test]
    fn codes_rise_and_stand_once() {
        assert!(ALL.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(ALL.len(), CATALOGUE.len());
    }

    #[test]
    fn retired_codes_have_no_rule() {
        assert!(ALL.iter().all(|code| !is_retired(code.0)));
        assert!(is_retired("C0414") && is_retired("c0416") && !is_retired("C9999"));
    }
}
