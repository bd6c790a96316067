//! Determines a cubin's compiler, suffix and undefined symbols.
//!
//! Headers of ABI version 7 (ptxas 11.8.89, 12.0.140, 12.4.131, 12.8.93 and 12.9.86 for 5.2 to 9.0, without notes)
//! have the CUDA release as version (129 for 12.9) and a flag for `sm_90a`. Version 8 (these from 10.0 on, ptxas 13
//! for all) has header version 1, and notes.
//!
//! Notes (ptxas 12.8, 12.9 and 13.4, nvcc 13.0, NVRTC 13.0): `.note.nv.tkinfo` (owner `NVIDIA Corp`, type 2000: six
//! words, 2 to 5 of which are offsets of the tool's name, release, build and options in the following texts),
//! `.note.nv.cuinfo` (type 1000: a half word 2, architecture, CUDA release 134 for 13.4; not of ptxas 12.8 and
//! 12.9).

use std::collections::HashSet;

use object::LittleEndian;
use object::elf::{ET_REL, SHN_UNDEF, STT_NOTYPE};
use object::read::elf::{FileHeader, Sym};

use cubinder_model::ArchSuffix;

use super::info::half;
use super::{Budget, CubinError, Header, SectionsByName};

/// A cubin's origin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CubinOrigin {
    /// Architecture suffix, if known.
    pub suffix: Option<ArchSuffix>,
    /// CUDA release, if known: `(13, 4)`.
    pub release: Option<(u32, u32)>,
    /// Tool: `ptxas-blackwell 13.4`; empty without note.
    pub tool: String,
    /// Whether unlinked (`nvcc -dc`).
    pub is_relocatable: bool,
    /// Unique undefined symbols.
    pub undefined: Vec<String>,
}

/// Magics of wrapper (`FATBINC_MAGIC`) and data, in `fatbinary_section.h` 13.0.
const FATBINS: [[u8; 4]; 2] = [[0x50, 0xed, 0x55, 0xba], [0xb1, 0x43, 0x62, 0x46]];

/// Detects a fatbin: several code objects in one file.
#[must_use]
pub fn is_fatbin(bytes: &[u8]) -> bool {
    FATBINS.iter().any(|magic| bytes.starts_with(magic))
}

/// Parses a cubin's origin.
pub fn cubin_origin(bytes: &[u8]) -> Result<CubinOrigin, CubinError> {
    let header = Header::parse(bytes)?;
    let (endian, arch) = (header.endian()?, super::arch_of(header)?);
    let sections = header.sections(endian, bytes)?;
    let symbols = sections.symbols(endian, bytes, object::elf::SHT_SYMTAB)?;
    let mut undefined = Vec::new();
    let mut known: HashSet<&[u8]> = HashSet::new();
    let mut budget = Budget::for_file(bytes);
    for symbol in symbols.iter().skip(1) {
        let is_used = symbol.st_shndx(endian) == SHN_UNDEF
            && symbol.st_type() <= object::elf::STT_FUNC
            && (symbol.st_type() != STT_NOTYPE || symbol.is_undefined(endian));
        if !is_used {
            continue;
        }
        let name = budget.name(symbols.symbol_name(endian, symbol)?)?;
        // The driver defines names such as `.nv.reservedSmem.offset0`.
        if !name.is_empty() && !name.starts_with(b".") && known.insert(name) {
            undefined.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    let sections = SectionsByName::read(&sections, endian, &mut budget)?;
    let note = |name: &[u8]| Ok::<_, CubinError>(sections.bytes(bytes, name)?.and_then(description));
    let of_header = of_header(header)?;
    let tool = note(b".note.nv.tkinfo")?.map(|note| tool(note, arch)).unwrap_or_default();
    let of_note = note(b".note.nv.cuinfo")?.and_then(|note| release(half(note, 4)?.into()));
    Ok(CubinOrigin {
        suffix: of_header.suffix.or(tool.suffix),
        release: of_header.release.or(of_note).or(tool.release),
        tool: tool.tool,
        is_relocatable: header.e_type.get(endian) == ET_REL,
        undefined,
    })
}

fn of_header(header: &Header) -> Result<CubinOrigin, CubinError> {
    const FOR_ONE_ALONE: u32 = 0x800;
    const FIRST_WITH_SUFFIX: u32 = 90;
    if header.e_ident.abi_version != 7 {
        return Ok(CubinOrigin::default());
    }
    let is_alone = header.e_flags.get(LittleEndian).0 & FOR_ONE_ALONE != 0;
    let suffix = if is_alone { ArchSuffix::Specific } else { ArchSuffix::None };
    Ok(CubinOrigin {
        suffix: (super::arch_of(header)? >= FIRST_WITH_SUFFIX).then_some(suffix),
        release: release(header.e_version.get(LittleEndian)),
        ..CubinOrigin::default()
    })
}

fn tool(note: &[u8], arch: u32) -> CubinOrigin {
    let (tool, says, options) = (text(note, 2), text(note, 3), text(note, 5));
    let number = says.rsplit_once("release ").map(|(_, number)| number.split(',').next().unwrap_or_default());
    let release = number.and_then(|number| {
        let (major, minor) = number.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    CubinOrigin {
        suffix: suffix(&options, arch),
        release,
        tool: [tool.as_str(), number.unwrap_or_default()].join(" ").trim().to_owned(),
        ..CubinOrigin::default()
    }
}

/// Parses a CUDA release: 134 is 13.4.
fn release(number: u32) -> Option<(u32, u32)> {
    (100..1000).contains(&number).then_some((number / 10, number % 10))
}

/// Skips a note's three words (sizes of name and description, type) and its padded name.
fn description(section: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| Some(u32::from_le_bytes(section.get(at..at + 4)?.try_into().ok()?));
    let (name, size) = (usize::try_from(word(0)?).ok()?, usize::try_from(word(4)?).ok()?);
    let start = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
    section.get(start..start.checked_add(size)?)
}

fn text(note: &[u8], word: usize) -> String {
    const TEXTS: usize = 24;
    let from = || {
        let at = word.checked_mul(4)?;
        let from = u32::from_le_bytes(note.get(at..at.checked_add(4)?)?.try_into().ok()?);
        note.get(TEXTS.checked_add(usize::try_from(from).ok()?)?..)
    };
    let bytes = from().unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

/// Parses `-arch sm_90a` or `--gpu-name=sm_90a`; `None` if ambiguous or unlike the header.
fn suffix(options: &str, number: u32) -> Option<ArchSuffix> {
    let words: Vec<&str> = options.split([' ', '=', '\t', ',']).filter(|word| !word.is_empty()).collect();
    let is_option = |word: &str| matches!(word, "-arch" | "--arch" | "--gpu-name" | "-gpu-name");
    let named = words.windows(2).filter(|pair| is_option(pair[0])).map(|pair| pair[1]);
    let mut found = None;
    for arch in named {
        let arch = arch.strip_prefix("sm_")?;
        let digits = arch.find(|c: char| !c.is_ascii_digit()).unwrap_or(arch.len());
        let (digits, suffix) = arch.split_at(digits);
        let suffix = match suffix {
            "" => ArchSuffix::None,
            "a" => ArchSuffix::Specific,
            "f" => ArchSuffix::Family,
            _ => return None,
        };
        if digits.parse() != Ok(number) || found.is_some_and(|known| known != suffix) {
            return None;
        }
        found = Some(suffix);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_architecture_of_the_header_has_the_suffix() {
        for (options, number, expected) in [
            ("-v -arch sm_90a", 90, Some(ArchSuffix::Specific)),
            ("--gpu-name=sm_100f -O3", 100, Some(ArchSuffix::Family)),
            ("-arch sm_80", 80, Some(ArchSuffix::None)),
            ("-arch sm_80 -o x.sm_90a.cubin", 80, Some(ArchSuffix::None)),
            ("-o x.sm_90a.cubin", 90, None),
            ("-arch sm_90a", 100, None),
            ("-arch sm_90a -arch sm_90", 90, None),
            ("-arch sm_90x", 90, None),
            ("", 90, None),
        ] {
            assert_eq!(suffix(options, number), expected, "{options}");
        }
    }
    fn data(file: &str) -> Vec<u8> {
        std::fs::read(format!("{}/../../tests/data/code/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn the_release_is_in_the_header_or_in_a_note() {
        let release = |bytes: &[u8]| cubin_origin(bytes).unwrap().release;
        assert_eq!(release(&data("triton/f32-sm_80-any/axpy.cubin")), Some((12, 9)));
        let noted = data("scale.sm_90.cubin");
        assert_eq!(release(&noted), Some((13, 0)));
        let without = |bytes: &[u8], name: &[u8]| {
            let mut changed = bytes.to_vec();
            for at in 0..changed.len() - name.len() {
                if changed[at..].starts_with(name) {
                    changed[at] = b'_';
                }
            }
            changed
        };
        let with_tool = without(&noted, b".note.nv.cuinfo");
        assert_eq!(release(&with_tool), Some((13, 0)));
        assert_eq!(release(&without(&with_tool, b".note.nv.tkinfo")), None);
    }

    /// Header words of ptxas 12.0, 12.4, 12.8 and 12.9 for `sm_90` and `sm_90a`.
    #[test]
    fn the_header_of_abi_7_tells_the_suffix() {
        let mut cubin = data("triton/f32-sm_80-any/axpy.cubin");
        assert_eq!((cubin[8], &cubin[48..52]), (7, &0x0050_0550_u32.to_le_bytes()[..]));
        assert_eq!(cubin_origin(&cubin).unwrap().suffix, None);
        for (flags, suffix) in [(0x005a_055a_u32, ArchSuffix::None), (0x005a_0d5a, ArchSuffix::Specific)] {
            cubin[48..52].copy_from_slice(&flags.to_le_bytes());
            assert_eq!(cubin_origin(&cubin).unwrap().suffix, Some(suffix));
        }
    }
}
