//! What the compiler says about things that come from the manifest, with their places there.
//!
//! Owns which of NVRTC's messages have their cause in a manifest: a name that it does not declare, an option, an include folder.
//! Never makes an error of its own. The wording of NVRTC's messages is that of 13.0; another one costs the place only.

use std::ops::Range;

use cubinder_cuda_text::cuda;
use cubinder_manifest::manifest::{Located, Manifest};
use cubinder_manifest::nvrtc_option::defined_names;
use cubinder_manifest::resolve::Resolved;
use cubinder_nvrtc::codegen::TranslationUnit;
use cubinder_nvrtc::nvrtc::HEADER_DOES_NOT_COMPILE;
use cubinder_source::diagnostic::{Code, Diagnostic, Span, suggest};
use cubinder_source::rules;

/// An error of the compiler with the places in the manifest that explain it.
pub(super) fn with_places(plugin: &Resolved, error: Diagnostic) -> Diagnostic {
    let place = |range: Range<usize>| Span::new(&plugin.source, range);
    let compile = &plugin.manifest.compile;
    if error.code == Some(rules::NVRTC_OPTION) && error.primary.is_none() {
        let named = compile.options.iter().filter(|option| error.message.contains(&option.value));
        return match named.max_by_key(|option| option.value.len()) {
            Some(option) => {
                error.at(place(option.range.clone()), "this option").help("correct it, or take it out")
            }
            None => error,
        };
    }
    if error.code == Some(rules::KERNEL_ERROR) && error.message.ends_with(HEADER_DOES_NOT_COMPILE) {
        let options = compile.options.iter().map(|option| option.value.as_str());
        let defining = defined_names(options).into_iter().filter_map(|(index, _)| compile.options.get(index));
        let defining: Vec<_> = defining.collect();
        let Some((first, others)) = defining.split_first() else { return error };
        let notes = error.notes;
        let option = Diagnostic::error("an option defines a name that a header uses which is not yours")
            .code(rules::NVRTC_OPTION)
            .at(place(first.range.clone()), "a macro takes the place of the name wherever it stands");
        let option = others
            .iter()
            .fold(option, |error, option| error.related(place(option.range.clone()), "or this one"));
        let option = notes.into_iter().fold(option.note(error.message), Diagnostic::note);
        return option.help("give the macro another name, or leave it out");
    }
    if error.message.starts_with("cannot open source file") {
        let folders = compile.include.first().zip(compile.include.last());
        return match folders {
            Some((first, last)) => {
                error.related(place(first.range.start..last.range.end), "looked for in these folders too")
            }
            None => error,
        };
    }
    let Some((name, is_member)) = unknown_name(&error) else { return error };
    let known = names(&plugin.manifest);
    let error = match is_member {
        true => Diagnostic {
            message: format!("the manifest has no type parameter, constant or table `{name}`"),
            ..error
        },
        false => error,
    };
    let near = suggest(&name, known.iter().map(|known| known.value.as_str()));
    let near = near.and_then(|near| known.iter().find(|known| known.value == near));
    match near {
        Some(near) => {
            let meant = if is_member { format!("manifest::{}", near.value) } else { near.value.clone() };
            let label = format!("`{}` is declared here", near.value);
            error.related(place(near.range.clone()), label).help(format!("did you mean `{meant}`?"))
        }
        None => error,
    }
}

/// What the light reader of CUDA text is sure of, in the place of what the compiler says for the same reason.
pub(super) fn with_what_was_read(mistakes: Vec<Diagnostic>, said: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if mistakes.is_empty() {
        return said;
    }
    // A kernel that is not there or takes something else makes the compiler stumble over its text.
    let misled = |code: Code| {
        [rules::KERNEL_NOT_FOUND, rules::ARGUMENT_MISFIT, rules::PARAMETER_NAMES].contains(&code)
    };
    let is_misled = mistakes.iter().any(|mistake| mistake.code.is_some_and(misled));
    let of_arguments = [
        rules::KERNEL_NOT_FOUND,
        rules::UNKNOWN_PARAMETER,
        rules::MISSING_ARGUMENT,
        rules::ARGUMENT_MISFIT,
        rules::PARAMETER_NAMES,
    ];
    let is_known = |error: &Diagnostic| match error.code {
        Some(rules::KERNEL_ERROR) => is_misled,
        Some(code) => of_arguments.contains(&code),
        None => false,
    };
    let mut told = mistakes;
    told.extend(said.into_iter().filter(|error| !is_known(error)));
    told
}

/// Errors about arguments, with the place of the kernel's parameters.
pub(super) fn with_kernel(errors: Vec<Diagnostic>, unit: &TranslationUnit) -> Vec<Diagnostic> {
    let Some(range) = cuda::parameters_of(&unit.kernel, &unit.source.text) else { return errors };
    let place = Span::new(&unit.source, range);
    let told = |error: Diagnostic| match error.related.is_empty() {
        true => error.related(place.clone(), "the kernel's parameters"),
        false => error,
    };
    errors.into_iter().map(told).collect()
}

/// The name that the compiler does not know, where the manifest should declare it, and whether the kernel takes it from
/// `manifest::`.
fn unknown_name(error: &Diagnostic) -> Option<(String, bool)> {
    let quoted = |text: &str| text.split('`').nth(1).map(str::to_owned);
    if let Some((_, member)) = error.message.split_once("has no member ")
        && error.message.contains("manifest__members")
    {
        return quoted(member).map(|name| (name, true));
    }
    let of_kernel = error.code == Some(rules::KERNEL_NOT_FOUND);
    let undefined = error.notes.iter().find_map(|note| note.split_once("identifier ")).filter(|_| of_kernel);
    undefined.and_then(|(_, name)| quoted(name)).map(|name| (name, false))
}

/// The names that kernels and their template arguments can use.
fn names(manifest: &Manifest) -> Vec<&Located<String>> {
    let of_variants = manifest.variants.iter().flat_map(|variant| &variant.constants);
    let constants = manifest.constants.iter().chain(of_variants).map(|decl| &decl.name);
    let types = manifest.types.iter().map(|decl| &decl.name);
    let formats = manifest.formats.iter().map(|decl| &decl.name);
    let specialized =
        manifest.attributes.iter().filter(|decl| decl.specialize.is_some()).map(|decl| &decl.name);
    let tables = manifest.tables.iter().map(|decl| &decl.name);
    types.chain(formats).chain(specialized).chain(constants).chain(tables).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cubinder_source::diagnostic::{Colour, Source, render_one};

    const MANIFEST: &str = r#"schema = 1
plugin = { name = "p" }
inputs = [{ name = "x", type = "T" }]
outputs = [{ name = "y", type = "T", shape = "x.shape" }]
types = { T = ["f32"] }
constants = { BLOCK = 256 }
compile = { include = ["a", "b"], options = ["-DA", "--fast"] }
launches = [{ source = "k.cu", kernel = "k<T>", grid = [1], block = ["BLOCK"], args = { x = "x", y = "y" } }]
"#;

    fn explained(error: Diagnostic) -> String {
        let plugin = cubinder_manifest::resolve::compile(&Source::new("m.toml", MANIFEST)).unwrap();
        render_one(&with_places(&plugin, error), Colour::Plain)
    }

    #[test]
    fn the_place_in_the_manifest_is_shown() {
        let option = "NVRTC 13.0 does not take an option: unrecognized option --fast found";
        let member = "class `cubinder::manifest__members<void>` has no member `BLOK`";
        let texts = [
            explained(Diagnostic::error(option).code(rules::NVRTC_OPTION)),
            explained(Diagnostic::error("cannot open source file `c.cuh`").code(rules::KERNEL_ERROR)),
            explained(Diagnostic::error(member).code(rules::KERNEL_ERROR)),
            explained(
                Diagnostic::error("`k<BLOCKS>` is not a kernel of `k.cu`")
                    .code(rules::KERNEL_NOT_FOUND)
                    .note("NVRTC says: identifier `BLOCKS` is undefined"),
            ),
        ];
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        let plugin = cubinder_manifest::resolve::compile(&Source::new("m.toml", MANIFEST)).unwrap();
        for error in [
            Diagnostic::error("identifier `BLOK` is undefined").code(rules::KERNEL_ERROR),
            Diagnostic::error("class `S` has no member `BLOK`").code(rules::KERNEL_ERROR),
            Diagnostic::error("NVRTC 13.0 does not take an option: --other").code(rules::NVRTC_OPTION),
            Diagnostic::error("`k<q>` is not a kernel").code(rules::KERNEL_NOT_FOUND).note("identifier"),
        ] {
            assert_eq!(with_places(&plugin, error.clone()), error);
        }
    }
}
