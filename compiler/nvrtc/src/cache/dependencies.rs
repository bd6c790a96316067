//! Finds the files that a unit may read, recursively, with digests. All candidates of an include count: a new file
//! changes the key.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use cubinder_model::Digest;

use super::KeyHasher;
use crate::codegen::TranslationUnit;
use crate::directives::{Kind, Pasting, directives, may_name_architecture, path_of};
use crate::manifest_names::names_taken;
use crate::source;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    digest: Digest,
    length: usize,
    includes: Vec<Kind>,
    pasting: Pasting,
    /// See [`names_taken`].
    names: Option<BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FileState {
    /// No includable file exists; the compiler tries the next folder.
    Nothing,
    File(Arc<Facts>),
    /// Pipe or device, which may never end.
    Endless,
    /// The file is too large, or only the compiler can read it.
    Unreadable,
}

impl FileState {
    fn digest(&self) -> Option<Digest> {
        self.facts().map(|facts| facts.digest)
    }

    fn facts(&self) -> Option<&Facts> {
        if let FileState::File(facts) = self { Some(facts) } else { None }
    }
}

/// A session's files, each read once.
#[derive(Debug, Default)]
pub(crate) struct Files(Mutex<HashMap<PathBuf, FileState>>);

impl Files {
    fn states(&self) -> MutexGuard<'_, HashMap<PathBuf, FileState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, path: &Path) -> FileState {
        if let Some(known) = self.states().get(path) {
            return known.clone();
        }
        let place = match read(path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let (includes, pasting) = (scan(&bytes), Pasting::scan(&bytes));
                let digest = Digest::compute(&bytes);
                FileState::File(Arc::new(Facts {
                    digest,
                    length: bytes.len(),
                    includes,
                    pasting,
                    names: names_taken(&text),
                }))
            }
            Err(place) => place,
        };
        self.states().insert(path.to_owned(), place.clone());
        place
    }

    pub(crate) fn changed(&self) -> Option<PathBuf> {
        let known = self.states();
        let changed = known.iter().filter(|(path, place)| digest_of(path) != place.digest());
        changed.map(|(path, _)| path).min().cloned()
    }

    pub(crate) fn is_absent(&self, path: &Path) -> bool {
        self.state(path) == FileState::Nothing
    }

    pub(crate) fn names_taken(&self, path: &Path) -> Option<BTreeSet<String>> {
        self.state(path).facts()?.names.clone()
    }

    pub(crate) fn length(&self, path: &Path) -> usize {
        self.state(path).facts().map_or(0, |facts| facts.length)
    }
}

/// Headers of the toolkit whose macros for architectures are internal or contain `ARCH` or `NV_` (13.0).
const HEADERS_OF_TYPES: [&[u8]; 3] = [b"cuda_fp16.h", b"cuda_bf16.h", b"cuda_fp8.h"];

fn read(path: &Path) -> Result<Vec<u8>, FileState> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match std::fs::metadata(path) {
        // NVRTC skips folders (13.0).
        Ok(facts) if facts.is_dir() => Err(FileState::Nothing),
        Ok(facts) if !facts.is_file() => Err(FileState::Endless),
        Ok(_) => source::read(path, source::LARGEST_TEXT).map_err(|_| FileState::Unreadable),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Err(FileState::Nothing),
        Err(_) => Err(FileState::Unreadable),
    }
}

/// Checks on the disk.
pub(crate) fn is_absent(path: &Path) -> bool {
    read(path) == Err(FileState::Nothing)
}

fn digest_of(path: &Path) -> Option<Digest> {
    read(path).ok().map(|bytes| Digest::compute(&bytes))
}

fn scan(text: impl AsRef<[u8]>) -> Vec<Kind> {
    directives(text).into_iter().map(|directive| directive.kind).collect()
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dependencies {
    /// Candidates with their digests.
    places: BTreeMap<PathBuf, Option<Digest>>,
    /// Whether the result may be cached.
    pub(crate) complete: bool,
    pub(crate) computed: bool,
    /// Included pipe or device.
    pub(crate) endless: Option<PathBuf>,
    /// A toolkit header has a computed include or the time, so all are inputs.
    pub(crate) trusts_toolkit: bool,
}

impl Dependencies {
    /// Finds what `unit` may include, with macros of the user's `options`.
    ///
    /// Computed includes of `toolkit` headers are assumed to name others there, as in Thrust and libcu++.
    pub(crate) fn find(
        unit: &TranslationUnit,
        options: &[String],
        include: &[PathBuf],
        toolkit: &[PathBuf],
        files: &Files,
    ) -> Dependencies {
        let mut found = Dependencies { complete: true, ..Dependencies::default() };
        let mut pasting = Pasting::default();
        let mut waiting: Vec<PathBuf> = Vec::new();
        for text in [&unit.source.text, &unit.prelude.text].into_iter().chain(options) {
            pasting.add(Pasting::scan(text.as_bytes()));
            found.follow(&scan(text), None, include, false, &mut waiting);
        }
        let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
        while let Some(path) = waiting.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let place = files.state(&path);
            match &place {
                FileState::Nothing => {}
                FileState::File(facts) => {
                    let in_toolkit = toolkit.iter().any(|folder| path.starts_with(folder));
                    let words = !in_toolkit;
                    let Pasting { piece, underscore, operator } = facts.pasting;
                    let underscore = words && underscore;
                    pasting.add(Pasting { piece: words && piece, underscore, operator });
                    found.follow(&facts.includes, path.parent(), include, in_toolkit, &mut waiting);
                }
                FileState::Endless => found.endless = found.endless.or_else(|| Some(path.clone())),
                FileState::Unreadable => found.complete = false,
            }
            found.places.insert(path, place.digest());
        }
        // Pasted tokens could include anything.
        found.complete &= !pasting.may_build_a_word();
        found
    }

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
                    waiting.extend(beside.into_iter().map(|folder| folder.join(path_of(name))));
                    waiting.extend(include.iter().map(|folder| folder.join(path_of(name))));
                }
                Kind::Angled(name) => {
                    waiting.extend(include.iter().map(|folder| folder.join(path_of(name))));
                }
                Kind::Computed | Kind::Time if in_toolkit => self.trusts_toolkit = true,
                Kind::Computed => (self.complete, self.computed) = (false, true),
                Kind::Time => self.complete = false,
            }
        }
    }

    pub(crate) fn found(&self) -> impl Iterator<Item = (&Path, Digest)> {
        self.places.iter().filter_map(|(place, digest)| Some((place.as_path(), (*digest)?)))
    }

    pub(crate) fn candidates(&self) -> impl Iterator<Item = &Path> {
        self.places.keys().map(PathBuf::as_path)
    }

    /// Returns the first existing candidate of each include, but all candidates of headers in `toolkit`, which use
    /// `#include_next`.
    pub(crate) fn first_files(
        unit: &TranslationUnit,
        options: &[String],
        include: &[PathBuf],
        toolkit: &[PathBuf],
        files: &Files,
    ) -> BTreeSet<PathBuf> {
        let mut first = BTreeSet::new();
        let mut waiting: Vec<PathBuf> = Vec::new();
        let follow = |includes: &[Kind], beside: Option<&Path>, all: bool, waiting: &mut Vec<PathBuf>| {
            for kind in includes {
                let mut candidates = Vec::new();
                Dependencies::default().follow(
                    std::slice::from_ref(kind),
                    beside,
                    include,
                    false,
                    &mut candidates,
                );
                let found = candidates.into_iter().filter(|path| !files.is_absent(path));
                waiting.extend(found.take(if all { usize::MAX } else { 1 }));
            }
        };
        for text in [&unit.source.text, &unit.prelude.text].into_iter().chain(options) {
            follow(&scan(text), None, false, &mut waiting);
        }
        while let Some(path) = waiting.pop() {
            if let Some(facts) = files.state(&path).facts().filter(|_| !first.contains(&path)) {
                let in_toolkit = toolkit.iter().any(|folder| path.starts_with(folder));
                follow(&facts.includes, path.parent(), in_toolkit, &mut waiting);
            }
            first.insert(path);
        }
        first
    }

    fn uses_headers(&self, includes: &[Kind], toolkit: &[PathBuf]) -> bool {
        includes.iter().any(|kind| match kind {
            Kind::Quoted(name) | Kind::Angled(name) => {
                !HEADERS_OF_TYPES.contains(&name.as_slice())
                    && toolkit.iter().any(|folder| self.holds(&folder.join(path_of(name))))
            }
            Kind::Computed | Kind::Time => false,
        })
    }

    /// Returns whether a project's text may name the architecture or a header of `toolkit` with macros for it.
    pub(crate) fn may_depend_on_architecture(&self, text: &str, toolkit: &[PathBuf]) -> bool {
        may_name_architecture(text) || self.uses_headers(&scan(text), toolkit)
    }

    pub(crate) fn holds(&self, file: &Path) -> bool {
        matches!(self.places.get(file), Some(Some(_)))
    }

    /// Returns whether the key covers the file, under any name.
    pub(crate) fn covers(&self, file: &Path) -> bool {
        if self.holds(file) {
            return true;
        }
        let Ok(file) = file.canonicalize() else { return false };
        self.found().any(|(known, _)| known.canonicalize().is_ok_and(|known| known == file))
    }

    /// Includes paths, which `__FILE__` can put into code.
    pub(crate) fn hash(&self, key: KeyHasher) -> KeyHasher {
        self.places.iter().fold(key, |key, (place, digest)| {
            let digest = digest.as_ref().map_or(b"absent".as_slice(), |digest| &digest.0);
            key.field(place.as_os_str().as_encoded_bytes()).field(digest)
        })
    }

    /// If `false`, results must not be stored.
    pub(crate) fn still_hold(&self) -> bool {
        self.places.iter().all(|(place, digest)| digest_of(place) == *digest)
    }
}

/// Digests names, sizes and times. Follows only top-level links to folders.
pub(crate) fn stamp_of_folder(folder: &Path) -> Digest {
    let mut files: Vec<(PathBuf, u64, Option<Duration>)> = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
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
    use std::os::unix::ffi::OsStrExt as _;

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
        assert_eq!(find(folder, "#include \"a.h\"\n").endless, None, "the file does not exist yet");
        let made = std::process::Command::new("mkfifo").arg(folder.join("pipe.h")).status();
        assert!(made.unwrap().success());
        let found = find(folder, "#include \"a.h\"\n");
        assert_eq!(found.endless, Some(folder.join("pipe.h")));
        assert!(found.still_hold());
        std::fs::create_dir(folder.join("folder.h")).unwrap();
        assert_eq!(find(folder, "#include \"folder.h\"\n").endless, None, "NVRTC skips folders");
    }

    #[test]
    fn a_header_of_a_header_counts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("inc/a.h"), "#include \"sub/b.h\"\n");
        write(&folder.join("inc/sub/b.h"), "#include \"c.h\"\n");
        write(&folder.join("inc/sub/c.h"), "1");
        let before = find(folder, "#include <a.h>");
        assert!(before.complete && before.still_hold());
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
    fn the_first_candidate_of_each_include_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("a.h"), "#include \"b.h\"\n#include <c.h>\n");
        for name in ["inc/a.h", "b.h", "inc/b.h", "inc/c.h"] {
            write(&folder.join(name), "");
        }
        let text = unit(folder, "#include <a.h>\n");
        let include = [folder.to_owned(), folder.join("inc")];
        let first = |toolkit: &[PathBuf]| {
            let found = Dependencies::first_files(&text, &[], &include, toolkit, &Files::default());
            let names = found.iter().map(|path| path.strip_prefix(folder).unwrap().display().to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(first(&[]), "a.h b.h inc/c.h");
        assert_eq!(first(&[folder.to_owned()]), "a.h b.h inc/b.h inc/c.h");
    }

    #[test]
    fn a_name_that_is_not_utf_8_counts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let header = folder.join(std::ffi::OsStr::from_bytes(b"caf\xe9.h"));
        std::fs::write(folder.join("a.h"), b"#include \"caf\xe9.h\"\n").unwrap();
        let before = find(folder, "#include \"a.h\"");
        std::fs::write(&header, "1").unwrap();
        let between = find(folder, "#include \"a.h\"");
        assert_ne!(key(&before), key(&between));
        assert!(between.covers(&header) && !before.covers(&header));
        std::fs::write(&header, "2").unwrap();
        assert!(!between.still_hold());
        assert_ne!(key(&between), key(&find(folder, "#include \"a.h\"")));
    }

    #[test]
    fn words_that_macros_build_are_not_cached() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let is_complete = |text: &str| find(folder, text).complete;
        write(&folder.join("cat.h"), "#define C(a, b) a ## b\n");
        write(&folder.join("toolkit/cat.h"), "#define C(a, b) a ## b\nint __T, _;");
        write(&folder.join("piece.h"), "C(__has_, include)\n");
        assert!(!is_complete("#if C(__has_, include)(<a.h>)"));
        assert!(!is_complete("#include \"piece.h\""));
        assert!(is_complete("int _;"));
        assert!(!is_complete("#include \"cat.h\"\nint _;"));
        assert!(!is_complete("#include \"toolkit/cat.h\"\nint _;"));
        assert!(is_complete("#include \"toolkit/cat.h\"\n"), "a header of the toolkit");
        let option = |option: &str| find_with(folder, "", &[option.to_owned()]).complete;
        assert!(!option("-DC(a,b)=a##b(__has_)"));
        assert!(option("-DC(a,b)=a##b"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("large.h"), "");
        let file = std::fs::File::options().write(true).open(folder.join("large.h")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(!find(folder, "#include \"large.h\"").complete);
        std::fs::create_dir(folder.join("folder.h")).unwrap();
        assert!(find(folder, "#include \"folder.h\"").complete);
        let long = "a".repeat(5000);
        assert!(!find(folder, &format!("#include \"{long}.h\"")).complete);
    }

    #[test]
    fn a_file_is_covered_by_any_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("inc/a.h"), "");
        write(&folder.join("inc/b.h"), "");
        std::os::unix::fs::symlink("inc", folder.join("link")).unwrap();
        let found = find(folder, "#include \"a.h\"");
        assert!(found.covers(&folder.join("inc/a.h")));
        assert!(found.covers(&folder.join("inc/../link/a.h")));
        assert!(!found.covers(&folder.join("inc/b.h")));
        assert!(!found.covers(&folder.join("inc/none.h")));
    }

    #[test]
    fn headers_that_include_each_other_end() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("a.h"), "#include \"b.h\"\n#include \"../x/../a.h\"");
        write(&folder.join("b.h"), "#include \"a.h\"\n");
        assert!(find(folder, "#include \"a.h\"").complete);
    }

    #[test]
    fn what_cannot_be_known_is_not_complete() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join("computed.h"), "#include X\n");
        write(&folder.join("toolkit/computed.h"), "#include X\n");
        assert!(!find(folder, "#include X").complete);
        assert!(find(folder, "#include X").computed);
        let timed = find(folder, "int t = sizeof(__TIME__);");
        assert!(!timed.complete && !timed.computed);
        assert!(!find(folder, "#include \"computed.h\"").complete);
        let found = find(folder, "#include \"toolkit/computed.h\"");
        assert!(found.complete && found.trusts_toolkit);
        assert!(!find(folder, "#include \"toolkit/other.h\"").trusts_toolkit);
    }

    #[test]
    fn options_count_as_text() {
        let folder = tempfile::tempdir().unwrap();
        let with = |option: &str| find_with(folder.path(), "", &["-w".to_owned(), option.to_owned()]);
        assert!(with("-DA=1").complete);
        assert!(!with("-DSTAMP=__TIME__").complete);
        assert!(!with("-DHI=__has_include").complete);
        let before = with("-DHAS=__has_include(\"a.h\")");
        write(&folder.path().join("a.h"), "");
        assert_ne!(key(&before), key(&with("-DHAS=__has_include(\"a.h\")")));
    }

    #[test]
    fn files_that_change_after_they_were_read_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let files = Files::default();
        let (a, b) = (folder.join("a.h"), folder.join("b.h"));
        write(&a, "int n = manifest::N + manifest::M;");
        for path in [&a, &b] {
            files.state(path);
        }
        assert_eq!(files.changed(), None);
        let names = |path: &Path| Some(files.names_taken(path)?.into_iter().collect::<Vec<_>>().join(" "));
        assert_eq!((names(&a).as_deref(), names(&b)), (Some("M N"), None));
        write(&b, "");
        assert_eq!(files.changed(), Some(b));
        write(&a, "");
        assert_eq!(files.changed(), Some(a.clone()), "the first by name");
        assert_eq!(names(&a).as_deref(), Some("M N"), "each file is read once");
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
