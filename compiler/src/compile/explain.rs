//! Adds manifest locations to NVRTC errors that a manifest causes: undeclared names, options, include folders.
//! Decides on [`Cause`]s, never on texts.

use std::ops::Range;

use cubinder_cuda_text::cuda;
use cubinder_manifest::manifest::{Located, Manifest};
use cubinder_manifest::nvrtc_option::defined_names;
use cubinder_manifest::resolve::Resolved;
use cubinder_nvrtc::codegen::TranslationUnit;
use cubinder_nvrtc::nvrtc::{Author, Cause, CompileMessage};
use cubinder_source::diagnostic::{Code, Diagnostic, Span, suggest};
use cubinder_source::rules;

pub(super) fn with_places(plugin: &Resolved, message: &CompileMessage) -> Diagnostic {
    let CompileMessage { cause, author, diagnostic } = message;
    let error = diagnostic.clone();
    let place = |range: Range<usize>| Span::new(&plugin.source, range);
    let compile = &plugin.manifest.compile;
    if *author == Author::Compiler {
        return defined_elsewhere(plugin, error);
    }
    match cause {
        Cause::Option(reported) => {
            let named = compile.options.iter().filter(|option| reported.contains(&option.value));
            match named.max_by_key(|option| option.value.len()) {
                Some(option) => {
                    error.at(place(option.range.clone()), "this option").help("correct or remove it")
                }
                None => error,
            }
        }
        Cause::MissingFile(_) if *author == Author::User => {
            let error = match compile.include.first().zip(compile.include.last()) {
                Some((first, last)) => {
                    let folders = first.range.start..last.range.end;
                    error.related(place(folders), "these folders were also searched")
                }
                None => error,
            };
            let help = "specify the file's folder with `--include FOLDER`, or in `include` of `[compile]`";
            if error.help.is_none() { error.help(help) } else { error }
        }
        Cause::NoMember { scope, member } if scope.contains("manifest__members") => {
            let message = format!("unknown type parameter, constant or table `{member}`");
            with_similar(plugin, Diagnostic { message, ..error }, member, "manifest::")
        }
        Cause::UndefinedName(name) if error.code == Some(rules::KERNEL_NOT_FOUND) => {
            with_similar(plugin, error, name, "")
        }
        _ => error,
    }
}

/// Replaces an error in a foreign header by one about macro-defining options, if any.
fn defined_elsewhere(plugin: &Resolved, error: Diagnostic) -> Diagnostic {
    let all = &plugin.manifest.compile.options;
    let defining = defined_names(all.iter().map(|option| option.value.as_str())).into_iter();
    let places =
        defining.filter_map(|(index, _)| Some(Span::new(&plugin.source, all.get(index)?.range.clone())));
    let mut places = places.collect::<Vec<_>>().into_iter();
    let Some(first) = places.next() else { return error };
    let option = Diagnostic::error("an option defines a macro whose name an external header uses")
        .code(rules::NVRTC_OPTION)
        .at(first, "the macro replaces each occurrence of the name");
    let option = places.fold(option, |option, place| option.related(place, "or this one"));
    let option = error.notes.into_iter().fold(option.note(error.message), Diagnostic::note);
    option.help("rename or remove the macro")
}

/// Suggests the similar declared name, which kernels write after `prefix`.
fn with_similar(plugin: &Resolved, error: Diagnostic, name: &str, prefix: &str) -> Diagnostic {
    let declared = names(&plugin.manifest);
    let near = suggest(name, declared.iter().map(|declared| declared.value.as_str()));
    match near.and_then(|near| declared.iter().find(|declared| declared.value == near)) {
        Some(Located { value, range, .. }) => error
            .related(Span::new(&plugin.source, range.clone()), format!("`{value}` is declared here"))
            .help(format!("did you mean `{prefix}{value}`?")),
        None => error,
    }
}

pub(super) fn with_what_was_read(
    mut mistakes: Vec<Diagnostic>,
    reported: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    if mistakes.is_empty() {
        return reported;
    }
    // A missing or mismatched kernel causes follow-up errors.
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
    mistakes.extend(reported.into_iter().filter(|error| !is_known(error)));
    mistakes
}

pub(super) fn with_kernel(errors: Vec<Diagnostic>, unit: &TranslationUnit) -> Vec<Diagnostic> {
    let Some(range) = cuda::parameters_of(&unit.kernel, &unit.source.text) else { return errors };
    let place = Span::new(&unit.source, range);
    let with_place = |error: Diagnostic| match error.related.is_empty() {
        true => error.related(place.clone(), "the kernel's parameters"),
        false => error,
    };
    errors.into_iter().map(with_place).collect()
}

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

    fn explained(cause: Cause, diagnostic: Diagnostic) -> Diagnostic {
        let plugin = cubinder_manifest::resolve::compile(&Source::new("m.toml", MANIFEST)).unwrap();
        with_places(&plugin, &CompileMessage { cause, author: Author::User, diagnostic })
    }

    fn no_member(scope: &str) -> Cause {
        Cause::NoMember { scope: scope.to_owned(), member: "BLOK".to_owned() }
    }

    #[test]
    fn the_place_in_the_manifest_is_shown() {
        let reported = "unrecognized option --fast found";
        let option = format!("NVRTC 13.0 rejects an option: {reported}");
        let member = "class `cubinder::manifest__members<void>` has no member `BLOK`";
        let texts = [
            explained(
                Cause::Option(reported.to_owned()),
                Diagnostic::error(option).code(rules::NVRTC_OPTION),
            ),
            explained(
                Cause::MissingFile("c.cuh".to_owned()),
                Diagnostic::error("cannot open source file `c.cuh`").code(rules::KERNEL_ERROR),
            ),
            explained(
                no_member("cubinder::manifest__members<void>"),
                Diagnostic::error(member).code(rules::KERNEL_ERROR),
            ),
            explained(
                Cause::UndefinedName("BLOCKS".to_owned()),
                Diagnostic::error("`k<BLOCKS>` is not a kernel of `k.cu`")
                    .code(rules::KERNEL_NOT_FOUND)
                    .note("NVRTC reports: identifier `BLOCKS` is undefined"),
            ),
        ];
        let texts = texts.map(|error| render_one(&error, Colour::Plain));
        insta::assert_snapshot!(texts.join("\n"));
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        for (cause, code) in [
            (Cause::UndefinedName("BLOK".to_owned()), rules::KERNEL_ERROR),
            (no_member("S"), rules::KERNEL_ERROR),
            (Cause::Option("--other".to_owned()), rules::NVRTC_OPTION),
            (Cause::Other, rules::KERNEL_NOT_FOUND),
        ] {
            let error = Diagnostic::error("wrong").code(code);
            assert_eq!(explained(cause, error.clone()), error);
        }
    }
}
