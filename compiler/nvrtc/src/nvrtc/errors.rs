//! The diagnostics of compiles, except NVRTC's own messages about the user's text.

use std::path::Display;

use cubinder_model::Target;
use nvrtc_sys::CompileError;

use crate::diagnostic::Span;

/// The fix for too many parameter bytes.
pub const PASS_LESS: &str = "pass less by value: large tables belong into an input tensor";
/// The fix for too much static shared memory.
pub const MAKE_IT_DYNAMIC: &str = "make it `extern __shared__` and set `shared_bytes` in the launch";

cubinder_source::diagnostics! {
    pub(super) struct ParameterSpace { needed: u64, limit: u64, symbol: Option<String>, file: String, kernel: Span }
    error(PARAMETER_BYTES) "the parameters take {needed} bytes, the limit is {limit}" {
        at kernel: "compiled for this kernel";
        note ?symbol: "NVRTC says so of `{symbol}` in `{file}`";
        help: "{PASS_LESS}";
    }

    pub(super) struct SharedMemory { needed: u64, limit: u64, symbol: Option<String>, file: String, kernel: Span }
    error(STATIC_SHARED_MEMORY) "the kernel has {needed} bytes of static shared memory, the limit is {limit}" {
        at kernel: "compiled for this kernel";
        note ?symbol: "NVRTC says so of `{symbol}` in `{file}`";
        help: "{MAKE_IT_DYNAMIC}";
    }

    /// Only an external change of the header can cause this.
    pub(super) struct GivenHeader { header: &'static str, reported: String, kernel: Span }
    error(KERNEL_ERROR) "{header} does not compile" {
        at kernel: "compiled for this kernel";
        note: "NVRTC says: {reported}";
    }

    pub(super) struct LibraryHeader { name: String, file: String, line: usize, reported: String, directive: Span }
    error(KERNEL_ERROR) "`{name}` holds what NVRTC does not compile" {
        at directive: "included here";
        note: "NVRTC says of line {line} of `{file}`: {reported}";
        help: "include the headers alone that the kernel itself needs: many of CUDA's libraries also have headers for host code, \
               which NVRTC does not compile, such as `<cub/cub.cuh>` beside `<cub/block/block_reduce.cuh>`";
    }

    pub(super) struct Ambiguous { kernel: String, file: String, name: String, span: Span }
    error(KERNEL_NOT_FOUND) "`{kernel}` could be several functions of `{file}`" {
        at span: "";
        note: "`{name}` is overloaded, and a kernel is named without its parameters";
        help: "rename the one that is meant, or add a `__global__` function with a name of its own; of a template beside a plain \
               function, give the arguments: `{name}<float>`";
    }

    /// The worker process exited.
    pub(super) struct Crash {
        major: i32, minor: i32, file: String, target: Target, kernel: Span, reason: String, printed: Vec<String>
    }
    error "NVRTC {major}.{minor} crashed on `{file}` for `{target}`" {
        at kernel: "compiled for this kernel";
        note: "{reason}, which compiled nothing else";
        note *printed: "the process printed: {printed}";
        help: "name another NVRTC: `--nvrtc <libnvrtc.so or its folder>`";
    }

    /// A NUL byte would end NVRTC's C string.
    pub(super) struct Nul<'a> { what: &'a str, file: Display<'a>, kernel: Span }
    error "the {what} holds a NUL byte" {
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
        help: "leave the target out, or name another NVRTC: `--nvrtc <libnvrtc.so or its folder>`";
    }

    pub(super) struct RejectedOption<'a> { major: i32, minor: i32, reported: &'a str }
    error(NVRTC_OPTION) "NVRTC {major}.{minor} does not take an option: {reported}" {
        help: "look at `options` in the manifest's `[compile]` and in `cubinder.toml`, and at `--option`";
    }

    pub(super) struct NoCode { target: Target }
    error "NVRTC reported success for `{target}` and gave no code" {}

    pub(super) struct UnreadableCode { target: Target, reason: String, kernel: Span }
    error "the code for `{target}` cannot be read: {reason}" {
        at kernel: "compiled for this kernel";
    }

    pub(super) struct UnreadableSignature { kernel: String, reason: String, span: Span }
    error "the parameters of `{kernel}` cannot be read: {reason}" {
        at span: "this kernel";
        note: "they are read from the debug information that NVRTC writes";
    }

    pub(super) struct EndlessInclude<'a> { path: Display<'a>, file: &'a str, kernel: Span }
    error(KERNEL_ERROR) "`{path}` cannot be included: it is not a regular file" {
        at kernel: "compiled for this kernel";
        note: "`{file}` or what it includes names it; a pipe or a device may have no end";
        help: "include a file that can be read to its end";
    }

    pub(super) struct Changed<'a> { path: Display<'a> }
    error "`{path}` changed while kernels were compiled" {
        note: "some of the code may be of what it was before, and some of what it is now";
        help: "compile again";
    }

    pub(super) struct NoNvrtc { reason: String }
    error "NVRTC cannot be used: {reason}" {
        help: "run `cargo xtask setup`, or name another one with `CUBINDER_NVRTC=<libnvrtc.so or its folder>`";
    }

    /// This NVRTC's output depends on more than its input.
    pub(super) struct NotReproducible { major: i32, minor: i32 }
    warning "NVRTC {major}.{minor} may give other bytes for the same input" {
        note: "names in anonymous namespaces and of static functions and variables hold the folder and the process";
        help: "for builds that can be repeated, use NVRTC 13.0 or later; `cargo xtask setup` fetches one";
    }
}
