//! The content-addressed cache of compiled code: the store ([`Cache`]) and the search for input files. Must not fail
//! a build for a full or read-only folder. Keys cover everything that determines the bytes: NVRTC 13.0 cannot list
//! its files, so a scan overestimates them, except for pasted tokens (`crate::directives`).

mod dependencies;
mod store;
mod usage;

pub(crate) use dependencies::{Dependencies, Files, is_absent, stamp_of_folder};
pub use store::Cache;
pub use usage::{Limits, Usage};

use cubinder_model::Digest;

/// Hashes lengths, so that different lists never collide.
#[derive(Debug, Clone)]
pub(crate) struct KeyHasher(blake3::Hasher);

impl KeyHasher {
    pub(crate) fn new(purpose: &str) -> KeyHasher {
        KeyHasher(blake3::Hasher::new()).field(purpose.as_bytes())
    }

    pub(crate) fn field(mut self, bytes: &[u8]) -> KeyHasher {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

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
