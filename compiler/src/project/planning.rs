use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use cubinder_analysis::precompiled;
use cubinder_cuda_text::manifest_names::header_names;
use cubinder_import::foreign;
use cubinder_manifest::manifest::Text;
use cubinder_manifest::nvrtc_option::{check_defined, check_options};
use cubinder_manifest::resolve::{self, Resolved};
use cubinder_model::Target;
use cubinder_nvrtc::codegen;
use cubinder_nvrtc::nvrtc::Settings;
use cubinder_source::diagnostic::{Diagnostic, Sink, Span};
use cubinder_source::rules;

use super::driver::version_of_cuda;
use super::targets::{no_target, nothing_left};
use super::{Plan, PlannedRoute, PlannedTarget, Project};

impl Project {
    /// Plans the compile of a possibly invalid manifest; errors go to `sink`.
    ///
    /// Targets are the command line's, else the manifest's, else the library's; `code` filters the last two. Include
    /// folders are in that order; options are in reverse, so that the command line's override. `needs_targets` makes
    /// missing targets an error.
    #[must_use]
    pub fn plan(&self, plugin: &Resolved, needs_targets: bool, sink: &Sink) -> Plan {
        let decl = &plugin.manifest.compile;
        let errors = Sink::default();
        let (targets, left_out) = self.chosen(plugin, &errors);
        let asked: Vec<_> = targets.iter().map(|planned| (planned.target, planned.span.clone())).collect();
        let ptx_serves = self.ptx_serves(plugin);
        errors.report(foreign::unserved(&plugin.draft, &asked, ptx_serves));
        // Unread parts may set targets.
        let is_silent =
            errors.is_empty() && targets.is_empty() && plugin.is_read && !foreign::lacks_files(&plugin.draft);
        sink.report(errors.into_diagnostics());
        sink.report(self.wrong_options(plugin));
        sink.report(decl.min_driver.as_ref().and_then(|driver| version_of_cuda(plugin, driver)));
        let settings = Arc::new(self.settings(plugin, sink));
        let span = |range: &std::ops::Range<usize>| Span::new(&plugin.source, range.clone());
        let min_driver = decl.min_driver.as_ref().map(|driver| (driver.value, span(&driver.range)));
        if let Some((driver, place)) = &min_driver {
            sink.report(precompiled::check_driver(&plugin.draft, *driver, place));
        }
        sink.report((is_silent && needs_targets).then(|| no_target(&self.options.only)));
        let route = match (self.options.route, &decl.route) {
            (Some(route), _) => PlannedRoute { route, span: None },
            (None, Some(decl)) => PlannedRoute { route: decl.value, span: Some(span(&decl.range)) },
            (None, None) => PlannedRoute::default(),
        };
        Plan { targets, left_out, settings, min_driver, ptx_serves, route }
    }

    fn chosen(&self, plugin: &Resolved, errors: &Sink) -> (Vec<PlannedTarget>, Vec<Target>) {
        let only = &self.options.only;
        let is_asked = |planned: &PlannedTarget| only.is_empty() || only.contains(&planned.target);
        let (targets, left_out): (Vec<_>, Vec<_>) =
            self.targets(plugin, errors).into_iter().partition(is_asked);
        let left_out: Vec<Target> = left_out.into_iter().map(|planned| planned.target).collect();
        if targets.is_empty() && !left_out.is_empty() {
            errors.report([nothing_left(plugin, only, &left_out)]);
        }
        let is_broken = plugin.manifest.compile.targets_are_broken;
        if targets.is_empty() && left_out.is_empty() && errors.is_empty() && !is_broken {
            // Without targets, precompiled code determines them.
            let given = foreign::file_targets(&plugin.draft).into_iter();
            let planned = |(target, span)| PlannedTarget { target, span: Some(span) };
            return (given.map(planned).collect(), left_out);
        }
        (targets, left_out)
    }

    /// Checks options together because one may be another's value.
    fn wrong_options(&self, plugin: &Resolved) -> Vec<Diagnostic> {
        let options = &plugin.manifest.compile.options;
        let of_config: &[String] = self.config.as_ref().map_or(&[], |config| &config.options);
        let at = |index: usize, refused: Diagnostic, label: &str| {
            let range = options.get(index).map_or(0..0, |option| option.range.clone());
            refused.at(Span::new(&plugin.source, range), label)
        };
        let own = options.iter().map(|option| option.value.as_str());
        let asked = self.options.options.iter().map(String::as_str);
        let others = of_config.iter().map(String::as_str).chain(asked.clone());
        let all = of_config.iter().map(String::as_str).chain(own.clone()).chain(asked);
        let mut errors = Vec::new();
        for (index, refused) in check_options(all) {
            // `cubinder.toml` errors are already reported.
            let Some(index) = index.checked_sub(of_config.len()) else { continue };
            match options.get(index) {
                // The manifest reader reports other elements.
                Some(option) if !option.value.starts_with('-') => {}
                Some(_) => errors.push(at(index, refused, "remove this option")),
                None => errors.push(
                    refused
                        .at(plugin.name_span.clone(), "compiled for this plugin")
                        .note("the option is from the command line (`--option`, `--define`)")
                        .help("remove it"),
                ),
            }
        }
        let are_there = own.clone().chain(others.clone()).next().is_some();
        let (header, of_manifest) = names_of_header(plugin, are_there);
        let of_manifest = |name: &str| of_manifest.contains(name);
        let defined = check_defined(own, &header, &of_manifest).into_iter();
        errors.extend(defined.map(|(index, refused)| at(index, refused, "this option")));
        errors.extend(check_defined(others, &header, &of_manifest).into_iter().map(|(_, refused)| {
            refused
                .at(plugin.name_span.clone(), "compiled for this plugin")
                .note("the option is from `cubinder.toml` or the command line")
        }));
        errors
    }

    fn settings(&self, plugin: &Resolved, sink: &Sink) -> Settings {
        let decl = &plugin.manifest.compile;
        let mut include = self.options.include.clone();
        // Blank names are already reported.
        for text in decl.include.iter().filter(|text| !text.value.trim().is_empty()) {
            match include_folder(plugin, text) {
                Ok(folder) => include.push(folder),
                Err(error) => sink.report([error]),
            }
        }
        include.extend(
            self.config.iter().flat_map(|config| config.include.iter().map(|folder| folder.value.clone())),
        );
        let mut options: Vec<String> = self.config.iter().flat_map(|config| config.options.clone()).collect();
        options.extend(decl.options.iter().map(|option| option.value.clone()));
        options.extend(self.options.options.clone());
        let of_config = self.config.as_ref().is_some_and(|config| config.line_information);
        if decl.line_information || of_config || self.options.line_information {
            with_line_information(&mut options);
        }
        Settings { include, options }
    }
}

/// Returns headers' names visible to kernels, and declared ones; empty without options.
fn names_of_header(plugin: &Resolved, are_there: bool) -> (BTreeSet<String>, BTreeSet<String>) {
    let units = if are_there { plugin.draft.units.as_slice() } else { &[] };
    let tables: BTreeSet<String> =
        units.iter().flat_map(|unit| unit.tables.iter().map(|table| table.name.clone())).collect();
    let header = units.iter().flat_map(|unit| header_names(&codegen::header(unit, &[], None)));
    let header = header.chain(tables.iter().cloned()).collect();
    let types = units.iter().flat_map(|unit| unit.types.iter().map(|(name, _)| name.clone()));
    let constants = units.iter().flat_map(|unit| unit.constants.iter().map(|(name, _)| name.clone()));
    (header, types.chain(constants).chain(tables).collect())
}

/// Adds the line information option once: NVRTC rejects repeats.
fn with_line_information(options: &mut Vec<String>) {
    let asks = |option: &String| {
        option.trim_start_matches('-').trim_end() == "lineinfo"
            || option.trim_start_matches('-').trim_end() == "generate-line-info"
    };
    if !options.iter().any(asks) {
        options.insert(0, "-lineinfo".to_owned());
    }
}

fn include_folder(plugin: &Resolved, text: &Text) -> Result<PathBuf, Diagnostic> {
    let folder = resolve::beside(&plugin.source, &text.value);
    match super::check_include(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => Err(error
            .code(rules::WRONG_VALUE)
            .at(Span::new(&plugin.source, text.range.clone()), "the manifest names it here")
            .note("it is relative to the manifest's folder")),
    }
}
