//! Messages and clients of the protocol. Generated from `proto/`: `cargo test -p cubinder-remote --test generated`
//! compares them, and `CUBINDER_UPDATE_REMOTE=1` rewrites them.

#![allow(dead_code, missing_docs, clippy::all, unreachable_pub, rustdoc::all)]

/// Packages have the folders of their names: generated code names other packages by relative paths.
pub(crate) mod build {
    pub(crate) mod bazel {
        pub(crate) mod semver {
            include!("generated/build.bazel.semver.rs");
        }
        pub(crate) mod remote {
            pub(crate) mod execution {
                pub(crate) mod v2 {
                    include!("generated/build.bazel.remote.execution.v2.rs");
                }
            }
        }
    }
}

pub(crate) mod google {
    pub(crate) mod bytestream {
        include!("generated/google.bytestream.rs");
    }
    pub(crate) mod longrunning {
        include!("generated/google.longrunning.rs");
    }
}

pub(crate) use build::bazel::remote::execution::v2 as reapi;
pub(crate) use google::{bytestream, longrunning};
