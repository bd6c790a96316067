//! Combines a kernel's compiles into a plugin with types and ordered variants. Arguments may be constant in some
//! (`stride == 1`), passed in others (`stride: i32`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::super::text::quoted;
use super::super::{FoundCode, FoundParam, FoundPlugin, FoundVariant, Role, identifier};
use super::constants::{Constant, ConstantValue, Values, are_told_apart, assign};
use super::errors::{NoOutput, PointerInSome, SeveralTypes};
use super::metadata::Launch;
use super::{ADDED, Compiled, MAX_BYTES, doubts, scratch, shared};
use crate::diagnostic::Diagnostic;
use crate::loaded::Argument;
use crate::manifest::CodeKind;
use crate::manifest::toml_reader::list;
use crate::placeholder::{ELEMENT, constant_of, fits, where_it_is};
use crate::source;

struct Plugin<'c> {
    all: &'c [Compiled],
    /// Without `tl.constexpr` parameters, in source order if known.
    names: Vec<String>,
    /// Parameters of type `T`.
    varying: BTreeSet<String>,
    /// `tl.constexpr` parameters without a value.
    unsaid: Vec<String>,
    /// Numbers, equal in all compiles.
    constants: BTreeMap<String, String>,
    words: BTreeSet<(String, String)>,
}

pub(super) fn found(all: &[Compiled], constants: &[Constant]) -> Result<FoundPlugin, Diagnostic> {
    let Some(first) = all.first() else { return Err(NoOutput {}.into()) };
    scratch::is_alike(all)?;
    let said = assign(all, constants)?;
    are_told_apart(all, &said)?;
    let values = said.values;
    let plugin = plugin(all, &values)?;
    let mut variants: BTreeMap<Order, FoundVariant> = BTreeMap::new();
    let mut shared: BTreeMap<Order, BTreeMap<u64, BTreeSet<u64>>> = BTreeMap::new();
    let mut types: BTreeSet<String> = BTreeSet::new();
    for (compiled, values) in all.iter().zip(&values) {
        let order = plugin.order(compiled, values);
        let bytes = shared.entry(order.clone()).or_default();
        bytes.entry(compiled.metadata.capability()).or_default().insert(compiled.metadata.shared);
        let variant = variants.entry(order).or_insert_with(|| plugin.variant(compiled, values));
        let code = plugin.code(compiled, values);
        types.extend(code.ty.clone());
        match variant.codes.iter_mut().find(|known| known.ty == code.ty) {
            Some(known) => known.files.extend(code.files),
            None => variant.codes.push(code),
        }
    }
    for (variant, bytes) in variants.values_mut().zip(shared.values()) {
        let most = bytes.iter().filter_map(|(arch, bytes)| Some((*arch, *bytes.last()?))).collect();
        variant.shared_bytes = Some(shared::expression(&most));
        variant.shared_differs_by_type = bytes.values().any(|bytes| bytes.len() > 1);
        // Folders are named by digests, whose order is arbitrary.
        variant.codes.sort_by(|a, b| a.ty.cmp(&b.ty));
        variant.codes.iter_mut().for_each(lowest_ptx);
    }
    let versions: BTreeSet<&str> =
        all.iter().filter_map(|compiled| compiled.metadata.triton_version.as_deref()).collect();
    let variants: Vec<FoundVariant> = variants.into_values().collect();
    // Constants keep the user's order.
    let mut same: Vec<(String, String)> = plugin.constants.clone().into_iter().collect();
    same.sort_by_key(|(name, _)| constants.iter().position(|constant| constant.name == *name));
    Ok(FoundPlugin {
        name: identifier(&first.metadata.name),
        made_by: format!("triton {}", versions.into_iter().collect::<Vec<_>>().join(", ")).trim().to_owned(),
        types: types.into_iter().collect(),
        constants: same,
        remarks: plugin.remarks(&values, &variants),
        variants,
        counts_programs: true,
    })
}

fn plugin<'c>(all: &'c [Compiled], values: &[Values]) -> Result<Plugin<'c>, Diagnostic> {
    let names = union(all);
    for name in &names {
        same_kind(all, name)?;
    }
    let varying = varying(all, &names)?;
    let is_word =
        |name: &String| values.iter().any(|values| matches!(values.get(name), Some(ConstantValue::Word(_))));
    let words = values.iter().flatten().filter(|(name, _)| is_word(name));
    let words = words.map(|(name, value)| (name.clone(), value.to_string())).collect();
    let is_same = |name: &String, value: &ConstantValue| {
        !OWN.contains(&name.as_str())
            && !names.contains(name)
            && values.iter().all(|values| values.get(name) == Some(value))
    };
    let constant = |(name, value): (&String, &ConstantValue)| match value {
        ConstantValue::Number(number) if is_same(name, value) => Some((name.clone(), number.clone())),
        _ => None,
    };
    let constants = values.iter().flatten().filter_map(constant).collect();
    let mut unsaid: Vec<String> = Vec::new();
    for parameter in all.iter().flat_map(|compiled| compiled.signature.iter().flatten()) {
        let is_said = values.iter().all(|values| values.contains_key(&parameter.name));
        if parameter.is_constexpr && !is_said && !unsaid.contains(&parameter.name) {
            unsaid.push(parameter.name.clone());
        }
    }
    Ok(Plugin { all, names, varying, unsaid, constants, words })
}

const OWN: [&str; 4] = ["T", "CONFIG", "THREADS", "SHARED_BYTES"];

fn union(all: &[Compiled]) -> Vec<String> {
    let written = |compiled: &Compiled| -> Option<Vec<String>> {
        let parameters = compiled.signature.as_ref()?.iter();
        Some(parameters.filter(|it| !it.is_constexpr).map(|it| it.name.clone()).collect())
    };
    let longest =
        all.iter().max_by_key(|compiled| compiled.names.len()).map(|compiled| compiled.names.clone());
    let mut names = all.iter().find_map(written).or(longest).unwrap_or_default();
    for compiled in all {
        let mut last = 0;
        for name in &compiled.names {
            match names.iter().position(|known| known == name) {
                Some(at) => last = at + 1,
                None => {
                    names.insert(last, name.clone());
                    last += 1;
                }
            }
        }
    }
    names
}

fn argument<'c>(compiled: &'c Compiled, name: &str) -> Option<&'c Argument> {
    let at = compiled.names.iter().position(|known| known == name)?;
    compiled.function.arguments.get(at)
}

fn same_kind(all: &[Compiled], name: &str) -> Result<(), Diagnostic> {
    let is_pointer = |compiled: &&Compiled| argument(compiled, name).is_some_and(|it| it.is_pointer);
    let Some(one) = all.iter().find(is_pointer) else { return Ok(()) };
    match all.iter().find(|compiled| !is_pointer(compiled)) {
        None => Ok(()),
        Some(other) => {
            Err(PointerInSome { name, one: one.json.display(), other: other.json.display() }.into())
        }
    }
}

/// Types differ between compiles, but not within one.
fn varying(all: &[Compiled], names: &[String]) -> Result<BTreeSet<String>, Diagnostic> {
    let ty = |compiled: &Compiled, name: &str| {
        argument(compiled, name).filter(|it| it.is_pointer).map(|it| it.ty.clone())
    };
    let differs = |name: &&String| {
        let types: BTreeSet<Option<String>> = all.iter().map(|compiled| ty(compiled, name)).collect();
        types.len() > 1
    };
    let varying: BTreeSet<String> = names.iter().filter(differs).cloned().collect();
    for compiled in all {
        let types: BTreeSet<Option<String>> = varying.iter().map(|name| ty(compiled, name)).collect();
        if types.len() > 1 {
            return Err(SeveralTypes { names: list(&varying), path: compiled.json.display() }.into());
        }
    }
    Ok(varying)
}

/// Order of equal compiles' variants: most requirements first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    /// Passed parameters without requirements.
    free: usize,
    /// Divisibility, and types of numbers.
    passed: Vec<(String, Option<u32>, String)>,
    /// Name, number of digits, and value: shorter numbers come first.
    constants: Vec<(String, usize, String)>,
    launch: Launch,
}

impl Plugin<'_> {
    fn order(&self, compiled: &Compiled, values: &Values) -> Order {
        let arguments = compiled.names.iter().zip(&compiled.function.arguments);
        let ty = |argument: &Argument| if argument.is_pointer { String::new() } else { argument.ty.clone() };
        let passed: Vec<(String, Option<u32>, String)> =
            arguments.map(|(name, argument)| (name.clone(), argument.divisibility, ty(argument))).collect();
        let said = values.iter().map(|(name, value)| (name.clone(), value.to_string()));
        Order {
            free: passed.iter().filter(|(_, divisibility, _)| divisibility.is_none()).count(),
            passed,
            constants: said.map(|(name, value)| (name, value.len(), value)).collect(),
            launch: compiled.metadata.launch.clone(),
        }
    }

    fn variant(&self, compiled: &Compiled, values: &Values) -> FoundVariant {
        let it = &compiled.metadata.launch;
        let of_its_own = |(name, _): &(&String, &ConstantValue)| {
            !self.names.contains(name) && !self.constants.contains_key(*name) && !OWN.contains(&name.as_str())
        };
        let mut constants = Vec::new();
        let mut guards = Vec::new();
        for (name, value) in values.iter().filter(of_its_own) {
            match value {
                ConstantValue::Number(number) => constants.push((name.clone(), number.clone())),
                ConstantValue::Word(word) if self.has_other_words(name, word) => {
                    guards.push(where_it_is(name, word));
                }
                ConstantValue::Word(_) => {}
            }
        }
        guards.extend(self.narrow(compiled).map(|(name, bits)| fits(name, bits)));
        FoundVariant {
            constants,
            guard: (!guards.is_empty()).then(|| guards.join(" and ")),
            about: format!("{} warps, {} stages", it.num_warps, it.num_stages),
            block: Some([compiled.metadata.threads(), 1, 1]),
            cluster: (it.num_ctas > 1).then_some([it.num_ctas, 1, 1]),
            cooperative: it.launch_cooperative_grid,
            programmatic: it.launch_pdl,
            ..FoundVariant::default()
        }
    }

    /// Integers that other code for these tensors passes with more bits: Triton chooses by value.
    fn narrow<'s>(&'s self, compiled: &'s Compiled) -> impl Iterator<Item = (&'s str, u32)> {
        compiled.names.iter().filter_map(move |name| {
            let own = argument(compiled, name)?;
            let bits_of_own = bits(own)?;
            let is_wider = |(one, other): &(&Argument, &Argument)| {
                one.ty == own.ty && bits(other).is_some_and(|bits| bits > bits_of_own)
            };
            self.side_by_side(name).iter().any(is_wider).then_some((name.as_str(), bits_of_own))
        })
    }

    /// No range distinguishes their types: floats, and booleans beside integers.
    fn of_several_types(&self) -> Vec<&String> {
        let is_open = |(one, other): &(&Argument, &Argument)| {
            one.ty != other.ty && (bits(one).is_none() || bits(other).is_none())
        };
        self.names.iter().filter(|name| self.side_by_side(name).iter().any(is_open)).collect()
    }

    fn side_by_side(&self, name: &str) -> Vec<(&Argument, &Argument)> {
        let types = |compiled: &Compiled| -> Vec<Option<String>> {
            self.varying.iter().map(|name| argument(compiled, name).map(|it| it.ty.clone())).collect()
        };
        let mut by_type: BTreeMap<Vec<Option<String>>, BTreeMap<&str, &Argument>> = BTreeMap::new();
        for compiled in self.all {
            if let Some(number) = argument(compiled, name).filter(|it| !it.is_pointer) {
                by_type.entry(types(compiled)).or_default().insert(&number.ty, number);
            }
        }
        by_type
            .values()
            .flat_map(|alike| alike.values().flat_map(|one| alike.values().map(|other| (*one, *other))))
            .collect()
    }

    fn has_other_words(&self, name: &str, word: &str) -> bool {
        self.words.iter().any(|(other, value)| other == name && value != word)
    }

    fn code(&self, compiled: &Compiled, values: &Values) -> FoundCode {
        let arguments = compiled.names.iter().zip(&compiled.function.arguments);
        let mut params: Vec<FoundParam> = arguments
            .map(|(name, argument)| param(name, argument, self.varying.contains(name).then_some("T")))
            .collect();
        let it = &compiled.metadata;
        let sizes = [it.launch.global_scratch_size, it.launch.profile_scratch_size];
        let scratch = ADDED.into_iter().zip(sizes);
        for (name, bytes) in scratch.take(compiled.added) {
            let (rest, role) = match bytes {
                0 => (": u64", Role::Is("0".to_owned())),
                bytes => (": void*", Role::Scratch(bytes)),
            };
            params.push(FoundParam::new(name, rest.to_owned(), role));
        }
        params.extend(self.folded(compiled, values));
        for name in &self.unsaid {
            if !values.contains_key(name) {
                let word = constant_of(name);
                let param = FoundParam::new(name, format!(" == {word}"), Role::Is(quoted(&word)));
                params.push(param.about(format!("a tl.constexpr: set it with `--constant {name}=...`")));
            }
        }
        for (name, value) in values.iter().filter(|(name, _)| !self.names.contains(name)) {
            let ConstantValue::Number(number) = value else { continue };
            let role = match self.constants.contains_key(name) {
                true => Role::Is(quoted(name)),
                false => Role::Unknown,
            };
            params.push(FoundParam::new(name, format!(" == {number}"), role));
        }
        let file = |kind: CodeKind| {
            let path = compiled.json.with_extension(kind.name());
            path.is_file().then_some((kind, path))
        };
        let files = CodeKind::ALL.into_iter().filter_map(file).collect();
        let ty = self.varying.first().and_then(|name| argument(compiled, name));
        FoundCode { ty: ty.map(|it| manifest_type(&it.ty)), kernel: it.name.clone(), params, files }
    }

    /// Constant parameters, except `tl.constexpr`.
    fn folded(&self, compiled: &Compiled, values: &Values) -> Vec<FoundParam> {
        let mut params = Vec::new();
        for name in self.names.iter().filter(|name| !compiled.names.contains(name)) {
            let is_passed = self.all.iter().any(|other| other.names.contains(name));
            let value = match values.get(name) {
                Some(ConstantValue::Number(number)) => number.clone(),
                Some(ConstantValue::Word(_)) => continue,
                None if is_passed => "1".to_owned(),
                None => constant_of(name),
            };
            let param = FoundParam::new(name, format!(" == {value}"), Role::Unknown);
            params.push(match is_passed || values.contains_key(name) {
                true => param,
                false => {
                    param.about(format!(
                        "a constant in this code: 1, None (then use `--constant {name}=None`), or a value passed to triton.compile"
                    ))
                }
            });
        }
        params
    }

    fn remarks(&self, values: &[Values], variants: &[FoundVariant]) -> Vec<String> {
        let mut remarks = Vec::new();
        let passed: Vec<&String> = self.names.iter().collect();
        if self.all.iter().any(|compiled| compiled.signature.is_none()) {
            let said: BTreeSet<&String> = values.iter().flat_map(|values| values.keys()).collect();
            let known: Vec<&String> = passed.iter().copied().chain(said).collect();
            remarks.push(format!(
                "The Python file is missing or has changed, and Triton does not record constants: if the kernel has parameters besides {}, each is a tl.constexpr, or an integer that was 1. Specify each with --constant, such as `--constant stride=1`",
                list(&known)
            ));
        }
        let ones: Vec<&String> = passed
            .iter()
            .copied()
            .filter(|name| {
                let lacks = |(compiled, values): (&Compiled, &Values)| {
                    !compiled.names.contains(name) && !values.contains_key(*name)
                };
                self.all.iter().any(|compiled| compiled.names.contains(name))
                    && self.all.iter().zip(values).any(lacks)
            })
            .collect();
        if !ones.is_empty() {
            remarks.push(format!(
                "Only some of the code takes {}. Triton replaces an integer that is 1 by a constant, so the rest has `== 1`; if another number was passed to triton.compile, specify it: `--constant {}=...`",
                list(&ones),
                ones.first().map_or("stride", |name| name.as_str())
            ));
        }
        let several = self.of_several_types();
        if let Some(first) = several.first() {
            remarks.push(format!(
                "The types of {} differ between variants, and nothing determines which variant fits a node: add such a `guard` to each variant but the last, or import only code with one type of `{first}`",
                list(&several)
            ));
        }
        let words: BTreeSet<String> =
            self.words.iter().map(|(name, word)| format!("{name} is {word:?}")).collect();
        for (name, _) in &self.words {
            let of_name: Vec<&String> =
                words.iter().filter(|text| text.starts_with(&format!("{name} is "))).collect();
            if let [one] = of_name.as_slice() {
                remarks.push(format!(
                    "In all of this code {one}, which no guard can check: it is correct only for such nodes"
                ));
            }
        }
        let own: BTreeSet<&String> =
            variants.iter().flat_map(|variant| variant.constants.iter().map(|(name, _)| name)).collect();
        if !own.is_empty() {
            remarks.push(format!(
                "Variants differ in {}. If this affects only speed, keep `{} = \"{}\"` in args: TensorRT measures the variants whose guards are true; TensorRT-RTX uses the first, so add a guard to it (C0207). If it affects results, set it in args to the node's value, and remove it from `constants`",
                list(&own),
                own.first().map_or("BLOCK", |name| name.as_str()),
                own.first().map_or("BLOCK", |name| name.as_str()),
            ));
        }
        remarks.extend(doubts::remarks(self.all, values));
        remarks.dedup();
        remarks
    }
}

/// `None` if values do not show the length.
fn bits(argument: &Argument) -> Option<u32> {
    let bits = argument.ty.strip_prefix('i').filter(|_| !argument.is_pointer)?.parse().ok()?;
    [8, 16, 32, 64].contains(&bits).then_some(bits)
}

fn param(name: &str, argument: &Argument, ty: Option<&str>) -> FoundParam {
    let element = ty.map_or_else(|| manifest_type(&argument.ty), str::to_owned);
    if argument.is_pointer {
        let aligned = argument.divisibility.map(|number| format!(" aligned({number})")).unwrap_or_default();
        return FoundParam::new(name, format!(": {element}*{aligned}"), Role::Tensor)
            .about("add `const` if the kernel only reads it".to_owned());
    }
    let multiple = argument.divisibility.map(|number| format!(" multiple_of({number})")).unwrap_or_default();
    let bits = match argument.ty.as_str() {
        "f16" | "bf16" => "u16",
        "f8E4M3FN" | "f8E5M2" | "f8E4M3FNUZ" | "f8E5M2FNUZ" => "u8",
        _ => return FoundParam::new(name, format!(": {element}{multiple}"), Role::Unknown),
    };
    FoundParam::new(name, format!(": {bits}"), Role::Unknown)
        .about(format!("the bits of an {}, which cannot be passed by value; use an f32", argument.ty))
}

/// Converts Triton's type; `cubinder check` reports unknown ones.
fn manifest_type(ty: &str) -> String {
    let is_word = !ty.is_empty() && ty.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let ours = match ty {
        "i1" => "bool",
        "f8E4M3FN" => "f8",
        _ if is_word => ty,
        _ => ELEMENT,
    };
    ours.to_owned()
}

/// Newer architectures run the lowest PTX; specific ones have cubins.
fn lowest_ptx(code: &mut FoundCode) {
    let number = |path: &Path| -> Option<u32> {
        let bytes = source::bytes(path, MAX_BYTES).ok()?;
        crate::cubin::read_ptx(&bytes).ok()?.target.strip_prefix("sm_")?.parse().ok()
    };
    let ptx = code.files.iter().filter(|(kind, _)| *kind == CodeKind::Ptx);
    let lowest = ptx.filter_map(|(_, path)| Some((number(path)?, path))).min_by_key(|(number, _)| *number);
    let lowest = lowest.map(|(_, path)| path.clone());
    code.files.retain(|(kind, path)| *kind == CodeKind::Cubin || Some(path) == lowest.as_ref());
    code.files.sort_by_key(|(kind, _)| *kind == CodeKind::Ptx);
}
