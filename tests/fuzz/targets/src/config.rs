//! `cubinder.toml`: messages can be shown.

use cubinder_manifest::config;
use cubinder_source::diagnostic::Source;

use crate::show::show_refusal;
use crate::{Target, seeds};

/// The reader of `cubinder.toml`.
pub static TARGET: Target =
    Target::new("config", run, seeds::configs, include_str!("../../dictionaries/config.dict"));

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(diagnostics) = config::read(&Source::new("cubinder.toml", text)) {
        show_refusal(&diagnostics);
    }
}
