use super::CubinError;

/// Multiple of the file's length; valid files' names overlap only in shared ends.
const MOST: usize = 2;
/// Ten times CUTLASS's longest name.
const LONGEST_NAME: usize = 1 << 16;

/// Remaining bytes: overlaps could expand a small file without limit.
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
            CubinError::Elf("its names and notes overlap and exceed the file size".to_owned())
        })?;
        Ok(())
    }

    pub(super) fn name<'n>(&mut self, name: &'n [u8]) -> Result<&'n [u8], CubinError> {
        self.spend(name.len())?;
        if name.len() > LONGEST_NAME {
            let message = format!("a name has {} bytes, the limit is {LONGEST_NAME}", name.len());
            return Err(CubinError::Elf(message));
        }
        Ok(name)
    }
}
