use std::collections::BTreeSet;
use std::sync::Arc;

use cubinder_code_object::block_limits::max_shared_bytes;
use cubinder_manifest::manifest::{DriverVersion, Route};
use cubinder_model::{Arch, ArchSuffix, Target, TargetKind};
use cubinder_nvrtc::nvrtc::Settings;
use cubinder_source::diagnostic::{Diagnostic, Span};

use crate::errors::UnknownTarget;

/// How a manifest's kernels are compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Unique targets.
    pub targets: Vec<PlannedTarget>,
    /// Targets that the command line excludes.
    pub left_out: Vec<Target>,
    /// Include folders and options.
    pub settings: Arc<Settings>,
    /// Oldest supported driver with location.
    pub min_driver: Option<(DriverVersion, Span)>,
    /// Whether precompiled PTX may replace machine code.
    pub ptx_serves: bool,
    /// Whether the plugin library or TensorRT launches the kernels.
    pub route: PlannedRoute,
}

/// The route with its location.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlannedRoute {
    /// The route.
    pub route: Route,
    /// Location; `None` if default.
    pub span: Option<Span>,
}

/// A target with its location.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTarget {
    /// The target.
    pub target: Target,
    /// Location; `None` from the command line.
    pub span: Option<Span>,
}

impl Plan {
    /// Returns the native route's code: PTX for the lowest architecture, with a chip or family suffix (`a`, `f`) only
    /// if all targets have it.
    #[must_use]
    pub fn lowest_ptx(&self) -> Option<Target> {
        let archs = || self.targets.iter().map(|planned| planned.target.arch);
        let lowest = archs().min_by_key(|arch| (arch.major, arch.minor))?;
        let suffix = if archs().all(|arch| arch == lowest) { lowest.suffix } else { ArchSuffix::None };
        Some(Target { kind: TargetKind::Ptx, arch: Arch { suffix, ..lowest } })
    }

    /// Returns one target per architecture.
    #[must_use]
    pub fn architectures(&self) -> Vec<Target> {
        // The PTX target may lack the planned targets' suffix (`a`, `f`), and is then another architecture.
        let native = self.lowest_ptx().filter(|_| self.route.route == Route::Native);
        let mut seen = BTreeSet::new();
        self.targets().into_iter().chain(native).filter(|target| seen.insert(target.arch)).collect()
    }

    /// Returns the targets.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        self.targets.iter().map(|planned| planned.target).collect()
    }

    /// Warns about architectures with unknown limits.
    #[must_use]
    pub fn unknown_targets(&self) -> Vec<Diagnostic> {
        let unknown = self.targets.iter().filter(|planned| max_shared_bytes(planned.target.arch).is_none());
        let warning = |PlannedTarget { target, span }: &PlannedTarget| {
            UnknownTarget { target: target.to_string(), span: span.clone() }.into()
        };
        unknown.map(warning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_architecture_of_the_code_is_counted_once() {
        let shown = |targets: &[&str], route: Route| -> Vec<String> {
            let planned = |target: &&str| PlannedTarget { target: target.parse().unwrap(), span: None };
            let plan = Plan {
                targets: targets.iter().map(planned).collect(),
                left_out: Vec::new(),
                settings: Arc::default(),
                min_driver: None,
                ptx_serves: false,
                route: PlannedRoute { route, span: None },
            };
            plan.architectures().iter().map(ToString::to_string).collect()
        };
        let targets = ["sm_90", "compute_90", "sm_90a", "sm_80", "sm_90"];
        assert_eq!(shown(&targets, Route::Plugin), ["sm_90", "sm_90a", "sm_80"]);
        assert_eq!(shown(&targets, Route::Native), ["sm_90", "sm_90a", "sm_80"]);
        assert_eq!(shown(&["sm_90a", "sm_100"], Route::Plugin), ["sm_90a", "sm_100"]);
        assert_eq!(shown(&["sm_90a", "sm_100"], Route::Native), ["sm_90a", "sm_100", "compute_90"]);
        assert_eq!(shown(&["sm_90a"], Route::Native), ["sm_90a"]);
    }
}
