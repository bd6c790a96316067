//! Checks code objects before the driver, which gets no length, reads them.

use crate::TargetKind;
use crate::bytes::{u16_at, u32_at, u64_at};
use std::slice::ChunksExact;

/// Why bytes are not a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// No bytes.
    #[error("it is empty")]
    Empty,
    /// The driver would stop at the NUL.
    #[error("it is declared as PTX but has a NUL at byte {offset}")]
    NulInPtx {
        /// Offset of the NUL in bytes.
        offset: usize,
    },
    /// The driver would use another format.
    #[error("it is declared as PTX but is not text")]
    NotPtx,
    /// The code is not an ELF file for CUDA.
    #[error("it is declared as machine code but is not a CUDA ELF file")]
    NotACubin,
    /// A header table that is not ELF64's.
    #[error("it is damaged: its table has {count} headers of {size} bytes, expected {expected} bytes each")]
    Headers {
        /// Headers in the file.
        count: u16,
        /// Bytes per header in the file.
        size: u16,
        /// Bytes per header in ELF64.
        expected: u16,
    },
    /// It ends before its tables, sections or segments.
    #[error("it is truncated: found {len} bytes, expected {end}")]
    CutOff {
        /// Claimed end in bytes.
        end: u64,
        /// Available bytes.
        len: u64,
    },
}

/// Checks that the driver would not read past a code object's end, or as another format.
pub fn check(kind: TargetKind, bytes: &[u8]) -> Result<(), Malformed> {
    if bytes.is_empty() {
        return Err(Malformed::Empty);
    }
    match kind {
        TargetKind::Ptx | TargetKind::Native => check_ptx(bytes),
        TargetKind::Cubin => check_cubin(bytes),
    }
}

/// Formats with their own lengths do not start with text.
fn check_ptx(bytes: &[u8]) -> Result<(), Malformed> {
    const DELETE: u8 = 0x7f;
    if let Some(offset) = bytes.iter().position(|byte| *byte == 0) {
        return Err(Malformed::NulInPtx { offset });
    }
    if bytes.starts_with(&[DELETE]) || str::from_utf8(bytes).is_err() {
        return Err(Malformed::NotPtx);
    }
    Ok(())
}

/// Checks a little-endian ELF64 file (System V ABI, "ELF header", "sections", "program header") for machine 190
/// (`EM_CUDA`). Header tables, sections with content and segments must be within the file, as in NVRTC 13.0's cubins,
/// including NVIDIA's types (from `0x70000000` on).
fn check_cubin(bytes: &[u8]) -> Result<(), Malformed> {
    const EM_CUDA: u16 = 190;
    if !bytes.starts_with(b"\x7fELF\x02\x01") || u16_at(bytes, 18) != Some(EM_CUDA) {
        return Err(Malformed::NotACubin);
    }
    let tables = || {
        let programs =
            Table { start: u64_at(bytes, 32)?, size: u16_at(bytes, 54)?, count: u16_at(bytes, 56)? };
        Some((
            programs,
            Table { start: u64_at(bytes, 40)?, size: u16_at(bytes, 58)?, count: u16_at(bytes, 60)? },
        ))
    };
    let (programs, sections) =
        tables().ok_or(Malformed::CutOff { end: FILE_HEADER, len: bytes.len() as u64 })?;
    for header in programs.entries(bytes, PROGRAM_HEADER)? {
        within(bytes, u64_at(header, 8), u64_at(header, 32))?;
    }
    for header in sections.entries(bytes, SECTION_HEADER)? {
        if !matches!(u32_at(header, 4), Some(SHT_NULL | SHT_NOBITS)) {
            within(bytes, u64_at(header, 24), u64_at(header, 32))?;
        }
    }
    Ok(())
}

/// Sizes of `Elf64_Ehdr`, `Elf64_Phdr` and `Elf64_Shdr`.
const FILE_HEADER: u64 = 64;
const PROGRAM_HEADER: u16 = 56;
const SECTION_HEADER: u16 = 64;
const SHT_NULL: u32 = 0;
const SHT_NOBITS: u32 = 8;

struct Table {
    start: u64,
    size: u16,
    count: u16,
}

impl Table {
    /// Returns the table's entries. Count 0 with an offset: more than cubins have.
    fn entries<'a>(&self, bytes: &'a [u8], expected: u16) -> Result<ChunksExact<'a, u8>, Malformed> {
        let size = usize::from(expected);
        if self.count == 0 && self.start == 0 {
            return Ok([].chunks_exact(size));
        }
        if self.size != expected || self.count == 0 {
            return Err(Malformed::Headers { count: self.count, size: self.size, expected });
        }
        let length = u64::from(self.size) * u64::from(self.count);
        Ok(within(bytes, Some(self.start), Some(length))?.chunks_exact(size))
    }
}

fn within(bytes: &[u8], start: Option<u64>, size: Option<u64>) -> Result<&[u8], Malformed> {
    let len = bytes.len() as u64;
    let end = start.zip(size).and_then(|(start, size)| start.checked_add(size)).unwrap_or(u64::MAX);
    let range = usize::try_from(start.unwrap_or(0)).ok().zip(usize::try_from(end).ok());
    range.and_then(|(start, end)| bytes.get(start..end)).ok_or(Malformed::CutOff { end, len })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &mut [u8], at: usize, number: &[u8]) {
        bytes[at..at + number.len()].copy_from_slice(number);
    }

    fn section(ty: u32, start: u64, size: u64) -> Vec<u8> {
        let mut header = vec![0; 64];
        put(&mut header, 4, &ty.to_le_bytes());
        put(&mut header, 24, &start.to_le_bytes());
        put(&mut header, 32, &size.to_le_bytes());
        header
    }

    fn segment(start: u64, size: u64) -> Vec<u8> {
        let mut header = vec![0; 56];
        put(&mut header, 0, &1_u32.to_le_bytes());
        put(&mut header, 8, &start.to_le_bytes());
        put(&mut header, 32, &size.to_le_bytes());
        header
    }

    fn file(sections: &[Vec<u8>], segments: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        put(&mut bytes, 0, b"\x7fELF\x02\x01");
        put(&mut bytes, 18, &190_u16.to_le_bytes());
        bytes.extend_from_slice(b"code");
        for (table, [start, size, count]) in [(segments, [32, 54, 56]), (sections, [40, 58, 60])] {
            let Some(first) = table.first() else { continue };
            let length = bytes.len() as u64;
            put(&mut bytes, start, &length.to_le_bytes());
            put(&mut bytes, size, &(first.len() as u16).to_le_bytes());
            put(&mut bytes, count, &(table.len() as u16).to_le_bytes());
            table.iter().for_each(|header| bytes.extend_from_slice(header));
        }
        bytes
    }

    fn cubin() -> Vec<u8> {
        let beyond = 1 << 40;
        let sections = [
            section(0, beyond, beyond),
            section(3, 64, 4),
            section(2, 64, 4),
            section(1, 64, 4),
            section(0x7000_0000, 66, 2),
            section(0x7000_0086, 68, 0),
            section(8, 64, beyond),
        ];
        file(&sections, &[segment(64, 4), segment(68, 0)])
    }

    #[test]
    fn what_the_driver_would_run_past_is_refused() {
        let whole = cubin();
        assert!(check(TargetKind::Cubin, &whole).is_ok());
        for end in 0..whole.len() {
            assert!(check(TargetKind::Cubin, &whole[..end]).is_err(), "cut at {end}");
        }
        let far = 1_u64 << 40;
        let segments = [segment(64, 4)];
        for (header, end) in [
            (section(1, 64, u64::MAX), u64::MAX),
            (section(1, u64::MAX, 1), u64::MAX),
            (section(0x7000_0000, far, 1), far + 1),
            (section(0x7000_0000, far, 0), far),
            (section(7, 64, far), 64 + far),
        ] {
            let bytes = file(&[section(3, 64, 4), header], &segments);
            let len = bytes.len() as u64;
            assert_eq!(check(TargetKind::Cubin, &bytes), Err(Malformed::CutOff { end, len }));
        }
        let bytes = file(&[], &[segment(64, 4), segment(far, 4)]);
        let len = bytes.len() as u64;
        assert_eq!(check(TargetKind::Cubin, &bytes), Err(Malformed::CutOff { end: far + 4, len }));
        assert_eq!(check(TargetKind::Cubin, b".version 9.0"), Err(Malformed::NotACubin));
    }

    #[test]
    fn tables_have_headers_of_their_own_size() {
        let mut bytes = file(&[], &[])[..64].to_vec();
        put(&mut bytes, 60, &60_000_u16.to_le_bytes());
        let none = Malformed::Headers { count: 60_000, size: 0, expected: 64 };
        assert_eq!(check(TargetKind::Cubin, &bytes), Err(none));
        insta::assert_snapshot!(none, @"it is damaged: its table has 60000 headers of 0 bytes, expected 64 bytes each");
        for (size, expected) in [(54, 56), (58, 64)] {
            for wrong in [0, expected - 1, expected + 1, u16::MAX] {
                let mut bytes = cubin();
                put(&mut bytes, size, &wrong.to_le_bytes());
                let found = check(TargetKind::Cubin, &bytes);
                assert!(matches!(found, Err(Malformed::Headers { size, .. }) if size == wrong), "{found:?}");
            }
            // ELF then stores the number of headers in the first header.
            let mut bytes = cubin();
            put(&mut bytes, size + 2, &[0; 2]);
            assert!(matches!(check(TargetKind::Cubin, &bytes), Err(Malformed::Headers { count: 0, .. })));
        }
    }

    #[test]
    fn what_is_no_ptx_is_refused() {
        assert_eq!(check(TargetKind::Ptx, b"// caf\xc3\xa9\n.version 9.0"), Ok(()));
        assert_eq!(check(TargetKind::Ptx, b"ab\0c"), Err(Malformed::NulInPtx { offset: 2 }));
        assert_eq!(check(TargetKind::Ptx, b""), Err(Malformed::Empty));
        // ELF, fat binaries and LTO-IR.
        for other in [&b"\x7fELF\x02\x01"[..], b"\x50\xed\x55\xba\x01", b"\xed\x43\x4e\x7f"] {
            assert_eq!(check(TargetKind::Ptx, other), Err(Malformed::NotPtx));
        }
    }
}
