use cubinder_source::diagnostic::{Colour, Diagnostic, render};

use super::*;

fn explained(failure: &Failure) -> String {
    let request = Request { model: "m.onnx".into(), ..Request::default() };
    let error: Diagnostic = not_built(Kind::Full, &request, failure).into();
    assert!(error.help.as_ref().is_some_and(|help| !help.is_empty()), "{error:?}");
    render(&[error], Colour::Plain)
}

/// Exit code 1, as wait(2) encodes it.
const ONE: i32 = 1 << 8;

const FAILURES: &str = r#"
 | | [t] [E] [TRT] Cannot register the library as plugin creator of scale exists already.
 | | [t] [E] [TRT] Op type scale is not supported in TensorRT-RTX.
parse | creator && "Plugin not found, are the plugin name, version, and namespace correct?" | [t] [E] [TRT] --- Begin node ---
 | | [t] [E] [TRT] TensorRT-RTX imports IPluginV3 plugins registered with an IPluginCreatorV3One creator only
build | | [t] [E] [TRT] Network has dynamic or shape inputs, but no optimization profile has been defined.
parse | x | [t] [E] cubinder: custom::scale `y`: the attribute `factor` is missing; [t] [E] [TRT] x
build | | [t] [E] [TRT] aliased output needs PreviewFeature::kALIASED_PLUGIN_IO_10_03
 | | [t] [E] [TRT] Target GPU SM 70 is not supported by this TensorRT release.
 | | [t] [E] [TRT] Unable to load library: libnvinfer_builder_resource_sm89.so
 | | trtexec: error while loading shared libraries: libnvinfer.so.10: cannot open shared object file
builder | TensorRT could not create a builder | [t] [W] [TRT] Unable to determine GPU memory usage: CUDA driver version is insufficient
build | | [t] [E] [TRT] Error Code 2: OutOfMemory
missing | SM90; SM80, SM89
missing | FP16; TF32
shape | x=1x2: rejected
plugin | /p/libx.so
import | No module named tensorrt
 | | terminate called without an active exception | 6
 | | | 9
 | | Traceback; AttributeError: Builder
 | | [t] [E] [TRT] Something new
 | | | 0"#;

#[test]
fn messages_of_tensorrt_are_explained() {
    let status = |line: &str| line.split('|').nth(3).map_or(ONE, |status| status.trim().parse().unwrap());
    let failures = FAILURES.lines().skip(1).map(|line| explained(&Failure::parse(line, status(line))));
    insta::assert_snapshot!(failures.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_missing_gpu_explains_nothing_of_tensorrt_rtx() {
    let noise = "[t] [E] [checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (cudaError 35: CUDA driver version is insufficient)";
    let failed = Failure::parse(&format!("plugin | /p/libx.so | {noise}"), ONE);
    let request = Request::default();
    assert_eq!(not_built(Kind::Rtx, &request, &failed).cause, "it rejects the library `/p/libx.so`");
    assert_eq!(not_built(Kind::Full, &request, &failed).cause, "it cannot use a GPU");
}

#[test]
fn a_crash_is_not_explained_by_earlier_warnings() {
    let warned = Failure::parse(" | | [t] [W] [TRT] CUDA lazy loading is not enabled", 11);
    assert!(explained(&warned).contains("SIGSEGV"), "{}", explained(&warned));
    let failed = Failure::parse(" | | [t] [E] [TRT] CUDA initialization failure with error: 35", 6);
    assert!(explained(&failed).contains("it cannot use a GPU"), "{}", explained(&failed));
}
