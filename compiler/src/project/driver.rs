use cubinder_manifest::manifest::{DriverVersion, Located, Route};
use cubinder_manifest::resolve::Resolved;
use cubinder_model::TargetKind;
use cubinder_nvrtc::toolkit::drivers::{self, Release};
use cubinder_source::diagnostic::{Diagnostic, Span};

use super::Plan;
use crate::errors::{DriverTooOld, NotADriver};

impl Plan {
    /// Checks that the oldest driver loads this NVRTC's code.
    ///
    /// # Errors
    /// It cannot, or the release is unknown.
    pub fn check_driver(&self, release: Release) -> Result<(), Diagnostic> {
        let Some((driver, span)) = &self.min_driver else { return Ok(()) };
        let has = |kind: TargetKind| self.targets.iter().any(|planned| planned.target.kind == kind);
        // Native-route code is always PTX.
        let is_native = self.route.route == Route::Native;
        let (cubins, ptx) = (has(TargetKind::Cubin) && !is_native, has(TargetKind::Ptx) || is_native);
        let (major, minor) = release;
        let of_cubins = drivers::oldest_for_cubins(release).filter(|_| cubins);
        let of_ptx = drivers::oldest_for_ptx(release).filter(|_| ptx);
        let is_too_old = |oldest: &DriverVersion| !drivers::reaches(*driver, *oldest);
        let (from_cubins, from_ptx) = (of_cubins.filter(is_too_old), of_ptx.filter(is_too_old));
        let is_unknown = (cubins && of_cubins.is_none()) || (ptx && of_ptx.is_none());
        if from_cubins.is_none() && from_ptx.is_none() && !is_unknown {
            return Ok(());
        }
        let mut ways: Vec<String> = Vec::new();
        if of_cubins.is_some() && from_cubins.is_none() {
            ways.push("omit the PTX: `code = [\"cubin\"]`".to_owned());
        }
        if let Some((major, minor)) = drivers::newest_for(*driver, cubins, ptx) {
            ways.push(format!(
                "use NVRTC {major}.{minor} or older: `--nvrtc <libnvrtc.so or its folder>` or `CUDA_HOME=<CUDA toolkit>`"
            ));
        }
        if !is_unknown {
            ways.push("raise `min_driver`".to_owned());
        }
        let (span, help) = (span.clone(), ways.join("; or "));
        let unknown = is_unknown.then_some("this version of cubinder is older than that NVRTC release");
        let finding = match is_unknown {
            true => "no known driver version for".to_owned(),
            false => format!("driver {driver} does not load"),
        };
        Err(DriverTooOld { finding, major, minor, span, from_cubins, from_ptx, unknown, help }.into())
    }
}

pub(super) fn version_of_cuda(plugin: &Resolved, driver: &Located<DriverVersion>) -> Option<Diagnostic> {
    let [major, minor, _] = driver.value.0.map(i32::from);
    if major > drivers::newest_release().0 {
        return None;
    }
    let written = plugin.source.text.get(driver.range.clone()).unwrap_or_default();
    let help = match drivers::oldest_for_ptx((major, minor)) {
        Some(first) => {
            format!("for the first driver of CUDA {major}.{minor}, use `min_driver = \"{first}\"`")
        }
        None => "specify the oldest driver that must load the code".to_owned(),
    };
    let written = written.trim_matches(['"', '\'']).to_owned();
    Some(NotADriver { written, span: Span::new(&plugin.source, driver.range.clone()), help }.into())
}
