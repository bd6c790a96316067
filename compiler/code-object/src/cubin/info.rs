//! Parses `.nv.info` and `.nv.info.<kernel>`: records of format (1 none, 2 byte, 3 half word, 4 sized), attribute, and two bytes of value or length.

use std::collections::BTreeMap;

use cubinder_model::KernelParam;

use super::{Cluster, CubinError, LaunchRules};

const MAX_THREADS: u8 = 0x05;
const REQUIRED_THREADS: u8 = 0x10;
const FRAME_SIZE: u8 = 0x11;
const MIN_STACK_SIZE: u8 = 0x12;
const PARAM_INFO: u8 = 0x17;
const MAX_STACK_SIZE: u8 = 0x23;
const REGISTER_COUNT: u8 = 0x2f;
const CLUSTER_SIZE: u8 = 0x3d;
const IS_CLUSTERED: u8 = 0x3e;
/// Word for `.maxclusterrank` (ptxas 12.9 and 13.0).
const MAX_CLUSTER_RANK: u8 = 0x3f;
const PARAM_INFO_V2: u8 = 0x45;

/// 32,764 parameter bytes, at least one each.
const MAX_PARAMS: usize = 32_764;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FunctionNotes {
    pub(super) registers: Option<u32>,
    pub(super) stack: Option<u32>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct KernelNotes {
    pub(super) max_threads: Option<u32>,
    pub(super) rules: LaunchRules,
    pub(super) params: Vec<KernelParam>,
}

/// Parses `.nv.info` by symbol index.
pub(super) fn functions(notes: &[u8]) -> Result<BTreeMap<usize, FunctionNotes>, CubinError> {
    let mut functions: BTreeMap<usize, FunctionNotes> = BTreeMap::new();
    for record in records(notes, ".nv.info") {
        let (attribute, value) = record?;
        let ([symbol, number], true) = (words::<2>(value), value.len() >= 8) else { continue };
        let function = functions.entry(usize::try_from(symbol).unwrap_or(usize::MAX)).or_default();
        match attribute {
            REGISTER_COUNT => function.registers = Some(number),
            FRAME_SIZE | MIN_STACK_SIZE | MAX_STACK_SIZE => {
                function.stack = Some(function.stack.unwrap_or(0).max(number));
            }
            _ => {}
        }
    }
    Ok(functions)
}

pub(super) fn kernel(notes: &[u8], kernel: &str) -> Result<KernelNotes, CubinError> {
    let damaged = |what: String| CubinError::Info { kernel: kernel.to_owned(), what };
    let mut own = KernelNotes::default();
    let mut params: BTreeMap<u16, KernelParam> = BTreeMap::new();
    let (mut cluster, mut is_clustered) = (None, false);
    for record in records(notes, kernel) {
        let (attribute, value) = record?;
        match attribute {
            MAX_THREADS | REQUIRED_THREADS if value.len() >= 12 => {
                let threads = words::<3>(value).into_iter().fold(1_u32, u32::saturating_mul);
                own.max_threads = Some(own.max_threads.unwrap_or(u32::MAX).min(threads));
                if attribute == REQUIRED_THREADS {
                    own.rules.block = Some(words(value));
                }
            }
            CLUSTER_SIZE if value.len() >= 12 => cluster = Some(words(value)),
            IS_CLUSTERED => is_clustered = true,
            MAX_CLUSTER_RANK if value.len() >= 4 => {
                let [most] = words(value);
                own.rules.max_cluster = Some(most);
            }
            PARAM_INFO | PARAM_INFO_V2 => {
                let (ordinal, param) = param(value, attribute == PARAM_INFO_V2)
                    .ok_or_else(|| damaged("a parameter is truncated".to_owned()))?;
                if params.insert(ordinal, param).is_some() {
                    return Err(damaged(format!("duplicate parameter {ordinal}")));
                }
            }
            _ => {}
        }
    }
    let count = params.len();
    if count > MAX_PARAMS || params.keys().next_back().is_some_and(|last| usize::from(*last) + 1 != count) {
        return Err(damaged(format!(
            "{count} parameters, but not numbered from 0 to {}",
            count.saturating_sub(1)
        )));
    }
    own.params = params.into_values().collect();
    own.rules.cluster = match cluster {
        Some(size) => Cluster::from_size(size),
        None => is_clustered.then_some(Cluster::AtLaunch),
    };
    Ok(own)
}

/// Parses a word, ordinal, offset, and a word with the size in its upper 14 bits. Version 2 (above 4 KiB) has the
/// size in the lower half, then flags (0, or 0x0500 for pointers from 10.0 on; NVRTC 13.0 for 8.9, 9.0 and 12.0).
fn param(value: &[u8], is_v2: bool) -> Option<(u16, KernelParam)> {
    let last = u32::from_le_bytes(value.get(8..12)?.try_into().ok()?);
    let size = if is_v2 { last & 0xffff } else { last >> 18 };
    Some((half(value, 4)?, KernelParam { offset: u32::from(half(value, 6)?), size }))
}

pub(super) fn half(value: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(value.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn words<const N: usize>(value: &[u8]) -> [u32; N] {
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(value.chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    words
}

/// Stops at unknown formats.
fn records<'a>(
    notes: &'a [u8],
    kernel: &'a str,
) -> impl Iterator<Item = Result<(u8, &'a [u8]), CubinError>> + use<'a> {
    let mut rest = notes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let damaged = |what: String| Some(Err(CubinError::Info { kernel: kernel.to_owned(), what }));
        let Some((head, tail)) = rest.split_at_checked(4) else {
            rest = &[];
            return damaged("the last record is truncated".to_owned());
        };
        rest = tail;
        match head[0] {
            1..=3 => Some(Ok((head[1], &head[2..]))),
            4 => {
                let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
                let Some((value, tail)) = rest.split_at_checked(length) else {
                    rest = &[];
                    return damaged(format!("a record of {length} bytes exceeds its section"));
                };
                rest = tail;
                Some(Ok((head[1], value)))
            }
            format => {
                rest = &[];
                damaged(format!("unknown record format {format}"))
            }
        }
    })
}
