use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cubinder_model::fit::ComputeCapability;
use cubinder_source::diagnostic::Diagnostic;

use crate::errors::{NoSuchOption, RejectsPlugins};
use crate::installation::{Installation, Kind, Route};
use crate::python::{BUILDER, Client};

/// Shapes or values of a network input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRange {
    /// Name.
    pub name: String,
    /// Minimum, optimum and maximum, of equal length.
    pub extents: [Vec<i64>; 3],
}

/// A build.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// ONNX model.
    pub model: PathBuf,
    /// Existing file to overwrite with the plan.
    pub plan: PathBuf,
    /// Plugin libraries to load, in order.
    pub plugins: Vec<PathBuf>,
    /// Libraries to put into the plan.
    pub serialize: Vec<PathBuf>,
    /// Shapes of dynamic inputs.
    pub shapes: Vec<InputRange>,
    /// Values of inputs that determine shapes.
    pub values: Vec<InputRange>,
    /// GPUs; empty: the default of TensorRT-RTX, or the GPU of this machine.
    pub gpus: Vec<ComputeCapability>,
    /// Types for networks that are not strongly typed, as options of `trtexec`: `--fp16`.
    pub precisions: Vec<&'static str>,
    /// Timing cache to read and write.
    pub timing_cache: Option<PathBuf>,
    /// Whether outputs share memory with inputs.
    pub aliased: bool,
    /// Whether to log everything.
    pub verbose: bool,
}

/// First releases with `IPluginV3` plugins in ONNX models.
const FIRST_RTX: (u32, u32) = (1, 7);
const FIRST_FULL: (u32, u32) = (10, 0);

impl Request {
    /// Reports every unsupported release and option.
    pub fn check(&self, installation: &Installation) -> Result<(), Vec<Diagnostic>> {
        let mut errors = Vec::new();
        let (product, is_rtx) = (installation.kind.name(), installation.kind == Kind::Rtx);
        let first = if is_rtx { FIRST_RTX } else { FIRST_FULL };
        let old = installation.version.as_ref().filter(|version| version.release() < first);
        if let Some(version) = old.filter(|_| !self.plugins.is_empty()) {
            let found = format!("{product} {version}");
            let (why, help) = match is_rtx {
                true => (
                    "the ONNX parser of TensorRT-RTX before 1.7 rejects all plugin nodes",
                    "install TensorRT-RTX 1.7: `pip install tensorrt_rtx==1.7.1.116`; or choose another installation with `--with`",
                ),
                false => (
                    "TensorRT before 10.0 lacks the plugin interface `IPluginV3`",
                    "install TensorRT 10.15 or newer, or choose another installation with `--with`",
                ),
            };
            errors.push(RejectsPlugins { found, why, help }.into());
        }
        let mut reject = |option, why, help| errors.push(NoSuchOption { option, product, why, help }.into());
        if !is_rtx && !self.gpus.is_empty() {
            let help = "remove it and build on a machine with that GPU, or use TensorRT-RTX: `--with rtx`";
            reject("--gpu", "TensorRT builds for the GPU of this machine", help);
        }
        for precision in self.precisions.iter().filter(|_| is_rtx) {
            let help = "remove the option, and convert the model's tensors to that type";
            reject(precision, "its networks are strongly typed: the model determines the types", help);
        }
        if is_rtx && self.timing_cache.is_some() {
            reject("--timing-cache", "it does not measure kernels when it builds", "remove the option");
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    pub(crate) fn command(
        &self,
        installation: &Installation,
        client: &Client,
    ) -> Result<Command, Diagnostic> {
        let mut command = match &installation.route {
            Route::Program(program) => self.of_program(program, installation.kind),
            Route::Python { interpreter, module } => {
                self.of_python(client.call(interpreter, BUILDER, "build"), module)
            }
        };
        set_library_path(&mut command, installation, client)?;
        command.stdin(Stdio::null());
        Ok(command)
    }

    fn of_python(&self, mut command: Command, module: &str) -> Command {
        let mut option = |name: &str, value: &OsStr| {
            command.arg(name).arg(value);
        };
        option("--module", module.as_ref());
        option("--onnx", self.model.as_ref());
        option("--save", self.plan.as_ref());
        self.plugins.iter().for_each(|path| option("--plugin", path.as_ref()));
        self.serialize.iter().for_each(|path| option("--serialize", path.as_ref()));
        self.shapes.iter().for_each(|range| option("--shape", range.joined().as_ref()));
        self.values.iter().for_each(|range| option("--values", range.joined().as_ref()));
        self.gpus.iter().for_each(|gpu| option("--gpu", format!("SM{}{}", gpu.major, gpu.minor).as_ref()));
        let flags = self.precisions.iter().map(|precision| precision.trim_start_matches('-').to_uppercase());
        flags.for_each(|flag| option("--flag", flag.as_ref()));
        self.timing_cache.iter().for_each(|path| option("--timing-cache", path.as_ref()));
        command.args(self.aliased.then_some("--aliased")).args(self.verbose.then_some("--verbose"));
        command
    }

    fn of_program(&self, program: &Path, kind: Kind) -> Command {
        let mut command = Command::new(program);
        let mut option = |name: &str, value: &OsStr| {
            let mut argument = OsString::from(format!("{name}="));
            argument.push(value);
            command.arg(argument);
        };
        option("--onnx", self.model.as_ref());
        option("--saveEngine", self.plan.as_ref());
        self.plugins.iter().for_each(|path| option("--dynamicPlugins", path.as_ref()));
        self.serialize.iter().for_each(|path| option("--setPluginsToSerialize", path.as_ref()));
        for (index, name) in ["--minShapes", "--optShapes", "--maxShapes"].into_iter().enumerate() {
            let ranges = self.shapes.iter().chain(&self.values);
            let ranges: Vec<String> =
                ranges.map(|range| format!("{}:{}", range.name, extents(&range.extents[index]))).collect();
            if !ranges.is_empty() {
                option(name, ranges.join(",").as_ref());
            }
        }
        let gpus: Vec<String> = self.gpus.iter().map(|gpu| format!("{}{}", gpu.major, gpu.minor)).collect();
        if kind == Kind::Rtx && !gpus.is_empty() {
            option("--computeCapabilities", gpus.join(",").as_ref());
        }
        self.timing_cache.iter().for_each(|path| option("--timingCacheFile", path.as_ref()));
        command.args(&self.precisions);
        let embed: &[&str] =
            if self.serialize.is_empty() { &[] } else { &["--versionCompatible", "--excludeLeanRuntime"] };
        command.args(embed).args(self.aliased.then_some("--preview=+aliasedPluginIO1003"));
        command.arg("--skipInference").args(self.verbose.then_some("--verbose"));
        command
    }
}

impl InputRange {
    fn joined(&self) -> String {
        format!("{}={}", self.name, self.extents.each_ref().map(|part| extents(part)).join(":"))
    }
}

fn extents(shape: &[i64]) -> String {
    shape.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// Adds folders of TensorRT's libraries that the loader misses.
pub(crate) fn set_library_path(
    command: &mut Command,
    installation: &Installation,
    client: &Client,
) -> Result<(), Diagnostic> {
    let link = installation.missing_link().map(|missing| client.link(&missing)).transpose()?;
    // Python packages load their libraries by path.
    let own = installation.libraries.clone().filter(|_| matches!(installation.route, Route::Program(_)));
    let folders: Vec<PathBuf> = link.into_iter().chain(own).collect();
    if !folders.is_empty() {
        command.env("LD_LIBRARY_PATH", library_path(&folders));
    }
    Ok(())
}

fn library_path(folders: &[PathBuf]) -> OsString {
    let inherited = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let inherited: Vec<PathBuf> =
        std::env::split_paths(&inherited).filter(|path| !path.as_os_str().is_empty()).collect();
    // A folder whose name contains `:` cannot be on the path.
    std::env::join_paths(folders.iter().chain(&inherited)).unwrap_or_default()
}

pub(crate) fn for_shell(command: &Command, draft: &Path, plan: &Path) -> String {
    let text = |text: &OsStr| {
        let text = text.to_string_lossy().replace(&*draft.to_string_lossy(), &plan.to_string_lossy());
        quoted(&text)
    };
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), text(value?))));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(text);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=+:,./@%".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
