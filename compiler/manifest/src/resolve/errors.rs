use cubinder_source::diagnostics;

use cubinder_expr::Value;

use crate::diagnostic::Span;

diagnostics! {
    pub(super) struct NameReserved<'a> { what: String, name: &'a str, span: Span }
    error(BAD_NAME) "{what} cannot be named `{name}`" {
        at span: "reserved by the expression language";
    }

    pub(super) struct NameReservedInCpp<'a> { what: String, name: &'a str, span: Span, reason: &'static str }
    error(BAD_NAME) "{what} cannot be named `{name}`" {
        at span: "{reason}"; note: "kernels see it as `manifest::{name}`"; help: "choose another name";
    }

    pub(super) struct DeclaredTwice<'a> { name: &'a str, what: String, span: Span, first_what: String, first: Span }
    error(DECLARED_TWICE) "the name `{name}` is declared twice" {
        at span: "as {what}"; related first: "first declared as {first_what}";
    }

    pub(super) struct TimingTwice { name: String, span: Span, first: Span }
    error(DECLARED_TWICE) "`timing` names `{name}` twice" {
        at span: "second occurrence"; related first: "first occurrence";
    }

    pub(super) struct UnknownTimingAttribute<'a> {
        name: String, span: Span, known: String, near: Option<&'a String>, first: Option<Span>,
    }
    error(UNKNOWN_NAME) "unknown attribute `{name}`" {
        at span: "`timing` must name attributes"; note: "{known}"; related first ?first: "declared here";
        help ?near: "did you mean `{near}`?";
    }
}

diagnostics! {
    pub(super) struct TooMany { owner: &'static str, what: &'static str, count: usize, most: usize, span: Span }
    error(WRONG_VALUE) "{owner} has {count} {what}, more than {most}" {
        at span: "at most {most} {what} are supported";
    }
}

diagnostics! {
    pub(super) struct UnusedInExpressions<'a> { kind: &'static str, name: &'a str, span: Span }
    warning(UNUSED) "the {kind} `{name}` is never used" {
        at span: "declared here"; help: "use it in an expression, or remove it";
    }

    pub(super) struct UnusedInKernels<'a> { kind: &'static str, name: &'a str, span: Span, place: &'static str }
    warning(UNUSED) "the {kind} `{name}` is never used" {
        at span: "declared here"; help: "use it {place} as `manifest::{name}`, or remove it";
    }

    pub(super) struct UnusedScratch<'a> { name: &'a str, span: Span }
    warning(UNUSED) "the scratch buffer `{name}` is never used" {
        at span: "declared here"; help: "pass it to a kernel: `<parameter> = \"{name}\"`, or remove it";
    }

    pub(super) struct UnusedInput<'a> { name: &'a str, span: Span, advice: String }
    warning(UNREAD_INPUT) "the input `{name}` is never used" {
        at span: "declared here"; help: "{advice}, or remove it";
    }

    pub(super) struct SameCodeForEachValue<'a> { name: &'a str, span: Span }
    warning(UNUSED) "the code does not depend on `{name}`" {
        at span: "compiled once for each of these values";
        help: "use it as a template argument, in a launch, or as `manifest::{name}` in the kernel; or write `one_of`";
    }
}

diagnostics! {
    pub(super) struct UnknownParameter<'a> {
        kind: &'static str, name: &'a str, span: Span, known: String, near: Option<&'a String>, first: Option<Span>,
    }
    error(UNKNOWN_NAME) "unknown {kind} parameter `{name}`" {
        at span: "`[{kind}s]` does not declare it"; note: "{known}"; related first ?first: "declared here";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct NotAnAlternative<'a> {
        name: &'a str, word: &'a str, span: Span, parameter: Span, known: String, near: Option<&'a str>,
    }
    error(UNKNOWN_TYPE) "`{name}` cannot be `{word}`" {
        at span: "this lists `{word}`"; related parameter: "`{name}` can be {known}";
        help: "add `{word}` to the alternatives of `{name}`, or remove it"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct EmptyCombination { span: Span }
    error(WRONG_VALUE) "a combination must name types or formats" {
        at span: "this allows everything"; help: "write `types = {{ T = [\"f32\"] }}`, or remove the table";
    }

    pub(super) struct UndecidedParameter<'a> {
        kind: &'static str, name: &'a str, span: Span, count: usize, reason: &'static str, note: &'static str,
        first: &'static str,
    }
    error(UNDECIDED_TYPE) "cannot determine `{name}`: no {reason}" {
        at span: "has {count} alternatives"; note: "{note}";
        help: "if each variant has one {kind}, specify it: `{kind}s = {{ {name} = [\"{first}\"] }}` in `[[variants]]`";
    }

    /// Guards can use `countable` values of `specialize`, not `uncountable` ones.
    pub(super) struct UndecidedOutputType<'a> {
        name: &'a str, span: Span, count: usize, output: Span, countable: Option<&'a String>,
        uncountable: Option<&'a String>,
    }
    error(UNDECIDED_TYPE) "cannot determine `{name}`: no input has this type" {
        at span: "has {count} alternatives"; related output: "the type of an output must not depend on the variant";
        note: "a node's input types select the alternative of a type parameter";
        help: "use this type for an input; or, if an attribute determines `{name}`, list its values with \
            `specialize`, and set the type and a guard for the value in each variant";
        help ?countable: "if `{countable}` determines it: list its values with `specialize = [...]`, instead of other \
            constraints; guards must leave one type for each value";
        help ?uncountable: "if `{uncountable}` determines it: make `{uncountable}` an integer and list its values \
            with `specialize`, which supports integers and booleans; guards must leave one type for each value";
    }

    pub(super) struct TwoOutputTypes<'a> {
        name: &'a str, span: Span, node: String, first: &'static str, other: &'static str, output: Span,
    }
    error(UNDECIDED_TYPE) "cannot determine `{name}`: no input has this type" {
        at span: "for nodes with {node} it can be `{first}` or `{other}`";
        related output: "the type of an output must not depend on the variant";
        note: "a node's input types must determine it, or a `specialize` value whose variants all have one type";
        help: "restrict each variant to its values with a guard, or use this type for an input";
    }

    pub(super) struct ServesNothing { id: i32, span: Span, own: Vec<Span>, combinations: Vec<Span> }
    error(UNREACHABLE_VARIANT) "no combination of types and formats remains for this variant" {
        at span: "variant {id} supports no node"; related own *own: "the variant supports these";
        related combinations *combinations: "allowed combinations";
        help: "correct its `types` and `formats`, or the `[[combinations]]`";
    }

    pub(super) struct AlternativeUnserved<'a> { kind: &'static str, name: &'a str, word: &'static str, span: Span }
    warning(UNUSED) "no variant supports `{name}` = `{word}`" {
        at span: "declared here"; help: "remove the alternative, or add it to the `{kind}s` of a variant";
    }

    pub(super) struct VariantIdTwice { id: i32, span: Span, first: Span }
    error(DECLARED_TWICE) "duplicate variant id {id}" {
        at span: "second occurrence"; related first: "first occurrence";
        note: "TensorRT stores the fastest variant by this number";
    }

    pub(super) struct UnknownElementType<'a> {
        name: &'a str, span: Span, known: String, lacking: Option<String>, near: Option<&'a str>, first: Option<Span>,
    }
    error(UNKNOWN_TYPE) "unknown type `{name}`" {
        at span: "neither a type parameter nor an element type"; note: "the types are {known}";
        note ?lacking: "{lacking}"; related first ?first: "declared here"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct TooManyVariants {
        count: usize, most: usize, span: Span, choices: &'static str, values: &'static str, keys: &'static str,
    }
    error(TOO_MANY_VARIANTS) "the manifest expands to {count} variants, more than {most}" {
        at span: "every choice of {choices} is multiplied by every variant{values}";
        help: "{keys} to limit the choices that a variant supports";
    }

    pub(super) struct NoLayout<'a> {
        ty: &'static str, format: &'static str, span: Span, tensor: &'a str, ty_span: Span, combinations: Vec<Span>,
        possible: Vec<String>, others: Option<String>, advice: Option<String>,
    }
    error(NO_SUCH_LAYOUT) "TensorRT does not support `{ty}` tensors in the format `{format}`" {
        at span: "the format of `{tensor}`"; related ty_span: "its type";
        related combinations *combinations: "this combination contains it"; note *possible: "{possible}";
        note ?others: "also not supported: {others}"; help ?advice: "{advice}";
    }

    pub(super) struct TooFewDimensions<'a> {
        format: &'static str, least: usize, span: Span, tensor: &'a str, most: u8, rank: Option<Span>,
    }
    error(NO_SUCH_LAYOUT) "the format `{format}` requires at least {least} dimensions" {
        at span: "the format of `{tensor}`"; related rank ?rank: "it has at most {most}";
    }
}

diagnostics! {
    pub(super) struct SharedTwice<'a> { name: &'a str, span: Span, first: Span }
    error(ALIAS) "two outputs share the memory of `{name}`" {
        at span: "second output"; related first: "first output";
        help: "use separate memory for one of them: `type` and `shape`";
    }

    pub(super) struct UnknownSharedInput<'a> { name: &'a str, span: Span, near: Option<&'a String> }
    error(UNKNOWN_NAME) "unknown input `{name}`" {
        at span: "an output can share memory only with an input"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct SharedShapeInput<'a> { name: &'a str, span: Span, input: Span }
    error(ALIAS) "no output can share the memory of `{name}`" {
        at span: "a shape input is in host memory"; related input: "declared here";
    }

    pub(super) struct UnusedSize<'a> { name: &'a str, span: Span }
    error(SIZE_TENSOR) "no output has the size `{name}`" {
        at span: "not used in any shape";
        help: "use it as a dimension, `shape = \"[{name}]\"`, or make it an ordinary output: `shape = \"[]\"` instead \
            of `size`";
    }
}

diagnostics! {
    pub(super) struct WrongKind<'a> {
        key: &'a str, expected: &'static str, span: Span, found: String, advice: Option<&'static str>,
    }
    error(WRONG_KIND) "`{key}` must be {expected}" { at span: "this is {found}"; help ?advice: "{advice}"; }

    /// `sized` is the name if the output could hold a size.
    pub(super) struct NameOutOfPlace<'a> {
        name: &'a str, label: &'a str, span: Span, reason: &'static str, sized: Option<&'a str>,
    }
    error(OUT_OF_PLACE) "`{name}` cannot be used here" {
        at span: "{label}"; note: "`{name}` is {reason}";
        help ?sized: "if the kernels write it, replace the `shape` of `{sized}` by `size = {{ upper = \"...\" }}`, with the \
            largest possible value";
    }

    pub(super) struct FormatAsValue<'a> { name: &'a str, span: Span, tensor: &'a str }
    error(WRONG_KIND) "`{name}` is a format parameter" {
        at span: "not a value";
        help: "the format of a tensor is `{tensor}.format`, a string: `{tensor}.format == 'linear'`";
    }

    pub(super) struct TableAsValue<'a> { message: &'a str, label: &'a str, span: Span, name: &'a str }
    error(OUT_OF_PLACE) "{message}" {
        at span: "{label}"; note: "`{name}` is a table: kernels read it as `manifest::{name}`, expressions cannot";
    }

    pub(super) struct ScratchAsValue<'a> { message: &'a str, label: &'a str, span: Span, name: &'a str }
    error(OUT_OF_PLACE) "{message}" {
        at span: "{label}";
        note: "`{name}` is a scratch buffer: only an entire argument or a `memset` can use it";
    }

    pub(super) struct VariantLacksConstant<'a> {
        message: &'a str, label: &'a str, span: Span, name: &'a str, value: &'a Value, declared: Span,
        variant: Option<Span>,
    }
    error(UNKNOWN_NAME) "{message}" {
        at span: "{label}"; related declared: "declared in another variant";
        related variant ?variant: "missing in this variant";
        help: "declare it in every variant, or in `[constants]`: `{name} = {value}`";
    }

    pub(super) struct RuleAlwaysHolds { span: Span }
    warning(REQUIRE_IS_CONSTANT) "this rule is always true" {
        at span: "true for every node"; help: "remove or correct it";
    }

    pub(super) struct RuleAlwaysFails { span: Span }
    error(REQUIRE_IS_CONSTANT) "no node can satisfy this rule" {
        at span: "false for every node"; help: "correct or remove it";
    }

    pub(super) struct ExcludedValue<'a> { name: &'a str, value: &'a Value, span: Span }
    warning(UNUSED) "no node can have `{name}` = `{value}`" {
        at span: "no code is compiled for it"; help: "remove it, or correct the rule of `require` that excludes it";
    }

    pub(super) struct UnservedValue<'a> { name: &'a str, value: &'a Value, span: Span }
    warning(NO_VARIANT_WITHOUT_GUARD) "no variant supports `{name}` = `{value}`" {
        at span: "each guard is false for it"; note: "such nodes are rejected when the engine is built";
        help: "add a variant whose guard is true for it, remove the value, or exclude it with `require`";
    }

    pub(super) struct UnservedNodes { nodes: String, span: Span, others: Option<usize> }
    warning(NO_VARIANT_WITHOUT_GUARD) "no variant supports nodes with {nodes}" {
        at span: "each guard is false for them"; note: "such nodes are rejected when the engine is built";
        help: "add a variant whose guard is true for them; no change is needed if such nodes are invalid";
        note ?others: "{others} other choices of types and values are not supported either";
    }
}

diagnostics! {
    pub(super) struct UnclosedArguments { span: Span }
    error(BAD_KERNEL_NAME) "unclosed template arguments" { at span: "expected `>` at the end"; }

    pub(super) struct NotAKernelName { span: Span, found: String }
    error(BAD_KERNEL_NAME) "`kernel` must be the name of a kernel" {
        at span: "{found}"; help: "write it as C++ names it: `scale`, `detail::scale`, `scale<T, 4>`";
    }

    pub(super) struct NoTemplateArgument<'a> { name: &'a str, kind: &'static str, value: &'a Value, span: Span }
    error(BAD_KERNEL_NAME) "the constant `{name}` cannot be a template argument" {
        at span: "this is a {kind}: {value}";
        help: "use `manifest::{name}` in the kernel, or pass it in `[launches.args]`";
    }

    pub(super) struct BadArgumentCharacter { character: String, span: Span }
    error(BAD_KERNEL_NAME) "template arguments cannot contain `{character}`" { at span: ""; }

    pub(super) struct UnbalancedArguments { span: Span, problem: &'static str }
    error(BAD_KERNEL_NAME) "mismatched brackets in the template arguments" { at span: "{problem}"; }
}

diagnostics! {
    pub(super) struct LaunchLimitExceeded<'a> { key: &'a str, least: i64, most: i64, span: Span, value: i64 }
    error "`{key}` must be from {least} to {most}" { at span: "this is {value}"; }

    pub(super) struct BlockTooLarge { most: i64, span: Span, sizes: String, threads: i64 }
    error(BLOCK_LIMIT) "a block must have at most {most} threads" { at span: "found {sizes} = {threads}"; }

    pub(super) struct ClusterTooLarge { most: i64, span: Span, sizes: String, blocks: i64 }
    error(CLUSTER_LIMIT) "a cluster must have at most {most} blocks" { at span: "found {sizes} = {blocks}"; }

    pub(super) struct ShapeInputPassed<'a> { name: &'a str, span: Span, input: Span }
    error(SHAPE_INPUT) "cannot pass the shape input `{name}`: it is in host memory" {
        at span: "a kernel cannot read it"; related input: "declared here";
        help: "pass an extent that depends on it, such as `y.shape[0]`; TensorRT uses it only for the shapes of \
            outputs";
    }

    pub(super) struct OutputNotFillable<'a> { name: &'a str, span: Span }
    error(NOT_FILLABLE) "`{name}` cannot be filled: its shape depends on data" {
        at span: "its size is not known here"; help: "let a kernel write it";
    }

    pub(super) struct SharedInputNotFillable<'a> { name: &'a str, span: Span, output: &'a str, output_span: Span }
    error(NOT_FILLABLE) "`{name}` shares the memory of `{output}` and must not be filled" {
        at span: "the contents of `{name}` would be lost"; related output_span: "this output shares it";
        help: "let a kernel write the elements that change";
    }

    pub(super) struct InputNotFillable<'a> { name: &'a str, span: Span, input: Span }
    error(NOT_FILLABLE) "`{name}` cannot be filled: it is an input" {
        at span: "filled here"; related input: "declared here"; help: "fill an output or a scratch buffer";
    }

    pub(super) struct UnknownMemory<'a> { name: &'a str, span: Span, known: String, near: Option<&'a str> }
    error(UNKNOWN_NAME) "unknown output or scratch buffer `{name}`" {
        at span: "not declared"; help: "declare it, `[scratch.NAME]` with `bytes`, or fill one of {known}";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct NothingLaunched { span: Span, others: Vec<Span> }
    error(STEP_CONDITION) "a variant launches no kernel: the condition of each step is false" {
        at span: "always false for this variant"; related others *others: "and this";
        help: "correct the conditions, or remove the variant; every variant must launch at least one kernel";
    }

    pub(super) struct StepNeverDone { span: Span }
    error(STEP_CONDITION) "this step never runs" {
        at span: "always false"; help: "correct the condition, or remove the step";
    }
}

diagnostics! {
    pub(super) struct TableDependsOnNode { span: Span }
    error(OUT_OF_PLACE) "the elements of a table must be known at compile time" {
        at span: "this depends on attributes or tensors";
        help: "use only constants and functions; compute values that depend on nodes in the kernel";
    }

    pub(super) struct TableWithoutValue { span: Span, problem: String }
    error(NO_VALUE) "this expression has no value" { at span: "{problem}"; }

    pub(super) struct TableIsNoArray { span: Span, value: Value }
    error(WRONG_KIND) "the elements of a table must be an array" { at span: "{value}"; }

    pub(super) struct TableOfWrongSize { span: Span, message: String, label: String }
    error(WRONG_VALUE) "{message}" { at span: "{label}"; }

    pub(super) struct ElementOfWrongType<'a> {
        ty: &'static str, span: Span, index: usize, item: &'a Value, reason: String,
    }
    error(WRONG_VALUE) "an element of the table is not of type `{ty}`" {
        at span: "element {index} is {item}{reason}";
    }
}

diagnostics! {
    pub(super) struct CodeWithoutFiles<'a> { name: &'a str, span: Span }
    error(MISSING_KEY) "the code `{name}` has no files" {
        at span: "expected `cubin = [...]` or `ptx = [...]` in this table";
        note: "`cubin` names files of machine code, `ptx` files of PTX; both are allowed";
    }

    pub(super) struct CodeNeverLaunched<'a> { name: &'a str, span: Span }
    warning(UNUSED) "the code `{name}` is never launched" {
        at span: "declared here"; help: "launch it: `code = \"{name}\"` in a `[[launches]]`, or remove it";
    }

    /// At most one of `none`, `known` and `near` is set.
    pub(super) struct UnknownCode<'a> {
        name: &'a str, span: Span, near: Option<&'a String>, none: Option<&'static str>, known: Option<String>,
    }
    error(UNKNOWN_NAME) "unknown code `{name}`" {
        at span: "not declared by a `[[code]]`"; note ?known: "the names are {known}";
        help ?none: "{none}: a `[[code]]` table with `name`, `parameters`, and `cubin` or `ptx`; `cubinder import` \
            writes one"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct TellsNoVariantsApart<'a> { name: &'a str, span: Span, near: Option<&'a String> }
    error(UNKNOWN_NAME) "`{name}` does not distinguish variants" {
        at span: "not a type, format, constant or attribute with `specialize`";
        help: "remove it, or name a type, format, constant or attribute"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct NoneOfItsValues<'a> {
        name: &'a str, shown: String, span: Span, what: &'static str, places: Vec<Span>, all: String,
    }
    error(CODE_ROWS) "`{name}` is never `{shown}`" {
        at span: "not among its {what}"; related places *places: "its {what}"; help: "use one of {all}";
    }

    pub(super) struct NoCodeForRow<'a> { name: &'a str, row: String, span: Span, codes: Vec<Span> }
    error(CODE_ROWS) "`{name}` has no code for {row}" {
        at span: "launched here"; related codes *codes: "does not support it";
        help: "add a `[[code]]` of this name for it, or remove the types without code";
    }

    pub(super) struct SeveralCodesForRow<'a> { name: &'a str, row: String, span: Span, codes: Vec<Span> }
    error(CODE_ROWS) "`{name}` has several `[[code]]` tables for {row}" {
        at span: "launched here"; related codes *codes: "supports it";
        help: "specify in `for` which types, formats and constants each was compiled for";
    }

    pub(super) struct UnknownParameterType<'a> {
        base: &'a str, span: Span, note: Option<&'static str>, near: Option<&'a str>,
    }
    error(UNKNOWN_TYPE) "unknown type `{base}`" {
        at span: "not a parameter type"; note ?note: "{note}";
        help: "use `f32`, `f16`, `bf16`, `i8` to `i64`, `u8` to `u64`, `bool`, `f64`, a type parameter, or CUDA's name \
            of a number or vector; append `*` for a pointer, a length for an array by value (or a struct of only an \
            array): `i64[4]`"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct NotByValue<'a> { name: &'a str, span: Span }
    error(UNKNOWN_TYPE) "a `{name}` cannot be passed by value" {
        at span: "passed by value";
        help: "pass integers of 8 to 64 bits, `f32`, `f64` or `bool`; append `*` for a pointer";
    }

    pub(super) struct NoMultiple { span: Span }
    error(UNKNOWN_TYPE) "`multiple_of` applies only to pointers and integers" {
        at span: "this is neither"; help: "remove `multiple_of`";
    }

    pub(super) struct FixedWithoutArgument<'a> { name: &'a str, span: Span, parameter: Span, value: &'a Value }
    error(MISSING_ARGUMENT) "missing argument `{name}`, for which the code was compiled" {
        at span: "not among these"; related parameter: "the code requires {value}";
        help: "set it in this launch, `{name} = \"...\"`: it is not passed, but the guard compares it with {value}";
    }

    pub(super) struct AssumptionNeverHolds<'a> { name: &'a str, claim: &'a str, span: Span, parameter: Span }
    error(CODE_ASSUMPTION) "the code was compiled for another `{name}`" {
        at span: "`{claim}` is always false"; related parameter: "the code was compiled for this";
        help: "pass the value that the code was compiled for, or compile the code for this one";
    }

    pub(super) struct AssumptionMisfit<'a> {
        name: &'a str, wanted: String, span: Span, found: &'a str, parameter: Span,
    }
    error(CODE_ASSUMPTION) "cannot check that `{name}` is {wanted}" {
        at span: "this is {found}"; related parameter: "the code was compiled for this";
        help: "pass a number of the same kind";
    }
}

diagnostics! {
    pub(super) struct PlaceholdersLeft { words: String, first: Span }
    error(UNKNOWN_NAME) "unresolved placeholders: {words}" {
        at first: "the first placeholder";
        note: "`cubinder import` writes placeholders for values that files do not contain; nothing else is checked \
            until all are replaced";
        help: "replace each as the comment beside it describes; docs/precompiled-kernels.md has examples";
    }

    pub(super) struct PluginTwice<'a> {
        name: &'a str, version: &'a str, namespace: &'a str, second: Span, first: Span,
    }
    error(PLUGIN_TWICE) "two manifests define the plugin `{name}`, version `{version}`, namespace `{namespace}`" {
        at second: "second occurrence"; related first: "first occurrence";
        note: "TensorRT finds a plugin by name, version and namespace";
        help: "change the name, version or namespace of one";
    }
}
