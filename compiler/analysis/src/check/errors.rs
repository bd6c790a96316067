use cubinder_source::diagnostics;

use super::remedy::A_FEW;
use crate::diagnostic::Span;

diagnostics! {
    pub(super) struct RankTooLow { format: &'static str, least: usize, output: String, span: Span, shape: Span }
    error(NO_SUCH_LAYOUT) "the format `{format}` requires at least {least} dimensions" {
        at span: "the format of `{output}`";
        related shape: "this shape always has fewer";
    }

    pub(super) struct ValueWithoutNodes { attribute: String, value: String, span: Span }
    warning(UNUSED) "no node can have `{attribute}` = `{value}`" {
        at span: "code for this value is never used";
        help: "remove the value, or fix the `require`, `limits` or ranks that exclude it";
    }

    pub(super) struct TargetsWithoutClusters { targets: String, kernel: String, span: Span }
    warning(FEATURE_OF_TARGET) "code for {targets} does not support clusters" {
        at span: "`{kernel}` is launched in clusters";
        note: "clusters require compute capability 9.0; on other GPUs the launch is rejected at run time";
        help: "remove these targets, or add `device.capability >= 90` to the variant's `guard` and another variant for other GPUs";
    }

    pub(super) struct NewerGpuWithoutClusters { target: String, kernel: String, capability: String, exclusion: String, span: Span }
    warning(FEATURE_OF_TARGET) "code for `{target}` does not support clusters" {
        at span: "`{kernel}` is launched in clusters";
        note: "a GPU of compute capability {capability} supports clusters, but would use this code and reject the launch";
        help: "also compile for such GPUs, or compile PTX for GPUs with clusters: `compute_90`{exclusion}";
    }

    pub(super) struct EarlyCooperativeLaunch { programmatic: Span, cooperative: Span }
    warning(COOPERATIVE_GRID) "`programmatic` has little effect on a cooperative launch" {
        at programmatic: "it would start while other kernels occupy the device";
        related cooperative: "all blocks must run at once";
        help: "remove `programmatic`, or remove `cooperative` and grid-wide synchronization";
    }

    pub(super) struct GridFollowsShapes { grid: String, span: Span }
    warning(COOPERATIVE_GRID) "{grid} depends only on shapes" {
        at span: "may exceed the blocks that fit on the device at once";
        note: "a cooperative launch whose blocks do not all fit is rejected at run time";
        help: "{A_FEW}";
    }

    pub(super) struct GridFitsNoDevice { grid: String, blocks: i64, threads: i64, most: i64, span: Span }
    error(COOPERATIVE_GRID) "{grid} does not fit on any device at once" {
        at span: "{blocks} blocks of {threads} threads; no device runs more than {most} at once";
        help: "{A_FEW}";
    }

    pub(super) struct UncheckedLimits { output: String, sizes: String, span: Span }
    error(SIZE_TENSOR) "cannot check the limits of `{output}`" {
        at span: "bounds {sizes}, which kernels write";
        note: "limits are checked before the kernels run";
        help: "remove `limits`, and bound the size with `upper`";
    }

    pub(super) struct FilledAlias { output: String, input: String, span: Span }
    error(NOT_FILLABLE) "`{output}` shares the memory of `{input}` and must not be filled" {
        at span: "the contents of `{input}` would be lost";
        help: "write the changed elements in a kernel";
    }

    pub(super) struct FilledDataDependentShape { output: String, span: Span }
    error(NOT_FILLABLE) "`{output}` cannot be filled: its shape depends on data" {
        at span: "the kernels determine its size";
        help: "fill a scratch buffer, or write all elements in the kernel";
    }

    pub(super) struct GuardNeverFails { span: Span }
    warning(GUARD_NEVER_FAILS) "this guard is always true" {
        at span: "true for every node and shape that the manifest allows";
        help: "remove it: a variant without a guard can always run";
    }

    pub(super) struct GuardNeverHolds { span: Span }
    error(GUARD_NEVER_HOLDS) "this guard is never true" {
        at span: "false for every node and shape that the manifest allows";
        help: "fix the guard, or remove the variant, which would never run";
    }

    pub(super) struct GuardNeverHoldsForSome {
        choices: &'static str, variant: String, broken: usize, rows: usize, help: String, span: Span
    }
    warning(GUARD_NEVER_HOLDS) "this guard is never true for some {choices} of the variant" {
        at span: "always false for {variant}";
        note: "{broken} of {rows} combinations are compiled but never run";
        help: "{help}";
    }

    pub(super) struct InexactInteger { attribute: String, span: Span }
    warning(INEXACT_ATTRIBUTE) "ONNX cannot pass every value of `{attribute}`" {
        at span: "integers of more than 32 bits are truncated";
        note: "TensorRT's parser silently passes only the lower 32 bits of an ONNX integer to plugins";
        help: "use `i32`, or restrict the values to 32 bits with `range` or `one_of`";
    }

    pub(super) struct InexactFloat { attribute: String, span: Span }
    warning(INEXACT_ATTRIBUTE) "ONNX cannot pass every value of `{attribute}`" {
        at span: "rounded to single precision";
        note: "ONNX attributes store floats in 32 bits";
        help: "use `f32`, the precision that ONNX passes, or list the valid values with `one_of`";
    }

    pub(super) struct InexpressibleShape { part: String, span: Span, reason: String, help: &'static str }
    error(INEXPRESSIBLE_SHAPE) "TensorRT cannot express {part}" {
        at span: "{reason}";
        note: "it supports sums, differences, products, divisions, minima, maxima and comparisons of integers";
        help: "{help}";
    }

    pub(super) struct NoNativeRoute<'a> { plugin: &'a str, obstacle: String, help: &'static str, span: Span, label: &'static str }
    error(NO_NATIVE_ROUTE) "TensorRT cannot launch `{plugin}` itself" {
        at span: "{label}";
        note: "{obstacle}";
        help: "{help}; or launch it from a plugin library: `route = \"plugin\"`, the default";
    }

    pub(super) struct VariantsLeftOut { variants: String, guards: &'static str, span: Span }
    warning(LEFT_OUT_OF_ROUTE) "{variants} omitted" {
        at span: "TensorRT launches this plugin itself";
        note: "{guards} addresses or the device, which are unknown when TensorRT chooses a variant at build time";
        help: "make guards depend only on shapes, or launch the kernels from a plugin library";
    }

    pub(super) struct RuleNeverHolds { span: Span }
    error(REQUIRE_IS_CONSTANT) "no node can satisfy this rule" {
        at span: "false for every node that the rest of the manifest allows";
        help: "fix it, or the attributes, ranks, `limits` or earlier rules that contradict it";
    }

    pub(super) struct RuleAlwaysHolds { span: Span }
    warning(REQUIRE_IS_CONSTANT) "this rule is always true" {
        at span: "true for every node that the manifest allows";
        help: "remove or correct it";
    }

    pub(super) struct EmptyScratch { buffer: String, span: Span, argument: Span }
    warning(SCRATCH_LIMIT) "the scratch buffer `{buffer}` is empty" {
        at span: "0 bytes";
        related argument: "passed to a kernel here";
        help: "set `bytes` to the size that the kernel needs, or remove the argument";
    }

    pub(super) struct TimingWithout<'a> { attribute: &'a str, decides: &'static str, reason: &'static str, timing: Span, expr: Span }
    warning(TIMING_LEAVES_OUT) "`{attribute}` {decides} which variants a node has, but is missing in `timing`" {
        at timing: "attributes that affect run time";
        related expr: "`{attribute}` is read here{reason}";
        note: "it is used anyway: nodes that share TensorRT's timings must have the same variants";
        help: "add `\"{attribute}\"` to `timing`";
    }

    pub(super) struct UnreachableVariant { choices: String, variant: String, help: String, span: Span, earlier: Span }
    warning(UNREACHABLE_VARIANT) "this variant is never reached{choices}" {
        at span: "{variant} is never tried";
        related earlier: "this one has no guard and accepts every such node";
        note: "TensorRT-RTX uses the first variant whose guard is true; TensorRT may still choose another when it times variants at build time";
        help: "{help}";
    }

    pub(super) struct UnsatisfiableLimits { tensor: String, span: Span }
    error(BAD_CONSTRAINT) "no node can satisfy the limits of `{tensor}`" {
        at span: "excludes every node that the rest of the manifest allows";
        help: "fix them, or the shape, ranks, attributes, `require` or other limits that contradict them";
    }

    pub(super) struct UnsatisfiableManifest { span: Span }
    error(BAD_CONSTRAINT) "no node can satisfy this manifest" {
        at span: "declared here";
        help: "find the contradiction: remove `limits`, `require`, attributes and ranks one by one";
    }

    pub(super) struct NoVariantWithoutGuard { span: Span, label: String, consequence: &'static str }
    warning(NO_VARIANT_WITHOUT_GUARD) "no variant remains if every guard is false" {
        at span: "{label}";
        note: "{consequence}";
        help: "add a variant without a guard at the end, or exclude such nodes with `limits` or `require`";
    }

    pub(super) struct OutputNotPassed { output: String, kernel: &'static str, span: Span }
    error(UNWRITTEN_OUTPUT) "no argument passes the output `{output}` to {kernel}" {
        at span: "no argument for `{output}`";
        help: "pass it: `<parameter> = \"{output}\"`";
    }

    pub(super) struct OutputOnlyRead { output: String, span: Span }
    error(UNWRITTEN_OUTPUT) "no step writes the output `{output}`" {
        at span: "passed to a pointer to `const`";
        help: "write it in a kernel, or remove `const` from the parameter that writes it";
    }

    pub(super) struct OutputMayStayUnwritten { output: String, label: String, note: &'static str, help: String, span: Span }
    warning(UNWRITTEN_OUTPUT) "the output `{output}` may stay unwritten" {
        at span: "{label}";
        note: "{note}";
        help: "{help}";
    }

    pub(super) struct UnwrittenScratch { buffer: String, span: Span }
    error(UNWRITTEN_SCRATCH) "no step writes the scratch buffer `{buffer}`" {
        at span: "only read, through a pointer to `const`";
        help: "write it in an earlier step, or fill it with `memset`";
    }

    pub(super) struct ReadBeforeWrite { memory: String, read: Span, written: Span }
    error "{memory} is read before it is written" {
        at read: "read here, through a pointer to `const`";
        related written: "written here, by a later step";
        help: "reorder the steps, or fill it first with `memset`";
    }

    pub(super) struct MayBeReadBeforeWrite { memory: String, case: String, read: Span }
    warning "{memory} may be read before it is written" {
        at read: "read here{case}";
        help: "use the same condition for the step that reads it, or fill it first with `memset`";
    }

    /// Read through a pointer to `const` in the first writing step.
    pub(super) struct ReadBesideWrite { memory: String, read: Span, written: Span }
    warning "{memory} may be read before it is written" {
        at read: "read here, through a pointer to `const`";
        related written: "only this step writes it";
        note: "no earlier step writes it: the kernel reads uninitialized memory";
        help: "pass other memory to read, or fill it first with `memset`; if the kernel writes it first, read through the same pointer";
    }
}
