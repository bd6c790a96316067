//! The diagnostics of compiles, but for NVRTC's own messages about the author's text.

use std::path::Display;

use cubinder_model::Target;
use nvrtc_sys::CompileError;

use crate::diagnostic::Span;

/// How to fix too many bytes of parameters.
pub const PASS_LESS: &str = "pass less by value: large tables belong into an input tensor";
/// How to fix too much static shared memory.
pub const MAKE_IT_DYNAMIC: &str = "make it `extern __shared__` and set `shared_bytes` in the launch";

cubinder_source::diagnostics! {
    /// The parameters of a kernel exceed the limit.
    pub(super) struct ParameterSpace { needed: u64, limit: u64, symbol: Option<String>, file: String, kernel: Span }
    error(PARAMETER_BYTES) "the parameters take {needed} bytes, the limit is {limit}" {
        at kernel: "compiled for this kernel";
        note ?symbol: "NVRTC says so of `{symbol}` in `{file}`";
        help: "{PASS_LESS}";
    }

    /// The static shared memory of a kernel exceeds the limit.
    pub(super) struct SharedMemory { needed: u64, limit: u64, symbol: Option<String>, file: String, kernel: Span }
    error(STATIC_SHARED_MEMORY) "the kernel has {needed} bytes of static shared memory, the limit is {limit}" {
        at kernel: "compiled for this kernel";
        note ?symbol: "NVRTC says so of `{symbol}` in `{file}`";
        help: "{MAKE_IT_DYNAMIC}";
    }

    /// The generated header or NVRTC's own does not compile: something from outside has changed its text.
    pub(super) struct GivenHeader { header: &'static str, reported: String, kernel: Span }
    error(KERNEL_ERROR) "{header} does not compile" {
        at kernel: "compiled for this kernel";
        note: "NVRTC says: {reported}";
    }

    /// One of CUDA's headers does not compile, of which the author has chosen a wrong one.
    pub(super) struct LibraryHeader { name: String, file: String, line: usize, reported: String, directive: Span }
    error(KERNEL_ERROR) "`{name}` holds what NVRTC does not compile" {
        at directive: "included here";
        note: "NVRTC says of line {line} of `{file}`: {reported}";
        help: "include the headers alone that the kernel itself needs: many of CUDA's libraries also have headers for host code, \
               which NVRTC does not compile, such as `<cub/cub.cuh>` beside `<cub/block/block_reduce.cuh>`";
    }

    /// A kernel's name is that of several functions.
    pub(super) struct Ambiguous { kernel: String, file: String, name: String, span: Span }
    error(KERNEL_NOT_FOUND) "`{kernel}` could be several functions of `{file}`" {
        at span: "";
        note: "`{name}` is overloaded, and a kernel is named without its parameters";
        help: "rename the one that is meant, or add a `__global__` function with a name of its own; of a template beside a plain \
               function, give the arguments: `{name}<float>`";
    }

    /// The process that compiled ended.
    pub(super) struct Crash {
        major: i32, minor: i32, file: String, target: Target, kernel: Span, reason: String, printed: Vec<String>
    }
    error "NVRTC {major}.{minor} crashed on `{file}` for `{target}`" {
        at kernel: "compiled for this kernel";
        note: "{reason}, which compiled nothing else";
        note *printed: "the process printed: {printed}";
        help: "name another NVRTC: `--nvrtc <libnvrtc.so or its folder>`";
    }

    /// A text has a NUL byte, which ends C strings.
    pub(super) struct Nul<'a> { what: &'a str, file: Display<'a>, kernel: Span }
    error "the {what} holds a NUL byte" {
        at kernel: "compiled for this kernel";
        note: "the source is `{file}`";
    }

    /// NVRTC failed without a message.
    pub(super) struct Failure<'a> { file: &'a str, target: Target, error: &'a CompileError, kernel: Span }
    error "NVRTC failed on `{file}` for `{target}`: {error}" {
        at kernel: "compiled for this kernel";
    }

    /// NVRTC does not know an architecture.
    pub(super) struct UnknownTarget { major: i32, minor: i32, target: Target, archs: String }
    error(TARGET_NOT_SERVED) "NVRTC {major}.{minor} cannot compile for `{target}`" {
        note: "{archs}";
        help: "leave the target out, or name another NVRTC: `--nvrtc <libnvrtc.so or its folder>`";
    }

    /// NVRTC rejects an option.
    pub(super) struct RejectedOption<'a> { major: i32, minor: i32, reported: &'a str }
    error(NVRTC_OPTION) "NVRTC {major}.{minor} does not take an option: {reported}" {
        help: "look at `options` in the manifest's `[compile]` and in `cubinder.toml`, and at `--option`";
    }

    /// NVRTC reported success without code.
    pub(super) struct NoCode { target: Target }
    error "NVRTC reported success for `{target}` and gave no code" {}

    /// Code from NVRTC cannot be read.
    pub(super) struct UnreadableCode { target: Target, reason: String, kernel: Span }
    error "the code for `{target}` cannot be read: {reason}" {
        at kernel: "compiled for this kernel";
    }

    /// Debug information from NVRTC cannot be read.
    pub(super) struct UnreadableSignature { kernel: String, reason: String, span: Span }
    error "the parameters of `{kernel}` cannot be read: {reason}" {
        at span: "this kernel";
        note: "they are read from the debug information that NVRTC writes";
    }

    /// An include is a pipe or a device.
    pub(super) struct EndlessInclude<'a> { path: Display<'a>, file: &'a str, kernel: Span }
    error(KERNEL_ERROR) "`{path}` cannot be included: it is not a regular file" {
        at kernel: "compiled for this kernel";
        note: "`{file}` or what it includes names it; a pipe or a device may have no end";
        help: "include a file that can be read to its end";
    }

    /// A file changed while kernels were compiled.
    pub(super) struct Changed<'a> { path: Display<'a> }
    error "`{path}` changed while kernels were compiled" {
        note: "some of the code may be of what it was before, and some of what it is now";
        help: "compile again";
    }

    /// NVRTC cannot be loaded.
    pub(super) struct NoNvrtc { reason: String }
    error "NVRTC cannot be used: {reason}" {
        help: "run `cargo xtask setup`, or name another one with `CUBINDER_NVRTC=<libnvrtc.so or its folder>`";
    }

    /// An NVRTC whose output depends on more than its input.
    pub(super) struct NotReproducible { major: i32, minor: i32 }
    warning "NVRTC {major}.{minor} may give other bytes for the same input" {
        note: "names in anonymous namespaces and of static functions and variables hold the folder and the process";
        help: "for builds that can be repeated, use NVRTC 13.0 or later; `cargo xtask setup` fetches one";
    }
}
