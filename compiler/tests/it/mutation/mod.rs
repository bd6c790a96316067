//! Damages good manifests one key, value, name or number at a time. Each mutant must change the output, or be rejected
//! with an error that shows the damage ([`judge::is_on`]): every part matters.

mod damage;
mod judge;
mod workshop;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use cubinder_manifest::resolve::ArgDraftValue;
use cubinder_model::ArgValue;
use cubinder_source::diagnostic::{Colour, render};
use rayon::prelude::*;

use damage::{Damage, damages};
use judge::{CONFIG, Print, Subject, is_on, manifests, model};
use workshop::{Tools, Workshop};

struct Exemption {
    key: &'static str,
    why: &'static str,
}

const EXEMPTIONS: [Exemption; 0] = [];

/// Two tests that compile the corpus share one cache.
static TOOLS: LazyLock<Option<Tools>> = LazyLock::new(Tools::find);

enum Fate {
    Refused,
    /// NVRTC's input changes too.
    Changed {
        for_the_compiler: bool,
    },
    Elsewhere(String),
    Survived,
}

struct Examined {
    subject: Subject,
    fates: Vec<(usize, Damage, Fate)>,
}

/// Damages of one kind to one key that a run examines: the first ones. `CUBINDER_ALL_MUTANTS` (set by `cargo xtask test
/// --release-checks`) removes the limit.
const DAMAGES_OF_A_KIND: usize = 3;

static LIMIT: LazyLock<usize> = LazyLock::new(|| match std::env::var_os("CUBINDER_ALL_MUTANTS") {
    Some(_) => usize::MAX,
    None => DAMAGES_OF_A_KIND,
});

static EXAMINED: LazyLock<Vec<Examined>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("cubinder.toml");
    std::fs::write(&config, CONFIG).expect("it is written");
    let mut examined: BTreeMap<(String, &str), usize> = BTreeMap::new();
    let mut is_examined = |damage: &Damage| {
        let count = examined.entry((damage.key.clone(), damage.what)).or_default();
        *count += 1;
        *count <= *LIMIT
    };
    let mut examine = |path: &PathBuf| {
        let subject = Subject::new(path, &config);
        let damages = damages(&subject.text).into_iter().enumerate();
        let damages = damages.filter(|(_, damage)| is_examined(damage)).collect();
        examine(subject, damages)
    };
    manifests().iter().map(&mut examine).collect()
});

fn examine(subject: Subject, damages: Vec<(usize, Damage)>) -> Examined {
    let sound = subject.print(&subject.text);
    let sound = sound.unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)));
    let judged = |(index, damage): (usize, Damage)| {
        let fate = fate(&subject, &sound, &damage);
        (index, damage, fate)
    };
    let fates = damages.into_par_iter().map(judged).collect();
    Examined { subject, fates }
}

fn fate(subject: &Subject, sound: &Print, damage: &Damage) -> Fate {
    match subject.print(&damage.apply(&subject.text)) {
        Ok(print) if print == *sound => Fate::Survived,
        Ok(print) => Fate::Changed { for_the_compiler: print.code != sound.code || print.plan != sound.plan },
        Err(found) if found.iter().any(|found| is_on(found, &subject.path, damage, &subject.text)) => {
            Fate::Refused
        }
        Err(found) => Fate::Elsewhere(render(&found, Colour::Plain)),
    }
}

#[test]
fn every_damage_is_refused_where_it_is_or_changes_what_is_compiled() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unseen = String::new();
    let mut needed = vec![false; EXEMPTIONS.len()];
    for Examined { subject, fates } in &*EXAMINED {
        for (_, damage, fate) in fates {
            let exemption = EXEMPTIONS.iter().position(|exemption| exemption.key == damage.key);
            let counted = match (fate, exemption) {
                (Fate::Refused, _) => "refused",
                (Fate::Changed { .. }, _) => "changed",
                (Fate::Survived, Some(exemption)) => {
                    needed[exemption] = true;
                    "exempt"
                }
                (Fate::Survived, None) => {
                    let _ = writeln!(unseen, "{}", describe(subject, damage, "nothing happens"));
                    "survived"
                }
                (Fate::Elsewhere(found), _) => {
                    let _ = writeln!(unseen, "{}\n{found}", describe(subject, damage, "told elsewhere"));
                    "elsewhere"
                }
            };
            *counts.entry(counted).or_default() += 1;
        }
    }
    println!("{counts:?}");
    let least = if *LIMIT == usize::MAX { 3000 } else { 500 };
    assert!(counts.values().sum::<usize>() > least, "too few mutations: {counts:?}");
    assert!(unseen.is_empty(), "{counts:?}\n{unseen}");
    for (exemption, needed) in EXEMPTIONS.iter().zip(needed) {
        assert!(needed, "no longer needed: {}", exemption.why);
    }
}

#[test]
fn the_corpus_is_right_without_a_word() {
    for Examined { subject, .. } in &*EXAMINED {
        assert_eq!(render(&subject.said(), Colour::Plain), "", "{}", subject.name());
    }
}

/// Compiles every mutant that changes NVRTC's input, and a sample of the others.
#[test]
fn what_changes_is_another_bundle_or_refused_by_the_compiler_where_it_is() {
    const EVERY: usize = 16;
    let Some(tools) = &*TOOLS else { return };
    let mut compiled = 0;
    let mut unseen = String::new();
    for Examined { subject, fates } in &*EXAMINED {
        let chosen: Vec<&Damage> = fates
            .iter()
            .filter(|(index, _, fate)| match fate {
                Fate::Changed { for_the_compiler } => *for_the_compiler || index % EVERY == 0,
                _ => false,
            })
            .map(|(_, damage, _)| damage)
            .collect();
        compiled += chosen.len();
        let share = chosen.len().div_ceil(rayon::current_num_threads()).max(1);
        let found: Vec<String> =
            chosen.par_chunks(share).flat_map(|share| wrong(tools, subject, share)).collect();
        unseen.extend(found);
    }
    println!("{compiled} mutants compiled");
    assert!(unseen.is_empty(), "{unseen}");
    let least = if *LIMIT == usize::MAX { 100 } else { 50 };
    assert!(compiled > least, "only {compiled} compiled");
}

fn wrong(tools: &Tools, subject: &Subject, damages: &[&Damage]) -> Vec<String> {
    let workshop = Workshop::new(tools);
    let place = workshop.place_of(&subject.path);
    let sound = workshop.compile(&place, &subject.text).expect("the corpus compiles");
    let problem = |damage: &&Damage| match workshop.compile(&place, &damage.apply(&subject.text)) {
        Ok(bundle) if bundle == sound && !leaves_no_trace(damage, &subject.text) => {
            Some(describe(subject, damage, "the bundle is the same") + "\n")
        }
        Ok(_) => None,
        Err(found) if found.iter().any(|found| is_on(found, &place, damage, &subject.text)) => None,
        Err(found) => {
            let found = render(&found, Colour::Plain);
            Some(format!("{}\n{found}\n", describe(subject, damage, "compiled, and reported elsewhere")))
        }
    };
    damages.iter().filter_map(problem).collect()
}

/// Returns whether the damage affects only errors, or code for other GPUs than [`judge::CONFIG`]'s.
fn leaves_no_trace(damage: &Damage, text: &str) -> bool {
    let before = |bytes: usize| text.get(damage.range.start.saturating_sub(bytes)..damage.range.start);
    let taken = text.get(damage.range.clone()).unwrap_or_default();
    match damage.key.as_str() {
        "compile.min_driver" => true,
        // Code for 9.0 does not run on 8.9.
        "code.cubin" => {
            damage.replacement.is_empty() && taken.contains(".sm_90.") && !taken.contains(".sm_80.")
        }
        // Both accept equal tensors; only addresses are passed.
        "code.parameters" => damage.replacement.is_empty() && taken == "4" && before(5) == Some("float"),
        _ => false,
    }
}

#[test]
fn the_bundle_holds_the_model() {
    let Some(tools) = &*TOOLS else { return };
    let workshop = Workshop::new(tools);
    for path in manifests() {
        let source = cubinder_source::source::text(&path).expect("a text");
        let draft = cubinder_manifest::resolve::compile(&source).expect("the corpus is valid").draft;
        let bundle = workshop.bundle(&workshop.place_of(&path), &source.text);
        let [plugin] = bundle.plugins.as_slice() else { panic!("one plugin") };
        let mut bare = plugin.clone();
        for unit in &draft.units {
            let launch = bare.variants[unit.variant].launch_mut(unit.step).unwrap();
            launch.code.clear();
            // The kernel decides their order and types.
            let args = std::mem::take(&mut launch.args);
            assert_eq!(args.len(), unit.args.len());
            for arg in args {
                let drafted = unit.args.iter().find(|drafted| drafted.name == arg.name).expect("it exists");
                assert_eq!(value(&arg.value), drafted_value(&drafted.value));
            }
        }
        assert_eq!(bare, draft.plugin, "{}", path.display());
        assert!(model(&draft).contains(&format!("{:?}", draft.plugin)));
    }
}

fn value(value: &ArgValue) -> String {
    match value {
        ArgValue::Tensor(tensor) | ArgValue::ReadTensor(tensor) => format!("tensor {tensor}"),
        ArgValue::Scratch(index) => format!("scratch {index}"),
        ArgValue::Scalar { expr, .. } | ArgValue::Array { expr, .. } => format!("{expr:?}"),
    }
}

fn drafted_value(value: &ArgDraftValue) -> String {
    match value {
        ArgDraftValue::Tensor(tensor) => format!("tensor {tensor}"),
        ArgDraftValue::Scratch(index) => format!("scratch {index}"),
        ArgDraftValue::Expr { expr, .. } => format!("{expr:?}"),
    }
}

fn describe(subject: &Subject, damage: &Damage, fate: &str) -> String {
    let text = &subject.text;
    let line = text[..damage.range.end].matches('\n').count() + 1;
    let shown = text.lines().nth(line - 1).unwrap_or_default();
    let (was, is) = (&text[damage.range.clone()], &damage.replacement);
    let (name, what, key) = (subject.name(), damage.what, &damage.key);
    format!("{name}:{line}: `{key}`: {what}, `{was}` is `{is}`: {fate}\n    {shown}")
}
