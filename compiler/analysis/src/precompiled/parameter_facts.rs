//! Compares arguments with a file's facts about parameters: debug information, C++ and Numba symbols, Triton's
//! `NAME.ttir`. Never reports uncertain types, such as bytes.

use cubinder_expr::{DataType, ScalarType};
use cubinder_model::{KernelFacts, Plugin};

use super::errors::ParameterContradicted;
use crate::diagnostic::Diagnostic;
use crate::foreign::mangled as symbols;
use crate::kernel_signature::{Leaf, Param, ParamType};
use crate::loaded::{Argument, Function, LoadedCode};
use crate::manifest::toml_reader::list;
use crate::resolve::{ArgDraft, ArgDraftValue, ForeignCode, Unit, element};
use crate::verify;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ParameterFact {
    Unknown,
    Pointer(Pointer),
    /// Integer type, spelled as in the file.
    Integer(String),
    Float(String),
    /// Points to other memory than a tensor.
    Internal(&'static str),
}

impl ParameterFact {
    pub(super) fn is_of_type(&self) -> bool {
        match self {
            ParameterFact::Unknown | ParameterFact::Internal(_) => false,
            ParameterFact::Pointer(pointer) => pointer.to.is_some(),
            ParameterFact::Integer(_) | ParameterFact::Float(_) => true,
        }
    }

    /// Whether the kernel would dereference it.
    pub(super) fn is_address(&self) -> bool {
        matches!(self, ParameterFact::Pointer(_) | ParameterFact::Internal(_))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pointer {
    /// Type as the file spells it: `float const*`.
    spelling: String,
    /// `None` for bytes.
    to: Option<(Leaf, Option<u32>)>,
    is_const: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactSource {
    Debug,
    Symbol,
    Triton,
}

impl FactSource {
    pub(super) const fn text(self) -> &'static str {
        match self {
            FactSource::Debug => "according to the debug information of this file",
            FactSource::Symbol => "according to the kernel's symbol",
            FactSource::Triton => "according to the `.ttir` beside this file",
        }
    }
}

pub(super) fn parameter_facts(
    loaded: &LoadedCode,
    kernel: &KernelFacts,
) -> Option<(FactSource, Vec<ParameterFact>)> {
    let fits = |all: &Vec<ParameterFact>| all.len() == kernel.params.len();
    let of_debug = || of_debug(loaded, kernel).filter(fits).map(|all| (FactSource::Debug, all));
    let of_symbol = || of_symbol(&kernel.symbol).filter(fits).map(|all| (FactSource::Symbol, all));
    let of_triton = || {
        // Triton appends up to two pointers to scratch memory.
        let function = loaded.triton.as_ref().filter(|function| function.name == kernel.symbol)?;
        let mut all = of_triton_function(function);
        let scratch = kernel.params.len().checked_sub(all.len()).filter(|more| *more <= 2)?;
        all.extend((0..scratch).map(|_| ParameterFact::Internal("a pointer to Triton's scratch memory")));
        Some((FactSource::Triton, all))
    };
    of_debug().or_else(of_symbol).or_else(of_triton)
}

fn of_debug(loaded: &LoadedCode, kernel: &KernelFacts) -> Option<Vec<ParameterFact>> {
    let signature = loaded.signatures.get(&kernel.symbol)?;
    let fact = |param: &Param| match &param.ty {
        ParamType::Pointer { pointee_size, is_const, leaf, pointee } => ParameterFact::Pointer(Pointer {
            spelling: param.spelling.clone(),
            to: is_telling(pointee).then_some((*leaf, *pointee_size)),
            is_const: *is_const,
        }),
        ParamType::Scalar(ScalarType::F32 | ScalarType::F64) => ParameterFact::Float(param.spelling.clone()),
        ParamType::Scalar(_) => ParameterFact::Integer(param.spelling.clone()),
        ParamType::Enum(_) | ParamType::Array { .. } | ParamType::Other { .. } => ParameterFact::Unknown,
    };
    Some(signature.params.iter().map(fact).collect())
}

/// `char` may be any bytes.
fn is_telling(pointee: &str) -> bool {
    !matches!(pointee, "void" | "char" | "unsigned char" | "std::byte")
}

fn of_symbol(symbol: &str) -> Option<Vec<ParameterFact>> {
    let symbols::Demangled { params, .. } = symbols::demangle(symbol)?;
    Some(params.iter().flat_map(|param| of_cpp(param)).collect())
}

/// A Numba array has several facts.
fn of_cpp(text: &str) -> Vec<ParameterFact> {
    if let Some(symbols::Mangled::Numba(element, dimensions, _)) = symbols::mangled(text) {
        return of_numba(text, &element, dimensions);
    }
    let fact = match text {
        "float" | "double" => ParameterFact::Float(text.to_owned()),
        "bool" | "char" | "signed char" | "unsigned char" | "short" | "unsigned short" | "int"
        | "unsigned int" | "long" | "unsigned long" | "long long" | "unsigned long long" => {
            ParameterFact::Integer(text.to_owned())
        }
        _ => text.strip_suffix('*').map_or(ParameterFact::Unknown, |pointee| of_pointee(text, pointee)),
    };
    vec![fact]
}

fn of_pointee(spelling: &str, pointee: &str) -> ParameterFact {
    let words: Vec<&str> = pointee.split_whitespace().collect();
    let is_qualifier = |word: &&str| matches!(*word, "const" | "volatile");
    let base: Vec<&str> = words.iter().copied().filter(|word| !is_qualifier(word)).collect();
    let base = base.join(" ");
    ParameterFact::Pointer(Pointer {
        spelling: spelling.to_owned(),
        // Users may define `half`, but not CUDA's `__half`.
        to: symbols::element(&base).filter(|_| is_telling(&base)).and_then(|_| element(&base)),
        // `const` of pointers to pointers is the inner one's.
        is_const: words.contains(&"const") && !base.contains('*'),
    })
}

/// Expands a Numba array (numba-cuda 0.30, `ArrayModel`).
fn of_numba(text: &str, name: &str, dimensions: usize) -> Vec<ParameterFact> {
    let number = |what: &str| ParameterFact::Integer(format!("the {what} of Numba's `{text}`"));
    let mut all = vec![
        ParameterFact::Internal("the `meminfo` of a Numba array"),
        ParameterFact::Internal("the `parent` of a Numba array"),
        number("number of elements"),
        number("bytes per element"),
        ParameterFact::Pointer(Pointer {
            spelling: format!("the data of Numba's `{text}`"),
            to: element(name),
            is_const: false,
        }),
    ];
    all.extend((0..dimensions).map(|_| number("shape")));
    all.extend((0..dimensions).map(|_| number("strides")));
    all
}

fn of_triton_function(function: &Function) -> Vec<ParameterFact> {
    let fact = |argument: &Argument| {
        let ty = argument.ty.as_str();
        match (argument.is_pointer, ty) {
            (true, _) => ParameterFact::Pointer(Pointer {
                spelling: format!("!tt.ptr<{ty}>"),
                to: of_triton_type(ty).and_then(element),
                is_const: false,
            }),
            (false, "i1" | "i8" | "i16" | "i32" | "i64") => ParameterFact::Integer(ty.to_owned()),
            (false, "f32" | "f64") => ParameterFact::Float(ty.to_owned()),
            (false, _) => ParameterFact::Unknown,
        }
    };
    function.arguments.iter().map(fact).collect()
}

/// Integers are unsigned; 8 bits may be anything.
fn of_triton_type(ty: &str) -> Option<&str> {
    match ty {
        "f32" | "f64" | "f16" | "bf16" | "i16" | "i32" | "i64" => Some(ty),
        "i1" => Some("bool"),
        "f8E4M3FN" => Some("f8"),
        // These 8-bit types differ from `f8`.
        "f8E5M2" | "f8E4M3FNUZ" | "f8E5M2FNUZ" | "f8E4M3B11FNUZ" => Some("__nv_fp8_e5m2"),
        _ => None,
    }
}

pub(super) struct Check<'a> {
    pub(super) plugin: &'a Plugin,
    pub(super) unit: &'a Unit,
    pub(super) code: &'a ForeignCode,
}

impl Check<'_> {
    /// Merges misfits.
    pub(super) fn run(&self, facts: &[ParameterFact]) -> Option<Diagnostic> {
        let params = self.code.signature.params.iter().zip(&self.code.param_spans).zip(facts);
        let mut wrong = params.filter_map(|((param, span), fact)| {
            let arg = self.unit.args.iter().find(|arg| arg.name == param.name);
            let (parameter, span, argument) =
                (&param.name, span.clone(), arg.map(|arg| arg.value_span.clone()));
            let contradiction = self.contradiction(param, fact, arg)?;
            let kernel = shortened(&self.unit.kernel);
            Some(ParameterContradicted { parameter, contradiction, kernel, span, argument })
        });
        let first = wrong.next()?;
        let others: Vec<&str> = wrong.map(|other| other.parameter).collect();
        let first = Diagnostic::from(first);
        Some(match others.as_slice() {
            [] => first,
            [one] => first.note(format!("`{one}` does not match either")),
            names => first.note(format!("{} do not match either", list(names))),
        })
    }

    fn contradiction(&self, param: &Param, fact: &ParameterFact, arg: Option<&ArgDraft>) -> Option<String> {
        let is_address = matches!(param.ty, ParamType::Pointer { .. });
        let is_float = matches!(param.ty, ParamType::Scalar(ScalarType::F32 | ScalarType::F64));
        let is_integer = !is_float && matches!(param.ty, ParamType::Scalar(_));
        let is_tensor = |arg: &ArgDraft| matches!(arg.value, ArgDraftValue::Tensor(_));
        let takes = |what: &str| format!("is `{}`, but the kernel expects {what}", param.spelling);
        match fact {
            ParameterFact::Unknown => None,
            ParameterFact::Internal(what) => (is_address && arg.is_none_or(is_tensor)).then(|| takes(what)),
            ParameterFact::Integer(what) => (is_address || is_float).then(|| takes(&quoted(what))),
            ParameterFact::Float(what) => (is_address || is_integer).then(|| takes(&quoted(what))),
            ParameterFact::Pointer(pointer) if is_address => self.pointer(param, pointer, arg),
            // Numbers are checked separately; 0 is a null pointer.
            ParameterFact::Pointer(_) if is_integer => None,
            ParameterFact::Pointer(pointer) => Some(takes(&quoted(&pointer.spelling))),
        }
    }

    fn pointer(&self, param: &Param, pointer: &Pointer, arg: Option<&ArgDraft>) -> Option<String> {
        let what = quoted(&pointer.spelling);
        if let (Some((leaf, _)), ParamType::Pointer { leaf: declared, .. }) = (pointer.to, &param.ty)
            && is_another(leaf, *declared)
        {
            return Some(format!("is `{}`, but the kernel expects {what}", param.spelling));
        }
        let ArgDraftValue::Tensor(tensor) = arg?.value else { return None };
        let index = usize::try_from(tensor).ok()?;
        let name = self.plugin.tensor_name(index)?;
        let ty: DataType = *self.plugin.variants.get(self.unit.variant)?.types.get(index)?;
        if let Some((leaf, size)) = pointer.to
            && let Some(why) = verify::misfit(ty, size, leaf)
        {
            return Some(format!(
                "receives `{name}` of type `{}`, but the kernel expects {what}: {why}",
                ty.name()
            ));
        }
        // Another launch may write a shared output.
        let storage = self.plugin.storage_of(index);
        let is_shared = self.unit.shared_outputs.iter().any(|shared| *shared as usize == storage);
        if pointer.is_const && storage >= self.plugin.inputs.len() && !is_shared {
            let output = self.plugin.tensor_name(storage).unwrap_or(name);
            return Some(format!(
                "receives the output `{output}`, but the kernel does not write through {what}"
            ));
        }
        None
    }
}

pub(crate) fn shortened(symbol: &str) -> String {
    const MOST: usize = 60;
    match symbols::demangle(symbol) {
        Some(symbols::Demangled { name, .. }) if symbol.len() > MOST && !name.is_empty() => name,
        _ => symbol.to_owned(),
    }
}

fn quoted(what: &str) -> String {
    if what.starts_with("the ") { what.to_owned() } else { format!("`{what}`") }
}

/// Integers match any type of their width.
fn is_another(in_file: Leaf, declared: Leaf) -> bool {
    use ScalarType::{Bool, Int, UInt};
    let is_integer = |leaf: Leaf| matches!(leaf, Leaf::Scalar(Int { .. } | UInt { .. } | Bool));
    let is_known = |leaf: Leaf| {
        matches!(leaf, Leaf::Scalar(_) | Leaf::Half | Leaf::Bfloat16 | Leaf::Float8 | Leaf::OtherFloat8)
    };
    if in_file == declared || !is_known(in_file) || !is_known(declared) {
        return false;
    }
    // Manifests declare such types as integers.
    if in_file == Leaf::OtherFloat8 && is_integer(declared) {
        return false;
    }
    // The bound tensor decides for vectors and wide integers.
    let (size, declared_size) = (in_file.size(), declared.size());
    match (is_integer(in_file), is_integer(declared)) {
        (true, true) | (true, false) => size < declared_size,
        (false, _) => size <= declared_size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(symbol: &str) -> Vec<String> {
        let told = of_symbol(symbol).unwrap();
        told.iter()
            .map(|told| match told {
                ParameterFact::Pointer(Pointer { to, is_const, .. }) => {
                    let to = to.map(|(leaf, size)| format!("{leaf:?} {size:?}")).unwrap_or_default();
                    format!("{}*{to}", if *is_const { "const " } else { "" })
                }
                ParameterFact::Integer(_) => "integer".to_owned(),
                ParameterFact::Float(_) => "float".to_owned(),
                ParameterFact::Internal(_) => "word".to_owned(),
                ParameterFact::Unknown => "?".to_owned(),
            })
            .collect()
    }

    #[test]
    fn symbols_of_cpp_tell_types() {
        // perm<float, 1>(const float*, float*, Dims, long long)
        assert_eq!(
            shown("_Z4permIfLi1EEvPKT_PS0_4Dimsx"),
            ["const *Scalar(F32) Some(4)", "*Scalar(F32) Some(4)", "?", "integer"]
        );
        // k(const __half*, __nv_bfloat16*, const float4*, const void*, unsigned char*, const char*)
        assert_eq!(
            shown("_Z1kPK6__halfP13__nv_bfloat16PK6float4PKvPhPKc"),
            [
                "const *Half Some(2)",
                "*Bfloat16 Some(2)",
                "const *Scalar(F32) Some(16)",
                "const *",
                "*",
                "const *",
            ]
        );
        // k(float**, const float* const*, half*, int (*)(int), float&, std::complex<float>*)
        assert_eq!(shown("_Z1kPPfPKPKfP4halfPFiiERfPSt7complexIfE"), ["*", "*", "*", "?", "?", "*"]);
    }

    #[test]
    fn symbols_tell_other_floats_of_8_bits() {
        // k(const __nv_fp8_e4m3*, const __nv_fp8_e5m2*, __nv_fp8_e8m0*)
        assert_eq!(
            shown("_Z1kPK13__nv_fp8_e4m3PK13__nv_fp8_e5m2P13__nv_fp8_e8m0"),
            ["const *Float8 Some(1)", "const *OtherFloat8 Some(1)", "*OtherFloat8 Some(1)"]
        );
    }

    #[test]
    fn symbols_of_numba_tell_parts() {
        let symbol = "_ZN8__main__4turnB2v1E5ArrayIfLi2E1C7mutable7alignedEi";
        let told = shown(symbol);
        assert_eq!(
            told,
            [
                "word",
                "word",
                "integer",
                "integer",
                "*Scalar(F32) Some(4)",
                "integer",
                "integer",
                "integer",
                "integer",
                "integer",
            ]
        );
    }

    #[test]
    fn what_cannot_be_the_same_is_told() {
        let (f32, f64) = (Leaf::Scalar(ScalarType::F32), Leaf::Scalar(ScalarType::F64));
        let int = |bytes| Leaf::Scalar(ScalarType::Int { bytes });
        for (told, declared, expected) in [
            (f64, f32, false),
            (f32, f64, true),
            (f32, f32, false),
            (Leaf::Half, f32, true),
            (Leaf::Half, Leaf::Bfloat16, true),
            (Leaf::OtherFloat8, Leaf::Float8, true),
            (Leaf::OtherFloat8, int(1), false),
            (Leaf::OtherFloat8, Leaf::Half, true),
            (Leaf::Float8, Leaf::OtherFloat8, true),
            (f32, int(4), true),
            (int(4), f32, false),
            (int(4), int(8), true),
            (int(2), Leaf::Half, false),
            (int(8), Leaf::Half, false),
            (f32, Leaf::Opaque, false),
            (Leaf::Opaque, f32, false),
        ] {
            assert_eq!(is_another(told, declared), expected, "{told:?} {declared:?}");
        }
    }
}
