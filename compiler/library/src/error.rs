//! Why a library could not be read or written: which file, what is wrong, how to mend it.

use std::io;
use std::path::{Path, PathBuf};

use cubinder_model::slot::{self, SlotError};

use cubinder_source::atomic_file;
use cubinder_source::diagnostic::Diagnostic;

/// A file that could not be handled.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {problem}", path.display())]
pub struct LibraryError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
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

/// What can be wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused to read, or what was asked first.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What it answered.
        source: io::Error,
    },
    /// The operating system refused to write.
    #[error("cannot {action}: {source}")]
    Unwritten {
        /// What was tried.
        action: &'static str,
        /// What it answered.
        source: io::Error,
    },
    /// Not an ELF file, or one for another kind of machine or use.
    #[error("not a shared library this compiler can handle: {0}")]
    Kind(String),
    /// An ELF file that contradicts itself.
    #[error("damaged ELF file: {0}")]
    Malformed(String),
    /// The file has no descriptor.
    #[error("not a Cubinder runtime library: it has no descriptor (section `{}`)", slot::SECTION)]
    NoDescriptor,
    /// The file has several.
    #[error("{count} descriptors (section `{}`) found, expected one", slot::SECTION)]
    ManyDescriptors {
        /// How many.
        count: usize,
    },
    /// The descriptor is not readable.
    #[error("the descriptor at byte {offset} is damaged: {source}")]
    Descriptor {
        /// Where it lies in the file.
        offset: u64,
        /// What is wrong with it.
        source: SlotError,
    },
    /// No program header is reserved for the bundle.
    #[error(
        "it has no note of its own (section `{}`) whose program header the bundle could take",
        slot::NOTE_SECTION
    )]
    NoNote,
    /// The linker put the note into one segment with others.
    #[error(
        "the linker merged the note `{}` with other notes: its segment has {found} bytes, expected {}",
        slot::NOTE_SECTION,
        slot::NOTE_SIZE
    )]
    MergedNotes {
        /// Bytes of the segment.
        found: u64,
    },
    /// There is no bundle to take out.
    #[error("it has no bundle")]
    NoBundle,
    /// The library without the bundle cannot be given back.
    #[error("another tool changed this library after the bundle was put in ({0}), so it cannot be restored")]
    Changed(&'static str),
    /// A bundle of no bytes.
    #[error("the bundle to put in is empty")]
    EmptyBundle,
    /// Addresses, offsets or counts outgrow the format.
    #[error("{0}")]
    TooLarge(String),
    /// The new library does not have the bundle where the plan put it.
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
