//! Parses `NAME.json`, Triton's metadata of a kernel (3.4 to 3.9).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// Null and absent keys have their default.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Metadata {
    pub name: String,
    /// Folder name in another encoding.
    #[serde(default, deserialize_with = "or_default")]
    pub hash: String,
    #[serde(default)]
    pub triton_version: Option<String>,
    pub target: Target,
    #[serde(flatten)]
    pub launch: Launch,
    pub shared: u64,
    #[serde(default, deserialize_with = "or_default")]
    pub tensordesc_meta: Vec<serde_json::Value>,
    /// All other keys.
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// Derived order: the order of variants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) struct Launch {
    pub num_warps: u32,
    #[serde(default, deserialize_with = "or_default")]
    pub num_stages: u32,
    #[serde(default)]
    pub maxnreg: Option<u32>,
    #[serde(default = "one_cta", deserialize_with = "or_one")]
    pub num_ctas: u32,
    #[serde(default, deserialize_with = "or_default")]
    pub launch_cooperative_grid: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub launch_pdl: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub global_scratch_size: u64,
    #[serde(default, deserialize_with = "or_default")]
    pub profile_scratch_size: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Target {
    /// Number, or a string if the user passed one to `GPUTarget`.
    arch: serde_json::Value,
    #[serde(default = "warp_size")]
    pub warp_size: u32,
}

impl Target {
    fn capability(&self) -> Option<u64> {
        let number = self.arch.as_u64().or_else(|| self.arch.as_str()?.parse().ok());
        number.filter(|number| (10..1000).contains(number))
    }
}

impl Metadata {
    /// Returns 90 for 9.0.
    pub(super) fn capability(&self) -> u64 {
        self.target.capability().unwrap_or_default()
    }

    pub(super) const fn threads(&self) -> u32 {
        self.launch.num_warps.saturating_mul(self.target.warp_size)
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn or_one<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(one_cta()))
}

const fn one_cta() -> u32 {
    1
}

const fn warp_size() -> u32 {
    32
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unusable {
    /// The code is for another backend.
    #[error("it is for `{0}`, not for NVIDIA GPUs")]
    Backend(String),
    /// Not in Triton's format.
    #[error("{0}")]
    Wrong(String),
}

/// Fails if invalid or not for NVIDIA GPUs.
pub(super) fn metadata(text: &str) -> Result<Metadata, Unusable> {
    let wrong = |error: serde_json::Error| Unusable::Wrong(error.to_string());
    let all: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
    // Other backends write other keys.
    let backend = all.pointer("/target/backend").and_then(serde_json::Value::as_str);
    if let Some(other) = backend.filter(|backend| *backend != "cuda") {
        return Err(Unusable::Backend(other.to_owned()));
    }
    let metadata: Metadata = serde_json::from_value(all).map_err(wrong)?;
    match metadata.target.capability() {
        Some(_) => Ok(metadata),
        None => Err(Unusable::Wrong(format!(
            "`arch` of its `target` is {}, expected a compute capability such as 90",
            metadata.target.arch
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"name": "k", "target": {"backend": "cuda", "arch": 90, "warp_size": 32}, "num_warps": 4, "shared": 512}"#;

    #[test]
    fn metadata_is_read() {
        let read = metadata(JSON).unwrap();
        let launch = &read.launch;
        assert_eq!((launch.num_ctas, launch.global_scratch_size, launch.launch_pdl), (1, 0, false));
        assert_eq!((read.capability(), read.threads()), (90, 128));
        assert_eq!(
            metadata(&JSON.replace("cuda", "hip")).unwrap_err().to_string(),
            "it is for `hip`, not for NVIDIA GPUs"
        );
        assert_eq!(metadata(&JSON.replace("90", "\"90\"")).unwrap().capability(), 90);
        for arch in ["\"sm_90\"", "null", "9.0", "-90", "5", "4294967297"] {
            let why = metadata(&JSON.replace("90", arch)).unwrap_err().to_string();
            assert!(why.contains("expected a compute capability such as 90"), "{arch}: {why}");
        }
        for text in ["", "{}", "[]", "{\"child_paths\": {}}"] {
            assert!(metadata(text).is_err(), "{text}");
        }
    }
}
