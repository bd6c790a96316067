use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sample {
    pub(crate) what: String,
    pub(crate) manifest: String,
    pub(crate) network: String,
    pub(crate) shape: String,
    pub(crate) aliased: bool,
    pub(crate) variants: usize,
    pub(crate) offers: String,
}

pub(crate) fn samples() -> Result<BTreeMap<String, Sample>> {
    toml::from_str(include_str!("../../samples.toml")).context("in `xtask/samples.toml`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn samples_say_how_many_variants_their_plugins_have() {
        for (name, sample) in samples().unwrap() {
            let text = std::fs::read_to_string(workspace::root().join(&sample.manifest)).unwrap();
            let variants = text.lines().filter(|line| *line == "[[variants]]").count().max(1);
            assert_eq!(sample.variants, variants, "{name}");
        }
    }

    #[test]
    fn networks_of_samples_exist() {
        let networks = std::fs::read_to_string(crate::tools::scripts().join("networks.py")).unwrap();
        for (name, sample) in samples().unwrap() {
            assert!(networks.contains(&format!("    \"{}\": Network(", sample.network)), "{name}");
        }
    }
}
