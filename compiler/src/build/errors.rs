use cubinder_source::diagnostic::Diagnostic;

cubinder_source::diagnostics! {
    pub(super) struct OutputIsFolder<'a> { output: String, example: &'a str }
    error "`--output {output}` names a folder, expected a file" {
        help: "add a file name: `--output {output}/{example}`";
    }

    pub(super) struct NoOutputFolder { folder: String }
    error "the output folder `{folder}` does not exist" {
        help: "create it with `mkdir -p {folder}`, or choose another `--output`";
    }

    pub(super) struct OutputIsRead { output: String }
    error "the output `{output}` is a file that this command reads" {
        help: "choose another file with `--output`";
    }

    pub(super) struct NotALibrary { file: String, why: String, help: String }
    error "`{file}` is not a plugin library" {
        note: "{why}";
        help: "{help}";
    }

    pub(super) struct CodeLibrary { file: String, plugin: String }
    error "`{file}` contains code for engines, not plugins" {
        help: "pass the plugin library and `--embed`: `--plugins {plugin} --embed`";
    }

    pub(super) struct NotCompiledToEmbed { file: String, name: String }
    error "`--embed` needs a library for embedding, but `{file}` was compiled without `--embed`" {
        note: "engines that it builds contain the code in each node, and need `libcubinder.so`";
        help: "compile it again with `cubinder compile --embed`, which also writes `{name}`";
    }

    pub(super) struct EmbedMissing { file: String, name: String }
    error "`{file}` was compiled with `--embed`: its engines need `{name}`" {
        help: "add `--embed` to put that library into the plan, or compile without `--embed`";
    }

    pub(super) struct NoCodeLibrary { file: String, name: String, why: String }
    error "cannot embed the code of `{file}`: {why}" {
        note: "`cubinder compile --embed` writes `{name}` beside it";
        help: "compile both again with `cubinder compile --embed`, and keep them in one folder";
    }

    pub(super) struct NoCodeForGpu { file: String, plugin: String, missing: String, gpus: String }
    error "`{file}` has no code of `{plugin}` for `--gpu {missing}`" {
        help: "compile it for all GPUs of the build: `cubinder compile --target {gpus}`; or remove the GPU";
    }

    pub(super) struct NativeOnRtx { file: String, plugin: String }
    error "TensorRT-RTX cannot build with `{plugin}`: TensorRT itself launches its kernels" {
        note: "`{file}` was compiled for the native route, which only TensorRT supports";
        help: "compile it with `cubinder compile --route plugin`, or build with TensorRT: `--with tensorrt`";
    }

    pub(super) struct NoRange<'a> { option: &'a str, text: &'a str, why: String, example: &'a str }
    error "`{option} {text}`: {why}" {
        help: "use the form `{option} {example}`";
    }

    pub(super) struct RangeTwice<'a> { option: &'a str, name: &'a str }
    error "duplicate `{option} {name}=...`" {
        help: "remove one of them; for a range, use `{option} {name}=MIN:OPT:MAX`";
    }

    pub(super) struct UnknownInput<'a> { option: &'a str, name: &'a str, inputs: String, near: Option<&'a str> }
    error "`{option} {name}=...`: the model has no input `{name}`" {
        note: "its inputs are {inputs}";
        help: "correct the name, or remove the option";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct OtherShape<'a> { option: &'a str, text: &'a str, name: &'a str, shape: String, why: String, help: String }
    error "`{option} {text}`: {why}" {
        note: "the shape of `{name}` in the model is {shape}";
        help: "{help}";
    }

    pub(super) struct NotIntegers<'a> { name: &'a str }
    error "`--values {name}=...`: `{name}` does not have integer elements" {
        help: "use `--shape` for its shape";
    }

    pub(super) struct NoShape { name: String, shape: String, example: String }
    error "the input `{name}` is dynamic, but `--shape {name}=...` is missing" {
        note: "its shape in the model is {shape}";
        help: "add its minimum, optimum and maximum, such as `--shape {name}={example}`";
    }
}

pub(super) fn with_help(error: Diagnostic) -> Diagnostic {
    match error.help {
        Some(_) => error,
        None => error.help("check the path, and the permissions of the file"),
    }
}
