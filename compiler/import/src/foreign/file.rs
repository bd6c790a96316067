//! One file of code: what it is, what it is for, what is in it, and whether a driver could load it.

use std::collections::BTreeMap;
use std::path::Path;

use cubinder_model::image::{self, Malformed};
use cubinder_model::{Arch, ArchSuffix, Target, TargetKind};

use super::errors::{UnreadableFile, UnusableFile};
use super::ttir;
use crate::cubin::{self, CubinError};
use crate::diagnostic::Diagnostic;
use crate::loaded::{Function, LoadedCode};
use crate::manifest::CodeKind;
use crate::manifest::toml_reader::list;
use crate::path;
use crate::signature;
use crate::source;

/// The largest file that is read.
const MAX_BYTES: usize = 64 << 20;

/// Functions that every driver has: what `printf`, `assert`, `malloc` and `free` of a kernel become (CUDA C++ Programming Guide 13.0,
/// "Formatted Output", "Assertion", "Dynamic Global Memory Allocation"; names as nvcc 13.0 writes them).
const OF_THE_DRIVER: [&str; 4] = ["vprintf", "__assertfail", "malloc", "free"];

/// Reads a file. `kind` is what the manifest says that it is.
///
/// # Errors
/// Why it cannot be used, without a place.
pub fn load(path: &Path, kind: CodeKind) -> Result<LoadedCode, Diagnostic> {
    let bytes = source::bytes(path, MAX_BYTES).map_err(|reason| UnreadableFile { reason })?;
    let loaded = loaded(&path::shown(path).display().to_string(), bytes, kind)?;
    Ok(LoadedCode { triton: beside(path), ..loaded })
}

/// What Triton says of a kernel beside its code. A text that is not there, or that is not understood, says nothing.
fn beside(path: &Path) -> Option<Function> {
    let bytes = source::bytes(&path.with_extension("ttir"), MAX_BYTES).ok()?;
    ttir::function(std::str::from_utf8(&bytes).ok()?).ok()
}

/// [`load`] of bytes; errors call them by this name.
///
/// # Errors
/// Why they cannot be used, without a place.
pub fn loaded(name: &str, bytes: Vec<u8>, kind: CodeKind) -> Result<LoadedCode, Diagnostic> {
    parse(bytes, kind).map_err(|why| {
        let fix = why.fix();
        let is_libdevice =
            matches!(&why, Unusable::Undefined(names) if names.iter().any(|name| name.starts_with("__nv_")));
        let libdevice = is_libdevice.then_some("functions `__nv_...` are of NVIDIA's libdevice");
        UnusableFile { name, why: why.to_string(), libdevice, fix }.into()
    })
}

/// Why bytes are no code that can be launched.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    #[error("it is empty")]
    Empty,
    #[error("it is a fatbin: several pieces of code in one file")]
    Fatbin,
    #[error("it is an archive of object files")]
    Archive,
    #[error("it is machine code, not PTX")]
    MachineCode,
    #[error("it is PTX, not machine code")]
    Ptx,
    #[error("it is no cubin: not an ELF file")]
    NoCubin,
    #[error("{0}")]
    Malformed(Malformed),
    #[error(transparent)]
    Code(#[from] CubinError),
    #[error("it has not been linked")]
    Unlinked,
    #[error("it uses {}, which it does not have", list(&.0.iter().map(String::as_str).collect::<Vec<_>>()))]
    Undefined(Vec<String>),
    #[error("its architecture, {0}, makes no sense")]
    Architecture(u32),
    #[error("its addresses have {0} bits")]
    AddressBits(u32),
    #[error("its `.target`, `{0}`, is no architecture that is known")]
    Target(String),
    #[error("it has no kernel")]
    NoKernel,
}

impl Unusable {
    /// How to fix it.
    fn fix(&self) -> Option<&'static str> {
        Some(match self {
            Unusable::Empty | Unusable::NoCubin | Unusable::Architecture(_) | Unusable::Target(_) => {
                return None;
            }
            Unusable::Fatbin => {
                "have the compiler write one file for each: `nvcc -cubin -arch=sm_90`, `nvcc -ptx -arch=compute_80`; `cuobjdump -xelf all FILE` and \
                 `cuobjdump -xptx all FILE` take a fatbin apart"
            }
            Unusable::Archive => "name a cubin: `nvcc -cubin -arch=sm_90`",
            Unusable::MachineCode => "name it in `cubin`",
            Unusable::Ptx => "name it in `ptx`",
            Unusable::Malformed(_) => "have the compiler write the file again",
            Unusable::Code(CubinError::Machine(_)) => {
                "an object file or library of the host has GPU code inside, if any, that cannot be launched from here: `nvcc -cubin -arch=sm_90` writes it alone"
            }
            Unusable::Code(_) => return None,
            Unusable::Unlinked => {
                "compile without `-dc` and `-rdc=true`; or link it, with all that it calls: `nvlink -arch=sm_90 -o linked.cubin a.cubin b.cubin`"
            }
            Unusable::Undefined(_) => {
                "link what it uses into it: `nvcc -cubin` of all sources together, `nvlink`, or nvJitLink (libdevice for LLVM's NVPTX)"
            }
            Unusable::AddressBits(_) => {
                "compile for 64 bits (`-m64`): PTX says `.address_size 64`, and is for 32 bits where it says nothing"
            }
            Unusable::NoKernel => "mark what is launched with `__global__`; of templates, instantiate one",
        })
    }
}

/// The first architecture that code can be specific to: `sm_90a` (PTX ISA 9.0, `.target`).
const FIRST_WITH_SUFFIX: u32 = 90;
/// How files of ELF begin.
const ELF: &[u8] = b"\x7fELF";
/// How archives begin.
const ARCHIVE: &[u8] = b"!<arch>\n";

fn parse(bytes: Vec<u8>, kind: CodeKind) -> Result<LoadedCode, Unusable> {
    if bytes.is_empty() {
        return Err(Unusable::Empty);
    }
    if cubin::is_fatbin(&bytes) {
        return Err(Unusable::Fatbin);
    }
    if bytes.starts_with(ARCHIVE) {
        return Err(Unusable::Archive);
    }
    let loaded = match (kind, bytes.starts_with(ELF)) {
        (CodeKind::Cubin, true) => read_cubin(bytes)?,
        (CodeKind::Ptx, false) => read_ptx(bytes)?,
        (CodeKind::Ptx, true) => return Err(Unusable::MachineCode),
        (CodeKind::Cubin, false) if cubin::read_ptx(&bytes).is_ok() => return Err(Unusable::Ptx),
        (CodeKind::Cubin, false) => return Err(Unusable::NoCubin),
    };
    if loaded.kernels.is_empty() {
        return Err(Unusable::NoKernel);
    }
    // The runtime would refuse it.
    image::check(loaded.target.kind, &loaded.bytes).map_err(Unusable::Malformed)?;
    Ok(loaded)
}

/// CuPy takes off the last byte of what NVRTC gives, as if it were the NUL of a text (seen with 14.2). It is a zero: the last one of a header.
fn completed(mut bytes: Vec<u8>) -> Vec<u8> {
    let len = bytes.len() as u64;
    if image::check(TargetKind::Cubin, &bytes) == Err(Malformed::CutOff { end: len + 1, len }) {
        bytes.push(0);
    }
    bytes
}

fn read_cubin(bytes: Vec<u8>) -> Result<LoadedCode, Unusable> {
    let bytes = completed(bytes);
    let facts = cubin::read(&bytes)?;
    let origin = cubin::cubin_origin(&bytes)?;
    if origin.is_relocatable {
        return Err(Unusable::Unlinked);
    }
    check_defined(&origin.undefined)?;
    // From 9.0 on code can be for one architecture alone: what neither header nor note tells is not taken to run elsewhere.
    let is_alone = origin.suffix.is_none() && facts.arch >= FIRST_WITH_SUFFIX;
    let unknown = if is_alone { ArchSuffix::Specific } else { ArchSuffix::None };
    let arch =
        arch(facts.arch, origin.suffix.unwrap_or(unknown)).ok_or(Unusable::Architecture(facts.arch))?;
    let symbols = facts.kernels.iter().map(|kernel| kernel.symbol.as_str()).collect();
    Ok(LoadedCode {
        target: Target { kind: TargetKind::Cubin, arch },
        // What cannot be read tells nothing.
        signatures: signature::read_cubin(&bytes, &symbols).unwrap_or_default(),
        kernels: facts.kernels,
        rules: facts.rules,
        release: origin.release,
        tool: origin.tool,
        ptx: None,
        triton: None,
        is_alone,
        bytes,
    })
}

fn read_ptx(mut bytes: Vec<u8>) -> Result<LoadedCode, Unusable> {
    let facts = cubin::read_ptx(&bytes)?;
    let origin = cubin::ptx_origin(&bytes)?;
    if origin.address_bits != 64 {
        return Err(Unusable::AddressBits(origin.address_bits));
    }
    check_defined(&origin.undefined)?;
    let target = facts.target.replacen("sm_", "compute_", 1).parse::<Target>();
    let target = target.map_err(|_| Unusable::Target(facts.target))?;
    // Compilers that give a text as C does write its NUL too. The run time puts one there.
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    Ok(LoadedCode {
        target,
        kernels: facts.kernels,
        rules: facts.rules,
        signatures: BTreeMap::new(),
        release: None,
        tool: String::new(),
        ptx: Some((facts.version, origin)),
        triton: None,
        is_alone: false,
        bytes,
    })
}

/// Checks that everything that the code calls and reads is in it, or in every driver.
fn check_defined(undefined: &[String]) -> Result<(), Unusable> {
    let missing = undefined.iter().filter(|name| !OF_THE_DRIVER.contains(&name.as_str()));
    let missing: Vec<String> = missing.take(8).cloned().collect();
    if missing.is_empty() { Ok(()) } else { Err(Unusable::Undefined(missing)) }
}

fn arch(number: u32, suffix: ArchSuffix) -> Option<Arch> {
    let number = u8::try_from(number).ok()?;
    (number >= 10).then_some(Arch { major: number / 10, minor: number % 10, suffix })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8], kind: CodeKind) -> String {
        parse(bytes.to_vec(), kind).unwrap_err().to_string()
    }

    fn ptx(target: &str, body: &str) -> Vec<u8> {
        format!(".version 9.0\n.target {target}\n.address_size 64\n{body}").into_bytes()
    }

    /// As CuPy and Numba write them: both are what the run time takes.
    #[test]
    fn a_byte_too_few_or_a_nul_too_many_is_mended() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/code/scale.sm_90.cubin");
        let whole = std::fs::read(path).unwrap();
        let short = whole[..whole.len() - 1].to_vec();
        assert_eq!(parse(short, CodeKind::Cubin).unwrap().bytes, whole);
        assert!(parse(whole[..whole.len() - 2].to_vec(), CodeKind::Cubin).is_err());
        let text = ptx("sm_80", KERNEL);
        for nuls in 0..3 {
            let written = [&text[..], &vec![0; nuls]].concat();
            assert_eq!(parse(written, CodeKind::Ptx).unwrap().bytes, text);
        }
        let cut = [&text[..], b"\0more"].concat();
        assert!(parse(cut, CodeKind::Ptx).is_err());
    }

    const KERNEL: &str = ".visible .entry k(.param .u64 p)\n{\n\tret;\n}\n";

    #[test]
    fn ptx_has_no_nul_and_is_for_what_it_says() {
        let loaded = parse(ptx("sm_90a", KERNEL), CodeKind::Ptx).unwrap();
        assert_eq!((loaded.target.to_string().as_str(), loaded.bytes.last()), ("compute_90a", Some(&b'\n')));
        let again = parse(loaded.bytes.clone(), CodeKind::Ptx).unwrap();
        assert_eq!(again, loaded);
        let printing = format!(".extern .func vprintf;\n{}", KERNEL.replace("ret;", "call vprintf;"));
        assert!(parse(ptx("sm_80", &printing), CodeKind::Ptx).is_ok());
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let calls = format!(
            ".extern .func (.param .f32 r) __nv_sinf(.param .f32 a);\n{}",
            KERNEL.replace("ret;", "call (r), __nv_sinf, (a);")
        );
        assert_eq!(
            refused(&ptx("sm_80", &calls), CodeKind::Ptx),
            "it uses `__nv_sinf`, which it does not have"
        );
        let reads =
            format!(".extern .global .b8 table[4];\n{}", KERNEL.replace("ret;", "mov.u64 %rd1, table;"));
        assert_eq!(refused(&ptx("sm_80", &reads), CodeKind::Ptx), "it uses `table`, which it does not have");
        assert_eq!(
            refused(&ptx("sm_x", KERNEL), CodeKind::Ptx),
            "its `.target`, `sm_x`, is no architecture that is known"
        );
        assert_eq!(refused(&ptx("sm_80", ""), CodeKind::Ptx), "it has no kernel");
        for (size, bits) in [(".address_size 32\n", 32), ("", 32)] {
            let text = format!(".version 9.0\n.target sm_80\n{size}{KERNEL}");
            let expected = format!("its addresses have {bits} bits");
            assert_eq!(refused(text.as_bytes(), CodeKind::Ptx), expected);
        }
        assert_eq!(refused(&ptx("sm_80", KERNEL), CodeKind::Cubin), "it is PTX, not machine code");
        assert_eq!(refused(b"", CodeKind::Cubin), "it is empty");
        assert_eq!(refused(b"no code", CodeKind::Cubin), "it is no cubin: not an ELF file");
        assert_eq!(refused(b"no code", CodeKind::Ptx), "not readable PTX: it has no `.version`");
        assert_eq!(refused(b"\x7fELF", CodeKind::Ptx), "it is machine code, not PTX");
        assert!(refused(b"\x50\xed\x55\xba\x01\x00", CodeKind::Cubin).starts_with("it is a fatbin"));
        assert!(refused(b"!<arch>\nx", CodeKind::Cubin).starts_with("it is an archive"));
    }
}
