//! Every key, value, name and number of the good manifests, damaged one at a time: each mutant is refused with a place on the
//! damage, or changes what is compiled. What passes both ways is a part of the manifest that nothing reads.

// Clippy knows test functions, not their helpers.
#![allow(clippy::expect_used, clippy::panic, unreachable_pub)]

mod damage;
mod judge;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use cubinder_compiler::diagnostic::{Colour, render};
use damage::{Damage, damages};
use judge::{CONFIG, Subject, is_on, manifests};
use rayon::prelude::*;
use tempfile::TempDir;

/// A mutant that nothing says anything about, and why that is right.
struct Exemption {
    /// Whether it is about this damage.
    covers: fn(&Damage, &str) -> bool,
    why: &'static str,
}

/// Each must be needed.
const EXEMPTIONS: [Exemption; 0] = [];

enum Fate {
    Refused,
    Changed,
    /// An error, but not where the damage is.
    Elsewhere(String),
    /// Nothing happened.
    Survived,
}

fn fate(subject: &Subject, sound: &judge::Print, damage: &Damage) -> Fate {
    match subject.print(&damage.apply(&subject.text)) {
        Ok(print) if print == *sound => Fate::Survived,
        Ok(_) => Fate::Changed,
        Err(found) if found.iter().any(|found| is_on(found, &subject.path, damage)) => Fate::Refused,
        Err(found) => Fate::Elsewhere(render(&found, Colour::Plain)),
    }
}

/// A folder with the configuration of all subjects.
fn configured() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("cubinder.toml");
    std::fs::write(&config, CONFIG).expect("it is written");
    (folder, config)
}

#[test]
fn every_damage_is_refused_where_it_is_or_changes_what_is_compiled() {
    let (_folder, config) = configured();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unseen = String::new();
    let mut needed = vec![false; EXEMPTIONS.len()];
    for path in manifests() {
        let subject = Subject::new(&path, &config);
        let sound = subject.print(&subject.text);
        let sound = sound.unwrap_or_else(|errors| panic!("{}", render(&errors, Colour::Plain)));
        let damages = damages(&subject.text);
        let fates: Vec<Fate> = damages.par_iter().map(|damage| fate(&subject, &sound, damage)).collect();
        for (damage, fate) in damages.iter().zip(fates) {
            let covers = |exemption: &Exemption| (exemption.covers)(damage, subject.name());
            let counted = match fate {
                Fate::Refused => "refused",
                Fate::Changed => "changed",
                Fate::Survived => match EXEMPTIONS.iter().position(covers) {
                    Some(exemption) => {
                        needed[exemption] = true;
                        "exempt"
                    }
                    None => {
                        let _ = writeln!(unseen, "{}", describe(&subject, damage, "nothing happens"));
                        "survived"
                    }
                },
                Fate::Elsewhere(found) => {
                    let _ = writeln!(unseen, "{}\n{found}", describe(&subject, damage, "told elsewhere"));
                    "elsewhere"
                }
            };
            *counts.entry(counted).or_default() += 1;
        }
    }
    println!("{counts:?}");
    assert!(counts.values().sum::<usize>() > 1000, "too few damages to mean anything: {counts:?}");
    assert!(unseen.is_empty(), "{counts:?}\n{unseen}");
    for (exemption, needed) in EXEMPTIONS.iter().zip(needed) {
        assert!(needed, "no longer needed: {}", exemption.why);
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
