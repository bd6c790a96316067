//! Reads a code file: format, target, kernels, and whether a driver could load it.

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

const MAX_BYTES: usize = 64 << 20;

/// Functions of every driver, for `printf`, `assert`, `malloc` and `free` (CUDA C++ Programming Guide 13.0, "Formatted
/// Output", "Assertion", "Dynamic Global Memory Allocation"; nvcc 13.0).
const OF_THE_DRIVER: [&str; 4] = ["vprintf", "__assertfail", "malloc", "free"];

/// Reads a file of the stated `kind`; errors have no span.
pub fn load(path: &Path, kind: CodeKind) -> Result<LoadedCode, Diagnostic> {
    let bytes = source::bytes(path, MAX_BYTES).map_err(|reason| UnreadableFile { reason })?;
    let loaded = load_bytes(&path::shown(path).display().to_string(), bytes, kind)?;
    Ok(LoadedCode { triton: beside(path), ..loaded })
}

/// Reads Triton's text beside the code, if valid.
fn beside(path: &Path) -> Option<Function> {
    let bytes = source::bytes(&path.with_extension("ttir"), MAX_BYTES).ok()?;
    ttir::function(std::str::from_utf8(&bytes).ok()?).ok()
}

/// Parses bytes; errors show `name` and have no span.
pub fn load_bytes(name: &str, bytes: Vec<u8>, kind: CodeKind) -> Result<LoadedCode, Diagnostic> {
    parse(bytes, kind)
        .map_err(|Unusable { why, libdevice, fix }| UnusableFile { name, why, libdevice, fix }.into())
}

#[derive(Debug)]
struct Unusable {
    why: String,
    libdevice: Option<&'static str>,
    fix: Option<&'static str>,
}

impl Unusable {
    fn new(why: impl Into<String>, fix: Option<&'static str>) -> Unusable {
        Unusable { why: why.into(), libdevice: None, fix }
    }
}

impl From<CubinError> for Unusable {
    fn from(error: CubinError) -> Unusable {
        let fix = matches!(error, CubinError::Machine(_)).then_some(
            "write a cubin with `nvcc -cubin -arch=sm_90`; GPU code inside a host object file or library cannot be loaded",
        );
        Unusable::new(error.to_string(), fix)
    }
}

/// First architecture with suffixes: `sm_90a` (PTX ISA 9.0, `.target`).
const FIRST_WITH_SUFFIX: u32 = 90;
const ELF: &[u8] = b"\x7fELF";
const ARCHIVE: &[u8] = b"!<arch>\n";

fn parse(bytes: Vec<u8>, kind: CodeKind) -> Result<LoadedCode, Unusable> {
    let unusable = |why: &str, fix| Err(Unusable::new(why, Some(fix)));
    if bytes.is_empty() {
        return Err(Unusable::new("it is empty", None));
    }
    if cubin::is_fatbin(&bytes) {
        return unusable(
            "it is a fatbin, which contains several code objects",
            "write one file for each: `nvcc -cubin -arch=sm_90`, `nvcc -ptx -arch=compute_80`; or extract them with \
             `cuobjdump -xelf all FILE` and `cuobjdump -xptx all FILE`",
        );
    }
    if bytes.starts_with(ARCHIVE) {
        return unusable("it is an archive of object files", "use a cubin: `nvcc -cubin -arch=sm_90`");
    }
    let loaded = match (kind, bytes.starts_with(ELF)) {
        (CodeKind::Cubin, true) => read_cubin(bytes)?,
        (CodeKind::Ptx, false) => read_ptx(bytes)?,
        (CodeKind::Ptx, true) => return unusable("it is machine code, not PTX", "list it in `cubin`"),
        (CodeKind::Cubin, false) if cubin::read_ptx(&bytes).is_ok() => {
            return unusable("it is PTX, not machine code", "list it in `ptx`");
        }
        (CodeKind::Cubin, false) => return Err(Unusable::new("it is not a cubin: not an ELF file", None)),
    };
    if loaded.kernels.is_empty() {
        let fix = "mark kernels with `__global__`, and instantiate templates";
        return unusable("it has no kernel", fix);
    }
    // The runtime library would reject it.
    match image::check(loaded.target.kind, &loaded.bytes) {
        Ok(()) => Ok(loaded),
        Err(why) => unusable(&why.to_string(), "compile the file again"),
    }
}

/// Restores the final zero of NVRTC's output, which CuPy (14.2) strips like a NUL.
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
        let fix = "compile without `-dc` and `-rdc=true`; or link it with its dependencies: `nvlink -arch=sm_90 -o linked.cubin a.cubin b.cubin`";
        return Err(Unusable::new("it is not linked", Some(fix)));
    }
    check_defined(&origin.undefined)?;
    // Since compute capability 9.0, code can be architecture-specific; unknown code is assumed to be.
    let is_alone = origin.suffix.is_none() && facts.arch >= FIRST_WITH_SUFFIX;
    let unknown = if is_alone { ArchSuffix::Specific } else { ArchSuffix::None };
    let arch = arch(facts.arch, origin.suffix.unwrap_or(unknown))
        .ok_or_else(|| Unusable::new(format!("its architecture {} is invalid", facts.arch), None))?;
    let symbols = facts.kernels.iter().map(|kernel| kernel.symbol.as_str()).collect();
    Ok(LoadedCode {
        target: Target { kind: TargetKind::Cubin, arch },
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
        let fix = "compile for 64 bits (`-m64`); PTX without `.address_size` is for 32 bits";
        return Err(Unusable::new(format!("its addresses have {} bits", origin.address_bits), Some(fix)));
    }
    check_defined(&origin.undefined)?;
    let target = facts.target.replacen("sm_", "compute_", 1).parse::<Target>().map_err(|_| {
        Unusable::new(format!("its `.target`, `{}`, is an unknown architecture", facts.target), None)
    })?;
    // Some compilers include the NUL; the runtime library adds it.
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

fn check_defined(undefined: &[String]) -> Result<(), Unusable> {
    let missing = undefined.iter().map(String::as_str).filter(|name| !OF_THE_DRIVER.contains(name));
    let missing: Vec<&str> = missing.take(8).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let is_libdevice = missing.iter().any(|name| name.starts_with("__nv_"));
    let fix = "link its dependencies: `nvcc -cubin` of all sources together, `nvlink`, or nvJitLink (libdevice for LLVM's NVPTX)";
    Err(Unusable {
        libdevice: is_libdevice.then_some("functions `__nv_...` belong to NVIDIA's libdevice"),
        ..Unusable::new(format!("it uses {}, which it does not define", list(&missing)), Some(fix))
    })
}

fn arch(number: u32, suffix: ArchSuffix) -> Option<Arch> {
    let number = u8::try_from(number).ok()?;
    (number >= 10).then_some(Arch { major: number / 10, minor: number % 10, suffix })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8], kind: CodeKind) -> String {
        parse(bytes.to_vec(), kind).unwrap_err().why
    }

    fn ptx(target: &str, body: &str) -> Vec<u8> {
        format!(".version 9.0\n.target {target}\n.address_size 64\n{body}").into_bytes()
    }

    /// Files from CuPy and Numba.
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
            "it uses `__nv_sinf`, which it does not define"
        );
        let reads =
            format!(".extern .global .b8 table[4];\n{}", KERNEL.replace("ret;", "mov.u64 %rd1, table;"));
        assert_eq!(
            refused(&ptx("sm_80", &reads), CodeKind::Ptx),
            "it uses `table`, which it does not define"
        );
        assert_eq!(
            refused(&ptx("sm_x", KERNEL), CodeKind::Ptx),
            "its `.target`, `sm_x`, is an unknown architecture"
        );
        assert_eq!(refused(&ptx("sm_80", ""), CodeKind::Ptx), "it has no kernel");
        for (size, bits) in [(".address_size 32\n", 32), ("", 32)] {
            let text = format!(".version 9.0\n.target sm_80\n{size}{KERNEL}");
            let expected = format!("its addresses have {bits} bits");
            assert_eq!(refused(text.as_bytes(), CodeKind::Ptx), expected);
        }
        assert_eq!(refused(&ptx("sm_80", KERNEL), CodeKind::Cubin), "it is PTX, not machine code");
        assert_eq!(refused(b"", CodeKind::Cubin), "it is empty");
        assert_eq!(refused(b"no code", CodeKind::Cubin), "it is not a cubin: not an ELF file");
        assert_eq!(refused(b"no code", CodeKind::Ptx), "invalid PTX: missing `.version`");
        assert_eq!(refused(b"\x7fELF", CodeKind::Ptx), "it is machine code, not PTX");
        assert!(refused(b"\x50\xed\x55\xba\x01\x00", CodeKind::Cubin).starts_with("it is a fatbin"));
        assert!(refused(b"!<arch>\nx", CodeKind::Cubin).starts_with("it is an archive"));
    }
}
