//! Errors of reading and writing libraries.

use std::io;
use std::path::{Path, PathBuf};

use cubinder_model::slot::{self, SlotError};

use cubinder_source::atomic_file;
use cubinder_source::diagnostic::Diagnostic;

/// A file's error.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {problem}", path.display())]
pub struct LibraryError {
    /// The file.
    pub path: PathBuf,
    /// The problem.
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

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Reading failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// The failed action.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Writing failed.
    #[error("cannot {action}: {source}")]
    Unwritten {
        /// The failed action.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Not ELF, or for another machine or use.
    #[error("not a shared library this compiler can handle: {0}")]
    Kind(String),
    /// Inconsistent ELF.
    #[error("damaged ELF file: {0}")]
    Malformed(String),
    /// The file has no descriptor.
    #[error("not a Cubinder runtime library: it has no descriptor (section `{}`)", slot::SECTION)]
    NoDescriptor,
    /// The file has several descriptors.
    #[error("{count} descriptors (section `{}`) found, expected one", slot::SECTION)]
    ManyDescriptors {
        /// Their number.
        count: usize,
    },
    /// The descriptor is unreadable.
    #[error("the descriptor at byte {offset} is damaged: {source}")]
    Descriptor {
        /// Its file offset.
        offset: u64,
        /// Its error.
        source: SlotError,
    },
    /// No program header is reserved for the bundle.
    #[error(
        "it has no note of its own (section `{}`) whose program header the bundle could take",
        slot::NOTE_SECTION
    )]
    NoNote,
    /// The linker merged the note's segment with others.
    #[error(
        "the linker merged the note `{}` with other notes: its segment has {found} bytes, expected {}",
        slot::NOTE_SECTION,
        slot::NOTE_SIZE
    )]
    MergedNotes {
        /// Bytes of the segment.
        found: u64,
    },
    /// The library has no bundle to remove.
    #[error("it has no bundle")]
    NoBundle,
    /// The library without the bundle cannot be restored.
    #[error("another tool changed this library after the bundle was put in ({0}), so it cannot be restored")]
    Changed(&'static str),
    /// The bundle is empty.
    #[error("the bundle to put in is empty")]
    EmptyBundle,
    /// Addresses, offsets or counts exceed the format.
    #[error("{0}")]
    TooLarge(String),
    /// The new library's bundle is not at the planned offset.
    #[error("the bundle is not found in the new library: {0}")]
    ReadBack(String),
}

impl Problem {
    fn help(&self) -> Option<&'static str> {
        Some(match self {
            Problem::Kind(_) | Problem::NoDescriptor => {
                "name the runtime library `libcubinder.so` of this release, or one that `cubinder compile` wrote"
            }
            Problem::ManyDescriptors { .. } => "link the runtime crate into a library once",
            Problem::Malformed(_) | Problem::Descriptor { .. } | Problem::ReadBack(_) => {
                "take a fresh copy of the runtime library of this release"
            }
            Problem::NoNote | Problem::MergedNotes { .. } => {
                "build the runtime library with rust-lld, lld, GNU ld or gold; mold keeps the note apart with \
                 `-C link-arg=-Wl,--build-id=none`"
            }
            Problem::Unwritten { source, .. } => return atomic_file::write_help(source),
            Problem::Changed(_) => "take the runtime library that the bundle was put into",
            _ => return None,
        })
    }
}
