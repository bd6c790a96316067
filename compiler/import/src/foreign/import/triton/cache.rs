//! Finds a kernel's outputs among those of other kernels, GPUs and releases.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::errors::{NoKernel, NoMetadata, NoOutput, NoOutputIn, SeveralKernels, Unreadable};
use super::metadata::{Metadata, Unusable, metadata};
use super::text;
use crate::diagnostic::{Diagnostic, suggest};
use crate::manifest::toml_reader::list;

/// Maximum characters in file names (`triton/compiler/compiler.py`, 3.9: `src.name[:150]`).
const NAME_OF_FILES: usize = 150;

pub(super) type Output = (PathBuf, Metadata);

pub(super) struct Outputs {
    pub(super) all: Vec<Output>,
    /// About ignored outputs.
    pub(super) remark: Option<String>,
}

struct Unimported {
    json: PathBuf,
    why: Unusable,
}

impl Unimported {
    fn is_of(&self, kernel: &str) -> bool {
        let start: String = kernel.chars().take(NAME_OF_FILES).collect();
        self.json.file_stem().is_some_and(|stem| stem.to_string_lossy() == start)
    }

    fn error(&self) -> Diagnostic {
        NoMetadata { path: self.json.display(), why: self.why.to_string() }.into()
    }
}

pub(super) fn outputs(paths: &[PathBuf], kernel: Option<&str>) -> Result<Outputs, Vec<Diagnostic>> {
    let (mut found, mut left_out, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        match of_path(path) {
            Ok((outputs, others)) => {
                found.extend(outputs);
                left_out.extend(others);
            }
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    of_kernel(found, &left_out, kernel).map_err(|error| vec![error])
}

fn of_kernel(
    found: Vec<Output>,
    left_out: &[Unimported],
    kernel: Option<&str>,
) -> Result<Outputs, Diagnostic> {
    let names: BTreeSet<String> = found.iter().map(|(_, metadata)| metadata.name.clone()).collect();
    let shown: Vec<&str> = names.iter().map(String::as_str).collect();
    let kernel = match (kernel, shown.as_slice()) {
        (Some(kernel), _) => kernel,
        (None, [one]) => one,
        (None, []) => {
            return Err(left_out.first().map_or_else(|| NoOutput {}.into(), Unimported::error));
        }
        (None, _) => return Err(SeveralKernels { kernels: list(&shown) }.into()),
    };
    // Ignores other GPUs' code beside these'.
    let is_mistake = |it: &&Unimported| {
        it.is_of(kernel) && (!names.contains(kernel) || matches!(it.why, Unusable::Wrong(_)))
    };
    if let Some(mistake) = left_out.iter().find(is_mistake) {
        return Err(mistake.error());
    }
    if !names.contains(kernel) {
        let near = suggest(kernel, shown.iter().copied());
        let kernels = near.is_none().then(|| list(&shown));
        return Err(NoKernel { kernel, kernels, near }.into());
    }
    let all = found.into_iter().filter(|(_, metadata)| metadata.name == kernel).collect();
    Ok(Outputs { all, remark: remark(left_out) })
}

fn remark(left_out: &[Unimported]) -> Option<String> {
    let first = left_out.first()?;
    let outputs = if left_out.len() == 1 { "output is" } else { "outputs are" };
    Some(format!("{} {outputs} ignored, such as `{}`: {}", left_out.len(), first.json.display(), first.why))
}

fn of_path(path: &Path) -> Result<(Vec<Output>, Vec<Unimported>), Diagnostic> {
    let cannot = |error: std::io::Error| Unreadable { path: path.display(), why: error.to_string() };
    if !path.is_dir() {
        std::fs::metadata(path).map_err(cannot)?;
        let wrong = |why: String| NoMetadata { path: path.display(), why };
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("__grp__")) {
            return Err(wrong("it lists the files of its folder".to_owned()).into());
        }
        let metadata = metadata(&text(path)?).map_err(|why| wrong(why.to_string()))?;
        return Ok((vec![(path.to_owned(), metadata)], Vec::new()));
    }
    let entries = |folder: &Path| -> Result<Vec<PathBuf>, std::io::Error> {
        let mut all: Vec<PathBuf> =
            std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        all.sort();
        Ok(all)
    };
    let mut files = Vec::new();
    for entry in entries(path).map_err(cannot)? {
        files.extend(if entry.is_dir() { entries(&entry).unwrap_or_default() } else { vec![entry] });
    }
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for json in files.into_iter().filter(|file| is_output(file)) {
        let read = text(&json).map_err(|error| Unusable::Wrong(error.message));
        match read.and_then(|text| metadata(&text)) {
            Ok(metadata) => found.push((json, metadata)),
            Err(why) => left_out.push(Unimported { json, why }),
        }
    }
    match found.is_empty() && left_out.is_empty() {
        false => Ok((found, left_out)),
        true => Err(NoOutputIn { path: path.display() }.into()),
    }
}

/// Triton's metadata is JSON beside the kernel's IR.
fn is_output(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".json") && !name.starts_with("__grp__") && file.with_extension("ttir").is_file()
}
