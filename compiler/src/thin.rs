//! Plugin libraries with the code of some GPUs alone, from libraries that were compiled before.
//!
//! Owns which files belong together and that all of them change or none. What stays is [`cubinder_model::thin`]'s business, and how a
//! bundle comes into a library is [`cubinder_library`]'s. Never compiles, never changes code.

use std::path::{Path, PathBuf};

use cubinder_launch::native::is_native;
use cubinder_library::Mode;
use cubinder_model::container::{self, Container};
use cubinder_model::fit::ComputeCapability;
use cubinder_model::provenance::{self, Section};
use cubinder_model::thin::{NoCode, thin as thin_bundle};
use cubinder_model::{Bundle, Digest};
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::source;
use cubinder_source::whole::{self, Draft, Placing, folder_of};

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// A library with a bundle. Of a library of ops and its code library, either.
    pub library: PathBuf,
    /// The GPUs whose code stays; at least one.
    pub devices: Vec<ComputeCapability>,
    /// Whether PTX stays that they could compile.
    pub ptx: bool,
    /// The folder for the results; none: they take the place of what was given.
    pub output: Option<PathBuf>,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The libraries.
    pub libraries: Vec<Thinned>,
    /// The digests of the bundles, before and after.
    pub bundle: (Digest, Digest),
    /// How many code objects there are, before and after.
    pub code_objects: (usize, usize),
    /// The targets whose code stays.
    pub targets: Vec<String>,
    /// Whether TensorRT launches the kernels of all plugins itself.
    pub is_native: bool,
}

/// A library that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thinned {
    /// The file.
    pub path: PathBuf,
    /// The part it plays.
    pub mode: Mode,
    /// Its size before and after, bytes.
    pub bytes: (u64, u64),
}

/// A library with its bundle's bytes.
struct Source {
    path: PathBuf,
    mode: Mode,
    length: u64,
    bundle: Vec<u8>,
}

/// Leaves out all code but that of some GPUs.
///
/// # Errors
/// What is no plugin library with a bundle; a library without the one that belongs to it; a kernel without code for one of the
/// GPUs; what cannot be written.
pub fn thin(request: &Request) -> Result<Outcome, Vec<Diagnostic>> {
    let one = |error: Diagnostic| vec![error];
    let named = open(&request.library).map_err(one)?;
    let partner = partner(&named).map_err(one)?;
    let smaller = match &partner {
        Some(partner) if partner.bundle != named.bundle => begun(&named, partner, request).map_err(one)?,
        _ => smaller(&named, request)?,
    };
    let sources: Vec<Source> = std::iter::once(named).chain(partner).collect();
    Ok(Outcome {
        libraries: write(&sources, &smaller.bytes, request.output.as_deref()).map_err(one)?,
        bundle: smaller.bundle,
        code_objects: smaller.code_objects,
        targets: smaller.targets,
        is_native: smaller.is_native,
    })
}

/// A bundle with what stays, and what was left out.
struct Smaller {
    bytes: Vec<u8>,
    bundle: (Digest, Digest),
    code_objects: (usize, usize),
    targets: Vec<String>,
    is_native: bool,
}

fn smaller(source: &Source, request: &Request) -> Result<Smaller, Vec<Diagnostic>> {
    let (bundle, before, sections) = read_bundle(source).map_err(|error| vec![error])?;
    let thinned = thin_bundle(&bundle, &request.devices, request.ptx);
    let thinned = thinned.map_err(|missing| missing.iter().map(no_code).collect::<Vec<_>>())?;
    let mut bytes = container::write_bundle(&thinned);
    let after = container::digest(&bytes);
    let (after, _) =
        after.map_err(|error| vec![Diagnostic::error(format!("the bundle does not read: {error}"))])?;
    if let Ok(Some(Section::Provenance(whole))) = provenance::find(sections, before) {
        bytes.extend(provenance::write(&whole.of_some(&bundle.code, &thinned.code), after));
    }
    let mut targets: Vec<_> = thinned.code.iter().map(|code| code.target).collect();
    targets.sort_unstable();
    targets.dedup();
    Ok(Smaller {
        bytes,
        bundle: (before, after),
        code_objects: (bundle.code.len(), thinned.code.len()),
        targets: targets.iter().map(ToString::to_string).collect(),
        is_native: !thinned.plugins.is_empty() && thinned.plugins.iter().all(is_native),
    })
}

/// What a run that was killed between the two libraries began: one of them holds what the other is to hold.
fn begun(named: &Source, partner: &Source, request: &Request) -> Result<Smaller, Diagnostic> {
    let made =
        |from: &Source, to: &Source| smaller(from, request).ok().filter(|made| made.bytes == to.bundle);
    made(named, partner).or_else(|| made(partner, named)).ok_or_else(|| {
        let why =
            format!("`{}` is not {}: it holds another bundle", partner.path.display(), what(named.mode));
        alone(named, why)
    })
}

fn cannot(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::error(format!("cannot {what} `{}`: {error}", path.display()))
}

fn open(path: &Path) -> Result<Source, Diagnostic> {
    let attached = match cubinder_library::read(path) {
        Ok(Some(attached)) => attached,
        Ok(None) => {
            return Err(Diagnostic::error(format!("`{}` holds no code", path.display()))
                .note("it is the library that runs engines, whatever code they carry")
                .help("name a library that `cubinder compile` wrote"));
        }
        Err(error) => return Err(engine(path).unwrap_or_else(|| error.to_diagnostic())),
    };
    let bytes = source::read(path, source::LARGEST_BINARY).map_err(|error| cannot("read", path, &error))?;
    let range = usize::try_from(attached.range.start).ok().zip(usize::try_from(attached.range.end).ok());
    let bundle = range.and_then(|(start, end)| bytes.get(start..end));
    let bundle = bundle.ok_or_else(|| cannot("read", path, &"it changed meanwhile"))?.to_vec();
    Ok(Source { path: path.to_owned(), mode: attached.mode, length: bytes.len() as u64, bundle })
}

/// The refusal for a file that is no library, where it is an engine, or a part of one.
fn engine(path: &Path) -> Option<Diagnostic> {
    let bytes = source::read(path, source::LARGEST_BINARY).ok()?;
    let is_elf = bytes.starts_with(b"\x7fELF");
    (!is_elf && container::scan(&bytes).next().is_some()).then(|| {
        Diagnostic::error(format!("`{}` is an engine, and an engine cannot be thinned", path.display()))
            .note("its format is TensorRT's own, with lengths and checks around what plugins leave in it")
            .help("thin the plugin library, and build the engine with that")
    })
}

/// The bundle, its digest, and what follows it.
fn read_bundle(source: &Source) -> Result<(Bundle, Digest, &[u8]), Diagnostic> {
    let unreadable = |why: &dyn std::fmt::Display| {
        cannot("read the bundle in", &source.path, why).help("compile it again")
    };
    match container::read(&source.bundle) {
        Ok(container::LocatedContainer { container: Container::Bundle(bundle), digest, length, .. }) => {
            Ok((bundle, digest, source.bundle.get(length..).unwrap_or_default()))
        }
        Ok(_) => Err(unreadable(&"it holds a node")),
        Err(error) => Err(unreadable(&error)),
    }
}

/// The library that belongs to this one: an engine whose nodes refer to a bundle needs the code library of just that bundle, so both hold
/// the same one, always.
fn partner(named: &Source) -> Result<Option<Source>, Diagnostic> {
    let mode = match named.mode {
        Mode::Ops => return Ok(None),
        Mode::OpsForLibrary => Mode::CodeLibrary,
        Mode::CodeLibrary => Mode::OpsForLibrary,
    };
    let what = what(named.mode);
    let file = named.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = file.strip_suffix(".so").unwrap_or(file);
    let other = match named.mode {
        Mode::CodeLibrary => stem.strip_suffix("-code").map(|stem| format!("{stem}.so")),
        Mode::Ops | Mode::OpsForLibrary => Some(format!("{stem}-code.so")),
    };
    let other = other.ok_or_else(|| {
        alone(named, format!("its name does not end with `-code.so`, so {what} is not known"))
    })?;
    let path = named.path.with_file_name(other);
    if !path.is_file() {
        return Err(alone(named, format!("{what}, `{}`, is not there", path.display())));
    }
    let partner = open(&path)?;
    if partner.mode != mode {
        return Err(alone(named, format!("`{}` is not {what}: it holds another bundle", path.display())));
    }
    Ok(Some(partner))
}

/// What belongs to a library of a mode.
fn what(mode: Mode) -> &'static str {
    match mode {
        Mode::CodeLibrary => "the library of ops that belongs to it",
        Mode::Ops | Mode::OpsForLibrary => "its code library",
    }
}

fn alone(named: &Source, why: String) -> Diagnostic {
    Diagnostic::error(format!("cannot thin `{}` alone", named.path.display()))
        .note(why)
        .note("engines name the code library by the digest of its bundle, which changes: so the two have to change together")
        .help("put both beside each other as `cubinder compile --embed` wrote them")
}

fn no_code(missing: &NoCode) -> Diagnostic {
    let NoCode { plugin, kernels, device, targets, has_ptx } = missing;
    let kernels: Vec<String> = kernels.iter().map(|kernel| format!("`{kernel}`")).collect();
    let gpu = format!("sm_{}{}", device.major, device.minor);
    let targets: Vec<String> = targets.iter().map(|target| format!("`{target}`")).collect();
    let error = Diagnostic::error(format!("nothing of {plugin} would run on {gpu}"))
        .note(format!("kernels without code for it: {}", kernels.join(", ")))
        .note(format!("they were compiled for {}", targets.join(", ")));
    match has_ptx {
        true => error.help("its PTX would: leave out `--no-ptx`, or compile it for that GPU too"),
        false => error.help(format!("compile it for that GPU too: `--target {gpu}`")),
    }
}

/// Writes all libraries or none: each is made whole beside its place, and then renamed.
fn write(sources: &[Source], bundle: &[u8], output: Option<&Path>) -> Result<Vec<Thinned>, Diagnostic> {
    let mut made = Vec::new();
    for source in sources {
        let folder = output.unwrap_or_else(|| folder_of(&source.path));
        std::fs::create_dir_all(folder).map_err(|error| whole::cannot("make the folder", folder, &error))?;
        let path = folder.join(source.path.file_name().unwrap_or_default());
        if path.is_dir() {
            return Err(cannot("write", &path, &"it is a folder"));
        }
        let draft = cubinder_library::draft(&source.path, bundle, source.mode, &path);
        let draft = draft.map_err(|error| error.to_diagnostic())?;
        let after = draft.file().metadata().map_err(|error| cannot("read", &path, &error))?.len();
        made.push((draft, Thinned { path, mode: source.mode, bytes: (source.length, after) }));
    }
    let (drafts, made): (Vec<Draft>, Vec<Thinned>) = made.into_iter().unzip();
    let placings = drafts.into_iter().zip(&made).map(|(draft, made)| Placing { draft, place: &made.path });
    whole::place_all(placings.collect()).map_err(|refused| refused.told())?;
    Ok(made)
}
