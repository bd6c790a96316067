//! Errors of the readers of manifests and `cubinder.toml`.

use crate::diagnostic::Span;

cubinder_source::diagnostics! {
    pub(crate) struct NotToml { cause: String, place: Span, label: String }
    error(NOT_TOML) "not valid TOML: {cause}" { at place: "{label}"; }

    pub(crate) struct KeyTwice { key: String, second: Span, first: Option<Span>, misspelt: Option<Span>, help: Option<String> }
    error(DECLARED_TWICE) "the key `{key}` is given twice" {
        at second: "the second time"; related first ?first: "the first time";
        related misspelt ?misspelt: "no key of a manifest"; help ?help: "{help}";
    }

    pub(crate) struct UnknownKey { key: String, table: String, place: Span, note: Option<String>, help: Option<String> }
    error(UNKNOWN_KEY) "unknown key `{key}` in {table}" {
        at place: "not a key of this table"; note ?note: "{note}"; help ?help: "{help}";
    }

    pub(crate) struct MissingKey { table: String, key: &'static str, expected: String, place: Span }
    error(MISSING_KEY) "{table} has no `{key}`" { at place: "expected `{key} = {expected}` in this table"; }

    pub(crate) struct MisplacedKey { key: String, table: String, parent: &'static str, place: Span, help: String }
    error(UNKNOWN_KEY) "`{key}` stands in the wrong table" {
        at place: "in `{table}`, and `{parent}` has none"; help: "{help}";
    }

    pub(crate) struct WrongType { key: String, expected: String, found: String, place: Span, note: Option<String>, help: Option<String> }
    error(WRONG_VALUE) "`{key}` must be {expected}" { at place: "found {found}"; note ?note: "{note}"; help ?help: "{help}"; }

    pub(crate) struct IntegerTooLarge { key: String, place: Span }
    error(WRONG_VALUE) "`{key}` is too large for an integer of 64 bits" { at place: ""; }

    pub(crate) struct NotFinite { key: String, place: Span }
    error(WRONG_VALUE) "`{key}` must be finite" { at place: "not a number that a double can hold"; }

    pub(crate) struct TableWithoutName { key: String, name: String, place: Span }
    error(WRONG_VALUE) "`{key}` must be made of tables, each beginning with `[{key}.NAME]`" {
        at place: "not in a table `[{key}.NAME]`"; help: "write `[{key}.{name}]` before its keys";
    }

    pub(crate) struct NotIdentifier { what: String, found: String, place: Span }
    error(BAD_NAME) "the name of {what} must be an identifier" {
        at place: "{found}"; note: "an identifier is made of ASCII letters, digits and `_`, and does not begin with a digit";
    }

    pub(crate) struct ReservedName { what: String, name: String, why: String, place: Span }
    error(BAD_NAME) "{what} cannot be called `{name}`" { at place: "{why}"; }

    pub(crate) struct NameTooLong { most: usize, length: usize, place: Span }
    error(BAD_NAME) "a name may have at most {most} bytes" { at place: "this has {length}"; note: "this is TensorRT's limit"; }

    pub(crate) struct BadNamespace { found: String, place: Span }
    error(BAD_NAME) "a namespace must be empty or made of identifiers with dots between them" {
        at place: "{found}"; help: "write it as `sample` or `com.example`";
    }

    pub(crate) struct BadVersion { found: String, place: Span }
    error(BAD_NAME) "a version must be made of letters, digits, `.`, `_`, `+` and `-`" { at place: "{found}"; }

    pub(crate) struct EmptyPath { key: String, what: &'static str, place: Span, help: Option<&'static str> }
    error(WRONG_VALUE) "`{key}` must name {what}" { at place: "this is empty"; help ?help: "{help}"; }

    pub(crate) struct EmptyArray { message: String, label: &'static str, place: Span, note: Option<&'static str> }
    error(WRONG_VALUE) "{message}" { at place: "{label}"; note ?note: "{note}"; }

    pub(crate) struct EmptyMessage { place: Span }
    error(WRONG_VALUE) "the `message` of a rule must not be empty" {
        at place: "this is what the person reads whose node breaks the rule";
    }

    pub(crate) struct Repeated { message: String, ordinal: &'static str, second: Span, first: Span }
    error(DECLARED_TWICE) "{message}" { at second: "the second {ordinal}"; related first: "the first {ordinal}"; }

    pub(crate) struct UnknownWord { what: &'static str, word: String, expected: &'static str, place: Span, near: Option<&'static str> }
    error(WRONG_VALUE) "unknown {what} `{word}`" { at place: "expected {expected}"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct UnknownType { what: &'static str, article: &'static str, name: String, notes: Vec<String>, place: Span, help: Option<String> }
    error(UNKNOWN_TYPE) "unknown {what} `{name}`" { at place: "not {article} {what}"; note *notes: "{notes}"; help ?help: "{help}"; }

    pub(crate) struct BadVariantId { most: i32, found: i64, place: Span }
    error(VARIANT_ID) "the `id` of a variant must be from 1 to {most}" {
        at place: "found `{found}`"; note: "it is TensorRT's tactic number; TensorRT keeps 0, and Cubinder keeps the highest";
    }

    pub(crate) struct BadConstant { name: String, found: String, place: Span }
    error(WRONG_VALUE) "the constant `{name}` must be a number or a boolean" { at place: "found {found}"; }

    pub(crate) struct NoAlternatives { what: &'static str, many: &'static str, name: String, place: Span }
    error(WRONG_VALUE) "the {what} parameter `{name}` has no alternatives" { at place: "expected at least one of the {many}"; }

    pub(crate) struct NoPlugin { place: Span }
    error(MISSING_KEY) "the manifest has no `[plugin]` table" { at place: "expected `[plugin]` with `name` and `namespace`"; }

    pub(crate) struct NoSchema { place: Span, label: &'static str, note: String, near: Option<&'static str> }
    error(SCHEMA_EDITION) "the manifest does not say which schema edition it follows" {
        at place: "{label}"; note: "{note}"; help ?near: "did you mean `{near}`?";
    }

    pub(crate) struct UnknownSchema { edition: i64, place: Span, note: String, help: Option<&'static str> }
    error(SCHEMA_EDITION) "schema edition {edition} is not known" { at place: "this edition"; note: "{note}"; help ?help: "{help}"; }

    // [tables]
    pub(crate) struct ValuesAndFile { place: Span }
    error(WRONG_VALUE) "a table has `values` or `file`, and not both" { at place: "the elements are in a file"; help: "leave one of both out"; }

    pub(crate) struct TableSize { message: String, label: String, place: Span }
    error(WRONG_VALUE) "{message}" { at place: "{label}"; }

    pub(crate) struct WrongElement { ty: &'static str, found: String, why: String, place: Span, declared: Span }
    error(WRONG_VALUE) "an element of the table is not of type `{ty}`" {
        at place: "found {found}{why}"; related declared: "the type of its elements";
    }

    pub(crate) struct BadElement { found: String, place: Span }
    error(WRONG_VALUE) "an element of a table must be a number or a boolean" { at place: "found {found}"; }

    // [compile]
    pub(crate) struct BadTarget { message: String, place: Span, near: Option<String> }
    error(WRONG_VALUE) "{message}" { at place: "this is no target"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct NotOption { found: String, place: Span, help: Option<String> }
    error(WRONG_VALUE) "an option of NVRTC begins with `-`" { at place: "{found}"; help ?help: "{help}"; }

    pub(crate) struct BadDriver { found: String, place: Span }
    error(WRONG_VALUE) "`min_driver` must be a release of NVIDIA's driver" {
        at place: "{found}"; help: "write it as `nvidia-smi` shows it: `580.65.06`, `580.65` or `580`";
    }

    // [[launches]]
    pub(crate) struct NothingLaunched { place: Span, label: &'static str }
    error(MISSING_KEY) "the manifest launches nothing" {
        at place: "{label}";
        note: "a launch names a CUDA source and a kernel in it, or code that another compiler made; grid, block and arguments";
    }

    pub(crate) struct MemsetAndLaunch { place: Span }
    error(WRONG_VALUE) "a memset and a launch in one step" {
        at place: "the memset"; note: "steps run in the order in which they stand";
        help: "make two steps of it: a `[[launches]]` table with the memset, and one for the launch behind it";
    }

    pub(crate) struct NotByte { found: i64, place: Span }
    error(WRONG_VALUE) "`byte` must be from 0 to 255" {
        at place: "found `{found}`"; note: "memory is filled with one byte: numbers other than 0 are rarely what all of its bytes are";
    }

    pub(crate) struct SourceAndCode { place: Span, help: &'static str }
    error(WRONG_VALUE) "a launch of code that is there already compiles nothing" {
        at place: "this belongs to launches of CUDA sources"; help: "{help}";
    }

    pub(crate) struct BadExtents { key: String, found: usize, place: Span }
    error(WRONG_VALUE) "`{key}` must have one to three expressions: x, y and z" { at place: "found {found}"; }

    // [[code]]
    pub(crate) struct BadSymbol { found: String, place: Span }
    error(WRONG_VALUE) "`kernel` must be the symbol of a kernel, as its file has it" {
        at place: "{found}"; help: "`cuobjdump -symbols FILE` shows the symbols of a cubin; in PTX they stand behind `.entry`";
    }

    pub(crate) struct BadParameter { message: &'static str, found: String, place: Span, help: &'static str }
    error(WRONG_VALUE) "{message}" { at place: "{found}"; help: "{help}"; }

    // [[inputs]] and [[outputs]]
    pub(crate) struct ShapeInputRankRange { place: Span }
    error(BAD_RANGE) "the rank of a shape input must be one number" {
        at place: "found a range"; help: "write `rank = 1` for several values, `rank = 0` for one";
    }

    pub(crate) struct TooManyShapeValues { most: i64, place: Span }
    error(BAD_RANGE) "a shape input has at most {most} values" {
        at place: "these are more"; note: "TensorRT tells plugins of no more when it asks for the outputs' shapes";
    }

    pub(crate) struct NotIntegerType { what: &'static str, found: String, place: Span }
    error(UNKNOWN_TYPE) "{what} holds `i32` or `i64`" {
        at place: "found `{found}`"; note: "TensorRT takes integers of 32 and of 64 bits there";
    }

    pub(crate) struct KeyOfAlias { key: String, place: Span }
    error(ALIAS) "an output in place has no `{key}` of its own" { at place: "it is the input's"; help: "leave it out"; }

    pub(crate) struct KeyOfSizeTensor { key: String, place: Span }
    error(SIZE_TENSOR) "an output that holds a size has no `{key}`" {
        at place: "it is a single number: its shape is `[]`";
        help: "leave it out; the name of this output is a dimension of other outputs";
    }

    pub(crate) struct DimensionsOfAnyRank { found: String, place: Span, ranks: Option<Span>, lowest: u8, highest: u8, note: Option<&'static str>, help: String }
    error(BAD_RANGE) "single dimensions can be limited only where the rank is fixed" {
        at place: "ranges for {found}"; related ranks ?ranks: "this input has {lowest} to {highest} dimensions";
        note ?note: "{note}"; help: "{help}";
    }

    pub(crate) struct DimensionCount { found: usize, place: Span, rank: u8, declared: Option<Span> }
    error(BAD_RANGE) "`dims` must have one range for each dimension" { at place: "found {found}"; related declared ?declared: "the rank is {rank}"; }

    pub(crate) struct UnmeetableLimits { bound: String, place: Span }
    error(BAD_RANGE) "no shape can meet both `dims` and `numel`" { at place: "{bound}"; }

    pub(crate) struct BadRange { key: String, expected: String, label: String, example: String, place: Span }
    error(BAD_RANGE) "`{key}` must be {expected}" { at place: "{label}"; help: "write `{key} = {example}`; both ends belong to a range"; }

    // The constraints of attributes
    pub(crate) struct TwoLists { place: Span, one_of: Span }
    error(BAD_CONSTRAINT) "`specialize` and `one_of` say the same thing twice" {
        at place: "code is compiled for these values, and others are refused"; related one_of: "this says what is refused, too";
        help: "leave `one_of` out";
    }

    pub(crate) struct ConstraintOfOtherType { rule: &'static str, label: &'static str, name: String, ty: &'static str, help: &'static str, place: Span, declared: Span }
    error(BAD_CONSTRAINT) "{rule}" { at place: "{label}"; related declared: "`{name}` is of type `{ty}`"; help: "{help}"; }

    pub(crate) struct RangeBeyondType { end: String, name: String, ty: &'static str, place: Span, declared: Span }
    error(BAD_CONSTRAINT) "this range goes beyond the attribute's type" {
        at place: "{end}"; related declared: "`{name}` is of type `{ty}`";
    }

    pub(crate) struct EmptyRange { min: String, max: String, place: Span }
    error(BAD_CONSTRAINT) "no number is in this range" { at place: "{min} is more than {max}"; help: "write `range = \"{max}..={min}\"`"; }

    pub(crate) struct NoValueLeft { key: String, name: String, place: Span }
    error(BAD_CONSTRAINT) "`{key}` leaves no value for `{name}`" { at place: "expected at least one value"; }

    pub(crate) struct ListedValueType { key: String, ty: &'static str, label: String, place: Span, declared: Span }
    error(BAD_CONSTRAINT) "a value of `{key}` is not of type `{ty}`" { at place: "{label}"; related declared: "the attribute's type"; }

    pub(crate) struct ListedOutsideRange { key: String, label: String, place: Span, range: Span }
    error(BAD_CONSTRAINT) "a value of `{key}` is outside `range`" { at place: "{label}"; related range: "the range"; }

    pub(crate) struct ListedLength { key: String, length: String, place: Span, lengths: Span }
    error(BAD_CONSTRAINT) "a value of `{key}` has a length that `length` refuses" { at place: "{length}"; related lengths: "the lengths"; }

    pub(crate) struct DefaultType { ty: &'static str, label: String, place: Span, help: Option<String> }
    error(BAD_DEFAULT) "the default is not of type `{ty}`" { at place: "{label}"; help ?help: "{help}"; }

    pub(crate) struct RejectedDefault { key: &'static str, label: String, place: Span, constraint: Span, what: &'static str, near: Option<String> }
    error(BAD_DEFAULT) "the default breaks the attribute's own `{key}`" {
        at place: "{label}"; related constraint: "the {what}"; help ?near: "did you mean `{near}`?";
    }

    // cubinder.toml
    pub(crate) struct NoLibrary { place: Span }
    error(MISSING_KEY) "the file has no `[library]` table" { at place: "expected `[library]` with `name` and `targets`"; }

    pub(crate) struct OutsideOfLibrary { key: String, place: Span }
    error(UNKNOWN_KEY) "`{key}` stands outside of `[library]`" {
        at place: "this key belongs into that table"; help: "move it below the line `[library]`";
    }

    pub(crate) struct BadPattern { pattern: String, why: &'static str, place: Span }
    error(WRONG_VALUE) "`{pattern}` is no pattern of paths" { at place: "{why}"; }
}
