//! The catalogue of rules: codes, never reused ([`is_retired`]), and their pages `docs/rules/C0101.md` for
//! `cubinder explain C0101`.

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
    /// Missing or unknown schema edition.
    SCHEMA_EDITION = "C0002";
    /// Key that this edition lacks.
    UNKNOWN_KEY = "C0003";
    /// Missing key or table.
    MISSING_KEY = "C0004";
    /// Value of the wrong type or form.
    WRONG_VALUE = "C0005";
    /// Invalid name: no identifier, too long, reserved.
    BAD_NAME = "C0006";
    /// Invalid, empty or impossible range.
    BAD_RANGE = "C0007";
    /// Unknown type or format.
    UNKNOWN_TYPE = "C0008";
    /// Duplicate name or value.
    DECLARED_TWICE = "C0009";
    /// Default that violates type or constraints.
    BAD_DEFAULT = "C0010";
    /// Variant number that TensorRT rejects.
    VARIANT_ID = "C0011";
    /// Contradictory attribute constraints.
    BAD_CONSTRAINT = "C0012";

    // Names and expressions.
    /// Undeclared name.
    UNKNOWN_NAME = "C0101";
    /// Invalid expression.
    NOT_AN_EXPRESSION = "C0102";
    /// Value of the wrong kind.
    WRONG_KIND = "C0103";
    /// Expression that never has a value.
    NO_VALUE = "C0104";
    /// Declared name not allowed here.
    OUT_OF_PLACE = "C0105";
    /// Recursive call, or wrong number of arguments.
    BAD_CALL = "C0106";
    /// Unused declaration.
    UNUSED = "C0107";
    /// Expression without a value for some node.
    MAY_HAVE_NO_VALUE = "C0108";

    // Variants, guards and rules about nodes.
    /// Never satisfied guard.
    GUARD_NEVER_HOLDS = "C0201";
    /// Always satisfied guard.
    GUARD_NEVER_FAILS = "C0202";
    /// Types without a variant if every guard fails.
    NO_VARIANT_WITHOUT_GUARD = "C0203";
    /// Rule that all or no nodes satisfy.
    REQUIRE_IS_CONSTANT = "C0204";
    /// Undetermined type or format parameter.
    UNDECIDED_TYPE = "C0205";
    /// Too many variants.
    TOO_MANY_VARIANTS = "C0206";
    /// Variant that earlier ones always precede.
    UNREACHABLE_VARIANT = "C0207";
    /// Two plugins with equal name, version and namespace.
    PLUGIN_TWICE = "C0208";
    /// Format that a type or rank does not support.
    NO_SUCH_LAYOUT = "C0209";
    /// Attribute that selects variants but is missing in `timing`.
    TIMING_LEAVES_OUT = "C0210";

    // Launches.
    /// Grid above every GPU's limits.
    GRID_LIMIT = "C0301";
    /// Block above every GPU's limits.
    BLOCK_LIMIT = "C0302";
    /// More shared memory than a block can have.
    SHARED_MEMORY_LIMIT = "C0303";
    /// Value outside of the kernel parameter's range.
    ARGUMENT_OVERFLOW = "C0304";
    /// Output shape that TensorRT cannot express.
    INEXPRESSIBLE_SHAPE = "C0305";
    /// Output that no kernel receives.
    UNWRITTEN_OUTPUT = "C0306";
    /// Input that no kernel or expression uses.
    UNREAD_INPUT = "C0307";
    /// Negative output dimension.
    NEGATIVE_DIMENSION = "C0308";
    /// Invalid scratch size.
    SCRATCH_LIMIT = "C0309";
    /// Scratch memory read before it is written.
    UNWRITTEN_SCRATCH = "C0310";
    /// Constant step condition.
    STEP_CONDITION = "C0311";
    /// Memset of a tensor that cannot be filled.
    NOT_FILLABLE = "C0312";
    /// Cluster that is too large or does not divide the grid.
    CLUSTER_LIMIT = "C0313";
    /// Cooperative launch that may not fit on the device.
    COOPERATIVE_GRID = "C0314";

    // Kernels.
    /// Unreadable kernel file.
    SOURCE_NOT_FOUND = "C0401";
    /// Kernel that its file lacks.
    KERNEL_NOT_FOUND = "C0402";
    /// Parameter that the kernel lacks.
    UNKNOWN_PARAMETER = "C0403";
    /// Parameter without argument.
    MISSING_ARGUMENT = "C0404";
    /// Argument of the wrong type.
    ARGUMENT_MISFIT = "C0405";
    /// Invalid kernel name.
    BAD_KERNEL_NAME = "C0406";
    /// Kernel that does not compile.
    KERNEL_ERROR = "C0407";
    /// Unnamed or equally named parameters.
    PARAMETER_NAMES = "C0408";
    /// Input that the kernel could write.
    WRITABLE_INPUT = "C0409";
    /// Dynamic shared memory that the launch lacks.
    NO_DYNAMIC_SHARED_MEMORY = "C0410";
    /// Kernel that starts early and never waits.
    NO_DEPENDENCY_WAIT = "C0411";
    /// Aliased parameters, one `__restrict__`.
    RESTRICTED_ALIAS = "C0412";
    /// Unreadable table file, or of another type.
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
    /// Block that the kernel does not allow.
    LAUNCH_BOUNDS = "C0505";
    /// Kernel clusters that the launch lacks or contradicts.
    CLUSTER = "C0506";

    // Targets.
    /// Target that this NVRTC does not support.
    TARGET_NOT_SERVED = "C0601";
    /// Driver that cannot load this NVRTC's output.
    DRIVER_TOO_OLD = "C0602";
    /// Kind of code without a target.
    CODE_WITHOUT_TARGET = "C0603";
    /// Option that NVRTC rejects or Cubinder sets itself.
    NVRTC_OPTION = "C0604";
    /// GPU without a feature that the launch needs.
    FEATURE_OF_TARGET = "C0605";

    // ONNX.
    /// Attribute that ONNX or TensorRT's parser cannot represent exactly.
    INEXACT_ATTRIBUTE = "C0701";

    // Shape inputs, in-place outputs, data-dependent sizes.
    /// Shape input used as device memory.
    SHAPE_INPUT = "C0801";
    /// Invalid in-place output.
    ALIAS = "C0802";
    /// Invalid data-dependent size.
    SIZE_TENSOR = "C0803";

    // Precompiled code.
    /// Variant with no code, or several.
    CODE_ROWS = "C0901";
    /// Unusable code file.
    CODE_FILE = "C0902";
    /// Parameters that differ from the code's.
    CODE_PARAMETERS = "C0903";
    /// Target without code.
    CODE_TARGETS = "C0904";
    /// Violated assumption of the code.
    CODE_ASSUMPTION = "C0905";

    // Measurements.
    /// Unusable file of cases to measure.
    TUNE_FILE = "C1001";

    // Launches by TensorRT itself.
    /// Plugin that TensorRT cannot launch itself.
    NO_NATIVE_ROUTE = "C1101";
    /// Variant that TensorRT cannot launch itself.
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
