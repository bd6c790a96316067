//! The Python interpreter that fetches packages and runs TensorRT-RTX's bindings.
//!
//! Owns finding one that has pinned wheels. Never installs anything into it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::str::FromStr;

use anyhow::{Result, bail};
use serde::{Deserialize, Deserializer};

/// Names the interpreter to use.
pub(crate) const VARIABLE: &str = "CUBINDER_PYTHON";

/// How to get a Python with pip.
const HELP: &str = "install Python 3 with pip: `apt install python3 python3-pip`, `dnf install python3 python3-pip` or \
                    `brew install python`";

/// Major and minor version of Python: what a wheel is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |(major, minor): (&str, &str)| {
            Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
        };
        text.split_once('.')
            .and_then(parse)
            .ok_or_else(|| format!("expected a version like `3.12`, found `{text}`"))
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An interpreter that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Python {
    /// Absolute path, behind the launchers of version managers.
    pub(crate) path: PathBuf,
    pub(crate) version: Version,
}

/// The interpreter to use: the one that `CUBINDER_PYTHON` names, or the first on the search path that is supported.
///
/// # Errors
/// When there is none; the message says what was found and what helps.
pub(crate) fn find(named: Option<OsString>, supported: &[Version]) -> Result<Python> {
    choose(named, supported, &probe)
}

fn choose(
    named: Option<OsString>,
    supported: &[Version],
    probe: &dyn Fn(&OsString) -> Option<Python>,
) -> Result<Python> {
    let versions = supported.iter().map(Version::to_string).collect::<Vec<_>>().join(", ");
    if let Some(program) = named {
        let shown = program.to_string_lossy();
        return match probe(&program) {
            Some(python) if supported.contains(&python.version) => Ok(python),
            Some(python) => bail!(
                "`{VARIABLE}` names `{shown}`, which is Python {}; the pinned packages are for Python {versions}",
                python.version
            ),
            None => bail!("`{VARIABLE}` names `{shown}`, which does not run as a Python 3 interpreter"),
        };
    }
    // The unversioned name first: it is what people mean by "my Python", and the one that has pip most often.
    let mut candidates = vec![OsString::from("python3")];
    candidates.extend(supported.iter().rev().map(|version| OsString::from(format!("python{version}"))));
    let mut unsupported = Vec::new();
    for candidate in candidates {
        match probe(&candidate) {
            Some(python) if supported.contains(&python.version) => return Ok(python),
            Some(python) => {
                unsupported.push(format!("`{}` is Python {}", python.path.display(), python.version));
            }
            None => {}
        }
    }
    if unsupported.is_empty() {
        bail!(
            "no Python was found; it fetches the pinned packages with pip and drives TensorRT-RTX's builder\n  \
             help: {HELP}"
        );
    }
    bail!(
        "no supported Python was found: {}; the pinned packages are for Python {versions}\n  \
         help: install one of these, or name it in `{VARIABLE}`",
        unsupported.join(", ")
    )
}

/// Asks `program` who it is. Nothing is said when it does not run: version managers keep launchers of versions that are not there.
fn probe(program: &OsString) -> Option<Python> {
    let question = "import sys; print(*sys.version_info[:2]); print(sys.executable)";
    // Isolated and without site-packages: quick, and no user file can answer for it.
    let output =
        Command::new(program).args(["-I", "-S", "-c", question]).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let mut lines = text.lines();
    let version = lines.next()?.replace(' ', ".").parse().ok()?;
    let path = PathBuf::from(lines.next()?);
    path.is_absolute().then_some(Python { path, version })
}

impl Python {
    /// That `python -m pip` works.
    ///
    /// # Errors
    /// When it does not; the message says what helps.
    pub(crate) fn require_pip(&self) -> Result<()> {
        let mut command = Command::new(&self.path);
        command.args(["-m", "pip", "--version"]).stdin(Stdio::null());
        let output = command.output();
        if output.is_ok_and(|output| output.status.success()) {
            return Ok(());
        }
        let path = self.path.display();
        bail!(
            "`{path}` has no pip, which fetches the pinned packages (nothing is installed with it)\n  \
             help: `apt install python3-pip`, `dnf install python3-pip`, or `{path} -m ensurepip` (in a virtual \
             environment made without pip too); another Python can be named in `{VARIABLE}`"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPPORTED: [Version; 2] = [Version { major: 3, minor: 11 }, Version { major: 3, minor: 12 }];

    /// `answers`: name and minor version of each interpreter that is there.
    fn run(named: Option<&str>, answers: &[(&str, u32)]) -> Result<String, String> {
        let probe = |program: &OsString| {
            let (name, minor) = answers.iter().find(|(name, _)| program == name)?;
            Some(Python { path: format!("/bin/{name}").into(), version: Version { major: 3, minor: *minor } })
        };
        choose(named.map(OsString::from), &SUPPORTED, &probe)
            .map(|python| python.path.display().to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn versions_are_read_and_ordered_as_numbers() {
        let version = |text: &str| text.parse::<Version>();
        assert!(version("3.9").unwrap() < version("3.10").unwrap());
        assert_eq!(version("3").unwrap_err(), "expected a version like `3.12`, found `3`");
    }

    #[test]
    fn the_plain_name_is_preferred() {
        assert_eq!(run(None, &[("python3", 11), ("python3.12", 12)]), Ok("/bin/python3".to_owned()));
    }

    #[test]
    fn an_unsupported_plain_name_gives_way_to_the_newest_supported() {
        let found = run(None, &[("python3", 14), ("python3.11", 11), ("python3.12", 12)]);
        assert_eq!(found, Ok("/bin/python3.12".to_owned()));
    }

    #[test]
    fn what_is_missing_is_said() {
        let none = run(None, &[]).unwrap_err();
        assert!(
            none.starts_with("no Python was found") && none.contains("apt install python3 python3-pip"),
            "{none}"
        );
        let old = run(None, &[("python3", 9)]).unwrap_err();
        assert!(old.starts_with("no supported Python was found: `/bin/python3` is Python 3.9;"), "{old}");
        assert!(old.contains("for Python 3.11, 3.12"), "{old}");
    }

    #[test]
    fn a_named_one_is_used_or_refused() {
        assert_eq!(run(Some("mine"), &[("mine", 12), ("python3", 11)]), Ok("/bin/mine".to_owned()));
        let old = run(Some("mine"), &[("mine", 9), ("python3", 11)]).unwrap_err();
        assert!(old.starts_with("`CUBINDER_PYTHON` names `mine`, which is Python 3.9;"), "{old}");
        let gone = run(Some("mine"), &[("python3", 11)]).unwrap_err();
        assert_eq!(gone, "`CUBINDER_PYTHON` names `mine`, which does not run as a Python 3 interpreter");
    }
}
