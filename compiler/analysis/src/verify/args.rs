//! Binding arguments to parameters by name, and proving that they fit.

use std::collections::HashMap;

use cubinder_expr::ScalarType;
use cubinder_expr::{Expr, Kind, Node};
use cubinder_model::{Arg, ArgValue, Output, Plugin, Variant};

use crate::diagnostic::{Diagnostic, Span, suggest};
use crate::kernel_signature::{Param, ParamType, Signature};
use crate::manifest::keys::LAUNCH;
use crate::resolve::{ArgDraft, ArgDraftValue, Unit};
use crate::rules;

use super::{bytes, pointee};

/// The size in bytes of the numbers behind each pointer, by the parameter's name: 4 for `float*` and `float4*`. Pointers to types without
/// a known content, such as `void*`, are left out.
#[must_use]
pub fn number_bytes(signature: &Signature) -> Vec<(String, u32)> {
    let bytes = |param: &Param| match param.ty {
        ParamType::Pointer { leaf, .. } => Some((param.name.clone(), leaf.size()?)),
        _ => None,
    };
    signature.params.iter().filter_map(bytes).collect()
}

/// The unit's arguments in the kernel's own order.
///
/// # Errors
/// Parameters that share a name; else parameters without a name, every argument that names no parameter, every parameter without an argument, and
/// every argument that does not fit.
pub fn bind_args(plugin: &Plugin, unit: &Unit, signature: &Signature) -> Result<Vec<Arg>, Vec<Diagnostic>> {
    let names = Names::new(unit, signature);
    if let Some(problem) = names.shared() {
        return Err(vec![problem]);
    }
    let mut diagnostics = names.problems();
    let values = Values { plugin, unit, signature };
    let mut args = Vec::new();
    for param in &signature.params {
        let Some(arg) = names.arg_of(param) else { continue };
        match values.value(arg, param) {
            Ok(value) => args.push(Arg { name: param.name.clone(), value }),
            Err(problem) => diagnostics.push(names.with_signature(problem)),
        }
    }
    if diagnostics.is_empty() { Ok(args) } else { Err(diagnostics) }
}

/// Arguments in the order of their parameters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bound {
    /// The arguments.
    pub args: Vec<Arg>,
    /// The parameters that are pointers to `const`: see [`read_only`].
    pub read_only: Vec<String>,
    /// What pointers point to: see [`number_bytes`].
    pub number_bytes: Vec<(String, u32)>,
}

/// The names of the parameters that are pointers to `const`: the kernel reads what they get and never writes it.
#[must_use]
pub fn read_only(signature: &Signature) -> Vec<String> {
    let is_const = |param: &&Param| matches!(param.ty, ParamType::Pointer { is_const: true, .. });
    signature.params.iter().filter(is_const).map(|param| param.name.clone()).collect()
}

/// The unit's arguments in the kernel's own order.
///
/// # Errors
/// Parameters that share a name; else parameters without a name, arguments that name no parameter, and parameters without an
/// argument.
#[must_use]
pub fn check_names(unit: &Unit, signature: &Signature) -> Vec<Diagnostic> {
    let names = Names::new(unit, signature);
    names.shared().map_or_else(|| names.problems(), |problem| vec![problem])
}

/// An argument as its parameter takes it.
///
/// # Errors
/// Why it does not fit.
pub fn bind_argument(
    plugin: &Plugin,
    unit: &Unit,
    signature: &Signature,
    arg: &ArgDraft,
    param: &Param,
) -> Result<Arg, Diagnostic> {
    let value = Values { plugin, unit, signature }.value(arg, param)?;
    Ok(Arg { name: param.name.clone(), value })
}

/// The inputs that the kernel could write to: a warning for each, at the argument. TensorRT gives the same memory to other
/// readers.
#[must_use]
pub fn writable_inputs(plugin: &Plugin, unit: &Unit, signature: &Signature) -> Vec<Diagnostic> {
    let bound = unit.args.iter().filter_map(|arg| Some((arg, signature.find(&arg.name)?.1)));
    bound.filter_map(|(arg, param)| writable_input(plugin, unit, arg, param)).collect()
}

/// What [`writable_inputs`] says of one argument of the unit.
#[must_use]
pub fn writable_input(plugin: &Plugin, unit: &Unit, arg: &ArgDraft, param: &Param) -> Option<Diagnostic> {
    let ArgDraftValue::Tensor(tensor) = arg.value else { return None };
    let input = plugin.inputs.get(usize::try_from(tensor).ok()?)?;
    // What an output shares is there to be written.
    if plugin.storage_of(tensor as usize) != tensor as usize {
        return None;
    }
    let ParamType::Pointer { pointee, is_const: false, .. } = &param.ty else { return None };
    let diagnostic = Diagnostic::warning(format!("the kernel could write to the input `{}`", input.name))
        .code(rules::WRITABLE_INPUT)
        .at(arg.value_span.clone(), format!("the parameter `{}` is a `{}`", param.name, param.spelling))
        .note("an input belongs to TensorRT: other layers may read the same memory");
    let take = format!("take it as `const {pointee}* {}`", param.name);
    Some(diagnostic.help(match replaced(plugin, unit, tensor) {
        Some(output) => format!(
            "{take}; or, where the kernel changes it in place, say `alias = \"{}\"` of the output `{}` instead of its type and shape",
            input.name, output.name
        ),
        None => take,
    }))
}

/// The output that may be meant to share the memory of an input: of its type and shape, and not passed to the kernel.
fn replaced<'p>(plugin: &'p Plugin, unit: &Unit, input: u32) -> Option<&'p Output> {
    let outputs = (plugin.inputs.len()..).zip(&plugin.outputs);
    let mut alike = outputs.filter(|(tensor, output)| {
        let has_type_of = |variant: &Variant| variant.types.get(*tensor) == variant.types.get(input as usize);
        output.alias.is_none()
            && output.shape.nodes.as_slice() == [Node::Shape(input)]
            && plugin.variants.iter().all(has_type_of)
            && !is_passed(unit, *tensor)
    });
    alike.next().map(|(_, output)| output)
}

/// Whether an argument of the unit is this tensor.
fn is_passed(unit: &Unit, index: usize) -> bool {
    let is_it =
        |arg: &ArgDraft| matches!(arg.value, ArgDraftValue::Tensor(tensor) if tensor as usize == index);
    unit.args.iter().any(is_it)
}

/// The outputs that no argument of the unit passes: nothing could write them, and a reader would find whatever the memory held.
#[must_use]
pub fn unwritten_outputs(plugin: &Plugin, unit: &Unit) -> Vec<Diagnostic> {
    let outputs = plugin.outputs.iter().enumerate();
    let is_shared = |output: &Output| output.alias.is_some_and(|alias| is_passed(unit, alias as usize));
    let unwritten =
        outputs.filter(|(index, output)| !is_passed(unit, plugin.inputs.len() + index) && !is_shared(output));
    unwritten
        .map(|(_, output)| {
            Diagnostic::error(format!("no argument passes the output `{}` to the kernel", output.name))
                .code(rules::UNWRITTEN_OUTPUT)
                .at(unit.args_span.clone(), "nothing could write it")
                .help(format!("pass it: `<parameter> = \"{}\"`", output.name))
        })
        .collect()
}

/// The arguments and the parameters by their names.
struct Names<'a> {
    unit: &'a Unit,
    signature: &'a Signature,
    args: HashMap<&'a str, &'a ArgDraft>,
    /// How many parameters have each name.
    params: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    fn new(unit: &'a Unit, signature: &'a Signature) -> Names<'a> {
        let mut params = HashMap::new();
        for param in &signature.params {
            *params.entry(param.name.as_str()).or_default() += 1;
        }
        // Of several with one name the first counts.
        let args = unit.args.iter().rev().map(|arg| (arg.name.as_str(), arg)).collect();
        Names { unit, signature, args, params }
    }

    /// Parameters without a name, arguments that name no parameter, then parameters without an argument. One that a misspelt
    /// argument was meant for is not among the latter, nor is an argument among the former that may be meant for a parameter
    /// without a name.
    fn problems(&self) -> Vec<Diagnostic> {
        let nameless = self.nameless();
        let unknown = self.unit.args.iter().filter(|arg| !self.params.contains_key(arg.name.as_str()));
        let unknown: Vec<(&ArgDraft, Option<&str>)> = unknown.map(|arg| (arg, self.meant(arg))).collect();
        let meant: Vec<&str> = unknown.iter().filter_map(|(_, meant)| *meant).collect();
        let told = unknown.iter().filter(|(_, meant)| nameless.is_none() || meant.is_some());
        let told: Vec<Diagnostic> = told.map(|(arg, meant)| self.unknown(arg, *meant)).collect();
        let mut problems: Vec<Diagnostic> = nameless.into_iter().chain(told).collect();
        problems.extend(self.missing(&meant));
        problems
    }

    /// The parameter that a misspelt argument was probably meant for.
    fn meant(&self, arg: &ArgDraft) -> Option<&str> {
        let named = self.signature.params.iter().filter(|param| !param.name.is_empty());
        let free = named.filter(|param| self.arg_of(param).is_none());
        suggest(&arg.name, free.map(|param| param.name.as_str()))
    }

    fn arg_of(&self, param: &Param) -> Option<&ArgDraft> {
        self.args.get(param.name.as_str()).copied().filter(|_| !param.name.is_empty())
    }

    /// With what the kernel takes: of code from elsewhere the manifest says that itself, and may be what is wrong.
    fn with_signature(&self, diagnostic: Diagnostic) -> Diagnostic {
        let diagnostic = match &self.unit.foreign {
            Some(code) => diagnostic.related(code.name_span.clone(), "`parameters` of this code"),
            None => diagnostic,
        };
        diagnostic.note(format!("the kernel is `{}`", self.signature))
    }

    /// Parameters without a name, in one message.
    fn nameless(&self) -> Option<Diagnostic> {
        let params = self.signature.params.iter().enumerate();
        let nameless = params.filter(|(_, param)| param.name.is_empty());
        let nameless: Vec<String> = nameless
            .map(|(position, param)| format!("number {} (`{}`)", position + 1, param.spelling))
            .collect();
        let kernel = &self.unit.kernel;
        let what = match nameless.as_slice() {
            [] => return None,
            [one] => format!("the parameter {one} of `{kernel}` has no name"),
            more => format!("the parameters {} of `{kernel}` have no names", more.join(", ")),
        };
        let diagnostic = Diagnostic::error(what)
            .code(rules::PARAMETER_NAMES)
            .at(self.unit.kernel_span.clone(), "arguments are bound by name")
            .help("give every parameter of the kernel a name, and each name an argument");
        Some(self.with_signature(diagnostic))
    }

    /// Two parameters of one name: both would silently get the one argument. C++ writes such only for parameter packs.
    fn shared(&self) -> Option<Diagnostic> {
        let params = &self.signature.params;
        let count = |name: &str| self.params.get(name).copied().unwrap_or(0);
        let name = params
            .iter()
            .map(|param| param.name.as_str())
            .find(|name| !name.is_empty() && count(name) > 1)?;
        let count = count(name);
        let diagnostic = Diagnostic::error(format!(
            "the kernel `{}` has {count} parameters called `{name}`",
            self.unit.kernel
        ))
        .code(rules::PARAMETER_NAMES)
        .at(self.unit.kernel_span.clone(), "arguments are bound by name")
        .help(format!(
            "the parameters of a pack (`Ts... {name}`) share its name: write them out, or pass \
                     `cubinder::array<T, N> {name}`"
        ));
        Some(self.with_signature(diagnostic))
    }

    fn unknown(&self, arg: &ArgDraft, meant: Option<&str>) -> Diagnostic {
        let message = format!("the kernel `{}` has no parameter `{}`", self.unit.kernel, arg.name);
        let diagnostic = Diagnostic::error(message)
            .code(rules::UNKNOWN_PARAMETER)
            .at(arg.name_span.clone(), "no such parameter");
        // What follows the header of a table is in that table.
        let is_key = LAUNCH.keys.iter().any(|key| key.name == arg.name);
        self.with_signature(match meant {
            _ if is_key => diagnostic.help(format!(
                "`{}` is a key of `{}`: write it above `[launches.args]`",
                arg.name, LAUNCH.title
            )),
            Some(name) => diagnostic.help(format!("did you mean `{name}`?")),
            None => diagnostic,
        })
    }

    /// The parameters that get nothing, in one message; those that a misspelt argument was meant for are left out.
    fn missing(&self, meant: &[&str]) -> Option<Diagnostic> {
        let named = self.signature.params.iter().filter(|param| !param.name.is_empty());
        let without = named.filter(|param| self.arg_of(param).is_none());
        let names = without.map(|param| param.name.as_str()).filter(|name| !meant.contains(name));
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        let kernel = &self.unit.kernel;
        let (what, help) = match names.as_slice() {
            [] => return None,
            [one] => (
                format!("the parameter {one} of `{kernel}` gets no argument"),
                "give it an argument, or take it out of the kernel",
            ),
            more => (
                format!("the parameters {} of `{kernel}` get no arguments", more.join(", ")),
                "give each an argument, or take it out of the kernel",
            ),
        };
        let diagnostic = Diagnostic::error(what)
            .code(rules::MISSING_ARGUMENT)
            .at(self.unit.args_span.clone(), "not among these")
            .help(help);
        Some(self.with_signature(diagnostic))
    }
}

/// The values of a unit's arguments against the parameters' types.
struct Values<'a> {
    plugin: &'a Plugin,
    unit: &'a Unit,
    signature: &'a Signature,
}

impl Values<'_> {
    /// What is passed for an argument.
    fn value(&self, arg: &ArgDraft, param: &Param) -> Result<ArgValue, Diagnostic> {
        match &arg.value {
            ArgDraftValue::Tensor(index) => self.tensor(*index, arg, param),
            ArgDraftValue::Scratch(index) => self.scratch(*index, arg, param),
            ArgDraftValue::Expr { expr, kind } => expression(expr, kind, arg, param),
        }
    }

    fn tensor(&self, tensor: u32, arg: &ArgDraft, param: &Param) -> Result<ArgValue, Diagnostic> {
        let index = usize::try_from(tensor).unwrap_or(usize::MAX);
        let name = self.plugin.tensor_name(index);
        let ty = self.plugin.variants.get(self.unit.variant).and_then(|variant| variant.types.get(index));
        let (Some(name), Some(ty)) = (name, ty) else {
            return Err(Diagnostic::error(format!(
                "the draft has no tensor {tensor} for the argument `{}`",
                arg.name
            ))
            .at(arg.value_span.clone(), "this argument"));
        };
        let ParamType::Pointer { pointee, pointee_size, is_const, leaf } = &param.ty else {
            return Err(misfit(arg, param, format!("`{name}` is a tensor, which is passed as a pointer"))
                .help("pass a number, such as `numel(x)` or `x.shape[0]`, or make the parameter a pointer"));
        };
        let storage = self.plugin.storage_of(index);
        let is_output = storage >= self.plugin.inputs.len();
        let is_shared = self.unit.shared_outputs.iter().any(|shared| *shared as usize == storage);
        if is_output && *is_const && !is_shared {
            let output = self.plugin.tensor_name(storage).unwrap_or(name);
            let message = match storage == index {
                true => format!("the output `{output}` is bound to a pointer to `const`"),
                false => format!(
                    "`{name}` shares the memory of the output `{output}`, and is bound to a pointer to `const`"
                ),
            };
            return Err(Diagnostic::error(message)
                .code(rules::ARGUMENT_MISFIT)
                .at(
                    arg.value_span.clone(),
                    format!("the kernel's `{}` cannot be written through", param.name),
                )
                .help(match self.written_input() {
                    Some(other) => format!("`{}` and `{}` may have changed places", arg.name, other.name),
                    // Of an array that would be no C++.
                    None if pointee.ends_with(']') => {
                        "take `const` out of the parameter, or bind an input to it".to_owned()
                    }
                    None if storage != index => format!("make the parameter `{pointee}* {}`", param.name),
                    None => format!("make the parameter `{pointee}* {}`, or bind an input to it", param.name),
                }));
        }
        if let Some(reason) = pointee::misfit(*ty, *pointee_size, *leaf) {
            let held = match pointee_size {
                Some(size) => {
                    format!("the kernel takes pointers to `{pointee}` of {}: {reason}", bytes(*size))
                }
                None => format!("the kernel takes pointers to `{pointee}`: {reason}"),
            };
            let label = match ty.size() {
                Some(size) => format!("{} per element, `{}` in CUDA", bytes(size), ty.cuda_name()),
                None => format!("two elements per byte, `{}` in CUDA", ty.cuda_name()),
            };
            let message = format!(
                "`{name}` holds `{}`, but the parameter `{}` is a `{}`",
                ty.name(),
                param.name,
                param.spelling
            );
            return Err(Diagnostic::error(message)
                .code(rules::ARGUMENT_MISFIT)
                .at(arg.value_span.clone(), label)
                .note(held)
                .help(format!(
                "take `{}*` or a vector of it, integers of the same width for its bits, a vector of other numbers that \
                 holds several elements such as `uint4`, or `void*`",
                ty.cuda_name()
            )));
        }
        Ok(if *is_const { ArgValue::ReadTensor(tensor) } else { ArgValue::Tensor(tensor) })
    }

    /// Memory of the workspace holds what the kernels put there, so any pointer fits. Its size is checked once there is code.
    fn scratch(&self, index: u32, arg: &ArgDraft, param: &Param) -> Result<ArgValue, Diagnostic> {
        if let ParamType::Pointer { .. } = &param.ty {
            return Ok(ArgValue::Scratch(index));
        }
        let buffers = self.plugin.variants.get(self.unit.variant).map_or(&[][..], |variant| &variant.scratch);
        let name = buffers.get(index as usize).map_or("?", |scratch| &scratch.name);
        let label = format!("`{name}` is a scratch buffer, which is passed as a pointer");
        Err(misfit(arg, param, label).help("make the parameter a pointer, or pass a number"))
    }

    /// An argument that passes an input where the kernel takes something to write to.
    fn written_input(&self) -> Option<&ArgDraft> {
        self.unit.args.iter().find(|arg| {
            let is_input = matches!(arg.value, ArgDraftValue::Tensor(index)
                if usize::try_from(index).is_ok_and(|index| index < self.plugin.inputs.len()));
            let param = self.signature.find(&arg.name).map(|(_, param)| &param.ty);
            is_input && matches!(param, Some(ParamType::Pointer { is_const: false, .. }))
        })
    }
}

/// An expression is passed by value.
fn expression(expr: &Expr, kind: &Kind, arg: &ArgDraft, param: &Param) -> Result<ArgValue, Diagnostic> {
    let found = |what: &str| misfit(arg, param, format!("the value is {what}"));
    match (&param.ty, kind) {
        (ParamType::Pointer { .. }, _) => Err(found(&with_article(kind))
            .help("a pointer is bound to a tensor by the tensor's bare name; numbers and arrays are passed by value")),
        (ParamType::Other { name, .. }, _) => {
            let diagnostic = misfit(arg, param, format!("`{name}` cannot be passed by value"));
            Err(diagnostic.help(match name.as_str() {
                "__half" | "half" | "__nv_bfloat16" | "nv_bfloat16" | "__nv_fp8_e4m3" => "take a `float` and convert it in the kernel",
                _ => "take numbers, `bool`, or arrays of them such as `cubinder::array<int, 8>`",
            }))
        }
        (ParamType::Array { element, len }, Kind::Array(item)) => {
            if let Some(problem) = conversion(item, *element) {
                return Err(misfit(arg, param, format!("the value is {}", with_article(kind))).help(problem));
            }
            match literal_length(expr) {
                Some(found) if u32::try_from(found) != Ok(*len) => Err(misfit(
                    arg,
                    param,
                    format!("the value has {found} elements, the kernel takes {len}"),
                )
                .help(format!(
                    "give exactly as many; `[get(x.shape, i, 1) for i in range({len})]` fills up with ones"
                ))),
                _ => Ok(ArgValue::Array { ty: *element, len: *len, expr: expr.clone() }),
            }
        }
        (ParamType::Array { len, .. }, _) => {
            Err(found(&with_article(kind)).help(format!("pass an array of {len} elements: `[a, b, ...]`")))
        }
        (_, Kind::Array(_)) => Err(found(&with_article(kind))
            .help("pass one element, such as `x.shape[0]`, or take a `cubinder::array<T, N>` in the kernel")),
        (ty, kind) => {
            let Some(ty) = scalar_of(ty) else { return Err(found(&with_article(kind))) };
            match conversion(kind, ty) {
                Some(problem) => Err(found(&with_article(kind)).help(problem)),
                None => Ok(ArgValue::Scalar { ty, expr: expr.clone() }),
            }
        }
    }
}

fn misfit(arg: &ArgDraft, param: &Param, label: String) -> Diagnostic {
    Diagnostic::error(format!("the argument does not fit the parameter `{} {}`", param.spelling, param.name))
        .code(rules::ARGUMENT_MISFIT)
        .at(Span::clone(&arg.value_span), label)
}

fn with_article(kind: &Kind) -> String {
    let name = kind.to_string();
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {name}")
}

/// What a number is passed as.
pub(super) fn scalar_of(ty: &ParamType) -> Option<ScalarType> {
    match ty {
        ParamType::Enum(ty) => Some(*ty),
        ParamType::Int { bytes } => Some(ScalarType::Int { bytes: *bytes }),
        ParamType::UInt { bytes } => Some(ScalarType::UInt { bytes: *bytes }),
        ParamType::F32 => Some(ScalarType::F32),
        ParamType::F64 => Some(ScalarType::F64),
        ParamType::Bool => Some(ScalarType::Bool),
        ParamType::Pointer { .. } | ParamType::Array { .. } | ParamType::Other { .. } => None,
    }
}

/// How to mend a value of `kind` that cannot be passed as `ty`; nothing where it can. A whole number may be passed as a
/// float: the launch refuses one that the float does not hold exactly.
fn conversion(kind: &Kind, ty: ScalarType) -> Option<&'static str> {
    match (kind, ty) {
        (
            Kind::Int,
            ScalarType::Int { .. }
            | ScalarType::UInt { .. }
            | ScalarType::Natural { .. }
            | ScalarType::F32
            | ScalarType::F64,
        )
        | (Kind::Float, ScalarType::F32 | ScalarType::F64)
        | (Kind::Bool, ScalarType::Bool) => None,
        (Kind::Int | Kind::Float, ScalarType::Bool) => Some("compare it: `n != 0`"),
        (Kind::Float, _) => Some("convert it with `int(...)`, which cuts towards zero"),
        (Kind::Bool, ScalarType::F32 | ScalarType::F64) => Some("choose the numbers: `1.0 if c else 0.0`"),
        (Kind::Bool, _) => Some("choose the numbers: `1 if c else 0`"),
        (Kind::Str, _) => Some("compare it with what it may be: `1 if mode == \"wrap\" else 0`"),
        (Kind::Array(_), _) => Some("pass one element of it"),
    }
}

/// The number of elements where the expression lists them.
fn literal_length(expr: &Expr) -> Option<usize> {
    match expr.nodes.last()? {
        Node::Array(items) => Some(items.len()),
        _ => None,
    }
}
