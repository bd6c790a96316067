use std::path::Display;

cubinder_source::diagnostics! {
    pub(super) struct NoOutput error "nothing to import" {}

    pub(super) struct Unreadable<'a> { path: Display<'a>, why: String }
    error "cannot read `{path}`: {why}" {}

    pub(super) struct UnreadableText { why: String }
    error "{why}" {}

    pub(super) struct NotUtf8<'a> { path: Display<'a> }
    error "`{path}` is not UTF-8" {}

    pub(super) struct UnknownTtir<'a> { path: Display<'a>, why: String }
    error "cannot read `{path}`: {why}" {}

    pub(super) struct TooManyParameters<'a> { path: Display<'a>, count: usize }
    error "`{path}` has {count} parameters" {
        note: "CUDA passes at most 32764 bytes";
    }

    pub(super) struct NoMetadata<'a> { path: Display<'a>, why: String }
    error "`{path}` is not Triton metadata: {why}" {
        help: "specify a folder of Triton's cache with code for NVIDIA GPUs by Triton 3, or the `NAME.json` in it";
    }

    pub(super) struct NoOutputIn<'a> { path: Display<'a> }
    error "no Triton output in `{path}`" {
        note: "searched it and its folders for `NAME.json` beside `NAME.ttir`";
        help: "specify the folder of `TRITON_CACHE_DIR`, or one in it";
    }

    pub(super) struct SeveralKernels { kernels: String }
    error(KERNEL_NOT_FOUND) "the outputs contain several kernels" {
        note: "the kernels are {kernels}";
        help: "select one with `--kernel NAME`";
    }

    pub(super) struct NoKernel<'a> { kernel: &'a str, kernels: Option<String>, near: Option<&'a str> }
    error(KERNEL_NOT_FOUND) "unknown kernel `{kernel}`" {
        note ?kernels: "the kernels are {kernels}";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct Unsupported<'a> { path: Display<'a>, why: String }
    error(CODE_FILE) "`{path}`: {why}" {}

    pub(super) struct OtherParameters<'a> { path: Display<'a>, count: usize, ttir: &'a str, written: usize, most: usize }
    error(CODE_FILE) "`{path}` has {count} parameters, but `{ttir}` has {written}" {
        note: "Triton adds at most {most}, which are pointers to scratch memory";
        help: "compile the kernel again into an empty folder, with Triton 3.9 or earlier";
    }

    /// Releases add different parameters.
    pub(super) struct OtherScratch { outputs: Vec<String> }
    error(CODE_FILE) "the kernels take different numbers of pointers to scratch memory" {
        note *outputs: "{outputs}";
        help: "import only outputs of one Triton version, or compile all with one version";
    }

    pub(super) struct OtherOptions { differences: Vec<String> }
    error(CODE_FILE) "the outputs were compiled with different options" {
        note *differences: "{differences}";
        note: "a launch cannot choose between them";
        help: "import only outputs that were compiled with one value of each option";
    }

    pub(super) struct OtherConstants<'a> {
        one: Display<'a>, other: Display<'a>, parameters: Option<String>, described: Vec<String>, differences: Vec<String>,
        example: &'a str, folder: String
    }
    error(CODE_FILE) "the outputs were compiled for different values of tl.constexpr parameters" {
        note: "such as `{one}` and `{other}`";
        note ?parameters: "the tl.constexpr parameters are {parameters}";
        note *described: "{described}";
        note *differences: "{differences}";
        note: "Triton does not record these values, and the grid depends on them";
        help: "specify the values: `--constant {example}=512,1024` if the sizes of `tl.arange` distinguish them, otherwise for each folder: `--constant {folder}:{example}=512`, where a prefix of its name is enough; or import only some folders";
    }

    pub(super) struct NoValue<'a> { name: &'a str, folder: String }
    error "missing value of `{name}` for `{folder}`, where it is not a parameter" {
        help: "add `--constant {folder}:{name}=...`";
    }

    pub(super) struct UnusedValue<'a> { name: &'a str, value: String }
    error "no output has `{name}` = {value}" {
        help: "remove the value, or specify the folder that was compiled for it";
    }

    pub(super) struct PassedParameter<'a> { name: &'a str }
    error "`{name}` is passed to the kernel and is not a constant" {
        help: "remove `--constant {name}=...`";
    }

    pub(super) struct NoParameter<'a> { name: &'a str, parameters: Option<String>, near: Option<&'a str> }
    error "the kernel has no parameter `{name}`" {
        note ?parameters: "the parameters are {parameters}";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct TwoValues<'a> { name: &'a str, one: String, other: String, folder: String }
    error "`{name}` has two values, {one} and {other}, in `{folder}`" {
        help: "specify one value for each folder";
    }

    pub(super) struct UnclearValue<'a> { name: &'a str, folder: String, found: String, described: Vec<String> }
    error "cannot determine `{name}` in `{folder}`: {found} the size of a `tl.arange`" {
        note *described: "{described}";
        help: "specify it for each folder: `--constant {folder}:{name}=...`";
    }

    pub(super) struct NoFolder<'a> { folder: &'a str, folders: String }
    error "no Triton output in a folder `{folder}`" {
        note: "a folder is specified by its name, its path, or a prefix of its name or of the `hash` in its JSON";
        help: "the folders are {folders}";
    }

    pub(super) struct AmbiguousFolder<'a> { folder: &'a str, count: usize, folders: String }
    error "`{folder}` matches {count} folders" {
        note: "the folders are {folders}";
        help: "specify more of the name, or the path; specify a value for each folder separately";
    }

    pub(super) struct PointerInSome<'a> { name: &'a str, one: Display<'a>, other: Display<'a> }
    error "`{name}` is a pointer in only some of the outputs" {
        note: "it is a pointer in `{one}`, but not in `{other}`";
        note: "Triton passes nothing for a pointer that is None";
        help: "import outputs with equal pointers together; each group is a separate plugin";
    }

    pub(super) struct SeveralTypes<'a> { names: String, path: Display<'a> }
    error "the types of several parameters vary independently" {
        note: "{names} have several types in `{path}`";
        help: "import outputs that differ in one type together, and merge the manifests by hand";
    }
}
