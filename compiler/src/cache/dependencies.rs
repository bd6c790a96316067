//! The files that a unit may read, and their contents.
//!
//! Every include that the scan finds is looked for at every place where the compiler could look, first match or not. A place
//! where nothing is counts too: a file that appears there changes the key. Files that are found are scanned in turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use cubinder_bundle::Digest;

use super::KeyHasher;
use super::directives::{Kind, directives};
use crate::codegen::{TranslationUnit, names_taken};

/// What a file was when it was first looked at in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    digest: Digest,
    includes: Vec<Kind>,
    /// See [`names_taken`].
    names: Option<BTreeSet<String>>,
}

/// The files that were looked at, for all units of a session: each is read once.
#[derive(Debug, Default)]
pub(crate) struct Files(Mutex<HashMap<PathBuf, Option<Arc<Facts>>>>);

impl Files {
    /// The facts of a file; nothing where it is absent or cannot be read as one.
    fn facts(&self, path: &Path) -> Option<Arc<Facts>> {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path) {
            return known.clone();
        }
        let facts = read_regular(path).map(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            Arc::new(Facts { digest: Digest::of(&bytes), includes: scan(&text), names: names_taken(&text) })
        });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), facts.clone());
        facts
    }

    /// The first place that does not hold what it held when it was looked at.
    pub(crate) fn changed(&self) -> Option<PathBuf> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let was = |facts: &Option<Arc<Facts>>| facts.as_ref().map(|facts| facts.digest);
        let changed = known.iter().filter(|(place, facts)| digest_of(place) != was(facts));
        changed.map(|(place, _)| place).min().cloned()
    }

    /// The names that a file takes from the manifest; nothing where that cannot be known.
    pub(crate) fn names_taken(&self, path: &Path) -> Option<BTreeSet<String>> {
        self.facts(path)?.names.clone()
    }
}

/// A file's bytes; nothing where it is absent, cannot be read, or is none that ends.
fn read_regular(path: &Path) -> Option<Vec<u8>> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    std::fs::read(path).ok()
}

/// The digest of what is there now; nothing where [`read_regular`] gives nothing.
fn digest_of(path: &Path) -> Option<Digest> {
    read_regular(path).map(|bytes| Digest::of(&bytes))
}

/// Whether something is there that is neither a file nor a folder: who reads it may wait for ever.
fn is_endless(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
}

fn scan(text: &str) -> Vec<Kind> {
    directives(text).into_iter().map(|directive| directive.kind).collect()
}

/// What a compile of one unit reads besides its own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependencies {
    /// Every place that was looked at, and the digest of what is there.
    places: BTreeMap<PathBuf, Option<Digest>>,
    /// Whether all of it could be found. If not, the compile must not be cached.
    complete: bool,
    /// Whether a file of the project includes something whose name only the preprocessor can tell.
    computed: bool,
    /// A place that holds a pipe or a device, which has no end that could be read.
    endless: Option<PathBuf>,
    /// Whether a header of the toolkit includes something whose name only the preprocessor can tell.
    trusts_toolkit: bool,
}

impl Dependencies {
    /// Looks for everything that `unit` may include, compiled with the user's `options`: they can define macros.
    ///
    /// `toolkit` are the folders of the CUDA headers. In them a name that only the preprocessor can tell is taken to name
    /// another file there (Thrust and libcu++ choose parts of themselves that way): see [`Self::trusts_toolkit`].
    pub(crate) fn find(
        unit: &TranslationUnit,
        options: &[String],
        include: &[PathBuf],
        toolkit: &[PathBuf],
        files: &Files,
    ) -> Dependencies {
        let mut found = Dependencies {
            places: BTreeMap::new(),
            complete: true,
            computed: false,
            endless: None,
            trusts_toolkit: false,
        };
        let mut waiting: Vec<PathBuf> = Vec::new();
        for text in [&unit.source.text, &unit.prelude.text].into_iter().chain(options) {
            found.follow(&scan(text), None, include, false, &mut waiting);
        }
        let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
        while let Some(place) = waiting.pop() {
            if !seen.insert(place.clone()) {
                continue;
            }
            let facts = files.facts(&place);
            if let Some(facts) = &facts {
                let in_toolkit = toolkit.iter().any(|folder| place.starts_with(folder));
                found.follow(&facts.includes, place.parent(), include, in_toolkit, &mut waiting);
            }
            if facts.is_none() && found.endless.is_none() && is_endless(&place) {
                found.endless = Some(place.clone());
            }
            found.places.insert(place, facts.map(|facts| facts.digest));
        }
        found
    }

    /// Adds the places where the includes of one file may be.
    fn follow(
        &mut self,
        includes: &[Kind],
        beside: Option<&Path>,
        include: &[PathBuf],
        in_toolkit: bool,
        waiting: &mut Vec<PathBuf>,
    ) {
        for kind in includes {
            match kind {
                Kind::Quoted(name) => {
                    waiting.extend(beside.map(|folder| folder.join(name)));
                    waiting.extend(include.iter().map(|folder| folder.join(name)));
                }
                Kind::Angled(name) => waiting.extend(include.iter().map(|folder| folder.join(name))),
                Kind::Computed | Kind::Time if in_toolkit => self.trusts_toolkit = true,
                Kind::Computed => (self.complete, self.computed) = (false, true),
                Kind::Time => self.complete = false,
            }
        }
    }

    /// The files that were found.
    pub(crate) fn found(&self) -> impl Iterator<Item = &Path> {
        self.found_with_digests().map(|(place, _)| place)
    }

    /// The same with the digests of their bytes.
    pub(crate) fn found_with_digests(&self) -> impl Iterator<Item = (&Path, Digest)> {
        self.places.iter().filter_map(|(place, digest)| Some((place.as_path(), (*digest)?)))
    }

    /// Whether the project includes files that are not among those found, because only the preprocessor can tell their names.
    pub(crate) fn has_computed(&self) -> bool {
        self.computed
    }

    /// A file that is included and has no end: a compiler that reads it may wait for ever.
    pub(crate) fn endless(&self) -> Option<&Path> {
        self.endless.as_deref()
    }

    /// Whether a result may be cached.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether the toolkit's headers as a whole have to count, because some of those that are read could not be found.
    pub(crate) fn trusts_toolkit(&self) -> bool {
        self.trusts_toolkit
    }

    /// Adds the places and what is there to a key. Paths count as they are given to the compiler, because `__FILE__` can
    /// carry them into the code.
    pub(crate) fn hash(&self, key: KeyHasher) -> KeyHasher {
        self.places.iter().fold(key, |key, (place, digest)| {
            let key = key.field(place.as_os_str().as_encoded_bytes());
            match digest {
                Some(digest) => key.field(&digest.0),
                None => key.field(b"absent"),
            }
        })
    }

    /// Whether every place still holds what it held. Asked after a compile: what was compiled from files that changed
    /// meanwhile must not be stored under the old key.
    pub(crate) fn still_hold(&self) -> bool {
        self.places.iter().all(|(place, digest)| digest_of(place) == *digest)
    }
}

/// The names, sizes and times of all files below a folder. Links to folders are not followed below the first.
pub(crate) fn stamp_of_folder(folder: &Path) -> Digest {
    let mut files: Vec<(PathBuf, u64, Option<Duration>)> = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        // A folder that cannot be read holds nothing that a compile could read.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.is_ok_and(|kind| kind.is_dir()) {
                waiting.push(path);
            } else if let Ok(facts) = std::fs::metadata(&path) {
                let time = facts.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                files.push((path, facts.len(), time));
            }
        }
    }
    files.sort();
    let key = files.iter().fold(KeyHasher::new("folder"), |key, (path, size, time)| {
        let time = time.map_or(0, |time| time.as_nanos());
        key.field(path.as_os_str().as_encoded_bytes()).field(&size.to_le_bytes()).field(&time.to_le_bytes())
    });
    key.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::PRELUDE_NAME;
    use crate::diagnostic::{Source, Span};

    fn unit(folder: &Path, text: &str) -> TranslationUnit {
        let source = Source::new(folder.join("k.cu"), text);
        TranslationUnit {
            name: "k.cu".to_owned(),
            text: text.to_owned(),
            prelude: Source::new(PRELUDE_NAME, ""),
            source: Arc::clone(&source),
            folder: folder.to_owned(),
            kernel: "k".to_owned(),
            kernel_span: Span { source, range: 0..0 },
        }
    }

    fn find(folder: &Path, text: &str) -> Dependencies {
        find_with(folder, text, &[])
    }

    fn find_with(folder: &Path, text: &str, options: &[String]) -> Dependencies {
        let include = [folder.to_owned(), folder.join("inc")];
        Dependencies::find(
            &unit(folder, text),
            options,
            &include,
            &[folder.join("toolkit")],
            &Files::default(),
        )
    }

    fn key(found: &Dependencies) -> Digest {
        found.hash(KeyHasher::new("test")).finish()
    }

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn pipes_are_found_and_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("a.h"), "#include \"pipe.h\"\n");
        assert_eq!(find(folder, "#include \"a.h\"\n").endless(), None, "there is none yet");
        let made = std::process::Command::new("mkfifo").arg(folder.join("pipe.h")).status();
        assert!(made.unwrap().success());
        let found = find(folder, "#include \"a.h\"\n");
        assert_eq!(found.endless(), Some(folder.join("pipe.h").as_path()));
        assert!(found.still_hold());
        assert_eq!(find(folder, "#include \"inc\"\n").endless(), None, "a folder cannot be read");
    }

    #[test]
    fn a_header_of_a_header_counts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("inc/a.h"), "#include \"sub/b.h\"\n");
        write(&folder.join("inc/sub/b.h"), "#include \"c.h\"\n");
        write(&folder.join("inc/sub/c.h"), "1");
        let before = find(folder, "#include <a.h>");
        assert!(before.is_complete() && before.still_hold());
        assert_eq!(before, find(folder, "#include <a.h>"));
        write(&folder.join("inc/sub/c.h"), "2");
        assert!(!before.still_hold());
        assert_ne!(key(&before), key(&find(folder, "#include <a.h>")));
    }

    #[test]
    fn a_header_that_appears_before_another_counts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("inc/a.h"), "");
        let before = find(folder, "#include \"a.h\"");
        write(&folder.join("a.h"), "");
        assert_ne!(key(&before), key(&find(folder, "#include \"a.h\"")));
    }

    #[test]
    fn headers_that_include_each_other_end() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("a.h"), "#include \"b.h\"\n#include \"../x/../a.h\"");
        write(&folder.join("b.h"), "#include \"a.h\"\n");
        assert!(find(folder, "#include \"a.h\"").is_complete());
    }

    #[test]
    fn what_cannot_be_known_is_not_complete() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("computed.h"), "#include X\n");
        write(&folder.join("toolkit/computed.h"), "#include X\n");
        assert!(!find(folder, "#include X").is_complete());
        assert!(find(folder, "#include X").has_computed());
        let timed = find(folder, "int t = sizeof(__TIME__);");
        assert!(!timed.is_complete() && !timed.has_computed());
        assert!(!find(folder, "#include \"computed.h\"").is_complete());
        let found = find(folder, "#include \"toolkit/computed.h\"");
        assert!(found.is_complete() && found.trusts_toolkit());
        assert!(!find(folder, "#include \"toolkit/other.h\"").trusts_toolkit());
    }

    #[test]
    fn options_count_as_text() {
        let folder = tempfile::tempdir().unwrap();
        let with = |option: &str| find_with(folder.path(), "", &["-w".to_owned(), option.to_owned()]);
        assert!(with("-DA=1").is_complete());
        assert!(!with("-DSTAMP=__TIME__").is_complete());
        assert!(!with("-DHI=__has_include").is_complete());
        let before = with("-DHAS=__has_include(\"a.h\")");
        write(&folder.path().join("a.h"), "");
        assert_ne!(key(&before), key(&with("-DHAS=__has_include(\"a.h\")")));
    }

    #[test]
    fn a_folder_is_known_by_its_files() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("a/b.h"), "1");
        let before = stamp_of_folder(folder.path());
        assert_eq!(before, stamp_of_folder(folder.path()));
        write(&folder.path().join("a/b.h"), "longer");
        assert_ne!(before, stamp_of_folder(folder.path()));
        assert_ne!(stamp_of_folder(folder.path()), stamp_of_folder(&folder.path().join("none")));
    }
}
