//! The catalogue of rules: every rule has a page, and the examples on it are what they say. What breaks the rule is reported with
//! its code and with no error of another; what keeps to it is accepted without a word.
//!
//! Each example goes as far as it needs: reading and resolving, the checks without a compiler, and, with NVRTC and the
//! runtime library at hand (`cargo xtask test`), a whole compile. Pages with a kernel need that.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use crate::support::{Project, Run};
use cubinder_compiler::check;
use cubinder_compiler::diagnostic::{Diagnostic, Source};
use cubinder_compiler::resolve;
use cubinder_compiler::rules::{self, Language, Rule};
use rayon::prelude::*;

/// What a page has of one kind: manifests, and the kernel that belongs to them.
struct Examples {
    manifests: Vec<&'static str>,
    kernel: Option<&'static str>,
    ptx: Option<&'static str>,
}

fn examples(rule: &Rule, bad: bool) -> Examples {
    let examples = rule.examples();
    let of = |language: Language, exact: bool| {
        let wanted = if exact { Some(bad) } else { None };
        examples.iter().filter(move |example| example.language == language && example.is_bad == wanted)
    };
    let file = |language| of(language, true).chain(of(language, false)).map(|example| example.text).next();
    Examples {
        manifests: of(Language::Toml, true).map(|example| example.text).collect(),
        kernel: file(Language::Cuda),
        ptx: file(Language::Ptx),
    }
}

/// Severity and code of every message of a run.
fn codes(run: &Run) -> BTreeSet<(String, String)> {
    let messages = run.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let text = |message: &serde_json::Value, key: &str| message[key].as_str().unwrap_or("none").to_owned();
    messages
        .filter(|message| message.get("severity").is_some())
        .map(|message| (text(&message, "severity"), text(&message, "code")))
        .collect()
}

/// Severity and code of everything that can be said of manifests alone.
fn codes_of_manifests(texts: &[&str]) -> BTreeSet<(String, String)> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut plugins = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match resolve::compile(&Source::new(format!("example{index}.toml"), *text)) {
            Ok(resolved) => {
                found.extend(resolved.warnings.iter().cloned());
                found.extend(check::check(&resolved).diagnostics);
                plugins.push(resolved);
            }
            Err(errors) => found.extend(errors),
        }
    }
    found.extend(resolve::check_unique(&plugins));
    let code = |found: &Diagnostic| found.code.map_or("none", |code| code.0).to_owned();
    found.iter().map(|found| (format!("{:?}", found.severity).to_lowercase(), code(found))).collect()
}

/// `cubinder check`, or `cubinder compile`, of a page's manifests.
fn run(project: &Project, command: &str, examples: &Examples) -> Run {
    let mut arguments = vec![command.to_owned(), "--message-format".to_owned(), "json".to_owned()];
    for (index, text) in examples.manifests.iter().enumerate() {
        let name = format!("example{index}.toml");
        project.write(&name, text);
        arguments.push(name);
    }
    if let Some(kernel) = examples.kernel {
        project.write("scale.cu", kernel);
    }
    if let Some(ptx) = examples.ptx {
        project.write("scale.ptx", ptx);
    }
    if command == "compile" {
        arguments.extend(["--name", "example"].map(str::to_owned));
        // Targets on the command line would take the place of the manifest's own.
        let is_said = |text: &&str| text.contains("\ntargets = ") || text.contains("\n[[code]]");
        if !examples.manifests.iter().any(is_said) {
            arguments.extend(["--target", "sm_80"].map(str::to_owned));
        }
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    project.run(&arguments)
}

/// What is wrong with the page's examples, seen by a command.
fn problems(rule: &Rule, found: &BTreeSet<(String, String)>, bad: bool) -> Option<String> {
    let code = rule.code.0;
    if !bad {
        return (!found.is_empty()).then(|| format!("the good example of {code} gives {found:?}"));
    }
    let has_own = found.iter().any(|(_, known)| known == code);
    let has_other = found.iter().any(|(severity, known)| severity == "error" && known != code);
    (!has_own || has_other).then(|| format!("the bad example of {code} gives {found:?}"))
}

fn judge(project: &Project, rule: &Rule, command: &str, bad: bool) -> Option<String> {
    let examples = examples(rule, bad);
    let run = run(project, command, &examples);
    assert!(run.stderr.is_empty() || !run.stderr.contains("panicked"), "{}", run.stderr);
    problems(rule, &codes(&run), bad)
}

fn assert_none(problems: &[String]) {
    let mut text = String::new();
    problems.iter().for_each(|problem| writeln!(text, "{problem}").unwrap());
    assert!(problems.is_empty(), "{} examples are not what they say:\n{text}", problems.len());
}

fn has_kernel(rule: &Rule) -> bool {
    rule.examples().iter().any(|example| example.language != Language::Toml)
}

#[test]
fn every_rule_has_a_page_and_every_page_a_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("source/src/rules");
    let files =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: BTreeSet<String> =
        files.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).collect();
    let codes: BTreeSet<String> = rules::ALL.iter().map(|code| code.0.to_owned()).collect();
    assert_eq!(pages, codes);
}

#[test]
fn pages_are_whole() {
    for rule in rules::CATALOGUE {
        let code = rule.code.0;
        assert!(rule.page.starts_with(&format!("# {code}: ")), "{code}");
        assert!((3..80).contains(&rule.title().len()) && !rule.title().ends_with('.'), "{code}");
        for heading in ["## Why it matters", "## How to mend it", "## Example"] {
            assert_eq!(rule.page.matches(&format!("\n{heading}\n")).count(), 1, "{code}: {heading}");
        }
        for bad in [true, false] {
            let manifests = examples(rule, bad).manifests;
            assert!(!manifests.is_empty(), "{code} bad: {bad}");
        }
        // Prose fits a terminal; code is as long as it is.
        let mut fence = false;
        for line in rule.page.lines() {
            fence ^= line.starts_with("```");
            assert!(fence || line.chars().count() <= 120, "{code}: {line}");
        }
        assert!(!rule.plain().contains("```"), "{code}");
    }
}

#[test]
fn examples_without_a_kernel_are_what_they_say() {
    let plain: Vec<&Rule> = rules::CATALOGUE.iter().filter(|rule| !has_kernel(rule)).collect();
    let problems: Vec<String> = plain
        .par_iter()
        .flat_map_iter(|rule| {
            let judge = |bad: bool| problems(rule, &codes_of_manifests(&examples(rule, bad).manifests), bad);
            [true, false].into_iter().filter_map(judge)
        })
        .collect();
    assert_none(&problems);
}

#[test]
fn examples_with_a_kernel_are_what_they_say() {
    let Some(project) = Project::new() else { return };
    let rules = rules::CATALOGUE.iter().filter(|rule| has_kernel(rule));
    let mut problems = Vec::new();
    for rule in rules {
        problems.extend([true, false].into_iter().filter_map(|bad| judge(&project, rule, "compile", bad)));
        // Without a compiler less is seen, and nothing else.
        let good = examples(rule, false);
        let seen = codes(&run(&project, "check", &good));
        problems.extend((!seen.is_empty()).then(|| format!("a check of {} gives {seen:?}", rule.code)));
    }
    assert_none(&problems);
}
