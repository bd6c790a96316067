//! Lists a compile's input files for build systems, with NVRTC instead of CUDA headers. Never reads a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cubinder_node::tuning;
use cubinder_nvrtc::nvrtc::{PreparedUnit, Session};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::path;

use crate::check_plugins::CheckedPlugin;
use crate::project::Project;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Inputs {
    /// Paths relative to the current folder.
    pub(super) files: BTreeSet<PathBuf>,
    /// Kernels with macro-computed includes, which are unlisted.
    pub(super) computed: BTreeSet<PathBuf>,
}

impl Inputs {
    pub(super) fn new(project: &Project, plugins: &[CheckedPlugin], session: Option<&Session>) -> Inputs {
        let mut inputs = Inputs::default();
        session.into_iter().for_each(|session| inputs.add(&session.toolkit().nvrtc));
        project.config.iter().for_each(|config| inputs.add(&config.source.path));
        project.tuning.iter().for_each(|file| inputs.add(file));
        for CheckedPlugin { resolved: plugin, .. } in plugins {
            inputs.add(&plugin.source.path);
            tuning::cases_path(plugin).iter().for_each(|file| inputs.add(file));
            for unit in &plugin.draft.units {
                match &unit.foreign {
                    Some(code) => code.files.iter().for_each(|file| inputs.add_code(&file.path)),
                    None => inputs.add(&unit.source),
                }
                unit.tables
                    .iter()
                    .filter_map(|table| table.file.as_ref())
                    .for_each(|file| inputs.add(&file.path));
            }
        }
        inputs
    }

    pub(super) fn add_included(&mut self, session: &Session, prepared: &PreparedUnit) {
        session.found_files(prepared).for_each(|(file, _)| self.add(file));
        if prepared.has_computed_includes() {
            self.computed.insert(path::shown(&prepared.unit.source.path));
        }
    }

    pub(super) fn merge(&mut self, other: Inputs) {
        self.files.extend(other.files);
        self.computed.extend(other.computed);
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = Diagnostic> {
        self.computed.iter().map(|kernel| {
            Diagnostic::warning(format!(
                "the depfile does not list all files that `{}` includes",
                kernel.display()
            ))
            .note("an `#include` in it or in a header expands a macro, and NVRTC does not report the included file")
            .help("list these headers in the build system's rule, or include them without macros")
        })
    }

    fn add_code(&mut self, file: &Path) {
        self.add(file);
        let ttir = file.with_extension("ttir");
        if ttir.is_file() {
            self.add(&ttir);
        }
    }

    pub(super) fn add(&mut self, file: &Path) {
        self.files.insert(path::shown(file));
    }
}
