use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cubinder_nvrtc::installation::Installation;
use cubinder_nvrtc::toolkit::{Overrides, Toolkit};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::reported_path::ReportedPath;
use serde_json::{Map, Value, json};

use super::output::{environment_path, print};

/// Print the paths of files that cubinder uses, as `cubinder compile` in the current folder would find them.
///
/// With NAME, prints only that path, for scripts; exits with code 1 if it does not exist:
///   trtexec --loadEngine=model.plan --dynamicPlugins="$(cubinder paths runtime-library)"
///   cmake -Dcubinder_DIR=$(cubinder paths cmake) ...
///
/// Without NAME, missing paths are listed as not found. With --json, a missing path is null, and `missing` contains the reason.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// Path to print
    #[arg(value_enum)]
    name: Option<Name>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Path that `cubinder paths` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Name {
    /// This program
    Program,
    /// The prebuilt libcubinder.so, which runs engines and is the base of plugin libraries
    RuntimeLibrary,
    /// The folder of the CMake package
    Cmake,
    /// The folder with the manifests of the included plugins
    Plugins,
    /// The folder of pages named docs/... in messages
    Documentation,
    /// The NVRTC library
    Nvrtc,
    /// The folders of CUDA headers, one per line
    Include,
    /// The folder of compiled code and fetched packages
    Cache,
}

impl Name {
    fn title(self) -> &'static str {
        match self {
            Name::Program => "program",
            Name::RuntimeLibrary => "runtime library",
            Name::Cmake => "CMake package",
            Name::Plugins => "plugins",
            Name::Documentation => "documentation",
            Name::Nvrtc => "NVRTC",
            Name::Include => "CUDA headers",
            Name::Cache => "cache",
        }
    }

    /// Returns the JSON key, with `_`.
    fn key(self) -> String {
        let name = self.to_possible_value().map(|value| value.get_name().replace('-', "_"));
        name.unwrap_or_default()
    }
}

type Found = Result<Vec<PathBuf>, Diagnostic>;

pub(super) fn run(arguments: &Arguments) -> Result<bool, Vec<Diagnostic>> {
    let mut found = find();
    if let Some(name) = arguments.name {
        found.retain(|(other, _)| *other == name);
        if let [(_, Err(error))] = found.as_slice() {
            return Err(error.clone().into());
        }
    }
    print(&match (arguments.name, found.as_slice()) {
        _ if arguments.json => json_of(&found).to_string() + "\n",
        (Some(_), [(_, Ok(paths))]) => paths.iter().map(|path| format!("{}\n", path.display())).collect(),
        _ => table(&found),
    });
    Ok(true)
}

fn find() -> Vec<(Name, Found)> {
    let installation = Installation::of_this_program();
    let overrides = Overrides::from_env(None);
    let toolkit = Toolkit::locate(&overrides);
    let include = match &toolkit {
        Ok(Toolkit { without_headers: Some(why), .. }) => Err(Diagnostic::clone(why)),
        Ok(toolkit) => Ok(toolkit.include.clone()),
        Err(error) => Err(error.clone()),
    };
    let one = |path: PathBuf| vec![path];
    let unknown = |what: &str| Diagnostic::error(what.to_owned());
    let program = installation.program.clone().map(one);
    let cache = overrides.cache.map(one).ok_or_else(|| {
        unknown("no cache folder")
            .note("neither `CUBINDER_CACHE`, `XDG_CACHE_HOME` nor `HOME` is set; only the first may be a relative path")
    });
    vec![
        (Name::Program, program.ok_or_else(|| unknown("the path of this program is unknown"))),
        (Name::RuntimeLibrary, runtime_library(&installation).map(one)),
        (Name::Cmake, installation.cmake_package().map(one)),
        (Name::Plugins, installation.plugins().map(one)),
        (Name::Documentation, installation.documentation().map(one)),
        (Name::Nvrtc, toolkit.map(|toolkit| one(toolkit.nvrtc))),
        (Name::Include, include),
        (Name::Cache, cache),
    ]
}

pub(super) fn runtime_library(installation: &Installation) -> Result<PathBuf, Diagnostic> {
    match environment_path("CUBINDER_RUNTIME_LIBRARY") {
        Some(path) if path.is_file() => Ok(path),
        Some(path) => Err(Diagnostic::error(format!(
            "`CUBINDER_RUNTIME_LIBRARY` is `{}`, which is not a file",
            path.display()
        ))
        .help("correct or unset it; if unset, the library is searched beside this program")),
        None => installation.runtime_library(),
    }
}

fn table(found: &[(Name, Found)]) -> String {
    let mut text = String::new();
    for (name, found) in found {
        let mut title = name.title();
        match found {
            Ok(paths) => paths.iter().for_each(|path| {
                text.push_str(&format!("{title:<15}  {}\n", path.display()));
                title = "";
            }),
            Err(error) => text.push_str(&format!("{title:<15}  not found: {}\n", why(error))),
        }
    }
    text
}

fn why(error: &Diagnostic) -> String {
    let parts: Vec<&str> = std::iter::once(&error.message).chain(&error.notes).map(String::as_str).collect();
    parts.join("; ")
}

fn json_of(found: &[(Name, Found)]) -> Value {
    let mut object = Map::new();
    let mut missing = Map::new();
    object.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    for (name, found) in found {
        let value = match found {
            Ok(paths) if *name == Name::Include => {
                json!(paths.iter().map(ReportedPath::from).collect::<Vec<_>>())
            }
            Ok(paths) => json!(paths.first().map(ReportedPath::from)),
            Err(error) => {
                missing.insert(name.key(), why(error).into());
                Value::Null
            }
        };
        object.insert(name.key(), value);
    }
    object.insert("missing".to_owned(), missing.into());
    object.into()
}
