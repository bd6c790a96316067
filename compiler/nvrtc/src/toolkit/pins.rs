use std::path::PathBuf;

use serde::Deserialize;

use super::errors::BrokenPins;
use crate::diagnostic::Diagnostic;

/// Read by `xtask`, too.
const TOOLKIT_TOML: &str = include_str!("../../../toolkit.toml");

/// A package's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Contains the compiler.
    Nvrtc,
    /// Contains headers.
    Headers,
}

/// Pinned package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Role.
    pub role: Role,
    /// Name on PyPI.
    pub name: String,
    /// Pinned version.
    pub version: String,
    /// NVRTC's path in it (role `nvrtc`).
    pub library: Option<PathBuf>,
    /// Include folders.
    #[serde(default)]
    pub include: Vec<PathBuf>,
    /// Header unique to it (role `headers`).
    pub marker: Option<PathBuf>,
    /// Purpose, in messages.
    pub purpose: String,
}

impl Package {
    /// Returns its folder in `<cache>/toolkit/`.
    #[must_use]
    pub fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    package: Vec<Package>,
}

/// Returns the pinned packages; fails if `toolkit.toml` is invalid, a bug.
pub fn packages() -> Result<Vec<Package>, Diagnostic> {
    let file = toml::from_str::<File>(TOOLKIT_TOML);
    file.map(|file| file.package).map_err(|error| BrokenPins { reason: error.message() }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pins_can_be_read() {
        let packages = packages().unwrap();
        assert_eq!(packages.iter().filter(|package| package.role == Role::Nvrtc).count(), 1);
        for package in &packages {
            assert_eq!(package.library.is_some(), package.role == Role::Nvrtc, "{package:?}");
            assert_eq!(package.include.is_empty(), package.role == Role::Nvrtc, "{package:?}");
            assert_eq!(package.marker.is_none(), package.role == Role::Nvrtc, "{package:?}");
        }
        assert_eq!(packages[0].folder(), "nvidia-cuda-nvrtc-13.0.88");
    }
}
