//! `cubinder eval`'s test files: messages can be shown, accepted files run.

use std::sync::LazyLock;

use cubinder_node::eval::{Compiler, Environment, Subject};
use cubinder_node::{cases, eval};
use cubinder_source::diagnostic::Source;

use crate::show::{show_refusal, show_table};
use crate::{Target, seeds};

/// The reader of test files, and their comparison.
pub static TARGET: Target =
    Target::new("cases", run, seeds::cases, include_str!("../../dictionaries/cases.dict"));

static SUBJECT: LazyLock<Subject> = LazyLock::new(|| {
    let text = include_str!("../../../../manifests/circ_pad_plugin.toml");
    let subjects = eval::manifest(&Source::new("manifests/circ_pad_plugin.toml", text));
    subjects.expect("the manifest is valid").list.swap_remove(0)
});

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match cases::read(&Source::new("tests/fuzz.toml", text)) {
        Ok(cases) => {
            let verdicts = cases::run(&cases, &SUBJECT, &Compiler::new(Environment::default()));
            assert_eq!(verdicts.len(), cases.list.len());
            show_table(&cases::table(&verdicts));
        }
        Err(diagnostics) => show_refusal(&diagnostics),
    }
}
