//! Explains failures of child processes by TensorRT's messages, Python's exceptions, and signals.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use crate::ending::ending;
use crate::installation::Kind;
use crate::log::LogLine;
use crate::process::Ended;

pub(crate) struct Failure {
    pub(crate) stage: String,
    pub(crate) texts: Vec<String>,
    pub(crate) log: Vec<LogLine>,
    pub(crate) status: ExitStatus,
}

impl Failure {
    pub(crate) fn of(ended: Ended) -> Failure {
        let Ended { log, failed, status } = ended;
        let (stage, texts) = failed.unwrap_or_default();
        Failure { stage, texts, log, status }
    }

    /// Parses `stage | texts | log`; `;` separates texts and lines.
    #[cfg(test)]
    pub(crate) fn parse(text: &str, status: i32) -> Failure {
        let list = |part: &str| {
            part.split(';').map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
        };
        let mut parts = text.split('|').map(list);
        let mut part = || -> Vec<String> { parts.next().unwrap_or_default() };
        let (stage, texts, log) = (part().concat(), part(), part());
        let log = log.iter().map(|line| LogLine::of_program(line)).collect();
        Failure { stage, texts, log, status: ExitStatus::from_raw(status) }
    }

    pub(crate) fn text(&self, index: usize) -> &str {
        self.texts.get(index).map_or("", String::as_str)
    }
}

pub(crate) struct Known {
    /// Parts of messages.
    pub(crate) parts: &'static [&'static str],
    pub(crate) cause: &'static str,
    pub(crate) help: &'static str,
}

/// For all tasks.
const COMMON: [Known; 3] = [
    Known {
        parts: &["cannot open shared object file"],
        cause: "a shared library is missing",
        help: "install it or add its folder to `LD_LIBRARY_PATH`; `cubinder doctor` shows what is missing",
    },
    Known {
        parts: &["undefined symbol"],
        cause: "libraries of different releases are mixed",
        help: "remove other releases from `LD_LIBRARY_PATH`, or reinstall TensorRT",
    },
    Known {
        parts: &["out of memory", "OutOfMemory"],
        cause: "not enough memory",
        help: "free memory of the machine or the GPU, or reduce the shapes",
    },
];

const VERBOSE: &str = "run the command again with `--verbose` for TensorRT's whole log";

/// Maximum messages of TensorRT shown.
const SHOWN: usize = 4;

pub(crate) struct Explanation {
    pub(crate) cause: String,
    pub(crate) help: String,
    /// The explained message comes first.
    pub(crate) words: Vec<String>,
}

impl Explanation {
    pub(crate) fn new(cause: impl Into<String>, help: impl Into<String>) -> Explanation {
        Explanation { cause: cause.into(), help: help.into(), words: Vec::new() }
    }
}

pub(crate) struct Task {
    /// The first match counts, before [`COMMON`].
    pub(crate) known: &'static [Known],
    /// Meaning of other CUDA messages.
    pub(crate) cuda: Known,
    /// Whether TensorRT-RTX needs a GPU for it.
    pub(crate) needs_gpu: bool,
    pub(crate) staged: fn(&Failure) -> Option<Explanation>,
    pub(crate) own_help: String,
    /// Cause if the process succeeds without a result.
    pub(crate) no_result: &'static str,
}

impl Task {
    pub(crate) fn explain(&self, kind: Kind, failure: &Failure) -> Explanation {
        let errors = failure.log.iter().filter(|line| line.is_error).map(|line| line.text.as_str());
        // At other stages the text is not TensorRT's.
        let is_reported = matches!(failure.stage.as_str(), "" | "parse" | "builder" | "import");
        let texts = failure.texts.iter().map(String::as_str).filter(|_| is_reported);
        // The plugin's errors precede their consequences.
        let mut words: Vec<&str> = Vec::new();
        for text in errors.chain(texts).filter(|text| !self.is_noise(kind, text)) {
            if !words.iter().any(|known| known.contains(text)) {
                words.push(text);
            }
        }
        let mut found = self
            .own(&words)
            .or_else(|| (self.staged)(failure))
            .or_else(|| self.known(kind, failure, &words))
            .unwrap_or_else(|| self.otherwise(failure, &words));
        words.retain(|word| found.words.iter().all(|known| known != word));
        found.words.extend(words.into_iter().map(str::to_owned));
        found.words.retain(|word| !found.cause.contains(word) && !word.ends_with(&found.cause));
        found.words.truncate(SHOWN);
        found.words.iter_mut().for_each(|word| *word = word.replace('\n', " "));
        found
    }

    fn is_noise(&self, kind: Kind, text: &str) -> bool {
        if kind == Kind::Rtx && !self.needs_gpu && text.contains("catchCudaError") {
            return true;
        }
        let parts = ["--- Begin node ---", "--- End node ---", "While parsing node number"];
        parts.iter().any(|part| text.contains(part))
    }

    fn own(&self, words: &[&str]) -> Option<Explanation> {
        let text = words.iter().find_map(|text| text.split_once("cubinder: "))?.1;
        Some(Explanation::new(text, self.own_help.as_str()))
    }

    fn known(&self, kind: Kind, failure: &Failure, words: &[&str]) -> Option<Explanation> {
        let lines =
            failure.log.iter().map(|line| line.text.as_str()).filter(|text| !self.is_noise(kind, text));
        let all: Vec<&str> = words.iter().copied().chain(lines).collect();
        // Crashes have their own explanation unless TensorRT named an error.
        if words.is_empty() && failure.status.signal().is_some() {
            return None;
        }
        let matching = |part: &&str| all.iter().find(|text| text.contains(part));
        let mut list = self.known.iter().chain(&COMMON).chain([&self.cuda]);
        let (known, text) = list.find_map(|known| Some((known, known.parts.iter().find_map(matching)?)))?;
        Some(Explanation { words: vec![(*text).to_owned()], ..Explanation::new(known.cause, known.help) })
    }

    fn otherwise(&self, failure: &Failure, words: &[&str]) -> Explanation {
        let last = || failure.log.iter().map(|line| line.text.trim()).rfind(|text| !text.is_empty());
        match (failure.stage.as_str(), failure.status.signal()) {
            ("plugin", _) => Explanation::new(
                format!("it rejects the library `{}`", failure.text(0)),
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
                let ended = || match failure.status.success() {
                    true => self.no_result.to_owned(),
                    false => ending(failure.status),
                };
                Explanation::new(first.unwrap_or_else(ended), VERBOSE)
            }
        }
    }
}
