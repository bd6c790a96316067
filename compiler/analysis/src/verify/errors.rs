use cubinder_source::diagnostics;

use crate::diagnostic::Span;
use crate::nvrtc::{MAKE_IT_DYNAMIC, PASS_LESS};

const SAME_EVERYWHERE: &str =
    "declare the same parameters for every target: check `#if` around them, for example on `__CUDA_ARCH__`";

diagnostics! {
    pub(super) struct WritableInput<'a> {
        input: &'a str, parameter: &'a str, spelling: &'a str, pointee: &'a str, in_place: String, span: Span
    }
    warning(WRITABLE_INPUT) "the kernel may write to the input `{input}`" {
        at span: "the parameter `{parameter}` is `{spelling}`";
        note: "inputs belong to TensorRT: other layers may read the same memory";
        help: "declare it as `const {pointee}* {parameter}`{in_place}";
    }

    pub(super) struct NamelessParameters<'a> {
        noun: &'static str, which: String, kernel: &'a str, verb: &'static str, span: Span
    }
    error(PARAMETER_NAMES) "the {noun} {which} of `{kernel}` {verb}" {
        at span: "arguments are bound by name";
        help: "name every parameter of the kernel, and pass an argument for each";
    }

    pub(super) struct SharedParameterName<'a> { kernel: &'a str, count: usize, name: &'a str, span: Span }
    error(PARAMETER_NAMES) "the kernel `{kernel}` has {count} parameters named `{name}`" {
        at span: "arguments are bound by name";
        help: "parameters of a pack (`Ts... {name}`) share its name: declare each, or use `cubinder::array<T, N> {name}`";
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
        at span: "missing here";
        help: "pass {them} from the kernel";
    }

    pub(super) struct UnknownTensor<'a> { tensor: u32, argument: &'a str, span: Span }
    error "unknown tensor {tensor} for the argument `{argument}`" { at span: "this argument"; }

    pub(super) struct ArgumentMisfit<'a> {
        spelling: &'a str, parameter: &'a str, label: String, help: Option<String>, span: Span
    }
    error(ARGUMENT_MISFIT) "the argument does not fit the parameter `{spelling} {parameter}`" {
        at span: "{label}";
        help ?help: "{help}";
    }

    pub(super) struct ConstOutput<'a> { output: String, parameter: &'a str, help: String, span: Span }
    error(ARGUMENT_MISFIT) "{output} bound to a pointer to `const`" {
        at span: "the kernel cannot write through `{parameter}`";
        help: "{help}";
    }

    pub(super) struct ElementMisfit<'a> {
        name: &'a str, ty: &'a str, param: &'a str, spelling: &'a str, element: String, cuda: &'a str,
        pointee: String, reason: String, span: Span
    }
    error(ARGUMENT_MISFIT) "`{name}` has type `{ty}`, but the parameter `{param}` is `{spelling}`" {
        at span: "{element}, `{cuda}` in CUDA";
        note: "the kernel expects a pointer to {pointee}: {reason}";
        help: "use `{cuda}*`, a vector of it, integers of the same width for its bits, a vector of other numbers with several elements such as `uint4`, or `void*`";
    }

    pub(super) struct ParameterCountDiffers { code: usize, manifest: usize }
    error(PARAMETERS_DIFFER) "the number of parameters is {code} in the code, but {manifest} in the manifest" {
        help: "{SAME_EVERYWHERE}";
    }

    pub(super) struct ParameterDiffers<'a> { parameter: &'a str, size: String, offset: u32, passed: String }
    error(PARAMETERS_DIFFER)
    "the parameter `{parameter}` has {size} at offset {offset} in the code, but the manifest passes {passed}" {
        help: "{SAME_EVERYWHERE}";
    }

    pub(super) struct SignatureDiffers<'a> {
        kernel: &'a str, target: String, other: String, signatures: Vec<String>, types: Vec<String>, span: Span
    }
    error(PARAMETERS_DIFFER) "the parameters of the kernel `{kernel}` differ between `{target}` and `{other}`" {
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
    error(SHARED_MEMORY_LIMIT) "the launch exceeds the shared memory of a block" {
        note: "{fixed} bytes static and {dynamic} bytes dynamic; the limit is {limit} per block";
        help: "reduce `shared_bytes`, or remove targets with less";
    }

    pub(super) struct NoDynamicSharedMemory<'a> { kernel: &'a str, span: Span }
    warning(NO_DYNAMIC_SHARED_MEMORY) "`{kernel}` uses dynamic shared memory, but is launched with 0 bytes" {
        at span: "its `shared_bytes` is 0 or absent";
        note: "the kernel fails at the first access";
        help: "set `shared_bytes` to the bytes that a block needs";
    }

    pub(super) struct GridOfClusters { size: String, source: &'static str }
    error(CLUSTER) "the grid of this kernel counts clusters of {size} blocks" {
        note: "{source}";
        help: "use `__cluster_dims__` in the kernel, or `cluster` in the launch: then the grid counts blocks";
    }

    pub(super) struct ClusterTooLarge { blocks: u64, limit: u32, source: &'static str, size: String }
    error(CLUSTER_LIMIT) "the kernel requires clusters of {blocks} blocks, the limit is {limit}" {
        note: "the kernel declares {source} of {size}";
        help: "reduce the kernel's cluster size";
    }

    pub(super) struct OtherClusters { launched: String, size: String, source: &'static str, other_fix: &'static str }
    error(CLUSTER) "the launch has clusters of {launched} blocks, but the kernel requires {size}" {
        note: "{source}";
        help: "remove `cluster` from the launch{other_fix}";
    }

    pub(super) struct ClustersWithoutSize {}
    error(CLUSTER) "the kernel requires clusters, but the launch sets no cluster size" {
        help: "set `cluster` in the launch";
    }

    pub(super) struct ClusterAboveBound { blocks: i64, most: u32, source: &'static str, other_fix: &'static str }
    error(CLUSTER) "the launch has clusters of {blocks} blocks, but the kernel allows {most}" {
        note: "{source}";
        help: "reduce the cluster size{other_fix}";
    }

    pub(super) struct OtherBlock {
        launched: String, required: String, source: &'static str, unknown: Option<&'static str>, block: String,
        other_fix: &'static str
    }
    error(LAUNCH_BOUNDS) "the launch has blocks of {launched} threads, but the kernel requires {required}" {
        note: "{source}";
        note ?unknown: "`?` {unknown}";
        help: "set `block = [{block}]` in the launch{other_fix}";
    }

    pub(super) struct TooManyThreads { threads: i64, most: u32, source: &'static str }
    error(LAUNCH_BOUNDS) "the launch has blocks of {threads} threads, but the kernel allows {most}" {
        note: "{source}";
        help: "reduce the block size or raise the bound";
    }

    pub(super) struct TooManyRegisters { threads: i64, registers: u32, all: i64, limit: i64, help: String }
    error(REGISTERS) "blocks of {threads} threads exceed the register limit" {
        note: "{registers} registers per thread require {all} per block, the limit is {limit}: they are allocated to four warps of 32 threads at a time";
        help: "{help}";
    }
}
