use cubinder_expr::{Expr, Kind, Node, ScalarType};
use cubinder_model::{Arg, ArgValue, Output, Plugin, Variant};

use crate::diagnostic::{Diagnostic, suggest};
use crate::kernel_signature::{Param, ParamType, Signature};
use crate::manifest::keys::LAUNCH;
use crate::resolve::{ArgDraft, ArgDraftValue, Unit, with_article};

use super::errors::{
    ArgumentMisfit, ConstOutput, ElementMisfit, MissingArguments, NamelessParameters, SharedParameterName,
    UnknownParameter, UnknownTensor, WritableInput,
};
use super::{bytes, pointee};

/// Returns element sizes in bytes by pointer parameter: 4 for `float4*`. Omits opaque types.
#[must_use]
pub fn number_bytes(signature: &Signature) -> Vec<(String, u32)> {
    let bytes = |param: &Param| match param.ty {
        ParamType::Pointer { leaf, .. } => Some((param.name.clone(), leaf.size()?)),
        _ => None,
    };
    signature.params.iter().filter_map(bytes).collect()
}

/// Returns arguments in the kernel's order. Fails as [`check_names`], or if arguments do not fit.
pub fn bind_args(plugin: &Plugin, unit: &Unit, signature: &Signature) -> Result<Vec<Arg>, Vec<Diagnostic>> {
    let names = Names { unit, signature };
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

/// Arguments in the kernel's order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BoundArgs {
    /// Arguments.
    pub args: Vec<Arg>,
    /// See [`read_only`].
    pub read_only: Vec<String>,
    /// See [`number_bytes`].
    pub number_bytes: Vec<(String, u32)>,
}

/// Returns parameters that point to `const`.
#[must_use]
pub fn read_only(signature: &Signature) -> Vec<String> {
    let is_const = |param: &&Param| matches!(param.ty, ParamType::Pointer { is_const: true, .. });
    signature.params.iter().filter(is_const).map(|param| param.name.clone()).collect()
}

/// Returns shared parameter names, else nameless parameters, unknown and missing arguments.
#[must_use]
pub fn check_names(unit: &Unit, signature: &Signature) -> Vec<Diagnostic> {
    let names = Names { unit, signature };
    names.shared().map_or_else(|| names.problems(), |problem| vec![problem])
}

/// Binds an argument to its parameter, if it fits.
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

/// Warns about writable inputs, which TensorRT shares.
#[must_use]
pub fn writable_inputs(plugin: &Plugin, unit: &Unit, signature: &Signature) -> Vec<Diagnostic> {
    let bound = unit.args.iter().filter_map(|arg| Some((arg, signature.find(&arg.name)?.1)));
    bound.filter_map(|(arg, param)| writable_input(plugin, unit, arg, param)).collect()
}

/// Warns as [`writable_inputs`] about one argument.
#[must_use]
pub fn writable_input(plugin: &Plugin, unit: &Unit, arg: &ArgDraft, param: &Param) -> Option<Diagnostic> {
    let ArgDraftValue::Tensor(tensor) = arg.value else { return None };
    let input = plugin.inputs.get(usize::try_from(tensor).ok()?)?;
    // Outputs in place may be written.
    if plugin.storage_of(tensor as usize) != tensor as usize {
        return None;
    }
    let ParamType::Pointer { pointee, is_const: false, .. } = &param.ty else { return None };
    let (input, parameter, spelling) = (&input.name, &param.name, &param.spelling);
    let in_place = replaced(plugin, unit, tensor).map(|output| {
        format!(
            "; or, if the kernel modifies it in place, set `alias = \"{input}\"` of the output `{}` instead of its type and shape",
            output.name
        )
    });
    let (in_place, span) = (in_place.unwrap_or_default(), arg.value_span.clone());
    Some(WritableInput { input, parameter, spelling, pointee, in_place, span }.into())
}

fn replaced<'p>(plugin: &'p Plugin, unit: &Unit, input: u32) -> Option<&'p Output> {
    let outputs = (plugin.inputs.len()..).zip(&plugin.outputs);
    let mut alike = outputs.filter(|(tensor, output)| {
        let has_type_of = |variant: &Variant| variant.types.get(*tensor) == variant.types.get(input as usize);
        let is_it = |arg: &ArgDraft| matches!(arg.value, ArgDraftValue::Tensor(it) if it as usize == *tensor);
        output.alias.is_none()
            && output.shape.nodes.as_slice() == [Node::Shape(input)]
            && plugin.variants.iter().all(has_type_of)
            && !unit.args.iter().any(is_it)
    });
    alike.next().map(|(_, output)| output)
}

struct Names<'a> {
    unit: &'a Unit,
    signature: &'a Signature,
}

impl<'a> Names<'a> {
    /// Probable pairs are one error: misspelt names, unknown arguments for nameless parameters.
    fn problems(&self) -> Vec<Diagnostic> {
        let nameless = self.nameless();
        let unknown = self.unit.args.iter().filter(|arg| self.signature.find(&arg.name).is_none());
        let unknown: Vec<(&ArgDraft, Option<&str>)> = unknown.map(|arg| (arg, self.meant(arg))).collect();
        let meant: Vec<&str> = unknown.iter().filter_map(|(_, meant)| *meant).collect();
        let reported = unknown.iter().filter(|(_, meant)| nameless.is_none() || meant.is_some());
        let reported: Vec<Diagnostic> = reported.map(|(arg, meant)| self.unknown(arg, *meant)).collect();
        let missing = self.missing(&meant);
        nameless.into_iter().chain(reported).chain(missing).collect()
    }

    fn meant(&self, arg: &ArgDraft) -> Option<&str> {
        let named = self.signature.params.iter().filter(|param| !param.name.is_empty());
        let free = named.filter(|param| self.arg_of(param).is_none());
        suggest(&arg.name, free.map(|param| param.name.as_str()))
    }

    fn arg_of(&self, param: &Param) -> Option<&'a ArgDraft> {
        self.unit.args.iter().find(|arg| arg.name == param.name && !param.name.is_empty())
    }

    /// For precompiled code, the signature may be wrong.
    fn with_signature(&self, diagnostic: impl Into<Diagnostic>) -> Diagnostic {
        let diagnostic = diagnostic.into();
        let diagnostic = match &self.unit.foreign {
            Some(code) => diagnostic.related(code.name_span.clone(), "`parameters` of this code"),
            None => diagnostic,
        };
        diagnostic.note(format!("the kernel is `{}`", self.signature))
    }

    fn nameless(&self) -> Option<Diagnostic> {
        let params = self.signature.params.iter().enumerate();
        let nameless = params.filter(|(_, param)| param.name.is_empty());
        let nameless: Vec<String> = nameless
            .map(|(position, param)| format!("number {} (`{}`)", position + 1, param.spelling))
            .collect();
        let (noun, verb) = match nameless.len() {
            0 => return None,
            1 => ("parameter", "has no name"),
            _ => ("parameters", "have no names"),
        };
        let (kernel, span) = (&self.unit.kernel, self.unit.kernel_span.clone());
        Some(self.with_signature(NamelessParameters { noun, verb, which: nameless.join(", "), kernel, span }))
    }

    /// Reports equally named parameters, such as those of a pack: they would share an argument.
    fn shared(&self) -> Option<Diagnostic> {
        let params = &self.signature.params;
        let count = |name: &str| params.iter().filter(|param| param.name == name).count();
        let mut names = params.iter().map(|param| param.name.as_str());
        let name = names.find(|name| !name.is_empty() && count(name) > 1)?;
        let (kernel, span) = (&self.unit.kernel, self.unit.kernel_span.clone());
        Some(self.with_signature(SharedParameterName { kernel, count: count(name), name, span }))
    }

    fn unknown(&self, arg: &ArgDraft, meant: Option<&str>) -> Diagnostic {
        // Lines after `[launches.args]` belong to that table.
        let is_key = LAUNCH.keys.iter().any(|key| key.name == arg.name);
        let help = match meant {
            _ if is_key => {
                Some(format!("move `{}`, a key of `{}`, above `[launches.args]`", arg.name, LAUNCH.title))
            }
            meant => meant.map(|name| format!("did you mean `{name}`?")),
        };
        let (kernel, parameter, span) = (&self.unit.kernel, &arg.name, arg.name_span.clone());
        self.with_signature(UnknownParameter { kernel, parameter, help, span })
    }

    fn missing(&self, meant: &[&str]) -> Option<Diagnostic> {
        let named = self.signature.params.iter().filter(|param| !param.name.is_empty());
        let without = named.filter(|param| self.arg_of(param).is_none());
        let names = without.map(|param| param.name.as_str()).filter(|name| !meant.contains(name));
        let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        let (noun, verb, them) = match names.len() {
            0 => return None,
            1 => ("parameter", "has no argument", "an argument, or remove the parameter"),
            _ => ("parameters", "have no arguments", "an argument for each, or remove them"),
        };
        let (kernel, names, span) = (&self.unit.kernel, names.join(", "), self.unit.args_span.clone());
        Some(self.with_signature(MissingArguments { noun, names, kernel, verb, them, span }))
    }
}

struct Values<'a> {
    plugin: &'a Plugin,
    unit: &'a Unit,
    signature: &'a Signature,
}

impl Values<'_> {
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
        let span = arg.value_span.clone();
        let (Some(name), Some(ty)) = (name, ty) else {
            return Err(UnknownTensor { tensor, argument: &arg.name, span }.into());
        };
        let ParamType::Pointer { pointee, pointee_size, is_const, leaf } = &param.ty else {
            let label = format!("`{name}` is a tensor, which is passed as a pointer");
            let help = "pass a number, such as `numel(x)` or `x.shape[0]`, or make the parameter a pointer";
            return Err(misfit(arg, param, label, Some(help.to_owned())));
        };
        let storage = self.plugin.storage_of(index);
        let is_output = storage >= self.plugin.inputs.len();
        let is_shared = self.unit.shared_outputs.iter().any(|shared| *shared as usize == storage);
        if is_output && *is_const && !is_shared {
            let output = self.plugin.tensor_name(storage).unwrap_or(name);
            let output = match storage == index {
                true => format!("the output `{output}` is"),
                false => format!("`{name}`, which shares the memory of the output `{output}`, is"),
            };
            let parameter = &param.name;
            let help = match self.written_input() {
                Some(other) => format!("did you swap `{}` and `{}`?", arg.name, other.name),
                None if pointee.ends_with(']') => {
                    "remove `const` from the parameter, or pass an input".to_owned()
                }
                None if storage != index => format!("declare the parameter as `{pointee}* {parameter}`"),
                None => format!("declare the parameter as `{pointee}* {parameter}`, or pass an input"),
            };
            return Err(ConstOutput { output, parameter, help, span }.into());
        }
        if let Some(reason) = pointee::misfit(*ty, *pointee_size, *leaf) {
            let size = pointee_size.map(|size| format!(" of {}", bytes(size))).unwrap_or_default();
            let pointee = format!("`{pointee}`{size}");
            let element =
                ty.size().map_or("two elements per byte".to_owned(), |it| bytes(it) + " per element");
            let (param, spelling, cuda, ty) = (&param.name, &param.spelling, ty.cuda_name(), ty.name());
            let found = ElementMisfit { name, ty, param, spelling, element, cuda, pointee, reason, span };
            return Err(found.into());
        }
        Ok(if *is_const { ArgValue::ReadTensor(tensor) } else { ArgValue::Tensor(tensor) })
    }

    /// Sizes are checked after the compile.
    fn scratch(&self, index: u32, arg: &ArgDraft, param: &Param) -> Result<ArgValue, Diagnostic> {
        if let ParamType::Pointer { .. } = &param.ty {
            return Ok(ArgValue::Scratch(index));
        }
        let buffers = self.plugin.variants.get(self.unit.variant).map_or(&[][..], |variant| &variant.scratch);
        let name = buffers.get(index as usize).map_or("?", |scratch| &scratch.name);
        let label = format!("`{name}` is a scratch buffer, which is passed as a pointer");
        Err(misfit(arg, param, label, Some("make the parameter a pointer, or pass a number".to_owned())))
    }

    fn written_input(&self) -> Option<&ArgDraft> {
        self.unit.args.iter().find(|arg| {
            let is_input = matches!(arg.value, ArgDraftValue::Tensor(index)
                if usize::try_from(index).is_ok_and(|index| index < self.plugin.inputs.len()));
            let param = self.signature.find(&arg.name).map(|(_, param)| &param.ty);
            is_input && matches!(param, Some(ParamType::Pointer { is_const: false, .. }))
        })
    }
}

fn expression(expr: &Expr, kind: &Kind, arg: &ArgDraft, param: &Param) -> Result<ArgValue, Diagnostic> {
    let value = format!("the value is {}", with_article(&kind.to_string()));
    let (label, help) = match (&param.ty, kind) {
        (ParamType::Pointer { .. }, _) => (
            value,
            "pass a tensor to a pointer by its bare name; numbers and arrays are passed by value".to_owned(),
        ),
        (ParamType::Other { name, .. }, _) => {
            let help = match name.as_str() {
                "__half" | "half" | "__nv_bfloat16" | "nv_bfloat16" | "__nv_fp8_e4m3" => {
                    "use a `float` and convert it in the kernel"
                }
                _ => "use numbers, `bool`, or arrays of them such as `cubinder::array<int, 8>`",
            };
            (format!("`{name}` cannot be passed by value"), help.to_owned())
        }
        (ParamType::Array { element, len }, Kind::Array(item)) => {
            match (conversion(item, *element), literal_length(expr)) {
                (Some(problem), _) => (value, problem.to_owned()),
                (None, Some(found)) if u32::try_from(found) != Ok(*len) => (
                    format!("expected length {len}, found {found}"),
                    format!(
                        "pass an array of length {len}; `[get(x.shape, i, 1) for i in range({len})]` pads with ones"
                    ),
                ),
                _ => return Ok(ArgValue::Array { ty: *element, len: *len, expr: expr.clone() }),
            }
        }
        (ParamType::Array { len, .. }, _) => (value, format!("pass an array of length {len}: `[a, b, ...]`")),
        (_, Kind::Array(_)) => (
            value,
            "pass one element, such as `x.shape[0]`, or use a `cubinder::array<T, N>` in the kernel"
                .to_owned(),
        ),
        (ty, kind) => {
            let Some(ty) = scalar_of(ty) else { return Err(misfit(arg, param, value, None)) };
            match conversion(kind, ty) {
                Some(problem) => (value, problem.to_owned()),
                None => return Ok(ArgValue::Scalar { ty, expr: expr.clone() }),
            }
        }
    };
    Err(misfit(arg, param, label, Some(help)))
}

fn misfit(arg: &ArgDraft, param: &Param, label: String, help: Option<String>) -> Diagnostic {
    let (spelling, parameter, span) = (&param.spelling, &param.name, arg.value_span.clone());
    ArgumentMisfit { spelling, parameter, label, help, span }.into()
}

pub(super) fn scalar_of(ty: &ParamType) -> Option<ScalarType> {
    match ty {
        ParamType::Enum(ty) | ParamType::Scalar(ty) => Some(*ty),
        ParamType::Pointer { .. } | ParamType::Array { .. } | ParamType::Other { .. } => None,
    }
}

/// Integers may be passed as floats: launches reject inexact ones.
fn conversion(kind: &Kind, ty: ScalarType) -> Option<&'static str> {
    match (kind, ty) {
        (Kind::Int | Kind::Float, ScalarType::Bool) => Some("compare it: `n != 0`"),
        (Kind::Int, _)
        | (Kind::Float, ScalarType::F32 | ScalarType::F64)
        | (Kind::Bool, ScalarType::Bool) => None,
        (Kind::Float, _) => Some(
            "convert it with `int(...)`, which truncates toward zero, or use a float parameter in the kernel",
        ),
        (Kind::Bool, ScalarType::F32 | ScalarType::F64) => Some("select a number: `1.0 if c else 0.0`"),
        (Kind::Bool, _) => Some("select a number: `1 if c else 0`"),
        (Kind::Str, _) => Some("compare it with a value: `1 if mode == \"wrap\" else 0`"),
        (Kind::Array(_), _) => Some("pass one of its elements"),
    }
}

pub(crate) fn literal_length(expr: &Expr) -> Option<usize> {
    match expr.nodes.last()? {
        Node::Array(items) => Some(items.len()),
        _ => None,
    }
}
