//! Cubins and PTX: what they tell of one kernel.

use std::path::{Path, PathBuf};

use cubinder_model::KernelFacts;

use super::types::{self, Mangled};
use super::{Found, FoundCode, FoundParam, FoundVariant, Role, identifier};
use crate::cubin::{self, Cluster, Dynamic, PtxParam};
use crate::diagnostic::{Diagnostic, suggest};
use crate::foreign::load;
use crate::foreign::names::{self, Named};
use crate::kernel_signature::{Param, ParamType};
use crate::loaded::Loaded;
use crate::manifest::CodeKind;
use crate::placeholder::{self, ELEMENT, unknown_type};
use crate::rules;
use crate::source;

/// What these files tell of a kernel: the one that is named, or the only one.
///
/// # Errors
/// Files that cannot be used; where they have several kernels and none is named; where one lacks the kernel.
pub fn files(paths: &[PathBuf], kernel: Option<&str>) -> Result<Found, Vec<Diagnostic>> {
    let mut loaded: Vec<(CodeKind, PathBuf, Loaded)> = Vec::new();
    let mut errors = Vec::new();
    for path in paths {
        let kind = kind_of(path);
        match load(path, kind) {
            Ok(found) => loaded.push((kind, path.clone(), found)),
            Err(error) => errors.push(error),
        }
    }
    let Some((_, _, first)) = loaded.first() else { return Err(errors) };
    let all: Vec<&str> = first.kernels.iter().map(|kernel| kernel.symbol.as_str()).collect();
    let symbol = match (kernel, all.as_slice()) {
        (Some(name), _) => match names::named(&first.kernels, name) {
            Named::One(symbol) => symbol.to_owned(),
            Named::Several(symbols) => {
                errors.push(
                    Diagnostic::error(format!("`{name}` may be any of {} kernels", symbols.len()))
                        .code(rules::KERNEL_NOT_FOUND)
                        .note(format!("they are {}", names::listed(symbols.into_iter())))
                        .help("name the instance, such as `--kernel 'perm<float, 1>'`, or the symbol"),
                );
                return Err(errors);
            }
            Named::Unknown => name.to_owned(),
        },
        (None, [one]) => (*one).to_owned(),
        (None, _) => {
            errors.push(
                Diagnostic::error("the files have several kernels")
                    .code(rules::KERNEL_NOT_FOUND)
                    .note(format!("they are {}", names::listed(all.iter().copied())))
                    .help("name one of them: `--kernel SYMBOL`"),
            );
            return Err(errors);
        }
    };
    for (_, path, found) in &loaded {
        if found.kernels.iter().all(|kernel| kernel.symbol != symbol) {
            let has = found.kernels.iter().map(|kernel| kernel.symbol.as_str());
            let error = Diagnostic::error(format!("`{}` has no kernel `{symbol}`", path.display()))
                .code(rules::KERNEL_NOT_FOUND);
            errors.push(match suggest(&symbol, has.clone()) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.note(format!("it has {}", names::listed(has))),
            });
        }
    }
    if errors.is_empty() { Ok(found(&symbol, loaded)) } else { Err(errors) }
}

/// What a file is by its first bytes; one that cannot be read is told by who loads it.
fn kind_of(path: &Path) -> CodeKind {
    use std::io::Read;
    let mut magic = [0; 4];
    let read = source::open(path).ok().and_then(|mut file| file.read_exact(&mut magic).ok());
    match read {
        Some(()) if magic == *b"\x7fELF" || cubin::is_fatbin(&magic) => CodeKind::Cubin,
        _ => CodeKind::Ptx,
    }
}

/// What is found of a kernel in these files, which all have it.
#[must_use]
pub fn found(symbol: &str, loaded: Vec<(CodeKind, PathBuf, Loaded)>) -> Found {
    let name = types::demangled(symbol).map_or_else(|| symbol.to_owned(), |(name, _)| name);
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
        let facts = loaded.kernels.iter().find(|kernel| kernel.symbol == symbol);
        most = most.or(facts.and_then(|facts| facts.max_threads));
    }
    if let (Some(most), None) = (most, variant.block) {
        remarks.push(format!("the kernel allows at most {most} threads a block"));
    }
    variant.shared_bytes = match dynamic_shared(symbol, &loaded) {
        Shared::None => Some("0".to_owned()),
        Shared::OfTheLaunch => None,
        Shared::Beside(bytes) => {
            remarks.push(format!(
                "beside {bytes} bytes of static shared memory the kernel may have dynamic one (`extern __shared__`), which a cubin does not \
                 tell: say `shared_bytes` then"
            ));
            Some("0".to_owned())
        }
    };
    let tool = loaded.iter().map(|(_, _, loaded)| loaded.tool.clone()).find(|tool| !tool.is_empty());
    let files = loaded.into_iter().map(|(kind, path, _)| (kind, path)).collect();
    variant.codes = vec![FoundCode { ty: None, kernel: symbol.to_owned(), params, files }];
    Found {
        name: identifier(&name),
        made_by: tool.unwrap_or_default(),
        variants: vec![variant],
        remarks,
        ..Found::default()
    }
}

/// What files tell of a kernel's dynamic shared memory.
enum Shared {
    /// There is none.
    None,
    /// There is some, or it is all that the shared memory can be.
    OfTheLaunch,
    /// There may be some besides so many bytes.
    Beside(u32),
}

fn dynamic_shared(symbol: &str, loaded: &[(CodeKind, PathBuf, Loaded)]) -> Shared {
    let says = || {
        loaded.iter().filter_map(|(_, _, loaded)| {
            let kernel = loaded.kernels.iter().find(|kernel| kernel.symbol == symbol)?;
            Some((loaded.rules.get(symbol)?.dynamic_shared, kernel.shared_bytes.unwrap_or(0)))
        })
    };
    let is_said = |wanted: Dynamic| says().any(|(dynamic, _)| dynamic == wanted);
    let fixed = says().map(|(_, bytes)| bytes).max().unwrap_or(0);
    match (is_said(Dynamic::Yes), is_said(Dynamic::No)) {
        (true, _) => Shared::OfTheLaunch,
        // PTX tells what the cubins beside it do not.
        (false, true) => Shared::None,
        (false, false) if fixed == 0 => Shared::OfTheLaunch,
        (false, false) => Shared::Beside(fixed),
    }
}

/// The parameters: from debug information, from the symbol, or from sizes and what PTX says.
fn params(symbol: &str, loaded: &[(CodeKind, PathBuf, Loaded)]) -> Vec<FoundParam> {
    let facts =
        loaded.iter().find_map(|(_, _, loaded)| loaded.kernels.iter().find(|kernel| kernel.symbol == symbol));
    let Some(facts) = facts else { return Vec::new() };
    let of_debug = loaded.iter().find_map(|(_, _, loaded)| {
        loaded.signatures.get(symbol).filter(|signature| signature.params.len() == facts.params.len())
    });
    if let Some(signature) = of_debug {
        let params = signature.params.iter().zip(&facts.params).enumerate();
        return params.map(|(at, (param, known))| of_signature(at, param, known.size)).collect();
    }
    if let Some((_, mangled)) = types::demangled(symbol)
        && let Some(params) = of_symbol(&mangled, facts)
    {
        return params;
    }
    let origin = loaded.iter().find_map(|(_, _, loaded)| {
        let (_, origin) = loaded.ptx.as_ref()?;
        origin.entries.iter().find(|entry| entry.symbol == symbol)
    });
    let says = |at: usize| origin.and_then(|entry| entry.params.get(at).copied());
    facts.params.iter().enumerate().map(|(at, param)| bare(at, param.size, says(at))).collect()
}

/// A parameter of which nothing but its size is known, and perhaps what PTX says.
fn bare(at: usize, size: u32, says: Option<PtxParam>) -> FoundParam {
    let name = format!("p{at}");
    let unknown = || FoundParam::new(&name, format!(": {}", unknown_type(size)), Role::Unknown);
    match (says, size) {
        (Some(PtxParam::Pointer), _) => FoundParam::new(&name, format!(": {ELEMENT}*"), Role::Tensor),
        (Some(PtxParam::Float), 4) => FoundParam::new(&name, ": f32".to_owned(), Role::Unknown),
        (Some(PtxParam::Float), 8) => FoundParam::new(&name, ": f64".to_owned(), Role::Unknown),
        // PTX does not tell them apart.
        (Some(PtxParam::Integer), 4) => unknown().about("i32 or u32".to_owned()),
        (Some(PtxParam::Integer), 2) => unknown().about("i16 or u16".to_owned()),
        (Some(PtxParam::Integer), 1) => unknown().about("i8, u8 or bool".to_owned()),
        (Some(PtxParam::Integer), 8) => {
            unknown().about("i64, u64, or a pointer such as `const f32*`".to_owned())
        }
        _ => unknown(),
    }
}

fn of_signature(at: usize, param: &Param, size: u32) -> FoundParam {
    let name = if param.name.is_empty() { format!("p{at}") } else { identifier(&param.name) };
    let number = |ty: &str| (format!(": {ty}"), Role::Unknown);
    let (rest, role) = match &param.ty {
        ParamType::Pointer { pointee, is_const, .. } => {
            let (word, role) = match types::demangled_pointee(pointee) {
                Some(element) => (element.clone(), types::role(&element, *is_const)),
                None => ("void".to_owned(), Role::Tensor),
            };
            (format!(": {}{word}*", if *is_const { "const " } else { "" }), role)
        }
        ParamType::Int { bytes } => number(&format!("i{}", u32::from(*bytes) * 8)),
        ParamType::UInt { bytes } => number(&format!("u{}", u32::from(*bytes) * 8)),
        ParamType::F32 => number("f32"),
        ParamType::F64 => number("f64"),
        ParamType::Bool => number("bool"),
        ParamType::Enum(_) | ParamType::Array { .. } | ParamType::Other { .. } => number(&unknown_type(size)),
    };
    FoundParam::new(&name, rest, role)
}

/// The parameters as a symbol has them; nothing where their sizes are not those of the file.
fn of_symbol(mangled: &[Mangled], facts: &KernelFacts) -> Option<Vec<FoundParam>> {
    let mut params = Vec::new();
    for (at, one) in mangled.iter().enumerate() {
        let name = format!("p{at}");
        let size = || facts.params.get(params.len()).map(|param| param.size);
        match one {
            Mangled::Pointer(pointee, is_const) => {
                let word = if *is_const { "const " } else { "" };
                params.push((
                    8,
                    FoundParam::new(&name, format!(": {word}{pointee}*"), types::role(pointee, *is_const)),
                ));
            }
            Mangled::Number(ty) => {
                let size = types::size(ty)?;
                params.push((size, FoundParam::new(&name, format!(": {ty}"), Role::Unknown)));
            }
            Mangled::Array(element, len) => {
                let size = types::size(element)?.checked_mul(*len)?;
                params.push((size, FoundParam::new(&name, format!(": {element}[{len}]"), Role::Unknown)));
            }
            Mangled::Numba(element, dimensions, is_c) => {
                params
                    .extend(of_numba(&name, element, *dimensions, *is_c).into_iter().map(|param| (8, param)));
            }
            Mangled::Other => {
                let size = size()?;
                params
                    .push((size, FoundParam::new(&name, format!(": {}", unknown_type(size)), Role::Unknown)));
            }
        }
    }
    let fits = params.len() == facts.params.len()
        && params.iter().zip(&facts.params).all(|((size, _), known)| *size == known.size);
    fits.then(|| params.into_iter().map(|(_, param)| param).collect())
}

/// The parts of an array of Numba's, which are all passed on their own (numba-cuda 0.30, `ArrayModel`).
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
