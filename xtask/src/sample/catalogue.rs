//! The samples: manifest, network and tensors.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Also the name of its library.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Relative to the root of the checkout.
    pub(crate) manifest: &'static str,
    /// A network of `networks.py`.
    pub(crate) network: &'static str,
    pub(crate) shape: &'static str,
    /// Whether an output shares memory with an input.
    pub(crate) aliased: bool,
    /// Variants of the plugin; each is a tactic.
    pub(crate) variants: usize,
    /// Types and formats.
    pub(crate) offers: &'static str,
}

pub(crate) const ADD: Sample = Sample {
    name: "add",
    what: "adds one to every element",
    manifest: "manifests/elemwise_add_plugin.toml",
    network: "add",
    shape: "10,3,32,32",
    aliased: false,
    variants: 1,
    offers: "f32 and f16, linear",
};

pub(crate) const INPLACE_ADD: Sample = Sample {
    name: "inplace_add",
    what: "adds numbers to every element, in place: two nodes in a row",
    manifest: "manifests/elemwise_add_plugin_.toml",
    network: "inplace",
    shape: "10,3,32,32",
    aliased: true,
    variants: 1,
    offers: "f32, linear and HWC, and f16, linear",
};

pub(crate) const NON_ZERO: Sample = Sample {
    name: "non_zero",
    what: "finds the coordinates of the elements that are not zero, and how many there are",
    manifest: "manifests/non_zero_plugin.toml",
    network: "non_zero",
    shape: "128,128",
    aliased: false,
    variants: 1,
    offers: "f32 and f16, linear",
};

pub(crate) const CIRC_PAD: Sample = Sample {
    name: "circ_pad",
    what: "pads by wrapping around: three nodes, two of them alike",
    manifest: "manifests/circ_pad_plugin.toml",
    network: "pads",
    shape: "10,3,32,32",
    aliased: false,
    variants: 10,
    offers: "f32 and f16, linear",
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn samples_say_how_many_variants_their_plugins_have() {
        for sample in [ADD, INPLACE_ADD, NON_ZERO, CIRC_PAD] {
            let text = std::fs::read_to_string(workspace::root().join(sample.manifest)).unwrap();
            let variants = text.lines().filter(|line| *line == "[[variants]]").count().max(1);
            assert_eq!(sample.variants, variants, "{}", sample.name);
        }
    }

    #[test]
    fn networks_of_samples_exist() {
        let networks = std::fs::read_to_string(crate::workshop::scripts().join("networks.py")).unwrap();
        for sample in [ADD, INPLACE_ADD, NON_ZERO, CIRC_PAD] {
            assert!(networks.contains(&format!("    \"{}\": Network(", sample.network)), "{}", sample.name);
        }
    }
}
