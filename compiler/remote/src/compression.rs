//! Zstandard for transfers. Lengths are bounded by the caller.

use std::io::Read as _;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Shorter blobs are transferred uncompressed.
pub(crate) const SHORTEST: u64 = 1 << 10;

/// Encodes one frame.
#[must_use]
pub fn compress(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

/// Decodes frames up to `limit` bytes or the first error: what was decoded before a cut is valid.
#[must_use]
pub fn decompress(mut compressed: &[u8], limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !compressed.is_empty() && bytes.len() < limit {
        if let Some(rest) = skip_frame(compressed) {
            compressed = rest;
            continue;
        }
        let Ok(decoder) = StreamingDecoder::new(&mut compressed) else { return bytes };
        let rest = (limit - bytes.len()) as u64;
        if decoder.take(rest).read_to_end(&mut bytes).is_err() {
            return bytes;
        }
    }
    bytes
}

/// Returns the bytes after a skippable frame (RFC 8878, section 3.1.2); `None` if the next frame has data.
fn skip_frame(bytes: &[u8]) -> Option<&[u8]> {
    let (magic, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let is_skippable = u32::from_le_bytes(*magic) & !0xf == 0x184d_2a50;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    is_skippable.then(|| rest.get(length..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn frames_without_data_are_skipped() {
        let skippable = [0x5f, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
        let (empty, text, end) = (compress(b""), compress(b"text"), compress(b"end"));
        let parts = [skippable.as_slice(), &empty, &text, &skippable, &end];
        assert_eq!(decompress(&parts.concat(), 100), b"textend");
        assert_eq!(decompress(&skippable[..9], 100), b"");
    }

    proptest! {
        #[test]
        fn bytes_are_restored(bytes in proptest::collection::vec(0_u8..4, 0..5000), cut: prop::sample::Index) {
            let mut compressed = compress(&bytes);
            prop_assert_eq!(&decompress(&compressed, bytes.len() + 1), &bytes);
            prop_assert_eq!(&decompress(&compressed, bytes.len() / 2), &bytes[..bytes.len() / 2]);
            let half = &compressed[..cut.index(compressed.len() + 1)];
            prop_assert!(bytes.starts_with(&decompress(half, usize::MAX)));
            compressed.extend(compress(b"second frame"));
            prop_assert!(decompress(&compressed, usize::MAX).ends_with(b"second frame"));
        }

        #[test]
        fn any_bytes_are_decoded_within_the_limit(bytes: Vec<u8>, limit in 0_usize..100) {
            prop_assert!(decompress(&bytes, limit).len() <= limit);
            let magic = [&[0x28, 0xb5, 0x2f, 0xfd], bytes.as_slice()].concat();
            prop_assert!(decompress(&magic, limit).len() <= limit);
        }
    }
}
