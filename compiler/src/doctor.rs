//! Checks what Cubinder uses on this machine. Changes nothing.

use std::path::{Path, PathBuf};

use cubinder_gpu::{DeviceInfo, Driver, NoDriver};
use cubinder_nvrtc::cache::Cache;
use cubinder_nvrtc::nvrtc::{Session, Settings};
use cubinder_nvrtc::toolkit::{Overrides, Toolkit, drivers};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::reported_path::ReportedPath;
use cubinder_tensorrt::{Client, Installation, Kind, Search};
use rustix::fs::{Access, access};
use serde::Serialize;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Present and usable.
    Ok,
    /// Unusable, or required and missing.
    Problem,
    /// An optional part is missing.
    NotFound,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Subject: `NVRTC`.
    pub subject: &'static str,
    /// Result.
    pub status: Status,
    /// Release, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// File or folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<ReportedPath>,
    /// What was found, or why nothing was.
    pub found: Vec<String>,
    /// Command or change that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Check {
    fn new(subject: &'static str, status: Status) -> Check {
        Check { subject, status, version: None, path: None, found: Vec::new(), fix: None }
    }

    fn at(self, path: &Path) -> Check {
        Check { path: Some(ReportedPath::from(path)), ..self }
    }

    fn found(mut self, text: impl Into<String>) -> Check {
        self.found.push(text.into());
        self
    }

    fn fix(self, fix: impl Into<String>) -> Check {
        Check { fix: Some(fix.into()), ..self }
    }

    fn from_error(subject: &'static str, status: Status, error: &Diagnostic) -> Check {
        let found = std::iter::once(&error.message).chain(&error.notes).cloned().collect();
        Check { found, fix: error.help.clone(), ..Check::new(subject, status) }
    }

    fn problem(mut self, text: impl Into<String>, fix: impl Into<String>) -> Check {
        self.status = Status::Problem;
        self.found(text).fix(fix)
    }
}

/// Checks everything. `runtime_library` is what `cubinder compile` would use.
#[must_use]
pub fn checks(
    program: Option<&Path>,
    runtime_library: Result<PathBuf, Diagnostic>,
    overrides: &Overrides,
    search: &Search,
) -> Vec<Check> {
    let mut checks = vec![of_program(program), of_runtime_library(runtime_library)];
    let (compiler, release) = of_compiler(overrides);
    checks.extend(compiler);
    match Client::new() {
        Ok(client) => {
            for check in Kind::ALL.into_iter().flat_map(|kind| of_tensorrt(kind, search, &client)) {
                // Reports a broken Python once for both.
                if check.status != Status::Problem || checks.iter().all(|known| known.found != check.found) {
                    checks.push(check);
                }
            }
        }
        Err(error) => checks.push(Check::from_error("temporary files", Status::Problem, &error)),
    }
    checks.extend(of_driver(release));
    checks.push(of_cache(overrides.cache.as_deref()));
    checks
}

fn of_program(program: Option<&Path>) -> Check {
    let check =
        Check { version: Some(env!("CARGO_PKG_VERSION").to_owned()), ..Check::new("program", Status::Ok) };
    match program {
        Some(program) => check.at(program),
        None => check,
    }
}

fn of_runtime_library(library: Result<PathBuf, Diagnostic>) -> Check {
    const SUBJECT: &str = "runtime library";
    let path = match library {
        Ok(path) => path,
        Err(error) => return Check::from_error(SUBJECT, Status::Problem, &error),
    };
    match cubinder_library::read(&path) {
        Ok(_) => Check::new(SUBJECT, Status::Ok).at(&path),
        Err(error) => Check::from_error(SUBJECT, Status::Problem, &error.into()).at(&path),
    }
}

/// Also returns NVRTC's release.
fn of_compiler(overrides: &Overrides) -> (Vec<Check>, Option<drivers::Release>) {
    const NVRTC: &str = "NVRTC";
    const HEADERS: &str = "CUDA headers";
    let toolkit = match Toolkit::locate(overrides) {
        Ok(toolkit) => toolkit,
        Err(error) => {
            let headers = Check::new(HEADERS, Status::NotFound).found("found with NVRTC");
            return (vec![Check::from_error(NVRTC, Status::Problem, &error), headers], None);
        }
    };
    let loaded = || {
        let session = Session::new(toolkit.clone(), Settings::default(), Cache::disabled())?;
        Ok(session.in_processes_of(overrides.workers.clone()).loaded_release()?)
    };
    let (nvrtc, release) = match loaded() {
        Ok(release) => {
            let version = Some(format!("{}.{}", release.0, release.1));
            (Check { version, ..Check::new(NVRTC, Status::Ok) }, Some(release))
        }
        Err::<_, Vec<Diagnostic>>(errors) => {
            let error = errors.first().cloned().unwrap_or_else(|| Diagnostic::error("cannot use NVRTC"));
            (Check::from_error(NVRTC, Status::Problem, &error), None)
        }
    };
    let headers =
        match (&toolkit.without_headers, release.and_then(|release| toolkit.doubt_of_headers(release))) {
            (Some(why), _) => Check::from_error(HEADERS, Status::NotFound, why),
            (None, Some(doubt)) => Check::from_error(HEADERS, Status::Problem, &doubt),
            (None, None) => {
                let version =
                    toolkit.release_of_headers().map(|(_, (major, minor))| format!("{major}.{minor}"));
                Check { version, ..Check::new(HEADERS, Status::Ok) }
            }
        };
    let headers = match toolkit.include.first() {
        Some(folder) => headers.at(folder),
        None => headers,
    };
    (vec![nvrtc.at(&toolkit.nvrtc), headers], release)
}

fn of_tensorrt(kind: Kind, search: &Search, client: &Client) -> Vec<Check> {
    match search.of_kinds(&[kind], client) {
        Ok((found, searched)) if found.is_empty() => {
            vec![Check { found: searched, ..Check::new(kind.name(), Status::NotFound) }.fix(kind.install())]
        }
        Ok((found, _)) => found.iter().map(|installation| of_installation(installation, client)).collect(),
        Err(errors) => {
            errors.iter().map(|error| Check::from_error(kind.name(), Status::Problem, error)).collect()
        }
    }
}

fn of_installation(installation: &Installation, client: &Client) -> Check {
    let version = installation.version.as_ref().map(ToString::to_string);
    let check =
        Check { version, ..Check::new(installation.kind.name(), Status::Ok) }.at(installation.selector());
    let check = match installation.module() {
        Some(module) => check.found(format!("Python module `{module}`")),
        None => check,
    };
    if let Some(why) = client.import_error(installation) {
        let fix = "reinstall it in this Python: `pip install --force-reinstall tensorrt_rtx==1.7.1.116`";
        let fix = if installation.kind == Kind::Rtx { fix } else { "reinstall it in this Python" };
        return check.problem(format!("cannot be imported: {why}"), fix);
    }
    let request = cubinder_tensorrt::Request { plugins: vec![PathBuf::new()], ..Default::default() };
    if let Some(error) = request.check(installation).err().and_then(|errors| errors.into_iter().next()) {
        return check.problem(error.notes.join("; "), error.help.unwrap_or_default());
    }
    match installation.missing_link() {
        Some(missing) => {
            let what = format!(
                "the link `{}` is missing: the ONNX parser ends Python (SIGABRT) if a model has plugins; `cubinder build` adds it for its own process",
                missing.link.display()
            );
            let target = missing.target.file_name().unwrap_or_default().to_string_lossy();
            check.problem(what, format!("ln -s {target} '{}'", missing.link.display()))
        }
        None => check,
    }
}

fn of_driver(nvrtc: Option<drivers::Release>) -> Vec<Check> {
    const DRIVER: &str = "CUDA driver";
    const GPU: &str = "GPU";
    const INSTALL: &str = "install NVIDIA's driver 580 or newer; only running engines, `cubinder test` and `cubinder tune` need it";
    let absent = |subject, error: &NoDriver, fix: &str| {
        let status = if error.is_absence() { Status::NotFound } else { Status::Problem };
        Check::new(subject, status).found(error.to_string()).fix(fix)
    };
    let driver = match Driver::load() {
        Ok(driver) => driver,
        Err(error) => return vec![absent(DRIVER, &error, INSTALL)],
    };
    let devices = DeviceInfo::query_all(driver);
    let cuda = driver.version().unwrap_or_default();
    let version = Some(format!("CUDA {}.{}", cuda / 1000, cuda % 1000 / 10));
    let check = Check { version, ..Check::new(DRIVER, Status::Ok) };
    let old = nvrtc.filter(|(major, _)| cuda / 1000 < *major);
    let check = match old.and_then(|release| Some((release, drivers::oldest_for_cubins(release)?))) {
        Some(((major, minor), oldest)) => check.problem(
            format!("code from NVRTC {major}.{minor} needs driver {oldest} or newer"),
            format!("update the driver, or use NVRTC {} with `CUBINDER_NVRTC`", cuda / 1000),
        ),
        None => check,
    };
    let gpus = match devices {
        Ok(devices) => devices.iter().map(of_device).collect(),
        Err(error @ NoDriver::NoDevice { .. }) => {
            vec![absent(GPU, &error, "make a GPU visible, for example with `CUDA_VISIBLE_DEVICES=0`")]
        }
        Err(error) => vec![absent(GPU, &error, "check the GPU with `nvidia-smi`")],
    };
    std::iter::once(check).chain(gpus).collect()
}

fn of_device(device: &DeviceInfo) -> Check {
    let capability = device.capability;
    Check::new("GPU", Status::Ok).found(format!(
        "{}, compute capability {capability} (`--target sm_{}{}`)",
        device.name, capability.major, capability.minor
    ))
}

fn of_cache(folder: Option<&Path>) -> Check {
    const FIX: &str = "set `CUBINDER_CACHE` to a writable folder; without a cache, each compile is complete";
    let check = Check::new("cache", Status::Ok);
    let Some(folder) = folder else {
        return Check { status: Status::NotFound, ..check }.found("`HOME` is not set").fix(FIX);
    };
    let check = check.at(folder);
    // The first compile creates the folder.
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let is_writable = existing.is_dir() && access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    match is_writable {
        true => check,
        false => check.problem(format!("cannot write to `{}`", existing.display()), FIX),
    }
}
