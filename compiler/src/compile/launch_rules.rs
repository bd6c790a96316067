use cubinder_code_object::cubin::{self, LaunchRules};
use cubinder_manifest::resolve::Unit;
use cubinder_nvrtc::nvrtc::CompiledKernel;
use cubinder_source::diagnostic::Diagnostic;

use crate::errors::UnreadableCode;

/// Reports unreadable code at the kernel.
pub(super) fn launch_rules(
    unit: &Unit,
    code: &CompiledKernel,
    label: &'static str,
) -> Result<LaunchRules, Diagnostic> {
    let target = code.object.target;
    let unreadable = |error: String| {
        let span = unit.kernel_span.clone();
        Diagnostic::from(UnreadableCode { target: target.to_string(), error, span, label })
    };
    let raw = code.object.raw().map_err(|error| unreadable(error.to_string()))?;
    cubin::launch_rules(target, &raw, &code.symbol).map_err(|error| unreadable(error.to_string()))
}
