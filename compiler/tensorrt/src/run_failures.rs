use std::path::Path;

use crate::errors::NotRun;
use crate::explain::{Explanation, Failure, Known, Task};
use crate::installation::Kind;

const SHAPE: &str =
    "change `--shape` or the input files, or build the engine with another `--shape NAME=MIN:OPT:MAX`";

/// Messages of TensorRT-RTX 1.7.1 and TensorRT 11.4.
const KNOWN: [Known; 9] = [
    Known {
        parts: &["kEXPECTED_MAGIC_TAG", "bufferSize >= minBufferSize"],
        cause: "the file is not an engine of this TensorRT",
        help: "pass a plan that this TensorRT built, or choose another TensorRT with `--with`",
    },
    Known {
        parts: &["plan.header.size == blobSize"],
        cause: "the file is not complete",
        help: "copy the plan again, or build it again with `cubinder build`",
    },
    Known {
        parts: &["empty memory buffer"],
        cause: "the file is empty",
        help: "build the engine again with `cubinder build`",
    },
    Known {
        parts: &[
            "Version tag does not match",
            "kSERIALIZATION_VERSION",
            "same version of TensorRT",
            "incompatible with the version of this library",
        ],
        cause: "another release of TensorRT built it",
        help: "build it again with this one (`cubinder build`), or choose the other release with `--with`",
    },
    Known {
        parts: &[
            "incompatible device",
            "got compute",
            "cannot run on this GPU",
            "CUDA error 209 loading a module",
        ],
        cause: "it was built for another GPU",
        help: "build it for this GPU (`cubinder build --gpu`), or run it on the other one",
    },
    Known {
        parts: &["getEngineHostCodeAllowed"],
        cause: "it carries code for the CPU, which TensorRT runs only if allowed",
        help: "if you trust the file, add `--allow-host-code`",
    },
    Known {
        parts: &["exists already"],
        cause: "two libraries contain the same plugin",
        help: "remove one from `--plugins`; a plan that carries its library needs none",
    },
    Known {
        parts: &["Cannot find plugin"],
        cause: "no loaded library contains the plugin of a node",
        help: "pass its library with `--plugins`; `cubinder inspect PLAN` shows the plugins of Cubinder",
    },
    Known {
        parts: &["optimization profile", "Static dimension mismatch"],
        cause: "a shape of the inputs is not in the engine's range",
        help: SHAPE,
    },
];

const NO_GPU: &str = "run on a machine with an NVIDIA GPU and its driver; `cubinder doctor` checks both";

pub(crate) fn not_run(kind: Kind, plan: &Path, failure: &Failure) -> NotRun {
    let task = Task {
        known: &KNOWN,
        cuda: Known { parts: &["CUDA"], cause: "it cannot use the GPU", help: NO_GPU },
        needs_gpu: true,
        staged,
        own_help:
            "docs/troubleshooting.md lists such messages; `cubinder inspect PLAN` shows the nodes' code"
                .to_owned(),
        no_result: "it returned no result",
    };
    let Explanation { cause, words, help } = task.explain(kind, failure);
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
        "shape" => (format!("it rejects the shape of `{text}`"), SHAPE),
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
    use cubinder_source::diagnostic::{Colour, Diagnostic, render};

    use super::*;

    const FAILURES: &str = "
deserialize | | [t] [E] IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion header.magicTag == kEXPECTED_MAGIC_TAG failed.Trying to load an engine created with incompatible serialization version (544501614 != 1953657974).)
deserialize | | [t] [E] IRuntime::deserializeCudaEngine: Error Code 3: API Usage Error (Cannot deserialize with an empty memory buffer.)
deserialize | | [t] [E] Error Code 1: Serialization (Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed.Version tag does not match. Note: Current Version: 239, Serialized Engine Version: 213)
deserialize | | [t] [E] The engine plan file is generated on an incompatible device, expecting compute 8.9 got compute 9.0, please rebuild.
deserialize | | [t] [E] The engine cannot run on this GPU
deserialize | | [t] [E] IRuntime::deserializeCudaEngine: Error Code 1: Serialization (Serialization assertion plan.header.size == blobSize failed. In parsePlan at /_src/runtime/dispatch/runtime.cpp:780)
context | | [t] [E] ICudaEngine::createExecutionContext: Error Code 1: Myelin ([cudamod.cpp:31: CUDAMod] CUDA error 209 loading a module. In MyelinGraphContext at /_src/runtime/myelin/graphContext.cpp:79)
deserialize | | [t] [E] Cannot deserialize engine with lean runtime since IRuntime::getEngineHostCodeAllowed() is false.
deserialize | | [t] [E] Cannot register the library as plugin creator of Kernel2cubinder exists already.
deserialize | | [t] [E] IPluginRegistry::getCreator: Error Code 4: API Usage Error (Cannot find plugin: Kernel2cubinder, version: 1, namespace:generic.)
deserialize | | [t] [E] cubinder: no code of custom::scale runs on this GPU
shape | x | [t] [E] IExecutionContext::setInputShape: Error Code 3: Given dimensions [5] does not satisfy any optimization profiles.
driver | libcuda.so.1: cannot open shared object file: No such file or directory
driver | cuInit: CUDA_ERROR_NO_DEVICE
driver | cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY
driver | cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS
plugin | /p/libx.so
tensor | x; the address | [t] [E] misaligned
capture | | [t] [E] operation not permitted when stream is capturing
enqueue | | [t] [E] [checkMacros.cpp::catchCudaError::250] Error Code 1: Cuda Runtime (cudaError 35: CUDA driver version is insufficient for CUDA runtime version)
context | | [t] [E] Something new
context";

    fn explained(line: &str) -> String {
        // Exit code 1, as wait(2) encodes it.
        let error = Diagnostic::from(not_run(Kind::Rtx, Path::new("m.plan"), &Failure::parse(line, 1 << 8)));
        assert!(error.help.as_ref().is_some_and(|help| !help.is_empty()), "{error:?}");
        render(&[error], Colour::Plain)
    }

    #[test]
    fn messages_of_tensorrt_are_explained() {
        let text: Vec<String> = FAILURES.lines().skip(1).map(explained).collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}
