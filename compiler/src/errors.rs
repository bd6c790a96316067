//! Diagnostics of the pipeline.

use cubinder_manifest::manifest::DriverVersion;
use cubinder_source::diagnostic::Span;

cubinder_source::diagnostics! {
    /// `--embed` with native plugins only.
    pub(crate) struct NothingToEmbed
    error(NO_NATIVE_ROUTE) "there is no code to be serialized into engines: TensorRT launches all of the plugins itself" {
        note: "such an engine holds the kernels' PTX without `--embed`, and needs no library";
        help: "leave `--embed` out";
    }

    /// A kernel attribute that its wrapper cannot have.
    pub(crate) struct LostAttribute { kernel: String, span: Span, attribute: &'static str }
    error(NO_NATIVE_ROUTE) "TensorRT cannot launch `{kernel}` itself: the kernel has {attribute}" {
        at span: "this kernel";
        note: "it becomes a part of a kernel that takes its arguments as TensorRT passes them, and that one would not have it";
        help: "take it out, or let a plugin library launch the kernel: leave `route` out";
    }

    /// A kernel that does not compile inside of a wrapper.
    pub(crate) struct NotADeviceFunction { kernel: String, span: Span }
    error(NO_NATIVE_ROUTE) "TensorRT cannot launch `{kernel}` itself: the kernel does not become a part of another" {
        at span: "this kernel";
        note: "the kernel compiles by itself; here it must compile when it is called as a function of the device, which does not allow all that a kernel does: NVRTC says what is wrong";
        help: "mend that, or let a plugin library launch the kernel: leave `route` out";
    }

    pub(crate) struct UnreadableCode { target: String, error: String, span: Span, label: &'static str }
    error "the code for `{target}` cannot be read: {error}" {
        at span: "{label}";
    }

    /// Precompiled PTX that is unreadable after renaming its kernel.
    pub(crate) struct RenamedPtx { kernel: String, error: String, span: Span }
    error "the PTX of `{kernel}` cannot be read with another name: {error}" {
        at span: "this kernel";
    }

    pub(crate) struct ClustersDiffer { kernel: String, span: Span, sizes: String, help: &'static str }
    error(CLUSTER) "`{kernel}` runs in clusters of other sizes for other targets" {
        at span: "compiled for this kernel";
        note: "{sizes}";
        help: "{help}";
    }

    /// `--arch` with an unconfigured target.
    pub(crate) struct TargetNotConfigured { target: String, configured: String }
    error "`{target}` is none of the targets that this project is compiled for" {
        note: "they are {configured}";
        help: "`--arch` chooses among them; `--target {target}` compiles for it whatever the project says";
    }

    /// `--arch` excludes all targets.
    pub(crate) struct NothingLeft { only: String, span: Span, left_out: String }
    error "`--arch {only}` leaves nothing to compile for" {
        at span: "of this plugin";
        note: "it is compiled for {left_out}";
        help: "name one of these too";
    }

    /// A target newer than this version.
    pub(crate) struct UnknownTarget { target: String, span: Option<Span> }
    warning "this version of cubinder does not know `{target}`" {
        note: "its limits are not known, so nothing is held against them; whether NVRTC compiles for it shows when it is compiled";
        at span ?span: "asked for here";
    }

    pub(crate) struct NothingToChooseFrom { only: String }
    error "`--arch {only}` chooses among targets, and none are named" {
        note: "neither the manifest's `[compile]` nor a `cubinder.toml` names `targets`";
        help: "`--target {only}` compiles for it";
    }

    pub(crate) struct NoTarget
    error "nothing says what to compile for" {
        help: "name the GPUs: `--target sm_89` for machine code, `--target compute_80` for PTX that newer GPUs compile at load; or \
               write `targets` into the manifest's `[compile]`";
    }

    pub(crate) struct CodeWithoutTarget { kind: &'static str, example: &'static str, span: Span, targets: String, of_targets: Option<Span> }
    error(CODE_WITHOUT_TARGET) "no target gives {kind}" {
        at span: "asked for here";
        note: "the targets are {targets}";
        help: "add a target such as `{example}`, or leave this out";
        related of_targets ?of_targets: "the targets";
    }

    /// A driver too old for the code, or an unknown NVRTC.
    pub(crate) struct DriverTooOld {
        finding: String, major: i32, minor: i32, span: Span,
        from_cubins: Option<DriverVersion>, from_ptx: Option<DriverVersion>, unknown: Option<&'static str>, help: String,
    }
    error(DRIVER_TOO_OLD) "{finding} what NVRTC {major}.{minor} makes" {
        at span: "this driver must be able to";
        note ?from_cubins: "cubins of CUDA {major} load from driver {from_cubins} on";
        note ?from_ptx: "PTX of CUDA {major}.{minor} loads from driver {from_ptx} on";
        note ?unknown: "{unknown}";
        help: "{help}";
    }

    /// A CUDA version instead of a driver version.
    pub(crate) struct NotADriver { written: String, span: Span, help: String }
    error(DRIVER_TOO_OLD) "`{written}` is no release of NVIDIA's driver" {
        at span: "this looks like a version of CUDA";
        note: "`min_driver` is a version of the driver, as `nvidia-smi` shows it: `580.65.06`";
        help: "{help}";
    }
}
