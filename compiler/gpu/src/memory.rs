//! Device memory between guard bands. Stray writes up to [`BAND`] bytes away change the bands; reads there see the
//! pattern.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::driver::sys::CUdeviceptr;

use crate::context::Context;
use crate::driver::call;
use crate::error::DriverError;

/// Bytes of a band, a multiple of all alignments.
pub const BAND: usize = 64 * 1024;

/// Buffer with its bands.
#[derive(Debug)]
pub struct Guarded<'c> {
    context: &'c Context,
    base: CUdeviceptr,
    whole: usize,
    offset: usize,
    bytes: usize,
    pattern: u8,
}

/// Side of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Below the buffer.
    Before,
    /// Above the buffer.
    Behind,
}

/// Writes outside of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stray {
    /// Side of the buffer.
    pub side: Side,
    /// Changed bytes.
    pub bytes: usize,
    /// Bytes between buffer and nearest change.
    pub distance: usize,
}

impl<'c> Guarded<'c> {
    /// Allocates a buffer, filled with `pattern` like its bands, at a multiple of `alignment`: a power of two up to
    /// [`BAND`]. With `is_exact`, no larger power divides its address.
    pub fn new(
        context: &'c Context,
        bytes: usize,
        alignment: usize,
        is_exact: bool,
        pattern: u8,
    ) -> Result<Guarded<'c>, DriverError> {
        // `cuMemAlloc` aligns to at least 256 bytes (CUDA C++ programming guide 13.0, "device memory accesses").
        let alignment = alignment.clamp(1, BAND);
        let whole = bytes.saturating_add(4 * BAND);
        let mut base = 0;
        // SAFETY: `base` has room for an address.
        unsafe { call!(cuMemAlloc_v2(&raw mut base, whole)) }?;
        let offset = offset(base, alignment, is_exact);
        let mut this = Guarded { context, base, whole, offset, bytes, pattern };
        this.fill(pattern)?;
        Ok(this)
    }

    /// Returns the address.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.base.saturating_add(self.offset as u64)
    }

    /// Returns the size, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Fills buffer and bands with `pattern`.
    pub fn fill(&mut self, pattern: u8) -> Result<(), DriverError> {
        self.pattern = pattern;
        // SAFETY: the allocation has `whole` bytes; null is the default stream.
        unsafe { call!(cuMemsetD8Async(self.base, pattern, self.whole, null_mut())) }
    }

    /// Writes `data`, truncated to the buffer's size.
    pub fn write(&mut self, data: &[u8]) -> Result<(), DriverError> {
        let data = data.get(..self.bytes).unwrap_or(data);
        if data.is_empty() {
            return Ok(());
        }
        // SAFETY: both the buffer and `data` have at least `data.len()` bytes.
        unsafe { call!(cuMemcpyHtoD_v2(self.address(), data.as_ptr().cast::<c_void>(), data.len())) }
    }

    /// Fills the buffer with repeated `data`.
    pub fn repeat(&mut self, data: &[u8]) -> Result<(), DriverError> {
        self.write(data)?;
        let mut there = data.len().min(self.bytes);
        while there > 0 && there < self.bytes {
            let more = there.min(self.bytes - there);
            let to = self.address().saturating_add(there as u64);
            // SAFETY: both ranges are in the allocation and disjoint; null is the default stream.
            unsafe { call!(cuMemcpyDtoDAsync_v2(to, self.address(), more, null_mut())) }?;
            there += more;
        }
        Ok(())
    }

    /// Returns the contents after all queued work, whose error it may return.
    pub fn read(&self) -> Result<Vec<u8>, DriverError> {
        self.part(self.offset, self.bytes)
    }

    /// Returns stray writes since the fill; fails as [`Guarded::read`].
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
            // SAFETY: `data` has `bytes` bytes; callers stay within the allocation.
            unsafe { call!(cuMemcpyDtoH_v2(data.as_mut_ptr().cast::<c_void>(), from, bytes)) }?;
        }
        Ok(data)
    }
}

impl Drop for Guarded<'_> {
    fn drop(&mut self) {
        // Waits for kernels after an early return.
        let _ = self.context.synchronize();
        // SAFETY: allocated in `new` and freed only here, after all work that uses it has ended.
        let _ = unsafe { call!(cuMemFree_v2(self.base)) };
    }
}

/// Keeps [`BAND`] bytes on both sides if the allocation is four bands larger than the buffer.
fn offset(base: u64, alignment: usize, is_exact: bool) -> usize {
    let step = if is_exact { alignment.saturating_mul(2) } else { alignment } as u64;
    let remainder = if is_exact { alignment as u64 } else { 0 };
    let least = base.saturating_add(BAND as u64);
    let up = (remainder.wrapping_sub(least)) & (step - 1);
    BAND.saturating_add(usize::try_from(up).unwrap_or(0))
}

/// Vectorizes, because it has no early return.
fn is_clean(band: &[u8], pattern: u8) -> bool {
    band.iter().fold(0, |found, byte| found | (byte ^ pattern)) == 0
}

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
