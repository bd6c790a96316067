//! How the kernels of a manifest are compiled.

use std::collections::BTreeSet;
use std::sync::Arc;

use cubinder_code_object::block_limits::max_shared_bytes;
use cubinder_manifest::manifest::{DriverVersion, Route};
use cubinder_model::{Arch, ArchSuffix, Target, TargetKind};
use cubinder_nvrtc::nvrtc::Settings;
use cubinder_source::diagnostic::{Diagnostic, Span};

use crate::errors::UnknownTarget;

/// How the kernels of one manifest are compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What to compile for, each once; at least one.
    pub targets: Vec<PlannedTarget>,
    /// What was left out of them, because the command line asks for some alone.
    pub left_out: Vec<Target>,
    /// Include folders and options.
    pub settings: Arc<Settings>,
    /// The oldest driver that must be able to load the code, and where the manifest says so.
    pub min_driver: Option<(DriverVersion, Span)>,
    /// Whether PTX of other compilers stands for machine code that there is none of.
    pub ptx_serves: bool,
    /// Who launches the kernels.
    pub route: PlannedRoute,
}

/// Who launches the kernels, and the manifest's place that says so.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PlannedRoute {
    /// Who.
    pub route: Route,
    /// Where the manifest says so; none where the command line does, or nobody.
    pub span: Option<Span>,
}

/// A target, and the file that asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTarget {
    /// The target.
    pub target: Target,
    /// Its place; none where the command line asks for it.
    pub span: Option<Span>,
}

impl Plan {
    /// PTX for the lowest architecture that is asked for, which every GPU takes that some target is for: the code that TensorRT launches itself. It is
    /// for one chip or its family alone (`a`, `f`) where nothing else is asked for.
    #[must_use]
    pub fn lowest_ptx(&self) -> Option<Target> {
        let archs = || self.targets.iter().map(|planned| planned.target.arch);
        let lowest = archs().min_by_key(|arch| (arch.major, arch.minor))?;
        let suffix = if archs().all(|arch| arch == lowest) { lowest.suffix } else { ArchSuffix::None };
        Some(Target { kind: TargetKind::Ptx, arch: Arch { suffix, ..lowest } })
    }

    /// One target of each architecture that kernels are compiled for, in the order of `targets`.
    #[must_use]
    pub fn architectures(&self) -> Vec<Target> {
        // Without a suffix it may be another architecture than any that is asked for.
        let native = self.lowest_ptx().filter(|_| self.route.route == Route::Native);
        let mut seen = BTreeSet::new();
        self.targets().into_iter().chain(native).filter(|target| seen.insert(target.arch)).collect()
    }

    /// What to compile for.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        self.targets.iter().map(|planned| planned.target).collect()
    }

    /// A warning for each architecture whose limits are not known, so that launches are not held against them.
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
        // Code that TensorRT launches is for the lowest architecture without its suffix.
        assert_eq!(shown(&["sm_90a", "sm_100"], Route::Plugin), ["sm_90a", "sm_100"]);
        assert_eq!(shown(&["sm_90a", "sm_100"], Route::Native), ["sm_90a", "sm_100", "compute_90"]);
        assert_eq!(shown(&["sm_90a"], Route::Native), ["sm_90a"]);
    }
}
