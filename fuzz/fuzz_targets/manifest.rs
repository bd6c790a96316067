//! Manifests: no text makes the compiler panic, and every message about one can be shown.
#![no_main]

use cubinder_compiler::diagnostic::{Colour, Diagnostic, Source, render, to_json_lines};
use cubinder_compiler::resolve;
use libfuzzer_sys::fuzz_target;

fn show(diagnostics: &[Diagnostic]) {
    let plain = render(diagnostics, Colour::Plain);
    render(diagnostics, Colour::Ansi);
    let json = to_json_lines(diagnostics).expect("every message can be written as JSON");
    assert_eq!(json.lines().count(), diagnostics.len());
    assert!(!plain.chars().any(|c| c.is_control() && c != '\n'), "a control character: {plain:?}");
}

fuzz_target!(|text: &str| {
    let source = Source::new("manifests/fuzz.toml", text);
    match resolve::compile(&source) {
        Ok(resolved) => {
            show(&resolved.warnings);
            let plugin = &resolved.draft.plugin;
            let tensors = plugin.inputs.len() + plugin.outputs.len();
            for output in &plugin.outputs {
                output.shape.validate(plugin.attributes.len(), tensors).expect("the compiler makes trees");
            }
        }
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "refused without a word");
            show(&diagnostics);
        }
    }
});
