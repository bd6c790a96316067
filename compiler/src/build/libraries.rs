//! A build's plugin libraries, and the code libraries for the plan.

use std::path::{Path, PathBuf};

use cubinder_launch::native::is_native;
use cubinder_library::Mode;
use cubinder_model::container::{self, Container};
use cubinder_model::fit::ComputeCapability;
use cubinder_model::{Bundle, Plugin};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_tensorrt::{Installation, Kind};

use super::errors::{CodeLibrary, EmbedMissing, NativeOnRtx, NoCodeForGpu, NoCodeLibrary};
use super::errors::{NotALibrary, NotCompiledToEmbed, with_help};
use crate::inspect::runs_on;

pub(super) struct Libraries(Vec<Library>);

struct Library {
    path: PathBuf,
    /// Empty for foreign libraries, which only unchecked builds accept.
    plugins: Vec<Plugin>,
    /// Library for the plan.
    code: Option<PathBuf>,
}

impl Libraries {
    pub(super) fn open(
        paths: &[PathBuf],
        embed: bool,
        unchecked: bool,
    ) -> Result<Libraries, Vec<Diagnostic>> {
        let (mut opened, mut errors) = (Vec::new(), Vec::new());
        for path in paths {
            match open(path, embed) {
                Ok(library) => opened.push(library),
                Err(_) if unchecked && path.exists() => {
                    opened.push(Library { path: path.clone(), plugins: Vec::new(), code: None });
                }
                Err(error) => errors.push(with_help(error)),
            }
        }
        if errors.is_empty() { Ok(Libraries(opened)) } else { Err(errors) }
    }

    pub(super) fn with_plugins(&self) -> Vec<PathBuf> {
        self.0.iter().map(|library| library.path.clone()).collect()
    }

    /// Returns absolute paths: the loader searches its path for names without a folder.
    pub(super) fn to_load(&self) -> Vec<PathBuf> {
        let all = self.0.iter().flat_map(|library| std::iter::once(&library.path).chain(&library.code));
        all.map(|path| absolute(path)).collect()
    }

    pub(super) fn to_serialize(&self) -> Vec<PathBuf> {
        self.0.iter().filter_map(|library| library.code.as_deref()).map(absolute).collect()
    }

    pub(super) fn has_aliases(&self) -> bool {
        let mut outputs = self.plugins().flat_map(|(_, plugin)| &plugin.outputs);
        outputs.any(|output| output.alias.is_some())
    }

    fn plugins(&self) -> impl Iterator<Item = (&Library, &Plugin)> {
        self.0.iter().flat_map(|library| library.plugins.iter().map(move |plugin| (library, plugin)))
    }

    pub(super) fn check(&self, installation: &Installation, gpus: &[ComputeCapability]) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        for (library, plugin) in self.plugins() {
            let (file, plugin_name) = (library.path.display().to_string(), plugin.full_name());
            if installation.kind == Kind::Rtx && is_native(plugin) {
                errors.push(NativeOnRtx { file, plugin: plugin_name }.into());
                continue;
            }
            let missing = targets(gpus.iter().filter(|gpu| !runs_on(plugin, **gpu)));
            if !missing.is_empty() {
                let gpus = targets(gpus.iter());
                errors.push(NoCodeForGpu { file, plugin: plugin_name, missing, gpus }.into());
            }
        }
        errors
    }
}

fn targets<'a>(gpus: impl Iterator<Item = &'a ComputeCapability>) -> String {
    gpus.map(|gpu| format!("sm_{}{}", gpu.major, gpu.minor)).collect::<Vec<_>>().join(",")
}

/// Returns the path of the code library beside a library.
pub(super) fn code_library(library: &Path) -> PathBuf {
    let name = library.file_stem().unwrap_or_default().to_string_lossy();
    library.with_file_name(format!("{name}-code.so"))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn open(path: &Path, embed: bool) -> Result<Library, Diagnostic> {
    let file = path.display().to_string();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let code_name = format!("{name}-code.so");
    let (mode, bundle) = read(path)?;
    let plugins = bundle_of(&bundle)
        .map_err(|why| NotALibrary { file: file.clone(), why, help: AGAIN.to_owned() })?
        .plugins;
    let code = match (mode, embed) {
        (Mode::CodeLibrary, _) => {
            let stem = name.strip_suffix("-code").unwrap_or(&name);
            let plugin = path.with_file_name(format!("{stem}.so")).display().to_string();
            return Err(CodeLibrary { file, plugin }.into());
        }
        (Mode::Ops, false) => None,
        (Mode::Ops, true) => return Err(NotCompiledToEmbed { file, name: code_name }.into()),
        (Mode::OpsForLibrary, false) => return Err(EmbedMissing { file, name: code_name }.into()),
        (Mode::OpsForLibrary, true) => {
            let code = code_library(path);
            let unusable = |why: String| NoCodeLibrary { file: file.clone(), name: code_name.clone(), why };
            if !code.is_file() {
                return Err(unusable(format!("`{}` does not exist", code.display())).into());
            }
            match read(&code)? {
                (Mode::CodeLibrary, other) if other == bundle => Some(code),
                _ => return Err(unusable(format!("`{}` is of another compile", code.display())).into()),
            }
        }
    };
    Ok(Library { path: path.to_owned(), plugins, code })
}

const AGAIN: &str = "compile it again with `cubinder compile`";

fn read(path: &Path) -> Result<(Mode, Vec<u8>), Diagnostic> {
    let not_a_library =
        |why: String, help: String| NotALibrary { file: path.display().to_string(), why, help };
    if path.extension().is_some_and(|end| end == "toml") {
        let help = format!("compile it with `cubinder compile {}`, and pass the library", path.display());
        return Err(not_a_library(
            "TensorRT loads libraries (`lib<name>.so`), not manifests".to_owned(),
            help,
        )
        .into());
    }
    let bytes = cubinder_library::read_file(path)?;
    let attached = cubinder_library::read_bytes(path, &bytes)?;
    let attached = attached.ok_or_else(|| {
        let why = "it is the runtime library, which contains no plugins".to_owned();
        not_a_library(why, "pass a library that `cubinder compile` wrote".to_owned())
    })?;
    let range = usize::try_from(attached.range.start).ok().zip(usize::try_from(attached.range.end).ok());
    let bundle = range.and_then(|(start, end)| bytes.get(start..end));
    let bundle =
        bundle.ok_or_else(|| not_a_library("it was changed meanwhile".to_owned(), AGAIN.to_owned()))?;
    Ok((attached.mode, bundle.to_vec()))
}

fn bundle_of(bytes: &[u8]) -> Result<Bundle, String> {
    match container::read(bytes) {
        Ok(container::LocatedContainer { container: Container::Bundle(bundle), .. }) => Ok(bundle),
        Ok(_) => Err("it contains a node".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
