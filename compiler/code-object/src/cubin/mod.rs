//! Reading code objects: which kernels are inside, their parameters, registers, shared memory.
//!
//! Owns: the layout of NVIDIA's cubins as far as it is needed ([`read`]), and a light reader of PTX ([`read_ptx`]).
//! Never: no trust in the bytes. Any input gives facts or an error, never a panic.
//!
//! Nothing of the format is documented by NVIDIA. What is stated here was read off the output of NVRTC 12.9 (ABI version 7
//! for architectures below 10.0, 8 from there on) and 13.0 (ABI version 8), for architectures 5.2 to 12.1.

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

/// What a cubin says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CubinFacts {
    /// The architecture as a number: 89. A suffix is not always there: NVRTC 13.0 writes the same header for `sm_90` and `sm_90a`
    /// ([`cubin_origin`] looks further).
    pub arch: u32,
    /// The kernels, sorted by symbol.
    pub kernels: Vec<KernelFacts>,
    /// What each of them demands of its launch, by symbol.
    pub rules: BTreeMap<String, LaunchRules>,
}

/// What a kernel demands of its launch besides what its [`KernelFacts`] say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaunchRules {
    /// The one size that its blocks may have, in x, y and z: `__block_size__` in CUDA, `.reqntid` in PTX.
    pub block: Option<[u32; 3]>,
    /// Its clusters, where it has more than one block in them: `__cluster_dims__` in CUDA.
    pub cluster: Option<Cluster>,
    /// Whether the grid counts clusters: `.blocksareclusters` in PTX. Of cubins it is not known.
    pub blocks_are_clusters: bool,
    /// The most blocks of its clusters, where it says so: the third number of `__launch_bounds__` in CUDA, `.maxclusterrank` in PTX.
    pub max_cluster: Option<u32>,
    /// Of PTX how many blocks should fit a multiprocessor at the same time, where it says so: the second number of `__launch_bounds__` in CUDA,
    /// `.minnctapersm` in PTX.
    pub min_blocks: Option<u32>,
    /// Of PTX the most registers of a thread, where it says so: `__maxnreg__` in CUDA, `.maxnreg` in PTX.
    pub max_registers: Option<u32>,
    /// Of PTX the static shared memory that it declares, in bytes: at least so much. 0 for cubins, whose facts have all of it.
    pub shared_bytes: u32,
    /// Whether it has dynamic shared memory.
    pub dynamic_shared: Dynamic,
}

/// Whether a kernel has dynamic shared memory: `extern __shared__` in CUDA, `.extern .shared` in PTX.
///
/// Of cubins the section `.nv.shared.NAME` tells (ptxas 12.9 and 13.0): it is there where the kernel has any shared memory, with the bytes of the
/// static part. Where one kernel of a PTX module has dynamic shared memory, all of them get the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dynamic {
    /// It has none.
    No,
    /// It has some.
    Yes,
    /// The code does not tell: a cubin's kernel with static shared memory may have both, and one of several kernels may have what another
    /// has.
    #[default]
    NotTold,
}

/// Clusters of blocks (9.0 and later).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cluster {
    /// Of these many blocks in x, y and z.
    Of([u32; 3]),
    /// Of the size that the launch says.
    AtLaunch,
}

impl Cluster {
    /// A cluster of one block is none.
    fn from_size(size: [u32; 3]) -> Option<Cluster> {
        (size != [1, 1, 1]).then_some(Cluster::Of(size))
    }
}

/// Why bytes are no cubin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CubinError {
    /// Not ELF, or damaged.
    #[error("not a readable ELF file: {0}")]
    Elf(String),
    /// ELF, but for another machine.
    #[error("an ELF file for machine {0}, not for NVIDIA GPUs (190)")]
    Machine(u16),
    /// A version of the ABI whose layout is not known.
    #[error("the cubin has ABI version {0}, which is not known: expected 7 or 8")]
    Abi(u8),
    /// The notes about a kernel make no sense.
    #[error("the notes about `{kernel}` are damaged: {what}")]
    Info {
        /// The section they are in.
        kernel: String,
        /// What is wrong.
        what: String,
    },
    /// Not PTX text.
    #[error("not readable PTX: {0}")]
    Ptx(String),
}

impl From<object::read::Error> for CubinError {
    fn from(error: object::read::Error) -> CubinError {
        CubinError::Elf(error.to_string())
    }
}

type Header = FileHeader64<LittleEndian>;
type Sections<'a> = SectionTable<'a, Header>;

/// A function symbol with this bit in `st_other` is a kernel (`STO_CUDA_ENTRY`).
const STO_CUDA_ENTRY: u8 = 0x10;
/// From 9.0 on the system keeps this much of each kernel's shared memory, and the section's size counts it.
const RESERVED_SHARED_BYTES: u64 = 1024;
/// The section that says so.
const RESERVED_SHARED: &[u8] = b".nv.shared.reserved.0";

/// Reads a cubin.
///
/// # Errors
/// Where the bytes are no cubin, or one whose layout is not known.
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
    // Names that are no text may become the same one.
    kernels.dedup_by(|a, b| a.symbol == b.symbol);
    Ok(CubinFacts { arch, kernels, rules })
}

/// The architecture of the header as a number: 89.
fn arch_of(header: &Header) -> Result<u32, CubinError> {
    let flags = header.e_flags.get(LittleEndian).0;
    match header.e_ident.abi_version {
        7 => Ok(flags & 0xff),
        8 => Ok((flags >> 8) & 0xff),
        other => Err(CubinError::Abi(other)),
    }
}

/// Reads the kernels of a code object of either kind.
///
/// # Errors
/// As [`read`] and [`read_ptx`].
pub fn kernels(target: Target, bytes: &[u8]) -> Result<Vec<KernelFacts>, CubinError> {
    match target.kind {
        TargetKind::Cubin => Ok(read(bytes)?.kernels),
        TargetKind::Ptx | TargetKind::Native => Ok(read_ptx(bytes)?.kernels),
    }
}

/// What the kernel with this symbol demands of its launch; nothing where the code has no such kernel.
///
/// # Errors
/// As [`read`] and [`read_ptx`].
pub fn launch_rules(target: Target, bytes: &[u8], symbol: &str) -> Result<LaunchRules, CubinError> {
    let mut rules = match target.kind {
        TargetKind::Cubin => read(bytes)?.rules,
        TargetKind::Ptx | TargetKind::Native => read_ptx(bytes)?.rules,
    };
    Ok(rules.remove(symbol).unwrap_or_default())
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

/// The sections of a file by their names: a file with many kernels has as many times four of them. Of two with one name the first.
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

    /// The size of a section that has no bytes in the file.
    fn size_of(&self, name: &[u8]) -> Option<u64> {
        let header = self.0.get(name)?;
        (header.sh_type(LittleEndian) == SHT_NOBITS).then(|| header.sh_size(LittleEndian))
    }

    /// The number of registers in the code section's header: the highest byte of `sh_info`. Zero where it is not used.
    fn registers(&self, name: &[u8]) -> Option<u32> {
        Some(self.0.get(name)?.sh_info(LittleEndian) >> 24).filter(|registers| *registers > 0)
    }
}

#[cfg(test)]
mod tests;
