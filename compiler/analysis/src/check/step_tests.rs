//! Checks take few steps, and no more than there are. Steps, not time: these are the same on every machine.

use std::fmt::Write as _;

use super::draft_view::Pools;
use super::{CheckedDraft, Verdict, check_within};
use crate::manifest::Route;
use crate::resolve::Resolved;
use crate::test_support::resolved;

/// How many steps a check took, and what came of it.
fn spent(resolved: &Resolved) -> (usize, CheckedDraft) {
    let pools = Pools::new();
    let left = || pools.proofs.left() + pools.advice.left() + pools.beyond.left();
    let before = left();
    let checked = check_within(resolved, &[], Route::Plugin, &pools);
    (before - left(), checked)
}

/// What a manifest says beside its one input and its one output.
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

/// Neither guards nor arguments nor rules multiply what is to be done.
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

/// What the steps do not suffice for is left to the runtime: never proved, never refuted, and the same in every run.
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
