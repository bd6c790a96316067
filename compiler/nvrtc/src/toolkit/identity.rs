//! Identifies an NVRTC without loading 110 MB: by GNU build ids of the library and its built-in headers, else by digest.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cubinder_model::Digest;
use object::Endianness;
use object::elf::FileHeader64;
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::cache::KeyHasher;
use crate::source;

pub(super) fn of_nvrtc(path: &Path) -> io::Result<Digest> {
    let mut key = KeyHasher::new("NVRTC");
    for file in files(path)? {
        let name = file.file_name().unwrap_or_default();
        key = key.field(name.as_encoded_bytes()).field(&of_file(&file)?.0);
    }
    Ok(key.finish())
}

pub(super) fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(std::iter::once(path.to_owned()).chain(builtins_beside(path)?).collect())
}

fn builtins_beside(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(folder) = path.parent() else { return Ok(Vec::new()) };
    let mut found =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let is_builtins = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libnvrtc-builtins.so") && path.is_file()
    };
    found.retain(is_builtins);
    found.sort();
    Ok(found)
}

fn of_file(path: &Path) -> io::Result<Digest> {
    let size = std::fs::metadata(path)?.len();
    let cache = ReadCache::new(source::open(path)?);
    let mut hasher = blake3::Hasher::new();
    if let Some(id) = build_id(&cache) {
        hasher.update(b"build id").update(&size.to_le_bytes()).update(id);
    } else {
        hasher.update(b"contents");
        let (mut file, mut chunk) = (source::open(path)?, vec![0; 1 << 16]);
        while let length @ 1.. = file.read(&mut chunk)? {
            hasher.update(&chunk[..length]);
        }
    }
    Ok(Digest(*hasher.finalize().as_bytes()))
}

fn build_id(file: &ReadCache<File>) -> Option<&[u8]> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    for segment in header.program_headers(endian, file).ok()? {
        let Ok(Some(mut notes)) = segment.notes(endian, file) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == object::elf::ELF_NOTE_GNU && note.n_type(endian) == object::elf::NT_GNU_BUILD_ID
            {
                return Some(note.desc()).filter(|id| id.len() >= 16);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_build_id_is_known_by_its_contents() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvrtc.so.13");
        std::fs::write(&library, b"one").unwrap();
        let one = of_nvrtc(&library).unwrap();
        assert_eq!(one, of_nvrtc(&library).unwrap());
        std::fs::write(&library, b"two").unwrap();
        assert_ne!(one, of_nvrtc(&library).unwrap());
    }

    #[test]
    fn the_built_in_headers_count() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libnvrtc.so.13");
        std::fs::write(&library, b"one").unwrap();
        let alone = of_nvrtc(&library).unwrap();
        std::fs::write(folder.path().join("libnvrtc-builtins.so.13.0"), b"headers").unwrap();
        assert_ne!(alone, of_nvrtc(&library).unwrap());
    }

    #[test]
    fn an_elf_file_is_known_by_its_build_id() {
        let program = std::env::current_exe().unwrap();
        let cache = ReadCache::new(File::open(program).unwrap());
        assert!(build_id(&cache).is_some_and(|id| id.len() >= 16));
    }
}
