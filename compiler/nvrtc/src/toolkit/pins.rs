//! The packages that the toolkit is made of, from `toolkit.toml`.

use std::path::PathBuf;

use serde::Deserialize;

use super::errors::BrokenPins;
use crate::diagnostic::Diagnostic;

/// The text of the data file. `xtask` reads the same one to know what to fetch.
const TOOLKIT_TOML: &str = include_str!("../../../toolkit.toml");

/// What a package is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It holds the compiler.
    Nvrtc,
    /// It holds headers.
    Headers,
}

/// One package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// What it is for.
    pub role: Role,
    /// Its name in the registry.
    pub name: String,
    /// The version that is used.
    pub version: String,
    /// Where NVRTC lies in it; packages with the role `nvrtc` have one.
    pub library: Option<PathBuf>,
    /// The include folders in it.
    #[serde(default)]
    pub include: Vec<PathBuf>,
    /// A header in it that none of the others has; packages with the role `headers` have one.
    pub marker: Option<PathBuf>,
    /// What it is for, in words.
    pub purpose: String,
}

impl Package {
    /// Its folder in `<cache>/toolkit/`.
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

/// The pinned packages.
///
/// # Errors
/// Where `toolkit.toml` cannot be read, which is a mistake in this build.
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
