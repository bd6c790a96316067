//! The diagnostics about Triton's outputs.

use std::path::Display;

cubinder_source::diagnostics! {
    pub(super) struct NoOutput error "there is nothing to import" {}

    pub(super) struct Unreadable<'a> { path: Display<'a>, why: String }
    error "cannot read `{path}`: {why}" {}

    pub(super) struct UnreadableText { why: String }
    error "{why}" {}

    pub(super) struct NotUtf8<'a> { path: Display<'a> }
    error "`{path}` is not UTF-8" {}

    pub(super) struct UnknownTtir<'a> { path: Display<'a>, why: String }
    error "`{path}` cannot be read: {why}" {}

    /// CUDA passes fewer parameters.
    pub(super) struct TooManyParameters<'a> { path: Display<'a>, count: usize }
    error "`{path}` has {count} parameters" {
        note: "CUDA passes 32764 bytes at most";
    }

    pub(super) struct NoMetadata<'a> { path: Display<'a>, why: String }
    error "`{path}` is no metadata of Triton: {why}" {
        help: "name a folder of Triton's cache that has code for NVIDIA GPUs by Triton 3, or the `NAME.json` in it";
    }

    pub(super) struct NoOutputIn<'a> { path: Display<'a> }
    error "`{path}` has no output of Triton" {
        note: "looked for `NAME.json` beside `NAME.ttir` in it and in its folders";
        help: "name the folder that `TRITON_CACHE_DIR` says, or one in it";
    }

    pub(super) struct SeveralKernels { kernels: String }
    error(KERNEL_NOT_FOUND) "these are outputs of several kernels" {
        note: "they are {kernels}";
        help: "name one of them: `--kernel NAME`";
    }

    pub(super) struct NoKernel<'a> { kernel: &'a str, kernels: Option<String>, near: Option<&'a str> }
    error(KERNEL_NOT_FOUND) "there is no kernel `{kernel}` in these outputs" {
        note ?kernels: "there are {kernels}";
        help ?near: "did you mean `{near}`?";
    }

    /// A launch cannot meet the kernel's requirements.
    pub(super) struct Unsupported<'a> { path: Display<'a>, why: String }
    error(CODE_FILE) "`{path}`: {why}" {}

    pub(super) struct OtherParameters<'a> { path: Display<'a>, count: usize, ttir: &'a str, written: usize, most: usize }
    error(CODE_FILE) "`{path}` takes {count} parameters, and `{ttir}` has {written}" {
        note: "Triton adds at most {most}, which are pointers to scratch memory";
        help: "compile the kernel again, into an empty folder, with a Triton of 3.9 or before";
    }

    /// Releases of Triton differ in the parameters that they add.
    pub(super) struct OtherScratch { outputs: Vec<String> }
    error(CODE_FILE) "these kernels take other numbers of pointers to scratch memory" {
        note *outputs: "{outputs}";
        help: "import those of one version of Triton alone, or compile all with one";
    }

    pub(super) struct OtherOptions { differences: Vec<String> }
    error(CODE_FILE) "these were compiled with other options" {
        note *differences: "{differences}";
        note: "no launch tells them apart";
        help: "import those that were compiled with one value of each option alone";
    }

    pub(super) struct OtherConstants<'a> {
        one: Display<'a>, other: Display<'a>, parameters: Option<String>, described: Vec<String>, differences: Vec<String>,
        example: &'a str, folder: String
    }
    error(CODE_FILE) "these were compiled for other values of tl.constexpr parameters" {
        note: "`{one}` and `{other}`, for instance";
        note ?parameters: "such parameters are {parameters}";
        note *described: "{described}";
        note *differences: "{differences}";
        note: "Triton does not write which values they are, and the grid depends on them";
        help: "say the values: `--constant {example}=512,1024` where the sizes of `tl.arange` tell them apart, else of each folder: `--constant {folder}:{example}=512`, where the beginning of its name is enough; or import some of the folders only";
    }

    pub(super) struct NoValue<'a> { name: &'a str, folder: String }
    error "`{name}` is not said of `{folder}`, and is no parameter there" {
        help: "say it, too: `--constant {folder}:{name}=...`";
    }

    pub(super) struct UnusedValue<'a> { name: &'a str, value: String }
    error "`{name}` is {value} in none of these outputs" {
        help: "leave that value out, or name the folder that was compiled for it";
    }

    /// The constant is a run-time parameter.
    pub(super) struct PassedParameter<'a> { name: &'a str }
    error "`{name}` is passed to the kernel, and is no constant of it" {
        help: "leave `--constant {name}=...` out";
    }

    pub(super) struct NoParameter<'a> { name: &'a str, parameters: Option<String>, near: Option<&'a str> }
    error "the kernel has no parameter `{name}`" {
        note ?parameters: "it has {parameters}";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct TwoValues<'a> { name: &'a str, one: String, other: String, folder: String }
    error "`{name}` is said to be {one} and {other} in `{folder}`" {
        help: "say one value of each folder";
    }

    /// No single value of a constant is a size in an output.
    pub(super) struct UnclearValue<'a> { name: &'a str, folder: String, found: String, described: Vec<String> }
    error "it cannot be told what `{name}` is in `{folder}`: {found} the size of a `tl.arange` there" {
        note *described: "{described}";
        help: "say it for each folder: `--constant {folder}:{name}=...`";
    }

    pub(super) struct NoFolder<'a> { folder: &'a str, folders: String }
    error "no output of Triton is in a folder `{folder}`" {
        note: "a folder is named by its name, its path, or how its name or the `hash` of its JSON begins";
        help: "the folders are {folders}";
    }

    pub(super) struct AmbiguousFolder<'a> { folder: &'a str, count: usize, folders: String }
    error "`{folder}` may be any of {count} folders" {
        note: "they are {folders}";
        help: "write more of the name of the one that is meant, or its path; say a value of each folder on its own";
    }

    pub(super) struct PointerInSome<'a> { name: &'a str, one: Display<'a>, other: Display<'a> }
    error "`{name}` is a pointer in some of these outputs only" {
        note: "it is one in `{one}`, and none in `{other}`";
        note: "Triton passes nothing for a pointer that is None";
        help: "import those with the same pointers at once: they are plugins of their own";
    }

    /// The types of several parameters do not vary together.
    pub(super) struct SeveralTypes<'a> { names: String, path: Display<'a> }
    error "types of several parameters differ in several ways" {
        note: "{names} have several types in `{path}`";
        help: "import those that differ in one type at once, and put the manifests together by hand";
    }
}
