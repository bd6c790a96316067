//! Extracts the code objects of libraries, bundles, engines and precompiled files. Never runs or loads them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cubinder_manifest::manifest::toml_reader::is_identifier;
use cubinder_model::container;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::words::quoted;

use crate::errors::{
    DisassemblerFailed, DisassemblerNotStarted, NoCodeOfForm, NoCodeToExtract, NoDisassembler,
    UnreadableCodeObject,
};
use crate::inspect::{CodeReport, NativeReport, Report};

/// Form of extracted code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CodeForm {
    /// Machine code
    Cubin,
    /// PTX text
    Ptx,
    /// Disassembled machine code; needs `nvdisasm`
    Sass,
}

impl CodeForm {
    fn extension(self) -> &'static str {
        match self {
            CodeForm::Cubin => "cubin",
            CodeForm::Ptx => "ptx",
            CodeForm::Sass => "sass",
        }
    }

    fn is_form_of(self, target: &str) -> bool {
        target.starts_with("sm_") != (self == CodeForm::Ptx)
    }
}

/// A code object in the requested form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedCode {
    /// File name: plugin, target and start of the digest.
    pub name: String,
    /// Target: `sm_90`.
    pub target: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Extracts unique code objects of a report about `bytes`; `targets` selects some, unless empty.
///
/// # Errors
/// No code of the form and targets; a damaged code object; a missing or failing `nvdisasm`.
pub fn extract(
    report: &Report,
    bytes: &[u8],
    form: CodeForm,
    targets: &[String],
) -> Result<Vec<ExtractedCode>, Diagnostic> {
    let is_wanted = |target: &str| {
        form.is_form_of(target) && (targets.is_empty() || targets.iter().any(|it| it == target))
    };
    let mut wanted: BTreeMap<&str, &CodeReport> = BTreeMap::new();
    let code = report.containers.iter().flat_map(|container| &container.code);
    wanted.extend(code.filter(|code| is_wanted(&code.target)).map(|code| (code.digest.as_str(), code)));
    let mut extracted = Vec::new();
    for (_, found) in container::scan(bytes) {
        let Ok(found) = found else { continue };
        for object in found.container.code() {
            let digest = object.digest.to_string();
            let Some(code) = wanted.remove(digest.as_str()) else { continue };
            let raw = object
                .raw()
                .map_err(|error| UnreadableCodeObject { digest: digest.clone(), error: error.to_string() })?;
            extracted.push(named(report, code, form, raw.into_owned()));
        }
    }
    if let Some(code) = report.code.as_ref().filter(|code| is_wanted(&code.target)) {
        extracted.push(named(report, code, form, bytes.to_vec()));
    }
    let native = report.native.iter().filter(|kernel| is_wanted(&kernel.target));
    extracted.extend(native.filter_map(|kernel| native_text(kernel, bytes)));
    if extracted.is_empty() {
        return Err(nothing(report, form, targets));
    }
    if form == CodeForm::Sass {
        disassemble(&mut extracted)?;
    }
    Ok(extracted)
}

fn named(report: &Report, code: &CodeReport, form: CodeForm, bytes: Vec<u8>) -> ExtractedCode {
    let mut plugins = report.containers.iter().flat_map(|container| &container.plugins);
    let plugin = plugins.find(|plugin| {
        plugin.variants.iter().flat_map(|variant| &variant.code).any(|(_, digest)| *digest == code.digest)
    });
    let plugin = plugin.map_or("code", |plugin| plugin.name.as_str());
    ExtractedCode {
        name: file_name(plugin, &code.target, &code.digest, form),
        target: code.target.clone(),
        bytes,
    }
}

fn native_text(kernel: &NativeReport, bytes: &[u8]) -> Option<ExtractedCode> {
    let start = usize::try_from(*kernel.offsets.first()?).ok()?;
    let text = bytes.get(start..)?.get(..usize::try_from(kernel.bytes).ok()?)?;
    let op = kernel.op.rsplit("::").next().unwrap_or(&kernel.op);
    Some(ExtractedCode {
        name: file_name(op, &kernel.target, &kernel.digest, CodeForm::Ptx),
        target: kernel.target.clone(),
        bytes: text.to_vec(),
    })
}

/// Returns a name for the output folder; names in untrusted files may contain folders.
fn file_name(plugin: &str, target: &str, digest: &str, form: CodeForm) -> String {
    let digest = digest.get(..8).unwrap_or(digest);
    let [plugin, target] = [(plugin, "code"), (target, "target")]
        .map(|(name, other)| if is_identifier(name) { name } else { other });
    format!("{plugin}.{target}.{digest}.{}", form.extension())
}

fn nothing(report: &Report, form: CodeForm, targets: &[String]) -> Diagnostic {
    let file = report.file.to_string();
    let containers = report.containers.iter().flat_map(|container| &container.code);
    let known = containers
        .chain(&report.code)
        .map(|code| &code.target)
        .chain(report.native.iter().map(|kernel| &kernel.target));
    let known: BTreeSet<&String> = known.collect();
    if known.is_empty() {
        return NoCodeToExtract { file }.into();
    }
    let what = if form == CodeForm::Ptx { "PTX" } else { "machine code" };
    let targets = if targets.is_empty() { String::new() } else { format!(" for {}", quoted(targets)) };
    NoCodeOfForm { file, what, targets, known: quoted(known) }.into()
}

fn disassemble(code: &mut [ExtractedCode]) -> Result<(), Diagnostic> {
    let program = nvdisasm().ok_or_else(|| Diagnostic::from(NoDisassembler {}))?;
    for code in code {
        code.bytes = disassembled(&program, &code.bytes)?;
    }
    Ok(())
}

fn nvdisasm() -> Option<PathBuf> {
    let toolkit = std::env::var_os("CUDA_HOME").filter(|home| !home.is_empty());
    let toolkit = toolkit.map(|home| Path::new(&home).join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = toolkit.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("nvdisasm")).find(|program| program.is_file())
}

fn disassembled(program: &Path, cubin: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let run = || {
        let mut file = tempfile::Builder::new().prefix("cubinder-").suffix(".cubin").tempfile()?;
        file.write_all(cubin)?;
        Command::new(program).arg("--print-code").arg(file.path()).output()
    };
    let shown = program.display().to_string();
    let output =
        run().map_err(|error| DisassemblerNotStarted { program: shown.clone(), error: error.to_string() })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let log = String::from_utf8_lossy(&output.stderr);
    let lines = log.lines().map(str::to_owned).filter(|line| !line.trim().is_empty()).take(3).collect();
    Err(DisassemblerFailed { program: shown, status: output.status.to_string(), lines }.into())
}
