//! Opens the compiler's input files: regular ones, with a size limit. Pipes may block and devices never end.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::diagnostic::{Diagnostic, Source};
use crate::path::shown;

/// Maximum bytes of a text.
pub const LARGEST_TEXT: usize = 64 << 20;

/// Maximum bytes of a library, engine or bundle.
pub const LARGEST_BINARY: usize = 1 << 37;

/// Opens a regular file, or a folder, which fails when read. Rejects pipes, devices and sockets.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening some devices has side effects.
    check_kind(&std::fs::metadata(path)?)?;
    open_at_once(path)
}

/// Opens without blocking: a pipe may have replaced the checked file.
fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.union(OFlags::NOCTTY);
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    check_kind(&file.metadata()?)?;
    Ok(file)
}

fn check_kind(facts: &Metadata) -> io::Result<()> {
    match facts.is_file() || facts.is_dir() {
        true => Ok(()),
        false => Err(io::Error::other("it is a pipe, a device or a socket, expected a regular file")),
    }
}

/// Opens a regular file, as [`open`]; rejects folders.
pub fn open_file(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    match file.metadata()?.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => Ok(file),
    }
}

/// Reads a regular file; fails above `most` bytes or this machine's memory.
pub fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    read_opened(&open(path)?, most)
}

/// Reads an opened file, as [`read`].
pub fn read_opened(file: &File, most: usize) -> io::Result<Vec<u8>> {
    // Files of `/proc` state size zero.
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("it exceeds {most} bytes"));
    let stated = file.metadata()?.len();
    if stated >= limit {
        return Err(too_large());
    }
    let memory = rustix::system::sysinfo();
    let memory = memory.totalram.saturating_mul(memory.mem_unit.into());
    if stated >= memory {
        let why = format!("its {stated} bytes exceed the memory of this machine, {memory} bytes");
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() > most { Err(too_large()) } else { Ok(bytes) }
}

/// Reads a regular file, as [`read`]; messages name it.
pub fn bytes(path: &Path, most: usize) -> Result<Vec<u8>, String> {
    read(path, most).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => format!("`{}` exceeds {most} bytes", shown(path).display()),
        _ => format!("cannot read `{}`: {error}", shown(path).display()),
    })
}

/// Reads a text without byte order mark. Fails if not UTF-8, or above 64 MiB.
pub fn text(path: &Path) -> Result<Arc<Source>, Vec<Diagnostic>> {
    let name = shown(path);
    let bytes = read(path, LARGEST_TEXT).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::FileTooLarge => {
                format!("it exceeds {} MiB, the maximum for text", LARGEST_TEXT >> 20)
            }
            _ => error.to_string(),
        };
        vec![Diagnostic::error(format!("cannot read `{}`: {why}", name.display()))]
    })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text.strip_prefix('\u{feff}').unwrap_or(&text))),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Err(vec![Diagnostic::error(format!("`{}` is not UTF-8: invalid byte at {at}", name.display()))])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        for name in ["pipe", "socket", "device"] {
            let error = read(&at(name), 10).unwrap_err();
            assert_eq!(
                error.to_string(),
                "it is a pipe, a device or a socket, expected a regular file",
                "{name}"
            );
            assert!(open_file(&at(name)).is_err());
            assert!(text(&at(name)).is_err());
        }
        assert!(open_at_once(&at("pipe")).is_err(), "opening a pipe must not block");
        assert_eq!(read(&at("link"), 10).unwrap(), b"text");
        assert!(open_file(&at("file")).is_ok());
        assert!(open(folder.path()).is_ok());
        assert!(open_file(folder.path()).is_err());
        assert!(read(folder.path(), 10).is_err());
    }

    #[test]
    fn a_limit_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"text");
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let error = bytes(&path, 3).unwrap_err();
        assert!(error.starts_with('`') && error.ends_with("exceeds 3 bytes"), "{error}");
        assert_eq!(bytes(&path, LARGEST_BINARY).unwrap(), b"text");
        let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
        let kibibytes = memory.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        File::options().write(true).open(&path).unwrap().set_len((kibibytes + 1) << 10).unwrap();
        assert_eq!(read(&path, usize::MAX).unwrap_err().kind(), io::ErrorKind::OutOfMemory);
        // Files without stated size are read up to the limit.
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, LARGEST_TEXT).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let error = text(&path).unwrap_err().remove(0).message;
        assert!(error.ends_with("it exceeds 64 MiB, the maximum for text"), "{error}");
        assert_eq!(read(Path::new("/proc/self/status"), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(!read(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
    }

    #[test]
    fn a_text_is_utf_8_without_its_byte_order_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (bytes, expected) in [(&b"text"[..], "text"), (b"\xef\xbb\xbftext", "text"), (b"", "")] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(text(&path).unwrap().text, expected);
        }
        std::fs::write(&path, b"te\xff").unwrap();
        let error = text(&path).unwrap_err().remove(0).message;
        assert!(error.ends_with("is not UTF-8: invalid byte at 2"), "{error}");
    }
}
