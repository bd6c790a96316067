use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cubinder_compiler::check_plugins::{self, Purpose};
use cubinder_compiler::project::{Project, ProjectOptions};
use cubinder_source::diagnostic::{Colour, Diagnostic, Sink, render};
use cubinder_source::source;
use rayon::prelude::*;

const MANIFEST: &str = r#"schema = 1

[plugin]
name = "scale"
namespace = "test"
require = [{ expr = "factor > 0.0", message = "the factor is above 0" }]

[attributes.factor]
type = "f32"

[attributes.steps]
type = "i32"
range = "1..=8"

[[inputs]]
name = "x"
type = "T"
rank = "1..=4"
limits = { dims = "1.." }

[[outputs]]
name = "y"
type = "T"
shape = "x.shape"

[[outputs]]
name = "sums"
type = "f32"
shape = "[x.shape[0]]"

[types]
T = ["f32", "f16"]

[constants]
BLOCK = 256

[functions]
blocks = { params = ["n"], body = "ceil_div(n, BLOCK)" }

[[variants]]
id = 3
guard = "numel(x) % 4 == 0"

[[variants]]
id = 2
guard = "x.rank == 2"

[[variants]]
id = 1

[compile]
targets = ["sm_80"]
options = ["--use_fast_math"]
include = ["."]

[[launches]]
source = "scale.cu"
kernel = "scale<T>"
grid = ["blocks(numel(y))"]
block = ["BLOCK", 1]
shared_bytes = 1024

[launches.args]
x = "x"
y = "y"
sums = "sums"
count = "numel(y)"
factor = "factor"
steps = "steps"
"#;

const KERNEL: &str = "\
template <typename T>
__global__ void scale(const T* x, T* y, float* sums, long long count, float factor, int steps) {}
";

/// Errors with a common word in `about` may hide each other.
struct Mistake {
    edit: (&'static str, &'static str),
    code: &'static str,
    about: &'static str,
}

const fn mistake(edit: (&'static str, &'static str), code: &'static str, about: &'static str) -> Mistake {
    Mistake { edit, code, about }
}

/// Errors by location. Arguments are checked only for known kernels.
const MISTAKES: &[Mistake] = &[
    mistake(("namespace = \"test\"", "namespace = \"te st\""), "C0006", ""),
    mistake(("factor > 0.0", "factor > none"), "C0101", "factor"),
    mistake(("\"factor > 0.0\"", "\"1 > 2\""), "C0204", "factor"),
    mistake(("range = \"1..=8\"", "range = \"8..=1\""), "C0012", ""),
    mistake(("rank = \"1..=4\"", "rank = 9"), "C0007", "rank"),
    mistake(("shape = \"[x.shape[0]]\"", "shape = \"[x.shape[0] / 2]\""), "C0103", "sums"),
    mistake(("BLOCK = 256\n", "BLOCK = 256\nclass = 1\n"), "C0006", ""),
    mistake(("BLOCK = 256\n", "BLOCK = 256\nmany = [1, true]\n"), "C0005", ""),
    mistake(("numel(x) % 4 == 0", "numel(z) % 4 == 0"), "C0101", ""),
    mistake(("x.rank == 2", "x.rank == 7"), "C0201", "rank"),
    mistake(("id = 1\n", "id = 1\ntypes = { T = [\"bf16\"] }\n"), "C0008", "T"),
    mistake(("--use_fast_math", "-arch=sm_80"), "C0604", ""),
    mistake(("include = [\".\"]", "include = [\"none\"]"), "C0005", ""),
    mistake(("\"scale.cu\"", "\"scales.cu\""), "C0401", "kernel"),
    mistake(("scale<T>", "scal<T>"), "C0402", "kernel T"),
    mistake(("scale<T>", "scale<T, 4>"), "C0402", "kernel T"),
    mistake(("\"scale<T>\"", "\"scale<T\""), "C0406", "kernel"),
    mistake(("[\"blocks(numel(y))\"]", "[0]"), "C0301", ""),
    mistake(("[\"blocks(numel(y))\"]", "\"numel(y)\""), "C0005", ""),
    mistake(("\"BLOCK\", 1]", "\"numel(y) * 0 + 2000\", 1]"), "C0302", ""),
    mistake(("\"BLOCK\", 1]", "\"BLOCK\", 8]"), "C0302", ""),
    mistake(("shared_bytes = 1024", "shared_bytes = 1048576"), "C0303", ""),
    mistake(("sums = \"sums\"\ncount", "sums = \"x.shape\"\ncount"), "C0306", "sums kernel T"),
    mistake(("count = \"numel(y)\"", "count = \"numel(none)\""), "C0101", ""),
    mistake(("count = \"numel(y)\"", "count = [[1]]"), "C0005", "sums"),
    mistake(("count = \"numel(y)\"", "count = \"1 // 0\""), "C0104", ""),
    mistake(("factor = \"factor\"", "facto = \"factor\""), "C0403", "kernel T"),
    mistake(("steps = \"steps\"", "steps = \"float(steps)\""), "C0405", "kernel T"),
];

fn write(folder: &Path, mistakes: &[&Mistake]) -> Project {
    let mut text = MANIFEST.to_owned();
    for Mistake { edit: (from, to), .. } in mistakes {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        text = text.replace(from, to);
    }
    fs::write(folder.join("m.toml"), text).unwrap();
    fs::write(folder.join("scale.cu"), KERNEL).unwrap();
    let asked = ProjectOptions { manifests: vec![folder.join("m.toml")], ..ProjectOptions::default() };
    Project::open(asked, folder).unwrap()
}

type Told = (&'static str, String, String);

fn told(diagnostics: &[Diagnostic]) -> Vec<Told> {
    let one = |one: &Diagnostic| {
        let span = &one.primary.as_ref().unwrap().span;
        let shown = span.source.text[span.range.clone()].to_owned();
        let folder = span.source.path.parent().unwrap().display().to_string();
        (one.code.unwrap().0, one.message.replace(&folder, ""), shown)
    };
    diagnostics.iter().map(one).collect()
}

fn check(folder: &Path, mistakes: &[&Mistake]) -> Vec<Diagnostic> {
    check_plugins::check(&[write(folder, mistakes)], &source::text).diagnostics
}

#[test]
fn nothing_is_wrong_with_the_manifest() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(render(&check(folder.path(), &[]), Colour::Plain), "");
}

#[test]
fn six_mistakes_of_six_stages_are_six_messages_in_order_of_place() {
    let folder = tempfile::tempdir().unwrap();
    let edits = ["range = \"8..=1\"", "class = 1", "numel(z)", "scal<T>", "* 0 + 2000", "numel(none)"];
    let six: Vec<&Mistake> = edits
        .iter()
        .map(|edit| MISTAKES.iter().find(|mistake| mistake.edit.1.contains(edit)).unwrap())
        .collect();
    let checked = check(folder.path(), &six);
    let codes: Vec<&str> = told(&checked).iter().map(|(code, ..)| *code).collect();
    let wanted: Vec<&str> = six.iter().map(|mistake| mistake.code).collect();
    assert_eq!(codes, wanted, "{}", render(&checked, Colour::Plain));
    let starts: Vec<usize> =
        checked.iter().map(|one| one.primary.as_ref().unwrap().span.range.start).collect();
    assert!(starts.is_sorted());
    let compiled = for_compile(&write(folder.path(), &six)).unwrap_err();
    assert_eq!(compiled, checked);
}

fn for_compile(project: &Project) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let warnings = Sink::default();
    let plans = check_plugins::resolve_manifests(project, project.read_manifests()).plan(Purpose::Compile);
    plans.check(&source::text, &warnings).map(|_| warnings.into_diagnostics())
}

fn are_independent(one: &Mistake, other: &Mistake) -> bool {
    let is_within = |a: &Mistake, b: &Mistake| b.edit.0.contains(a.edit.0);
    let words = |mistake: &Mistake| -> BTreeSet<&str> { mistake.about.split_whitespace().collect() };
    !is_within(one, other) && !is_within(other, one) && words(one).is_disjoint(&words(other))
}

#[test]
fn two_mistakes_are_told_as_each_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut problems = Vec::new();
    let mut alone: Vec<BTreeSet<Told>> = Vec::new();
    for mistake in MISTAKES {
        let told: BTreeSet<Told> = told(&check(folder.path(), &[mistake])).into_iter().collect();
        let codes: Vec<&str> = told.iter().map(|(code, ..)| *code).collect();
        if !codes.contains(&mistake.code) {
            problems.push(format!("{:?} alone: {told:?}", mistake.edit.1));
        }
        alone.push(told);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let pairs = (0..MISTAKES.len()).flat_map(|one| (one + 1..MISTAKES.len()).map(move |other| (one, other)));
    let pairs: Vec<(usize, usize)> =
        pairs.filter(|(one, other)| are_independent(&MISTAKES[*one], &MISTAKES[*other])).collect();
    let differs = |&(one, other): &(usize, usize)| {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [one, other].map(|index| &MISTAKES[index]);
        let both: BTreeSet<Told> = told(&check(folder.path(), &[first, second])).into_iter().collect();
        let wanted: BTreeSet<Told> = alone[one].union(&alone[other]).cloned().collect();
        (both != wanted)
            .then(|| format!("{:?} and {:?}:\n  {both:?}\n  {wanted:?}", first.edit.1, second.edit.1))
    };
    problems.extend(pairs.par_iter().filter_map(differs).collect::<Vec<String>>());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn targets_of_the_command_line_go_before_those_of_the_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let told = |own: &str, asked: &str, launch: &str| -> [Vec<&'static str>; 2] {
        let project = write(folder.path(), &[]);
        let text = fs::read_to_string(&project.manifests[0]).unwrap();
        let text = text.replace("[\"sm_80\"]", &format!("[\"{own}\"]"));
        let text = text.replace("grid = [\"blocks(numel(y))\"]", "grid = [\"2 * blocks(numel(y))\"]");
        fs::write(&project.manifests[0], text.replace("shared_bytes = 1024", launch)).unwrap();
        let targets = asked.parse().into_iter().collect();
        let asked =
            ProjectOptions { manifests: project.manifests.clone(), targets, ..ProjectOptions::default() };
        let project = Project::open(asked, folder.path()).unwrap();
        let codes = |found: &[Diagnostic]| found.iter().map(|one| one.code.unwrap().0).collect();
        let compiled = for_compile(&project).unwrap_or_else(|errors| errors);
        [codes(&check_plugins::check(&[project], &source::text).diagnostics), codes(&compiled)]
    };
    for (launch, code) in [("shared_bytes = 200000", "C0303"), ("cluster = [2]", "C0605")] {
        assert_eq!(told("sm_80", "", launch), [[code], [code]]);
        assert_eq!(told("sm_90", "", launch), [[""; 0], [""; 0]]);
        assert_eq!(told("sm_90", "sm_80", launch), [[code], [code]]);
        assert_eq!(told("sm_80", "sm_90", launch), [[""; 0], [""; 0]]);
    }
}

#[test]
fn mistakes_of_a_manifest_without_targets_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let options = &MISTAKES.iter().find(|mistake| mistake.code == "C0604").unwrap();
    let include = &MISTAKES.iter().find(|mistake| mistake.edit.1.contains("\"none\"]")).unwrap();
    let silent = Mistake { edit: ("targets = [\"sm_80\"]\n", ""), code: "", about: "" };
    let checked = check(folder.path(), &[&silent]);
    assert_eq!(render(&checked, Colour::Plain), "");
    let checked = check(folder.path(), &[&silent, options, include]);
    let codes: Vec<&str> = told(&checked).iter().map(|(code, ..)| *code).collect();
    assert_eq!(codes, ["C0604", "C0005"], "{}", render(&checked, Colour::Plain));
    let compiled = for_compile(&write(folder.path(), &[&silent, options])).unwrap_err();
    let messages: Vec<&str> = compiled.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{}", render(&compiled, Colour::Plain));
    assert!(messages.contains(&"missing target"));
}
