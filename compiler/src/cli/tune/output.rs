use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cubinder_compiler::project::config_above;
use cubinder_gpu::DeviceInfo;
use cubinder_node::cases::Cases;
use cubinder_node::eval::Subject;
use cubinder_node::tuning::{self, Device, Point, ReplacedPoints, Tuning};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::path;

use super::Arguments;
use super::project::{FOLDER, MeasuredProject, Unpacked};
use crate::cli::output::{check_file, check_folder, current_folder};

pub(super) struct Output {
    path: PathBuf,
    device: Device,
    /// The caller of this worker adds the points to its file.
    is_sent: bool,
    /// All cases are measured, so older points are removed.
    is_whole: bool,
    manifest: Option<PathBuf>,
    file: PathBuf,
}

impl Output {
    /// `None` in a dry run. Rejects other files and other GPUs' files.
    pub(super) fn open(
        arguments: &Arguments,
        file: &Path,
        cases: &Cases,
        device: Device,
    ) -> Result<Option<Output>, Vec<Diagnostic>> {
        if arguments.dry_run {
            return Ok(None);
        }
        let (is_whole, file) = (arguments.case.is_none(), file.to_owned());
        if let Some(points) = &arguments.points {
            let path = points.into();
            return Ok(Some(Output { path, device, is_sent: true, is_whole, manifest: None, file }));
        }
        let manifest = manifest(cases);
        let path = path(arguments, &file, manifest.as_deref(), &device)?;
        tuning::read_for_device(&path, &device)?;
        tuning::prepare(&path)?;
        Ok(Some(Output { path, device, is_sent: false, is_whole, manifest, file }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Merges points into the file, which may have changed meanwhile. `None` if the caller does.
    pub(super) fn write(
        self,
        points: Vec<Point>,
        subject: &Subject,
    ) -> Result<Option<Written>, Vec<Diagnostic>> {
        let (path, count) = (self.path.as_path(), points.len());
        let new = Tuning { device: self.device, points };
        if self.is_sent {
            tuning::save(path, &new)?;
            return Ok(None);
        }
        let project = MeasuredProject::open(self.manifest.as_deref(), &self.file);
        let known = tuning::read_for_device(path, &new.device)?;
        let versions = project.as_ref().and_then(|project| project.versions(&subject.plugin.full_name()));
        let replaced = match self.is_whole {
            true => ReplacedPoints::All(versions.as_deref()),
            false => ReplacedPoints::SameNodes(subject),
        };
        let merged = tuning::merged(known.clone(), new, replaced);
        tuning::save(path, &merged)?;
        Ok(Some(Written {
            path: path::shown(path),
            points: count,
            others: merged.points.len().saturating_sub(count),
            gone: gone(known, &merged, &subject.plugin.full_name()),
            unpacked: project.as_ref().and_then(|project| project.unpacked(path)),
            alike: project.map(|project| project.alike(path, &merged)).unwrap_or_default(),
        }))
    }
}

pub(super) fn device(gpu: &DeviceInfo) -> Device {
    let DeviceInfo { name, capability, sms, driver, .. } = gpu.clone();
    Device { name, capability, sms, driver: u32::try_from(driver).ok() }
}

fn gone(known: Option<Tuning>, merged: &Tuning, plugin: &str) -> BTreeSet<String> {
    let is_left = |old: &Point| {
        merged.points.iter().any(|new| (&new.plugin, &new.version) == (&old.plugin, &old.version))
    };
    let known = known.into_iter().flat_map(|known| known.points);
    let gone = known.filter(|old| old.plugin == plugin && !is_left(old));
    gone.map(|old| old.version).collect()
}

pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) points: usize,
    pub(super) others: usize,
    /// Removed versions of the plugin.
    pub(super) gone: BTreeSet<String>,
    pub(super) unpacked: Option<Unpacked>,
    /// Other GPUs' files with the plugin's points that match this GPU.
    pub(super) alike: Vec<(PathBuf, String)>,
}

fn path(
    arguments: &Arguments,
    file: &Path,
    manifest: Option<&Path>,
    device: &Device,
) -> Result<PathBuf, Diagnostic> {
    if let Some(output) = &arguments.output {
        check_file(output)?;
        return Ok(output.clone());
    }
    arguments.out_dir.as_deref().map_or(Ok(()), check_folder)?;
    let folder = arguments.out_dir.clone().unwrap_or_else(|| home(file, manifest).join(FOLDER));
    Ok(folder.join(tuning::file_name(device)))
}

fn manifest(cases: &Cases) -> Option<PathBuf> {
    let subject = &cases.subject;
    let is_manifest = subject.extension().is_some_and(|it| it == "toml") && subject.is_file();
    is_manifest.then(|| path::shown(subject))
}

fn home(file: &Path, manifest: Option<&Path>) -> PathBuf {
    let folder = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
    let Some(manifest) = manifest else { return folder(file) };
    folder(
        &config_above(manifest, &current_folder().unwrap_or_default()).unwrap_or_else(|| manifest.to_owned()),
    )
}
