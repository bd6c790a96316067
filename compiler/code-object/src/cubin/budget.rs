//! Limits how much of a file is read.

use super::CubinError;

/// In file lengths. Names and notes are disjoint, except for strings that share their ends.
const MOST: usize = 2;
/// Ten times CUTLASS's longest name.
const LONGEST_NAME: usize = 1 << 16;

/// The remaining bytes: overlapping names and notes could expand a small file without limit.
#[derive(Debug)]
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    pub(super) fn for_file(bytes: &[u8]) -> Budget {
        Budget { left: bytes.len().saturating_mul(MOST) }
    }

    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), CubinError> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            CubinError::Elf("its names and notes overlap, and have more bytes than the file".to_owned())
        })?;
        Ok(())
    }

    /// Counts a name that was searched for its end.
    pub(super) fn name<'n>(&mut self, name: &'n [u8]) -> Result<&'n [u8], CubinError> {
        self.spend(name.len())?;
        if name.len() > LONGEST_NAME {
            let message = format!("a name of {} bytes: more than {LONGEST_NAME} make no sense", name.len());
            return Err(CubinError::Elf(message));
        }
        Ok(name)
    }
}
