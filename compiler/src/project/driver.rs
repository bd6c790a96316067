//! The oldest driver that a manifest names, held against what is compiled.

use cubinder_manifest::manifest::{DriverVersion, Located, Route};
use cubinder_manifest::resolve::Resolved;
use cubinder_model::TargetKind;
use cubinder_nvrtc::toolkit::drivers::{self, Release};
use cubinder_source::diagnostic::{Diagnostic, Span};
use cubinder_source::rules;

use super::Plan;

impl Plan {
    /// Whether the oldest driver that the manifest names loads what an NVRTC of this release makes.
    ///
    /// # Errors
    /// Where it does not, or where it is not known.
    pub fn check_driver(&self, release: Release) -> Result<(), Diagnostic> {
        let Some((driver, span)) = &self.min_driver else { return Ok(()) };
        let has = |kind: TargetKind| self.targets.iter().any(|planned| planned.target.kind == kind);
        // What TensorRT launches is PTX, whatever it is for.
        let is_native = self.route.route == Route::Native;
        let (cubins, ptx) = (has(TargetKind::Cubin) && !is_native, has(TargetKind::Ptx) || is_native);
        let (major, minor) = release;
        let needs = |is_there: bool, oldest: Option<DriverVersion>| match oldest {
            _ if !is_there => Load::Loads,
            None => Load::Unknown,
            Some(oldest) if drivers::reaches(*driver, oldest) => Load::Loads,
            Some(oldest) => Load::From(oldest),
        };
        let of_cubins = needs(cubins, drivers::oldest_for_cubins(release));
        let of_ptx = needs(ptx, drivers::oldest_for_ptx(release));
        if of_cubins == Load::Loads && of_ptx == Load::Loads {
            return Ok(());
        }
        let is_unknown = of_cubins == Load::Unknown || of_ptx == Load::Unknown;
        let message = match is_unknown {
            true => format!("it is not known which drivers load what NVRTC {major}.{minor} makes"),
            false => format!("driver {driver} does not load what NVRTC {major}.{minor} makes"),
        };
        let mut error = Diagnostic::error(message)
            .code(rules::DRIVER_TOO_OLD)
            .at(span.clone(), "this driver must be able to");
        if let Load::From(oldest) = of_cubins {
            error = error.note(format!("cubins of CUDA {major} load from driver {oldest} on"));
        }
        if let Load::From(oldest) = of_ptx {
            error = error.note(format!("PTX of CUDA {major}.{minor} loads from driver {oldest} on"));
        }
        if is_unknown {
            error = error.note("this version of cubinder was made before that release");
        }
        let mut ways: Vec<String> = Vec::new();
        if of_cubins == Load::Loads && cubins {
            ways.push("leave the PTX out: `code = [\"cubin\"]`".to_owned());
        }
        if let Some((major, minor)) = drivers::newest_for(*driver, cubins, ptx) {
            ways.push(format!(
                "use NVRTC {major}.{minor} or an older one: `--nvrtc <libnvrtc.so or its folder>` or `CUDA_HOME=<CUDA toolkit>`"
            ));
        }
        if !is_unknown {
            ways.push("raise `min_driver`".to_owned());
        }
        Err(error.help(ways.join("; or ")))
    }
}

/// What a driver does with code of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    /// There is none, or it loads it.
    Loads,
    /// It is too old: this one is the first.
    From(DriverVersion),
    /// The table does not say.
    Unknown,
}

/// What looks like a version of CUDA, where one of the driver is meant.
pub(super) fn version_of_cuda(plugin: &Resolved, driver: &Located<DriverVersion>) -> Option<Diagnostic> {
    let [major, minor, _] = driver.value.0.map(i32::from);
    if major > drivers::newest_release().0 {
        return None;
    }
    let written = plugin.source.text.get(driver.range.clone()).unwrap_or_default();
    let error = Diagnostic::error(format!(
        "`{}` is no release of NVIDIA's driver",
        written.trim_matches(['"', '\''])
    ))
    .code(rules::DRIVER_TOO_OLD)
    .at(Span::new(&plugin.source, driver.range.clone()), "this looks like a version of CUDA")
    .note("`min_driver` is a version of the driver, as `nvidia-smi` shows it: `580.65.06`");
    Some(match drivers::oldest_for_ptx((major, minor)) {
        Some(first) => {
            error.help(format!("the first driver of CUDA {major}.{minor} is `min_driver = \"{first}\"`"))
        }
        None => error.help("name the oldest driver that must load the code"),
    })
}
