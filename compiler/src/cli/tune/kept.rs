//! The file that keeps what was measured.

use std::path::{Path, PathBuf};

use cubinder_bundle::fit::ComputeCapability;
use cubinder_compiler::config;
use cubinder_compiler::diagnostic::Diagnostic;
use cubinder_compiler::eval::Subject;
use cubinder_compiler::eval::cases::Cases;
use cubinder_compiler::project::{self, Asked, Project};
use cubinder_compiler::tuning::{self, Device, Point, Replaced, Tuning};

use super::Arguments;
use crate::cli::gpu::protocol::Gpu;

/// The folder of such files, beside `cubinder.toml` or a manifest.
const FOLDER: &str = "tuning";

/// Where measurements go.
pub(super) struct Kept {
    path: PathBuf,
    device: Device,
    /// Whether all cases are measured: then no other point of the plugin stays.
    is_whole: bool,
    /// The manifest that is measured, where it is there.
    manifest: Option<PathBuf>,
}

impl Kept {
    /// The file; none where none is to be written.
    ///
    /// # Errors
    /// Where what is there is no such file, or one of another GPU.
    pub(super) fn open(
        arguments: &Arguments,
        cases: &Cases,
        gpu: &Gpu,
    ) -> Result<Option<Kept>, Vec<Diagnostic>> {
        if arguments.dry_run {
            return Ok(None);
        }
        let device = device(gpu).ok_or_else(|| {
            vec![Diagnostic::error(format!("`{}` is no compute capability of a GPU", gpu.capability))]
        })?;
        let manifest = manifest(cases);
        let path = path(arguments, manifest.as_deref(), &device).map_err(|error| vec![error])?;
        tuning::known(&path, &device)?;
        tuning::prepare(&path).map_err(|error| vec![error])?;
        Ok(Some(Kept { path, device, is_whole: arguments.case.is_none(), manifest }))
    }

    /// Writes the points into it; what was done, and where. Measuring took a while: what counts is what the file says by now.
    ///
    /// # Errors
    /// Where it cannot be written, or became none that takes the points.
    pub(super) fn write(self, points: Vec<Point>, subject: &Subject) -> Result<Written, Vec<Diagnostic>> {
        let count = points.len();
        let known = tuning::known(&self.path, &self.device)?;
        let replaced = if self.is_whole { Replaced::All } else { Replaced::SameNodes(subject) };
        let merged = tuning::merged(known, Tuning { device: self.device, points }, replaced);
        tuning::save(&self.path, &merged).map_err(|error| vec![error])?;
        let others = merged.points.len().saturating_sub(count);
        let project = self.manifest.as_deref().and_then(project_of);
        let unnamed = project.as_ref().and_then(|project| unnamed(&self.path, project));
        let alike = project.map(|project| alike(&self.path, &merged, &project)).unwrap_or_default();
        Ok(Written { path: config::shown(&self.path), points: count, others, unnamed, alike })
    }
}

/// What was written.
pub(super) struct Written {
    pub(super) path: PathBuf,
    /// How many points are new.
    pub(super) points: usize,
    /// How many others are there.
    pub(super) others: usize,
    /// The `cubinder.toml` of the project, where it does not name the file.
    pub(super) unnamed: Option<PathBuf>,
    /// The project's files of other GPUs that count as the one at hand, with their names, as far as they are of the plugin.
    pub(super) alike: Vec<(PathBuf, String)>,
}

fn device(gpu: &Gpu) -> Option<Device> {
    let (major, minor) = gpu.capability.split_once('.')?;
    Some(Device {
        name: gpu.name.clone(),
        capability: ComputeCapability { major: major.parse().ok()?, minor: minor.parse().ok()? },
        sms: u32::try_from(gpu.sms).ok()?,
        driver: u32::try_from(gpu.driver_number).ok(),
    })
}

/// The file of `--out`, or that of the GPU in its folder; else in the folder of tuning.
///
/// # Errors
/// Where `--out` is neither.
fn path(arguments: &Arguments, manifest: Option<&Path>, device: &Device) -> Result<PathBuf, Diagnostic> {
    let name = tuning::file_name(device);
    let Some(out) = &arguments.out else { return Ok(home(arguments, manifest).join(FOLDER).join(name)) };
    match out.extension() {
        Some(extension) if extension == "toml" => Ok(out.clone()),
        _ if out.is_dir() => Ok(out.join(name)),
        None if !out.exists() => Ok(out.join(name)),
        _ => {
            let shown = out.display();
            let error = format!("`{shown}` is no folder, and files of tuning are called `.toml`");
            Err(Diagnostic::error(error).help(format!("`--out {}`", out.with_extension("toml").display())))
        }
    }
}

/// The manifest of the cases, where it is one and is there.
fn manifest(cases: &Cases) -> Option<PathBuf> {
    let subject = &cases.subject;
    let is_manifest = subject.extension().is_some_and(|it| it == "toml") && subject.is_file();
    is_manifest.then(|| config::shown(subject))
}

/// The folder of the nearest `cubinder.toml` above the manifest; where there is none that of the manifest; and without a manifest that of the
/// cases.
fn home(arguments: &Arguments, manifest: Option<&Path>) -> PathBuf {
    let folder = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
    let Some(manifest) = manifest else { return folder(&arguments.file) };
    folder(&project::config_above(manifest, &here()).unwrap_or_else(|| manifest.to_owned()))
}

fn project_of(manifest: &Path) -> Option<Project> {
    let asked = Asked { manifests: vec![manifest.to_owned()], is_measured: true, ..Asked::default() };
    Project::open_around(asked, &here()).ok()?.pop()
}

/// The `cubinder.toml` of the project, where it does not name the file.
fn unnamed(path: &Path, project: &Project) -> Option<PathBuf> {
    let file = path.canonicalize().ok()?;
    let is_named = project.tuning.iter().any(|named| named.canonicalize().is_ok_and(|named| named == file));
    project.config.as_ref().filter(|_| !is_named).map(|config| config.source.path.clone())
}

/// The project's files of other GPUs whose points mix with those of the file.
fn alike(path: &Path, own: &Tuning, project: &Project) -> Vec<(PathBuf, String)> {
    let is_of_plugin = |point: &Point| own.points.iter().any(|known| known.plugin == point.plugin);
    let (files, _) = project.read_tuning();
    let files = files.into_iter().filter(|file| {
        let device = &file.tuning.device;
        let is_other = device.is_alike(&own.device) && device.name != own.device.name;
        is_other && file.source.path != path && file.tuning.points.iter().any(is_of_plugin)
    });
    files.map(|file| (config::shown(&file.source.path), file.tuning.device.name)).collect()
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}
