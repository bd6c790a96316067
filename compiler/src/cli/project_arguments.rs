use std::path::PathBuf;
use std::str::FromStr as _;

use clap::Args;
use cubinder_compiler::project::{Project, ProjectOptions};
use cubinder_compiler::target_choice::{self, TargetChoice};
use cubinder_manifest::config::Endpoint;
use cubinder_manifest::manifest::Route;
use cubinder_manifest::manifest::toml_reader::is_identifier;
use cubinder_model::Target;
use cubinder_nvrtc::toolkit::Overrides;
use cubinder_source::diagnostic::Diagnostic;

use super::output::current_folder;
use super::{nvrtc, suggestions};

/// What is compiled, and how.
#[derive(Args)]
pub(super) struct ProjectArguments {
    /// Manifests to compile [default: those in cubinder.toml]
    pub(super) manifests: Vec<PathBuf>,
    /// The cubinder.toml to use
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Override targets in manifests (`targets`, `code`) and cubinder.toml: sm_89 for machine code, compute_80 for PTX, native for the GPUs of this machine,
    /// all-major for each major version that NVRTC supports and PTX for the highest; repeat or separate with commas
    #[arg(long = "target", value_name = "TARGET", value_delimiter = ',', value_parser = suggestions::target_choice(TargetChoice::from_str), hide_possible_values = true)]
    targets: Vec<TargetChoice>,
    /// Compile for a subset of the targets in manifests and cubinder.toml, for a quick build or a small deployment; if none are
    /// configured, use --target
    #[arg(long = "arch", value_name = "TARGET", value_delimiter = ',', conflicts_with = "targets", value_parser = suggestions::target(Target::from_str), hide_possible_values = true)]
    archs: Vec<Target>,
    /// Override the route in manifests: a plugin library (`plugin`) or TensorRT (`native`: experimental, full TensorRT only) launches the kernels
    #[arg(long, value_name = "ROUTE", value_parser = route)]
    route: Option<Route>,
    /// Include folder, searched before those in manifests and cubinder.toml
    #[arg(long = "include", short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Macro to define: -D FAST, -D UNROLL=4
    #[arg(long = "define", short = 'D', value_name = "NAME[=VALUE]", value_parser = macro_definition)]
    defines: Vec<String>,
    /// NVRTC option, passed after those in cubinder.toml and manifests
    #[arg(long = "option", value_name = "OPTION", allow_hyphen_values = true)]
    options: Vec<String>,
    /// Compile line information into the code, for profilers; overrides manifests and cubinder.toml
    #[arg(long, value_name = "KIND", value_parser = ["line"])]
    debug: Option<String>,
    /// NVRTC library or its folder [default: CUBINDER_NVRTC, else CUDA_HOME, else NVIDIA's Python packages]
    #[arg(long, value_name = "PATH")]
    nvrtc: Option<PathBuf>,
}

impl ProjectArguments {
    pub(super) fn overrides(&self) -> Overrides {
        nvrtc::overrides(self.nvrtc.clone())
    }

    pub(super) fn options(&self, overrides: &Overrides) -> Result<ProjectOptions, Vec<Diagnostic>> {
        let definitions = self.defines.iter().map(|definition| format!("-D{definition}"));
        Ok(ProjectOptions {
            manifests: self.manifests.clone(),
            config: self.config.clone(),
            targets: target_choice::resolve(&self.targets, overrides)?,
            only: self.archs.clone(),
            include: self.include.clone(),
            options: definitions.chain(self.options.iter().cloned()).collect(),
            line_information: self.debug.is_some(),
            route: self.route,
            ..ProjectOptions::default()
        })
    }
}

fn macro_definition(text: &str) -> Result<String, String> {
    let name = text.split(['=', '(']).next().unwrap_or_default();
    match is_identifier(name) {
        true => Ok(text.to_owned()),
        false => Err("expected `NAME` or `NAME=VALUE`".to_owned()),
    }
}

pub(super) fn route(text: &str) -> Result<Route, String> {
    Route::from_name(text).ok_or_else(|| "expected `plugin` or `native`".to_owned())
}

pub(super) fn open(options: ProjectOptions) -> Result<Project, Vec<Diagnostic>> {
    Ok(one_project(Project::open_around(options, &current_folder()?)?)?)
}

fn one_project(mut projects: Vec<Project>) -> Result<Project, Diagnostic> {
    match (projects.pop(), projects.as_slice()) {
        (Some(only), []) => Ok(only),
        (last, others) => {
            let error = Diagnostic::error("all manifests of a library must belong to one project");
            let notes = others.iter().chain(&last).map(|project| {
                let manifest = project.manifests.first().map(|path| path.display().to_string());
                let manifest = manifest.unwrap_or_default();
                match &project.config {
                    Some(config) => format!("`{manifest}` belongs to `{}`", config.source.path.display()),
                    None => format!("no `cubinder.toml` above `{manifest}`"),
                }
            });
            let error = notes.fold(error, Diagnostic::note);
            Err(error.help("select one with `--config FILE`, or compile each project separately"))
        }
    }
}

/// Parses the shared cache's URL. Messages do not repeat it: it could contain a password.
pub(super) fn remote_cache(argument: Option<&str>) -> Result<Option<Endpoint>, Diagnostic> {
    const VARIABLE: &str = "CUBINDER_REMOTE_CACHE";
    if let Some(url) = argument {
        return endpoint("--remote-cache", url).map(Some);
    }
    match std::env::var_os(VARIABLE).filter(|url| !url.is_empty()).map(std::ffi::OsString::into_string) {
        None => Ok(None),
        Some(Ok(url)) => endpoint(VARIABLE, &url).map(Some),
        Some(Err(_)) => Err(Diagnostic::error(format!("invalid URL in `{VARIABLE}`: it is not UTF-8"))),
    }
}

pub(super) fn endpoint(source: &str, url: &str) -> Result<Endpoint, Diagnostic> {
    url.parse().map_err(|expected| Diagnostic::error(format!("invalid URL in `{source}`: {expected}")))
}
