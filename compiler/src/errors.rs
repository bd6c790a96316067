use cubinder_manifest::manifest::DriverVersion;
use cubinder_source::diagnostic::Span;

cubinder_source::diagnostics! {
    /// Warnings under `--deny-warnings`.
    pub struct WarningsDenied
    error "warnings are denied by `--deny-warnings`" {
        help: "fix them, or remove the option";
    }

    pub(crate) struct OneFileForTwo { named: String, partner: String, folder: String }
    error "`--output` names one file, but two libraries change together" {
        note: "they are `{named}` and `{partner}`";
        help: "use `--out-dir {folder}`";
    }

    pub(crate) struct NoCodeToExtract { file: String }
    error "`{file}` contains no code" {
        help: "extract from the library that `cubinder compile` wrote; engines built without `--embed` contain the code of their nodes";
    }

    pub(crate) struct NoCodeOfForm { file: String, what: &'static str, targets: String, known: String }
    error "`{file}` contains no {what}{targets}" {
        note: "it contains code for {known}";
        help: "`--as ptx` is for `compute_*`, `--as cubin` and `--as sass` are for `sm_*`";
    }

    pub(crate) struct UnreadableCodeObject { digest: String, error: String }
    error "cannot read the code object {digest}: {error}" {
        help: "compile the library again";
    }

    pub(crate) struct NoDisassembler
    error "`--as sass` requires `nvdisasm`" {
        note: "it is neither in `CUDA_HOME` nor in `PATH`";
        help: "install the CUDA toolkit and set `CUDA_HOME`, or use `--as cubin`";
    }

    pub(crate) struct DisassemblerNotStarted { program: String, error: String }
    error "cannot run `{program}`: {error}" {
        help: "set `CUDA_HOME` to a CUDA toolkit";
    }

    pub(crate) struct DisassemblerFailed { program: String, status: String, lines: Vec<String> }
    error "`{program}` failed: {status}" {
        note *lines: "{lines}";
        help: "a newer `nvdisasm` may support the target: set `CUDA_HOME` to its CUDA toolkit";
    }

    pub(crate) struct NothingToEmbed
    error(NO_NATIVE_ROUTE) "no code to embed: TensorRT launches all plugins" {
        note: "without `--embed`, such engines contain the kernels' PTX and need no library";
        help: "remove `--embed`";
    }

    pub(crate) struct LostAttribute { kernel: String, span: Span, attribute: &'static str }
    error(NO_NATIVE_ROUTE) "TensorRT cannot launch `{kernel}`: the kernel has {attribute}" {
        at span: "this kernel";
        note: "TensorRT launches a generated kernel that calls this one, and the attribute would be lost";
        help: "remove it, or remove `route` so that the plugin library launches the kernel";
    }

    pub(crate) struct NotADeviceFunction { kernel: String, span: Span }
    error(NO_NATIVE_ROUTE) "TensorRT cannot launch `{kernel}`: it does not compile as a device function" {
        at span: "this kernel";
        note: "the kernel compiles standalone, but TensorRT launches a generated kernel that calls it as a device function, with more restrictions; see NVRTC's error";
        help: "fix NVRTC's error, or remove `route` so that the plugin library launches the kernel";
    }

    pub(crate) struct UnreadableCode { target: String, error: String, span: Span, label: &'static str }
    error "cannot read the code for `{target}`: {error}" {
        at span: "{label}";
    }

    pub(crate) struct RenamedPtx { kernel: String, error: String, span: Span }
    error "cannot read the PTX of `{kernel}` after renaming it: {error}" {
        at span: "this kernel";
    }

    pub(crate) struct ClustersDiffer { kernel: String, span: Span, sizes: String, help: &'static str }
    error(CLUSTER) "the cluster size of `{kernel}` differs between targets" {
        at span: "compiled for this kernel";
        note: "{sizes}";
        help: "{help}";
    }

    pub(crate) struct NoGpuForNative { why: String }
    error "`--target native` requires a GPU in this machine" {
        note: "{why}";
        help: "name the GPU's architecture, such as `--target sm_89`, or use `--target all-major`";
    }

    pub(crate) struct UnusableGpuForNative { why: String }
    error "`--target native` cannot query the GPUs: {why}" {
        help: "check them with `cubinder doctor`, or name the architecture, such as `--target sm_89`";
    }

    pub(crate) struct TargetNotConfigured { target: String, configured: String }
    error "`{target}` is not a target of this project" {
        note: "the targets are {configured}";
        help: "`--arch` selects some of them; use `--target {target}` to override the targets";
    }

    pub(crate) struct NothingLeft { only: String, span: Span, left_out: String }
    error "`--arch {only}` excludes all targets" {
        at span: "of this plugin";
        note: "its targets are {left_out}";
        help: "add one of them to `--arch`";
    }

    pub(crate) struct UnknownTarget { target: String, span: Option<Span> }
    warning "unknown target `{target}`" {
        note: "this version of cubinder does not know its limits and does not check them; NVRTC may reject the target";
        at span ?span: "requested here";
    }

    pub(crate) struct NothingToChooseFrom { only: String }
    error "`--arch {only}` selects from `targets`, but `targets` is not set" {
        note: "neither the manifest's `[compile]` nor a `cubinder.toml` sets `targets`";
        help: "use `--target {only}`";
    }

    pub(crate) struct NoTarget
    error "missing target" {
        help: "use `--target sm_89` for machine code, `--target compute_80` for PTX that the driver compiles for newer GPUs; or \
               set `targets` in the manifest's `[compile]`";
    }

    pub(crate) struct CodeWithoutTarget { kind: &'static str, example: &'static str, span: Span, targets: String, of_targets: Option<Span> }
    error(CODE_WITHOUT_TARGET) "no target produces {kind}" {
        at span: "requested here";
        note: "the targets are {targets}";
        help: "add a target such as `{example}`, or remove this";
        related of_targets ?of_targets: "the targets";
    }

    /// Also for an unknown NVRTC.
    pub(crate) struct DriverTooOld {
        finding: String, major: i32, minor: i32, span: Span,
        from_cubins: Option<DriverVersion>, from_ptx: Option<DriverVersion>, unknown: Option<&'static str>, help: String,
    }
    error(DRIVER_TOO_OLD) "{finding} the output of NVRTC {major}.{minor}" {
        at span: "the oldest driver to support";
        note ?from_cubins: "cubins of CUDA {major} require driver {from_cubins} or later";
        note ?from_ptx: "PTX of CUDA {major}.{minor} requires driver {from_ptx} or later";
        note ?unknown: "{unknown}";
        help: "{help}";
    }

    pub(crate) struct NotADriver { written: String, span: Span, help: String }
    error(DRIVER_TOO_OLD) "`{written}` is not a version of NVIDIA's driver" {
        at span: "this looks like a CUDA version";
        note: "`min_driver` is a driver version as shown by `nvidia-smi`: `580.65.06`";
        help: "{help}";
    }
}
