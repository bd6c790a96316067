//! Diagnostics of the rules about drafts. [`super::report`] renders claims.

use cubinder_source::diagnostics;

use super::remedy::A_FEW;
use crate::diagnostic::Span;

diagnostics! {
    pub(super) struct RankTooLow { format: &'static str, least: usize, output: String, span: Span, shape: Span }
    error(NO_SUCH_LAYOUT) "the format `{format}` needs at least {least} dimensions" {
        at span: "the format of `{output}`";
        related shape: "it always has fewer";
    }

    /// A specialized value that no node has.
    pub(super) struct ValueWithoutNodes { attribute: String, value: String, span: Span }
    warning(UNUSED) "no node can have `{attribute}` = `{value}`" {
        at span: "compiled for nothing";
        help: "leave it out, or correct what excludes it: `require`, `limits`, ranks";
    }

    pub(super) struct TargetsWithoutClusters { targets: String, kernel: String, span: Span }
    warning(FEATURE_OF_TARGET) "the code for {targets} has no clusters" {
        at span: "`{kernel}` is launched in clusters";
        note: "clusters need compute capability 9.0; on other GPUs the launch is refused at run time";
        help: "leave these targets out, or say `device.capability >= 90` in the variant's `guard` and have another variant for the rest";
    }

    pub(super) struct NewerGpuWithoutClusters { target: String, kernel: String, capability: String, exclusion: String, span: Span }
    warning(FEATURE_OF_TARGET) "the code for `{target}` has no clusters" {
        at span: "`{kernel}` is launched in clusters";
        note: "a GPU of compute capability {capability} has clusters and would run this code, for want of better: the launch is refused there";
        help: "compile for such GPUs too, or PTX for GPUs with clusters: `compute_90`{exclusion}";
    }

    pub(super) struct EarlyCooperativeLaunch { programmatic: Span, cooperative: Span }
    warning(COOPERATIVE_GRID) "a cooperative launch hardly begins early" {
        at programmatic: "it would begin while other kernels hold the device";
        related cooperative: "all of its blocks must run at once";
        help: "take `programmatic` out, or let the kernel do without the whole grid";
    }

    pub(super) struct GridFollowsShapes { grid: String, span: Span }
    warning(COOPERATIVE_GRID) "{grid} follows the shapes alone" {
        at span: "nothing keeps it to what fits on the device at once";
        note: "a cooperative launch whose blocks do not all fit is refused at run time";
        help: "{A_FEW}";
    }

    pub(super) struct GridFitsNoDevice { grid: String, blocks: i64, threads: i64, most: i64, span: Span }
    error(COOPERATIVE_GRID) "{grid} fits on no device at once" {
        at span: "{blocks} blocks of {threads} threads, and no device runs more than {most} at once";
        help: "{A_FEW}";
    }

    pub(super) struct UncheckedLimits { output: String, sizes: String, span: Span }
    error(SIZE_TENSOR) "limits of `{output}` that nothing keeps" {
        at span: "they bound {sizes}, which kernels write";
        note: "limits are held against shapes before the kernels run";
        help: "say with `upper` how large a size can be, and leave `limits` out";
    }

    pub(super) struct FilledAlias { output: String, input: String, span: Span }
    error(NOT_FILLABLE) "`{output}` shares the memory of `{input}` and must not be filled" {
        at span: "what `{input}` holds would be lost";
        help: "let a kernel write the elements that change";
    }

    pub(super) struct FilledDataDependentShape { output: String, span: Span }
    error(NOT_FILLABLE) "`{output}` has a shape that depends on data, and cannot be filled" {
        at span: "how large it is, the kernels only find out";
        help: "fill a scratch buffer, or let the kernel write all of it";
    }

    pub(super) struct GuardNeverFails { span: Span }
    warning(GUARD_NEVER_FAILS) "this guard never fails" {
        at span: "true for every node and shape that the manifest allows";
        help: "drop it: a variant without a guard can always run";
    }

    pub(super) struct GuardNeverHolds { span: Span }
    error(GUARD_NEVER_HOLDS) "this guard never holds" {
        at span: "false for every node and shape that the manifest allows";
        help: "correct it, or take the variant out: it would never run";
    }

    pub(super) struct GuardNeverHoldsForSome {
        choices: &'static str, variant: String, broken: usize, rows: usize, help: String, span: Span
    }
    warning(GUARD_NEVER_HOLDS) "this guard never holds for some {choices} of the variant" {
        at span: "always false for {variant}";
        note: "{broken} of {rows} rows are compiled and never run";
        help: "{help}";
    }

    pub(super) struct InexactInteger { attribute: String, span: Span }
    warning(INEXACT_ATTRIBUTE) "ONNX cannot carry every value of `{attribute}`" {
        at span: "integers beyond 32 bits arrive as others";
        note: "TensorRT's parser hands a plugin the lower 32 bits of an ONNX integer, without a word";
        help: "take `i32`, or say with `range` or `one_of` that only values of 32 bits are meant";
    }

    pub(super) struct InexactFloat { attribute: String, span: Span }
    warning(INEXACT_ATTRIBUTE) "ONNX cannot carry every value of `{attribute}`" {
        at span: "arrives rounded to single precision";
        note: "floats of an ONNX attribute are of 32 bits";
        help: "take `f32`, which says what arrives, or list with `one_of` the values that are meant";
    }

    pub(super) struct InexpressibleShape { part: String, span: Span, reason: String, help: &'static str }
    error(INEXPRESSIBLE_SHAPE) "TensorRT cannot express {part}" {
        at span: "{reason}";
        note: "it knows sums, differences, products, divisions, minima, maxima and comparisons of integers";
        help: "{help}";
    }

    pub(super) struct NoNativeRoute<'a> { plugin: &'a str, obstacle: String, help: &'static str, span: Span, label: &'static str }
    error(NO_NATIVE_ROUTE) "TensorRT cannot launch `{plugin}` itself: {obstacle}" {
        at span: "{label}";
        help: "{help}; or let a plugin library launch it: `route = \"plugin\"`, which is meant where nothing is said";
    }

    /// Variants that TensorRT cannot choose.
    pub(super) struct VariantsLeftOut { variants: String, guards: &'static str, span: Span }
    warning(LEFT_OUT_OF_ROUTE) "the {variants} left out" {
        at span: "TensorRT launches this plugin itself";
        note: "{guards} for addresses or the device, and TensorRT chooses a variant while it builds, when it knows neither";
        help: "have guards ask for shapes alone, or let a plugin library launch the kernels";
    }

    pub(super) struct RuleNeverHolds { span: Span }
    error(REQUIRE_IS_CONSTANT) "no node can meet this rule" {
        at span: "false for every node that the manifest allows otherwise";
        help: "correct it, or what contradicts it: attributes, ranks, `limits`, the rules before it";
    }

    pub(super) struct RuleAlwaysHolds { span: Span }
    warning(REQUIRE_IS_CONSTANT) "this rule always holds" {
        at span: "true for every node that the manifest allows";
        help: "take it out, or say what was meant";
    }

    pub(super) struct EmptyScratch { buffer: String, span: Span, argument: Span }
    warning(SCRATCH_LIMIT) "the scratch buffer `{buffer}` has no memory" {
        at span: "this is 0";
        related argument: "a kernel gets it";
        help: "say how many bytes the kernel needs of it, or take it out of the arguments";
    }

    pub(super) struct TimingWithout<'a> { attribute: &'a str, decides: &'static str, reason: &'static str, timing: Span, expr: Span }
    warning(TIMING_LEAVES_OUT) "`{attribute}` {decides} which variants a node has, and `timing` leaves it out" {
        at timing: "the attributes that time depends on";
        related expr: "`{attribute}` is read here{reason}";
        note: "it counts all the same: nodes that share what TensorRT measured have to have the same variants";
        help: "add `\"{attribute}\"` to `timing`";
    }

    pub(super) struct UnreachableVariant { choices: String, variant: String, help: String, span: Span, earlier: Span }
    warning(UNREACHABLE_VARIANT) "this variant is never reached{choices}" {
        at span: "{variant} comes too late";
        related earlier: "this one has no guard and takes every such node";
        note: "TensorRT-RTX takes the first variant whose guard holds; TensorRT can still choose another when it times them while an engine is built";
        help: "{help}";
    }

    pub(super) struct UnsatisfiableLimits { tensor: String, span: Span }
    error(BAD_CONSTRAINT) "no node can keep the limits of `{tensor}`" {
        at span: "nothing that the manifest allows otherwise does";
        help: "correct them, or what contradicts them: the shape, ranks, attributes, `require`, other limits";
    }

    pub(super) struct UnsatisfiableManifest { span: Span }
    error(BAD_CONSTRAINT) "no node can meet this manifest" {
        at span: "declared here";
        help: "`limits`, `require`, attributes and ranks contradict each other: take them out one by one";
    }

    pub(super) struct NoVariantWithoutGuard { span: Span, label: String, consequence: &'static str }
    warning(NO_VARIANT_WITHOUT_GUARD) "no variant is left when every guard fails" {
        at span: "{label}";
        note: "{consequence}";
        help: "add a variant without a guard at the end, or say with `limits` or `require` what is not meant";
    }

    pub(super) struct OutputNotPassed { output: String, kernel: &'static str, span: Span }
    error(UNWRITTEN_OUTPUT) "no argument passes the output `{output}` to {kernel}" {
        at span: "nothing could write it";
        help: "pass it: `<parameter> = \"{output}\"`";
    }

    pub(super) struct OutputOnlyRead { output: String, span: Span }
    error(UNWRITTEN_OUTPUT) "the output `{output}` is only read: no step writes it" {
        at span: "a pointer to `const` gets it";
        help: "let a kernel write it, or take `const` out of the parameter that does";
    }

    pub(super) struct OutputMayStayUnwritten { output: String, label: String, note: &'static str, help: String, span: Span }
    warning(UNWRITTEN_OUTPUT) "the output `{output}` may stay unwritten" {
        at span: "{label}";
        note: "{note}";
        help: "{help}";
    }

    pub(super) struct UnwrittenScratch { buffer: String, span: Span }
    error(UNWRITTEN_SCRATCH) "nothing writes the scratch buffer `{buffer}`" {
        at span: "it is only read, through a pointer to `const`";
        help: "let a step before write it, or fill it with `memset`";
    }

    pub(super) struct ReadBeforeWrite { memory: String, read: Span, written: Span }
    error "{memory} is read before anything wrote it" {
        at read: "read here, through a pointer to `const`";
        related written: "written here, by a later step";
        help: "change the order of the steps, or fill it first with `memset`";
    }

    pub(super) struct MayBeReadBeforeWrite { memory: String, case: String, read: Span }
    warning "{memory} may be read before anything wrote it" {
        at read: "read here{case}";
        help: "give the step that reads it the same condition, or fill it first with `memset`";
    }

    /// Read through a pointer to `const` by the first step that writes it.
    pub(super) struct ReadBesideWrite { memory: String, read: Span, written: Span }
    warning "{memory} may be read before anything wrote it" {
        at read: "read here, through a pointer to `const`";
        related written: "only this step itself writes it";
        note: "no step before this one writes it: what is read holds whatever the memory held";
        help: "pass what the kernel is to read, or fill it first with `memset`; where the kernel writes it first, let it read through that pointer";
    }
}
