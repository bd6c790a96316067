//! Results of compiles in one file, for machines without a network: a zip archive with a folder for each action, named by
//! its digest. Never checks results: their reader does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cubinder_nvrtc::nvrtc::shared::Outputs;
use cubinder_remote::{Action, Digest};
use cubinder_source::atomic_file::AtomicFile;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;
use zip::result::ZipError;
use zip::{ZipArchive, ZipWriter};

cubinder_source::diagnostics! {
    struct NoResultsFile<'a> { path: std::path::Display<'a>, reason: String }
    error "cannot read results from `{path}`: {reason}" {
        help: "write such a file with `cubinder cache export FILE`";
    }

    struct NotWritten<'a> { path: std::path::Display<'a>, reason: String }
    error "cannot write results to `{path}`: {reason}" {}
}

/// Bytes, far above those of code.
const MAX_OUTPUT: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct ResultsFile {
    path: PathBuf,
    /// `None` for a new file.
    read: Option<Mutex<ZipArchive<BufReader<File>>>>,
    /// Results to write, by digest.
    added: Mutex<BTreeMap<String, Outputs>>,
    /// The first unusable result.
    rejected: Mutex<Option<String>>,
}

impl ResultsFile {
    pub(super) fn open(path: &Path) -> Result<ResultsFile, Diagnostic> {
        let failed = |reason: String| NoResultsFile { path: path.display(), reason };
        let file = source::open_file(path).map_err(|error| failed(error.to_string()))?;
        let archive = ZipArchive::new(BufReader::new(file));
        let archive = archive.map_err(|_| failed("it is not a zip archive, or is incomplete".to_owned()))?;
        Ok(ResultsFile { read: Some(Mutex::new(archive)), ..ResultsFile::new(path) })
    }

    pub(super) fn new(path: &Path) -> ResultsFile {
        ResultsFile { path: path.to_owned(), read: None, added: Mutex::default(), rejected: Mutex::default() }
    }

    pub(super) fn get(&self, action: &Action) -> Option<Outputs> {
        let mut archive = lock(self.read.as_ref()?);
        let mut output = |path: &String| {
            let mut bytes = Vec::new();
            let is_whole = match archive.by_name(&name(&folder(action.digest), path)) {
                Err(ZipError::FileNotFound) => return None,
                Err(_) => false,
                Ok(entry) => {
                    let read = entry.take(MAX_OUTPUT + 1).read_to_end(&mut bytes);
                    read.is_ok() && bytes.len() as u64 <= MAX_OUTPUT
                }
            };
            if !is_whole {
                self.reject("it is damaged");
            }
            is_whole.then(|| (path.clone(), bytes))
        };
        action.outputs.iter().map(&mut output).collect()
    }

    pub(super) fn put(&self, action: &Action, outputs: &Outputs) {
        lock(&self.added).insert(folder(action.digest), outputs.clone());
    }

    pub(super) fn can_store(&self) -> bool {
        self.read.is_none()
    }

    pub(super) fn reject(&self, reason: &str) {
        lock(&self.rejected).get_or_insert_with(|| reason.to_owned());
    }

    pub(super) fn take_warning(&self) -> Option<Diagnostic> {
        let reason = format!("a result is invalid: {}", lock(&self.rejected).take()?);
        Some(NoResultsFile { path: self.path.display(), reason }.into())
    }

    /// Writes the added results; equal results are equal bytes.
    pub(super) fn write(&self) -> Result<(), Diagnostic> {
        let write = || -> Result<(), ZipError> {
            let mut draft = AtomicFile::beside(&self.path)?;
            let mut archive = ZipWriter::new(BufWriter::new(draft.file_mut()));
            let options = zip::write::SimpleFileOptions::default()
                .compression_method(zip::CompressionMethod::Deflated)
                .large_file(true);
            for (folder, outputs) in lock(&self.added).iter() {
                for (path, bytes) in outputs {
                    archive.start_file(name(folder, path), options)?;
                    archive.write_all(bytes)?;
                }
            }
            archive.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
            Ok(draft.persist(&self.path)?)
        };
        let failed =
            |error: ZipError| NotWritten { path: self.path.display(), reason: error.to_string() }.into();
        write().map_err(failed)
    }
}

/// Returns whether a file is one of results.
#[must_use]
pub fn is_results_file(path: &Path) -> bool {
    ResultsFile::open(path).is_ok()
}

fn folder(action: Digest) -> String {
    action.to_string().replace('/', "-")
}

fn name(folder: &str, path: &str) -> String {
    format!("{folder}/{path}")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use cubinder_remote::{Command, InputRoot};

    use super::*;

    fn action(argument: &str) -> Action {
        let command = Command {
            arguments: vec![argument.to_owned()],
            outputs: vec!["out/a".to_owned(), "out/b".to_owned()],
            ..Command::default()
        };
        Action::new(&command, InputRoot::default().encode().root)
    }

    #[test]
    fn results_are_read_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.zip");
        let outputs = |text: &str| -> Outputs {
            ["out/a", "out/b"].map(|name| (name.to_owned(), format!("{name} {text}").into_bytes())).into()
        };
        let write = |order: [&str; 2]| {
            let file = ResultsFile::new(&path);
            order.iter().for_each(|name| file.put(&action(name), &outputs(name)));
            file.write().unwrap();
            std::fs::read(&path).unwrap()
        };
        assert_eq!(write(["x", "y"]), write(["y", "x"]));
        let file = ResultsFile::open(&path).unwrap();
        assert_eq!(file.get(&action("x")), Some(outputs("x")));
        assert_eq!(file.get(&action("y")), Some(outputs("y")));
        assert_eq!(file.get(&action("z")), None);
        assert_eq!(file.take_warning(), None);
    }

    #[test]
    fn damaged_results_are_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.zip");
        let file = ResultsFile::new(&path);
        let outputs = Outputs::from(
            [("out/a", 1_u8), ("out/b", 2)].map(|(name, byte)| (name.to_owned(), vec![byte; 1000])),
        );
        file.put(&action("x"), &outputs);
        file.write().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut reported = 0;
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            let file = ResultsFile::open(&path);
            let found = file.as_ref().ok().and_then(|file| file.get(&action("x")));
            // Bytes of names and of times do not matter to other results.
            reported += usize::from(file.is_ok_and(|file| file.take_warning().is_some()));
            assert!(found.is_none_or(|found| found == outputs), "byte {at}");
            std::fs::write(&path, &bytes[..at]).unwrap();
            assert!(ResultsFile::open(&path).is_err(), "{at} bytes");
        }
        assert!(reported > 20, "{reported}");
        std::fs::write(&path, "no archive").unwrap();
        let error = ResultsFile::open(&path).unwrap_err();
        assert!(error.message.contains("cannot read results from"), "{}", error.message);
    }
}
