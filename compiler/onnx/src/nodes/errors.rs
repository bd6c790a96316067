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
    "unknown_attribute" error MistakenAttribute<'a> { name: &'a str, near: &'a str, default: String }
    "unknown attribute `{name}`"
    { note: "TensorRT ignores it without a warning{default}"; help: "did you mean `{near}`?"; }
    "unknown_attribute" warning UnknownAttribute<'a> { name: &'a str } "unknown attribute `{name}`"
    { note: "TensorRT ignores it without a warning"; }
    "attribute_twice" error RepeatedAttribute<'a> { name: &'a str } "duplicate attribute `{name}`"
    { note: "TensorRT uses the first one without a warning"; help: "remove the others"; }
    "attribute_unread" warning UncheckedAttribute<'a> { name: &'a str, loss: Loss }
    "the attribute `{name}` {loss}; it is not checked" {}
    "attribute" error RejectedAttribute<'a> { name: &'a str, loss: Loss, ty: &'static str, kind: &'static str }
    "the attribute `{name}` {loss}" { note: "ONNX's type for `{ty}` is {kind}"; }
    "attribute_cut" error CutAttribute<'a> { name: &'a str, element: String, value: i64, passed: i32 }
    "the attribute `{name}{element}` is {value}, which exceeds 32 bits"
    { note: "TensorRT's parser passes {passed} instead, without a warning"; }
    "missing_attribute" error MissingAttribute { why: String, kind: &'static str } "{why}"
    { note: "its ONNX type is {kind}"; help: "set it in the node, or give it a `default` in the manifest"; }
    "attribute" error InvalidAttribute { why: String, kinds: Option<String> } "{why}" { note ?kinds: "{kinds}"; }

    "output_count" error OutputCount { found: String, expected: usize, names: String }
    "the node has {found}, but the plugin has {expected}"
    { note: "TensorRT requires a name for each output, even if it is not used: {names}"; }
    "optional_input" error InputLeftOut { which: String }
    "missing {which}: TensorRT does not support optional inputs of plugins"
    { help: "connect a tensor, such as an empty one that the plugin accepts"; }
    "input_count" error InputCount { found: String, expected: usize, list: String }
    "the node has {found}, but the plugin has {expected}" { note: "{list}"; }
    "shape_inputs" error ShapeInputsMissing<'a> { name: &'a str, expected: &'a [i64], help: String }
    "missing attribute `{name}`: the inputs {expected:?} of the plugin are shape inputs"
    { help: "{help}"; }
    "shape_inputs" error ShapeInputsDiffer<'a> { name: &'a str, found: &'a [i64], expected: &'a [i64], help: String }
    "the node's attribute `{name}` is {found:?}, expected {expected:?}" { help: "{help}"; }
    "shape_inputs" error ShapeInputsOfKind<'a> { name: &'a str, kind: &'static str, help: String }
    "the node's attribute `{name}` has the ONNX type {kind}, expected INTS" { help: "{help}"; }
    "input_type" error InputType<'a> { name: &'a str, ty: String, taken: String }
    "the input `{name}` has type {ty}, the plugin accepts {taken}"
    { help: "insert a `Cast` before the node, or add a combination of types to the manifest"; }
    "input_type" error NoVariant { why: String } "{why}" {}
    "input_rank" error InputRank { why: String, shape: String } "{why}"
    { note: "its shape is {shape}"; help: "change the model, such as with `Reshape`, or the `rank` in the manifest"; }
    "input_values" error InputValues { why: String } "{why}" {}
    "input_limits" error InputLimits { why: String } "{why}" {}
    "require" error UnmetRequirement { why: String } "{why}" {}
    "require" error NeverMetRequirement<'a> { message: &'a str, text: &'a str, shapes: String }
    "{message}: `{text}` is false; {shapes}"
    { note: "for all values of named and unknown dimensions"; }
    "output_type" warning OutputTypeDiffers<'a> { name: &'a str, known: String, ty: String, plugin: String }
    "the type of `{name}` is {known} in the model, but the plugin returns {ty}"
    { note: "TensorRT uses the type from `{plugin}`"; }
    "output_shape" warning OutputShapeDiffers<'a> { name: &'a str, known: String, shape: String, plugin: String }
    "the shape of `{name}` is {known} in the model, but the plugin returns {shape}"
    { note: "TensorRT uses the shape from `{plugin}`"; }
    "stale_type" warning StaleType<'a> { name: &'a str, known: String, ty: String }
    "the type of `{name}` is {known} in the model, but is inferred as {ty}"
    { note: "TensorRT ignores the types of intermediate tensors in a model"; }
    "stale_shape" warning StaleShape<'a> { name: &'a str, known: String, shape: String }
    "the shape of `{name}` is {known} in the model, but is inferred as {shape}"
    { note: "TensorRT ignores the shapes of intermediate tensors in a model"; }
    "input_unmade" error MissingTensor { name: String } "unknown tensor `{name}`"
    { note: "it is not an input, a weight or a node output of the model"; }

    "shadowed" warning ShadowedOperator<'a> { op: &'a str, domain: &'a str, help: String }
    "TensorRT uses its operator `{op}` instead of `{op}` in the domain `{domain}`"
    {
        note: "TensorRT ignores the domain of operators that have a name of the ONNX standard";
        help: "{help}";
    }
    "shadowed" error ShadowedPlugin<'a> { op: &'a str, version: Option<&'a str>, help: String }
    "TensorRT uses its operator `{op}` instead of the plugin"
    {
        note: "if a plugin has the name of an operator, its nodes must set `plugin_namespace`; the domain is not sufficient";
        note ?version: "the node has the plugin's namespace, but its version is not {version:?}";
        help: "{help}";
    }
    "version" error OtherVersion<'a> { found: String, version: &'a str, help: String }
    "the node requires {found}, but the plugin has version {version}" { help: "{help}"; }
    "namespace" error OtherNamespace { found: String, plugin: String, help: String }
    "the node has {found}, but the plugin is `{plugin}`" { help: "{help}"; }
    "unknown_op" error UnknownOperator { message: String, near: Option<String>, note: Option<String>, help: Option<String> }
    "{message}" { note ?note: "{note}"; help ?help: "{help}"; help ?near: "did you mean `{near}`?"; }
    "unsupported_op" error UnsupportedOperator<'a> { op: &'a str, plugins: &'static str }
    "TensorRT does not support the operator `{op}`, and {plugins}"
    {
        note: "it is an operator of the ONNX standard, which a plugin with its name can implement";
        help: "pass a library or manifest with such a plugin (`--plugins FILE`), or export the model without it";
    }

    "refused" error Refused { why: String } "{why}" {}
    "unknown_shape" error UnknownShape { what: String, known: String, cause: String, help: String }
    "{what} unknown{known}" { note: "{cause}"; help: "{help}"; }
}

cubinder_source::diagnostics! {
    pub(super) struct MappedTwice<'a> { text: &'a str } error "`--map {text}`: duplicate name before `=`" {}
    pub(super) struct NoMapping<'a> { text: &'a str } error "expected `DOMAIN::OP=PLUGIN`, found `--map {text}`"
    { help: "use the form `--map mmcv::RoIAlign=sample::roi_align`"; }
    pub(super) struct NoMappedPlugin<'a> { text: &'a str, plugin: &'a str, near: Option<&'a str> }
    error "`--map {text}`: unknown plugin `{plugin}`" { help ?near: "did you mean `{near}`?"; }
    pub(super) struct SeveralMappedPlugins<'a> { text: &'a str, plugin: &'a str }
    error "`--map {text}`: several plugins are named `{plugin}`"
    { help: "add the namespace, and pass a library with only one version"; }
    pub(super) struct NoMappedNode<'a> { name: String, op: &'a str, place: String, same: Option<String>, near: Option<&'a str> }
    error "`--map {name}=...`: no node is `{op}` in {place}"
    { help ?near: "did you mean `{near}`?"; help ?same: "the model has {same}"; }

    pub(super) struct DimTwice<'a> { name: &'a str } error "duplicate `--dim {name}=...`" {}
    pub(super) struct NoDim<'a> { text: &'a str } error "expected `NAME=EXTENT`, found `--dim {text}`"
    { help: "use the form `--dim batch=4`"; }
    pub(super) struct UnknownDim<'a> { name: &'a str, note: String, near: Option<&'a str> }
    error "`--dim {name}=...`: unknown dimension" { note: "{note}"; help ?near: "did you mean `{near}`?"; }
    pub(super) struct UnknownTensor<'a> { option: &'a str, name: &'a str, inputs: Option<String>, near: Option<&'a str> }
    error "`--{option} {name}=...`: unknown tensor `{name}`"
    { note ?inputs: "the model's inputs are {inputs}"; help ?near: "did you mean `{near}`?"; }
    pub(super) struct ContradictedShape<'a> { name: &'a str, text: &'a str, shape: String }
    error "`--shape {name}={text}`: its shape in the model is {shape}"
    { help: "specify a compatible shape, or export the model with dynamic dimensions"; }
    pub(super) struct UnequalDims<'a> { dim: &'a str, known: i64, before: &'a str, extent: i64, by: &'a str }
    error "`{dim}` is {known} from {before}, but {extent} from {by}" { note: "dimensions with the same name are equal"; }
    pub(super) struct ContradictedDim<'a> { name: &'a str, extent: i64, by: &'a str, computed: i64 }
    error "`{name}` is {extent} from {by}, but {computed} from other dimensions" {}
    pub(super) struct DeniedTensor<'a> { option: &'a str, name: &'a str, given: String, found: String }
    error "`--{option} {name}=...`: specified {given}, but inferred {found}"
    {
        note: "it is inferred from earlier tensors";
        help: "remove `--{option} {name}=...`, or change the shapes of the network's inputs";
    }
    pub(super) struct NoNode<'a> { name: &'a str, other: Option<&'a str>, near: Option<&'a str> }
    error "unknown plugin node `{name}`" { note ?other: "{other}"; help ?near: "did you mean `{near}`?"; }

    pub(super) struct OtherPlugin<'a> { file: String, name: String, version: &'a str }
    error "`{name}` of version {version} in `{file}` differs from the one in an earlier file"
    { help: "pass only the library that TensorRT loads"; }
    pub(super) struct NoPlugins { file: String } error "`{file}` has no plugins"
    {
        note: "expected a manifest (`*.toml`), a plugin library with its code, a bundle or an engine with Cubinder nodes";
    }
    pub(super) struct ModelWithoutPlugins { file: String } error "`{file}` is an ONNX model, which contains no plugins"
    { help: "pass the library or manifest with the plugins"; }
    pub(super) struct RuntimeWithoutPlugins { file: String }
    error "`{file}` is the runtime library, which contains no plugins"
    { help: "pass the library that `cubinder compile` wrote, or its manifest"; }
    pub(super) struct EngineWithoutLibrary { file: String }
    error "`{file}` is an engine without an embedded library"
    {
        note: "the nodes of an engine contain only the parts of a plugin for their attributes and types";
        help: "pass the manifest or library with which the engine was built";
    }
    pub(super) struct UnreadableModel { file: String, why: String, help: Option<&'static str> }
    error "cannot read `{file}`: {why}" { help ?help: "{help}"; }
    pub(super) struct UnwritableModel { file: String, why: String, help: Option<&'static str> }
    error "cannot write `{file}`: {why}" { help ?help: "{help}"; }
    pub(super) struct WeightsLeftBehind<'a> { first: &'a str, more: String, file: String }
    warning "the model's weights are in `{first}`{more}, which is not beside `{file}`"
    { help: "write to the folder of the model, or copy the files with weights"; }
}
