//! Cases for native plugins, to compare the routes' bytes on a GPU: random nodes ([`fn@write`]) for every runnable
//! variant since compute capability 8.0.

use std::path::Path;

use anyhow::{Context, Result, bail};
use cubinder_expr::Value;
use cubinder_launch as launch;
use cubinder_launch::native::SHARED_BYTES;
use cubinder_launch::{Device, Facts, GuardVerdict, LaunchLimits, Steps, output_shapes, sequence, verdict};
use cubinder_model::Plugin;
use cubinder_node::query::{DEFAULT_ALIGNMENT, Query, RawAttributeValue};
use cubinder_node::trial::shapes::{self, Sizes};
use toml::Table;

use crate::native_route::{bundle, known};

/// Nodes per plugin, before removing duplicates.
pub const NODES: u64 = 60;

const SHIPPED: &str = "tests/data/testing/shipped";

/// The supported GPUs' minimum: 8.6, 8.9 and 12.0 limit a block to 99 KiB of shared memory (CUDA C++ programming guide
/// 13.0, "technical specifications per compute capability").
const DEVICE: Device = Device { sms: 40, shared_bytes: 99 << 10, capability: 80 };

/// Writes cases for a native `library`'s plugin; returns their number. Shipped plugins reuse their cases' data:
/// indices must be valid.
pub fn write(library: &Path, manifest: &Path, output: &Path) -> Result<usize> {
    let bundle = bundle(library)?;
    let [plugin] = bundle.plugins.as_slice() else {
        bail!("{} has {} plugins, expected one", library.display(), bundle.plugins.len());
    };
    let mut all: Vec<(u64, Table)> = Vec::new();
    for seed in 0..NODES {
        let Some(sizes) = shapes::random(plugin, DEVICE, &known(plugin), seed) else { continue };
        let node = node(&sizes.query(plugin));
        if is_launched(plugin, &sizes) && all.iter().all(|(_, known)| *known != node) {
            all.push((seed, node));
        }
    }
    if all.is_empty() {
        bail!("no node was found that {} accepts", plugin.name);
    }
    let count = all.len();
    let mut file = Table::new();
    let subject = library.file_name().unwrap_or_default().to_string_lossy();
    file.insert("manifest".to_owned(), subject.as_ref().into());
    if let Some(inputs) = inputs(manifest)? {
        file.insert("inputs".to_owned(), inputs.into());
    }
    let cases = all.into_iter().map(|(seed, node)| case(seed, node));
    file.insert("cases".to_owned(), cases.collect::<Vec<_>>().into());
    std::fs::write(output, toml::to_string(&file)?)
        .with_context(|| format!("cannot write {}", output.display()))?;
    Ok(count)
}

fn is_launched(plugin: &Plugin, sizes: &Sizes) -> bool {
    let inputs: Vec<&[i64]> = sizes.shapes.iter().map(Vec::as_slice).collect();
    let values: Vec<&[i64]> = sizes.values.iter().map(Vec::as_slice).collect();
    let facts = Facts { attributes: &sizes.attributes, shapes: &inputs, values: &values, ..Facts::default() };
    let (Ok(outputs), Some(kinds)) =
        (output_shapes(plugin, &facts, &mut Steps::default()), plugin.variants.get(sizes.row))
    else {
        return false;
    };
    let all: Vec<&[i64]> = inputs.iter().copied().chain(outputs.iter().map(Vec::as_slice)).collect();
    let alignments = vec![DEFAULT_ALIGNMENT; plugin.tensor_count()];
    let facts = Facts { shapes: &all, device: Some(DEVICE), alignments: &alignments, ..facts };
    let most = u32::try_from(SHARED_BYTES).unwrap_or(u32::MAX);
    let takes = LaunchLimits { max_shared_bytes: most, ..LaunchLimits::ANYTHING };
    let mut alike = plugin.variants.iter().filter(|variant| {
        (&variant.types, &variant.formats) == (&kinds.types, &kinds.formats)
            && launch::is_compiled_for(variant, &sizes.attributes)
            && verdict(variant.guard.as_ref(), &facts, &mut Steps::default()) == GuardVerdict::Holds
    });
    alike.all(|variant| sequence(plugin, variant, |_| takes, &facts, &mut Steps::default()).is_ok())
}

fn inputs(manifest: &Path) -> Result<Option<Table>> {
    let stem = manifest.file_stem().unwrap_or_default().to_string_lossy();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join(SHIPPED).join(format!("{stem}.toml"));
    if !path.is_file() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut file: Table = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
    let Some(inputs) = file.remove("inputs") else { return Ok(None) };
    match inputs {
        toml::Value::Table(inputs) if inputs.values().all(toml::Value::is_table) => Ok(Some(inputs)),
        other => bail!("{}: `inputs = {other}`, expected a range for each", path.display()),
    }
}

fn case(seed: u64, mut node: Table) -> toml::Value {
    node.insert("name".to_owned(), format!("node {seed}").into());
    node.insert("seed".to_owned(), toml::Value::Integer(i64::try_from(seed).unwrap_or(0)));
    node.into()
}

fn node(query: &Query) -> Table {
    let integers = |list: &[(String, Vec<i64>)]| -> Table {
        list.iter().map(|(name, values)| (name.clone(), values.clone().into())).collect()
    };
    let words = |list: &[(String, String)]| -> Table {
        list.iter().map(|(name, word)| (name.clone(), word.as_str().into())).collect()
    };
    let attributes: Table =
        query.attributes.iter().map(|(name, given)| (name.clone(), given_value(given))).collect();
    let parts = [
        ("shapes", integers(&query.shapes)),
        ("values", integers(&query.values)),
        ("attributes", attributes),
        ("types", words(&query.types)),
        ("formats", words(&query.formats)),
    ];
    let said = parts.into_iter().filter(|(_, table)| !table.is_empty());
    said.map(|(name, table)| (name.to_owned(), table.into())).collect()
}

fn given_value(given: &RawAttributeValue) -> toml::Value {
    match given {
        RawAttributeValue::Text(text) => text.as_str().into(),
        RawAttributeValue::Value(value) => toml_value(value),
    }
}

fn toml_value(value: &Value) -> toml::Value {
    match value {
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Bool(value) => (*value).into(),
        Value::Str(value) => value.as_str().into(),
        Value::Array(values) => toml::Value::Array(values.iter().map(toml_value).collect()),
    }
}
