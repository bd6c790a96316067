//! Groups jobs into programs: kernels of one text that the same nodes use share an NVRTC program and a code object.
//! Depends on the project alone, so that every machine writes the same bytes.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use cubinder_manifest::resolve::Unit;
use cubinder_model::{Digest, Plugin, Variant};

use super::jobs::{CompileJobs, Job, PluginJobs, Program, UnitJob};

impl CompileJobs<'_> {
    pub(super) fn programs(&self) -> Vec<Program> {
        let of_plugin = |plugin: &PluginJobs<'_>| {
            let jobs = self.jobs.get(plugin.jobs.clone()).unwrap_or_default();
            programs(&plugin.plugin.resolved.draft.plugin, &plugin.units, jobs, plugin.jobs.start)
        };
        self.plugins.iter().flat_map(of_plugin).collect()
    }
}

/// Groups a plugin's jobs, of which the first is number `first`. Sorts a program by kernel.
fn programs(plugin: &Plugin, units: &[UnitJob<'_>], jobs: &[Job<'_>], first: usize) -> Vec<Program> {
    // NVRTC emits all kernels of a text except templates, whichever are named: rows do not divide those.
    let is_template = |unit: &Unit| unit.kernel.contains('<');
    let rows = rows(&plugin.variants);
    let mut used_by: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); jobs.len()];
    for UnitJob { unit, job } in units.iter().filter(|UnitJob { unit, .. }| is_template(unit)) {
        let job = job.and_then(|job| used_by.get_mut(job.checked_sub(first)?));
        if let (Some(used_by), Some(row)) = (job, rows.get(unit.variant)) {
            used_by.insert(*row);
        }
    }
    let mut groups: Vec<Program> = Vec::new();
    let mut known: HashMap<(&Path, &str, &BTreeSet<usize>), usize> = HashMap::new();
    for (index, (job, used_by)) in jobs.iter().zip(&used_by).enumerate() {
        let unit = &job.prepared.unit;
        let group = *known.entry((&unit.source.path, &unit.prelude.text, used_by)).or_insert(groups.len());
        if group == groups.len() {
            groups.push(Program::new());
        }
        if let Some(group) = groups.get_mut(group) {
            group.push(index);
        }
    }
    let kernel = |index: &usize| jobs.get(*index).map_or("", |job| job.unit.kernel.as_str());
    let mut programs = Vec::new();
    for mut group in groups {
        let text = group.first().and_then(|index| jobs.get(*index));
        let length = group.len();
        let number = text.filter(|job| is_template(job.unit)).map_or(1, |job| parts(length, job.text_length));
        group.sort_by_key(|index| kernel(index));
        let mut parts = vec![Program::new(); number];
        for (position, index) in group.into_iter().enumerate() {
            let part = if number == length { position } else { part(kernel(&index), number) };
            if let Some(part) = parts.get_mut(part) {
                part.push(first + index);
            }
        }
        programs.extend(parts.into_iter().filter(|part| !part.is_empty()));
    }
    programs
}

/// Numbers variants by the first one that serves the same nodes: engines contain code per node.
fn rows(variants: &[Variant]) -> Vec<usize> {
    let mut firsts: HashMap<String, usize> = HashMap::new();
    let row = |(index, variant): (usize, &Variant)| {
        let Variant { types, formats, specialized, .. } = variant;
        // Floats have no hash.
        *firsts.entry(format!("{types:?} {formats:?} {specialized:?}")).or_insert(index)
    };
    variants.iter().enumerate().map(row).collect()
}

/// Maximum bytes of a program's text, counted once per kernel: starting a program costs as much as 10 to 15 kernels of
/// 300 bytes (NVRTC 13.0).
const TEXT_PER_PROGRAM: usize = 48 << 10;

/// The number of programs grows with the square root of the number of kernels (2 above 40, 8 for 1000): processors
/// stay busy, and starting programs costs less than a tenth.
const KERNELS_OF_ONE: usize = 40;

/// Returns the number of programs: each kernel alone, or a power of two, which one more kernel rarely changes.
fn parts(kernels: usize, length: usize) -> usize {
    let text = kernels.saturating_mul(length);
    let mut parts = 1;
    while parts < kernels && (kernels > KERNELS_OF_ONE * parts * parts || text > TEXT_PER_PROGRAM * parts) {
        parts *= 2;
    }
    parts.min(kernels)
}

/// Returns a kernel's part, which other kernels do not change.
fn part(kernel: &str, parts: usize) -> usize {
    let [a, b, c, d, ..] = Digest::compute(kernel.as_bytes()).0;
    u32::from_le_bytes([a, b, c, d]) as usize % parts
}

#[cfg(test)]
mod tests {
    use cubinder_expr::{DataType, Format, Value};

    use super::*;

    #[test]
    fn groups_are_divided_by_text_and_number() {
        let counts = [1, 10, 40, 41, 100, 160, 161, 1000].map(|kernels| (kernels, parts(kernels, 300)));
        let expected = [(1, 1), (10, 1), (40, 1), (41, 2), (100, 2), (160, 2), (161, 4), (1000, 8)];
        assert_eq!(counts, expected);
        assert_eq!([1, 2, 3, 8].map(|kernels| parts(kernels, 30 << 10)), [1, 2, 2, 8]);
        assert_eq!(parts(3, usize::MAX), 3);
    }

    #[test]
    fn one_more_kernel_changes_one_program() {
        let kernels = |count: usize| (0..count).map(|number| format!("k<{number}>"));
        let of = |count: usize| kernels(count).map(|kernel| part(&kernel, 8)).collect::<Vec<_>>();
        assert_eq!(of(1000), of(1001)[..1000]);
        let sizes = (0..8).map(|part| of(1000).iter().filter(|of| **of == part).count());
        assert!(sizes.clone().all(|size| (90..160).contains(&size)), "{:?}", sizes.collect::<Vec<_>>());
    }

    #[test]
    fn rows_serve_the_same_nodes() {
        let variant = |ty, specialized: &[(u32, Value)]| Variant {
            id: 1,
            label: String::new(),
            types: vec![ty],
            formats: vec![Format::Linear],
            specialized: specialized.to_vec(),
            guard: None,
            scratch: Vec::new(),
            steps: Vec::new(),
        };
        let (one, two) = ([(0, Value::Int(1))], [(0, Value::Int(2))]);
        let variants = vec![
            variant(DataType::F32, &one),
            variant(DataType::F16, &one),
            variant(DataType::F32, &two),
            variant(DataType::F32, &one),
            variant(DataType::F16, &[]),
        ];
        assert_eq!(rows(&variants), [0, 1, 2, 0, 4]);
    }
}
