//! The content-addressed cache of compiled code.
//!
//! Owns: the store on disk ([`Cache`]), and what a compile reads besides its own text (`Dependencies`).
//! Never: no decision about what is compiled, no failure of a build because a folder is full or read-only.
//!
//! A key covers everything that decides the bytes. NVRTC cannot list the files that it read (13.0 has no such option), so
//! they are found by a scan that errs on the side of too many, words that macros paste together aside: see `crate::directives`.

mod dependencies;
mod store;

pub(crate) use dependencies::{Dependencies, Files, is_absent, stamp_of_folder};
pub use store::Cache;

use cubinder_model::Digest;

/// Hashes fields so that no two lists of fields give the same bytes.
#[derive(Debug, Clone)]
pub(crate) struct KeyHasher(blake3::Hasher);

impl KeyHasher {
    /// A key for one purpose.
    pub(crate) fn new(purpose: &str) -> KeyHasher {
        KeyHasher(blake3::Hasher::new()).field(purpose.as_bytes())
    }

    /// Adds one field.
    pub(crate) fn field(mut self, bytes: &[u8]) -> KeyHasher {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// The key.
    pub(crate) fn finish(self) -> Digest {
        Digest(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_together() {
        let key = |fields: &[&str]| {
            fields.iter().fold(KeyHasher::new("test"), |key, field| key.field(field.as_bytes())).finish()
        };
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_ne!(key(&["ab"]), key(&["ab", ""]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }
}
