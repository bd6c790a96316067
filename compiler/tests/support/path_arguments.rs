//! All path arguments, with a call each; a test compares them with the command line.

// Each test program uses a part.
#![allow(dead_code, unreachable_pub)]

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Reads,
    Searches,
    Writes,
    Fills,
    Runs,
}

pub struct PathArgument {
    /// The command with its subcommand.
    pub command: &'static str,
    pub name: &'static str,
    pub used: Use,
    /// `{}` is the path; other files are the test project's.
    pub call: &'static str,
}

macro_rules! arguments {
    ($($command:literal $name:literal $used:ident $call:literal)*) => {
        &[$(PathArgument { command: $command, name: $name, used: Use::$used, call: $call }),*]
    };
}

pub const PATH_ARGUMENTS: &[PathArgument] = arguments! {
    "build" "model" Reads "build {} --output model.plan --plugins build/libscale.so"
    "build" "output" Writes "build model.onnx --plugins build/libscale.so --output {}"
    "build" "plugins" Reads "build model.onnx --output model.plan --plugins {}"
    "build" "timing_cache" Reads "build model.onnx --output model.plan --with tensorrt --timing-cache {}"
    "cache export" "file" Writes "cache export {}"
    "cache export" "manifests" Reads "cache export results.zip {} --target compute_80"
    "cache export" "config" Reads "cache export results.zip --config {}"
    "cache export" "include" Searches "cache export results.zip --include {}"
    "cache export" "nvrtc" Reads "cache export results.zip --nvrtc {}"
    "cache import" "file" Reads "cache import {}"
    "cache import" "manifests" Reads "cache import results.zip {} --target compute_80"
    "cache import" "config" Reads "cache import results.zip --config {}"
    "cache import" "include" Searches "cache import results.zip --include {}"
    "cache import" "nvrtc" Reads "cache import results.zip --nvrtc {}"
    "cache pull" "manifests" Reads "cache pull {} --remote-cache grpc://127.0.0.1:1 --target compute_80"
    "cache pull" "config" Reads "cache pull --config {} --remote-cache grpc://127.0.0.1:1"
    "cache pull" "include" Searches "cache pull --include {} --remote-cache grpc://127.0.0.1:1"
    "cache pull" "nvrtc" Reads "cache pull --nvrtc {} --remote-cache grpc://127.0.0.1:1"
    "cache push" "manifests" Reads "cache push {} --remote-cache grpc://127.0.0.1:1 --target compute_80"
    "cache push" "config" Reads "cache push --config {} --remote-cache grpc://127.0.0.1:1"
    "cache push" "include" Searches "cache push --include {} --remote-cache grpc://127.0.0.1:1"
    "cache push" "nvrtc" Reads "cache push --nvrtc {} --remote-cache grpc://127.0.0.1:1"
    "check" "manifests" Reads "check {}"
    "check" "config" Reads "check --config {}"
    "compare" "plan" Reads "compare {} --expect out.npz"
    "compare" "inputs" Reads "compare model.plan --expect out.npz --inputs {}"
    "compare" "plugins" Reads "compare model.plan --expect out.npz --plugins {}"
    "compare" "output" Writes "compare model.plan --expect out.npz --output {}"
    "compare" "onnx" Reads "compare model.plan --onnx {}"
    "compare" "expect" Reads "compare model.plan --expect {}"
    "compare" "python" Runs "compare model.plan --expect out.npz --python {}"
    "compile" "manifests" Reads "compile {} --target compute_80"
    "compile" "config" Reads "compile --config {}"
    "compile" "output" Writes "compile --output {}"
    "compile" "out_dir" Fills "compile --out-dir {}"
    "compile" "depfile" Writes "compile --depfile {}"
    "compile" "include" Searches "compile --include {}"
    "compile" "tuning" Reads "compile --tuning {}"
    "compile" "runtime_library" Reads "compile --runtime-library {}"
    "compile" "nvrtc" Reads "compile --nvrtc {}"
    "eval" "file" Reads "eval {}"
    "eval" "cases" Reads "eval --cases {}"
    "eval" "on" Reads "eval --cases cases.toml --on {}"
    "eval" "nvrtc" Searches "eval manifests/scale.toml --shape x=4 --type x=f32 --attribute factor=1 --arch sm_89 --nvrtc {}"
    "extract" "file" Reads "extract {} --as ptx"
    "extract" "output" Writes "extract build/libscale.so --as ptx --target compute_80 --plugin scale_plugin --output {}"
    "extract" "out_dir" Fills "extract build/libscale.so --as ptx --out-dir {}"
    "import cubin" "files" Reads "import cubin {}"
    "import cubin" "output" Writes "import cubin k.ptx --output {}"
    "import ptx" "files" Reads "import ptx {}"
    "import ptx" "output" Writes "import ptx k.ptx --output {}"
    "import triton" "paths" Reads "import triton {}"
    "import triton" "output" Writes "import triton k.json --output {}"
    "inspect" "file" Reads "inspect {}"
    "man" "folder" Fills "man {}"
    "new" "path" Fills "new other --path {}"
    "onnx annotate" "model" Reads "onnx annotate {} --plugins manifests/scale.toml --output out.onnx"
    "onnx annotate" "plugins" Reads "onnx annotate model.onnx --plugins {} --output out.onnx"
    "onnx annotate" "output" Writes "onnx annotate model.onnx --plugins manifests/scale.toml --output {}"
    "onnx list" "model" Reads "onnx list {} --plugins manifests/scale.toml"
    "onnx list" "plugins" Reads "onnx list model.onnx --plugins {}"
    "onnx shapes" "model" Reads "onnx shapes {} --plugins manifests/scale.toml"
    "onnx shapes" "plugins" Reads "onnx shapes model.onnx --plugins {}"
    "run" "plan" Reads "run {}"
    "run" "inputs" Reads "run model.plan --inputs {}"
    "run" "plugins" Reads "run model.plan --plugins {}"
    "run" "output" Writes "run model.plan --output {}"
    "test" "file" Reads "test {}"
    "test" "on" Reads "test cases.toml --on {}"
    "test" "python" Runs "test cases.toml --python {}"
    "test" "nvrtc" Searches "test cases.toml --nvrtc {}"
    "thin" "library" Reads "thin {} --arch sm_89"
    "thin" "output" Writes "thin build/libscale.so --arch sm_89 --output {}"
    "thin" "out_dir" Fills "thin build/libscale.so --arch sm_89 --out-dir {}"
    "tune" "file" Reads "tune {}"
    "tune" "on" Reads "tune cases.toml --on {}"
    "tune" "output" Writes "tune cases.toml --output {}"
    "tune" "out_dir" Fills "tune cases.toml --out-dir {}"
    "tune" "nvrtc" Searches "tune cases.toml --nvrtc {}"
};
