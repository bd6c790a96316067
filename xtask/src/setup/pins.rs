use std::collections::BTreeMap;

use anyhow::{Context, Result};
use fs_err as fs;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pins {
    pub(crate) python: Vec<String>,
    pub(crate) environment_python: Vec<String>,
    #[serde(rename = "package")]
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) purpose: String,
    #[serde(default)]
    pub(crate) sha256: Vec<String>,
    pub(crate) bytes: u64,
    #[serde(default)]
    pub(crate) skip: Vec<String>,
    #[serde(default)]
    pub(crate) links: BTreeMap<String, String>,
}

impl Pins {
    pub(crate) fn load() -> Result<Self> {
        toml::from_str(include_str!("../../pins.toml")).context("in `xtask/pins.toml`")
    }

    pub(crate) fn package(&self, name: &str) -> Result<&Package> {
        let found = self.packages.iter().find(|package| package.name == name);
        found.with_context(|| format!("`xtask/pins.toml` has no package `{name}`"))
    }
}

impl Package {
    /// Hashes restrict pip to the pinned wheels.
    pub(crate) fn requirements(&self) -> Result<String> {
        let Some(version) = &self.version else {
            let file = crate::workspace::root().join("xtask/frameworks").join(format!("{}.txt", self.name));
            return Ok(fs::read_to_string(&file)?);
        };
        let hashes = self.sha256.iter().map(|hash| format!(" --hash=sha256:{hash}"));
        Ok(format!("{}=={version}{}\n", self.name, hashes.collect::<String>()))
    }

    pub(crate) fn folder(&self, python: &str) -> String {
        match &self.version {
            Some(version) if self.sha256.len() == 1 => format!("{}-{version}", self.name),
            Some(version) => format!("{}-{version}-{python}", self.name),
            None => format!("{}-{python}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pins_of_this_checkout_are_complete() {
        let pins = Pins::load().unwrap();
        assert_eq!(pins.python, ["3.10", "3.11", "3.12", "3.13"]);
        for package in &pins.packages {
            // One hash makes pip demand all.
            let text = package.requirements().unwrap();
            let entries = text.lines().filter(|line| line.contains("=="));
            assert!(entries.clone().count() > 0, "{}", package.name);
            for entry in entries {
                assert!(entry.contains(" --hash=sha256:") || entry.ends_with(" \\"), "{entry} has no hash");
            }
        }
    }

    #[test]
    fn wheels_for_single_python_versions_have_their_own_folders() {
        let pins = Pins::load().unwrap();
        let folder = |name: &str| pins.package(name).unwrap().folder("cp312");
        assert_eq!(folder("nvidia-cuda-nvrtc"), "nvidia-cuda-nvrtc-13.0.88");
        assert_eq!(folder("onnx"), "onnx-1.23.2-cp312");
        assert_eq!(folder("pytorch"), "pytorch-cp312");
    }

    #[test]
    fn the_compiler_finds_the_fetched_packages() {
        #[derive(Deserialize)]
        struct Table {
            package: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            name: String,
            version: String,
        }
        let table = std::fs::read_to_string(crate::workspace::root().join("compiler/toolkit.toml")).unwrap();
        let table: Table = toml::from_str(&table).unwrap();
        let pins = Pins::load().unwrap();
        assert_eq!(table.package.len(), 4);
        for Entry { name, version } in table.package {
            assert_eq!(pins.package(&name).unwrap().version, Some(version), "{name}");
        }
    }
}
