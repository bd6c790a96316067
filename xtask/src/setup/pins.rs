//! What is fetched: the packages of `pins.toml`.
//!
//! Owns the reading and checking of that file. Never touches the network or the cache.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::python::Version;

/// Everything that may be fetched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pins {
    /// Python versions for which every package has a wheel, `3.10` and so on.
    pub(crate) python: Vec<Version>,
    #[serde(rename = "package")]
    pub(crate) packages: Vec<Package>,
}

/// One package of the index.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Why it is needed.
    pub(crate) purpose: String,
    sha256: Option<String>,
    bytes: Option<u64>,
    /// Where each Python version has a wheel of its own.
    #[serde(default)]
    wheels: BTreeMap<Version, Wheel>,
    /// Shell patterns of what is not unpacked.
    #[serde(default)]
    pub(crate) skip: Vec<String>,
    #[serde(default)]
    pub(crate) links: Vec<Link>,
    /// Files that an unpacked wheel must hold.
    pub(crate) requires: Vec<String>,
}

/// One file of the index.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wheel {
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

/// A symbolic link beside the unpacked files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Link {
    pub(crate) path: String,
    pub(crate) target: String,
}

/// One package as it is fetched for one Python version.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) package: &'a Package,
    pub(crate) wheel: Wheel,
    /// The folder in the cache.
    pub(crate) folder: String,
}

impl Pins {
    /// The pins of this checkout.
    ///
    /// # Errors
    /// When `pins.toml` is not as this module wants it.
    pub(crate) fn load() -> Result<Self> {
        Self::parse(include_str!("../../pins.toml")).context("in `xtask/pins.toml`")
    }

    fn parse(text: &str) -> Result<Self> {
        let pins: Self = toml::from_str(text)?;
        for package in &pins.packages {
            package.check(&pins.python).with_context(|| format!("package `{}`", package.name))?;
        }
        Ok(pins)
    }

    /// The package called `name`.
    ///
    /// # Errors
    /// When the pins do not hold it.
    pub(crate) fn package(&self, name: &str) -> Result<&Package> {
        let found = self.packages.iter().find(|package| package.name == name);
        found.with_context(|| format!("`xtask/pins.toml` has no package `{name}`"))
    }
}

impl Package {
    /// Name and version, for people.
    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// What is fetched for `python`.
    ///
    /// # Errors
    /// When there is no wheel for it.
    pub(crate) fn choose(&self, python: Version) -> Result<Choice<'_>> {
        let common = format!("{}-{}", self.name, self.version);
        if let (Some(sha256), Some(bytes)) = (&self.sha256, self.bytes) {
            return Ok(Choice {
                package: self,
                wheel: Wheel { sha256: sha256.clone(), bytes },
                folder: common,
            });
        }
        let wheel = self.wheels.get(&python);
        let wheel =
            wheel.with_context(|| format!("`{}` has no pinned wheel for Python {python}", self.name))?;
        let folder = format!("{common}-cp{}{}", python.major, python.minor);
        Ok(Choice { package: self, wheel: wheel.clone(), folder })
    }

    fn check(&self, pythons: &[Version]) -> Result<()> {
        let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        ensure!(plain(&self.name) && plain(&self.version), "name and version become a file name");
        match (&self.sha256, self.bytes, self.wheels.is_empty()) {
            (Some(_), Some(_), true) | (None, None, false) => {}
            _ => bail!("expected `sha256` and `bytes`, or `wheels`"),
        }
        for python in pythons {
            let wheel = self.choose(*python)?.wheel;
            let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
            ensure!(
                wheel.sha256.len() == 64 && wheel.sha256.chars().all(hex),
                "expected 64 lower-case hexadecimal digits, found `{}`",
                wheel.sha256
            );
        }
        Ok(())
    }
}

impl Choice<'_> {
    /// Everything that decides what the unpacked folder holds: another recipe means another content.
    pub(crate) fn recipe(&self) -> String {
        let mut text = format!("sha256 {}\n", self.wheel.sha256);
        for pattern in &self.package.skip {
            text.push_str(&format!("skip {pattern}\n"));
        }
        for link in &self.package.links {
            text.push_str(&format!("link {} {}\n", link.path, link.target));
        }
        text
    }

    /// The line of a requirements file that admits this wheel only.
    pub(crate) fn requirement(&self) -> String {
        format!("{}=={} --hash=sha256:{}\n", self.package.name, self.package.version, self.wheel.sha256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V312: Version = Version { major: 3, minor: 12 };

    const SMALL: &str = r#"
python = ["3.12"]
[[package]]
name = "alpha"
version = "1.2"
purpose = "tests"
sha256 = "0000000000000000000000000000000000000000000000000000000000000001"
bytes = 10
skip = ["*.a"]
links = [{ path = "lib/liba.so", target = "liba.so.1" }]
requires = []
[[package]]
name = "beta"
version = "3"
purpose = "tests"
requires = []
[package.wheels]
"3.12" = { sha256 = "0000000000000000000000000000000000000000000000000000000000000002", bytes = 20 }
"#;

    #[test]
    fn the_pins_of_this_checkout_are_complete() {
        let pins = Pins::load().unwrap();
        assert_eq!(pins.python.len(), 4);
        for name in super::super::toolchain::PACKAGES {
            pins.package(name).unwrap();
        }
    }

    #[test]
    fn a_wheel_of_its_own_gets_a_folder_of_its_own() {
        let pins = Pins::parse(SMALL).unwrap();
        let alpha = pins.package("alpha").unwrap().choose(V312).unwrap();
        assert_eq!((alpha.folder.as_str(), alpha.wheel.bytes), ("alpha-1.2", 10));
        let beta = pins.package("beta").unwrap().choose(V312).unwrap();
        assert_eq!((beta.folder.as_str(), beta.wheel.bytes), ("beta-3-cp312", 20));
        let error = pins.package("beta").unwrap().choose(Version { major: 3, minor: 9 }).unwrap_err();
        assert_eq!(error.to_string(), "`beta` has no pinned wheel for Python 3.9");
    }

    #[test]
    fn the_recipe_holds_everything_that_decides_the_content() {
        let pins = Pins::parse(SMALL).unwrap();
        let alpha = pins.package("alpha").unwrap().choose(V312).unwrap();
        let digest = "0000000000000000000000000000000000000000000000000000000000000001";
        assert_eq!(alpha.recipe(), format!("sha256 {digest}\nskip *.a\nlink lib/liba.so liba.so.1\n"));
        assert_eq!(alpha.requirement(), format!("alpha==1.2 --hash=sha256:{digest}\n"));
    }

    #[test]
    fn wrong_pins_are_refused() {
        let refused = |text: &str| format!("{:#}", Pins::parse(text).unwrap_err());
        assert!(
            refused(&SMALL.replace("bytes = 10", "")).contains("expected `sha256` and `bytes`, or `wheels`")
        );
        assert!(
            refused(&SMALL.replace("0001\"", "001\"")).contains("expected 64 lower-case hexadecimal digits")
        );
        assert!(
            refused(&SMALL.replace("\"3.12\" =", "\"3.11\" =")).contains("no pinned wheel for Python 3.12")
        );
        assert!(refused(&SMALL.replace("\"alpha\"", "\"../alpha\"")).contains("become a file name"));
        assert!(refused(&SMALL.replace("purpose", "reason")).contains("unknown field `reason`"));
    }

    /// The compiler looks for the CUDA packages by the names and versions of its own table.
    #[test]
    fn the_compiler_looks_for_what_is_fetched() {
        let path = crate::workspace::root().join("compiler/toolkit.toml");
        let table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let mut found = Vec::new();
        collect(&toml::Value::Table(table), &mut found);
        found.sort();
        let pins = Pins::load().unwrap();
        let mut expected: Vec<_> = pins
            .packages
            .iter()
            .filter(|package| package.name.starts_with("nvidia-"))
            .map(|package| (package.name.clone(), package.version.clone()))
            .collect();
        expected.sort();
        assert_eq!(found, expected);
    }

    /// Every table that has both a `name` and a `version`.
    fn collect(value: &toml::Value, found: &mut Vec<(String, String)>) {
        match value {
            toml::Value::Table(table) => {
                let text = |key: &str| table.get(key).and_then(toml::Value::as_str).map(str::to_owned);
                if let (Some(name), Some(version)) = (text("name"), text("version")) {
                    found.push((name, version));
                }
                table.values().for_each(|value| collect(value, found));
            }
            toml::Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
}
