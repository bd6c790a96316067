//! The `.tar.gz`: one folder, sorted files, no owners, one time, two modes.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use fs_err as fs;

use super::EPOCH;
use super::tree::{File, VERSION};

pub(super) fn write(tree: &[File], out: &Path) -> Result<PathBuf> {
    let name = format!("cubinder-{VERSION}-x86_64-linux");
    let path = out.join(format!("{name}.tar.gz"));
    let bytes = pack(tree, &name).with_context(|| format!("cannot pack `{}`", path.display()))?;
    let draft = out.join(format!("{name}.tar.gz.draft"));
    fs::write(&draft, &bytes)?;
    fs::rename(&draft, &path)?;
    Ok(path)
}

fn pack(tree: &[File], name: &str) -> std::io::Result<Vec<u8>> {
    let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    let mut archive = tar::Builder::new(gzip);
    for file in tree {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.is_executable { 0o755 } else { 0o644 });
        header.set_mtime(EPOCH.into());
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, format!("{name}/{}", file.path), file.bytes.as_slice())?;
    }
    archive.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_machine_is_in_it() {
        let file = |path: &str, is_executable| File {
            path: path.to_owned(),
            bytes: path.as_bytes().to_vec(),
            is_executable,
        };
        let tree = [file("bin/p", true), file("share/t", false)];
        let bytes = pack(&tree, "x-1").unwrap();
        assert_eq!(bytes, pack(&tree, "x-1").unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let found: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = entry.path().unwrap().display().to_string();
                (path, header.mode().unwrap(), header.mtime().unwrap(), header.uid().unwrap())
            })
            .collect();
        let time = u64::from(EPOCH);
        assert_eq!(
            found,
            [("x-1/bin/p".to_owned(), 0o755, time, 0), ("x-1/share/t".to_owned(), 0o644, time, 0)]
        );
    }
}
