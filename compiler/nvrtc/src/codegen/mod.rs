//! The translation unit of one launch of one variant.
//!
//! Owns: the header `cubinder.h` that every unit sees, and how the author's text is joined to it.
//! Never: no look into the author's code beyond the names that it takes from the manifest, no rewriting of it, no file is opened.

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

/// The name by which units include the prelude.
pub const PRELUDE_NAME: &str = "cubinder.h";

/// One text for NVRTC, and what is needed to talk about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslationUnit {
    /// What NVRTC calls the author's file in messages and in `__FILE__`.
    pub name: String,
    /// The text that is compiled: the prelude's include, then the author's file with its own line numbers.
    pub text: String,
    /// The text of `cubinder.h`.
    pub prelude: Arc<Source>,
    /// The author's file.
    pub source: Arc<Source>,
    /// The folder of the author's file, as it was named: the first place where its quoted includes are looked for.
    pub folder: PathBuf,
    /// The kernel, as C++ names it.
    pub kernel: String,
    /// Where the manifest names the kernel.
    pub kernel_span: Span,
}

/// Joins the prelude and the author's file.
///
/// `name` is what messages and `__FILE__` say: see [`display_name`]. `names` are those of the manifest that the header has, all where there are
/// none: see [`names_needed`].
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

/// The tables that a kernel's text may use: those that it names, and all where it includes what may name them.
pub fn tables<'u>(unit: &'u Unit, text: &str) -> Vec<&'u Table> {
    if unit.tables.is_empty() {
        return Vec::new();
    }
    let names = manifest_names(text);
    let may_use_all = !includes_only_cuda_headers(text);
    unit.tables.iter().filter(|table| may_use_all || names.contains(&table.name)).collect()
}

/// The names of the manifest that a unit's header needs, where these are known: those that its kernel's name takes, and those `of_text`. One
/// that the manifest does not have may be a macro's, which stands for others.
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

/// How a file is called so that compiled bytes do not depend on where the project lies, nor on how it was named: the way from
/// `root` to it, and the whole path where both have nothing in common. `a/../b` becomes `b`.
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

/// Removes `.` and `x/..` from a path without looking at the disk.
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
