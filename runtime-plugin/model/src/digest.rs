//! BLAKE3 digests: the identity of code objects, bundles and cache entries.

use serde::{Deserialize, Serialize};

/// A BLAKE3 digest of 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn compute(bytes: &[u8]) -> Digest {
        Digest(*blake3::hash(bytes).as_bytes())
    }

    pub(crate) fn without(bytes: &[u8], range: std::ops::Range<usize>) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(bytes.get(..range.start).unwrap_or_default());
        hasher.update(bytes.get(range.end..).unwrap_or_default());
        Digest(*hasher.finalize().as_bytes())
    }

    /// Returns the first 16 hexadecimal digits, for display.
    #[must_use]
    pub fn short(&self) -> String {
        self.shortened().to_string()
    }

    /// Returns the first 8 bytes.
    #[must_use]
    pub fn shortened(&self) -> ShortDigest {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(self.0).for_each(|(to, from)| *to = from);
        ShortDigest(bytes)
    }
}

/// The first 8 bytes of a digest: a reference to a bundle. Bundles are checked before use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ShortDigest(pub [u8; 8]);

impl std::fmt::Display for ShortDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for ShortDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShortDigest({self})")
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}
