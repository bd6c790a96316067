//! Checks that the generated messages equal those of `proto/`. `CUBINDER_UPDATE_REMOTE=1` rewrites them.

#![allow(clippy::unwrap_used)]

use std::path::Path;

const PACKAGES: [&str; 4] =
    ["build.bazel.remote.execution.v2", "build.bazel.semver", "google.bytestream", "google.longrunning"];

#[test]
fn messages_equal_the_protocol_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = [
        "build/bazel/remote/execution/v2/remote_execution.proto",
        "google/bytestream/bytestream.proto",
        "google/longrunning/operations.proto",
    ];
    let descriptors = protox::compile(files, [root.join("proto")]).unwrap();
    let generated = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .out_dir(generated.path())
        .bytes(".google.bytestream")
        .extern_path(".google.rpc.Status", "::tonic_types::Status")
        .server_mod_attribute(".", "#[cfg(test)]")
        .compile_fds(descriptors)
        .unwrap();
    for package in PACKAGES {
        let name = format!("{package}.rs");
        let expected = std::fs::read_to_string(generated.path().join(&name)).unwrap();
        let path = root.join("src/generated").join(&name);
        if std::env::var_os("CUBINDER_UPDATE_REMOTE").is_some_and(|value| value == "1") {
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == expected,
            "compiler/remote/src/generated/{name} differs from proto/: CUBINDER_UPDATE_REMOTE=1 rewrites it"
        );
    }
}
