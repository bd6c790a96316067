//! Diagnostics about names, types and expressions.

use cubinder_source::diagnostics;

use cubinder_expr::Value;

use crate::diagnostic::Span;

// Names.
diagnostics! {
    pub(super) struct NameReserved<'a> { what: String, name: &'a str, span: Span }
    error(BAD_NAME) "{what} cannot be called `{name}`" {
        at span: "the expression language gives this name a meaning";
    }

    pub(super) struct NameReservedInCpp<'a> { what: String, name: &'a str, span: Span, reason: &'static str }
    error(BAD_NAME) "{what} cannot be called `{name}`" {
        at span: "{reason}"; note: "kernels see it as `manifest::{name}`"; help: "choose another name";
    }

    pub(super) struct DeclaredTwice<'a> { name: &'a str, what: String, span: Span, first_what: String, first: Span }
    error(DECLARED_TWICE) "the name `{name}` is declared twice" {
        at span: "as {what}"; related first: "first as {first_what}";
    }

    pub(super) struct TimingTwice { name: String, span: Span, first: Span }
    error(DECLARED_TWICE) "`timing` names `{name}` twice" {
        at span: "the second time"; related first: "the first time";
    }

    pub(super) struct UnknownTimingAttribute<'a> {
        name: String, span: Span, known: String, near: Option<&'a String>, first: Option<Span>,
    }
    error(UNKNOWN_NAME) "there is no attribute `{name}`" {
        at span: "`timing` names attributes"; note: "{known}"; related first ?first: "declared here";
        help ?near: "did you mean `{near}`?";
    }
}

// Counts.
diagnostics! {
    pub(super) struct TooMany { owner: &'static str, what: &'static str, count: usize, most: usize, span: Span }
    error(WRONG_VALUE) "{owner} has {count} {what}, more than {most}" {
        at span: "at most {most} {what} fit into a plugin";
    }
}

// Uses.
diagnostics! {
    pub(super) struct UnusedInExpressions<'a> { kind: &'static str, name: &'a str, span: Span }
    warning(UNUSED) "the {kind} `{name}` is never used" {
        at span: "declared here"; help: "use it in an expression, or leave it out";
    }

    pub(super) struct UnusedInKernels<'a> { kind: &'static str, name: &'a str, span: Span, place: &'static str }
    warning(UNUSED) "the {kind} `{name}` is never used" {
        at span: "declared here"; help: "use it {place} as `manifest::{name}`, or leave it out";
    }

    pub(super) struct UnusedScratch<'a> { name: &'a str, span: Span }
    warning(UNUSED) "the scratch buffer `{name}` is never used" {
        at span: "declared here"; help: "pass it to a kernel: `<parameter> = \"{name}\"`, or leave it out";
    }

    pub(super) struct UnusedInput<'a> { name: &'a str, span: Span, advice: String }
    warning(UNREAD_INPUT) "the input `{name}` is never used" {
        at span: "declared here"; help: "{advice}, or leave it out";
    }

    pub(super) struct SameCodeForEachValue<'a> { name: &'a str, span: Span }
    warning(UNUSED) "the code is the same for each value of `{name}`" {
        at span: "it is compiled once for each of these";
        help: "use it as a template argument, in a launch, or in the kernel as `manifest::{name}`, or write `one_of`";
    }
}

// The table of variants.
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
        help: "add `{word}` to the alternatives of `{name}`, or leave it out"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct EmptyCombination { span: Span }
    error(WRONG_VALUE) "a combination must name types or formats" {
        at span: "this one allows everything"; help: "write `types = {{ T = [\"f32\"] }}`, or leave the table out";
    }

    pub(super) struct UndecidedParameter<'a> {
        kind: &'static str, name: &'a str, span: Span, count: usize, reason: &'static str, note: &'static str,
        first: &'static str,
    }
    error(UNDECIDED_TYPE) "nothing decides what `{name}` is: it is the {reason}" {
        at span: "has {count} alternatives"; note: "{note}";
        help: "where each variant has a {kind} of its own, say so: `{kind}s = {{ {name} = [\"{first}\"] }}` in \
            `[[variants]]`";
    }

    /// `countable` can have values of `specialize` in guards, `uncountable` cannot.
    pub(super) struct UndecidedOutputType<'a> {
        name: &'a str, span: Span, count: usize, output: Span, countable: Option<&'a String>,
        uncountable: Option<&'a String>,
    }
    error(UNDECIDED_TYPE) "nothing decides what `{name}` is: it is the type of no input" {
        at span: "has {count} alternatives"; related output: "the type of an output must not depend on the variant";
        note: "a node's input types choose between the alternatives of a type parameter";
        help: "give an input this type; where an attribute says what `{name}` is, name its values with `specialize`, \
            and give each variant its type and a guard that says for which value it is";
        help ?countable: "if `{countable}` decides it: `specialize = [...]` of `{countable}`, in place of other \
            constraints, names the values for which code is made, and guards then leave one type for each";
        help ?uncountable: "if `{uncountable}` decides it: take an integer for `{uncountable}` and name its values \
            with `specialize`, which is for integers and booleans; guards then leave one type for each";
    }

    pub(super) struct TwoOutputTypes<'a> {
        name: &'a str, span: Span, node: String, first: &'static str, other: &'static str, output: Span,
    }
    error(UNDECIDED_TYPE) "nothing decides what `{name}` is: it is the type of no input" {
        at span: "of nodes with {node} it can be `{first}` and `{other}`";
        related output: "the type of an output must not depend on the variant";
        note: "the types of a node's inputs decide it, and the values of `specialize` where guards leave one type for \
            each";
        help: "let the guards of the variants say for which value each of them is, or give an input this type";
    }

    pub(super) struct ServesNothing { id: i32, span: Span, own: Vec<Span>, combinations: Vec<Span> }
    error(UNREACHABLE_VARIANT) "no combination of types and formats is left for this variant" {
        at span: "variant {id} serves no node"; related own *own: "the variant serves these";
        related combinations *combinations: "there are these";
        help: "correct its `types` and `formats`, or the `[[combinations]]`";
    }

    pub(super) struct AlternativeUnserved<'a> { kind: &'static str, name: &'a str, word: &'static str, span: Span }
    warning(UNUSED) "no variant serves `{name}` = `{word}`" {
        at span: "declared here"; help: "leave the alternative out, or add it to the `{kind}s` of a variant";
    }

    pub(super) struct VariantIdTwice { id: i32, span: Span, first: Span }
    error(DECLARED_TWICE) "two variants have the id {id}" {
        at span: "the second one"; related first: "the first one";
        note: "TensorRT remembers the fastest variant by this number";
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
        help: "{keys} which choices a variant serves";
    }

    pub(super) struct NoLayout<'a> {
        ty: &'static str, format: &'static str, span: Span, tensor: &'a str, ty_span: Span, combinations: Vec<Span>,
        possible: Vec<String>, others: Option<String>, advice: Option<String>,
    }
    error(NO_SUCH_LAYOUT) "TensorRT has no tensors of `{ty}` in the format `{format}`" {
        at span: "the format of `{tensor}`"; related ty_span: "its type";
        related combinations *combinations: "this combination has it"; note *possible: "{possible}";
        note ?others: "nor is there {others}"; help ?advice: "{advice}";
    }

    pub(super) struct TooFewDimensions<'a> {
        format: &'static str, least: usize, span: Span, tensor: &'a str, most: u8, rank: Option<Span>,
    }
    error(NO_SUCH_LAYOUT) "the format `{format}` needs at least {least} dimensions" {
        at span: "the format of `{tensor}`"; related rank ?rank: "it has at most {most}";
    }
}

// Tensors.
diagnostics! {
    pub(super) struct SharedTwice<'a> { name: &'a str, span: Span, first: Span }
    error(ALIAS) "two outputs share the memory of `{name}`" {
        at span: "the second one"; related first: "the first one";
        help: "let one of them have memory of its own, with `type` and `shape`";
    }

    pub(super) struct UnknownSharedInput<'a> { name: &'a str, span: Span, near: Option<&'a String> }
    error(UNKNOWN_NAME) "no input is called `{name}`" {
        at span: "an output can share the memory of an input only"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct SharedShapeInput<'a> { name: &'a str, span: Span, input: Span }
    error(ALIAS) "no output can share the memory of `{name}`" {
        at span: "a shape input lies in the host's memory"; related input: "declared here";
    }

    pub(super) struct UnusedSize<'a> { name: &'a str, span: Span }
    error(SIZE_TENSOR) "no output has the size that `{name}` holds" {
        at span: "in no shape";
        help: "write it as a dimension, `shape = \"[{name}]\"`, or make it a number like any other: `shape = \"[]\"` \
            in place of `size`";
    }
}

// Expressions.
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
        help ?sized: "where the kernels write it, say `size = {{ upper = \"...\" }}` of `{sized}` in the place of its \
            `shape`, with the most that it can be";
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
        note: "`{name}` is a scratch buffer: an argument can pass it as it is, and a `memset` fill it";
    }

    pub(super) struct VariantLacksConstant<'a> {
        message: &'a str, label: &'a str, span: Span, name: &'a str, value: &'a Value, declared: Span,
        variant: Option<Span>,
    }
    error(UNKNOWN_NAME) "{message}" {
        at span: "{label}"; related declared: "another variant has it";
        related variant ?variant: "this variant has not";
        help: "give every variant this constant, or declare it in `[constants]`: `{name} = {value}`";
    }

    pub(super) struct RuleAlwaysHolds { span: Span }
    warning(REQUIRE_IS_CONSTANT) "this rule always holds" {
        at span: "always true"; help: "take it out, or say what was meant";
    }

    pub(super) struct RuleAlwaysFails { span: Span }
    error(REQUIRE_IS_CONSTANT) "no node can meet this rule" {
        at span: "always false"; help: "correct it, or take it out";
    }

    pub(super) struct ExcludedValue<'a> { name: &'a str, value: &'a Value, span: Span }
    warning(UNUSED) "no node can have `{name}` = `{value}`" {
        at span: "no code is made for it"; help: "leave it out, or correct the rule of `require` that excludes it";
    }

    pub(super) struct UnservedValue<'a> { name: &'a str, value: &'a Value, span: Span }
    warning(NO_VARIANT_WITHOUT_GUARD) "no variant serves `{name}` = `{value}`" {
        at span: "each guard is false there"; note: "such a node is refused when the engine is built";
        help: "add a variant whose guard holds there, leave the value out, or say with `require` what is not meant";
    }

    /// Rules of `require` cannot exclude types.
    pub(super) struct UnservedNodes { nodes: String, span: Span, others: Option<usize> }
    warning(NO_VARIANT_WITHOUT_GUARD) "no variant serves nodes with {nodes}" {
        at span: "each guard is false there"; note: "such a node is refused when the engine is built";
        help: "add a variant whose guard holds there; where such nodes are not meant, that they are refused is right";
        note ?others: "nor {others} other choices of types and values";
    }
}

// Kernel names.
diagnostics! {
    pub(super) struct UnclosedArguments { span: Span }
    error(BAD_KERNEL_NAME) "the template arguments do not end" { at span: "expected `>` at the end"; }

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
    error(BAD_KERNEL_NAME) "`{character}` cannot stand in template arguments" { at span: ""; }

    pub(super) struct UnbalancedArguments { span: Span, problem: &'static str }
    error(BAD_KERNEL_NAME) "the brackets of the template arguments do not match" { at span: "{problem}"; }
}

// Launches.
diagnostics! {
    pub(super) struct LaunchLimitExceeded<'a> { key: &'a str, least: i64, most: i64, span: Span, value: i64 }
    error "`{key}` must be from {least} to {most}" { at span: "this is {value}"; }

    pub(super) struct BlockTooLarge { most: i64, span: Span, sizes: String, threads: i64 }
    error(BLOCK_LIMIT) "a block has at most {most} threads" { at span: "these are {sizes} = {threads}"; }

    pub(super) struct ClusterTooLarge { most: i64, span: Span, sizes: String, blocks: i64 }
    error(CLUSTER_LIMIT) "a cluster has at most {most} blocks" { at span: "these are {sizes} = {blocks}"; }

    pub(super) struct ShapeInputPassed<'a> { name: &'a str, span: Span, input: Span }
    error(SHAPE_INPUT) "`{name}` is a shape input: its memory is the host's" {
        at span: "a kernel cannot read it there"; related input: "declared here";
        help: "TensorRT uses it for the shapes of outputs and keeps it from kernels: pass an extent that follows from \
            it, such as `y.shape[0]`";
    }

    pub(super) struct OutputNotFillable<'a> { name: &'a str, span: Span }
    error(NOT_FILLABLE) "`{name}` cannot be filled" {
        at span: "its shape depends on data: how large it is is not known here"; help: "let a kernel write it";
    }

    pub(super) struct SharedInputNotFillable<'a> { name: &'a str, span: Span, output: &'a str, output_span: Span }
    error(NOT_FILLABLE) "`{name}` shares the memory of `{output}` and must not be filled" {
        at span: "what `{name}` holds would be lost"; related output_span: "this output shares it";
        help: "let a kernel write the elements that change";
    }

    pub(super) struct InputNotFillable<'a> { name: &'a str, span: Span, input: Span }
    error(NOT_FILLABLE) "`{name}` is an input, and inputs are not written" {
        at span: "filled here"; related input: "declared here"; help: "fill an output or a scratch buffer";
    }

    pub(super) struct UnknownMemory<'a> { name: &'a str, span: Span, known: String, near: Option<&'a str> }
    error(UNKNOWN_NAME) "no output and no scratch buffer is called `{name}`" {
        at span: "not declared"; help: "declare it, `[scratch.NAME]` with `bytes`, or fill one of {known}";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct NothingLaunched { span: Span, others: Vec<Span> }
    error(STEP_CONDITION) "a variant launches no kernel: each step's condition is false there" {
        at span: "this is always false there"; related others *others: "and this";
        help: "every variant launches at least one kernel: correct the conditions, or take the variant out";
    }

    pub(super) struct StepNeverDone { span: Span }
    error(STEP_CONDITION) "this step is never done" {
        at span: "always false"; help: "correct the condition, or take the step out";
    }
}

// Tables.
diagnostics! {
    pub(super) struct TableDependsOnNode { span: Span }
    error(OUT_OF_PLACE) "the elements of a table must be known when the manifest is compiled" {
        at span: "this depends on attributes or tensors";
        help: "use constants and functions only; what depends on a node, compute in the kernel";
    }

    pub(super) struct TableWithoutValue { span: Span, problem: String }
    error(NO_VALUE) "this expression has no value" { at span: "{problem}"; }

    pub(super) struct TableIsNoArray { span: Span, value: Value }
    error(WRONG_KIND) "the elements of a table are an array" { at span: "{value}"; }

    pub(super) struct TableOfWrongSize { span: Span, message: String, label: String }
    error(WRONG_VALUE) "{message}" { at span: "{label}"; }

    pub(super) struct ElementOfWrongType<'a> {
        ty: &'static str, span: Span, index: usize, item: &'a Value, reason: String,
    }
    error(WRONG_VALUE) "an element of the table is not of type `{ty}`" {
        at span: "element {index} is {item}{reason}";
    }
}

// Precompiled code.
diagnostics! {
    pub(super) struct CodeWithoutFiles<'a> { name: &'a str, span: Span }
    error(MISSING_KEY) "the code `{name}` has no files" {
        at span: "expected `cubin = [...]` or `ptx = [...]` in this table";
        note: "`cubin` names files of machine code, `ptx` files of PTX; there can be both";
    }

    pub(super) struct CodeNeverLaunched<'a> { name: &'a str, span: Span }
    warning(UNUSED) "the code `{name}` is never launched" {
        at span: "declared here"; help: "launch it: `code = \"{name}\"` in a `[[launches]]`, or leave it out";
    }

    /// At most one of `none`, `known` and `near` is set.
    pub(super) struct UnknownCode<'a> {
        name: &'a str, span: Span, near: Option<&'a String>, none: Option<&'static str>, known: Option<String>,
    }
    error(UNKNOWN_NAME) "no `[[code]]` is called `{name}`" {
        at span: "not declared"; note ?known: "there are {known}";
        help ?none: "{none}: a `[[code]]` table with `name`, `parameters`, and `cubin` or `ptx`; `cubinder import` \
            writes one"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct TellsNoVariantsApart<'a> { name: &'a str, span: Span, near: Option<&'a String> }
    error(UNKNOWN_NAME) "`{name}` tells no variants apart" {
        at span: "no type, no format, no constant and no attribute with `specialize`";
        help: "leave it out, or name what the code was made for"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct NoneOfItsValues<'a> {
        name: &'a str, shown: String, span: Span, what: &'static str, places: Vec<Span>, all: String,
    }
    error(CODE_ROWS) "`{name}` is never `{shown}`" {
        at span: "not among its {what}"; related places *places: "its {what}"; help: "it is one of {all}";
    }

    pub(super) struct NoCodeForRow<'a> { name: &'a str, row: String, span: Span, codes: Vec<Span> }
    error(CODE_ROWS) "`{name}` has no code for {row}" {
        at span: "launched here"; related codes *codes: "not for it";
        help: "add a `[[code]]` of this name for it; or leave the types out that there is no code for";
    }

    pub(super) struct SeveralCodesForRow<'a> { name: &'a str, row: String, span: Span, codes: Vec<Span> }
    error(CODE_ROWS) "`{name}` has several pieces of code for {row}" {
        at span: "launched here"; related codes *codes: "for it";
        help: "say in `for` which types, formats and constants each of them is made for";
    }

    pub(super) struct UnknownParameterType<'a> {
        base: &'a str, span: Span, note: Option<&'static str>, near: Option<&'a str>,
    }
    error(UNKNOWN_TYPE) "unknown type `{base}`" {
        at span: "no type of a parameter"; note ?note: "{note}";
        help: "a type is `f32`, `f16`, `bf16`, `i8` to `i64`, `u8` to `u64`, `bool`, `f64`, a type parameter, or \
            CUDA's own name of a number or a vector; pointers have a `*`, arrays by value a length, as a struct that \
            holds nothing else: `i64[4]`"; help ?near: "did you mean `{near}`?";
    }

    pub(super) struct NotByValue<'a> { name: &'a str, span: Span }
    error(UNKNOWN_TYPE) "a `{name}` cannot be passed by value" {
        at span: "passed by value";
        help: "numbers of 8 to 64 bits, `f32`, `f64` and `bool` can be; what is a pointer has a `*`";
    }

    pub(super) struct NoMultiple { span: Span }
    error(UNKNOWN_TYPE) "only pointers and integers are multiples of something" {
        at span: "this is neither"; help: "leave `multiple_of` out";
    }

    pub(super) struct FixedWithoutArgument<'a> { name: &'a str, span: Span, parameter: Span, value: &'a Value }
    error(MISSING_ARGUMENT) "`{name}`, for which the code was made, gets no argument" {
        at span: "not among these"; related parameter: "the code is right where it is {value}";
        help: "say what it is in this launch, `{name} = \"...\"`: nothing is passed, and the guard holds it against \
            {value}";
    }

    pub(super) struct AssumptionNeverHolds<'a> { name: &'a str, claim: &'a str, span: Span, parameter: Span }
    error(CODE_ASSUMPTION) "the code was made for another `{name}`" {
        at span: "`{claim}` never holds"; related parameter: "what the code was made for";
        help: "pass what the code was made for, or have the code made for this";
    }

    pub(super) struct AssumptionMisfit<'a> {
        name: &'a str, wanted: String, span: Span, found: &'a str, parameter: Span,
    }
    error(CODE_ASSUMPTION) "it cannot be held that `{name}` is {wanted}" {
        at span: "this is {found}"; related parameter: "what the code was made for";
        help: "pass a number of the same kind";
    }
}

// Whole manifests.
diagnostics! {
    pub(super) struct PlaceholdersLeft { words: String, first: Span }
    error(UNKNOWN_NAME) "still to be said: {words}" {
        at first: "the first of them";
        note: "`cubinder import` leaves such words where files do not tell what stands there; nothing else is checked \
            before all are replaced";
        help: "put in their place what the comments beside them say; docs/precompiled-kernels.md has examples";
    }

    pub(super) struct PluginTwice<'a> {
        name: &'a str, version: &'a str, namespace: &'a str, second: Span, first: Span,
    }
    error(PLUGIN_TWICE) "two manifests define the plugin `{name}`, version `{version}`, namespace `{namespace}`" {
        at second: "the second one"; related first: "the first one";
        note: "TensorRT finds a plugin by name, version and namespace";
        help: "give one of them another name, version or namespace";
    }
}
