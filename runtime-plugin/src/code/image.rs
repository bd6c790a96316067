//! Code for the driver, which gets no length.

use std::ffi::c_void;

use cubinder_model::TargetKind;
pub use cubinder_model::image::Malformed;
use cubinder_model::image::check;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
struct Chunk([u8; 16]);

/// A code object, aligned to 16, then at least one NUL.
#[derive(Debug)]
pub(super) struct Image(Vec<Chunk>);

impl Image {
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

    pub(super) fn as_ptr(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
