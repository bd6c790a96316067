//! A file read with bounds, and with some of its bytes replaced.
//!
//! Owns every read of the injector. Never allocates more than the file is long, never changes the file.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::error::Problem;

const CHUNK: usize = 64 * 1024;

/// Bytes that take the place of the file's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Patch {
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// The first bytes of a file, patched.
pub(super) struct View<R> {
    source: R,
    file_length: u64,
    length: u64,
    patches: Vec<Patch>,
}

impl<R: Read + Seek> View<R> {
    /// The whole of `source`.
    pub(super) fn new(mut source: R) -> Result<View<R>, Problem> {
        let length = source.seek(SeekFrom::End(0)).map_err(reading)?;
        Ok(View { source, file_length: length, length, patches: Vec::new() })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// From now on shows the first `length` bytes with `patches`.
    pub(super) fn show(&mut self, length: u64, patches: Vec<Patch>) {
        self.length = length.min(self.file_length);
        self.patches = patches;
    }

    /// From now on shows the file as it is.
    pub(super) fn show_file(&mut self) {
        self.show(self.file_length, Vec::new());
    }

    /// `length` bytes from `offset`; `what` names them where the file ends before.
    pub(super) fn bytes(&mut self, offset: u64, length: u64, what: &str) -> Result<Vec<u8>, Problem> {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        let (true, Ok(size)) = (inside, usize::try_from(length)) else {
            return Err(Problem::Malformed(format!(
                "{what} should be {length} bytes from byte {offset}, but the file has {} bytes",
                self.length
            )));
        };
        let mut bytes = vec![0; size];
        self.source.seek(SeekFrom::Start(offset)).map_err(reading)?;
        self.source.read_exact(&mut bytes).map_err(reading)?;
        for patch in &self.patches {
            overlay(&mut bytes, offset, patch);
        }
        Ok(bytes)
    }

    /// As [`View::bytes`], for a number of bytes known in advance.
    pub(super) fn array<const N: usize>(&mut self, offset: u64, what: &str) -> Result<[u8; N], Problem> {
        let bytes = self.bytes(offset, N as u64, what)?;
        bytes.try_into().map_err(|_| Problem::Malformed(format!("{what} is cut off")))
    }

    /// Hands `length` bytes from `offset` to `sink`, piece by piece.
    pub(super) fn pieces(
        &mut self,
        offset: u64,
        length: u64,
        what: &str,
        mut sink: impl FnMut(u64, &[u8]) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let mut done = 0;
        while done < length {
            let piece = (length - done).min(CHUNK as u64);
            let at = offset.saturating_add(done);
            sink(at, &self.bytes(at, piece, what)?)?;
            done += piece;
        }
        Ok(())
    }

    /// The BLAKE3 digest of all of it.
    pub(super) fn digest(&mut self) -> Result<[u8; 32], Problem> {
        let mut hasher = blake3::Hasher::new();
        self.pieces(0, self.length, "the file", |_, piece| {
            hasher.update(piece);
            Ok(())
        })?;
        Ok(*hasher.finalize().as_bytes())
    }

    /// Writes all of it.
    pub(super) fn copy(&mut self, out: &mut dyn Write) -> Result<(), Problem> {
        self.pieces(0, self.length, "the file", |_, piece| out.write_all(piece).map_err(writing))
    }
}

/// Puts the part of `patch` that falls on `bytes`, which begin at `offset`, into them.
fn overlay(bytes: &mut [u8], offset: u64, patch: &Patch) {
    for (at, &byte) in (patch.offset..).zip(&patch.bytes) {
        let index = at.checked_sub(offset).and_then(|index| usize::try_from(index).ok());
        if let Some(place) = index.and_then(|index| bytes.get_mut(index)) {
            *place = byte;
        }
    }
}

pub(super) fn reading(source: io::Error) -> Problem {
    Problem::Io { action: "read the library", source }
}

pub(super) fn writing(source: io::Error) -> Problem {
    Problem::Unwritten { action: "write it", source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn patches_show_at_every_cut() {
        let patches = vec![Patch { offset: 3, bytes: vec![90, 91, 92] }];
        let mut view = View::new(Cursor::new((0..9).collect::<Vec<u8>>())).unwrap();
        view.show(8, patches);
        let patched = [0, 1, 2, 90, 91, 92, 6, 7];
        for from in 0..8 {
            for to in from..=8 {
                let bytes = view.bytes(from as u64, (to - from) as u64, "a piece").unwrap();
                assert_eq!(bytes, &patched[from..to]);
            }
        }
        let mut copy = Vec::new();
        view.copy(&mut copy).unwrap();
        assert_eq!(copy, patched);
        assert_eq!(view.digest().unwrap(), *blake3::hash(&patched).as_bytes());
        view.show_file();
        assert_eq!(view.bytes(0, 9, "all").unwrap(), (0..9).collect::<Vec<u8>>());
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let mut view = View::new(Cursor::new(vec![0; 10])).unwrap();
        for (offset, length) in [(10, 1), (0, 11), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, u64::MAX)] {
            let error = view.bytes(offset, length, "the table").unwrap_err().to_string();
            assert!(error.contains("the table should be"), "{error}");
        }
        assert_eq!(view.bytes(10, 0, "nothing").unwrap(), Vec::<u8>::new());
    }
}
