//! Other compilers' code: readers reject with a message. Accepted code becomes a readable manifest with its parameters.
//! [`SECOND_FILE`] separates two files in any order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cubinder_analysis::precompiled::{self, CheckedCode};
use cubinder_code_object::loaded::LoadedCode;
use cubinder_import::foreign::{self, import};
use cubinder_manifest::manifest::CodeKind;
use cubinder_manifest::resolve;
use cubinder_model::KernelFacts;
use cubinder_source::diagnostic::{Source, has_errors};

use crate::Target;
use crate::seeds::{self, SECOND_FILE, SEPARATOR};
use crate::show::{show, show_refusal};

/// The reader of cubins.
pub static CUBIN: Target =
    Target::new("cubin", cubin, seeds::cubins, include_str!("../../dictionaries/cubin.dict"));

/// The reader of PTX.
pub static PTX: Target = Target::new("ptx", ptx, seeds::ptx, include_str!("../../dictionaries/ptx.dict"));

/// The readers of Triton's metadata.
pub static TRITON: Target =
    Target::new("triton", triton, seeds::triton, include_str!("../../dictionaries/triton.dict"));

const MOST_KERNELS: usize = 4;
/// More are slow.
const MOST_PARAMETERS: usize = 64;

fn cubin(bytes: &[u8]) {
    read(bytes, CodeKind::Cubin);
}

fn ptx(bytes: &[u8]) {
    read(bytes, CodeKind::Ptx);
}

fn read(bytes: &[u8], kind: CodeKind) {
    let at = bytes.windows(SECOND_FILE.len()).position(|window| window == SECOND_FILE);
    let (first, second) = match at {
        Some(at) => (&bytes[..at], Some(&bytes[at + SECOND_FILE.len()..])),
        None => (bytes, None),
    };
    let Some(first) = load(first, kind) else { return };
    accepted(&first, kind);
    let second = second.and_then(|bytes| {
        let kind = if bytes.starts_with(b"\x7fELF") { CodeKind::Cubin } else { CodeKind::Ptx };
        load(bytes, kind)
    });
    let files: Vec<Arc<LoadedCode>> = [Some(first), second].into_iter().flatten().map(Arc::new).collect();
    launched(&files);
}

fn load(bytes: &[u8], kind: CodeKind) -> Option<LoadedCode> {
    foreign::load_bytes("fuzz", bytes.to_vec(), kind).map_err(|error| show_refusal(&[error])).ok()
}

fn launched(files: &[Arc<LoadedCode>]) {
    let Some(first) = files.first() else { return };
    let kernels = first.kernels.iter().filter(|kernel| kernel.params.len() <= MOST_PARAMETERS);
    for kernel in kernels.take(MOST_KERNELS) {
        let Some(held) = held(kernel, files) else { continue };
        show(&held.diagnostics);
        assert_eq!(has_errors(&held.diagnostics), held.bound.is_none(), "{held:?}");
        let turned: Vec<Arc<LoadedCode>> = files.iter().rev().cloned().collect();
        let turned = self::held(kernel, &turned).expect("the manifest is unchanged");
        assert_eq!(held.bound, turned.bound, "{held:?} {turned:?}");
        if held.bound.is_some() {
            assert_eq!(held.cluster, turned.cluster);
        }
    }
}

fn held(kernel: &KernelFacts, files: &[Arc<LoadedCode>]) -> Option<CheckedCode> {
    let declared = kernel.params.iter().enumerate().map(|(index, param)| match param.size {
        8 if index == 0 => format!("\"p{index}: const f32*\""),
        8 => format!("\"p{index}: f32*\""),
        4 => format!("\"p{index}: i32\""),
        size => format!("\"p{index}: u8[{}]\"", size.max(1)),
    });
    let declared: Vec<String> = declared.collect();
    let args = kernel.params.iter().enumerate().map(|(index, param)| match param.size {
        8 if index == 0 => format!("p{index} = \"x\"\n"),
        8 => format!("p{index} = \"y\"\n"),
        4 => format!("p{index} = \"7\"\n"),
        size => format!("p{index} = \"[{}]\"\n", vec!["0"; (size.max(1) as usize).min(8)].join(", ")),
    });
    let text = format!(
        "schema = 1\n[plugin]\nname = \"fuzz\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\n[[outputs]]\nname = \"y\"\ntype = \"f32\"\nshape = \"x.shape\"\n\
         [[code]]\nname = \"k\"\nparameters = [{}]\nptx = [{}]\n[[launches]]\ncode = \"k\"\ngrid = [\"ceil_div(numel(x), 64)\"]\nblock = [\"64\"]\n[launches.args]\n{}",
        declared.join(", "),
        (0..files.len()).map(|index| format!("\"{index}\"")).collect::<Vec<_>>().join(", "),
        args.collect::<String>()
    );
    // Manifests cannot express all.
    let mut draft =
        resolve::compile(&Source::new("fuzz.toml", text)).map_err(|errors| show_refusal(&errors)).ok()?.draft;
    let mut unit = draft.units.pop().expect("one launch");
    unit.kernel.clone_from(&kernel.symbol);
    let code = unit.foreign.as_mut().expect("the launch is of code");
    code.signature.kernel.clone_from(&kernel.symbol);
    for (file, loaded) in code.files.iter_mut().zip(files) {
        file.loaded = Some(Arc::clone(loaded));
    }
    Some(precompiled::check(&draft.plugin, &unit))
}

fn accepted(loaded: &LoadedCode, kind: CodeKind) {
    assert!(!loaded.kernels.is_empty(), "code without a kernel");
    let object = loaded.object();
    assert_eq!(object.raw().expect("it is unchanged"), loaded.bytes.as_slice());
    for kernel in loaded.kernels.iter().take(MOST_KERNELS) {
        let found = import::found(&kernel.symbol, vec![(kind, PathBuf::from("fuzz"), loaded.clone())]);
        let code = &found.variants[0].codes[0];
        assert_eq!(code.params.len(), kernel.params.len(), "{}", kernel.symbol);
        let text = import::write(&found, Path::new("."));
        match resolve::read(&Source::new("fuzz.toml", text.as_str())) {
            Ok(resolved) => show(&resolved.warnings),
            Err(wrong) => {
                assert!(
                    !wrong.errors.iter().any(|error| error.code.is_some_and(|code| code.0 == "C0001")),
                    "{text}"
                );
                show_refusal(&wrong.errors);
            }
        }
    }
}

fn triton(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parts: Vec<&str> = text.split(char::from(SEPARATOR)).collect();
    parts.iter().for_each(|part| one_text(part));
    if parts.len() > 1 {
        folders(&parts);
    }
}

fn folders(parts: &[&str]) {
    let cache = tempfile::tempdir().expect("a folder");
    for (folder, texts) in ["one", "two"].iter().zip(parts.chunks(2)) {
        let folder = cache.path().join(folder);
        std::fs::create_dir(&folder).expect("a folder in it");
        let text = texts.get(1).copied().unwrap_or_default();
        for (name, text) in [("k.json", texts[0]), ("k.ttir", text), ("k.source", text)] {
            std::fs::write(folder.join(name), text).expect("a file in it");
        }
    }
    let lines = parts.get(4).copied().unwrap_or_default().lines();
    let constants: Vec<import::Constant> = lines.take(8).filter_map(|line| line.parse().ok()).collect();
    match import::triton(&[cache.path().to_owned()], None, &constants) {
        Ok(found) => {
            let text = import::write(&found, cache.path());
            assert!(toml::from_str::<toml::Table>(&text).is_ok(), "{text}");
            if let Err(wrong) = resolve::read(&Source::new("fuzz.toml", text.as_str())) {
                show_refusal(&wrong.errors);
            }
        }
        Err(errors) => show_refusal(&errors),
    }
}

fn one_text(text: &str) {
    if let Some(mistake) = import::mistake_of_metadata(text) {
        assert!(!mistake.is_empty());
    }
    if let Err(mistake) = foreign::ttir::function(text) {
        assert!(!mistake.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Arc<LoadedCode> {
        let path = seeds::root().join("tests/data/code").join(name);
        Arc::new(foreign::load(&path, CodeKind::Ptx).unwrap())
    }

    #[test]
    fn launches_are_held_against_both_files() {
        let (two, four) = (file("clusters_2.ptx"), file("clusters_4.ptx"));
        let kernel = &two.kernels[0];
        let alone = held(kernel, std::slice::from_ref(&two)).unwrap();
        assert_eq!((alone.bound.is_some(), alone.cluster), (true, Some([2, 1, 1])), "{alone:?}");
        let both = held(kernel, &[Arc::clone(&two), four]).unwrap();
        assert!(both.diagnostics.iter().any(|one| one.message.contains("different clusters")), "{both:?}");
    }
}
