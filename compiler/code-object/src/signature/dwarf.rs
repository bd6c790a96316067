//! Reads DWARF of NVRTC 13.0 (`--device-debug`): version 2, one unit, inline names. Needs no relocation: type
//! references are unit-relative, and functions have linkage names.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use cubinder_expr::ScalarType;
use gimli::{AttributeValue, DwTag, EndianSlice, LittleEndian};
use object::{Object as _, ObjectSection as _};

use super::ptx;
use crate::kernel_signature::{Leaf, Param, ParamType, Signature};

/// Why a signature is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Not ELF, or damaged.
    #[error("invalid ELF file: {0}")]
    Elf(String),
    /// Damaged debug information.
    #[error("invalid debug information: {0}")]
    Dwarf(String),
    /// Debug information lacks the kernel.
    #[error("the debug information has no function `{0}`")]
    MissingFunction(String),
}

impl From<gimli::Error> for SignatureError {
    fn from(error: gimli::Error) -> SignatureError {
        SignatureError::Dwarf(error.to_string())
    }
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

const MAX_DEPTH: usize = 64;
/// Longer names are truncated: entries can share one.
const MAX_NAME: usize = 4096;
/// Total name length, as a multiple of the file's.
const MOST_NAMES: usize = 64;
/// Bytes per file.
const MOST_TEXT: usize = 64 << 20;

/// Parses signatures of PTX by symbol, if it has debug information.
pub fn read_ptx(ptx: &[u8], symbols: &BTreeSet<&str>) -> Result<BTreeMap<String, Signature>, SignatureError> {
    let text = String::from_utf8_lossy(ptx);
    let sections = ptx::sections(&text);
    let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, SignatureError> {
        Ok(Cow::Borrowed(sections.get(id.name()).map_or(&[], Vec::as_slice)))
    };
    signatures(load, ptx.len(), symbols)
}

/// Parses a cubin like [`read_ptx`].
pub fn read_cubin(
    cubin: &[u8],
    symbols: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Signature>, SignatureError> {
    let file = object::File::parse(cubin).map_err(|error| SignatureError::Elf(error.to_string()))?;
    let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, SignatureError> {
        match file.section_by_name(id.name()) {
            Some(section) => {
                section.uncompressed_data().map_err(|error| SignatureError::Elf(error.to_string()))
            }
            None => Ok(Cow::Borrowed(&[])),
        }
    };
    signatures(load, cubin.len(), symbols)
}

fn signatures<'f>(
    load: impl FnMut(gimli::SectionId) -> Result<Cow<'f, [u8]>, SignatureError>,
    length: usize,
    symbols: &BTreeSet<&str>,
) -> Result<BTreeMap<String, Signature>, SignatureError> {
    let sections = gimli::DwarfSections::load(load)?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut budget = Budget { names: length.saturating_mul(MOST_NAMES), text: MOST_TEXT };
    let mut found = BTreeMap::new();
    let mut units = dwarf.units();
    while found.len() < symbols.len()
        && let Some(header) = units.next()?
    {
        let entries = Entries::read(&dwarf, &dwarf.unit(header)?, &mut budget)?;
        let mut leaves = HashMap::new();
        for (symbol, function) in entries.functions(symbols) {
            if !found.contains_key(symbol) {
                found.insert(symbol.to_owned(), entries.signature(function, &mut leaves, &mut budget)?);
            }
        }
    }
    Ok(found)
}

struct Budget {
    names: usize,
    text: usize,
}

impl Budget {
    fn spend(budget: &mut usize, bytes: usize) -> Result<(), SignatureError> {
        let more = || SignatureError::Dwarf("its names exceed the size limit".to_owned());
        *budget = budget.checked_sub(bytes).ok_or_else(more)?;
        Ok(())
    }
}

/// By type offset: each type is inspected once.
type Leaves = HashMap<usize, Option<Leaf>>;

#[derive(Debug, Default)]
struct Entry<'d> {
    /// Offset in the unit.
    offset: usize,
    tag: u16,
    name: Option<&'d [u8]>,
    linkage_name: Option<&'d [u8]>,
    ty: Option<usize>,
    size: Option<u64>,
    encoding: Option<u64>,
    count: Option<u64>,
    /// Minimum and maximum enumerator.
    named: Option<(i64, i64)>,
    children: Vec<usize>,
}

impl<'d> Entry<'d> {
    fn tag(&self) -> DwTag {
        DwTag(self.tag)
    }

    fn text(&self) -> Option<Cow<'d, str>> {
        self.name.map(|name| String::from_utf8_lossy(name.get(..MAX_NAME).unwrap_or(name)))
    }
}

struct Entries<'d>(BTreeMap<usize, Entry<'d>>);

impl<'d> Entries<'d> {
    fn read(
        dwarf: &gimli::Dwarf<Slice<'d>>,
        unit: &gimli::Unit<Slice<'d>>,
        budget: &mut Budget,
    ) -> Result<Entries<'d>, SignatureError> {
        let mut entries: BTreeMap<usize, Entry<'d>> = BTreeMap::new();
        let mut path: Vec<usize> = Vec::new();
        let mut cursor = unit.entries();
        while let Some(die) = cursor.next_dfs()? {
            let mut entry = Entry { offset: die.offset().0, tag: die.tag().0, ..Entry::default() };
            path.truncate(usize::try_from(die.depth()).unwrap_or(0));
            let mut parent = path.last().and_then(|parent| entries.get_mut(parent));
            if let Some(parent) = &mut parent {
                parent.children.push(entry.offset);
            }
            path.push(entry.offset);
            for attribute in die.attrs() {
                let value = attribute.value();
                match attribute.name() {
                    gimli::DW_AT_name => entry.name = Some(text(dwarf, unit, value, budget)?),
                    gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                        entry.linkage_name = Some(text(dwarf, unit, value, budget)?);
                    }
                    gimli::DW_AT_type => {
                        if let AttributeValue::UnitRef(offset) = value {
                            entry.ty = Some(offset.0);
                        }
                    }
                    gimli::DW_AT_byte_size => entry.size = value.udata_value(),
                    gimli::DW_AT_encoding => {
                        entry.encoding = match value {
                            AttributeValue::Encoding(encoding) => Some(u64::from(encoding.0)),
                            other => other.udata_value(),
                        };
                    }
                    // Only enumerators have values.
                    gimli::DW_AT_const_value => {
                        if let (Some(parent), Some(number)) = (&mut parent, value.sdata_value()) {
                            let (least, most) = parent.named.unwrap_or((number, number));
                            parent.named = Some((least.min(number), most.max(number)));
                        }
                    }
                    gimli::DW_AT_count => entry.count = value.udata_value(),
                    gimli::DW_AT_upper_bound => {
                        entry.count = value.udata_value().and_then(|bound| bound.checked_add(1));
                    }
                    _ => {}
                }
            }
            entries.insert(entry.offset, entry);
        }
        Ok(Entries(entries))
    }

    fn functions<'s>(&self, symbols: &BTreeSet<&'s str>) -> Vec<(&'s str, &Entry<'d>)> {
        let functions = self.0.values().filter(|entry| entry.tag() == gimli::DW_TAG_subprogram);
        let named = |entry: &'_ Entry<'d>| {
            let name = std::str::from_utf8(entry.linkage_name.or(entry.name)?).ok()?;
            symbols.get(name).copied()
        };
        functions.filter_map(|entry| Some((named(entry)?, entry))).collect()
    }

    fn signature(
        &self,
        function: &Entry<'d>,
        leaves: &mut Leaves,
        budget: &mut Budget,
    ) -> Result<Signature, SignatureError> {
        let mut params = Vec::new();
        for param in self.children(function, gimli::DW_TAG_formal_parameter) {
            let name = param.text().unwrap_or_default().into_owned();
            let spelling = self.spelling(param.ty, 0);
            // Types also store the pointee's spelling.
            Budget::spend(&mut budget.text, name.len() + 2 * spelling.len())?;
            params.push(Param { name, ty: self.param_type(param.ty, leaves), spelling });
        }
        Ok(Signature { kernel: plain(&function.text().unwrap_or_default()), params })
    }

    fn children<'a>(
        &'a self,
        entry: &'a Entry<'d>,
        tag: DwTag,
    ) -> impl Iterator<Item = &'a Entry<'d>> + use<'a, 'd> {
        entry.children.iter().filter_map(|offset| self.0.get(offset)).filter(move |child| child.tag() == tag)
    }

    /// Resolves typedefs; also returns whether one was `const`.
    fn strip(&self, mut offset: Option<usize>) -> (Option<&Entry<'d>>, bool) {
        let mut is_const = false;
        for _ in 0..MAX_DEPTH {
            let Some(entry) = offset.and_then(|offset| self.0.get(&offset)) else { break };
            match entry.tag() {
                gimli::DW_TAG_const_type => is_const = true,
                gimli::DW_TAG_typedef | gimli::DW_TAG_volatile_type | gimli::DW_TAG_restrict_type => {}
                _ => return (Some(entry), is_const),
            }
            offset = entry.ty;
        }
        (None, is_const)
    }

    fn param_type(&self, offset: Option<usize>, leaves: &mut Leaves) -> ParamType {
        let (entry, _) = self.strip(offset);
        let other = || ParamType::Other {
            name: self.spelling(offset, 0),
            size: entry.and_then(|entry| entry.size).and_then(|size| u32::try_from(size).ok()).unwrap_or(0),
        };
        let Some(entry) = entry else { return other() };
        match entry.tag() {
            gimli::DW_TAG_pointer_type => self.pointer(entry.ty, leaves),
            gimli::DW_TAG_base_type => match scalar(entry) {
                Some(ScalarType::Natural { .. }) | None => other(),
                Some(scalar) => scalar.into(),
            },
            gimli::DW_TAG_enumeration_type => match entry.size.and_then(|size| u8::try_from(size).ok()) {
                Some(bytes @ (1 | 2 | 4 | 8)) => ParamType::Enum(of_enumeration(entry.named, bytes)),
                _ => other(),
            },
            _ => match self.array(entry, 0) {
                Some((element, len))
                    if u64::from(element.size()) * u64::from(len) == entry.size.unwrap_or(0) =>
                {
                    ParamType::Array { element, len }
                }
                _ => other(),
            },
        }
    }

    fn pointer(&self, target: Option<usize>, leaves: &mut Leaves) -> ParamType {
        let (entry, _) = self.strip(target);
        // Incomplete types have size 0.
        let size = entry.and_then(|entry| self.size(entry, 0)).filter(|size| *size > 0);
        let spelling = self.spelling(target, 0);
        ParamType::Pointer {
            pointee: spelling.strip_prefix("const ").map_or(spelling.clone(), str::to_owned),
            pointee_size: size.and_then(|size| u32::try_from(size).ok()),
            is_const: self.is_const(target),
            leaf: entry.and_then(|entry| self.leaf(entry, leaves, 0)).unwrap_or(Leaf::Opaque),
        }
    }

    /// Arrays are `const` if their elements are.
    fn is_const(&self, mut offset: Option<usize>) -> bool {
        for _ in 0..MAX_DEPTH {
            let (entry, is_const) = self.strip(offset);
            match entry.filter(|entry| entry.tag() == gimli::DW_TAG_array_type && !is_const) {
                Some(array) => offset = array.ty,
                None => return is_const,
            }
        }
        false
    }

    fn size(&self, entry: &Entry<'d>, depth: usize) -> Option<u64> {
        if entry.tag() == gimli::DW_TAG_pointer_type {
            return Some(8);
        }
        if entry.tag() != gimli::DW_TAG_array_type || depth > MAX_DEPTH {
            return entry.size;
        }
        let (element, _) = self.strip(entry.ty);
        self.dimensions(entry)?.into_iter().try_fold(self.size(element?, depth + 1)?, u64::checked_mul)
    }

    fn dimensions(&self, array: &Entry<'d>) -> Option<Vec<u64>> {
        if array.children.len() > MAX_DEPTH {
            return None;
        }
        self.children(array, gimli::DW_TAG_subrange_type).map(|dimension| dimension.count).collect()
    }

    fn leaf(&self, entry: &Entry<'d>, leaves: &mut Leaves, depth: usize) -> Option<Leaf> {
        if let Some(known) = leaves.get(&entry.offset) {
            return *known;
        }
        if depth > MAX_DEPTH {
            return None;
        }
        // Recursive types have no leaf.
        leaves.insert(entry.offset, None);
        let leaf = self.leaf_of(entry, leaves, depth);
        leaves.insert(entry.offset, leaf);
        leaf
    }

    fn leaf_of(&self, entry: &Entry<'d>, leaves: &mut Leaves, depth: usize) -> Option<Leaf> {
        match (entry.tag(), entry.name) {
            (gimli::DW_TAG_base_type, _) => scalar(entry).map(Leaf::Scalar),
            (gimli::DW_TAG_structure_type, Some(b"__half")) => Some(Leaf::Half),
            (gimli::DW_TAG_structure_type, Some(b"__nv_bfloat16")) => Some(Leaf::Bfloat16),
            // One, two or four lanes: `__nv_fp8x2_e4m3`.
            (gimli::DW_TAG_structure_type, Some(name)) if name.starts_with(b"__nv_fp8") => {
                Some(if name.ends_with(b"_e4m3") { Leaf::Float8 } else { Leaf::OtherFloat8 })
            }
            (gimli::DW_TAG_pointer_type | gimli::DW_TAG_subroutine_type, _) => Some(Leaf::Address),
            (gimli::DW_TAG_enumeration_type, _) => {
                Some(Leaf::Enum { bytes: u8::try_from(entry.size?).ok()? })
            }
            (gimli::DW_TAG_array_type, _) => self.leaf(self.strip(entry.ty).0?, leaves, depth + 1),
            (gimli::DW_TAG_structure_type, _) => {
                let members = self.children(entry, gimli::DW_TAG_member);
                let mut each = members.map(|member| self.leaf(self.strip(member.ty).0?, leaves, depth + 1));
                let first = each.next()??;
                each.all(|leaf| leaf == Some(first)).then_some(first)
            }
            _ => None,
        }
    }

    /// Finds a struct's only field, an array.
    fn array(&self, entry: &Entry<'d>, depth: usize) -> Option<(ScalarType, u32)> {
        if depth > MAX_DEPTH || entry.tag() != gimli::DW_TAG_structure_type {
            return None;
        }
        let mut parts = entry.children.iter().filter_map(|offset| self.0.get(offset));
        let (only, None) = (parts.next()?, parts.next()) else { return None };
        if only.tag() != gimli::DW_TAG_member {
            return None;
        }
        let (inner, _) = self.strip(only.ty);
        let inner = inner?;
        if inner.tag() != gimli::DW_TAG_array_type {
            return self.array(inner, depth + 1);
        }
        let [len] = self.dimensions(inner)?.try_into().ok()?;
        Some((scalar(self.strip(inner.ty).0?)?, u32::try_from(len).ok()?))
    }

    /// Spells a type with qualifiers on the left.
    fn spelling(&self, offset: Option<usize>, depth: usize) -> String {
        let entry = offset.and_then(|offset| self.0.get(&offset)).filter(|_| depth <= MAX_DEPTH);
        let Some(entry) = entry else { return "void".to_owned() };
        let inner = || self.spelling(entry.ty, depth + 1);
        let qualified = |word: &str| match inner() {
            pointer if pointer.ends_with(['*', '&']) => format!("{pointer} {word}"),
            plain => format!("{word} {plain}"),
        };
        match entry.tag() {
            gimli::DW_TAG_pointer_type => format!("{}*", inner()),
            gimli::DW_TAG_reference_type => format!("{}&", inner()),
            gimli::DW_TAG_rvalue_reference_type => format!("{}&&", inner()),
            gimli::DW_TAG_const_type => qualified("const"),
            gimli::DW_TAG_volatile_type => qualified("volatile"),
            gimli::DW_TAG_restrict_type => inner(),
            gimli::DW_TAG_subroutine_type => "<function>".to_owned(),
            gimli::DW_TAG_array_type => {
                let dimensions = self.dimensions(entry).unwrap_or_default();
                dimensions.iter().fold(inner(), |text, count| format!("{text}[{count}]"))
            }
            _ => plain(&entry.text().unwrap_or(Cow::Borrowed("<unnamed>"))),
        }
    }
}

fn plain(name: &str) -> String {
    name.replace("__nv_bool", "bool").replace(',', ", ").replace(",  ", ", ")
}

/// NVRTC 13.0 writes 8-byte unsigned enumerators as signed.
fn of_enumeration(named: Option<(i64, i64)>, bytes: u8) -> ScalarType {
    let (least, most) = named.unwrap_or_default();
    let bits = bytes * 8 - 1;
    if least < 0 && bytes < 8 {
        ScalarType::Int { bytes }
    } else if most > i64::MAX >> (63 - bits) {
        ScalarType::UInt { bytes }
    } else if bytes == 1 && most <= 1 {
        ScalarType::Natural { bits: 1 }
    } else {
        ScalarType::Natural { bits }
    }
}

fn scalar(entry: &Entry<'_>) -> Option<ScalarType> {
    if entry.tag() != gimli::DW_TAG_base_type {
        return None;
    }
    let bytes = u8::try_from(entry.size?).ok()?;
    let encoding = gimli::DwAte(u8::try_from(entry.encoding?).ok()?);
    match (encoding, bytes) {
        (gimli::DW_ATE_boolean, 1) => Some(ScalarType::Bool),
        (gimli::DW_ATE_signed | gimli::DW_ATE_signed_char, 1 | 2 | 4 | 8) => Some(ScalarType::Int { bytes }),
        (gimli::DW_ATE_unsigned | gimli::DW_ATE_unsigned_char, 1 | 2 | 4 | 8) => {
            Some(ScalarType::UInt { bytes })
        }
        (gimli::DW_ATE_float, 4) => Some(ScalarType::F32),
        (gimli::DW_ATE_float, 8) => Some(ScalarType::F64),
        _ => None,
    }
}

fn text<'d>(
    dwarf: &gimli::Dwarf<Slice<'d>>,
    unit: &gimli::Unit<Slice<'d>>,
    value: AttributeValue<Slice<'d>>,
    budget: &mut Budget,
) -> Result<&'d [u8], SignatureError> {
    let text = dwarf.attr_string(unit, value)?.slice();
    Budget::spend(&mut budget.names, text.len())?;
    Ok(text)
}
