//! Errors and warnings.

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
    error "there is no {what} `{name}`" { note: "{known}"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct FixedAttribute<'n> { name: &'n str }
    error "the attribute `{name}` of a node in an engine cannot be changed" {
        help: "evaluate the manifest or the library to try other values";
    }

    pub(crate) struct WrongAttribute<'n> { name: &'n str, why: String }
    error "the attribute `{name}`: {why}" {}

    pub(crate) struct MissingAttribute<'n> { name: &'n str, why: String }
    error "{why}" { help: "say what it is: `--attr {name}=...`"; }

    pub(crate) struct AlignmentsDiffer<'n> { name: &'n str, output: &'n str, one: u64, other: u64 }
    error "`{name}` and `{output}` share one memory, but alignments of {one} and {other} bytes are given" {
        help: "give the alignment of `{output}` alone";
    }

    pub(crate) struct ShapeOfShapeInput<'n> { name: &'n str }
    error "`{name}` is a shape input: its values decide its shape" { help: "say what it holds: `--values {name}=...`"; }

    pub(crate) struct NotOneValue<'n> { name: &'n str, count: usize }
    error "`{name}` holds one value, and {count} are given" {}

    pub(crate) struct MissingValues<'n> { name: &'n str }
    error "what the shape input `{name}` holds is not given" { help: "say what it is: `--values {name}=...`"; }

    pub(crate) struct ShapeOfOutput<'n> { name: &'n str }
    error "`{name}` is an output: its shape follows from the inputs'" {}

    pub(crate) struct MissingShape<'n> { name: &'n str, rank: String, example: String }
    error "the shape of the input `{name}` ({rank}) is not given" { help: "say what it is: `--shape {name}={example}`"; }

    pub(crate) struct MissingFact<'n> { fact: &'n str, remedy: String }
    error "the launch depends on `device.{fact}`, which is not given" { help: "say what it is: {remedy}"; }

    pub(crate) struct ImpossibleAlternative<'n> { name: &'n str, value: &'n str, possible: String, near: Option<&'n str> }
    error "`{name}` cannot be `{value}`" { note: "it can be `{possible}`"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct NoSuchRow<'n> { what: &'n str, asked: String, rows: String }
    error "no variant has the {what} {asked}" { note: "there are {rows}"; }
}

cubinder_source::diagnostics! {
    pub(crate) struct NoSuchPlugin<'n> { wanted: &'n str, list: String, near: Option<&'n str> }
    error "there is no plugin `{wanted}` in it" { note: "it has `{list}`"; help ?near: "did you mean `{near}`?"; }

    pub(crate) struct NoEngine {}
    error "`--node` chooses among an engine's nodes, and this is no engine" {}

    pub(crate) struct NoSuchNode { wanted: usize, list: String }
    error "there is no node {wanted} in it" { note: "its nodes are {list}"; }

    pub(crate) struct SeveralPlugins<'n> { list: String, first: &'n str }
    error "there are several plugins in it" { note: "they are `{list}`"; help: "choose one: `--plugin {first}`"; }
}

const STALE: &str = "measure again with `cubinder tune`, or take out what is stale";

// Files of measured times.
cubinder_source::diagnostics! {
    pub(crate) struct NoDevice { start: Span }
    error(MISSING_KEY) "the file has no `[device]` table" {
        at start: "expected `[device]` with `name`, `capability` and `sms`";
    }

    pub(crate) struct UnknownEdition { found: i64, known: i64, span: Span }
    error(SCHEMA_EDITION) "edition {found} of files of tuning is not known" {
        at span: "this version of cubinder knows edition {known}";
        help: "use a newer version of cubinder, or move the file away and measure again: `cubinder tune`";
    }

    pub(crate) struct VariantIdOutOfRange { id: String, span: Span }
    error(VARIANT_ID) "`{id}` is no variant's id" { at span: "expected 1 to {MAX_VARIANT_ID}"; }

    pub(crate) struct CasesOfOther { found: String, subject: String, own: String, span: Span }
    error(TUNE_FILE) "the cases of `{found}` are of `{subject}`" {
        at span: "the manifest names it here";
        note: "this manifest is `{own}`";
        help: "`tune` names a file of cases (docs/cases.md), relative to the manifest's folder";
    }

    pub(crate) struct OtherGpu { path: String, found: String, device: String }
    error "`{path}` is of another GPU" {
        note: "it is of {found}, and the GPU at hand is {device}";
        help: "name another file with `--out`";
    }

    pub(crate) struct VersionNotCompiled<'n> { version: &'n str, name: &'n str, compiled: String, span: Span }
    warning "version `{version}` of `{name}` was measured, and is not compiled" {
        at span: "compiled is version `{compiled}`";
        help: "{STALE}";
    }

    pub(crate) struct GpusCountAsOne<'n> {
        name: &'n str, first: &'n str, second: &'n str, capability: ComputeCapability, sms: u32, path: String, span: Span,
    }
    warning "`{name}` was measured on {first} and on {second}, which count as one" {
        at span: "the first point of {second}";
        note: "both have compute capability {capability} and {sms} multiprocessors; that of {first} is `{path}`, whose points go first";
        help: "name the file alone that is of the GPU on which the library runs";
    }

    pub(crate) struct TooManyPoints<'n> { name: &'n str, span: Span }
    error "more was measured of `{name}` than a plugin carries" {
        at span: "the first point that is too many";
        note: "a plugin carries at most {MAX_TUNED_POINTS} points for {MAX_TUNED_DEVICES} kinds of GPUs, with {MAX_TUNED_EXTENTS} extents and {MAX_TUNED_BYTES} bytes of attributes";
        help: "take out points whose shapes are near to others'";
    }

    pub(crate) struct StalePoint<'n> { name: &'n str, why: String, span: Span, notes: Vec<String> }
    warning "a measured node of `{name}` is left out: {why}" { at span: ""; note *notes: "{notes}"; help: "{STALE}"; }

    /// The point's other variants count.
    pub(crate) struct MissingVariant<'n> { id: i32, name: &'n str, why: &'n str, span: Span }
    warning "variant {id} of `{name}` was measured, and {why}" { at span: ""; help: "{STALE}"; }
}
