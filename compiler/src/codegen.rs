//! The translation unit of one launch of one variant.
//!
//! Owns: the header `cubinder.h` that every unit sees, and how the author's text is joined to it.
//! Never: no look into the author's code beyond names for messages, no rewriting of it, no file is opened.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cubinder_bundle::DataType;

use crate::diagnostic::{Source, Span};
use crate::resolve::Unit;

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
/// `name` is what messages and `__FILE__` say: see [`display_name`].
#[must_use]
pub fn translation_unit(unit: &Unit, source: Arc<Source>, name: &str) -> TranslationUnit {
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
        prelude: Arc::new(Source { path: PRELUDE_NAME.into(), text: prelude(&unit.plugin_types) }),
        source,
        folder,
        kernel: unit.kernel.clone(),
        kernel_span: unit.kernel_span.clone(),
    }
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
fn without_detours(path: &Path) -> PathBuf {
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

/// The header that every unit sees. It includes the half precision headers only where the plugin has such types: each costs
/// 10 to 20 ms a compile.
fn prelude(types: &[DataType]) -> String {
    let mut text = String::from("#ifndef CUBINDER_H\n#define CUBINDER_H\n");
    for (ty, header) in [(DataType::F16, "cuda_fp16.h"), (DataType::Bf16, "cuda_bf16.h")] {
        if types.contains(&ty) {
            text.push_str(&format!("#include <{header}>\n"));
        }
    }
    text.push_str(ARRAY);
    text.push_str("#endif\n");
    text
}

/// What an array argument of a manifest is to the kernel. An aggregate without padding: its layout is that of `T[N]`.
const ARRAY: &str = "\
namespace cubinder {
// N numbers passed by value.
template <typename T, int N>
struct array {
    static_assert(N > 0, \"an array has at least one element\");
    T data[N];
    __device__ __forceinline__ constexpr T& operator[](int index) { return data[index]; }
    __device__ __forceinline__ constexpr const T& operator[](int index) const { return data[index]; }
    __device__ __forceinline__ static constexpr int size() { return N; }
};
}
";

/// The names after `__global__` in a CUDA text, for messages. It is a light reader: macros and conditional parts are not
/// understood.
#[must_use]
pub fn kernel_names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, keyword) in text.match_indices("__global__") {
        let mut rest = &text[at + keyword.len()..];
        let mut last = "";
        loop {
            rest = rest.trim_start();
            let word = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
            if word.is_empty() {
                break;
            }
            rest = &rest[word.len()..];
            last = word;
            if let Some(arguments) = rest.trim_start().strip_prefix('(').filter(|_| word.starts_with("__")) {
                let Some(end) = closing_parenthesis(arguments) else { break };
                rest = &arguments[end + 1..];
                last = "";
            }
        }
        if rest.starts_with('(') && !last.is_empty() && !names.iter().any(|name| name == last) {
            names.push(last.to_owned());
        }
    }
    names
}

/// Where the parenthesis that is already open closes.
fn closing_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
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

    #[test]
    fn half_precision_is_included_only_where_it_is_used() {
        assert!(!prelude(&[DataType::F32]).contains("#include"));
        assert!(prelude(&[DataType::F32, DataType::F16]).contains("#include <cuda_fp16.h>\n"));
        assert!(prelude(&[DataType::Bf16]).contains("#include <cuda_bf16.h>\n"));
    }

    #[test]
    fn kernels_are_found_by_name() {
        let text = "template <typename T> __global__ void __launch_bounds__(256, f(2))\n scale(const T* x) {}\n\
                    extern \"C\" __global__ void plain() {}\n static __global__ void\nodd (int);\n __global__ void plain();\n\
                    // __global__";
        assert_eq!(kernel_names(text), ["scale", "plain", "odd"]);
    }

    #[test]
    fn any_text_can_be_searched_for_kernels() {
        for text in [
            "__global__",
            "__global__(",
            "__global__ void __x__(",
            "__global__ ä(",
            "__global__ __global__ a(",
        ] {
            let _ = kernel_names(text);
        }
    }
}
