use crate::diagnostic::Span;

cubinder_source::diagnostics! {
    pub(crate) struct NotTheUsersOption<'o> { option: &'o str, why: &'o str }
    error(NVRTC_OPTION) "the option `{option}` cannot be set" { note: "{why}"; }

    pub(crate) struct NotAnOption<'o> { option: &'o str }
    error(NVRTC_OPTION) "`{option}` is not an NVRTC option" {
        note: "an option starts with `-`; its value may be the next element";
    }

    pub(crate) struct OldStandard<'o> { standard: &'o str }
    error(NVRTC_OPTION) "`{standard}` is too old for the generated header `cubinder.h`" {
        help: "use `--std=c++14` or later; the default is C++17";
    }

    pub(crate) struct MacroOfHeader<'o> { name: &'o str, owner: &'static str }
    error(NVRTC_OPTION) "the option defines `{name}`, a name of {owner}" {
        note: "the macro would also replace this name in the generated header";
        help: "rename or remove the macro";
    }

    pub(crate) struct NotLibraryName<'n> { name: &'n str }
    error "a library cannot be named `{name}`" {
        note: "expected ASCII letters, digits, `_`, `-`, `.` and `+`, starting with a letter, digit or `_`; the file is `lib<name>.so`";
    }

    pub(crate) struct FileAsLibraryName<'n> { name: &'n str, stem: &'n str }
    error "expected the name of a library, found the file name `{name}`" {
        note: "the file would be `lib{name}.so`"; help: "write `{stem}` for `lib{stem}.so`";
    }

    pub(crate) struct RuntimeLibraryName
    error "a plugin library cannot be named `cubinder`" { note: "`libcubinder.so` is the runtime library"; }

    pub(crate) struct OtherKindOfFile { path: String, found: &'static str, expected: &'static str, command: String }
    error "`{path}` is {found}, expected {expected}" { help: "{command}"; }

    pub(crate) struct UnreadableTable { why: String, most: usize, span: Span }
    error(TABLE_FILE) "{why}" {
        at span: "the manifest names it here";
        help: "the path is relative to the manifest's folder; a table has at most {most} bytes";
    }

    pub(crate) struct NotTableFile { path: String, ty: &'static str, why: String, span: Span }
    error(TABLE_FILE) "`{path}` is not a table of `{ty}`" {
        at span: "{why}"; help: "write only the elements, contiguous and little-endian, without a header";
    }

    pub(crate) struct NoConfig { name: &'static str, folder: String }
    error "no `{name}` in `{folder}` or a parent folder" { help: "name a manifest, create a `{name}`, or specify its path: `--config path/to/{name}`"; }

    pub(crate) struct UnmatchedPattern<'p> { what: &'p str, pattern: &'p str, place: Span, folder: String }
    error "no {what} matches `{pattern}`" { at place: "no file found"; note: "paths are relative to `{folder}`"; }
}
