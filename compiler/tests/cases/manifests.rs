//! One test per manifest of the corpus.
//!
//! - `ok/NAME`, `manifests/NAME`: `tests/data/ok` or `manifests` resolves without a diagnostic.
//! - `bad/NAME`: `cubinder check` reports `tests/data/bad/NAME.snap`.
//! - `bad/several/NAME`: likewise for a folder, checked together.
//! - `bad/compiled/NAME`: `cubinder compile` reports the snapshot.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use cubinder_compiler::{check_plugins, project};
use cubinder_manifest::resolve::compile;
use cubinder_source::diagnostic::{Colour, render};
use cubinder_source::source;
use libtest_mimic::{Completion, Trial};

use crate::support::{Project, corpus};

const BAD: &str = "tests/data/bad";
const SEVERAL: &str = "tests/data/bad/several";
const COMPILED: &str = "tests/data/bad/compiled";

pub(crate) fn trials() -> Vec<Trial> {
    std::env::set_current_dir(corpus::path(BAD)).unwrap();
    let mut trials = Vec::new();
    for (prefix, folder) in [("ok", "tests/data/ok"), ("manifests", "manifests")] {
        for path in corpus::manifests(folder) {
            trials.push(trial(prefix, &path, |path| resolves_without_a_diagnostic(&path)));
        }
    }
    for path in corpus::manifests(BAD) {
        trials.push(trial("bad", &path, |path| is_reported(BAD, &path, std::slice::from_ref(&path))));
    }
    for folder in corpus::entries(SEVERAL).into_iter().filter(|path| path.is_dir()) {
        trials.push(trial("bad/several", &folder, |folder| {
            is_reported(
                SEVERAL,
                &folder,
                &corpus::manifests(&format!("{SEVERAL}/{}", corpus::stem(&folder))),
            );
        }));
    }
    let project = Arc::new(LazyLock::new(project_of_compiled));
    for path in corpus::manifests(COMPILED) {
        let project = Arc::clone(&project);
        trials.push(Trial::ignorable_test(format!("bad/compiled/{}", corpus::stem(&path)), move || {
            let Some(project) = LazyLock::force(&project) else {
                return Ok(Completion::ignored_with("no NVRTC or runtime library"));
            };
            is_reported_by_a_compile(project, corpus::stem(&path));
            Ok(Completion::Completed)
        }));
    }
    trials
}

fn trial(prefix: &str, path: &Path, test: impl FnOnce(PathBuf) + Send + 'static) -> Trial {
    let path = path.to_owned();
    Trial::test(format!("{prefix}/{}", corpus::stem(&path)), move || {
        test(path);
        Ok(())
    })
}

fn resolves_without_a_diagnostic(path: &Path) {
    let resolved =
        compile(&corpus::source(path)).unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)));
    assert_eq!(render(&resolved.warnings, Colour::Plain), "");
    let plugin = &resolved.draft.plugin;
    let launches: usize = plugin.variants.iter().map(|variant| variant.launches().count()).sum();
    assert_eq!(launches, resolved.draft.units.len());
    let (attributes, tensors) = (plugin.attributes.len(), plugin.tensor_count());
    for output in &plugin.outputs {
        output.shape.validate(attributes, tensors).unwrap();
    }
    for rule in &plugin.require {
        rule.expr.validate(attributes, plugin.inputs.len()).unwrap();
    }
    for variant in &plugin.variants {
        assert_eq!(variant.types.len(), tensors);
        for launch in variant.launches() {
            let sizes = launch.grid.iter().chain(&launch.block).chain([&launch.shared_bytes]);
            sizes.for_each(|size| size.validate(attributes, tensors).unwrap());
        }
    }
}

fn is_reported(folder: &str, name: &Path, manifests: &[PathBuf]) {
    let sources: Vec<_> = manifests.iter().map(|path| Ok(corpus::source(path))).collect();
    let diagnostics =
        check_plugins::check_sources(&project::Project::default(), sources, &source::text).diagnostics;
    assert!(!diagnostics.is_empty(), "no diagnostic");
    let without_rule: Vec<_> = diagnostics.iter().filter(|one| one.code.is_none()).collect();
    assert!(without_rule.is_empty(), "diagnostics without a rule: {without_rule:#?}");
    matches_snapshot(folder, corpus::stem(name), &render(&diagnostics, Colour::Plain));
}

fn project_of_compiled() -> Option<Project> {
    let project = Project::new()?;
    for path in corpus::entries(COMPILED) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        if !name.ends_with(".snap") {
            project.write(name, std::fs::read(&path).unwrap());
        }
    }
    Some(project)
}

/// In separate processes: rejected input may crash NVRTC 13.0 later.
fn is_reported_by_a_compile(project: &Project, name: &str) {
    let output = format!("out/{name}");
    let run = project.run(&["compile", &format!("{name}.toml"), "--name", "bad", "--out-dir", &output]);
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    let is_warning = run.stderr.starts_with("warning[");
    assert!(is_warning || run.stderr.starts_with("error["), "{}{}", run.stdout, run.stderr);
    assert_eq!(run.code, Some(i32::from(run.stderr.contains("error["))), "{}", run.stderr);
    matches_snapshot(COMPILED, name, &project.plain(&run.stderr));
}

fn matches_snapshot(folder: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(corpus::path(folder));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
