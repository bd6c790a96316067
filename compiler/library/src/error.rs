use std::io;
use std::path::{Path, PathBuf};

use cubinder_model::slot::{self, SlotError};

use cubinder_source::atomic_file;
use cubinder_source::diagnostic::Diagnostic;

/// An error with its file.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {problem}", path.display())]
pub struct LibraryError {
    /// The file.
    pub path: PathBuf,
    /// Problem.
    #[source]
    pub problem: Problem,
}

impl LibraryError {
    pub(super) fn for_file(path: &Path) -> impl Fn(Problem) -> LibraryError {
        move |problem| LibraryError { path: path.to_owned(), problem }
    }
}

impl From<LibraryError> for Diagnostic {
    fn from(error: LibraryError) -> Diagnostic {
        let diagnostic = Diagnostic::error(error.to_string());
        match error.problem.help() {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

/// A file's problem.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Reading failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// Failed action.
        action: &'static str,
        /// System error.
        source: io::Error,
    },
    /// Writing failed.
    #[error("cannot {action}: {source}")]
    Unwritten {
        /// Failed action.
        action: &'static str,
        /// System error.
        source: io::Error,
    },
    /// Not ELF, or for another machine or use.
    #[error("unsupported shared library: {0}")]
    Kind(String),
    /// Inconsistent ELF.
    #[error("damaged ELF file: {0}")]
    Malformed(String),
    /// Missing descriptor.
    #[error("not a Cubinder runtime library: it has no descriptor (section `{}`)", slot::SECTION)]
    NoDescriptor,
    /// Several descriptors.
    #[error("{count} descriptors (section `{}`) found, expected one", slot::SECTION)]
    ManyDescriptors {
        /// Number of descriptors.
        count: usize,
    },
    /// Unreadable descriptor.
    #[error("the descriptor at byte {offset} is damaged: {source}")]
    Descriptor {
        /// File offset.
        offset: u64,
        /// Error.
        source: SlotError,
    },
    /// Missing reserved program header.
    #[error(
        "it has no separate note (section `{}`) whose program header the bundle can use",
        slot::NOTE_SECTION
    )]
    NoNote,
    /// The linker merged the note's segment.
    #[error(
        "the linker merged the note `{}` with other notes: its segment has {found} bytes, expected {}",
        slot::NOTE_SECTION,
        slot::NOTE_SIZE
    )]
    MergedNotes {
        /// Segment bytes.
        found: u64,
    },
    /// No bundle to remove.
    #[error("it has no bundle")]
    NoBundle,
    /// The original cannot be restored.
    #[error("cannot restore the library: another tool changed it after the bundle was added ({0})")]
    Changed(&'static str),
    /// Empty bundle.
    #[error("the bundle is empty")]
    EmptyBundle,
    /// Excessive addresses, offsets or counts.
    #[error("{0}")]
    TooLarge(String),
    /// The new bundle is misplaced.
    #[error("cannot find the bundle in the new library: {0}")]
    ReadBack(String),
}

impl Problem {
    fn help(&self) -> Option<&'static str> {
        Some(match self {
            Problem::Kind(_) | Problem::NoDescriptor => {
                "use the runtime library `libcubinder.so` of this release, or a library that `cubinder compile` wrote"
            }
            Problem::ManyDescriptors { .. } => "link the runtime crate into a library once",
            Problem::Malformed(_) | Problem::Descriptor { .. } | Problem::ReadBack(_) => {
                "use a new copy of the runtime library of this release"
            }
            Problem::NoNote | Problem::MergedNotes { .. } => {
                "link the runtime library with rust-lld, lld, GNU ld or gold, or with mold and \
                 `-C link-arg=-Wl,--build-id=none`"
            }
            Problem::Unwritten { source, .. } => return atomic_file::write_help(source),
            Problem::Changed(_) => "use the runtime library to which the bundle was added",
            _ => return None,
        })
    }
}
