//! Reads and writes ELF64 headers and notes (System V ABI, "Object Files" and "Program Loading", gABI 4.3; `elf.h`
//! of glibc 2.36), with the checks of glibc's `_dl_map_object_from_fd`. Must not trust the file.

use std::ops::Range;

use cubinder_model::slot;

use super::error::Problem;

pub(super) const HEADER_SIZE: u64 = 64;
pub(super) const SEGMENT_SIZE: u64 = slot::PROGRAM_HEADER_SIZE as u64;
pub(super) const SECTION_SIZE: u64 = 64;

pub(super) const PT_LOAD: u32 = 1;
pub(super) const PT_DYNAMIC: u32 = 2;
pub(super) const PT_NOTE: u32 = 4;
pub(super) const PF_W: u32 = 2;
pub(super) const PF_R: u32 = 4;
pub(super) const SHT_PROGBITS: u32 = 1;
pub(super) const SHF_ALLOC: u64 = 2;

/// Smallest page of machines with TensorRT.
pub(super) const PAGE: u64 = 0x1000;

const ET_DYN: u16 = 3;
/// `SHN_LORESERVE`: greater values are stored separately.
const RESERVED_COUNT: u16 = 0xff00;
/// Maximum bytes; larger tables of names are invalid.
const NAMES_LIMIT: u64 = 16 << 20;

/// Little-endian without padding.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(super) struct $name {
            $(pub(super) $field: $ty,)*
        }

        impl $name {
            pub(super) fn decode(bytes: &[u8]) -> $name {
                let mut bytes = bytes.iter().copied();
                $(let $field = <$ty>::from_le_bytes(std::array::from_fn(|_| bytes.next().unwrap_or_default()));)*
                $name { $($field),* }
            }

            pub(super) fn encode(&self) -> Vec<u8> {
                [$(self.$field.to_le_bytes().as_slice()),*].concat()
            }
        }
    };
}

record! {
    Segment {
        kind: u32,
        flags: u32,
        offset: u64,
        address: u64,
        physical: u64,
        file_size: u64,
        memory_size: u64,
        align: u64,
    }
}

record! {
    Section {
        name: u32,
        kind: u32,
        flags: u64,
        address: u64,
        offset: u64,
        size: u64,
        link: u32,
        info: u32,
        align: u64,
        entry_size: u64,
    }
}

impl Segment {
    pub(super) fn file_range(&self, address: u64, length: u64) -> Option<Range<u64>> {
        let skip = address.checked_sub(self.address)?;
        let inside = skip.checked_add(length)? <= self.file_size;
        let start = self.offset.checked_add(skip)?;
        (self.kind == PT_LOAD && inside).then_some(start..start.checked_add(length)?)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Elf {
    header: [u8; 64],
    pub(super) segments: Vec<Segment>,
    pub(super) sections: Vec<Section>,
    names: Vec<u8>,
}

impl Elf {
    pub(super) fn read(library: &[u8]) -> Result<Elf, Problem> {
        let Some(header) = library.first_chunk::<64>() else {
            return Err(Problem::Kind(format!("{} bytes are too short for ELF", library.len())));
        };
        check_kind(header)?;
        let mut elf = Elf { header: *header, segments: Vec::new(), sections: Vec::new(), names: Vec::new() };
        elf.segments = read_segments(library, &elf)?;
        check_segments(&elf.segments, library.len() as u64)?;
        elf.sections = read_sections(library, &elf)?;
        elf.names = read_names(library, &elf)?;
        Ok(elf)
    }

    pub(super) fn segments_offset(&self) -> u64 {
        u64_at(&self.header, 32)
    }

    pub(super) fn sections_offset(&self) -> u64 {
        u64_at(&self.header, 40)
    }

    pub(super) fn segments_range(&self) -> Range<u64> {
        // Within the file, so without overflow.
        let start = self.segments_offset();
        start..start.saturating_add(SEGMENT_SIZE.saturating_mul(self.segments.len() as u64))
    }

    pub(super) fn header_with_sections(&self, offset: u64, count: u16) -> Vec<u8> {
        let mut header = self.header.to_vec();
        let offset = offset.to_le_bytes();
        let count = count.to_le_bytes();
        for (at, bytes) in [(40, offset.as_slice()), (60, count.as_slice())] {
            header.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = *from);
        }
        header
    }

    pub(super) fn sections_named(&self, name: &str) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(move |section| self.name_of(section) == Some(name.as_bytes()))
    }

    fn name_of(&self, section: &Section) -> Option<&[u8]> {
        let rest = self.names.get(usize::try_from(section.name).ok()?..)?;
        rest.split(|&byte| byte == 0).next()
    }

    pub(super) fn file_range(&self, address: u64, length: u64) -> Option<Range<u64>> {
        self.segments.iter().find_map(|segment| segment.file_range(address, length))
    }
}

pub(super) fn encode_segments(segments: &[Segment]) -> Vec<u8> {
    segments.iter().flat_map(Segment::encode).collect()
}

fn check_kind(header: &[u8; 64]) -> Result<(), Problem> {
    let refuse = |reason: String| Err(Problem::Kind(reason));
    match header {
        [0x7f, b'E', b'L', b'F', 2, 1, 1, ..] => {}
        [0x7f, b'E', b'L', b'F', class, order, version, ..] => {
            return refuse(format!(
                "ELF class {class}, byte order {order}, version {version}; expected 64 bit (2), little endian (1), 1"
            ));
        }
        _ => return refuse("it is not an ELF file".to_owned()),
    }
    let kind = u16_at(header, 16);
    if kind != ET_DYN {
        return refuse(format!("ELF type {kind}, expected a shared object (3)"));
    }
    let sizes = [u16_at(header, 52), u16_at(header, 54)];
    if sizes != [64, 56] {
        return Err(Problem::Malformed(format!(
            "header and program headers of {} and {} bytes, expected 64 and 56",
            sizes[0], sizes[1]
        )));
    }
    Ok(())
}

fn read_segments(library: &[u8], elf: &Elf) -> Result<Vec<Segment>, Problem> {
    let count = u64::from(u16_at(&elf.header, 56));
    if count == 0xffff {
        return Err(Problem::TooLarge("too many program headers for the ELF header".to_owned()));
    }
    let table = bytes(library, elf.segments_offset(), count * SEGMENT_SIZE, "the table of program headers")?;
    Ok(table.chunks_exact(slot::PROGRAM_HEADER_SIZE).map(Segment::decode).collect())
}

fn check_segments(segments: &[Segment], length: u64) -> Result<(), Problem> {
    if !segments.iter().any(|segment| segment.kind == PT_DYNAMIC) {
        return Err(Problem::Kind("it has no dynamic section".to_owned()));
    }
    let mut end = 0;
    for (index, segment) in segments.iter().enumerate().filter(|(_, segment)| segment.kind == PT_LOAD) {
        let fault = |reason: &str| Problem::Malformed(format!("program header {index} (PT_LOAD) {reason}"));
        let file_end = segment.offset.checked_add(segment.file_size);
        if file_end.is_none_or(|end| end > length) {
            return Err(fault("reaches beyond the end of the file"));
        }
        if segment.file_size > segment.memory_size {
            return Err(fault("has more bytes in the file than in memory"));
        }
        if !segment.align.is_power_of_two() || segment.align < PAGE {
            return Err(fault("has an alignment that is not a power of two of at least one page"));
        }
        if segment.offset % segment.align != segment.address % segment.align {
            return Err(fault("has different page offsets in the file and in memory"));
        }
        if segment.address < end {
            return Err(fault("overlaps the previous one or is out of order"));
        }
        end = segment
            .address
            .checked_add(segment.memory_size)
            .filter(|&end| i64::try_from(end).is_ok())
            .ok_or_else(|| fault("reaches beyond the address space"))?;
    }
    if end == 0 {
        return Err(Problem::Malformed("no program header of type PT_LOAD maps anything".to_owned()));
    }
    Ok(())
}

fn read_sections(library: &[u8], elf: &Elf) -> Result<Vec<Section>, Problem> {
    let (size, count) = (u16_at(&elf.header, 58), u16_at(&elf.header, 60));
    if elf.sections_offset() == 0 && count == 0 {
        return Ok(Vec::new());
    }
    if count == 0 || count >= RESERVED_COUNT {
        return Err(Problem::TooLarge("too many section headers for the ELF header".to_owned()));
    }
    if u64::from(size) != SECTION_SIZE {
        return Err(Problem::Malformed(format!("section headers of {size} bytes, expected {SECTION_SIZE}")));
    }
    let length = u64::from(count) * SECTION_SIZE;
    let table = bytes(library, elf.sections_offset(), length, "the table of section headers")?;
    Ok(table.chunks_exact(64).map(Section::decode).collect())
}

fn read_names(library: &[u8], elf: &Elf) -> Result<Vec<u8>, Problem> {
    if elf.sections.is_empty() {
        return Ok(Vec::new());
    }
    let index = u16_at(&elf.header, 62);
    let Some(section) = elf.sections.get(usize::from(index)) else {
        let count = elf.sections.len();
        return Err(Problem::Malformed(format!("invalid section name table {index} of {count} sections")));
    };
    if section.size > NAMES_LIMIT {
        return Err(Problem::Malformed(format!("{} bytes of section names", section.size)));
    }
    Ok(bytes(library, section.offset, section.size, "the names of the sections")?.to_vec())
}

/// `what` names the bytes in errors.
pub(super) fn bytes<'l>(
    library: &'l [u8],
    offset: u64,
    length: u64,
    what: &str,
) -> Result<&'l [u8], Problem> {
    let range = usize::try_from(offset)
        .ok()
        .zip(offset.checked_add(length).and_then(|end| usize::try_from(end).ok()));
    range.and_then(|(start, end)| library.get(start..end)).ok_or_else(|| {
        Problem::Malformed(format!(
            "{what} should be {length} bytes from byte {offset}, but the file has {} bytes",
            library.len()
        ))
    })
}

/// [`bytes`] of constant length.
pub(super) fn array<const N: usize>(library: &[u8], offset: u64, what: &str) -> Result<[u8; N], Problem> {
    bytes(library, offset, N as u64, what)?
        .try_into()
        .map_err(|_| Problem::Malformed(format!("{what} is truncated")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notes {
    Ours,
    /// Our note among others.
    Merged,
    Foreign,
}

/// Linkers pad notes differently, so this compares bytes.
pub(super) fn notes_in(bytes: &[u8]) -> Notes {
    if bytes == slot::NOTE {
        return Notes::Ours;
    }
    let found = bytes
        .chunks(4)
        .enumerate()
        .any(|(index, _)| bytes.get(index * 4..).is_some_and(|rest| rest.starts_with(&slot::NOTE)));
    if found { Notes::Merged } else { Notes::Foreign }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// Records are read whole, so the bytes exist.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.iter_mut().zip(bytes.iter().skip(at)).for_each(|(to, from)| *to = *from);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_outside_of_the_file_are_an_error() {
        let file = [1, 2, 3, 4];
        assert_eq!(bytes(&file, 1, 2, "it").unwrap(), [2, 3]);
        assert!(bytes(&file, 4, 0, "it").unwrap().is_empty());
        let far = [5, u64::from(u32::MAX), i64::MAX as u64, usize::MAX as u64, u64::MAX];
        for (offset, length) in far.into_iter().flat_map(|far| [(far, 0), (0, far), (1, far), (far, far)]) {
            let error = bytes(&file, offset, length, "the table").unwrap_err().to_string();
            let expected = format!("the table should be {length} bytes from byte {offset}");
            assert!(error.contains(&expected), "{error}");
        }
    }
}
