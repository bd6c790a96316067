use std::fmt;
use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use crate::proto::reapi;

/// A blob's SHA-256 and length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    /// SHA-256.
    pub sha256: [u8; 32],
    /// Length in bytes.
    pub length: u64,
}

impl Digest {
    /// Digests bytes.
    #[must_use]
    pub fn compute(bytes: &[u8]) -> Digest {
        Digest { sha256: Sha256::digest(bytes).into(), length: bytes.len() as u64 }
    }

    /// Digests a stream without keeping it.
    pub fn read(mut from: impl Read) -> io::Result<Digest> {
        let mut hasher = Sha256::new();
        let mut length = 0;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => return Ok(Digest { sha256: hasher.finalize().into(), length }),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.update(buffer.get(..count).unwrap_or_default());
            length += count as u64;
        }
    }

    pub(crate) fn hash(&self) -> String {
        self.sha256.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses the form of [`fmt::Display`].
    pub(crate) fn parse(text: &str) -> Option<Digest> {
        let (hash, length) = text.split_once('/')?;
        let (hash, size_bytes) = (hash.to_owned(), length.parse().ok()?);
        Digest::from_message(&reapi::Digest { hash, size_bytes })
    }

    pub(crate) fn to_message(self) -> reapi::Digest {
        reapi::Digest { hash: self.hash(), size_bytes: i64::try_from(self.length).unwrap_or(i64::MAX) }
    }

    /// `None` if the message is not a SHA-256 in lower case with a valid length.
    pub(crate) fn from_message(message: &reapi::Digest) -> Option<Digest> {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if message.hash.len() != 64 || !message.hash.bytes().all(is_hex) {
            return None;
        }
        let mut sha256 = [0; 32];
        for (at, byte) in sha256.iter_mut().enumerate() {
            *byte = u8::from_str_radix(message.hash.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Digest { sha256, length: u64::try_from(message.size_bytes).ok()? })
    }
}

/// The form of resource names: hash and length.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.hash(), self.length)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_sha_256_in_lower_case() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855/0";
        assert_eq!(Digest::compute(b"").to_string(), empty);
        let bytes = vec![7; 200_000];
        assert_eq!(Digest::read(bytes.as_slice()).unwrap(), Digest::compute(&bytes));
        let digest = Digest::compute(b"abc");
        assert_eq!(Digest::from_message(&digest.to_message()), Some(digest));
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        assert_eq!(Digest::parse(&digest.hash()), None);
        let hash = digest.hash();
        for (hash, size_bytes) in [
            (hash.to_uppercase(), 3),
            (hash[1..].to_owned(), 3),
            (hash.clone(), -1),
            (hash.replace('a', "é"), 3),
        ] {
            assert_eq!(Digest::from_message(&reapi::Digest { hash, size_bytes }), None);
        }
    }
}
