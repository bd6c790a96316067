use std::path::{Path, PathBuf};

use cubinder_model::KernelFacts;

use super::{FoundCode, FoundParam, FoundPlugin, FoundVariant, Role, identifier};
use crate::cubin::{self, Cluster, Dynamic, PtxParam};
use crate::diagnostic::{Diagnostic, suggest};
use crate::foreign::errors::{AmbiguousArgument, NoSuchKernel, UnnamedArgument};
use crate::foreign::mangled::{self, Mangled};
use crate::foreign::names::{self, Unclear};
use crate::foreign::{load, symbols};
use crate::kernel_signature::{Param, ParamType};
use crate::loaded::LoadedCode;
use crate::manifest::CodeKind;
use crate::placeholder::{self, ELEMENT, unknown_type};
use crate::source;

/// Returns facts about the named or only kernel; fails if ambiguous, or missing in a file.
pub fn files(paths: &[PathBuf], kernel: Option<&str>) -> Result<FoundPlugin, Vec<Diagnostic>> {
    let mut loaded: Vec<(CodeKind, PathBuf, LoadedCode)> = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        let kind = kind_of(path);
        match load(path, kind) {
            Ok(found) => loaded.push((kind, path.clone(), found)),
            Err(error) => errors.push(error),
        }
    }
    let Some((_, _, first)) = loaded.first() else { return Err(errors) };
    let symbol = match (names::symbol(&first.kernels, kernel), kernel) {
        (Ok(symbol), _) => symbol.to_owned(),
        (Err(Unclear::Several(symbols)), Some(name)) => {
            let (count, kernels) = (symbols.len(), names::listed(symbols.into_iter()));
            errors.push(AmbiguousArgument { name, count, kernels }.into());
            return Err(errors);
        }
        (Err(_), _) => {
            errors.push(UnnamedArgument { kernels: names::listed(symbols(first)) }.into());
            return Err(errors);
        }
    };
    for (_, path, found) in &loaded {
        if symbols(found).all(|known| known != symbol) {
            let near = suggest(&symbol, symbols(found));
            let kernels = near.is_none().then(|| names::listed(symbols(found)));
            errors.push(NoSuchKernel { file: path.display(), symbol: &symbol, kernels, near }.into());
        }
    }
    if errors.is_empty() { Ok(found(&symbol, loaded)) } else { Err(errors) }
}

/// Unreadable files are reported later.
fn kind_of(path: &Path) -> CodeKind {
    use std::io::Read;
    let mut magic = [0; 4];
    let read = source::open(path).ok().and_then(|mut file| file.read_exact(&mut magic).ok());
    match read {
        Some(()) if magic == *b"\x7fELF" || cubin::is_fatbin(&magic) => CodeKind::Cubin,
        _ => CodeKind::Ptx,
    }
}

/// Returns the facts about a kernel that all files have.
#[must_use]
pub fn found(symbol: &str, loaded: Vec<(CodeKind, PathBuf, LoadedCode)>) -> FoundPlugin {
    let name = mangled::demangle(symbol).map_or_else(|| symbol.to_owned(), |demangled| demangled.name);
    let params = params(symbol, &loaded);
    let mut variant = FoundVariant::default();
    let mut remarks = Vec::new();
    let mut most: Option<u32> = None;
    for (_, _, loaded) in &loaded {
        let rules = loaded.rules.get(symbol).copied().unwrap_or_default();
        variant.block = variant.block.or(rules.block);
        if let Some(Cluster::Of(size)) = rules.cluster {
            variant.cluster = Some(size);
        }
        most = most.or(kernel_of(loaded, symbol).and_then(|kernel| kernel.max_threads));
    }
    if let (Some(most), None) = (most, variant.block) {
        remarks.push(format!("the kernel allows at most {most} threads per block"));
    }
    let says = || {
        loaded.iter().filter_map(|(_, _, loaded)| {
            let bytes = kernel_of(loaded, symbol)?.shared_bytes.unwrap_or(0);
            Some((loaded.rules.get(symbol)?.dynamic_shared, bytes))
        })
    };
    let is_said = |wanted: Dynamic| says().any(|(dynamic, _)| dynamic == wanted);
    let fixed = says().map(|(_, bytes)| bytes).max().unwrap_or(0);
    variant.shared_bytes = match (is_said(Dynamic::Yes), is_said(Dynamic::No)) {
        (true, _) => None,
        (false, true) => Some("0".to_owned()),
        // All shared memory may be dynamic.
        (false, false) if fixed == 0 => None,
        (false, false) => {
            remarks.push(format!(
                "besides {fixed} bytes of static shared memory the kernel may use dynamic shared memory (`extern __shared__`), which a \
                 cubin does not record: set `shared_bytes` then"
            ));
            Some("0".to_owned())
        }
    };
    let tool = loaded.iter().map(|(_, _, loaded)| loaded.tool.clone()).find(|tool| !tool.is_empty());
    let files = loaded.into_iter().map(|(kind, path, _)| (kind, path)).collect();
    variant.codes = vec![FoundCode { ty: None, kernel: symbol.to_owned(), params, files }];
    FoundPlugin {
        name: identifier(&name),
        made_by: tool.unwrap_or_default(),
        variants: vec![variant],
        remarks,
        ..FoundPlugin::default()
    }
}

fn kernel_of<'l>(loaded: &'l LoadedCode, symbol: &str) -> Option<&'l KernelFacts> {
    loaded.kernels.iter().find(|kernel| kernel.symbol == symbol)
}

/// Prefers debug information, then the symbol, then sizes with PTX.
fn params(symbol: &str, loaded: &[(CodeKind, PathBuf, LoadedCode)]) -> Vec<FoundParam> {
    let Some(facts) = loaded.iter().find_map(|(_, _, loaded)| kernel_of(loaded, symbol)) else {
        return Vec::new();
    };
    let of_debug = loaded.iter().find_map(|(_, _, loaded)| {
        loaded.signatures.get(symbol).filter(|signature| signature.params.len() == facts.params.len())
    });
    if let Some(signature) = of_debug {
        let params = signature.params.iter().zip(&facts.params).enumerate();
        return params.map(|(at, (param, known))| of_signature(at, param, known.size)).collect();
    }
    if let Some(params) = mangled::demangle(symbol).and_then(|found| of_symbol(&found.params, facts)) {
        return params;
    }
    let origin = loaded.iter().find_map(|(_, _, loaded)| {
        let (_, origin) = loaded.ptx.as_ref()?;
        origin.entries.iter().find(|entry| entry.symbol == symbol)
    });
    let says = |at: usize| origin.and_then(|entry| entry.params.get(at).copied());
    facts.params.iter().enumerate().map(|(at, param)| bare(at, param.size, says(at))).collect()
}

fn bare(at: usize, size: u32, says: Option<PtxParam>) -> FoundParam {
    let name = format!("p{at}");
    let number = |ty: &str| FoundParam::new(&name, format!(": {ty}"), Role::Unknown);
    // In PTX, integer types of one size are equal.
    let about = match (says, size) {
        (Some(PtxParam::Pointer), _) => {
            return FoundParam::new(&name, format!(": {ELEMENT}*"), Role::Tensor);
        }
        (Some(PtxParam::Float), 4) => return number("f32"),
        (Some(PtxParam::Float), 8) => return number("f64"),
        (Some(PtxParam::Integer), 1) => "i8, u8 or bool",
        (Some(PtxParam::Integer), 2) => "i16 or u16",
        (Some(PtxParam::Integer), 4) => "i32 or u32",
        (Some(PtxParam::Integer), 8) => "i64, u64, or a pointer such as `const f32*`",
        _ => "",
    };
    number(&unknown_type(size)).about(about.to_owned())
}

fn of_signature(at: usize, param: &Param, size: u32) -> FoundParam {
    let name = if param.name.is_empty() { format!("p{at}") } else { identifier(&param.name) };
    let number = |ty: &str| (format!(": {ty}"), Role::Unknown);
    let (rest, role) = match &param.ty {
        ParamType::Pointer { pointee, is_const, .. } => {
            let (word, role) = match mangled::element(pointee) {
                Some(element) => (element.clone(), role(&element, *is_const)),
                None => ("void".to_owned(), Role::Tensor),
            };
            (format!(": {}{word}*", if *is_const { "const " } else { "" }), role)
        }
        ParamType::Scalar(scalar) => number(&scalar.to_string()),
        ParamType::Enum(_) | ParamType::Array { .. } | ParamType::Other { .. } => number(&unknown_type(size)),
    };
    FoundParam::new(&name, rest, role)
}

/// `None` if the symbol's sizes differ from the file's.
fn of_symbol(types: &[String], facts: &KernelFacts) -> Option<Vec<FoundParam>> {
    let mut params = Vec::new();
    for (at, ty) in types.iter().enumerate() {
        let name = format!("p{at}");
        let number = |ty: &str| FoundParam::new(&name, format!(": {ty}"), Role::Unknown);
        params.extend(match mangled::mangled(ty) {
            Some(Mangled::Pointer(pointee, is_const)) => {
                let word = if is_const { "const " } else { "" };
                let role = role(&pointee, is_const);
                vec![(8, FoundParam::new(&name, format!(": {word}{pointee}*"), role))]
            }
            Some(Mangled::Number(ty, size)) => vec![(size, number(&ty))],
            Some(Mangled::Array(element, size, len)) => {
                vec![(size.checked_mul(len)?, number(&format!("{element}[{len}]")))]
            }
            Some(Mangled::Numba(element, dimensions, is_c)) => {
                of_numba(&name, &element, dimensions, is_c).into_iter().map(|param| (8, param)).collect()
            }
            None => {
                let size = facts.params.get(params.len())?.size;
                vec![(size, number(&unknown_type(size)))]
            }
        });
    }
    let fits = params.len() == facts.params.len()
        && params.iter().zip(&facts.params).all(|((size, _), known)| *size == known.size);
    fits.then(|| params.into_iter().map(|(_, param)| param).collect())
}

/// `ArrayModel` of numba-cuda 0.30.
fn of_numba(name: &str, element: &str, dimensions: usize, is_c: bool) -> Vec<FoundParam> {
    let tensor = placeholder::tensor(name);
    let part = |part: &str, ty: &str, value: String| {
        FoundParam::new(&format!("{name}_{part}"), format!(": {ty}"), Role::Is(value))
    };
    let mut params = vec![
        part("meminfo", "u64", "0".to_owned()),
        part("parent", "u64", "0".to_owned()),
        part("nitems", "i64", format!("\"numel({tensor})\"")),
        part("itemsize", "i64", format!("\"sizeof({element})\"")),
        FoundParam::new(name, format!(": {element}*"), Role::Tensor),
    ];
    params.extend(
        (0..dimensions).map(|at| part(&format!("shape{at}"), "i64", format!("\"{tensor}.shape[{at}]\""))),
    );
    params.extend((0..dimensions).map(|at| {
        let inner = (at + 1..dimensions).map(|at| format!("{tensor}.shape[{at}] * "));
        let bytes = format!("\"{}sizeof({element})\"", inner.collect::<String>());
        let value = if is_c {
            bytes
        } else {
            format!("\"{}\"", placeholder::value_of(&format!("{name}_stride{at}")))
        };
        part(&format!("stride{at}"), "i64", value)
    }));
    params
}
fn role(pointee: &str, is_const: bool) -> Role {
    match (mangled::tensor_element(pointee), is_const) {
        (Some(element), true) => Role::Input(element.to_owned()),
        (Some(element), false) => Role::Output(element.to_owned()),
        (None, _) => Role::Tensor,
    }
}
