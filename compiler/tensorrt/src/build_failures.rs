use crate::command::Request;
use crate::errors::NotBuilt;
use crate::explain::{Explanation, Failure, Known, Task};
use crate::installation::Kind;

const OTHER_GPU: &str =
    "build on a machine with a supported GPU and driver, or use TensorRT-RTX, which needs none: `--with rtx`";

/// Messages of TensorRT-RTX 1.7.1 and TensorRT 10.15.
const KNOWN: [Known; 10] = [
    Known {
        parts: &["exists already"],
        cause: "two libraries contain a plugin of one name and version",
        help: "pass only one of them with `--plugins`",
    },
    Known {
        parts: &["is not supported in TensorRT-RTX"],
        cause: "its ONNX parser rejects plugin nodes",
        help: "install TensorRT-RTX 1.7: `pip install tensorrt_rtx==1.7.1.116`",
    },
    Known {
        parts: &["Plugin not found"],
        cause: "no loaded library contains the plugin of a node",
        help: "pass its library with `--plugins`; `cubinder onnx list MODEL --plugins LIBRARY` shows differing names and versions",
    },
    Known {
        parts: &["IPluginCreatorV3One creator only"],
        cause: "it does not support plugins that TensorRT launches",
        help: "compile the plugin with `--route plugin`, or build with TensorRT: `--with tensorrt`",
    },
    Known {
        parts: &["no optimization profile has been defined"],
        cause: "the model has dynamic inputs without a shape",
        help: "add `--shape NAME=MIN:OPT:MAX`, or `--values` for inputs that determine shapes",
    },
    Known {
        parts: &["missing values for shape input tensor"],
        cause: "the values of an input determine shapes, and `--values` is missing",
        help: "add them, such as `--values NAME=1,8` or `--values NAME=MIN:OPT:MAX`",
    },
    Known {
        parts: &["ALIASED_PLUGIN_IO"],
        cause: "a plugin writes into its input, which this release does not permit",
        help: "use TensorRT 10.3 or newer, or TensorRT-RTX 1.7",
    },
    Known {
        parts: &["Failed to parse the ONNX model"],
        cause: "the model is not readable",
        help: "check it with `onnx.checker.check_model`, and export it again",
    },
    Known { parts: &["Target GPU SM"], cause: "it does not support this GPU", help: OTHER_GPU },
    Known { parts: &["builder_resource"], cause: "its files for this GPU are missing", help: OTHER_GPU },
];

pub(crate) fn not_built(kind: Kind, request: &Request, failure: &Failure) -> NotBuilt {
    let model = request.model.display().to_string();
    let task = Task {
        known: &KNOWN,
        cuda: Known { parts: &["CUDA"], cause: "it cannot use a GPU", help: OTHER_GPU },
        needs_gpu: false,
        staged,
        own_help: format!(
            "change the node or the plugin; `cubinder onnx shapes {model} --plugins LIBRARY` evaluates it without TensorRT"
        ),
        no_result: "it wrote no plan",
    };
    let Explanation { cause, words, help } = task.explain(kind, failure);
    NotBuilt { product: kind.name(), model, cause, words, help }
}

fn staged(failure: &Failure) -> Option<Explanation> {
    let text = |index: usize| failure.text(index);
    let (cause, help) = match failure.stage.as_str() {
        "missing" => match gpu_number(text(0)) {
            Some(gpu) => {
                let mut gpus: Vec<u32> = text(1).split(", ").filter_map(gpu_number).collect();
                gpus.sort_unstable();
                let gpus: Vec<String> = gpus.into_iter().map(|number| format!("sm_{number}")).collect();
                let help = format!("choose others with `--gpu`; it supports {}", gpus.join(", "));
                (format!("it does not support sm_{gpu}"), help)
            }
            None => {
                let help = "remove the option, or use another release".to_owned();
                (format!("it does not support {}", text(0)), help)
            }
        },
        "shape" => (
            format!("it rejects the shapes: {}", text(0)),
            "correct `--shape` and `--values`; `cubinder onnx list` shows the model's tensors".to_owned(),
        ),
        "write" => (format!("cannot write the plan: {}", text(0)), "free disk space".to_owned()),
        "timing cache" => {
            (text(0).to_owned(), "delete the file, which is of another GPU or release".to_owned())
        }
        _ => return None,
    };
    Some(Explanation::new(cause, help))
}

/// Parses `SM89`.
fn gpu_number(name: &str) -> Option<u32> {
    name.strip_prefix("SM")?.parse().ok()
}

#[cfg(test)]
#[path = "build_failures_tests.rs"]
mod tests;
