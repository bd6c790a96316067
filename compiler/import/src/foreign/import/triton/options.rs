//! Compares compiler options in `NAME.json` other than types, constants and launch settings.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Compiled;
use super::listing::list_folders;

/// Determined by architecture, result (`CUDAOptions`, `make_cubin`: `triton/backends/nvidia/compiler.py`, 3.9) or launch.
const NO_OPTIONS: &str = "arch warp_size supported_fp8_dtypes deprecated_fp8_dot_operand_dtypes allowed_dot_input_precisions \
                          max_num_imprecise_acc_default backend_name cluster_dims tmem_size global_scratch_align profile_scratch_align";

/// May differ between GPUs.
const VERSION: &str = "triton_version";

/// Paths become file names: folders differ between machines.
fn options(compiled: &Compiled) -> impl Iterator<Item = (&str, String)> {
    let is_option = |key: &str| NO_OPTIONS.split(' ').all(|other| other != key);
    let rest = compiled.metadata.rest.iter().filter(move |(key, _)| is_option(key));
    let version = compiled.metadata.triton_version.as_ref();
    let rest = rest.map(|(key, value)| (key.as_str(), shown(value)));
    rest.chain(version.map(|version| (VERSION, format!("{version:?}"))))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{:?}", text.rsplit('/').next().unwrap_or_default()),
        Value::Array(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Missing options do not differ.
pub(super) fn differences(all: &[&Compiled]) -> Vec<String> {
    let mut values: BTreeMap<&str, BTreeMap<String, Vec<&Compiled>>> = BTreeMap::new();
    for compiled in all {
        for (key, value) in options(compiled) {
            values.entry(key).or_default().entry(value).or_default().push(compiled);
        }
    }
    let differing = values.into_iter().filter(|(_, values)| values.len() > 1);
    let said = |(value, all): (String, Vec<&Compiled>)| format!("{value} in {}", list_folders(&all));
    let line = |(key, values): (&str, BTreeMap<String, Vec<&Compiled>>)| {
        format!("`{key}` is {}", values.into_iter().map(said).collect::<Vec<_>>().join(", and "))
    };
    differing.map(line).collect()
}

pub(super) fn remarks(all: &[Compiled]) -> Vec<String> {
    let all: Vec<&Compiled> = all.iter().collect();
    let remark = |difference: String| {
        format!(
            "{difference}. Results may therefore depend on the GPU, the type or the variant: compile all with one value to prevent this"
        )
    };
    let is_option = |difference: &String| !difference.starts_with(&format!("`{VERSION}`"));
    differences(&all).into_iter().filter(is_option).map(remark).collect()
}
