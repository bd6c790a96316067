//! Explains why an engine did not run.

use std::path::Path;

use crate::errors::NotRun;
use crate::explain::{Explained, Explanation, Failure, Known, Task};
use crate::installation::Kind;

const NOT_A_PLAN: Known = Known {
    part: "kEXPECTED_MAGIC_TAG",
    cause: "the file is not an engine of this TensorRT",
    help: "pass a plan that this TensorRT built, or choose another TensorRT with `--with`",
};
const OTHER_RELEASE: Known = Known {
    part: "Version tag does not match",
    cause: "another release of TensorRT built it",
    help: "build it again with this one (`cubinder build`), or choose the other release with `--with`",
};
const OTHER_GPU: Known = Known {
    part: "incompatible device",
    cause: "it was built for another GPU",
    help: "build it for this GPU (`cubinder build --gpu`), or run it on the other one",
};
const SHAPE: Known = Known {
    part: "optimization profile",
    cause: "a shape of the inputs is not in the engine's range",
    help: "change `--shape` or the input files, or build the engine with another `--shape NAME=MIN:OPT:MAX`",
};

/// Messages of TensorRT-RTX 1.7.1 and of TensorRT 11.4.
const KNOWN: [Known; 15] = [
    NOT_A_PLAN,
    Known { part: "bufferSize >= minBufferSize", ..NOT_A_PLAN },
    Known {
        part: "empty memory buffer",
        cause: "the file is empty",
        help: "build the engine again with `cubinder build`",
    },
    OTHER_RELEASE,
    Known { part: "kSERIALIZATION_VERSION", ..OTHER_RELEASE },
    Known { part: "same version of TensorRT", ..OTHER_RELEASE },
    Known { part: "incompatible with the version of this library", ..OTHER_RELEASE },
    OTHER_GPU,
    Known { part: "got compute", ..OTHER_GPU },
    Known { part: "cannot run on this GPU", ..OTHER_GPU },
    Known {
        part: "getEngineHostCodeAllowed",
        cause: "it carries code for the CPU, which TensorRT runs only if allowed",
        help: "if you trust the file, add `--allow-host-code`",
    },
    Known {
        part: "exists already",
        cause: "two libraries contain the same plugin",
        help: "remove one from `--plugins`; a plan that carries its library needs none",
    },
    Known {
        part: "Cannot find plugin",
        cause: "no loaded library contains the plugin of a node",
        help: "pass its library with `--plugins`; `cubinder inspect PLAN` shows the plugins of Cubinder",
    },
    SHAPE,
    Known { part: "Static dimension mismatch", ..SHAPE },
];

const NO_GPU: &str = "run on a machine with an NVIDIA GPU and its driver; `cubinder doctor` checks both";

pub(crate) fn not_run(kind: Kind, plan: &Path, failure: &Failure) -> NotRun {
    let task = Task {
        known: &KNOWN,
        cuda: Known { part: "CUDA", cause: "it cannot use the GPU", help: NO_GPU },
        needs_gpu: true,
        staged,
        own_help:
            "docs/troubleshooting.md lists such messages; `cubinder inspect PLAN` shows the nodes' code"
                .to_owned(),
        no_result: "it returned no result",
    };
    let Explained { cause, words, help } = task.explain(kind, failure);
    NotRun { product: kind.name(), plan: plan.display().to_string(), cause, words, help }
}

fn staged(failure: &Failure) -> Option<Explanation> {
    let text = failure.text(0);
    let (cause, help) = match failure.stage.as_str() {
        "driver" if text.contains("libcuda.so.1") => (format!("the CUDA driver is missing: {text}"), NO_GPU),
        "driver" if text.contains("OUT_OF_MEMORY") => {
            (format!("the GPU has not enough memory: {text}"), "free memory of the GPU, or reduce the shapes")
        }
        "driver" if text.starts_with("cuInit") || text.starts_with("cuDevice") => {
            (format!("no GPU is available: {text}"), NO_GPU)
        }
        "driver" => (
            format!("the GPU reported an error: {text}"),
            "find the kernel that fails with `cubinder test PLAN` or `compute-sanitizer`",
        ),
        "shape" => (format!("it rejects the shape of `{text}`"), SHAPE.help),
        "tensor" => (
            format!("it rejects {} of `{text}`", failure.text(1)),
            "run the command again with `--verbose` for TensorRT's whole log",
        ),
        "capture" => (
            "its work cannot be captured in a CUDA graph".to_owned(),
            "remove `--cuda-graph`; outputs whose shape depends on data cannot be captured",
        ),
        _ => return None,
    };
    Some(Explanation::new(cause, help))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use cubinder_source::diagnostic::{Colour, Diagnostic, render};

    use super::*;
    use crate::log::LogLine;

    fn explained(stage: &str, texts: &[&str], log: &[&str]) -> String {
        let failure = Failure {
            stage: stage.to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            log: log.iter().map(|text| LogLine::new("ERROR", text)).collect(),
            status: ExitStatus::from_raw(1 << 8),
        };
        let error = Diagnostic::from(not_run(Kind::Rtx, Path::new("m.plan"), &failure));
        assert!(error.help.as_ref().is_some_and(|help| !help.is_empty()), "{error:?}");
        render(&[error], Colour::Plain)
    }

    #[test]
    fn messages_of_tensorrt_are_explained() {
        let logged = |text: &str| explained("deserialize", &[], &[text]);
        let text = [
            logged(
                "IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion header.magicTag == kEXPECTED_MAGIC_TAG failed.Trying to load an engine created with incompatible serialization version (544501614 != 1953657974).)",
            ),
            logged(
                "IRuntime::deserializeCudaEngine: Error Code 3: API Usage Error (Cannot deserialize with an empty memory buffer.)",
            ),
            logged(
                "Error Code 1: Serialization (Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed.Version tag does not match. Note: Current Version: 239, Serialized Engine Version: 213)",
            ),
            logged(
                "The engine plan file is generated on an incompatible device, expecting compute 8.9 got compute 9.0, please rebuild.",
            ),
            logged("The engine cannot run on this GPU"),
            logged(
                "Cannot deserialize engine with lean runtime since IRuntime::getEngineHostCodeAllowed() is false.",
            ),
            logged("Cannot register the library as plugin creator of Kernel2cubinder exists already."),
            logged(
                "IPluginRegistry::getCreator: Error Code 4: API Usage Error (Cannot find plugin: Kernel2cubinder, version: 1, namespace:generic.)",
            ),
            logged("cubinder: no code of custom::scale runs on this GPU"),
            explained(
                "shape",
                &["x"],
                &[
                    "IExecutionContext::setInputShape: Error Code 3: Given dimensions [5] does not satisfy any optimization profiles.",
                ],
            ),
            explained(
                "driver",
                &["libcuda.so.1: cannot open shared object file: No such file or directory"],
                &[],
            ),
            explained("driver", &["cuInit: CUDA_ERROR_NO_DEVICE"], &[]),
            explained("driver", &["cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY"], &[]),
            explained("driver", &["cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS"], &[]),
            explained("plugin", &["/p/libx.so"], &[]),
            explained("tensor", &["x", "the address"], &["misaligned"]),
            explained("capture", &[], &["operation not permitted when stream is capturing"]),
            explained(
                "enqueue",
                &[],
                &[
                    "[checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (cudaError 35: CUDA driver version is insufficient for CUDA runtime version)",
                ],
            ),
            explained("context", &[], &["Something new"]),
            explained("context", &[], &[]),
        ];
        insta::assert_snapshot!(text.join("\n"));
    }
}
