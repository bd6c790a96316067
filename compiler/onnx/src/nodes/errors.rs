//! Findings and errors of commands over models, one type per message.

use super::finding::Finding;
use super::plugin_fields::Loss;

/// Declares findings: a problem code, then a diagnostic as in [`cubinder_source::diagnostics!`].
macro_rules! findings {
    ($(
        $problem:literal $severity:ident $name:ident $(<$life:lifetime>)? $({ $($field:ident: $ty:ty),* })?
        $message:literal { $($parts:tt)* }
    )*) => {
        cubinder_source::diagnostics! {
            $(pub(super) struct $name $(<$life>)? $({ $($field: $ty),* })? $severity $message { $($parts)* })*
        }
        $(impl $(<$life>)? From<$name $(<$life>)?> for Finding {
            fn from(found: $name $(<$life>)?) -> Finding {
                Finding::new($problem, found.into())
            }
        })*
    };
}

findings! {
    // Attributes.
    "unknown_attribute" error MistakenAttribute<'a> { name: &'a str, near: &'a str, default: String }
    "the plugin has no attribute `{name}`"
    { note: "TensorRT leaves it out without a word{default}"; help: "did you mean `{near}`?"; }
    "unknown_attribute" warning UnknownAttribute<'a> { name: &'a str } "the plugin has no attribute `{name}`"
    { note: "TensorRT leaves it out without a word"; }
    "attribute_twice" error RepeatedAttribute<'a> { name: &'a str } "the attribute `{name}` occurs more than once"
    { note: "TensorRT uses the first one without a warning"; help: "leave one of them out"; }
    "attribute_unread" warning UncheckedAttribute<'a> { name: &'a str, loss: Loss }
    "the attribute `{name}` {loss}; it is not checked" {}
    "attribute" error RejectedAttribute<'a> { name: &'a str, loss: Loss, ty: &'static str, kind: &'static str }
    "the attribute `{name}` {loss}" { note: "ONNX's type for `{ty}` is {kind}"; }
    "attribute_cut" error CutAttribute<'a> { name: &'a str, element: String, value: i64, passed: i32 }
    "the attribute `{name}{element}` is {value}, which is beyond 32 bits"
    { note: "TensorRT's parser passes {passed} in its place, without a word"; }
    "missing_attribute" error MissingAttribute { why: String, kind: &'static str } "{why}"
    { note: "it is of the ONNX type {kind}"; }
    "attribute" error InvalidAttribute { why: String, kinds: Option<String> } "{why}" { note ?kinds: "{kinds}"; }

    // Inputs and outputs.
    "output_count" error OutputCount { found: String, expected: usize, names: String }
    "the node has {found}, the plugin gives {expected}"
    { note: "TensorRT wants a name for each, also for those that nobody reads: {names}"; }
    "optional_input" error InputLeftOut { which: String }
    "{which} is left out, and TensorRT has no optional inputs of plugins"
    { help: "give it a tensor, if only an empty one that the plugin takes"; }
    "input_count" error InputCount { found: String, expected: usize, list: String }
    "the node has {found}, the plugin takes {expected}" { note: "{list}"; }
    "shape_inputs" error ShapeInputsMissing<'a> { name: &'a str, expected: &'a [i64], help: String }
    "the node lacks the attribute `{name}`: the plugin takes the values of inputs {expected:?} as shapes"
    { help: "{help}"; }
    "shape_inputs" error ShapeInputsDiffer<'a> { name: &'a str, found: &'a [i64], expected: &'a [i64], help: String }
    "the node's attribute `{name}` is {found:?}, and has to be {expected:?}" { help: "{help}"; }
    "shape_inputs" error ShapeInputsOfKind<'a> { name: &'a str, kind: &'static str, help: String }
    "the node's attribute `{name}` is of the ONNX type {kind}, expected INTS" { help: "{help}"; }
    "input_type" error InputType<'a> { name: &'a str, ty: String, taken: String }
    "the input `{name}` is of the type {ty}, the plugin takes {taken}" {}
    "input_type" error NoVariant { why: String } "{why}" {}
    "input_rank" error InputRank { why: String, shape: String } "{why}" { note: "its shape is {shape}"; }
    "input_values" error InputValues { why: String } "{why}" {}
    "input_limits" error InputLimits { why: String } "{why}" {}
    "require" error UnmetRequirement { why: String } "{why}" {}
    "require" error NeverMetRequirement<'a> { message: &'a str, text: &'a str, shapes: String }
    "{message}: `{text}` does not hold; {shapes}"
    { note: "whatever the dimensions are that have names or are not known"; }
    "output_type" warning OutputTypeDiffers<'a> { name: &'a str, known: String, ty: String, plugin: String }
    "the model says that `{name}` is of the type {known}, and the plugin gives {ty}"
    { note: "TensorRT takes what `{plugin}` says"; }
    "output_shape" warning OutputShapeDiffers<'a> { name: &'a str, known: String, shape: String, plugin: String }
    "the model says that `{name}` is {known}, and the plugin gives {shape}"
    { note: "TensorRT takes what `{plugin}` says"; }
    "stale_type" warning StaleType<'a> { name: &'a str, known: String, ty: String }
    "the model says that `{name}` is of the type {known}, and it is {ty}"
    { note: "TensorRT does not read what a model says of the tensors between its nodes"; }
    "stale_shape" warning StaleShape<'a> { name: &'a str, known: String, shape: String }
    "the model says that `{name}` is {known}, and it is {shape}"
    { note: "TensorRT does not read what a model says of the tensors between its nodes"; }
    "input_unmade" error MissingTensor { name: String } "there is no tensor `{name}`"
    { note: "it is no input and no weight of the model, and no node gives it"; }

    // The plugin of a node.
    "shadowed" warning ShadowedOperator<'a> { op: &'a str, domain: &'a str, help: String }
    "TensorRT takes its own operator `{op}` for it, whatever `{op}` of the domain `{domain}` is"
    {
        note: "of an operator that has the name of one of the standard, TensorRT does not look at the domain";
        help: "{help}";
    }
    "shadowed" error ShadowedPlugin<'a> { op: &'a str, version: Option<&'a str>, help: String }
    "TensorRT takes its own operator `{op}` for it, and not the plugin"
    {
        note: "where the name of a plugin is that of an operator, a node has to say `plugin_namespace`; its domain is not enough";
        note ?version: "its namespace is the plugin's, and its version is not {version:?}";
        help: "{help}";
    }
    "version" error OtherVersion<'a> { found: String, version: &'a str, help: String }
    "the node asks for {found}, and the plugin has version {version}" { help: "{help}"; }
    "namespace" error OtherNamespace { found: String, plugin: String, help: String }
    "the node says {found}, and the plugin is `{plugin}`" { help: "{help}"; }
    "unknown_op" error UnknownOperator { message: String, near: Option<String>, note: Option<String>, help: Option<String> }
    "{message}" { note ?note: "{note}"; help ?help: "{help}"; help ?near: "did you mean `{near}`?"; }
    "unsupported_op" error UnsupportedOperator<'a> { op: &'a str, plugins: &'static str }
    "TensorRT has no operator `{op}`, and {plugins}"
    {
        note: "it is an operator of the ONNX standard, and a plugin of its name can stand for it";
        help: "name the library or the manifest that has one (`--plugins FILE`), or export the model without it";
    }

    // Shapes.
    "refused" error Refused { why: String } "{why}" {}
    "unknown_shape" error UnknownShape { what: String, known: String, cause: String, help: String }
    "{what} is not known{known}" { note: "{cause}"; help: "{help}"; }
}

cubinder_source::diagnostics! {
    // `--map`.
    pub(super) struct MappedTwice<'a> { text: &'a str } error "`--map {text}`: the name before `=` is there twice" {}
    pub(super) struct NoMapping<'a> { text: &'a str } error "`--map {text}` is no `DOMAIN::OP=PLUGIN`"
    { help: "write it like `--map mmcv::RoIAlign=sample::roi_align`"; }
    pub(super) struct NoMappedPlugin<'a> { text: &'a str, plugin: &'a str, near: Option<&'a str> }
    error "`--map {text}`: there is no plugin `{plugin}`" { help ?near: "did you mean `{near}`?"; }
    pub(super) struct SeveralMappedPlugins<'a> { text: &'a str, plugin: &'a str }
    error "`--map {text}`: there are several plugins `{plugin}`"
    { help: "name its namespace too, and give a library with one version of it"; }
    pub(super) struct NoMappedNode<'a> { name: String, op: &'a str, place: String, same: Option<String>, near: Option<&'a str> }
    error "`--map {name}=...`: no node is `{op}` of {place}"
    { help ?near: "did you mean `{near}`?"; help ?same: "the model has {same}"; }

    // `--dim`, `--shape` and `--values`.
    pub(super) struct DimTwice<'a> { name: &'a str } error "`--dim {name}=...` is given twice" {}
    pub(super) struct NoDim<'a> { text: &'a str } error "`--dim {text}` is no `NAME=EXTENT`"
    { help: "write it like `--dim batch=4`"; }
    pub(super) struct UnknownDim<'a> { name: &'a str, note: String, near: Option<&'a str> }
    error "`--dim {name}=...`: the model calls no dimension so" { note: "{note}"; help ?near: "did you mean `{near}`?"; }
    pub(super) struct UnknownTensor<'a> { option: &'a str, name: &'a str, inputs: Option<String>, near: Option<&'a str> }
    error "`--{option} {name}=...`: the model has no tensor `{name}`"
    { note ?inputs: "its inputs are {inputs}"; help ?near: "did you mean `{near}`?"; }
    pub(super) struct ContradictedShape<'a> { name: &'a str, text: &'a str, shape: String }
    error "`--shape {name}={text}`: the model says that it is {shape}"
    { help: "give a shape that the model takes, or export it with dynamic dimensions"; }
    pub(super) struct UnequalDims<'a> { dim: &'a str, known: i64, before: &'a str, extent: i64, by: &'a str }
    error "`{dim}` is {known} by {before}, and {extent} by {by}" { note: "dimensions of one name are equal"; }
    pub(super) struct ContradictedDim<'a> { name: &'a str, extent: i64, by: &'a str, computed: i64 }
    error "`{name}` is {extent} by {by}, and {computed} by the rest" {}
    pub(super) struct DeniedTensor<'a> { option: &'a str, name: &'a str, given: String, found: String }
    error "`--{option} {name}=...`: it is given {given}, and is {found}"
    {
        note: "it follows from the tensors before it";
        help: "leave out `--{option} {name}=...`, or give the network's inputs other shapes";
    }
    pub(super) struct NoNode<'a> { name: &'a str, other: Option<&'a str>, near: Option<&'a str> }
    error "the model has no plugin node `{name}`" { note ?other: "{other}"; help ?near: "did you mean `{near}`?"; }

    // Files.
    pub(super) struct OtherPlugin<'a> { file: String, name: String, version: &'a str }
    error "`{file}` has another `{name}` of version {version} than a file before it"
    { help: "name the library that TensorRT gets, and no other"; }
    pub(super) struct NoPlugins { file: String } error "`{file}` has no plugins"
    {
        note: "expected a manifest (`*.toml`), a plugin library with its code, a bundle or an engine with Cubinder nodes";
    }
    pub(super) struct ModelWithoutPlugins { file: String } error "`{file}` is an ONNX model, and has no plugins"
    { help: "name the library or the manifest that has them"; }
    pub(super) struct RuntimeWithoutPlugins { file: String }
    error "`{file}` is the library that runs engines, and has no plugins"
    { help: "name the library that `cubinder compile` made, or its manifest"; }
    pub(super) struct EngineWithoutLibrary { file: String }
    error "`{file}` is an engine that carries no library, and its nodes are no plugins"
    {
        note: "a node keeps of its plugin what its own attributes and types need";
        help: "name the manifest or the library that the engine was built with";
    }
    pub(super) struct UnreadableModel { file: String, why: String, help: Option<&'static str> }
    error "cannot read `{file}`: {why}" { help ?help: "{help}"; }
    pub(super) struct UnwritableModel { file: String, why: String, help: Option<&'static str> }
    error "cannot write `{file}`: {why}" { help ?help: "{help}"; }
    pub(super) struct WeightsLeftBehind<'a> { first: &'a str, more: String, file: String }
    warning "weights of the model lie beside it, in `{first}`{more}, and not beside `{file}`"
    { help: "write into the folder of the model, or copy the files with weights"; }
}
