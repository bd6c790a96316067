//! Finds a library's descriptor, note and bundle. Ambiguity is an error.

use std::ops::Range;

use cubinder_model::slot::{self, Attachment};

use super::elf::{self, Elf, Notes, Segment, array, bytes};
use super::error::Problem;

#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) attachment: Option<Attachment>,
}

impl Slot {
    pub(super) fn file_range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(slot::SIZE as u64)
    }

    pub(super) fn bundle_address(&self, attachment: &Attachment) -> Option<u64> {
        self.address.checked_add_signed(attachment.delta)
    }
}

/// By section name, then by the magic in read-only memory.
pub(super) fn slot(library: &[u8], elf: &Elf) -> Result<Slot, Problem> {
    let named: Vec<_> = elf.sections_named(slot::SECTION).collect();
    let address = match *named.as_slice() {
        [] => scan(library, elf)?,
        [section] if section.size != slot::SIZE as u64 => {
            return Err(Problem::Malformed(format!(
                "section `{}` has {} bytes, expected {}",
                slot::SECTION,
                section.size,
                slot::SIZE
            )));
        }
        [section] => section.address,
        _ => return Err(Problem::ManyDescriptors { count: named.len() }),
    };
    let range = elf.file_range(address, slot::SIZE as u64);
    let claimed = named.first().map(|section| section.offset);
    let Some(offset) = range.map(|range| range.start).filter(|&at| claimed.is_none_or(|claim| claim == at))
    else {
        return Err(Problem::Malformed(format!(
            "no segment maps section `{}` at its offset in the file",
            slot::SECTION
        )));
    };
    let attachment = slot::decode(&array(library, offset, "the descriptor")?)
        .map_err(|source| Problem::Descriptor { offset, source })?;
    Ok(Slot { offset, address, attachment })
}

fn scan(library: &[u8], elf: &Elf) -> Result<u64, Problem> {
    let mut found = Vec::new();
    let read_only = |segment: &&Segment| {
        segment.kind == elf::PT_LOAD && segment.flags & (elf::PF_R | elf::PF_W) == elf::PF_R
    };
    for segment in elf.segments.iter().filter(read_only) {
        let align = slot::ALIGN as u64;
        let skip = segment.address.wrapping_neg() % align;
        let (start, length) = (segment.offset.saturating_add(skip), segment.file_size.saturating_sub(skip));
        if length == 0 {
            continue;
        }
        let lines = bytes(library, start, length, "a segment")?.chunks_exact(slot::ALIGN);
        let hits = (start..).step_by(slot::ALIGN).zip(lines).filter(|(_, line)| *line == slot::MAGIC);
        found.extend(hits.map(|(at, _)| segment.address + (at - segment.offset)));
    }
    match *found.as_slice() {
        [] => Err(Problem::NoDescriptor),
        [address] => Ok(address),
        _ => Err(Problem::ManyDescriptors { count: found.len() }),
    }
}

pub(super) fn note(library: &[u8], elf: &Elf) -> Result<usize, Problem> {
    const LIMIT: u64 = 64 * 1024;
    let candidates = elf.segments.iter().enumerate();
    for (index, segment) in candidates.filter(|(_, segment)| segment.kind == elf::PT_NOTE) {
        if segment.file_size > LIMIT {
            continue;
        }
        match elf::notes_in(bytes(library, segment.offset, segment.file_size, "a segment of notes")?) {
            Notes::Ours => return Ok(index),
            Notes::Merged => return Err(Problem::MergedNotes { found: segment.file_size }),
            Notes::Foreign => {}
        }
    }
    Err(Problem::NoNote)
}

/// It must map exactly the bundle.
pub(super) fn bundle_segment(elf: &Elf, slot: &Slot, attachment: &Attachment) -> Option<usize> {
    let address = slot.bundle_address(attachment)?;
    elf.segments.iter().position(|segment| {
        segment.kind == elf::PT_LOAD
            && segment.address == address
            && segment.file_size == attachment.length
            && segment.memory_size == attachment.length
    })
}
