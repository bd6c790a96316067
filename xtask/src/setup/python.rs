use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Python {
    /// Absolute, not a version manager's launcher.
    pub(crate) path: PathBuf,
    pub(crate) version: String,
}

impl Python {
    /// `cp312`, in wheels' names.
    pub(crate) fn tag(&self) -> String {
        format!("cp{}", self.version.replace('.', ""))
    }
}

pub(crate) fn find(
    named: Option<OsString>,
    supported: &[String],
    probe: &dyn Fn(&OsString) -> Option<Python>,
) -> Result<Python> {
    let versions = supported.iter().rev().map(|version| format!("python{version}").into());
    let candidates = match named {
        Some(program) => vec![program],
        None => std::iter::once("python3".into()).chain(versions).collect(),
    };
    let mut found = Vec::new();
    for candidate in candidates {
        match probe(&candidate) {
            Some(python) if supported.contains(&python.version) => return Ok(python),
            Some(python) => found.push(format!("`{}` is {}", python.path.display(), python.version)),
            None => found.push(format!("`{}` does not run", candidate.to_string_lossy())),
        }
    }
    bail!(
        "no supported Python: {}; the pinned packages are for Python {}\n  \
         help: install one of these with pip (`apt install python3 python3-pip`), or set `CUBINDER_PYTHON` to it",
        found.join(", "),
        supported.join(", ")
    )
}

/// `None` if it does not run, such as a launcher of a missing version.
pub(crate) fn probe(program: &OsString) -> Option<Python> {
    let script = "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)";
    // Quick and without the user's files.
    let output = Command::new(program).args(["-I", "-S", "-c", script]).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let (version, path) = text.split_once('\n')?;
    let (version, path) = (version.to_owned(), PathBuf::from(path.trim_end()));
    path.is_absolute().then_some(Python { path, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(named: Option<&str>, installed: &[(&str, &str)]) -> Result<String, String> {
        let probe = |program: &OsString| {
            let (name, version) = installed.iter().find(|(name, _)| program == name)?;
            Some(Python { path: format!("/bin/{name}").into(), version: (*version).to_owned() })
        };
        find(named.map(OsString::from), &["3.11".to_owned(), "3.12".to_owned()], &probe)
            .map(|python| python.path.display().to_string())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_unversioned_name_is_preferred_then_the_newest_supported() {
        assert_eq!(run(None, &[("python3", "3.11"), ("python3.12", "3.12")]).unwrap(), "/bin/python3");
        let newest = run(None, &[("python3", "3.14"), ("python3.11", "3.11"), ("python3.12", "3.12")]);
        assert_eq!(newest.unwrap(), "/bin/python3.12");
    }

    #[test]
    fn a_missing_python_is_reported_with_what_was_found() {
        let none = run(None, &[]).unwrap_err();
        assert!(none.starts_with("no supported Python: `python3` does not run, `python3.12`"), "{none}");
        let old = run(None, &[("python3", "3.9")]).unwrap_err();
        assert!(old.contains("`/bin/python3` is 3.9") && old.contains("for Python 3.11, 3.12\n"), "{old}");
    }

    #[test]
    fn a_named_python_is_used_or_rejected() {
        assert_eq!(run(Some("mine"), &[("mine", "3.12"), ("python3", "3.11")]).unwrap(), "/bin/mine");
        let old = run(Some("mine"), &[("mine", "3.9"), ("python3", "3.11")]).unwrap_err();
        assert!(old.starts_with("no supported Python: `/bin/mine` is 3.9;"), "{old}");
    }
}
