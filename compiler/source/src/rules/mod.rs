//! The catalogue of rules: codes, never reused ([`is_retired`]), and their pages `docs/rules/C0101.md` for
//! `cubinder explain C0101`. Tests compare the pages' examples with the checks.

mod page;

pub use page::Rule;

use crate::diagnostic::Code;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$doc])* pub const $name: Code = Code($code);)*

        /// All codes in order.
        pub const ALL: &[Code] = &[$($name),*];

        /// All rules with pages.
        pub const CATALOGUE: &[Rule] = &[
            $(Rule { code: $name, page: include_str!(concat!("../../../../docs/rules/", $code, ".md")) }),*
        ];
    };
}

/// Codes of removed rules.
const RETIRED: [u16; 3] = [414, 415, 416];

/// Detects a removed rule's code.
#[must_use]
pub fn is_retired(text: &str) -> bool {
    number(text).is_some_and(|number| RETIRED.contains(&number))
}

/// Finds a rule by `C0101`, `c0101` or `101`.
#[must_use]
pub fn find(text: &str) -> Option<&'static Rule> {
    let wanted = number(text)?;
    CATALOGUE.iter().find(|rule| number(rule.code.0) == Some(wanted))
}

/// Returns the nearest code of the same hundred.
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
    /// Invalid TOML.
    NOT_TOML = "C0001";
    /// A missing or unknown schema edition.
    SCHEMA_EDITION = "C0002";
    /// A key that this edition lacks.
    UNKNOWN_KEY = "C0003";
    /// A missing key or table.
    MISSING_KEY = "C0004";
    /// A value of the wrong type or form.
    WRONG_VALUE = "C0005";
    /// An invalid name: no identifier, too long, reserved.
    BAD_NAME = "C0006";
    /// An invalid, empty or impossible range of ranks, lengths or limits.
    BAD_RANGE = "C0007";
    /// An unknown type or format.
    UNKNOWN_TYPE = "C0008";
    /// A duplicate name or value.
    DECLARED_TWICE = "C0009";
    /// A default that violates the attribute's type or constraints.
    BAD_DEFAULT = "C0010";
    /// A variant number that TensorRT rejects.
    VARIANT_ID = "C0011";
    /// Attribute constraints that contradict each other or the type.
    BAD_CONSTRAINT = "C0012";

    // Names and expressions.
    /// An undeclared name.
    UNKNOWN_NAME = "C0101";
    /// An invalid expression.
    NOT_AN_EXPRESSION = "C0102";
    /// A value of the wrong kind for the operation or key.
    WRONG_KIND = "C0103";
    /// An expression that never has a value.
    NO_VALUE = "C0104";
    /// A declared name that is not allowed here.
    OUT_OF_PLACE = "C0105";
    /// A call with the wrong number of arguments, or a recursive one.
    BAD_CALL = "C0106";
    /// An unused declaration.
    UNUSED = "C0107";
    /// An expression without a value for some node or shape.
    MAY_HAVE_NO_VALUE = "C0108";

    // Variants, guards and rules about nodes.
    /// A guard that is never satisfied.
    GUARD_NEVER_HOLDS = "C0201";
    /// A guard that is always satisfied.
    GUARD_NEVER_FAILS = "C0202";
    /// Types without a variant if every guard fails.
    NO_VARIANT_WITHOUT_GUARD = "C0203";
    /// A rule about nodes that all or no nodes satisfy.
    REQUIRE_IS_CONSTANT = "C0204";
    /// An undetermined type or format parameter.
    UNDECIDED_TYPE = "C0205";
    /// Too many variants.
    TOO_MANY_VARIANTS = "C0206";
    /// A variant that earlier ones always precede.
    UNREACHABLE_VARIANT = "C0207";
    /// Two plugins with equal name, version and namespace.
    PLUGIN_TWICE = "C0208";
    /// A format that a type or rank does not support.
    NO_SUCH_LAYOUT = "C0209";
    /// An attribute that selects variants but is missing in `timing`.
    TIMING_LEAVES_OUT = "C0210";

    // Launches.
    /// A grid above every GPU's limits.
    GRID_LIMIT = "C0301";
    /// A block above every GPU's limits.
    BLOCK_LIMIT = "C0302";
    /// More shared memory than a block can have.
    SHARED_MEMORY_LIMIT = "C0303";
    /// A value outside of the kernel parameter's range.
    ARGUMENT_OVERFLOW = "C0304";
    /// An output shape that TensorRT cannot express.
    INEXPRESSIBLE_SHAPE = "C0305";
    /// An output that no kernel receives.
    UNWRITTEN_OUTPUT = "C0306";
    /// An input that no kernel or expression uses.
    UNREAD_INPUT = "C0307";
    /// A negative output dimension.
    NEGATIVE_DIMENSION = "C0308";
    /// An invalid scratch size.
    SCRATCH_LIMIT = "C0309";
    /// Scratch memory that is read before it is written.
    UNWRITTEN_SCRATCH = "C0310";
    /// A step's condition that is constant.
    STEP_CONDITION = "C0311";
    /// A memset of a tensor that cannot be filled.
    NOT_FILLABLE = "C0312";
    /// A cluster that is too large or does not divide the grid.
    CLUSTER_LIMIT = "C0313";
    /// A cooperative launch that may not fit on the device.
    COOPERATIVE_GRID = "C0314";

    // Kernels.
    /// An unreadable kernel file.
    SOURCE_NOT_FOUND = "C0401";
    /// A kernel that its file lacks.
    KERNEL_NOT_FOUND = "C0402";
    /// A parameter that the kernel lacks.
    UNKNOWN_PARAMETER = "C0403";
    /// A parameter without argument.
    MISSING_ARGUMENT = "C0404";
    /// An argument of the wrong type.
    ARGUMENT_MISFIT = "C0405";
    /// An invalid kernel name.
    BAD_KERNEL_NAME = "C0406";
    /// A kernel that does not compile.
    KERNEL_ERROR = "C0407";
    /// Unnamed or equally named parameters.
    PARAMETER_NAMES = "C0408";
    /// An input that the kernel could write.
    WRITABLE_INPUT = "C0409";
    /// Dynamic shared memory that the launch does not provide.
    NO_DYNAMIC_SHARED_MEMORY = "C0410";
    /// A kernel that starts before the previous step ends, without waiting for it.
    NO_DEPENDENCY_WAIT = "C0411";
    /// Aliased parameters, one `__restrict__`.
    RESTRICTED_ALIAS = "C0412";
    /// A table's file that is unreadable or of another type.
    TABLE_FILE = "C0413";

    // Machine code.
    /// Parameters that differ between compiles.
    PARAMETERS_DIFFER = "C0501";
    /// More parameter bytes than a launch can pass.
    PARAMETER_BYTES = "C0502";
    /// More static shared memory than a kernel can have.
    STATIC_SHARED_MEMORY = "C0503";
    /// More registers than available.
    REGISTERS = "C0504";
    /// A block that the kernel does not allow.
    LAUNCH_BOUNDS = "C0505";
    /// Clusters of the kernel that the launch lacks or contradicts.
    CLUSTER = "C0506";

    // Targets.
    /// A target that this NVRTC does not support.
    TARGET_NOT_SERVED = "C0601";
    /// A driver that cannot load this NVRTC's output.
    DRIVER_TOO_OLD = "C0602";
    /// A kind of code without a target.
    CODE_WITHOUT_TARGET = "C0603";
    /// An option that NVRTC rejects or Cubinder sets itself.
    NVRTC_OPTION = "C0604";
    /// Code for a GPU without a feature that the launch needs.
    FEATURE_OF_TARGET = "C0605";

    // ONNX.
    /// An attribute that ONNX or TensorRT's parser cannot represent exactly.
    INEXACT_ATTRIBUTE = "C0701";

    // Shape inputs, in-place outputs, data-dependent sizes.
    /// A shape input used as device memory.
    SHAPE_INPUT = "C0801";
    /// An invalid in-place output.
    ALIAS = "C0802";
    /// An invalid data-dependent size.
    SIZE_TENSOR = "C0803";

    // Precompiled code.
    /// A variant with no code, or several.
    CODE_ROWS = "C0901";
    /// An unusable code file.
    CODE_FILE = "C0902";
    /// Parameters that differ from the code's.
    CODE_PARAMETERS = "C0903";
    /// A target without code.
    CODE_TARGETS = "C0904";
    /// A violated assumption of the code.
    CODE_ASSUMPTION = "C0905";

    // Measurements.
    /// An unusable file of cases to measure.
    TUNE_FILE = "C1001";

    // Launches by TensorRT itself.
    /// A plugin that TensorRT cannot launch itself.
    NO_NATIVE_ROUTE = "C1101";
    /// A variant that is omitted if TensorRT launches kernels itself.
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
