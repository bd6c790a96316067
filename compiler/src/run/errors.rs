cubinder_source::diagnostics! {
    pub(super) struct NoRuntimeLibrary { nodes: String, why: String }
    error "cannot find `libcubinder.so` for {nodes}: {why}" {
        help: "pass it with `--plugins`, or set `CUBINDER_RUNTIME_LIBRARY`";
    }

    pub(super) struct NoCodeLibrary { nodes: String, bundle: String, found: Vec<String> }
    error "cannot find the code library with digest {bundle} beside the plan, for {nodes}" {
        note *found: "found {found}";
        help: "put `lib<name>-code.so` of the same compile beside the plan, or pass it with `--plugins`";
    }

    pub(super) struct NoInput<'a> { option: &'a str, name: &'a str, inputs: String, near: Option<&'a str> }
    error "`{option} {name}=...`: the engine has no input `{name}`" {
        note: "its inputs are {inputs}";
        help: "correct the name, or remove the option";
        help ?near: "did you mean `{near}`?";
    }

    pub(super) struct BadData<'a> { name: &'a str, why: String }
    error "the input `{name}`: {why}" {
        help: "correct `--input` or `--inputs`; without them the data is random";
    }

    pub(super) struct OutOfRange<'a> { name: &'a str, shape: String, range: String }
    error "the engine does not accept the shape {shape} of the input `{name}`" {
        note: "it accepts {range}";
        help: "change `--shape {name}=...` or the file, or build the engine with another `--shape`";
    }

    pub(super) struct OtherShape<'a> { name: &'a str, file: String, given: String }
    error "`--shape {name}={given}`, but the file of `{name}` has shape {file}" {
        help: "remove `--shape {name}=...`: a file determines the shape";
    }

    pub(super) struct NoType<'a> { name: &'a str, ty: &'a str }
    error "`{name}` has the type {ty}, which `run` and `compare` do not support" {
        help: "convert the tensor to another type in the model, and build the engine again";
    }

    pub(super) struct NoFormat<'a> { name: &'a str, format: &'a str }
    error "`{name}` has the format {format}, but `run` and `compare` support only LINEAR" {
        help: "build the engine with linear inputs and outputs (the default of `cubinder build`)";
    }

    pub(super) struct NoExpectation { what: String, why: String, help: &'static str }
    error "`{what}`: {why}" {
        help: "{help}";
    }

    pub(super) struct NotComputed { why: String, help: &'static str }
    error "cannot compute the expected outputs: {why}" {
        help: "{help}";
    }

    pub(super) struct NoOutput<'a> { name: &'a str, outputs: String, near: Option<&'a str> }
    error "`--tolerance {name}=...`: the engine has no output `{name}`" {
        note: "its outputs are {outputs}";
        help: "correct the name, or remove the option";
        help ?near: "did you mean `{near}`?";
    }
}
