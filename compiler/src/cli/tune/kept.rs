//! The file that keeps what was measured.

use std::path::{Path, PathBuf};

use cubinder_bundle::fit::ComputeCapability;
use cubinder_compiler::config;
use cubinder_compiler::diagnostic::Diagnostic;
use cubinder_compiler::eval::cases::Cases;
use cubinder_compiler::project;
use cubinder_compiler::tuning::{self, Device, Point, Tuning};

use super::Arguments;
use crate::cli::gpu::protocol::Gpu;

/// The folder of such files, beside `cubinder.toml` or a manifest.
const FOLDER: &str = "tuning";

/// Where measurements go, and what is there already.
pub(super) struct Kept {
    path: PathBuf,
    device: Device,
    known: Option<Tuning>,
    /// Whether all cases are measured: then no other point of the plugin stays.
    is_whole: bool,
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
        let path = path(arguments, cases, &device);
        let known = tuning::known(&path, &device)?;
        Ok(Some(Kept { path, device, known, is_whole: arguments.case.is_none() }))
    }

    /// Writes the points into it; what was done, and where.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(super) fn write(self, points: Vec<Point>) -> Result<Written, Diagnostic> {
        let count = points.len();
        let merged = tuning::merged(self.known, Tuning { device: self.device, points }, self.is_whole);
        tuning::save(&self.path, &merged)?;
        let others = merged.points.len().saturating_sub(count);
        Ok(Written { path: config::shown(&self.path), points: count, others })
    }
}

/// What was written.
pub(super) struct Written {
    pub(super) path: PathBuf,
    /// How many points are new.
    pub(super) points: usize,
    /// How many others are there.
    pub(super) others: usize,
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
fn path(arguments: &Arguments, cases: &Cases, device: &Device) -> PathBuf {
    match &arguments.out {
        Some(out) if out.extension().is_some_and(|extension| extension == "toml") => out.clone(),
        Some(out) => out.join(tuning::file_name(device)),
        None => home(arguments, cases).join(FOLDER).join(tuning::file_name(device)),
    }
}

/// The folder of the nearest `cubinder.toml` above the manifest; where there is none that of the manifest; and where the cases name none that
/// is there, their own.
fn home(arguments: &Arguments, cases: &Cases) -> PathBuf {
    let folder = |path: &Path| path.parent().map(Path::to_path_buf).unwrap_or_default();
    let manifest = Some(&cases.subject).filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let Some(manifest) = manifest.filter(|path| path.is_file()) else { return folder(&arguments.file) };
    let here = std::env::current_dir().unwrap_or_default();
    let config = project::config_above(&config::shown(manifest), &here);
    config.map_or_else(|| folder(manifest), |config| folder(&config))
}
