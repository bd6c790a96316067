//! Reads cubins ([`read`]) and PTX ([`read_ptx`]). Any input must yield facts or an error, never a panic.
//!
//! NVIDIA does not document cubins; facts are from NVRTC 12.9 (ABI version 7 below 10.0, else 8) and 13.0 (version 8), for 5.2 to 12.1.

mod budget;
mod info;
mod origin;
mod ptx;

use std::collections::{BTreeMap, HashMap, HashSet};

use object::LittleEndian;
use object::elf::{EM_CUDA, FileHeader64, SHT_NOBITS, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};

use cubinder_model::{KernelFacts, Target, TargetKind};

use budget::Budget;
pub use origin::{CubinOrigin, cubin_origin, is_fatbin};

pub use ptx::{PtxEntry, PtxFacts, PtxOrigin, PtxParam, opaque, ptx_origin, read_ptx, renamed};

/// A cubin's facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CubinFacts {
    /// Architecture: 89. `sm_90` and `sm_90a` have the same header (NVRTC 13.0); see [`cubin_origin`].
    pub arch: u32,
    /// Kernels by symbol.
    pub kernels: Vec<KernelFacts>,
    /// Launch requirements by symbol.
    pub rules: BTreeMap<String, LaunchRules>,
}

/// Launch requirements that [`KernelFacts`] lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchRules {
    /// `__block_size__` in CUDA, `.reqntid` in PTX.
    pub block: Option<[u32; 3]>,
    /// `__cluster_dims__`, if several blocks.
    pub cluster: Option<Cluster>,
    /// `.blocksareclusters` in PTX: the grid counts clusters.
    pub blocks_are_clusters: bool,
    /// Maximum blocks per cluster: third number of `__launch_bounds__`, `.maxclusterrank`.
    pub max_cluster: Option<u32>,
    /// Minimum resident blocks: second number of `__launch_bounds__`, `.minnctapersm`; PTX only.
    pub min_blocks: Option<u32>,
    /// `__maxnreg__`, `.maxnreg`; PTX only.
    pub max_registers: Option<u32>,
    /// PTX's minimum static shared memory in bytes; 0 for cubins.
    pub shared_bytes: u32,
    /// Whether dynamic shared memory exists.
    pub dynamic_shared: Dynamic,
}

/// Presence of dynamic shared memory (`extern __shared__`, `.extern .shared`). Cubins have a section `.nv.shared.NAME`
/// with the static bytes for any shared memory (ptxas 12.9 and 13.0), for all kernels of a PTX module if one has
/// dynamic memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dynamic {
    /// The kernel has none.
    No,
    /// The kernel has some.
    Yes,
    /// Unknown: the section may have another cause.
    #[default]
    NotTold,
}

/// Clusters of blocks (9.0+).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cluster {
    /// Blocks in x, y and z.
    Of([u32; 3]),
    /// The launch chooses the size.
    AtLaunch,
}

impl Cluster {
    /// Treats clusters of one block as none.
    fn from_size(size: [u32; 3]) -> Option<Cluster> {
        (size != [1, 1, 1]).then_some(Cluster::Of(size))
    }
}

/// Why bytes are not a cubin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CubinError {
    /// Not ELF, or damaged.
    #[error("invalid ELF file: {0}")]
    Elf(String),
    /// ELF for another machine.
    #[error("an ELF file for machine {0}, not for NVIDIA GPUs (190)")]
    Machine(u16),
    /// Unknown ABI version.
    #[error("unknown cubin ABI version {0}: expected 7 or 8")]
    Abi(u8),
    /// Invalid notes of a kernel.
    #[error("the attributes of `{kernel}` in the cubin are invalid: {what}")]
    Info {
        /// Kernel.
        kernel: String,
        /// Error.
        what: String,
    },
    /// Not PTX.
    #[error("invalid PTX: {0}")]
    Ptx(String),
}

impl From<object::read::Error> for CubinError {
    fn from(error: object::read::Error) -> CubinError {
        CubinError::Elf(error.to_string())
    }
}

type Header = FileHeader64<LittleEndian>;
type Sections<'a> = SectionTable<'a, Header>;

/// Marks kernels in `st_other` of function symbols.
const STO_CUDA_ENTRY: u8 = 0x10;
/// Bytes that CUDA reserves since compute capability 9.0, included in the section's size.
const RESERVED_SHARED_BYTES: u64 = 1024;
/// Present if shared memory is reserved.
const RESERVED_SHARED: &[u8] = b".nv.shared.reserved.0";

/// Parses a cubin.
pub fn read(bytes: &[u8]) -> Result<CubinFacts, CubinError> {
    let header = Header::parse(bytes)?;
    let endian = header.endian()?;
    let machine = header.e_machine.get(endian);
    if machine != EM_CUDA {
        return Err(CubinError::Machine(machine.0));
    }
    let arch = arch_of(header)?;
    let sections = header.sections(endian, bytes)?;
    let symbols = sections.symbols(endian, bytes, object::elf::SHT_SYMTAB)?;
    let mut budget = Budget::for_file(bytes);
    let sections = SectionsByName::read(&sections, endian, &mut budget)?;
    let notes = sections.bytes(bytes, b".nv.info")?.unwrap_or_default();
    budget.spend(notes.len())?;
    let common = info::functions(notes)?;
    let (mut kernels, mut rules) = (Vec::new(), BTreeMap::new());
    let mut known: HashSet<&[u8]> = HashSet::new();
    for (index, symbol) in symbols.enumerate() {
        let is_kernel =
            symbol.st_type() == object::elf::STT_FUNC && symbol.st_other().0 & STO_CUDA_ENTRY != 0;
        if !is_kernel {
            continue;
        }
        let name = budget.name(symbols.symbol_name(endian, symbol)?)?;
        if known.insert(name) {
            let (facts, own) = kernel(&sections, bytes, name, common.get(&index.0), &mut budget)?;
            rules.insert(facts.symbol.clone(), own);
            kernels.push(facts);
        }
    }
    if kernels.len() > 1 {
        let are_unsure =
            rules.values_mut().filter(|own: &&mut LaunchRules| own.dynamic_shared == Dynamic::Yes);
        are_unsure.for_each(|own| own.dynamic_shared = Dynamic::NotTold);
    }
    kernels.sort_by(|a: &KernelFacts, b| a.symbol.cmp(&b.symbol));
    // Invalid names may convert to the same text.
    kernels.dedup_by(|a, b| a.symbol == b.symbol);
    Ok(CubinFacts { arch, kernels, rules })
}

fn arch_of(header: &Header) -> Result<u32, CubinError> {
    let flags = header.e_flags.get(LittleEndian).0;
    match header.e_ident.abi_version {
        7 => Ok(flags & 0xff),
        8 => Ok((flags >> 8) & 0xff),
        other => Err(CubinError::Abi(other)),
    }
}

/// Returns kernels and launch requirements by symbol.
pub fn kernels(
    target: Target,
    bytes: &[u8],
) -> Result<(Vec<KernelFacts>, BTreeMap<String, LaunchRules>), CubinError> {
    match target.kind {
        TargetKind::Cubin => read(bytes).map(|facts| (facts.kernels, facts.rules)),
        TargetKind::Ptx | TargetKind::Native => read_ptx(bytes).map(|facts| (facts.kernels, facts.rules)),
    }
}

fn kernel(
    sections: &SectionsByName<'_>,
    bytes: &[u8],
    symbol: &[u8],
    common: Option<&info::FunctionNotes>,
    budget: &mut Budget,
) -> Result<(KernelFacts, LaunchRules), CubinError> {
    let named = |prefix: &[u8]| [prefix, symbol].concat();
    let notes = sections.bytes(bytes, &named(b".nv.info."))?.unwrap_or_default();
    budget.spend(notes.len())?;
    let own = info::kernel(notes, &String::from_utf8_lossy(symbol))?;
    let shared = sections.size_of(&named(b".nv.shared."));
    let reserved = sections.size_of(RESERVED_SHARED).map_or(0, |_| RESERVED_SHARED_BYTES);
    let fixed = u32::try_from(shared.unwrap_or(0).saturating_sub(reserved)).unwrap_or(u32::MAX);
    let dynamic_shared = match (shared, fixed) {
        (None, _) => Dynamic::No,
        (Some(_), 0) => Dynamic::Yes,
        (Some(_), _) => Dynamic::NotTold,
    };
    let facts = KernelFacts {
        symbol: String::from_utf8_lossy(symbol).into_owned(),
        registers: common
            .and_then(|common| common.registers)
            .or_else(|| sections.registers(&named(b".text."))),
        shared_bytes: Some(fixed),
        local_bytes: common.and_then(|common| common.stack),
        max_threads: own.max_threads,
        params: own.params,
    };
    Ok((facts, LaunchRules { dynamic_shared, ..own.rules }))
}

/// Keeps the first of equal names.
struct SectionsByName<'a>(HashMap<&'a [u8], &'a SectionHeader64<LittleEndian>>);

impl<'a> SectionsByName<'a> {
    fn read(
        sections: &Sections<'a>,
        endian: LittleEndian,
        budget: &mut Budget,
    ) -> Result<SectionsByName<'a>, CubinError> {
        let mut by_name = HashMap::new();
        for header in sections.iter() {
            by_name.entry(budget.name(sections.section_name(endian, header)?)?).or_insert(header);
        }
        Ok(SectionsByName(by_name))
    }

    fn bytes<'b>(&self, bytes: &'b [u8], name: &[u8]) -> Result<Option<&'b [u8]>, CubinError> {
        self.0.get(name).map(|header| Ok(header.data(LittleEndian, bytes)?)).transpose()
    }

    /// Returns the size of a section without file contents.
    fn size_of(&self, name: &[u8]) -> Option<u64> {
        let header = self.0.get(name)?;
        (header.sh_type(LittleEndian) == SHT_NOBITS).then(|| header.sh_size(LittleEndian))
    }

    /// Returns the highest byte of `sh_info` unless 0.
    fn registers(&self, name: &[u8]) -> Option<u32> {
        Some(self.0.get(name)?.sh_info(LittleEndian) >> 24).filter(|registers| *registers > 0)
    }
}

#[cfg(test)]
mod tests;
