cubinder_source::diagnostics! {
    pub(crate) struct NothingOfKind { kind: &'static str, searched: Vec<String>, install: &'static str }
    error "cannot find {kind}" {
        note *searched: "{searched}";
        help: "{install}; or name an installation with `--with PATH`";
    }

    pub(crate) struct HomeWithoutProgram { variable: &'static str, home: String, program: &'static str }
    error "`{variable}` is `{home}`, which has no `bin/{program}`" {
        help: "set it to the folder of an unpacked release, unset it, or choose an installation with `--with`";
    }

    pub(crate) struct NotATensorRt { path: String, why: String }
    error "cannot find TensorRT in `{path}`" {
        note: "{why}";
        help: "pass `rtx`, `tensorrt`, `tensorrt_rtx`, `trtexec`, a Python with TensorRT's module, or the folder of an unpacked release";
    }

    pub(crate) struct BrokenPython { python: String, why: String }
    error "cannot use the Python `{python}`: {why}" {
        help: "repair it, correct or unset `CUBINDER_PYTHON`, or select another one: `--with PATH` of `cubinder build`";
    }

    pub(crate) struct NoTemporaryFolder { error: std::io::Error }
    error "cannot write to the folder of temporary files: {error}" {
        help: "set `TMPDIR` to a writable folder, or free disk space";
    }

    pub(crate) struct NotStarted { program: String, error: std::io::Error }
    error "cannot start `{program}`: {error}" {
        help: "repair the installation, or choose another one with `--with`";
    }

    pub(crate) struct UnknownEvent { program: String, line: String }
    error "`{program}` printed a result that cannot be read: `{line}`" {
        help: "use a release of TensorRT that docs/support.md lists; `--with PATH` selects one";
    }

    pub(crate) struct RejectsPlugins { found: String, why: &'static str, help: &'static str }
    error "{found} cannot build engines with plugins" {
        note: "{why}";
        help: "{help}";
    }

    pub(crate) struct NoSuchOption { option: &'static str, product: &'static str, why: &'static str, help: &'static str }
    error "`{option}` is not supported by {product}" {
        note: "{why}";
        help: "{help}";
    }

    pub(crate) struct NotBuilt { product: &'static str, model: String, cause: String, words: Vec<String>, help: String }
    error "{product} cannot build `{model}`: {cause}" {
        note *words: "{product} reported: {words}";
        help: "{help}";
    }

    pub(crate) struct NotRun { product: &'static str, plan: String, cause: String, words: Vec<String>, help: String }
    error "{product} cannot run `{plan}`: {cause}" {
        note *words: "{product} reported: {words}";
        help: "{help}";
    }

    pub(crate) struct NoBindings { found: String, install: &'static str, program: String }
    error "running an engine needs TensorRT's Python bindings, found only {found}" {
        help: "{install}, or pass a Python that has them: `--with PATH`; the program runs the engine with `{program}`";
    }

    pub(crate) struct NoRoom { file: String, error: std::io::Error }
    error "cannot exchange a tensor with TensorRT: `{file}`: {error}" {
        help: "free disk space, or set `TMPDIR` to a folder with more";
    }
}
