//! Code objects: their targets, bytes and kernels.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::packed::{BadCode, CodeBytes};

/// The suffix of an architecture's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ArchSuffix {
    /// `sm_90`: also runs on higher minors of its major.
    None,
    /// `sm_90a`: runs on that chip only.
    Specific,
    /// `sm_100f`: runs in its family, which cubins do not record.
    Family,
}

/// A GPU architecture, such as 8.9 or 9.0a.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Arch {
    /// Major compute capability.
    pub major: u8,
    /// Minor compute capability.
    pub minor: u8,
    /// Whether it is specific to a chip or a family.
    pub suffix: ArchSuffix,
}

/// The kind of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TargetKind {
    /// Machine code: `sm_89`.
    Cubin,
    /// PTX that the driver compiles: `compute_80`.
    Ptx,
    /// PTX that only TensorRT launches: `native_80`, not in manifests.
    Native,
}

impl TargetKind {
    /// Returns whether the code is PTX.
    #[must_use]
    pub const fn is_ptx(self) -> bool {
        matches!(self, TargetKind::Ptx | TargetKind::Native)
    }
}

/// A compile target, with NVIDIA's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// Machine code or PTX.
    pub kind: TargetKind,
    /// Architecture.
    pub arch: Arch,
}

/// Why a string is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct BadTarget(pub String);

impl std::fmt::Display for BadTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "invalid target `{}`; ", self.0)?;
        match self.similar() {
            Some(target) => write!(f, "did you mean `{target}`?"),
            None => f.write_str("expected `sm_89` for machine code or `compute_89` for PTX, for example"),
        }
    }
}

impl BadTarget {
    /// Corrects `sm89`, `compute-80` and `8.6`.
    fn similar(&self) -> Option<Target> {
        let (digits, rest): (String, String) = self.0.chars().partition(char::is_ascii_digit);
        let prefix = match rest.trim_matches(['.', '-', '_', ' ']) {
            "" | "sm" => "sm",
            "compute" => "compute",
            _ => return None,
        };
        format!("{prefix}_{digits}").parse().ok()
    }
}

impl std::str::FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Target, BadTarget> {
        let bad = || BadTarget(text.to_owned());
        let (kind, rest) = if let Some(rest) = text.strip_prefix("sm_") {
            (TargetKind::Cubin, rest)
        } else if let Some(rest) = text.strip_prefix("compute_") {
            (TargetKind::Ptx, rest)
        } else {
            return Err(bad());
        };
        let (digits, suffix) = match rest.strip_suffix('a') {
            Some(digits) => (digits, ArchSuffix::Specific),
            None => match rest.strip_suffix('f') {
                Some(digits) => (digits, ArchSuffix::Family),
                None => (rest, ArchSuffix::None),
            },
        };
        let well_formed = (2..=3).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        let number: u16 = if well_formed { digits.parse().map_err(|_| bad())? } else { return Err(bad()) };
        let major = u8::try_from(number / 10).map_err(|_| bad())?;
        let minor = u8::try_from(number % 10).map_err(|_| bad())?;
        Ok(Target { kind, arch: Arch { major, minor, suffix } })
    }
}

impl std::fmt::Display for Arch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.suffix {
            ArchSuffix::None => "",
            ArchSuffix::Specific => "a",
            ArchSuffix::Family => "f",
        };
        write!(f, "{}{}{suffix}", self.major, self.minor)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let prefix = match self.kind {
            TargetKind::Cubin => "sm_",
            TargetKind::Ptx => "compute_",
            TargetKind::Native => "native_",
        };
        write!(f, "{prefix}{}", self.arch)
    }
}

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelParam {
    /// Offset in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// A code object's facts about a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// Symbol for the driver.
    pub symbol: String,
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Static shared memory per block in bytes.
    pub shared_bytes: Option<u32>,
    /// Stack per thread in bytes.
    pub local_bytes: Option<u32>,
    /// Maximum threads per block (`__launch_bounds__`), if declared.
    pub max_threads: Option<u32>,
    /// Parameters in order.
    pub params: Vec<KernelParam>,
}

/// A cubin or a PTX text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeObject {
    /// Requested target.
    pub target: Target,
    /// Digest of the unpacked code.
    pub digest: Digest,
    /// Kernels.
    pub kernels: Vec<KernelFacts>,
    /// Cubin (ELF), or PTX text without a trailing NUL.
    pub bytes: CodeBytes,
}

impl CodeObject {
    /// Returns the unpacked cubin or PTX text.
    pub fn raw(&self) -> Result<Cow<'_, [u8]>, BadCode> {
        self.bytes.unpack(self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_print_as_they_parse() {
        for text in ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_120", "sm_121f", "compute_80", "compute_100f"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in
            ["", "sm_", "sm_8", "sm_08", "sm_8x", "80", "sm80", "sm_90aa", "ptx", "sm_99999", "sm_+89"]
        {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
