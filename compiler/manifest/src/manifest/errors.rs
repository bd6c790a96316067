use crate::diagnostic::Span;

cubinder_source::diagnostics! {
    pub(crate) struct NotToml { cause: String, place: Span, label: String }
    error(NOT_TOML) "not valid TOML: {cause}" { at place: "{label}"; }

    pub(crate) struct KeyTwice { key: String, second: Span, first: Option<Span>, misspelt: Option<Span>, help: Option<String> }
    error(DECLARED_TWICE) "duplicate key `{key}`" {
        at second: "second occurrence"; related first ?first: "first occurrence";
        related misspelt ?misspelt: "not a key of a manifest"; help ?help: "{help}";
    }

    pub(crate) struct UnknownKey { key: String, table: String, place: Span, note: Option<String>, help: Option<String> }
    error(UNKNOWN_KEY) "unknown key `{key}` in {table}" {
        at place: "not a key of this table"; note ?note: "{note}"; help ?help: "{help}";
    }

    pub(crate) struct MissingKey { table: String, key: &'static str, expected: String, place: Span }
    error(MISSING_KEY) "missing `{key}` in {table}" { at place: "expected `{key} = {expected}` in this table"; }

    pub(crate) struct MisplacedKey { key: String, table: String, parent: &'static str, place: Span, help: String }
    error(UNKNOWN_KEY) "`{key}` is in the wrong table" {
        at place: "in `{table}`, but missing in `{parent}`"; help: "{help}";
    }

    pub(crate) struct WrongType { key: String, expected: String, found: String, place: Span, note: Option<String>, help: Option<String> }
    error(WRONG_VALUE) "`{key}` must be {expected}" { at place: "found {found}"; note ?note: "{note}"; help ?help: "{help}"; }

    pub(crate) struct IntegerTooLarge { key: String, place: Span }
    error(WRONG_VALUE) "`{key}` does not fit in a 64-bit integer" { at place: ""; }

    pub(crate) struct NotFinite { key: String, place: Span }
    error(WRONG_VALUE) "`{key}` must be finite" { at place: "does not fit in a 64-bit float"; }

    pub(crate) struct TableWithoutName { key: String, name: String, place: Span }
    error(WRONG_VALUE) "`{key}` must consist of tables `[{key}.NAME]`" {
        at place: "not in a table `[{key}.NAME]`"; help: "write `[{key}.{name}]` above its keys";
    }

    pub(crate) struct NotIdentifier { what: String, found: String, place: Span }
    error(BAD_NAME) "the name of {what} must be an identifier" {
        at place: "{found}"; note: "an identifier consists of ASCII letters, digits and `_`, and does not start with a digit";
    }

    pub(crate) struct ReservedName { what: String, name: String, why: String, place: Span }
    error(BAD_NAME) "{what} cannot be named `{name}`" { at place: "{why}"; }

    pub(crate) struct NameTooLong { most: usize, length: usize, place: Span }
    error(BAD_NAME) "a name must have at most {most} bytes" { at place: "found {length} bytes"; note: "this is TensorRT's limit"; }

    pub(crate) struct BadNamespace { found: String, place: Span }
    error(BAD_NAME) "a namespace must be empty or consist of identifiers separated by dots" {
        at place: "{found}"; help: "write a name such as `sample` or `com.example`";
    }

    pub(crate) struct BadVersion { found: String, place: Span }
    error(BAD_NAME) "a version must consist of letters, digits, `.`, `_`, `+` and `-`" { at place: "{found}"; }

    pub(crate) struct EmptyPath { key: String, what: &'static str, place: Span, help: Option<&'static str> }
    error(WRONG_VALUE) "`{key}` must name {what}" { at place: "this is empty"; help ?help: "{help}"; }

    pub(crate) struct EmptyArray { message: String, label: &'static str, place: Span, note: Option<&'static str> }
    error(WRONG_VALUE) "{message}" { at place: "{label}"; note ?note: "{note}"; }

    pub(crate) struct EmptyMessage { place: Span }
    error(WRONG_VALUE) "the `message` of a rule must not be empty" {
        at place: "shown when a node violates this rule";
    }

    pub(crate) struct Repeated { message: String, second: Span, first: Span }
    error(DECLARED_TWICE) "{message}" { at second: "second occurrence"; related first: "first occurrence"; }

    pub(crate) struct UnknownWord { what: &'static str, word: String, expected: &'static str, place: Span, near: Option<&'static str> }
    error(WRONG_VALUE) "unknown {what} `{word}`" { at place: "expected {expected}"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct UnknownType { what: &'static str, article: &'static str, name: String, notes: Vec<String>, place: Span, help: Option<String> }
    error(UNKNOWN_TYPE) "unknown {what} `{name}`" { at place: "not {article} {what}"; note *notes: "{notes}"; help ?help: "{help}"; }

    pub(crate) struct BadVariantId { most: i32, found: i64, place: Span }
    error(VARIANT_ID) "the `id` of a variant must be from 1 to {most}" {
        at place: "found `{found}`"; note: "it is TensorRT's tactic number; TensorRT reserves 0, and Cubinder reserves the highest";
    }

    pub(crate) struct BadConstant { name: String, found: String, place: Span }
    error(WRONG_VALUE) "the constant `{name}` must be a number or a boolean" { at place: "found {found}"; }

    pub(crate) struct NoAlternatives { what: &'static str, many: &'static str, name: String, place: Span }
    error(WRONG_VALUE) "the {what} parameter `{name}` has no alternatives" { at place: "expected at least one of the {many}"; }

    pub(crate) struct NoPlugin { place: Span }
    error(MISSING_KEY) "missing table `[plugin]`" { at place: "expected `[plugin]` with `name` and `namespace`"; }

    pub(crate) struct NoSchema { place: Span, label: &'static str, note: String, near: Option<&'static str> }
    error(SCHEMA_EDITION) "missing `schema`, the edition of the manifest" {
        at place: "{label}"; note: "{note}"; help ?near: "did you mean `{near}`?";
    }

    pub(crate) struct UnknownSchema { edition: i64, place: Span, note: String, help: Option<&'static str> }
    error(SCHEMA_EDITION) "unknown schema edition {edition}" { at place: "not supported"; note: "{note}"; help ?help: "{help}"; }

    pub(crate) struct ValuesAndFile { place: Span }
    error(WRONG_VALUE) "a table cannot have both `values` and `file`" { at place: "the elements are in a file"; help: "remove one of them"; }

    pub(crate) struct TableSize { message: String, label: String, place: Span }
    error(WRONG_VALUE) "{message}" { at place: "{label}"; }

    pub(crate) struct WrongElement { ty: &'static str, found: String, why: String, place: Span, declared: Span }
    error(WRONG_VALUE) "an element of the table is not of type `{ty}`" {
        at place: "found {found}{why}"; related declared: "the type of its elements";
    }

    pub(crate) struct BadElement { found: String, place: Span }
    error(WRONG_VALUE) "an element of a table must be a number or a boolean" { at place: "found {found}"; }

    pub(crate) struct BadTarget { message: String, place: Span, near: Option<String> }
    error(WRONG_VALUE) "{message}" { at place: "not a target"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct NotOption { found: String, place: Span, help: Option<String> }
    error(WRONG_VALUE) "an NVRTC option must start with `-`" { at place: "{found}"; help ?help: "{help}"; }

    pub(crate) struct BadDriver { found: String, place: Span }
    error(WRONG_VALUE) "`min_driver` must be an NVIDIA driver version" {
        at place: "{found}"; help: "write it as in `nvidia-smi`: `580.65.06`, `580.65` or `580`";
    }

    pub(crate) struct NothingLaunched { place: Span, label: &'static str }
    error(MISSING_KEY) "the manifest launches no kernel" {
        at place: "{label}";
        note: "a launch has a CUDA source and kernel, or precompiled code; a grid, a block, and arguments";
    }

    pub(crate) struct MemsetAndLaunch { place: Span }
    error(WRONG_VALUE) "a step cannot be both a memset and a launch" {
        at place: "the memset"; note: "steps run in the manifest's order";
        help: "split it: a `[[launches]]` table with the memset, followed by one with the launch";
    }

    pub(crate) struct NotByte { found: i64, place: Span }
    error(WRONG_VALUE) "`byte` must be from 0 to 255" {
        at place: "found `{found}`"; note: "every byte is set to this value, so most numbers other than 0 cannot be filled";
    }

    pub(crate) struct SourceAndCode { place: Span, help: &'static str }
    error(WRONG_VALUE) "this key is not allowed in a launch with `code`" {
        at place: "only for launches of CUDA sources"; help: "{help}";
    }

    pub(crate) struct BadExtents { key: String, found: usize, place: Span }
    error(WRONG_VALUE) "`{key}` must have one to three expressions: x, y and z" { at place: "found {found}"; }

    pub(crate) struct BadSymbol { found: String, place: Span }
    error(WRONG_VALUE) "`kernel` must be the symbol of a kernel in its file" {
        at place: "{found}"; help: "list the symbols of a cubin with `cuobjdump -symbols FILE`; in PTX they follow `.entry`";
    }

    pub(crate) struct BadParameter { message: &'static str, found: String, place: Span, help: &'static str }
    error(WRONG_VALUE) "{message}" { at place: "{found}"; help: "{help}"; }

    pub(crate) struct ShapeInputRankRange { place: Span }
    error(BAD_RANGE) "the rank of a shape input must be a single number" {
        at place: "found a range"; help: "write `rank = 1` for several values, `rank = 0` for one";
    }

    pub(crate) struct TooManyShapeValues { most: i64, place: Span }
    error(BAD_RANGE) "a shape input has at most {most} values" {
        at place: "allows more"; note: "TensorRT passes at most this many when it requests the outputs' shapes";
    }

    pub(crate) struct NotIntegerType { what: &'static str, found: String, place: Span }
    error(UNKNOWN_TYPE) "{what} must be of type `i32` or `i64`" {
        at place: "found `{found}`"; note: "TensorRT supports 32-bit and 64-bit integers here";
    }

    pub(crate) struct KeyOfAlias { key: String, place: Span }
    error(ALIAS) "an output with `alias` cannot have `{key}`" { at place: "the input determines it"; help: "remove this key"; }

    pub(crate) struct KeyOfSizeTensor { key: String, place: Span }
    error(SIZE_TENSOR) "an output with `size` cannot have `{key}`" {
        at place: "a size is a single number of shape `[]`";
        help: "remove this key; use the name of this output as a dimension of other outputs";
    }

    pub(crate) struct DimensionsOfAnyRank { found: String, place: Span, ranks: Option<Span>, lowest: u8, highest: u8, note: Option<&'static str>, help: String }
    error(BAD_RANGE) "single dimensions can be limited only if the rank is fixed" {
        at place: "ranges for {found}"; related ranks ?ranks: "this input has {lowest} to {highest} dimensions";
        note ?note: "{note}"; help: "{help}";
    }

    pub(crate) struct DimensionCount { found: usize, place: Span, rank: u8, declared: Option<Span> }
    error(BAD_RANGE) "`dims` must have one range for each dimension" { at place: "found {found}"; related declared ?declared: "the rank is {rank}"; }

    pub(crate) struct UnmeetableLimits { bound: String, place: Span }
    error(BAD_RANGE) "no shape satisfies both `dims` and `numel`" { at place: "{bound}"; }

    pub(crate) struct BadRange { key: String, expected: String, label: String, example: String, place: Span }
    error(BAD_RANGE) "`{key}` must be {expected}" { at place: "{label}"; help: "write `{key} = {example}`; ranges include both ends"; }

    pub(crate) struct TwoLists { place: Span, one_of: Span }
    error(BAD_CONSTRAINT) "`specialize` and `one_of` cannot be combined" {
        at place: "compiles code for these values and rejects others"; related one_of: "this also rejects values";
        help: "remove `one_of`";
    }

    pub(crate) struct ConstraintOfOtherType { rule: &'static str, label: &'static str, name: String, ty: &'static str, help: &'static str, place: Span, declared: Span }
    error(BAD_CONSTRAINT) "{rule}" { at place: "{label}"; related declared: "`{name}` is of type `{ty}`"; help: "{help}"; }

    pub(crate) struct RangeBeyondType { end: String, name: String, ty: &'static str, place: Span, declared: Span }
    error(BAD_CONSTRAINT) "the range exceeds the attribute's type" {
        at place: "{end}"; related declared: "`{name}` is of type `{ty}`";
    }

    pub(crate) struct EmptyRange { min: String, max: String, place: Span }
    error(BAD_CONSTRAINT) "the range is empty" { at place: "{min} is greater than {max}"; help: "write `range = \"{max}..={min}\"`"; }

    pub(crate) struct NoValueLeft { key: String, name: String, place: Span }
    error(BAD_CONSTRAINT) "`{key}` allows no value for `{name}`" { at place: "expected at least one value"; }

    pub(crate) struct ListedValueType { key: String, ty: &'static str, label: String, place: Span, declared: Span }
    error(BAD_CONSTRAINT) "a value of `{key}` is not of type `{ty}`" { at place: "{label}"; related declared: "the attribute's type"; }

    pub(crate) struct ListedOutsideRange { key: String, label: String, place: Span, range: Span }
    error(BAD_CONSTRAINT) "a value of `{key}` is outside `range`" { at place: "{label}"; related range: "the range"; }

    pub(crate) struct ListedLength { key: String, length: String, place: Span, lengths: Span }
    error(BAD_CONSTRAINT) "a value of `{key}` has a length outside `length`" { at place: "{length}"; related lengths: "the allowed lengths"; }

    pub(crate) struct DefaultType { ty: &'static str, label: String, place: Span, help: Option<String> }
    error(BAD_DEFAULT) "the default is not of type `{ty}`" { at place: "{label}"; help ?help: "{help}"; }

    pub(crate) struct RejectedDefault { key: &'static str, label: String, place: Span, constraint: Span, what: &'static str, near: Option<String> }
    error(BAD_DEFAULT) "the default violates the attribute's `{key}`" {
        at place: "{label}"; related constraint: "the {what}"; help ?near: "did you mean `{near}`?";
    }

    pub(crate) struct NoLibrary { place: Span }
    error(MISSING_KEY) "missing table `[library]`" { at place: "expected `[library]` with `name` and `targets`"; }

    pub(crate) struct OutsideOfLibrary { key: String, place: Span }
    error(UNKNOWN_KEY) "`{key}` is outside `[library]`" {
        at place: "belongs to that table"; help: "move it below the line `[library]`";
    }

    pub(crate) struct BadPattern { pattern: String, why: &'static str, place: Span }
    error(WRONG_VALUE) "invalid glob pattern `{pattern}`" { at place: "{why}"; }

    pub(crate) struct BadEndpoint { expected: &'static str, place: Span }
    error(WRONG_VALUE) "invalid URL of a server" { at place: "{expected}"; }

    pub(crate) struct PlainText { url: String, key: &'static str, place: Span }
    error(WRONG_VALUE) "{key} cannot be used with `{url}`, which is not encrypted" {
        at place: "needs an encrypted connection"; help: "use `grpcs://` if the server supports it, or remove this";
    }

    pub(crate) struct PlainExecutor { url: String, place: Span }
    error(WRONG_VALUE) "`cache` is encrypted, but `executor` is not: `{url}`" {
        at place: "expected `grpcs://`"; help: "both servers get the same credentials";
    }

    pub(crate) struct LoneRemoteKey { key: &'static str, other: &'static str, place: Span }
    error(MISSING_KEY) "`{key}` needs `{other}`" { at place: "a client has a certificate and its key"; }

    pub(crate) struct ConflictingRemoteKeys { first: Span, second: Span }
    error(WRONG_VALUE) "`headers_file` and `credential_helper` exclude each other" {
        at second: "headers come from one of them"; related first: "the other one";
    }

    pub(crate) struct WrongTimeout { seconds: i64, place: Span }
    error(WRONG_VALUE) "invalid `timeout`: {seconds}" { at place: "expected 1 to 3600 seconds"; }
}
