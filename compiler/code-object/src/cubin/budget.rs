//! How much of a file is read.

use super::CubinError;

/// What names and notes of a file may have together, in lengths of the file. They lie side by side, so that they are shorter than the file, but
/// for strings that end alike and share their ends.
const MOST: usize = 2;
/// The longest name of a symbol or a section. Those of CUTLASS, which are the longest that people have, are a tenth of it.
const LONGEST_NAME: usize = 1 << 16;

/// What may still be read. Names and notes that overlap could make any number of bytes out of a small file.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn for_file(bytes: &[u8]) -> Budget {
        Budget { left: bytes.len().saturating_mul(MOST) }
    }

    /// Notes that are going to be read.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), CubinError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            CubinError::Elf("its names and notes overlap, and have more bytes than the file".to_owned())
        })?;
        Ok(())
    }

    /// A name that was looked for up to its end.
    pub(super) fn name<'n>(&mut self, name: &'n [u8]) -> Result<&'n [u8], CubinError> {
        self.spend(name.len())?;
        if name.len() > LONGEST_NAME {
            let message = format!("a name of {} bytes: more than {LONGEST_NAME} make no sense", name.len());
            return Err(CubinError::Elf(message));
        }
        Ok(name)
    }
}
