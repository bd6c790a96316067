//! Memory of the device between guard bands.
//!
//! What is written outside of a buffer, up to [`BAND`] bytes away from it, shows in its bands. What is read there does not show by itself;
//! but the bands hold what the caller says, and a result that changes with that gives it away.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::sys::CUdeviceptr;

use crate::context::Context;
use crate::driver::call;
use crate::error::DriverError;

/// The bytes before and behind every buffer that are watched: a multiple of every alignment that a buffer can have.
pub const BAND: usize = 64 * 1024;

/// A buffer with its bands.
#[derive(Debug)]
pub struct Guarded<'c> {
    context: &'c Context,
    base: CUdeviceptr,
    /// Of the whole allocation, bytes.
    whole: usize,
    /// From the start of the allocation to that of the buffer, bytes.
    offset: usize,
    bytes: usize,
    pattern: u8,
}

/// Before or behind the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// At lower addresses.
    Before,
    /// At higher addresses.
    Behind,
}

/// What was written outside of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// On which side.
    pub side: Side,
    /// How many bytes are not what they were.
    pub bytes: usize,
    /// How many bytes lie between the buffer and the nearest of them: 0 for its neighbour.
    pub distance: usize,
}

impl<'c> Guarded<'c> {
    /// A buffer of so many bytes. Its address is a multiple of `alignment`, a power of two up to [`BAND`], and of no larger one where
    /// `is_exact` says so. It and its bands hold `pattern` in every byte.
    ///
    /// # Errors
    /// The driver's: for want of memory, say.
    pub fn new(
        context: &'c Context,
        bytes: usize,
        alignment: usize,
        is_exact: bool,
        pattern: u8,
    ) -> Result<Guarded<'c>, DriverError> {
        // `cuMemAlloc` aligns to at least 256 bytes (CUDA C++ programming guide 13.0, "device memory accesses"); what lies beyond that is
        // made from what it gives.
        let alignment = alignment.clamp(1, BAND);
        let whole = bytes.saturating_add(4 * BAND);
        let mut base = 0;
        // SAFETY: `base` is a place for one address.
        unsafe { call!(cuMemAlloc_v2(&raw mut base, whole)) }?;
        let offset = offset(base, alignment, is_exact);
        let mut this = Guarded { context, base, whole, offset, bytes, pattern };
        this.fill(pattern)?;
        Ok(this)
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.base.saturating_add(self.offset as u64)
    }

    /// Its size, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Makes every byte of it and of its bands `pattern`.
    ///
    /// # Errors
    /// The driver's.
    pub fn fill(&mut self, pattern: u8) -> Result<(), DriverError> {
        self.pattern = pattern;
        // SAFETY: the allocation has so many bytes; null is the default stream.
        unsafe { call!(cuMemsetD8Async(self.base, pattern, self.whole, null_mut())) }
    }

    /// Writes `data` to its start; what is too much is left out.
    ///
    /// # Errors
    /// The driver's.
    pub fn write(&mut self, data: &[u8]) -> Result<(), DriverError> {
        let data = data.get(..self.bytes).unwrap_or(data);
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: `data` has so many bytes, and the buffer no fewer.
        unsafe { call!(cuMemcpyHtoD_v2(self.address(), data.as_ptr().cast::<c_void>(), data.len())) }
    }

    /// Fills it with `data`, again and again; nothing where that is empty. On the device, so that large buffers take no longer to fill than
    /// to write.
    ///
    /// # Errors
    /// The driver's.
    pub fn repeat(&mut self, data: &[u8]) -> Result<(), DriverError> {
        self.write(data)?;
        let mut there = data.len().min(self.bytes);
        while there > 0 && there < self.bytes {
            let more = there.min(self.bytes - there);
            let to = self.address().saturating_add(there as u64);
            // SAFETY: both ranges are within the allocation and do not overlap; null is the default stream.
            unsafe { call!(cuMemcpyDtoDAsync_v2(to, self.address(), more, null_mut())) }?;
            there += more;
        }
        Ok(())
    }

    /// What it holds, once all that was queued is done.
    ///
    /// # Errors
    /// The driver's, among them what went wrong on the device before.
    pub fn read(&self) -> Result<Vec<u8>, DriverError> {
        self.part(self.offset, self.bytes)
    }

    /// What was written outside of it since it was last filled.
    ///
    /// # Errors
    /// As [`Guarded::read`].
    pub fn strays(&self) -> Result<Vec<Stray>, DriverError> {
        let before = self.part(0, self.offset)?;
        let end = self.offset.saturating_add(self.bytes);
        let behind = self.part(end, self.whole.saturating_sub(end))?;
        let mut found = Vec::new();
        if !is_clean(&before, self.pattern) {
            found.extend(stray(Side::Before, before.iter().rev(), self.pattern));
        }
        if !is_clean(&behind, self.pattern) {
            found.extend(stray(Side::Behind, behind.iter(), self.pattern));
        }
        Ok(found)
    }

    fn part(&self, start: usize, bytes: usize) -> Result<Vec<u8>, DriverError> {
        let mut data = vec![0; bytes];
        if bytes != 0 {
            let from = self.base.saturating_add(start as u64);
            // SAFETY: `data` has so many bytes, and the callers stay within the allocation.
            unsafe { call!(cuMemcpyDtoH_v2(data.as_mut_ptr().cast::<c_void>(), from, bytes)) }?;
        }
        Ok(data)
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        // Whoever gave its address to a kernel may have given up before that was done. Where waiting fails, nothing runs any more.
        let _ = self.context.synchronize();
        // SAFETY: it was allocated in `new`, nobody else frees it, and what was queued with its address has been waited for above.
        // Destructors report nothing.
        let _ = unsafe { call!(cuMemFree_v2(self.base)) };
    }
}

/// From the start of an allocation to a buffer with at least [`BAND`] bytes before it, and behind it where the allocation has four
/// bands more than the buffer's bytes.
fn offset(base: u64, alignment: usize, is_exact: bool) -> usize {
    let step = if is_exact { alignment.saturating_mul(2) } else { alignment } as u64;
    let remainder = if is_exact { alignment as u64 } else { 0 };
    let least = base.saturating_add(BAND as u64);
    let up = (remainder.wrapping_sub(least)) & (step - 1);
    BAND.saturating_add(usize::try_from(up).unwrap_or(0))
}

/// Whether a band holds `pattern` alone, as nearly all do: without an end in the middle, so that many bytes are looked at at once.
fn is_clean(band: &[u8], pattern: u8) -> bool {
    band.iter().fold(0, |found, byte| found | (byte ^ pattern)) == 0
}

/// What is not `pattern` among the bytes of a band, of which the first is the buffer's neighbour.
fn stray<'b>(side: Side, band: impl Iterator<Item = &'b u8>, pattern: u8) -> Option<Stray> {
    let changed = band.enumerate().filter(|(_, byte)| **byte != pattern);
    let mut distances = changed.map(|(distance, _)| distance);
    let distance = distances.next()?;
    Some(Stray { side, bytes: 1 + distances.count(), distance })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_aligned_as_asked() {
        for base in [0_u64, 256, 512, 0x7a00_0000_0100, 12_345 * 256] {
            for alignment in [1_usize, 2, 4, 16, 128, 256, 512, 4096, BAND] {
                for is_exact in [false, true] {
                    let offset = offset(base, alignment, is_exact);
                    let address = base + offset as u64;
                    assert!(address.is_multiple_of(alignment as u64), "{base} {alignment}");
                    assert!(!is_exact || !address.is_multiple_of(2 * alignment as u64), "{base} {alignment}");
                    assert!((BAND..=3 * BAND).contains(&offset), "{base} {alignment}: {offset}");
                }
            }
        }
    }

    #[test]
    fn strays_are_counted_from_the_buffer_on() {
        let mut band = [9_u8; 32];
        assert_eq!((stray(Side::Behind, band.iter(), 9), is_clean(&band, 9)), (None, true));
        band[3] = 0;
        assert!(!is_clean(&band, 9));
        band[7] = 1;
        let expected = Stray { side: Side::Behind, bytes: 2, distance: 3 };
        assert_eq!(stray(Side::Behind, band.iter(), 9), Some(expected));
        let expected = Stray { side: Side::Before, bytes: 2, distance: 24 };
        assert_eq!(stray(Side::Before, band.iter().rev(), 9), Some(expected));
    }
}
