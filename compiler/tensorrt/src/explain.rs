//! Explains why a build failed: TensorRT's messages, exceptions of Python, and signals.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use crate::command::Request;
use crate::ending::ending;
use crate::errors::NotBuilt;
use crate::installation::Kind;
use crate::log::LogLine;

pub(crate) struct Failure {
    /// Stage in which `builder.py` stopped; empty if it or a program ended otherwise.
    pub(crate) stage: String,
    pub(crate) texts: Vec<String>,
    pub(crate) log: Vec<LogLine>,
    pub(crate) status: ExitStatus,
}

struct Known {
    /// Part of a message.
    part: &'static str,
    cause: &'static str,
    help: &'static str,
}

const OTHER_GPU: &str =
    "build on a machine with a supported GPU and driver, or use TensorRT-RTX, which needs none: `--with rtx`";

/// Messages of TensorRT-RTX 1.7.1, TensorRT 10.15 and the loader; the first that occurs is used.
const KNOWN: [Known; 14] = [
    Known {
        part: "exists already",
        cause: "two libraries contain a plugin of one name and version",
        help: "pass only one of them with `--plugins`",
    },
    Known {
        part: "is not supported in TensorRT-RTX",
        cause: "its ONNX parser rejects plugin nodes",
        help: "install TensorRT-RTX 1.7: `pip install tensorrt_rtx==1.7.1.116`",
    },
    Known {
        part: "Plugin not found",
        cause: "no loaded library contains the plugin of a node",
        help: "pass its library with `--plugins`; `cubinder onnx list MODEL --plugins LIBRARY` shows differing names and versions",
    },
    Known {
        part: "IPluginCreatorV3One creator only",
        cause: "it does not support plugins that TensorRT launches",
        help: "compile the plugin with `--route plugin`, or build with TensorRT: `--with tensorrt`",
    },
    Known {
        part: "no optimization profile has been defined",
        cause: "the model has dynamic inputs without a shape",
        help: "add `--shape NAME=MIN:OPT:MAX`, or `--values` for inputs that determine shapes",
    },
    Known {
        part: "ALIASED_PLUGIN_IO",
        cause: "a plugin writes into its input, which this release does not permit",
        help: "use TensorRT 10.3 or newer, or TensorRT-RTX 1.7",
    },
    Known {
        part: "Failed to parse the ONNX model",
        cause: "the model is not readable",
        help: "check it with `onnx.checker.check_model`, and export it again",
    },
    Known { part: "Target GPU SM", cause: "it does not support this GPU", help: OTHER_GPU },
    Known { part: "builder_resource", cause: "its files for this GPU are missing", help: OTHER_GPU },
    Known {
        part: "cannot open shared object file",
        cause: "a shared library is missing",
        help: "install it or add its folder to `LD_LIBRARY_PATH`; `cubinder doctor` shows what is missing",
    },
    Known {
        part: "undefined symbol",
        cause: "libraries of different releases are mixed",
        help: "remove other releases from `LD_LIBRARY_PATH`, or reinstall TensorRT",
    },
    Known {
        part: "out of memory",
        cause: "not enough memory",
        help: "free memory of the machine or the GPU, or reduce the shapes",
    },
    Known {
        part: "OutOfMemory",
        cause: "not enough memory",
        help: "free memory of the machine or the GPU, or reduce the shapes",
    },
    Known { part: "CUDA", cause: "it cannot use a GPU", help: OTHER_GPU },
];

const VERBOSE: &str = "run the command again with `--verbose` for TensorRT's whole log";

/// Maximum number of TensorRT's messages shown.
const SHOWN: usize = 4;

struct Explanation {
    cause: String,
    help: String,
    /// Message that it explains.
    text: Option<String>,
}

impl Explanation {
    fn new(cause: impl Into<String>, help: impl Into<String>) -> Explanation {
        Explanation { cause: cause.into(), help: help.into(), text: None }
    }
}

pub(crate) fn explain(kind: Kind, request: &Request, failure: &Failure) -> NotBuilt {
    let errors = failure.log.iter().filter(|line| line.is_error).map(|line| line.text.as_str());
    // At other stages the script's text is not TensorRT's.
    let is_reported = matches!(failure.stage.as_str(), "" | "parse" | "builder" | "import");
    let texts = failure.texts.iter().map(String::as_str).filter(|_| is_reported);
    // Errors of the plugin precede those that follow from them.
    let mut words: Vec<&str> = Vec::new();
    for text in errors.chain(texts).filter(|text| !is_noise(kind, text)) {
        if !words.iter().any(|known| known.contains(text)) {
            words.push(text);
        }
    }
    let Explanation { cause, help, text } = own(request, &words)
        .or_else(|| staged(failure))
        .or_else(|| known(kind, failure, &words))
        .unwrap_or_else(|| otherwise(failure, &words));
    let others = words.iter().copied().filter(|word| text.as_deref() != Some(*word));
    let words = text
        .as_deref()
        .into_iter()
        .chain(others)
        .filter(|word| !cause.contains(word) && !word.ends_with(&cause));
    NotBuilt {
        product: kind.name(),
        model: request.model.display().to_string(),
        words: words.take(SHOWN).map(|text| text.replace('\n', " ")).collect(),
        cause: cause.clone(),
        help,
    }
}

/// Returns whether a line explains nothing: it frames others, or TensorRT-RTX, which needs no GPU, found none.
fn is_noise(kind: Kind, text: &str) -> bool {
    if kind == Kind::Rtx && text.contains("catchCudaError") {
        return true;
    }
    let parts = ["--- Begin node ---", "--- End node ---", "While parsing node number"];
    parts.iter().any(|part| text.contains(part))
}

/// Returns the message of a Cubinder plugin.
fn own(request: &Request, words: &[&str]) -> Option<Explanation> {
    let text = words.iter().find_map(|text| text.split_once("cubinder: "))?.1;
    let model = request.model.display();
    let help = format!(
        "change the node or the plugin; `cubinder onnx shapes {model} --plugins LIBRARY` evaluates it without TensorRT"
    );
    Some(Explanation::new(text, help))
}

fn staged(failure: &Failure) -> Option<Explanation> {
    let text = |index: usize| failure.texts.get(index).map_or("", String::as_str);
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

/// Returns the number in TensorRT's name of a GPU: `SM89`.
fn gpu_number(name: &str) -> Option<u32> {
    name.strip_prefix("SM")?.parse().ok()
}

fn known(kind: Kind, failure: &Failure, words: &[&str]) -> Option<Explanation> {
    let lines = failure.log.iter().map(|line| line.text.as_str()).filter(|text| !is_noise(kind, text));
    let all: Vec<&str> = words.iter().copied().chain(lines).collect();
    // A crash has its own explanation, unless TensorRT named an error before.
    if words.is_empty() && failure.status.signal().is_some() {
        return None;
    }
    let matching =
        |known: &Known| all.iter().find(|text| text.contains(known.part)).map(|text| (*text).to_owned());
    let (known, text) = KNOWN.iter().find_map(|known| Some((known, matching(known)?)))?;
    Some(Explanation { text: Some(text), ..Explanation::new(known.cause, known.help) })
}

fn otherwise(failure: &Failure, words: &[&str]) -> Explanation {
    let last = || failure.log.iter().map(|line| line.text.trim()).rfind(|text| !text.is_empty());
    match (failure.stage.as_str(), failure.status.signal()) {
        ("plugin", _) => Explanation::new(
            format!("it rejects the library `{}`", failure.texts.first().map_or("", String::as_str)),
            "compile it again with this version of `cubinder`, and check it with `cubinder inspect`",
        ),
        ("import", _) => Explanation::new(
            "its Python module cannot be imported",
            "reinstall it, for example `pip install --force-reinstall tensorrt_rtx==1.7.1.116`; `cubinder doctor` checks it",
        ),
        (_, Some(signal)) => {
            let help = match signal {
                9 => "the system probably ended it because of memory: free memory, or reduce the shapes",
                _ => "check the installation with `cubinder doctor`, or choose another one with `--with`",
            };
            let last = last().map_or_else(String::new, |last| format!(": {last}"));
            Explanation::new(format!("{}{last}", ending(failure.status)), help)
        }
        _ => {
            let first = words.first().copied().or_else(last).map(|text| text.replace('\n', " "));
            let ended = || {
                if failure.status.success() { "it wrote no plan".to_owned() } else { ending(failure.status) }
            };
            Explanation::new(first.unwrap_or_else(ended), VERBOSE)
        }
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
