//! Bounds the steps of checks, which are equal on all machines.

use std::fmt::Write as _;

use super::draft_view::Pools;
use super::{CheckedDraft, UnitCode, Verdict, check_compiled, check_within};
use crate::diagnostic::{Diagnostic, supersede};
use crate::manifest::Route;
use crate::resolve::Resolved;
use crate::rules;
use crate::test_support::{Sample, resolved};

fn spent(resolved: &Resolved) -> (usize, CheckedDraft) {
    let pools = Pools::new();
    let left = || pools.proofs.left() + pools.advice.left() + pools.beyond.left();
    let before = left();
    let checked = check_within(resolved, &[], Route::Plugin, &pools);
    (before - left(), checked)
}

#[derive(Default)]
struct Parts {
    require: Vec<String>,
    guards: Vec<String>,
    args: Vec<String>,
}

impl Parts {
    fn manifest(&self) -> Resolved {
        let mut text = "schema = 1\n[plugin]\nname = \"p\"\nrequire = [\n".to_owned();
        for rule in &self.require {
            let _ = writeln!(text, "{{ expr = \"{rule}\", message = \"m\" }},");
        }
        text += "]\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = \"1..=8\"\n";
        text += "[[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n";
        for (id, guard) in (1..).zip(&self.guards) {
            let _ = writeln!(text, "[[variants]]\nid = {id}\nguard = \"{guard}\"");
        }
        if !self.guards.is_empty() {
            let _ = writeln!(text, "[[variants]]\nid = {}", self.guards.len() + 1);
        }
        text += "[[launches]]\nsource = \"k.cu\"\nkernel = \"k\"\ngrid = [\"ceil_div(numel(y), 256)\"]\n";
        text += "block = [256]\n[launches.args]\nx = \"x\"\ny = \"y\"\n";
        for (index, arg) in self.args.iter().enumerate() {
            let _ = writeln!(text, "a{index} = \"{arg}\"");
        }
        resolved("m.toml", &text)
    }
}

fn some(count: usize, text: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(text).collect()
}

#[test]
fn plausible_manifests_take_few_steps() {
    let guard = |n: usize| format!("x.shape[-1] % {} == 0 and numel(y) < {}", n + 2, 1000 * (n + 3));
    let arg = |n: usize| format!("numel(y) // {} + get(x.shape, {}, 1)", n + 2, n % 8);
    let rule = |n: usize| format!("x.shape[-1] % {} != 1 or x.rank > {}", n + 2, n % 8);
    for (what, parts, most) in [
        ("guards", Parts { guards: some(60, guard), ..Parts::default() }, 200_000),
        ("arguments", Parts { args: some(60, arg), ..Parts::default() }, 7_000_000),
        ("rules", Parts { require: some(20, rule), ..Parts::default() }, 300_000),
    ] {
        let (steps, _) = spent(&parts.manifest());
        println!("{what}: {steps}");
        assert!(steps <= most, "{what}: {steps}");
    }
}

#[test]
fn what_steps_do_not_suffice_for_is_open() {
    let parts = Parts {
        guards: some(40, |n| format!("x.shape[-1] % {} == 0", n + 2)),
        args: some(40, |n| format!("numel(y) // (x.shape[0] * {} - x.shape[-1])", n + 2)),
        ..Parts::default()
    };
    let manifest = parts.manifest();
    let whole = check_within(&manifest, &[], Route::Plugin, &Pools::new());
    let little = check_within(&manifest, &[], Route::Plugin, &Pools::with_steps(20_000, 0, 0));
    assert_eq!(little, check_within(&manifest, &[], Route::Plugin, &Pools::with_steps(20_000, 0, 0)));
    let places = |checked: &CheckedDraft| -> Vec<String> {
        checked.obligations.iter().map(|obligation| obligation.statement.clone()).collect()
    };
    assert_eq!(places(&whole), places(&little));
    let open = little.obligations.iter().filter(|obligation| obligation.verdict == Verdict::Open).count();
    assert!(open > 0);
    for (more, less) in whole.obligations.iter().zip(&little.obligations) {
        let contrary = matches!(
            (&more.verdict, &less.verdict),
            (Verdict::Proved, Verdict::Refuted(_)) | (Verdict::Refuted(_), Verdict::Proved)
        );
        assert!(!contrary, "{}: {:?}, {:?}", more.statement, more.verdict, less.verdict);
    }
    let none = check_within(&manifest, &[], Route::Plugin, &Pools::with_steps(0, 0, 0));
    assert!(none.obligations.iter().all(|obligation| !matches!(obligation.verdict, Verdict::Refuted(_))));
}

#[test]
fn findings_about_compiled_kernels_replace_those_of_a_check_without_steps() {
    let launch = "block = [256]\nwhen = \"x.shape[-1] > 4\"";
    let manifest = resolved("m.toml", &Sample { launch, ..Sample::PLAIN }.text());
    let read_only = ["x".to_owned(), "y".to_owned()];
    let compiled =
        UnitCode { args: &[], read_only: &read_only, number_bytes: &[], cluster: None, codes: Vec::new() };
    let later = check_compiled(&manifest, &[], Route::Plugin, &[compiled]).diagnostics;
    let about_output = |found: &[Diagnostic]| -> Vec<String> {
        let found = found.iter().filter(|found| found.code == Some(rules::UNWRITTEN_OUTPUT));
        found.map(|found| format!("{:?}", found.primary.as_ref().map(|label| &label.text))).collect()
    };
    let mut labels = Vec::new();
    for pools in [Pools::new(), Pools::with_steps(0, 0, 0)] {
        let mut found = check_within(&manifest, &[], Route::Plugin, &pools).diagnostics;
        labels.extend(about_output(&found));
        supersede(&mut found, &later);
        assert_eq!(about_output(&found), [""; 0]);
    }
    assert!(labels.len() == 2 && labels[0] != labels[1], "{labels:?}");
    assert_eq!(about_output(&later).len(), 1);
}
