//! Removes other GPUs' code from libraries that belong together, all or none. Never compiles or changes code.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cubinder_launch::native::is_native;
use cubinder_library::Mode;
use cubinder_model::container::{self, Container};
use cubinder_model::fit::ComputeCapability;
use cubinder_model::provenance::{self, Section};
use cubinder_model::thin::{NoCode, thin as thin_bundle};
use cubinder_model::{Bundle, Digest, Target};
use cubinder_source::atomic_file::{self, AtomicFile, parent_folder};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::words::quoted;

use crate::compile::draft_library;
use crate::errors::OneFileForTwo;

/// The result of thinning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinnedLibraries {
    /// The libraries.
    pub libraries: Vec<Thinned>,
    /// Bundle digests, before and after.
    pub bundle: (Digest, Digest),
    /// Numbers of code objects, before and after.
    pub code_objects: (usize, usize),
    /// Targets of the remaining code.
    pub targets: Vec<String>,
    /// Whether TensorRT launches all kernels.
    pub is_native: bool,
}

/// Where to write thinned libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination<'p> {
    /// Replace them.
    InPlace,
    /// A file for the only library.
    File(&'p Path),
    /// A folder.
    Folder(&'p Path),
}

/// A written library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thinned {
    /// The file.
    pub path: PathBuf,
    /// Whether it has ops, code or both.
    pub mode: Mode,
    /// Size before and after, bytes.
    pub bytes: (u64, u64),
}

struct Source {
    path: PathBuf,
    mode: Mode,
    length: u64,
    bundle: Vec<u8>,
}

#[derive(Clone, Copy)]
struct RetainedCode<'a> {
    devices: &'a [ComputeCapability],
    ptx: bool,
}

/// Keeps some GPUs' code in a library of ops and its code library; `library` is either. `ptx` keeps PTX that these GPUs
/// can compile.
///
/// # Errors
/// A missing bundle or partner library; a kernel without code for a GPU; one file for two libraries; I/O errors.
pub fn thin(
    library: &Path,
    devices: &[ComputeCapability],
    ptx: bool,
    destination: Destination<'_>,
) -> Result<ThinnedLibraries, Vec<Diagnostic>> {
    let retained = RetainedCode { devices, ptx };
    let named = open(library)?;
    let partner = partner(&named)?;
    if let (Destination::File(file), Some(partner)) = (destination, &partner) {
        let folder = parent_folder(file).display().to_string();
        return Err(OneFileForTwo {
            named: named.path.display().to_string(),
            partner: partner.path.display().to_string(),
            folder,
        }
        .into());
    }
    let (bytes, outcome) = match &partner {
        Some(partner) if partner.bundle != named.bundle => resume(&named, partner, retained)?,
        _ => smaller(&named, retained)?,
    };
    let sources: Vec<Source> = std::iter::once(named).chain(partner).collect();
    Ok(ThinnedLibraries { libraries: write(&sources, &bytes, destination)?, ..outcome })
}

fn smaller(
    source: &Source,
    retained: RetainedCode<'_>,
) -> Result<(Vec<u8>, ThinnedLibraries), Vec<Diagnostic>> {
    let (bundle, before, sections) = read_bundle(source)?;
    let thinned = thin_bundle(&bundle, retained.devices, retained.ptx);
    let thinned = thinned.map_err(|missing| missing.iter().map(no_code).collect::<Vec<_>>())?;
    let mut bytes = container::write_bundle(&thinned);
    let (after, _) = container::digest(&bytes)
        .map_err(|error| Diagnostic::error(format!("cannot read the bundle: {error}")))?;
    if let Ok(Some(Section::Provenance(whole))) = provenance::find(sections, before) {
        bytes.extend(provenance::write(&whole.retain_code(&bundle.code, &thinned.code), after));
    }
    let targets: BTreeSet<Target> = thinned.code.iter().map(|code| code.target).collect();
    let outcome = ThinnedLibraries {
        libraries: Vec::new(),
        bundle: (before, after),
        code_objects: (bundle.code.len(), thinned.code.len()),
        targets: targets.iter().map(ToString::to_string).collect(),
        is_native: !thinned.plugins.is_empty() && thinned.plugins.iter().all(is_native),
    };
    Ok((bytes, outcome))
}

/// Resumes an interrupted run: one library already has the new bundle.
fn resume(
    named: &Source,
    partner: &Source,
    retained: RetainedCode<'_>,
) -> Result<(Vec<u8>, ThinnedLibraries), Diagnostic> {
    let thinned =
        |from: &Source, to: &Source| smaller(from, retained).ok().filter(|(bytes, _)| *bytes == to.bundle);
    thinned(named, partner).or_else(|| thinned(partner, named)).ok_or_else(|| {
        let why = format!(
            "`{}` is not {}: it contains another bundle",
            partner.path.display(),
            partner_of(named.mode)
        );
        alone(named, why)
    })
}

fn cannot(action: &str, path: &Path, error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::error(format!("cannot {action} `{}`: {error}", path.display()))
}

fn open(path: &Path) -> Result<Source, Diagnostic> {
    let bytes = cubinder_library::read_file(path)?;
    let attached = match cubinder_library::read_bytes(path, &bytes) {
        Ok(Some(attached)) => attached,
        Ok(None) => {
            return Err(Diagnostic::error(format!("`{}` contains no code", path.display()))
                .note("it is the runtime library, without a bundle")
                .help("pass a library that `cubinder compile` wrote"));
        }
        Err(error) => return Err(engine(path, &bytes).unwrap_or_else(|| error.into())),
    };
    let range = usize::try_from(attached.range.start).ok().zip(usize::try_from(attached.range.end).ok());
    let bundle = range.and_then(|(start, end)| bytes.get(start..end));
    let bundle = bundle.ok_or_else(|| cannot("read", path, &"it was changed meanwhile"))?.to_vec();
    Ok(Source { path: path.to_owned(), mode: attached.mode, length: bytes.len() as u64, bundle })
}

fn engine(path: &Path, bytes: &[u8]) -> Option<Diagnostic> {
    let is_elf = bytes.starts_with(b"\x7fELF");
    (!is_elf && container::scan(bytes).next().is_some()).then(|| {
        Diagnostic::error(format!("cannot thin `{}`: it is an engine", path.display()))
            .note("engines are in TensorRT's format, with lengths and checksums around plugin data")
            .help("thin the plugin library, and rebuild the engine with it")
    })
}

fn read_bundle(source: &Source) -> Result<(Bundle, Digest, &[u8]), Diagnostic> {
    let unreadable =
        |why: &dyn std::fmt::Display| cannot("read the bundle in", &source.path, why).help("recompile it");
    match container::read(&source.bundle) {
        Ok(container::LocatedContainer { container: Container::Bundle(bundle), digest, length, .. }) => {
            Ok((bundle, digest, source.bundle.get(length..).unwrap_or_default()))
        }
        Ok(_) => Err(unreadable(&"it contains a node")),
        Err(error) => Err(unreadable(&error)),
    }
}

fn partner(named: &Source) -> Result<Option<Source>, Diagnostic> {
    let what = partner_of(named.mode);
    let file = named.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = file.strip_suffix(".so").unwrap_or(file);
    let (mode, other) = match named.mode {
        Mode::Ops => return Ok(None),
        Mode::OpsForLibrary => (Mode::CodeLibrary, Some(format!("{stem}-code.so"))),
        Mode::CodeLibrary => {
            (Mode::OpsForLibrary, stem.strip_suffix("-code").map(|stem| format!("{stem}.so")))
        }
    };
    let other = other.ok_or_else(|| {
        alone(named, format!("its name does not end with `-code.so`, so {what} is unknown"))
    })?;
    let path = named.path.with_file_name(other);
    if !path.is_file() {
        return Err(alone(named, format!("{what}, `{}`, does not exist", path.display())));
    }
    let partner = open(&path)?;
    if partner.mode != mode {
        return Err(alone(named, format!("`{}` is not {what}: it contains another bundle", path.display())));
    }
    Ok(Some(partner))
}

fn partner_of(mode: Mode) -> &'static str {
    match mode {
        Mode::CodeLibrary => "its plugin library",
        Mode::Ops | Mode::OpsForLibrary => "its code library",
    }
}

fn alone(named: &Source, why: String) -> Diagnostic {
    Diagnostic::error(format!("cannot thin only `{}`", named.path.display()))
        .note(why)
        .note("engines refer to the code library by the digest of its bundle, which changes: both must change together")
        .help("put both into one folder, as `cubinder compile --embed` wrote them")
}

fn no_code(missing: &NoCode) -> Diagnostic {
    let NoCode { plugin, kernels, device, targets, has_ptx } = missing;
    let gpu = format!("sm_{}{}", device.major, device.minor);
    let error = Diagnostic::error(format!("no code of {plugin} for {gpu}"))
        .note(format!("kernels without code for it: {}", quoted(kernels)))
        .note(format!("they were compiled for {}", quoted(targets)));
    match has_ptx {
        true => error.help("remove `--no-ptx` to keep its PTX, or also compile it for that GPU"),
        false => error.help(format!("also compile it for that GPU: `--target {gpu}`")),
    }
}

fn write(
    sources: &[Source],
    bundle: &[u8],
    destination: Destination<'_>,
) -> Result<Vec<Thinned>, Diagnostic> {
    let mut thinned = Vec::new();
    for source in sources {
        let path = match destination {
            Destination::InPlace => source.path.clone(),
            Destination::File(file) => file.to_owned(),
            Destination::Folder(folder) => folder.join(source.path.file_name().unwrap_or_default()),
        };
        let folder = parent_folder(&path);
        std::fs::create_dir_all(folder)
            .map_err(|error| atomic_file::file_error("create the folder", folder, &error))?;
        let (draft, after) = draft_library(&source.path, bundle, source.mode, &path)?;
        thinned.push((draft, Thinned { path, mode: source.mode, bytes: (source.length, after) }));
    }
    let (drafts, thinned): (Vec<AtomicFile>, Vec<Thinned>) = thinned.into_iter().unzip();
    let files = drafts.into_iter().zip(thinned.iter().map(|library| &library.path));
    atomic_file::persist_all(files.collect())?;
    Ok(thinned)
}
