use std::path::Display;

use cubinder_model::Target;
use nvrtc_sys::CompileError;

use crate::diagnostic::Span;

/// Fix for too many parameter bytes.
pub const PASS_LESS: &str = "pass less by value: move large tables to an input tensor";
/// Fix for too much static shared memory.
pub const MAKE_IT_DYNAMIC: &str = "declare it `extern __shared__` and set `shared_bytes` in the launch";

cubinder_source::diagnostics! {
    pub(super) struct ParameterSpace { needed: u64, limit: u64, symbol: Option<String>, file: String, kernel: Span }
    error(PARAMETER_BYTES) "the parameters take {needed} bytes, the limit is {limit}" {
        at kernel: "compiled for this kernel";
        note ?symbol: "reported by NVRTC for `{symbol}` in `{file}`";
        help: "{PASS_LESS}";
    }

    pub(super) struct SharedMemory { needed: u64, limit: u64, symbol: Option<String>, file: String, kernel: Span }
    error(STATIC_SHARED_MEMORY) "the kernel has {needed} bytes of static shared memory, the limit is {limit}" {
        at kernel: "compiled for this kernel";
        note ?symbol: "reported by NVRTC for `{symbol}` in `{file}`";
        help: "{MAKE_IT_DYNAMIC}";
    }

    /// Caused only by external changes of the header.
    pub(super) struct GivenHeader { header: &'static str, reported: String, kernel: Span }
    error(KERNEL_ERROR) "{header} does not compile" {
        at kernel: "compiled for this kernel";
        note: "NVRTC reports: {reported}";
    }

    pub(super) struct LibraryHeader { name: String, file: String, line: usize, reported: String, directive: Span }
    error(KERNEL_ERROR) "NVRTC cannot compile `{name}`" {
        at directive: "included here";
        note: "NVRTC reports for line {line} of `{file}`: {reported}";
        help: "include only headers that the kernel needs: many CUDA libraries also have headers for host code, which NVRTC cannot \
               compile; for example, include `<cub/block/block_reduce.cuh>` instead of `<cub/cub.cuh>`";
    }

    pub(super) struct Ambiguous { kernel: String, file: String, name: String, span: Span }
    error(KERNEL_NOT_FOUND) "`{kernel}` is ambiguous in `{file}`" {
        at span: "";
        note: "`{name}` is overloaded, and kernel names do not include parameters";
        help: "rename the kernel, or add a `__global__` function with a unique name; to select a template, write its arguments: \
               `{name}<float>`";
    }

    pub(super) struct Crash {
        major: i32, minor: i32, file: String, target: Target, kernel: Span, reason: String, printed: Vec<String>
    }
    error "NVRTC {major}.{minor} crashed on `{file}` for `{target}`" {
        at kernel: "compiled for this kernel";
        note: "{reason}; it compiled nothing else";
        note *printed: "the process printed: {printed}";
        help: "use another NVRTC: `--nvrtc <libnvrtc.so or its folder>`";
    }

    /// A NUL byte would end NVRTC's C string.
    pub(super) struct Nul<'a> { what: &'a str, file: Display<'a>, kernel: Span }
    error "the {what} contains a NUL byte" {
        at kernel: "compiled for this kernel";
        note: "the source is `{file}`";
    }

    pub(super) struct Failure<'a> { file: &'a str, target: Target, error: &'a CompileError, kernel: Span }
    error "NVRTC failed on `{file}` for `{target}`: {error}" {
        at kernel: "compiled for this kernel";
    }

    pub(super) struct UnknownTarget { major: i32, minor: i32, target: Target, archs: String }
    error(TARGET_NOT_SERVED) "NVRTC {major}.{minor} cannot compile for `{target}`" {
        note: "{archs}";
        help: "remove the target, or use another NVRTC: `--nvrtc <libnvrtc.so or its folder>`";
    }

    pub(super) struct RejectedOption<'a> { major: i32, minor: i32, reported: &'a str }
    error(NVRTC_OPTION) "NVRTC {major}.{minor} rejects an option: {reported}" {
        help: "check `options` in the manifest's `[compile]` and in `cubinder.toml`, and `--option`";
    }

    pub(super) struct NoCode { target: Target }
    error "NVRTC reported success for `{target}`, but returned no code" {}

    pub(super) struct UnreadableCode { target: Target, reason: String, kernel: Span }
    error "cannot read the code for `{target}`: {reason}" {
        at kernel: "compiled for this kernel";
    }

    pub(super) struct UnreadableSignature { kernel: String, reason: String, span: Span }
    error "cannot read the parameters of `{kernel}`: {reason}" {
        at span: "this kernel";
        note: "parameters are read from NVRTC's debug information";
    }

    pub(super) struct EndlessInclude<'a> { path: Display<'a>, file: &'a str, kernel: Span }
    error(KERNEL_ERROR) "cannot include `{path}`: it is not a regular file" {
        at kernel: "compiled for this kernel";
        note: "included by `{file}` or its headers; a pipe or a device may be endless";
        help: "include a regular file";
    }

    pub(super) struct Changed<'a> { path: Display<'a> }
    error "`{path}` changed while kernels were compiled" {
        note: "the compiled code may mix the old and the new contents";
        help: "compile again";
    }

    pub(super) struct NoNvrtc { reason: String }
    error "cannot use NVRTC: {reason}" {
        help: "run `cargo xtask setup`, or specify another one with `CUBINDER_NVRTC=<libnvrtc.so or its folder>`";
    }

    pub(super) struct NotExecuted<'a> { kernel: &'a str, target: Target, span: Span, reason: String }
    error "no server returned a result of `{kernel}` for `{target}`" {
        at span: "not compiled here because of `--remote-only`";
        note: "{reason}";
        help: "compile without `--remote-only` to compile here";
    }

    /// This NVRTC's output depends on more than its input.
    pub(super) struct NotReproducible { major: i32, minor: i32 }
    warning "NVRTC {major}.{minor} may return different code for the same input" {
        note: "names of static functions and variables, and in anonymous namespaces, contain the folder and the process";
        help: "for reproducible builds, use NVRTC 13.0 or later; `cargo xtask setup` fetches one";
    }
}
