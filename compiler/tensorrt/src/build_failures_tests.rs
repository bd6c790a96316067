use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use cubinder_source::diagnostic::{Colour, Diagnostic, render};

use super::*;
use crate::log::LogLine;

fn failure(stage: &str, texts: &[&str], log: &[&str], status: i32) -> Failure {
    Failure {
        stage: stage.to_owned(),
        texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        log: log.iter().map(|line| LogLine::of_program(line)).collect(),
        status: ExitStatus::from_raw(status),
    }
}

fn explained(failure: &Failure) -> String {
    let request = Request { model: "m.onnx".into(), ..Request::default() };
    let error: Diagnostic = not_built(Kind::Full, &request, failure).into();
    assert!(error.help.as_ref().is_some_and(|help| !help.is_empty()), "{error:?}");
    render(&[error], Colour::Plain)
}

/// Exit code 1, as wait(2) encodes it.
const ONE: i32 = 1 << 8;

#[test]
fn messages_of_tensorrt_are_explained() {
    let failures = [
        failure(
            "",
            &[],
            &["[t] [E] [TRT] Cannot register the library as plugin creator of scale exists already."],
            ONE,
        ),
        failure("", &[], &["[t] [E] [TRT] Op type scale is not supported in TensorRT-RTX."], ONE),
        failure(
            "parse",
            &["creator && \"Plugin not found, are the plugin name, version, and namespace correct?\""],
            &["[t] [E] [TRT] --- Begin node ---"],
            ONE,
        ),
        failure(
            "",
            &[],
            &[
                "[t] [E] [TRT] TensorRT-RTX imports IPluginV3 plugins registered with an IPluginCreatorV3One creator only",
            ],
            ONE,
        ),
        failure(
            "build",
            &[],
            &[
                "[t] [E] [TRT] Network has dynamic or shape inputs, but no optimization profile has been defined.",
            ],
            ONE,
        ),
        failure(
            "parse",
            &["x"],
            &["[t] [E] cubinder: custom::scale `y`: the attribute `factor` is missing", "[t] [E] [TRT] x"],
            ONE,
        ),
        failure(
            "build",
            &[],
            &["[t] [E] [TRT] aliased output needs PreviewFeature::kALIASED_PLUGIN_IO_10_03"],
            ONE,
        ),
        failure("", &[], &["[t] [E] [TRT] Target GPU SM 70 is not supported by this TensorRT release."], ONE),
        failure("", &[], &["[t] [E] [TRT] Unable to load library: libnvinfer_builder_resource_sm89.so"], ONE),
        failure(
            "",
            &[],
            &[
                "trtexec: error while loading shared libraries: libnvinfer.so.10: cannot open shared object file",
            ],
            ONE << 7,
        ),
        failure(
            "builder",
            &["TensorRT could not create a builder"],
            &["[t] [W] [TRT] Unable to determine GPU memory usage: CUDA driver version is insufficient"],
            ONE,
        ),
        failure("build", &[], &["[t] [E] [TRT] Error Code 2: OutOfMemory"], ONE),
        failure("missing", &["SM90", "SM80, SM89"], &[], ONE),
        failure("missing", &["FP16", "TF32"], &[], ONE),
        failure("shape", &["x=1x2: rejected"], &[], ONE),
        failure("plugin", &["/p/libx.so"], &[], ONE),
        failure("import", &["No module named tensorrt"], &[], ONE),
        failure("", &[], &["terminate called without an active exception"], 6),
        failure("", &[], &[], 9),
        failure("", &[], &["Traceback", "AttributeError: Builder"], ONE),
        failure("", &[], &["[t] [E] [TRT] Something new"], ONE),
        failure("", &[], &[], 0),
    ];
    let text: Vec<String> = failures.iter().map(explained).collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn a_missing_gpu_explains_nothing_of_tensorrt_rtx() {
    let noise = "[t] [E] [checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (cudaError 35: CUDA driver version is insufficient)";
    let failed = failure("plugin", &["/p/libx.so"], &[noise], ONE);
    let request = Request::default();
    assert_eq!(not_built(Kind::Rtx, &request, &failed).cause, "it rejects the library `/p/libx.so`");
    assert_eq!(not_built(Kind::Full, &request, &failed).cause, "it cannot use a GPU");
}

#[test]
fn a_crash_is_not_explained_by_earlier_warnings() {
    let warned = failure("", &[], &["[t] [W] [TRT] CUDA lazy loading is not enabled"], 11);
    assert!(explained(&warned).contains("SIGSEGV"), "{}", explained(&warned));
    let failed = failure("", &[], &["[t] [E] [TRT] CUDA initialization failure with error: 35"], 6);
    assert!(explained(&failed).contains("it cannot use a GPU"), "{}", explained(&failed));
}
