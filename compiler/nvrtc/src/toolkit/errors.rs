use std::io;
use std::path::Display;

cubinder_source::diagnostics! {
    pub(super) struct NoNvrtc { found: String, help: String }
    error "{found}" {
        note: "NVRTC compiles the kernels; it requires neither a GPU nor a CUDA toolkit";
        help: "{help}";
    }

    pub(super) struct NoHeaders { found: String, help: String }
    error "{found}" {
        note: "16-bit and 8-bit types, cooperative groups and the CUDA C++ library require headers that NVRTC does not contain";
        help: "{help}";
    }

    /// `CUDA_HOME` is not a folder. No fallback: the user named a toolkit.
    pub(super) struct NoHome<'a> { home: Display<'a> }
    error "`CUDA_HOME` is not a folder: `{home}`" {
        help: "correct it, or unset it to use NVIDIA's Python packages, as `cubinder paths` shows";
    }

    pub(super) struct NoCache { help: String }
    error "no cache folder to search for NVRTC" {
        note: "`CUBINDER_CACHE`, `XDG_CACHE_HOME` and `HOME` are not set; only the first may be a relative path";
        help: "{help}";
    }

    pub(super) struct Inaccessible<'a> { path: Display<'a>, error: io::Error }
    error "cannot access `{path}`: {error}" {
        help: "grant the current user access to it and its parent folders, or specify another with \
               `CUBINDER_NVRTC=<libnvrtc.so or its folder>` or `CUDA_HOME=<CUDA toolkit>`";
    }

    pub(super) struct UnreadableNvrtc<'a> { path: Display<'a>, error: io::Error }
    error "cannot read `{path}`: {error}" {
        note: "the cache of compiled code depends on the contents of NVRTC";
        help: "specify a readable one with `CUBINDER_NVRTC=<libnvrtc.so or its folder>`";
    }

    /// Untested combination of releases.
    pub(super) struct OtherHeaders<'a> {
        major: i32, minor: i32, nvrtc_major: i32, nvrtc_minor: i32, folder: Display<'a>, nvrtc: Display<'a>
    }
    warning "CUDA headers {major}.{minor} do not match NVRTC {nvrtc_major}.{nvrtc_minor}" {
        note: "the headers are in `{folder}`; NVRTC is `{nvrtc}`";
        help: "use both from one release: set `CUDA_HOME` to an installed toolkit, without `--nvrtc` and `CUBINDER_NVRTC`";
    }

    pub(super) struct BrokenPins<'a> { reason: &'a str }
    error "this build of `cubinder` contains an invalid `toolkit.toml`" {
        note: "{reason}";
    }
}
