//! The bytes that the driver is given. It takes no length, so what it would run past the end of is found here.

use std::ffi::c_void;

use cubinder_bundle::TargetKind;

/// Sixteen bytes that start at a multiple of sixteen.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
struct Chunk([u8; 16]);

/// A whole code object in memory that is aligned to 16 bytes and ends with at least one NUL.
#[derive(Debug)]
pub(super) struct Image(Vec<Chunk>);

/// Why bytes are no code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// No bytes.
    Empty,
    /// PTX with a NUL inside: the driver would read up to there.
    NulInPtx {
        /// Where, bytes from the start.
        offset: usize,
    },
    /// Said to be machine code, and no ELF file for CUDA.
    NotACubin,
    /// Its tables or sections go on beyond its last byte.
    CutOff {
        /// The end that it claims, bytes from the start.
        end: u64,
        /// The bytes that are there.
        len: u64,
    },
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::Empty => f.write_str("it is empty"),
            Malformed::NulInPtx { offset } => {
                write!(f, "it is said to be PTX and has a NUL at byte {offset}")
            }
            Malformed::NotACubin => f.write_str("it is said to be machine code and is no ELF file for CUDA"),
            Malformed::CutOff { end, len } => write!(f, "it is cut off: {len} bytes, and it claims {end}"),
        }
    }
}

impl Image {
    /// A copy of `bytes` that the driver may read.
    pub(super) fn new(kind: TargetKind, bytes: &[u8]) -> Result<Image, Malformed> {
        check(kind, bytes)?;
        let mut chunks = Vec::with_capacity(bytes.len() / 16 + 1);
        for part in bytes.chunks(16) {
            let mut chunk = [0; 16];
            chunk[..part.len()].copy_from_slice(part);
            chunks.push(Chunk(chunk));
        }
        if bytes.len().is_multiple_of(16) {
            chunks.push(Chunk([0; 16]));
        }
        Ok(Image(chunks))
    }

    /// Where it lies.
    pub(super) fn as_ptr(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

fn check(kind: TargetKind, bytes: &[u8]) -> Result<(), Malformed> {
    if bytes.is_empty() {
        return Err(Malformed::Empty);
    }
    match kind {
        TargetKind::Ptx => match bytes.iter().position(|byte| *byte == 0) {
            Some(offset) => Err(Malformed::NulInPtx { offset }),
            None => Ok(()),
        },
        TargetKind::Cubin => check_cubin(bytes),
    }
}

/// ELF64, little-endian (System V ABI, "ELF header" and "sections"), machine 190 (`EM_CUDA`); both header tables and the
/// sections whose content is in the file lie within it.
fn check_cubin(bytes: &[u8]) -> Result<(), Malformed> {
    const EM_CUDA: u16 = 190;
    /// `SHT_PROGBITS`, `SHT_SYMTAB`, `SHT_STRTAB`, `SHT_RELA`, `SHT_REL`: the types whose content the file holds. NVIDIA's own types
    /// are left to the driver.
    const WITH_CONTENT: [u32; 5] = [1, 2, 3, 4, 9];
    let half = |at| Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let len = bytes.len() as u64;
    let within = |start: u64, size: u64| match start.checked_add(size) {
        Some(end) if end <= len => Ok(()),
        end => Err(Malformed::CutOff { end: end.unwrap_or(u64::MAX), len }),
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") || half(18) != Some(EM_CUDA) {
        return Err(Malformed::NotACubin);
    }
    let header = || {
        Some(((long(32)?, u64::from(half(54)?) * u64::from(half(56)?)), (long(40)?, half(58)?, half(60)?)))
    };
    let Some((programs, (sections, section_size, section_count))) = header() else {
        return Err(Malformed::CutOff { end: 64, len });
    };
    within(programs.0, programs.1)?;
    within(sections, u64::from(section_size) * u64::from(section_count))?;
    for index in 0..u64::from(section_count) {
        let start =
            usize::try_from(sections + index * u64::from(section_size)).map_err(|_| Malformed::NotACubin)?;
        let section = || Some((word(start + 4)?, long(start + 24)?, long(start + 32)?));
        let Some((ty, offset, size)) = section() else {
            return Err(Malformed::CutOff { end: start as u64 + 64, len });
        };
        if WITH_CONTENT.contains(&ty) {
            within(offset, size)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header, `content` and one section header for it.
    fn cubin(content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&190_u16.to_le_bytes());
        bytes[40..48].copy_from_slice(&(64 + content.len() as u64).to_le_bytes());
        bytes[58..60].copy_from_slice(&64_u16.to_le_bytes());
        bytes[60..62].copy_from_slice(&1_u16.to_le_bytes());
        bytes.extend_from_slice(content);
        let mut section = [0; 64];
        section[4..8].copy_from_slice(&1_u32.to_le_bytes());
        section[24..32].copy_from_slice(&64_u64.to_le_bytes());
        section[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&section);
        bytes
    }

    #[test]
    fn an_image_is_aligned_and_ends_with_a_nul() {
        for len in [1, 15, 16, 17, 4096] {
            let text = vec![b'x'; len];
            let image = Image::new(TargetKind::Ptx, &text).unwrap();
            assert_eq!(image.as_ptr() as usize % 16, 0);
            let held: Vec<u8> = image.0.iter().flat_map(|chunk| chunk.0).collect();
            assert_eq!(held[..len], text[..]);
            assert!(held.len() > len && held[len..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn what_the_driver_would_run_past_is_refused() {
        let whole = cubin(b"code");
        assert!(Image::new(TargetKind::Cubin, &whole).is_ok());
        for end in 0..whole.len() {
            assert!(Image::new(TargetKind::Cubin, &whole[..end]).is_err(), "cut at {end}");
        }
        let mut far = whole.clone();
        let start = whole.len() - 64;
        far[start + 32..start + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(check(TargetKind::Cubin, &far), Err(Malformed::CutOff { end: u64::MAX, len: 132 }));
        assert_eq!(check(TargetKind::Cubin, b".version 9.0"), Err(Malformed::NotACubin));
        assert_eq!(check(TargetKind::Ptx, b"ab\0c"), Err(Malformed::NulInPtx { offset: 2 }));
        assert_eq!(check(TargetKind::Ptx, b""), Err(Malformed::Empty));
    }
}
