//! The diagnostics about locating NVRTC and CUDA's headers.

use std::io;
use std::path::Display;

cubinder_source::diagnostics! {
    pub(super) struct NoNvrtc { found: String, help: String }
    error "{found}" {
        note: "NVRTC compiles the kernels; it needs no GPU and no CUDA toolkit";
        help: "{help}";
    }

    pub(super) struct NoHeaders { found: String, help: &'static str }
    error "{found}" {
        note: "types of 16 or 8 bits, cooperative groups and the CUDA C++ library are in headers that NVRTC does not carry itself";
        help: "{help}";
    }

    /// `CUDA_HOME` is not a folder. No fallback: the user named a toolkit.
    pub(super) struct NoHome<'a> { home: Display<'a> }
    error "`CUDA_HOME` names `{home}`, which is no folder" {
        help: "correct it, or unset it: then NVIDIA's Python packages are used, as `cubinder paths` says";
    }

    pub(super) struct NoCache { help: String }
    error "there is no cache folder to look for NVRTC in" {
        note: "none of `CUBINDER_CACHE`, `XDG_CACHE_HOME` and `HOME` is set; a relative path counts in the first only";
        help: "{help}";
    }

    pub(super) struct Inaccessible<'a> { path: Display<'a>, error: io::Error }
    error "`{path}` cannot be looked at: {error}" {
        help: "let the user who runs this read it and enter the folders on the way to it, or name another place with \
               `CUBINDER_NVRTC=<libnvrtc.so or its folder>` or `CUDA_HOME=<CUDA toolkit>`";
    }

    pub(super) struct UnreadableNvrtc<'a> { path: Display<'a>, error: io::Error }
    error "cannot read `{path}`: {error}" {
        note: "the cache of compiled code has to know which NVRTC it is for";
        help: "name one that can be read, with `CUBINDER_NVRTC=<libnvrtc.so or its folder>`";
    }

    /// An untested combination of releases.
    pub(super) struct OtherHeaders<'a> {
        major: i32, minor: i32, nvrtc_major: i32, nvrtc_minor: i32, folder: Display<'a>, nvrtc: Display<'a>
    }
    warning "CUDA's headers are of release {major}.{minor}, and NVRTC is {nvrtc_major}.{nvrtc_minor}" {
        note: "the headers are in `{folder}`, NVRTC is `{nvrtc}`";
        help: "have both of one release: an installed toolkit that `CUDA_HOME` names has both, where neither `--nvrtc` nor \
               `CUBINDER_NVRTC` names another NVRTC";
    }

    pub(super) struct BrokenPins<'a> { reason: &'a str }
    error "this build of `cubinder` carries a broken `toolkit.toml`" {
        note: "{reason}";
    }
}
