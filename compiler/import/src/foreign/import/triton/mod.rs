//! Imports a kernel from Triton's cache: `NAME.json`, `NAME.ttir`, `NAME.cubin`, `NAME.ptx` in a folder per compile.

mod cache;
mod constants;
mod doubts;
mod errors;
mod fingerprint;
mod folders;
mod listing;
mod metadata;
mod options;
mod python;
mod scratch;
mod shared;
mod variants;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cubinder_model::cuda_limits::MAX_CLUSTER;

pub use constants::{Constant, ConstantValue};

use self::errors::{NotUtf8, TooManyParameters, UnknownTtir, UnreadableText, Unsupported};
use self::fingerprint::{Fingerprint, fingerprint};
use self::metadata::{Launch, Metadata, metadata};
use self::python::Parameter;
use super::{FoundPlugin, identifier};
use crate::diagnostic::Diagnostic;
use crate::foreign::ttir::function;
use crate::loaded::Function;
use crate::source;

const MAX_BYTES: usize = 64 << 20;

const MAX_PYTHON: usize = 4 << 20;

const MOST_ARGUMENTS: usize = 4096;

struct Compiled {
    json: PathBuf,
    metadata: Metadata,
    function: Function,
    names: Vec<String>,
    /// IR before any pass; depends on `tl.constexpr` values, not the architecture. May be empty.
    source: String,
    /// Sizes of `tl.arange`.
    sizes: BTreeSet<u64>,
    numbers: BTreeSet<u64>,
    fingerprint: Fingerprint,
    added: usize,
    /// The unchanged Python file's parameters, named as in `names`.
    signature: Option<Vec<Parameter>>,
}

impl Compiled {
    fn path(&self) -> PathBuf {
        let folder = self.json.parent().filter(|folder| *folder != Path::new(""));
        folder.unwrap_or(Path::new(".")).to_owned()
    }

    fn folder(&self) -> String {
        let name = self.json.parent().and_then(Path::file_name);
        name.map_or_else(|| ".".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// Compiles of one class with equal constants have equal operations.
    fn class(&self) -> String {
        let arguments = self.names.iter().zip(&self.function.arguments);
        let texts: Vec<String> = arguments
            .map(|(name, it)| format!("{name}: {}{}", it.ty, if it.is_pointer { "*" } else { "" }))
            .collect();
        texts.join(", ")
    }

    fn options(&self) -> String {
        let divisibility: Vec<Option<u32>> =
            self.function.arguments.iter().map(|it| it.divisibility).collect();
        format!("{} {:?} {divisibility:?}", self.metadata.capability(), self.metadata.launch)
    }
}

/// Reads outputs of the named or only kernel; Triton does not write `constants`. Rejects unsupported launches and indistinguishable outputs.
pub fn triton(
    paths: &[PathBuf],
    kernel: Option<&str>,
    constants: &[Constant],
) -> Result<FoundPlugin, Vec<Diagnostic>> {
    let outputs = cache::outputs(paths, kernel)?;
    let mut errors = Vec::new();
    let mut compiled = Vec::new();
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    for (json, metadata) in outputs.all {
        if !seen.insert(std::fs::canonicalize(&json).unwrap_or_else(|_| json.clone())) {
            continue;
        }
        match read(json, metadata) {
            Ok(one) => compiled.push(one),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    compiled.sort_by_key(|compiled| compiled.metadata.capability());
    let mut found = variants::found(&compiled, constants).map_err(|error| vec![error])?;
    found.remarks.extend(outputs.remark);
    Ok(found)
}

fn text(path: &Path) -> Result<String, Diagnostic> {
    let bytes = source::bytes(path, MAX_BYTES).map_err(|why| UnreadableText { why })?;
    String::from_utf8(bytes).map_err(|_| NotUtf8 { path: path.display() }.into())
}

fn read(json: PathBuf, metadata: Metadata) -> Result<Compiled, Diagnostic> {
    let ttir = json.with_extension("ttir");
    let text_of = text(&ttir)?;
    let function = function(&text_of).map_err(|why| UnknownTtir { path: ttir.display(), why })?;
    let count = function.arguments.len();
    if count > MOST_ARGUMENTS {
        return Err(TooManyParameters { path: ttir.display(), count }.into());
    }
    let source = text(&json.with_extension("source")).map(|text| operations(&text)).unwrap_or_default();
    let operations = if source.is_empty() { operations(&text_of) } else { source.clone() };
    let (sizes, numbers, fingerprint) = (sizes(&operations), numbers(&operations), fingerprint(&operations));
    let names = once(function.arguments.iter().map(|argument| argument.name.as_str()));
    let signature = signature(&function);
    let added = scratch::added(&json, &function)?;
    let compiled =
        Compiled { json, metadata, function, names, source, sizes, numbers, fingerprint, added, signature };
    refuse(&compiled)?;
    Ok(compiled)
}

const ADDED: [&str; 2] = ["global_scratch", "profile_scratch"];

fn once<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        let name = identifier(name);
        let mut number = 1;
        let mut free = name.clone();
        while found.contains(&free) || ADDED.contains(&free.as_str()) {
            number += 1;
            free = format!("{name}_{number}");
        }
        found.push(free);
    }
    found
}

fn signature(function: &Function) -> Option<Vec<Parameter>> {
    let (file, line) = function.place.as_ref()?;
    let path = Path::new(file);
    if path.extension().is_none_or(|extension| extension != "py") {
        return None;
    }
    let text = String::from_utf8(source::bytes(path, MAX_PYTHON).ok()?).ok()?;
    let parameters = python::parameters(&text, *line, &function.name)?;
    let mut rest = parameters.iter().filter(|parameter| !parameter.is_constexpr);
    let is_in_order =
        function.arguments.iter().all(|argument| rest.any(|parameter| parameter.name == argument.name));
    let names = once(parameters.iter().map(|parameter| parameter.name.as_str()));
    // With equal names, the passed parameter is unknown.
    if names.iter().zip(&parameters).any(|(name, parameter)| *name != identifier(&parameter.name)) {
        return None;
    }
    let named = names.into_iter().zip(&parameters);
    let named = named.map(|(name, parameter)| Parameter { name, is_constexpr: parameter.is_constexpr });
    is_in_order.then(|| named.collect())
}

/// Returns why a text is not Triton's metadata.
#[must_use]
pub fn mistake_of_metadata(text: &str) -> Option<String> {
    metadata(text).err().map(|why| why.to_string())
}

fn refuse(compiled: &Compiled) -> Result<(), Diagnostic> {
    let Compiled { json, metadata, function, .. } = compiled;
    let has_descriptors = !metadata.tensordesc_meta.is_empty()
        || function.arguments.iter().any(|it| it.ty.starts_with("!tt.tensordesc"));
    let unknown = function.arguments.iter().find_map(|it| Some((&it.name, it.unknown.first()?)));
    let Launch { num_warps, num_ctas, .. } = metadata.launch;
    let why = match unknown {
        _ if has_descriptors => {
            "the kernel takes tensor descriptors, which only Triton's launcher creates; use pointers"
                .to_owned()
        }
        Some((name, unknown)) => {
            format!("`{name}` was specialized with `{unknown}`, an unknown requirement of the argument")
        }
        None if !(1..=1024).contains(&metadata.threads()) => {
            format!("a block cannot have {num_warps} warps of {} threads", metadata.target.warp_size)
        }
        None if !(1..=MAX_CLUSTER).contains(&num_ctas) => format!(
            "each program is a cluster of {num_ctas} blocks (num_ctas), but a cluster must have 1 to {MAX_CLUSTER}"
        ),
        None => return Ok(()),
    };
    Err(Unsupported { path: json.display(), why }.into())
}

/// Without source locations and specializations: depends only on `tl.constexpr` values.
fn operations(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("#loc") && !line.contains("tt.func"));
    lines.map(|line| line.split(" loc(").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Finds `tt.make_range {end = 1024 : i32, start = 0 : i32}`.
fn sizes(text: &str) -> BTreeSet<u64> {
    let number = |text: &str, key: &str| -> Option<u64> {
        let (_, rest) = text.split_once(key)?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let range = |line: &str| {
        let (_, range) = line.split_once("tt.make_range {")?;
        let range = range.split('}').next()?;
        number(range, "end = ")?.checked_sub(number(range, "start = ")?)
    };
    text.lines().filter_map(range).collect()
}

/// Finds integers (`arith.constant 8 : i32`, `tensor<8x64xf32>`) outside of names (`%c8_i32`).
fn numbers(text: &str) -> BTreeSet<u64> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_%#@.".contains(c);
    // `8x64xf32` is a shape.
    let shapes = text.split(|c| !is_word(c)).flat_map(|word| word.split('x'));
    shapes.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_no_difference() {
        let one = operations("#loc1 = loc(\"a.py\":1:1)\n  %x = tt.splat %y loc(#loc1)\n");
        assert_eq!(one, operations("  %x = tt.splat %y loc(#loc7)"));
    }

    #[test]
    fn names_are_there_once() {
        assert_eq!(once(["_x", "x", "x_2", "x"].into_iter()), ["x", "x_2", "x_2_2", "x_3"]);
        assert_eq!(once(["global_scratch"].into_iter()), ["global_scratch_2"]);
    }

    #[test]
    fn numbers_are_found() {
        let text = "%c7_i32 = arith.constant 8 : i32\n%cst = arith.constant dense<-3.5> : tensor<16x32xf64>\ntt.call @sum__(5)";
        assert_eq!(numbers(text).into_iter().collect::<Vec<_>>(), [5, 8, 16, 32]);
    }

    #[test]
    fn sizes_are_found() {
        let text = "%2 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>\n%3 = tt.make_range {end = 96 : i32, start = 32 : i32}\n";
        assert_eq!(sizes(text).into_iter().collect::<Vec<_>>(), [64, 1024]);
    }
}
