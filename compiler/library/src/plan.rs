//! Plans changes of offsets, addresses and program headers. Must not do I/O.

use std::ops::Range;

use cubinder_model::slot::{self, Attachment, Mode, Undo};

use super::elf::{self, Elf, PAGE, Section, Segment};
use super::error::Problem;
use super::find::{self, Slot};

/// The patched file, zeros up to `offset`, the bundle, then zeros and section headers if any.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) patches: Vec<Patch>,
    pub(super) offset: u64,
    pub(super) sections: Option<Patch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patch {
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl Patch {
    pub(super) fn apply(&self, library: &mut [u8]) {
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX);
        library.iter_mut().skip(offset).zip(&self.bytes).for_each(|(to, from)| *to = *from);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    bundle: u64,
    sections: u64,
}

pub(super) struct Target<'a> {
    pub(super) elf: &'a Elf,
    pub(super) slot: &'a Slot,
    pub(super) length: u64,
    /// The note's, or the previous bundle's.
    pub(super) index: usize,
}

impl Target<'_> {
    /// The descriptor stores `undo`.
    pub(super) fn attach(&self, mode: Mode, length: u64, undo: Option<Undo>) -> Result<Plan, Problem> {
        let layout = layout(self.length, length)?;
        let mut segments = self.elf.segments.clone();
        if self.index >= segments.len() {
            return Err(Problem::NoNote);
        }
        let old = segments.remove(self.index);
        let segment = bundle_segment(&segments, layout.bundle, length)?;
        let address = segment.address;
        // The linker requires ascending addresses.
        let last = segments.iter().rposition(|segment| segment.kind == elf::PT_LOAD);
        segments.insert(last.map_or(0, |last| last + 1), segment);

        let delta = signed(address)? - signed(self.slot.address)?;
        let attachment = Attachment { mode, delta, length, undo };
        let mut patches = vec![
            Patch { offset: self.elf.segments_offset(), bytes: elf::encode_segments(&segments) },
            Patch { offset: self.slot.offset, bytes: slot::encode(Some(&attachment)).to_vec() },
        ];
        let mut table = None;
        if !self.elf.sections.is_empty() {
            let sections = self.sections(&old, layout.bundle..layout.bundle + length, address)?;
            let count = u16::try_from(sections.len()).ok().filter(|&count| count < 0xff00);
            let count = count.ok_or_else(|| Problem::TooLarge("no space for another section".to_owned()))?;
            patches.push(Patch { offset: 0, bytes: self.elf.header_with_sections(layout.sections, count) });
            table = Some(Patch {
                offset: layout.sections,
                bytes: sections.iter().flat_map(Section::encode).collect(),
            });
        }
        self.check_apart()?;
        Ok(Plan { patches, offset: layout.bundle, sections: table })
    }

    /// Adds a section, because tools drop segments without one.
    fn sections(&self, old: &Segment, range: Range<u64>, address: u64) -> Result<Vec<Section>, Problem> {
        let mut sections = self.elf.sections.clone();
        let size = range.end - range.start;
        let replaced = sections.iter_mut().find(|section| {
            old.kind == elf::PT_LOAD && section.address == old.address && section.size == old.file_size
        });
        if let Some(section) = replaced {
            *section = Section { address, offset: range.start, size, ..section.clone() };
            return Ok(sections);
        }
        // `.note.cubinder` ends with the name.
        let note = self.elf.sections_named(slot::NOTE_SECTION).next();
        let name = note.and_then(|note| note.name.checked_add(".note".len() as u32)).ok_or_else(|| {
            Problem::Malformed(format!("it has section headers, but none for `{}`", slot::NOTE_SECTION))
        })?;
        sections.push(Section {
            name,
            kind: elf::SHT_PROGBITS,
            flags: elf::SHF_ALLOC,
            address,
            offset: range.start,
            size,
            link: 0,
            info: 0,
            align: PAGE,
            entry_size: 0,
        });
        Ok(sections)
    }

    fn check_apart(&self) -> Result<(), Problem> {
        let places = [
            ("the ELF header", 0..elf::HEADER_SIZE),
            ("the table of program headers", self.elf.segments_range()),
            ("the descriptor", self.slot.file_range()),
        ];
        for (index, (name, range)) in places.iter().enumerate() {
            for (other_name, other) in places.iter().skip(index + 1) {
                if range.start < other.end && other.start < range.end {
                    return Err(Problem::Malformed(format!("{name} overlaps {other_name}")));
                }
            }
        }
        Ok(())
    }
}

pub(super) fn detach(elf: &Elf, slot: &Slot, length: u64) -> Result<(u64, Vec<Patch>), &'static str> {
    let attachment = slot.attachment.as_ref().ok_or("it has no bundle")?;
    let undo = attachment.undo.as_ref().ok_or("its bundle was replaced after that")?;
    let index =
        find::bundle_segment(elf, slot, attachment).ok_or("the segment of the bundle is different")?;
    let too_large = "the numbers in the descriptor are too large";
    let layout = layout(undo.length, attachment.length).map_err(|_| too_large)?;
    let count = u16::try_from(undo.section_count).map_err(|_| too_large)?;
    let end = match undo.section_count {
        0 => layout.bundle.saturating_add(attachment.length),
        count => layout
            .sections
            .saturating_add(u64::from(count).saturating_add(1).saturating_mul(elf::SECTION_SIZE)),
    };
    if end != length {
        return Err("the file has a different length");
    }
    let mut segments = elf.segments.clone();
    segments.remove(index);
    let note_index = usize::try_from(undo.note_index).ok().filter(|&index| index <= segments.len());
    segments.insert(
        note_index.ok_or("the table of program headers is shorter")?,
        Segment::decode(&undo.note_header),
    );
    let patches = vec![
        Patch { offset: elf.segments_offset(), bytes: elf::encode_segments(&segments) },
        Patch { offset: slot.offset, bytes: slot::GENERIC.to_vec() },
        Patch { offset: 0, bytes: elf.header_with_sections(undo.section_offset, count) },
    ];
    Ok((undo.length, patches))
}

pub(super) fn undo(target: &Target<'_>, digest: [u8; 32]) -> Option<Undo> {
    let note_header = target.elf.segments.get(target.index)?.encode();
    Some(Undo {
        length: target.length,
        section_offset: target.elf.sections_offset(),
        section_count: u32::try_from(target.elf.sections.len()).ok()?,
        note_index: u32::try_from(target.index).ok()?,
        note_header: note_header.try_into().ok()?,
        digest,
    })
}

fn bundle_segment(segments: &[Segment], offset: u64, length: u64) -> Result<Segment, Problem> {
    let loads = || segments.iter().filter(|segment| segment.kind == elf::PT_LOAD);
    let align = loads().map(|segment| segment.align).max().unwrap_or(PAGE).max(PAGE);
    let end = loads().map(|segment| segment.address.saturating_add(segment.memory_size)).max().unwrap_or(0);
    let address = end.checked_next_multiple_of(align).and_then(|base| base.checked_add(offset % align));
    let fits = |address: &u64| address.checked_add(length).is_some_and(|end| i64::try_from(end).is_ok());
    let address = address.filter(fits).ok_or_else(too_large)?;
    Ok(Segment {
        kind: elf::PT_LOAD,
        flags: elf::PF_R,
        offset,
        address,
        physical: address,
        file_size: length,
        memory_size: length,
        align,
    })
}

fn layout(file: u64, bundle: u64) -> Result<Layout, Problem> {
    let start = file.checked_next_multiple_of(PAGE).ok_or_else(too_large)?;
    let end =
        start.checked_add(bundle).and_then(|end| end.checked_next_multiple_of(8)).ok_or_else(too_large)?;
    Ok(Layout { bundle: start, sections: end })
}

fn signed(address: u64) -> Result<i64, Problem> {
    i64::try_from(address).map_err(|_| too_large())
}

pub(super) fn too_large() -> Problem {
    Problem::TooLarge("the bundle exceeds the address space after the library".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_change_only_bytes_of_the_file() {
        let patched = |offset: u64| {
            let mut file = [1, 2, 3, 4];
            Patch { offset, bytes: vec![8, 9] }.apply(&mut file);
            file
        };
        assert_eq!(patched(1), [1, 8, 9, 4]);
        assert_eq!(patched(3), [1, 2, 3, 8]);
        for offset in [4, u64::from(u32::MAX), i64::MAX as u64, usize::MAX as u64, u64::MAX] {
            assert_eq!(patched(offset), [1, 2, 3, 4], "{offset}");
        }
    }

    const LENGTH: usize = 0x3000;

    fn segment(kind: u32, offset: u64, size: u64, align: u64) -> Segment {
        Segment {
            kind,
            flags: elf::PF_R,
            offset,
            address: offset,
            physical: offset,
            file_size: size,
            memory_size: size,
            align,
        }
    }

    fn load(offset: u64, size: u64) -> Segment {
        segment(elf::PT_LOAD, offset, size, 0x1000)
    }

    fn library(segments: &[Segment]) -> Elf {
        let mut file = vec![0; LENGTH];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01\x01");
        put(16, &[3, 0, 62, 0, 1]);
        put(32, &[64]);
        put(52, &[64, 0, 56, 0, segments.len() as u8]);
        put(64, &elf::encode_segments(segments));
        Elf::read(&file).unwrap()
    }

    fn slot(offset: u64) -> Slot {
        Slot { offset, address: offset, attachment: None }
    }

    fn table(plan: &Plan) -> Vec<(u32, u64)> {
        let segments = plan.patches[0].bytes.chunks(56).map(Segment::decode);
        segments.map(|segment| (segment.kind, segment.address)).collect()
    }

    /// The note's position varies by linker.
    #[test]
    fn the_bundle_follows_the_last_load_and_the_note_returns() {
        let note = || segment(elf::PT_NOTE, 0x300, 16, 8);
        let dynamic = || segment(elf::PT_DYNAMIC, 0x400, 16, 8);
        let loads = || [load(0, 0x1000), load(0x1000, 0x1234)];
        let [a, b] = loads();
        for (index, segments) in [
            (0, vec![note(), a.clone(), b.clone(), dynamic()]),
            (1, vec![a.clone(), note(), b.clone(), dynamic()]),
            (3, vec![a, b, dynamic(), note()]),
        ] {
            let elf = library(&segments);
            let target = Target { elf: &elf, slot: &slot(0x800), length: LENGTH as u64, index };
            let undo = undo(&target, [7; 32]);
            let plan = target.attach(Mode::Ops, 5, undo).unwrap();
            assert_eq!(plan.offset, 0x3000);
            assert_eq!(table(&plan), [(1, 0), (1, 0x1000), (1, 0x3000), (2, 0x400)]);

            let mut attached = elf.clone();
            attached.segments = plan.patches[0].bytes.chunks(56).map(Segment::decode).collect();
            let descriptor = plan.patches[1].bytes.clone().try_into().unwrap();
            let found = Slot { attachment: slot::decode(&descriptor).unwrap(), ..slot(0x800) };
            let (length, patches) = detach(&attached, &found, 0x3005).unwrap();
            assert_eq!((length, &patches[0].bytes), (LENGTH as u64, &elf::encode_segments(&segments)));
            assert_eq!(detach(&attached, &found, 0x3006), Err("the file has a different length"));
        }
    }

    /// 64 KiB pages: offset and address must be congruent, and pages unshared.
    #[test]
    fn the_largest_alignment_counts() {
        let elf = library(&[
            segment(elf::PT_LOAD, 0, 0x1234, 0x10000),
            segment(elf::PT_DYNAMIC, 0x400, 16, 8),
            segment(elf::PT_NOTE, 0x300, 16, 8),
        ]);
        let target = Target { elf: &elf, slot: &slot(0x800), length: LENGTH as u64, index: 2 };
        assert_eq!(table(&target.attach(Mode::Ops, 5, None).unwrap()), [(1, 0), (1, 0x13000), (2, 0x400)]);
    }

    #[test]
    fn what_is_patched_must_lie_apart() {
        let elf = library(&[
            load(0, 0x1000),
            segment(elf::PT_DYNAMIC, 0x400, 16, 8),
            segment(elf::PT_NOTE, 0x300, 16, 8),
        ]);
        let said = |offset: u64| {
            let target = Target { elf: &elf, slot: &slot(offset), length: LENGTH as u64, index: 2 };
            target.attach(Mode::Ops, 5, None).map(|_| ()).map_err(|problem| problem.to_string())
        };
        assert_eq!(said(232), Ok(()));
        let overlap = "damaged ELF file: the table of program headers overlaps the descriptor";
        assert_eq!(said(231), Err(overlap.to_owned()));
        let overlap = "damaged ELF file: the ELF header overlaps the descriptor";
        assert_eq!(said(48), Err(overlap.to_owned()));
    }

    #[test]
    fn what_outgrows_the_address_space_is_refused() {
        let elf = library(&[load(0, 0x1000), segment(elf::PT_DYNAMIC, 0x400, 16, 8)]);
        let target = Target { elf: &elf, slot: &slot(0x800), length: LENGTH as u64, index: 1 };
        for length in [i64::MAX as u64 - 0xfff, i64::MAX as u64, u64::MAX] {
            assert!(matches!(target.attach(Mode::Ops, length, None), Err(Problem::TooLarge(_))), "{length}");
        }
    }
}
