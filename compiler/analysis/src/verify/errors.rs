//! Diagnostics about arguments and code objects.

use cubinder_source::diagnostics;

use crate::diagnostic::Span;
use crate::nvrtc::{MAKE_IT_DYNAMIC, PASS_LESS};

/// Launches pass the same arguments to every code object.
const SAME_EVERYWHERE: &str = "the kernel's parameters must be the same for every target: look for `#if` around them, on `__CUDA_ARCH__` for instance";

diagnostics! {
    /// An input passed as a pointer that is not `const`.
    pub(super) struct WritableInput<'a> {
        input: &'a str, parameter: &'a str, spelling: &'a str, pointee: &'a str, in_place: String, span: Span
    }
    warning(WRITABLE_INPUT) "the kernel could write to the input `{input}`" {
        at span: "the parameter `{parameter}` is a `{spelling}`";
        note: "an input belongs to TensorRT: other layers may read the same memory";
        help: "take it as `const {pointee}* {parameter}`{in_place}";
    }

    pub(super) struct NamelessParameters<'a> {
        noun: &'static str, which: String, kernel: &'a str, verb: &'static str, span: Span
    }
    error(PARAMETER_NAMES) "the {noun} {which} of `{kernel}` {verb}" {
        at span: "arguments are bound by name";
        help: "give every parameter of the kernel a name, and each name an argument";
    }

    pub(super) struct SharedParameterName<'a> { kernel: &'a str, count: usize, name: &'a str, span: Span }
    error(PARAMETER_NAMES) "the kernel `{kernel}` has {count} parameters called `{name}`" {
        at span: "arguments are bound by name";
        help: "the parameters of a pack (`Ts... {name}`) share its name: write them out, or pass `cubinder::array<T, N> {name}`";
    }

    pub(super) struct UnknownParameter<'a> { kernel: &'a str, parameter: &'a str, help: Option<String>, span: Span }
    error(UNKNOWN_PARAMETER) "the kernel `{kernel}` has no parameter `{parameter}`" {
        at span: "no such parameter";
        help ?help: "{help}";
    }

    pub(super) struct MissingArguments<'a> {
        noun: &'static str, names: String, kernel: &'a str, verb: &'static str, them: &'static str, span: Span
    }
    error(MISSING_ARGUMENT) "the {noun} {names} of `{kernel}` {verb}" {
        at span: "not among these";
        help: "give {them}, or take it out of the kernel";
    }

    pub(super) struct UnknownTensor<'a> { tensor: u32, argument: &'a str, span: Span }
    error "the draft has no tensor {tensor} for the argument `{argument}`" { at span: "this argument"; }

    pub(super) struct ArgumentMisfit<'a> {
        spelling: &'a str, parameter: &'a str, label: String, help: Option<String>, span: Span
    }
    error(ARGUMENT_MISFIT) "the argument does not fit the parameter `{spelling} {parameter}`" {
        at span: "{label}";
        help ?help: "{help}";
    }

    pub(super) struct ConstOutput<'a> { output: String, parameter: &'a str, help: String, span: Span }
    error(ARGUMENT_MISFIT) "{output} bound to a pointer to `const`" {
        at span: "the kernel's `{parameter}` cannot be written through";
        help: "{help}";
    }

    pub(super) struct ElementMisfit<'a> {
        name: &'a str, ty: &'a str, param: &'a str, spelling: &'a str, element: String, cuda: &'a str,
        pointee: String, reason: String, span: Span
    }
    error(ARGUMENT_MISFIT) "`{name}` holds `{ty}`, but the parameter `{param}` is a `{spelling}`" {
        at span: "{element}, `{cuda}` in CUDA";
        note: "the kernel takes pointers to {pointee}: {reason}";
        help: "take `{cuda}*` or a vector of it, integers of the same width for its bits, a vector of other numbers that holds several elements such as `uint4`, or `void*`";
    }

    pub(super) struct ParameterCountDiffers { code: usize, manifest: usize }
    error(PARAMETERS_DIFFER) "the code has {code} and the manifest passes {manifest} parameters" {
        help: "{SAME_EVERYWHERE}";
    }

    pub(super) struct ParameterDiffers<'a> { parameter: &'a str, size: String, offset: u32, passed: String }
    error(PARAMETERS_DIFFER)
    "the code takes the parameter `{parameter}` as {size} at offset {offset}, the manifest passes {passed}" {
        help: "{SAME_EVERYWHERE}";
    }

    pub(super) struct SignatureDiffers<'a> {
        kernel: &'a str, target: String, other: String, signatures: Vec<String>, types: Vec<String>, span: Span
    }
    error(PARAMETERS_DIFFER) "the kernel `{kernel}` has other parameters for `{other}` than for `{target}`" {
        at span: "compiled for this kernel";
        note *signatures: "{signatures}";
        note *types: "{types}";
        help: "{SAME_EVERYWHERE}";
    }

    pub(super) struct TooManyParameterBytes { bytes: u32, limit: u32 }
    error(PARAMETER_BYTES) "the parameters take {bytes} bytes, the limit is {limit}" { help: "{PASS_LESS}"; }

    pub(super) struct StaticSharedMemory { fixed: u32, limit: u32 }
    error(STATIC_SHARED_MEMORY) "the kernel has {fixed} bytes of static shared memory, the limit is {limit}" {
        help: "{MAKE_IT_DYNAMIC}";
    }

    pub(super) struct TooMuchSharedMemory { fixed: u32, dynamic: i64, limit: u32 }
    error(SHARED_MEMORY_LIMIT) "the launch needs more shared memory than a block can have" {
        note: "{fixed} bytes static and {dynamic} dynamic, of at most {limit} a block";
        help: "lower `shared_bytes`, or leave out the targets that have less";
    }

    pub(super) struct NoDynamicSharedMemory<'a> { kernel: &'a str, span: Span }
    warning(NO_DYNAMIC_SHARED_MEMORY) "`{kernel}` uses dynamic shared memory, but is launched with 0 bytes of it" {
        at span: "its `shared_bytes` is 0 or absent";
        note: "the GPU stops the kernel at the first access";
        help: "say in `shared_bytes` how many bytes a block needs";
    }

    pub(super) struct GridOfClusters { size: String, source: &'static str }
    error(CLUSTER) "the grid of this kernel counts clusters of {size} blocks" {
        note: "{source}";
        help: "say `__cluster_dims__` in the kernel, or `cluster` in the launch: then the grid counts blocks";
    }

    pub(super) struct ClusterTooLarge { blocks: u64, limit: u32, source: &'static str, size: String }
    error(CLUSTER_LIMIT) "the kernel runs in clusters of {blocks} blocks, and a launch has at most {limit}" {
        note: "the kernel says {source} of {size}";
        help: "make its clusters smaller";
    }

    pub(super) struct OtherClusters { launched: String, size: String, source: &'static str, other_fix: &'static str }
    error(CLUSTER) "the launch has clusters of {launched} blocks, the kernel takes {size} and nothing else" {
        note: "{source}";
        help: "leave `cluster` out of the launch{other_fix}";
    }

    pub(super) struct ClustersWithoutSize {}
    error(CLUSTER) "the kernel runs in clusters of a size that the launch gives, and it gives none" {
        help: "say `cluster` in the launch";
    }

    pub(super) struct ClusterAboveBound { blocks: i64, most: u32, source: &'static str, other_fix: &'static str }
    error(CLUSTER) "the launch has clusters of {blocks} blocks, the kernel allows {most}" {
        note: "{source}";
        help: "make the clusters smaller{other_fix}";
    }

    pub(super) struct OtherBlock {
        launched: String, required: String, source: &'static str, unknown: Option<&'static str>, block: String,
        other_fix: &'static str
    }
    error(LAUNCH_BOUNDS) "the launch has blocks of {launched} threads, the kernel takes {required} and nothing else" {
        note: "{source}";
        note ?unknown: "`?` {unknown}";
        help: "say `block = [{block}]` in the launch{other_fix}";
    }

    pub(super) struct TooManyThreads { threads: i64, most: u32, source: &'static str }
    error(LAUNCH_BOUNDS) "the launch has blocks of {threads} threads, the kernel allows {most}" {
        note: "{source}";
        help: "make the block smaller or the bound larger";
    }

    pub(super) struct TooManyRegisters { threads: i64, registers: u32, all: i64, limit: i64, help: String }
    error(REGISTERS) "blocks of {threads} threads need more registers than there are" {
        note: "{registers} registers a thread make {all} a block, of at most {limit}: they are handed out to four warps of 32 threads at a time";
        help: "{help}";
    }
}
