//! The bad example on a rule's page yields only the rule's code, the good one no diagnostic.
//!
//! Pages with a kernel are compiled, which needs NVRTC and the runtime library.

use std::collections::BTreeSet;
use std::path::Path;

use cubinder_analysis::check as analysis;
use cubinder_manifest::resolve;
use cubinder_source::diagnostic::{Diagnostic, Source};
use cubinder_source::rules::{self, Rule};
use libtest_mimic::Trial;

use crate::support::{Project, Run};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Toml,
    Cuda,
    Ptx,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Example {
    language: Language,
    /// `None` if for good and bad examples.
    is_bad: Option<bool>,
    text: &'static str,
}

fn examples_of(rule: &Rule) -> Vec<Example> {
    let mut examples = Vec::new();
    let mut rest = rule.page;
    while let Some((_, from)) = rest.split_once("\n```") {
        let Some((label, body)) = from.split_once('\n') else { break };
        let Some((text, behind)) = body.split_once("\n```") else { break };
        let mut words = label.split_whitespace();
        let language = match words.next() {
            Some("toml") => Some(Language::Toml),
            Some("cuda") => Some(Language::Cuda),
            Some("ptx") => Some(Language::Ptx),
            _ => None,
        };
        let is_bad = words.next().map(|word| word == "bad");
        examples.extend(language.map(|language| Example { language, is_bad, text }));
        rest = behind;
    }
    examples
}

struct Examples {
    manifests: Vec<&'static str>,
    kernel: Option<&'static str>,
    ptx: Option<&'static str>,
}

fn examples(rule: &Rule, bad: bool) -> Examples {
    let examples = examples_of(rule);
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

fn codes(run: &Run) -> BTreeSet<(String, String)> {
    let messages = run.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let text = |message: &serde_json::Value, key: &str| message[key].as_str().unwrap_or("none").to_owned();
    messages
        .filter(|message| message.get("severity").is_some())
        .map(|message| (text(&message, "severity"), text(&message, "code")))
        .collect()
}

fn codes_of_manifests(texts: &[&str]) -> BTreeSet<(String, String)> {
    let mut found: Vec<Diagnostic> = Vec::new();
    let mut plugins = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match resolve::compile(&Source::new(format!("example{index}.toml"), *text)) {
            Ok(resolved) => {
                found.extend(resolved.warnings.iter().cloned());
                let route = resolved.manifest.compile.route();
                found.extend(analysis::check(&resolved, &[], route).diagnostics);
                plugins.push(resolved);
            }
            Err(errors) => found.extend(errors),
        }
    }
    found.extend(resolve::check_unique(&plugins));
    let code = |found: &Diagnostic| found.code.map_or("none", |code| code.0).to_owned();
    found.iter().map(|found| (format!("{:?}", found.severity).to_lowercase(), code(found))).collect()
}

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
        // Command-line targets override the manifest's.
        let is_said = |text: &&str| text.contains("\ntargets = ") || text.contains("\n[[code]]");
        if !examples.manifests.iter().any(is_said) {
            arguments.extend(["--target", "sm_80"].map(str::to_owned));
        }
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    project.run(&arguments)
}

fn check(rule: &Rule, found: &BTreeSet<(String, String)>, bad: bool) {
    let code = rule.code.0;
    if !bad {
        assert!(found.is_empty(), "the good example of {code} reports {found:?}");
        return;
    }
    let has_own = found.iter().any(|(_, reported)| reported == code);
    let has_other = found.iter().any(|(severity, reported)| severity == "error" && reported != code);
    assert!(has_own && !has_other, "the bad example of {code} reports {found:?}");
}

fn has_kernel(rule: &Rule) -> bool {
    examples_of(rule).iter().any(|example| example.language != Language::Toml)
}

pub(crate) fn trials() -> Vec<Trial> {
    let each = rules::CATALOGUE.iter().map(|rule| {
        let name = format!("rules/{}", rule.code);
        if has_kernel(rule) {
            return crate::with_project(name, |project| {
                page_is_complete(rule);
                examples_with_a_kernel(project, rule);
            });
        }
        Trial::test(name, || {
            page_is_complete(rule);
            for bad in [true, false] {
                check(rule, &codes_of_manifests(&examples(rule, bad).manifests), bad);
            }
            Ok(())
        })
    });
    let pages = Trial::test("rules/pages", || {
        every_page_has_a_rule();
        Ok(())
    });
    each.chain([pages]).collect()
}

fn every_page_has_a_rule() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rules");
    let files =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let pages: BTreeSet<String> =
        files.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).collect();
    let codes: BTreeSet<String> = rules::ALL.iter().map(|code| code.0.to_owned()).collect();
    assert_eq!(pages, codes);
}

fn page_is_complete(rule: &Rule) {
    let code = rule.code.0;
    assert!(rule.page.starts_with(&format!("# {code}: ")), "{code}");
    assert!((3..80).contains(&rule.title().len()) && !rule.title().ends_with('.'), "{code}");
    for heading in ["## Why it matters", "## How to fix it", "## Example"] {
        assert_eq!(rule.page.matches(&format!("\n{heading}\n")).count(), 1, "{code}: {heading}");
    }
    for bad in [true, false] {
        assert!(!examples(rule, bad).manifests.is_empty(), "{code} bad: {bad}");
    }
    // Prose must fit a terminal.
    let mut fence = false;
    for line in rule.page.lines() {
        fence ^= line.starts_with("```");
        assert!(fence || line.chars().count() <= 120, "{code}: {line}");
    }
    assert!(!rule.plain().contains("```"), "{code}");
}

fn examples_with_a_kernel(project: &Project, rule: &Rule) {
    for bad in [true, false] {
        let run = run(project, "compile", &examples(rule, bad));
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        check(rule, &codes(&run), bad);
    }
    // A check's messages are a subset of a compile's.
    let checked = codes(&run(project, "check", &examples(rule, false)));
    assert!(checked.is_empty(), "a check of {} reports {checked:?}", rule.code);
}
