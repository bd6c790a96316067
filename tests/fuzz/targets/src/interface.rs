//! Operators of plugin libraries' C interface: any attributes, types and shapes have a result or error.
//!
//! An input is a list of numbers, of 9 bytes each: place and value (little endian).

use std::ffi::CString;
use std::sync::LazyLock;

use cubinder::fuzzing::{self, Arguments};
use cubinder_manifest::resolve;
use cubinder_model::Plugin;
use cubinder_source::diagnostic::Source;
use trt_abi::{Field, PluginFieldType};

use crate::Target;
use crate::bundles::bundle;

/// Creates operators and computes shapes.
pub static TARGET: Target =
    Target::new("interface", run, seeds, include_str!("../../dictionaries/interface.dict"));

macro_rules! manifests {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../", $name)))),*]
    };
}

static PLUGINS: LazyLock<Vec<Plugin>> = LazyLock::new(|| {
    let manifests = manifests!(
        "manifests/circ_pad_plugin.toml" "manifests/elemwise_add_plugin_.toml" "manifests/non_zero_plugin.toml"
        "manifests/cubinder/nms.toml" "manifests/cubinder/rotary_embedding.toml" "tests/data/run/stretch.toml"
        "tests/data/run/attributes.toml"
    );
    let plugin = |(name, text): &(&str, &str)| {
        let resolved = resolve::compile(&Source::new(*name, *text)).expect("the manifest is valid");
        bundle(&resolved, true).plugins.remove(0)
    };
    manifests.iter().map(plugin).collect()
});

const PLUGIN: u8 = 0;
const TYPE: u8 = 1;
const RANK: u8 = 2;
const EXTENT: u8 = 3;
const SIZE: u8 = 4;
/// The attribute that the next numbers describe.
const ATTRIBUTE: u8 = 5;
const FIELD_TYPE: u8 = 6;
const LENGTH: u8 = 7;
const DATA: u8 = 8;

#[derive(Default)]
struct Attribute {
    index: usize,
    ty: i32,
    length: i32,
    data: Vec<u8>,
}

impl Attribute {
    /// Returns the bytes that type and length imply, unless too many.
    fn bytes(&mut self) -> Option<&[u8]> {
        let length = usize::try_from(self.length).ok()?;
        let size = PluginFieldType(self.ty).bytes(length).filter(|size| *size <= 1 << 12)?;
        self.data.resize(size, 0);
        Some(&self.data)
    }
}

fn run(bytes: &[u8]) {
    let (plugin, called) = call(bytes);
    let Ok((shapes, program)) = called else { return };
    assert_eq!(shapes.len(), plugin.outputs.len());
    assert!(shapes.iter().flatten().all(|extent| *extent >= 0), "{shapes:?}");
    assert!(!program.is_empty());
}

type Called = trt_abi::Result<(Vec<Vec<i64>>, Vec<i64>)>;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "any number will do")]
fn call(bytes: &[u8]) -> (&'static Plugin, Called) {
    let (mut index, mut attributes): (usize, Vec<Attribute>) = (0, Vec::new());
    let (mut types, mut ranks, mut extents, mut sizes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for chunk in bytes.chunks_exact(9) {
        let (place, number) = chunk.split_at(1);
        let number = i64::from_le_bytes(number.try_into().expect("eight bytes"));
        match (place[0], attributes.last_mut()) {
            (PLUGIN, _) => index = number as usize,
            (TYPE, _) => types.push(number as i32),
            (RANK, _) => ranks.push(number as i32),
            (EXTENT, _) => extents.push(number),
            (SIZE, _) => sizes.push(number),
            (ATTRIBUTE, _) => attributes.push(Attribute { index: number as usize, ..Attribute::default() }),
            (FIELD_TYPE, Some(last)) => last.ty = number as i32,
            (LENGTH, Some(last)) => last.length = number as i32,
            (DATA, Some(last)) => last.data.extend(number.to_le_bytes()),
            _ => {}
        }
    }
    let plugin = &PLUGINS[index % PLUGINS.len()];
    let name = |one: &Attribute| match plugin.attributes.is_empty() {
        true => CString::default(),
        false => CString::new(plugin.attributes[one.index % plugin.attributes.len()].name.as_str())
            .expect("names have no NUL"),
    };
    let names: Vec<CString> = attributes.iter().map(name).collect();
    let fields = attributes.iter_mut().zip(&names).filter_map(|(attribute, name)| {
        let (ty, length) = (PluginFieldType(attribute.ty), attribute.length);
        Some(Field::new(name, ty, length, attribute.bytes()?))
    });
    let arguments = Arguments { fields: fields.collect(), types, ranks, extents, sizes };
    (plugin, fuzzing::call(plugin, &arguments))
}

fn seeds() -> Vec<Vec<u8>> {
    let words = |words: &[(u8, i64)]| {
        words.iter().flat_map(|(place, number)| [*place].into_iter().chain(number.to_le_bytes())).collect()
    };
    let shape = |ty: i64, extents: &[i64]| {
        let extents = extents.iter().map(|extent| (EXTENT, *extent));
        [(TYPE, ty), (RANK, extents.len() as i64)].into_iter().chain(extents).collect::<Vec<_>>()
    };
    let x = shape(0, &[2, 3, 4]);
    let pads = [(ATTRIBUTE, 0), (FIELD_TYPE, 10), (LENGTH, 2), (DATA, 1), (DATA, 1)];
    let delta = [(PLUGIN, 1), (ATTRIBUTE, 0), (FIELD_TYPE, 10), (LENGTH, 1), (DATA, 5)];
    let boxes = [shape(0, &[5, 4]), shape(0, &[5]), shape(3, &[5])].concat();
    let threshold = [(PLUGIN, 3), (ATTRIBUTE, 0), (FIELD_TYPE, 1), (LENGTH, 1), (DATA, 0x3f00_0000)];
    let angles =
        [shape(0, &[2, 3, 5, 16]), shape(0, &[11, 8]), shape(0, &[11, 8]), shape(8, &[2, 5])].concat();
    let stretch = [shape(0, &[3, 4]), shape(8, &[6, 8]), shape(3, &[2])].concat();
    vec![
        words(&[x.as_slice(), &pads].concat()),
        words(&[x.as_slice(), &delta].concat()),
        words(&[x.as_slice(), &[(PLUGIN, 2), (SIZE, 0), (SIZE, 5)]].concat()),
        words(&[boxes.as_slice(), &threshold].concat()),
        words(&[angles.as_slice(), &[(PLUGIN, 4)]].concat()),
        words(&[stretch.as_slice(), &[(PLUGIN, 5)]].concat()),
        words(&[x.as_slice(), &[(PLUGIN, 6)]].concat()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_have_results() {
        for seed in seeds() {
            let (plugin, called) = call(&seed);
            assert!(called.is_ok(), "{}: {:?}", plugin.name, called.err());
        }
    }
}
