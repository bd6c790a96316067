//! What Triton writes into its cache for a kernel: `NAME.json`, `NAME.ttir`, `NAME.cubin`, `NAME.ptx`, one folder for each set of options.
//!
//! Owns what belongs to a compile, and what its files say of it. Which files there are is [`cache`]'s, what several compiles are together
//! [`variants`]'s, and what Triton does not write [`constants`]'s.

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

pub use constants::{Constant, Fixed};

use self::errors::{NotUtf8, TooManyParameters, UnknownTtir, UnreadableText, Unsupported};
use self::fingerprint::{Fingerprint, fingerprint};
use self::metadata::{Launch, Metadata, metadata};
use self::python::Parameter;
use super::{FoundPlugin, identifier};
use crate::diagnostic::Diagnostic;
use crate::foreign::ttir::function;
use crate::loaded::Function;
use crate::source;

/// The most bytes of a JSON file or of Triton's text.
const MAX_BYTES: usize = 64 << 20;

/// The most bytes of a Python file.
const MAX_PYTHON: usize = 4 << 20;

/// The most parameters of a kernel that are looked at.
const MOST_ARGUMENTS: usize = 4096;

/// One compile.
struct Compiled {
    json: PathBuf,
    metadata: Metadata,
    function: Function,
    /// What the manifest calls the parameters, each once.
    names: Vec<String>,
    /// The operations before any pass: the same for all architectures, and others for other values of `tl.constexpr`. Empty where the file is not there.
    source: String,
    /// The sizes of `tl.arange` in it.
    sizes: BTreeSet<u64>,
    /// All whole numbers in it.
    numbers: BTreeSet<u64>,
    /// What it does, types and constants aside.
    fingerprint: Fingerprint,
    /// How many of [`ADDED`] the code takes.
    added: usize,
    /// All parameters that the author wrote, with names as in `names`, where the Python file is there and is still the one that was compiled.
    signature: Option<Vec<Parameter>>,
}

impl Compiled {
    /// The folder that it is in.
    fn path(&self) -> PathBuf {
        let folder = self.json.parent().filter(|folder| *folder != Path::new(""));
        folder.unwrap_or(Path::new(".")).to_owned()
    }

    /// What people call it: its folder's name.
    fn folder(&self) -> String {
        let name = self.json.parent().and_then(Path::file_name);
        name.map_or_else(|| ".".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// The parameters that are passed, with their types: compiles of one class and the same constants have the same operations.
    fn class(&self) -> String {
        let arguments = self.names.iter().zip(&self.function.arguments);
        let texts: Vec<String> = arguments
            .map(|(name, it)| format!("{name}: {}{}", it.ty, if it.is_pointer { "*" } else { "" }))
            .collect();
        texts.join(", ")
    }

    /// What a person said to the compiler beside types and constants, and what it was specialized for.
    fn options(&self) -> String {
        let divisibility: Vec<Option<u32>> =
            self.function.arguments.iter().map(|it| it.divisibility).collect();
        format!("{} {:?} {divisibility:?}", self.metadata.capability(), self.metadata.launch)
    }
}

/// What the outputs in these folders and of these JSON files tell of a kernel: the one that is named, or the only one. `constants` are
/// values of parameters that Triton does not write.
///
/// # Errors
/// Files that are not there, cannot be read or are of several kernels; what the code asks of a launch that cannot be given; outputs that
/// cannot be told apart.
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

/// What the parameters are called that Triton adds to those of the author.
const ADDED: [&str; 2] = ["global_scratch", "profile_scratch"];

/// Names that can stand in a manifest, each once.
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

/// The parameters as the author wrote them, where the Python file says so and still has those that were compiled.
fn signature(function: &Function) -> Option<Vec<Parameter>> {
    let (file, line) = function.place.as_ref()?;
    let path = Path::new(file);
    if path.extension().is_none_or(|extension| extension != "py") {
        return None;
    }
    let text = String::from_utf8(source::bytes(path, MAX_PYTHON).ok()?).ok()?;
    // A kernel's symbol may have more behind its name.
    let parameters = python::parameters(&text, *line, &function.name)?;
    let mut rest = parameters.iter().filter(|parameter| !parameter.is_constexpr);
    let is_in_order =
        function.arguments.iter().all(|argument| rest.any(|parameter| parameter.name == argument.name));
    let names = once(parameters.iter().map(|parameter| parameter.name.as_str()));
    // Where two names become one, it is not told which of them was passed.
    if names.iter().zip(&parameters).any(|(name, parameter)| *name != identifier(&parameter.name)) {
        return None;
    }
    let named = names.into_iter().zip(&parameters);
    let named = named.map(|(name, parameter)| Parameter { name, is_constexpr: parameter.is_constexpr });
    is_in_order.then(|| named.collect())
}

/// What is wrong with a text as Triton's metadata; nothing where it is right.
#[must_use]
pub fn mistake_of_metadata(text: &str) -> Option<String> {
    metadata(text).err().map(|why| why.to_string())
}

/// Rejects what no launch of a manifest can give.
fn refuse(compiled: &Compiled) -> Result<(), Diagnostic> {
    let Compiled { json, metadata, function, .. } = compiled;
    let has_descriptors = !metadata.tensordesc_meta.is_empty()
        || function.arguments.iter().any(|it| it.ty.starts_with("!tt.tensordesc"));
    let unknown = function.arguments.iter().find_map(|it| Some((&it.name, it.unknown.first()?)));
    let Launch { num_warps, num_ctas, .. } = metadata.launch;
    let why = match unknown {
        _ if has_descriptors => {
            "the kernel takes tensor descriptors, which only Triton's own launcher makes; use pointers"
                .to_owned()
        }
        Some((name, unknown)) => format!(
            "`{name}` was specialized with `{unknown}`, and it is not known what that asks of the argument"
        ),
        None if !(1..=1024).contains(&metadata.threads()) => {
            format!("{num_warps} warps of {} threads are no block", metadata.target.warp_size)
        }
        None if !(1..=MAX_CLUSTER).contains(&num_ctas) => format!(
            "each program is a cluster of {num_ctas} blocks (num_ctas), and a launch has clusters of 1 to {MAX_CLUSTER}"
        ),
        None => return Ok(()),
    };
    Err(Unsupported { path: json.display(), why }.into())
}

/// The text without the places in Python files, and without what arguments were specialized for: what is left are the operations of the kernel,
/// which are the same for the same values of `tl.constexpr`.
fn operations(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("#loc") && !line.contains("tt.func"));
    lines.map(|line| line.split(" loc(").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The sizes of `tl.arange` in a text: `tt.make_range {end = 1024 : i32, start = 0 : i32}`.
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

/// The whole numbers in a text, those in names and in types such as `%c8_i32` left out: `arith.constant 8 : i32`, `tensor<8x64xf32>`.
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
