//! CUDA texts: spans are inside the text, launches can be checked against it.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use cubinder_cuda_text::cuda::{self, Kernels};
use cubinder_cuda_text::manifest_names::manifest_names;
use cubinder_manifest::resolve::{self, Resolved};
use cubinder_source::diagnostic::{Diagnostic, Source};

use crate::manifest::check_kernels;
use crate::show::show;
use crate::{Target, seeds};

/// The reader of CUDA texts, and checks of launches.
pub static TARGET: Target =
    Target::new("cuda", run, seeds::kernels, include_str!("../../dictionaries/cuda.dict"));

const MANIFEST: &str = r#"schema = 1
[plugin]
name = "fuzz"
namespace = "fuzz"
version = "1"
[attributes.pads]
type = "i32[]"
[[inputs]]
name = "x"
type = "T"
rank = "1..=8"
[[outputs]]
name = "y"
type = "T"
shape = "x.shape"
[types]
T = ["f32", "f16"]
[constants]
VEC = 4
[[launches]]
source = "fuzz.cu"
kernel = "scale<T, VEC>"
grid = ["numel(y)"]
block = [VEC]
[launches.args]
x = "x"
y = "y"
count = "numel(y)"
factor = 0.5
flag = true
pads = "[get(pads, i, 0) for i in range(4)]"
"#;

static PLUGIN: LazyLock<Resolved> = LazyLock::new(|| {
    let text = MANIFEST.replace("[VEC]", "[\"VEC\"]");
    resolve::compile(&Source::new("fuzz.toml", text)).expect("the manifest is valid")
});

const MOST_LAUNCHED: usize = 8;

fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let kernels = cuda::read(text);
    places(text, &kernels);
    for name in manifest_names(text) {
        assert!(text.contains(&name), "an unknown name: {name}");
    }
    let source = Source::new("fuzz.cu", text);
    launch(&PLUGIN, &source);
    for kernel in kernels.kernels.iter().take(MOST_LAUNCHED) {
        let mut resolved = PLUGIN.clone();
        resolved.draft.units.iter_mut().for_each(|unit| unit.kernel = kernel.usage());
        launch(&resolved, &source);
    }
}

fn places(text: &str, kernels: &Kernels) {
    for kernel in &kernels.kernels {
        assert!(kernel.is_named(&kernel.path()), "{kernel:?}");
        assert!(text.get(kernel.params_range.clone()).is_some(), "{kernel:?}");
        let name = text.get(kernel.name_range.clone());
        // Only continued lines differ.
        assert!(name.is_some_and(|name| name == kernel.name || name.contains('\\')), "{kernel:?}");
        for param in &kernel.params {
            assert!(text.get(param.range.clone()).is_some(), "{param:?}");
        }
        if let Some(doubt) = &kernel.doubt {
            assert!(!doubt.to_string().is_empty());
        }
    }
    for doubt in &kernels.doubts {
        assert_eq!(kernels.doubts.iter().filter(|other| *other == doubt).count(), 1, "{doubt:?} twice");
    }
}

fn launch(resolved: &Resolved, source: &Arc<Source>) {
    let open = |_: &Path| -> Result<Arc<Source>, Vec<Diagnostic>> { Ok(Arc::clone(source)) };
    show(&check_kernels(resolved, &open).diagnostics);
}
