//! Builds a launch's translation unit from `cubinder.h` and the user's text. Never opens files or rewrites user code.

mod header;
mod native;

pub use header::header;
pub use native::{LaunchBounds, native_symbol, native_unit};

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Source, Span};
use crate::directives::includes_only_cuda_headers;
use crate::manifest_names::{manifest_names, names_taken};
use crate::resolve::{Table, Unit};

/// Name that units include.
pub const PRELUDE_NAME: &str = "cubinder.h";

/// Text for NVRTC, with what diagnostics need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslationUnit {
    /// File name in messages and `__FILE__`.
    pub name: String,
    /// Prelude's include, then the user's file with its own line numbers.
    pub text: String,
    /// Text of `cubinder.h`.
    pub prelude: Arc<Source>,
    /// User's file.
    pub source: Arc<Source>,
    /// File's folder as the user writes it, first searched for quoted includes.
    pub folder: PathBuf,
    /// Kernel's C++ name.
    pub kernel: String,
    /// Kernel name in the manifest.
    pub kernel_span: Span,
}

/// Joins the prelude and the user's file. `name` is its [`display_name`]; `names` are the header's ([`names_needed`]), all if `None`.
#[must_use]
pub fn translation_unit(
    unit: &Unit,
    source: Arc<Source>,
    name: &str,
    names: Option<&BTreeSet<String>>,
) -> TranslationUnit {
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let escaped = name.replace('\\', "\\\\").replace('"', "\\\"");
    let text = format!("#include \"{PRELUDE_NAME}\"\n#line 1 \"{escaped}\"\n{}\n", source.text);
    let folder = match unit.source.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    TranslationUnit {
        name,
        text,
        prelude: Source::new(PRELUDE_NAME, header(unit, &tables(unit, &source.text), names)),
        source,
        folder,
        kernel: unit.kernel.clone(),
        kernel_span: unit.kernel_span.clone(),
    }
}

/// Returns the tables that a text names, or all if includes may name them.
pub fn tables<'u>(unit: &'u Unit, text: &str) -> Vec<&'u Table> {
    if unit.tables.is_empty() {
        return Vec::new();
    }
    let names = manifest_names(text);
    let may_use_all = !includes_only_cuda_headers(text);
    unit.tables.iter().filter(|table| may_use_all || names.contains(&table.name)).collect()
}

/// Returns the manifest names in the kernel's name and `of_text`, if known. Unknown names may be macros for others.
#[must_use]
pub fn names_needed(unit: &Unit, of_text: Option<&BTreeSet<String>>) -> Option<BTreeSet<String>> {
    let mut names = names_taken(&unit.kernel)?;
    names.extend(of_text?.iter().cloned());
    let is_declared = |name: &String| {
        unit.types.iter().any(|(known, _)| known == name)
            || unit.formats.iter().any(|(known, _)| known == name)
            || unit.constants.iter().any(|(known, _)| known == name)
            || unit.tables.iter().any(|table| table.name == *name)
    };
    names.iter().all(is_declared).then_some(names)
}

/// Returns the path from `root`, or the whole path if unrelated: compiled bytes must not depend on the project's location. `a/../b` becomes `b`.
#[must_use]
pub fn display_name(path: &Path, root: &Path) -> String {
    let whole = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        without_detours(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
    };
    let (path, root) = (whole(path), whole(root));
    let shared = path.components().zip(root.components()).take_while(|(a, b)| a == b).count();
    if shared <= 1 {
        return path.to_string_lossy().into_owned();
    }
    let up = root.components().skip(shared).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(path.components().skip(shared)).collect();
    way.to_string_lossy().into_owned()
}

/// Removes `.` and `x/..` without reading the disk.
pub fn without_detours(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(clean.components().next_back(), Some(Component::Normal(_))) => {
                clean.pop();
            }
            component => clean.push(component),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_depend_on_where_the_project_lies() {
        let name = |path: &str, root: &str| display_name(Path::new(path), Path::new(root));
        assert_eq!(name("/srv/a/p/manifests/../kernels/k.cu", "/srv/a/p"), "kernels/k.cu");
        assert_eq!(name("/srv/p/kernels/k.cu", "/srv/p/./"), "kernels/k.cu");
        assert_eq!(name("manifests/../kernels/k.cu", "."), "kernels/k.cu");
        assert_eq!(name("../shared/k.cu", "."), "../shared/k.cu");
        assert_eq!(name("k.cu", ""), "k.cu");
        assert_eq!(name("/elsewhere/k.cu", "/srv/a/p"), "/elsewhere/k.cu");
    }
}
