use cubinder_model::fit::{ComputeCapability, Fit, fit, order};
use cubinder_model::{Arch, ArchSuffix, Target, TargetKind};

use super::errors::Unserved;
use crate::diagnostic::{Diagnostic, Span};
use crate::resolve::{ForeignCode, ForeignFile, PluginDraft};

/// Returns the index of a target's file. `sm_90` needs machine code for 9.0 or a lower minor version, else PTX if
/// `ptx_serves`; `compute_80` PTX for 8.0 and newer.
#[must_use]
pub fn serving(code: &ForeignCode, asked: Target, ptx_serves: bool) -> Option<usize> {
    let files: Vec<(usize, Target)> = code.files.iter().enumerate().filter_map(loaded).collect();
    let targets: Vec<Target> = files.iter().map(|(_, target)| *target).collect();
    let device = ComputeCapability { major: asked.arch.major, minor: asked.arch.minor };
    let serves = |index: &usize| {
        let Some(target) = targets.get(*index) else { return false };
        match (asked.kind, fit(device, *target)) {
            (_, Fit::Unlikely) => false,
            (TargetKind::Cubin, Fit::Ptx) => ptx_serves,
            (TargetKind::Cubin, _) => true,
            (TargetKind::Ptx, Fit::Ptx) => is_as_lasting(target.arch, asked.arch),
            (TargetKind::Ptx | TargetKind::Native, _) => false,
        }
    };
    let best = order(device, &targets).into_iter().find(serves)?;
    files.get(best).map(|(index, _)| *index)
}

fn codes(draft: &PluginDraft) -> impl Iterator<Item = &ForeignCode> {
    draft.units.iter().filter_map(|unit| unit.foreign.as_ref())
}

fn is_as_lasting(found: Arch, asked: Arch) -> bool {
    match asked.suffix {
        ArchSuffix::None => found.suffix == ArchSuffix::None,
        ArchSuffix::Family => found.suffix != ArchSuffix::Specific,
        ArchSuffix::Specific => true,
    }
}

fn loaded((index, file): (usize, &ForeignFile)) -> Option<(usize, Target)> {
    Some((index, file.loaded.as_ref()?.target))
}

pub(super) fn taken_alone(target: Target) -> String {
    let Arch { major, minor, .. } = target.arch;
    format!("does not record whether it was compiled only for {major}.{minor}, which is assumed")
}

/// Target that only PTX serves: the driver compiles it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromPtx {
    /// Code name in the manifest.
    pub code: String,
    /// Requested target.
    pub target: Target,
    /// PTX target.
    pub ptx: Target,
}

/// Returns the targets that only PTX serves.
#[must_use]
pub fn from_ptx(draft: &PluginDraft, asked: &[Target], ptx_serves: bool) -> Vec<FromPtx> {
    let mut found: Vec<FromPtx> = Vec::new();
    for code in codes(draft) {
        for target in asked.iter().filter(|target| target.kind == TargetKind::Cubin) {
            let file = serving(code, *target, ptx_serves).and_then(|file| code.files.get(file));
            let Some(ptx) = file.and_then(|file| Some(file.loaded.as_ref()?.target)) else { continue };
            let one = FromPtx { code: code.name.clone(), target: *target, ptx };
            if ptx.kind == TargetKind::Ptx && !found.contains(&one) {
                found.push(one);
            }
        }
    }
    found
}

/// Returns the files' targets in order, with spans.
#[must_use]
pub fn file_targets(draft: &PluginDraft) -> Vec<(Target, Span)> {
    let files = codes(draft).flat_map(|code| &code.files);
    let targets = files.filter_map(|file| Some((file.loaded.as_ref()?.target, file.span.clone())));
    let mut all: Vec<(Target, Span)> = targets.collect();
    all.sort_by_key(|(target, _)| *target);
    all.dedup_by_key(|(target, _)| *target);
    all
}

/// Returns whether a file was unreadable.
#[must_use]
pub fn lacks_files(draft: &PluginDraft) -> bool {
    codes(draft).flat_map(|code| &code.files).any(|file| file.loaded.is_none())
}

/// Reports targets without code, unless files were unreadable.
#[must_use]
pub fn unserved(draft: &PluginDraft, asked: &[(Target, Option<Span>)], ptx_serves: bool) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for code in codes(draft) {
        if code.files.iter().any(|file| file.loaded.is_none()) {
            continue;
        }
        let lacking = asked.iter().filter(|(target, _)| serving(code, *target, ptx_serves).is_none());
        let lacking: Vec<&(Target, Option<Span>)> = lacking.collect();
        let Some((first, _)) = lacking.first() else { continue };
        let error = without_code(code, *first, &lacking, ptx_serves);
        if !found.contains(&error) {
            found.push(error);
        }
    }
    super::fold_file_errors(found)
}

fn without_code(
    code: &ForeignCode,
    first: Target,
    lacking: &[&(Target, Option<Span>)],
    ptx_serves: bool,
) -> Diagnostic {
    let names: Vec<String> = lacking.iter().map(|(target, _)| format!("`{target}`")).collect();
    let has: Vec<String> =
        code.files.iter().filter_map(|file| Some(format!("`{}`", file.loaded.as_ref()?.target))).collect();
    let file = match first.kind {
        TargetKind::Cubin => format!("a cubin for `{first}`, with `nvcc -cubin -arch={first}`"),
        TargetKind::Ptx | TargetKind::Native => {
            format!("PTX for `{first}` or older, with `nvcc -ptx -arch={first}`")
        }
    };
    let is_without_ptx = first.kind == TargetKind::Cubin && !ptx_serves;
    let error = Diagnostic::from(Unserved {
        code: &code.name,
        targets: names.join(", "),
        present: has.join(", "),
        name: code.name_span.clone(),
        wanted: file,
        requested: lacking.iter().filter_map(|(_, span)| span.clone()).take(4).collect(),
        no_ptx: is_without_ptx.then_some("`code = [\"cubin\"]` of `[compile]` excludes PTX"),
    });
    let alone =
        code.files.iter().filter_map(|file| Some((file, file.loaded.as_ref().filter(|it| it.is_alone)?)));
    alone.take(4).fold(error, |error, (file, loaded)| {
        error.related(file.span.clone(), format!("it {}", taken_alone(loaded.target)))
    })
}
