//! Errors of NVRTC options, library names and files.

use crate::diagnostic::Span;

cubinder_source::diagnostics! {
    pub(crate) struct NotTheUsersOption<'o> { option: &'o str, why: &'o str }
    error(NVRTC_OPTION) "the option `{option}` is not the user's to set" { note: "{why}"; }

    pub(crate) struct NotAnOption<'o> { option: &'o str }
    error(NVRTC_OPTION) "`{option}` is no option of NVRTC" {
        note: "an option begins with `-`; a value may follow as an element of its own";
    }

    pub(crate) struct OldStandard<'o> { standard: &'o str }
    error(NVRTC_OPTION) "`{standard}` is older than what the generated header `cubinder.h` is written in" {
        help: "take `--std=c++14` or later; without the option it is C++17";
    }

    pub(crate) struct MacroOfHeader<'o> { name: &'o str, owner: &'static str }
    error(NVRTC_OPTION) "the option defines `{name}`, which is a name of {owner}" {
        note: "a macro takes the place of the name wherever it stands, in the generated header too";
        help: "give the macro another name, or leave it out";
    }

    pub(crate) struct NotLibraryName<'n> { name: &'n str }
    error "`{name}` cannot name a library" {
        note: "expected ASCII letters, digits, `_`, `-`, `.` and `+`, starting with a letter, a digit or `_`: the file is `lib<name>.so`";
    }

    pub(crate) struct FileAsLibraryName<'n> { name: &'n str, stem: &'n str }
    error "`{name}` is the name of a file, expected that of a library" {
        note: "it would make `lib{name}.so`"; help: "the name `{stem}` makes `lib{stem}.so`";
    }

    pub(crate) struct RuntimeLibraryName
    error "a plugin library cannot be called `cubinder`" { note: "`libcubinder.so` is the library that runs engines"; }

    pub(crate) struct OtherKindOfFile { path: String, found: &'static str, expected: &'static str, command: String }
    error "`{path}` is {found}, expected {expected}" { help: "{command}"; }

    // Files of tables.
    pub(crate) struct UnreadableTable { why: String, most: usize, span: Span }
    error(TABLE_FILE) "{why}" {
        at span: "the manifest names it here";
        help: "the path is relative to the manifest's folder; a table has at most {most} bytes";
    }

    pub(crate) struct NotTableFile { path: String, ty: &'static str, why: String, span: Span }
    error(TABLE_FILE) "`{path}` is no table of `{ty}`" {
        at span: "{why}"; help: "the file holds the elements one after the other, little-endian, without a header";
    }

    // `cubinder.toml`
    pub(crate) struct NoConfig { name: &'static str, folder: String }
    error "no `{name}` in `{folder}` or a folder above it" { help: "write one, or name it: `--config path/to/{name}`"; }

    pub(crate) struct UnmatchedPattern<'p> { what: &'p str, pattern: &'p str, place: Span, folder: String }
    error "no {what} matches `{pattern}`" { at place: "nothing was found"; note: "paths are relative to `{folder}`"; }
}
