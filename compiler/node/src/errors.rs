use cubinder_model::MAX_VARIANT_ID;
use cubinder_model::fit::ComputeCapability;
use cubinder_model::validate::{MAX_TUNED_BYTES, MAX_TUNED_DEVICES, MAX_TUNED_EXTENTS, MAX_TUNED_POINTS};

use crate::diagnostic::Span;

cubinder_source::diagnostics! {
    pub(crate) struct WrongValue { key: String, why: String, span: Span }
    error(WRONG_VALUE) "`{key}`: {why}" { at span: ""; }

    pub(crate) struct NoCases { start: Span }
    error "the file has no cases" { at start: "expected `[[cases]]`"; }
}

cubinder_source::diagnostics! {
    pub(crate) struct UnknownName<'n> { what: &'n str, name: &'n str, known: String, near: Option<&'n str> }
    error "unknown {what} `{name}`" { note: "{known}"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct FixedAttribute<'n> { name: &'n str }
    error "the attribute `{name}` of a node in an engine cannot be changed" {
        help: "evaluate the manifest or the library with other values";
    }

    pub(crate) struct WrongAttribute<'n> { name: &'n str, why: String }
    error "the attribute `{name}`: {why}" {}

    pub(crate) struct MissingAttribute<'n> { name: &'n str, why: String }
    error "{why}" { help: "specify it: `--attr {name}=...`"; }

    pub(crate) struct AlignmentsDiffer<'n> { name: &'n str, output: &'n str, one: u64, other: u64 }
    error "`{name}` and `{output}` share memory, but have alignments of {one} and {other} bytes" {
        help: "specify only the alignment of `{output}`";
    }

    pub(crate) struct ShapeOfShapeInput<'n> { name: &'n str }
    error "cannot set the shape of `{name}`: it is a shape input, and follows from its values" { help: "specify its values: `--values {name}=...`"; }

    pub(crate) struct NotOneValue<'n> { name: &'n str, count: usize }
    error "expected one value for `{name}`, found {count}" {}

    pub(crate) struct MissingValues<'n> { name: &'n str }
    error "missing values of the shape input `{name}`" { help: "specify them: `--values {name}=...`"; }

    pub(crate) struct ShapeOfOutput<'n> { name: &'n str }
    error "cannot set the shape of `{name}`: it is an output, and follows from the inputs" {}

    pub(crate) struct MissingShape<'n> { name: &'n str, rank: String, example: String }
    error "missing shape of the input `{name}` ({rank})" { help: "specify it: `--shape {name}={example}`"; }

    pub(crate) struct MissingFact<'n> { fact: &'n str, remedy: String }
    error "the launch depends on `device.{fact}`, which is not specified" { help: "specify it: {remedy}"; }

    pub(crate) struct ImpossibleAlternative<'n> { name: &'n str, value: &'n str, possible: String, near: Option<&'n str> }
    error "invalid value `{value}` of `{name}`" { note: "expected one of `{possible}`"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct NoSuchRow<'n> { what: &'n str, asked: String, rows: String }
    error "no variant has the {what} {asked}" { note: "the variants have {rows}"; }
}

cubinder_source::diagnostics! {
    pub(crate) struct NoSuchPlugin<'n> { wanted: &'n str, list: String, near: Option<&'n str> }
    error "unknown plugin `{wanted}`" { note: "the file contains `{list}`"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct NoEngine {}
    error "`--node` requires an engine" {}

    pub(crate) struct NoSuchNode { wanted: usize, list: String }
    error "unknown node {wanted}" { note: "the nodes are {list}"; }

    pub(crate) struct SeveralPlugins<'n> { list: String, first: &'n str }
    error "the file contains several plugins" { note: "they are `{list}`"; help: "select one: `--plugin {first}`"; }
}

const STALE: &str = "measure again with `cubinder tune`, or remove the outdated entry";

cubinder_source::diagnostics! {
    pub(crate) struct NoDevice { start: Span }
    error(MISSING_KEY) "missing table `[device]`" {
        at start: "expected `[device]` with `name`, `capability` and `sms`";
    }

    pub(crate) struct UnknownEdition { found: i64, known: i64, span: Span }
    error(SCHEMA_EDITION) "unknown edition {found} of tuning files" {
        at span: "this version of cubinder supports edition {known}";
        help: "use a newer version of cubinder, or move the file and measure again: `cubinder tune`";
    }

    pub(crate) struct VariantIdOutOfRange { id: String, span: Span }
    error(VARIANT_ID) "invalid variant id `{id}`" { at span: "expected 1 to {MAX_VARIANT_ID}"; }

    pub(crate) struct CasesOfOther { found: String, subject: String, own: String, span: Span }
    error(TUNE_FILE) "the cases in `{found}` are for `{subject}`" {
        at span: "the manifest names it here";
        note: "this manifest is `{own}`";
        help: "set `tune` to a file of cases (docs/cases.md), relative to the manifest's folder";
    }

    pub(crate) struct OtherGpu { path: String, found: String, device: String }
    error "`{path}` is for another GPU" {
        note: "it is for {found}, but the selected GPU is {device}";
        help: "use another file with `--out`";
    }

    pub(crate) struct VersionNotCompiled<'n> { version: &'n str, name: &'n str, compiled: String, span: Span }
    warning "version `{version}` of `{name}` was measured, but is not compiled" {
        at span: "version `{compiled}` is compiled";
        help: "{STALE}";
    }

    pub(crate) struct GpusCountAsOne<'n> {
        name: &'n str, first: &'n str, second: &'n str, capability: ComputeCapability, sms: u32, path: String, span: Span,
    }
    warning "`{name}` was measured on {first} and {second}, which cannot be distinguished" {
        at span: "the first point of {second}";
        note: "both have compute capability {capability} and {sms} multiprocessors; the file of {first} is `{path}`, whose points take precedence";
        help: "list only the file for the GPU on which the library runs";
    }

    pub(crate) struct TooManyPoints<'n> { name: &'n str, span: Span }
    error "too many tuning points for `{name}`" {
        at span: "the first point above the limit";
        note: "a plugin contains at most {MAX_TUNED_POINTS} points for {MAX_TUNED_DEVICES} GPU models, with {MAX_TUNED_EXTENTS} extents and {MAX_TUNED_BYTES} bytes of attributes";
        help: "remove points whose shapes are similar to others";
    }

    pub(crate) struct StalePoint<'n> { name: &'n str, why: String, span: Span, notes: Vec<String> }
    warning "a measured node of `{name}` is ignored: {why}" { at span: ""; note *notes: "{notes}"; help: "{STALE}"; }

    /// The point's other variants count.
    pub(crate) struct MissingVariant<'n> { id: i32, name: &'n str, why: &'n str, span: Span }
    warning "variant {id} of `{name}` was measured, but {why}" { at span: ""; help: "{STALE}"; }
}
