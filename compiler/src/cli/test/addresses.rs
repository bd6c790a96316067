//! With which addresses a variant is run: with aligned ones, and with the worst for which its guard holds.

use cubinder_bundle::Plugin;
use cubinder_bundle::expr::Node;
use cubinder_compiler::eval::DEFAULT_ALIGNMENT;

/// Of what the address of each tensor, over inputs, then outputs, is a multiple and of no larger power of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addresses(pub(super) Vec<u64>);

impl Addresses {
    /// What is to be said of them: nothing where all are as TensorRT's usually are.
    pub(super) fn text(&self, plugin: &Plugin) -> Option<String> {
        let tensors = self.0.iter().enumerate().filter(|(_, bytes)| **bytes < DEFAULT_ALIGNMENT);
        let said: Vec<String> = tensors
            .filter_map(|(index, bytes)| Some(format!("`{}` aligned to {bytes}", plugin.tensor_name(index)?)))
            .collect();
        (!said.is_empty()).then(|| format!("with {}", said.join(", ")))
    }

    /// Outputs in place have their inputs' addresses.
    fn with_aliases(self, plugin: &Plugin) -> Addresses {
        let outputs = plugin.outputs.iter().enumerate();
        outputs.filter_map(|(output, it)| Some((output, it.alias? as usize))).fold(
            self,
            |choice, (output, input)| {
                let bytes = choice.0.get(input).copied().unwrap_or(DEFAULT_ALIGNMENT);
                choice.with(plugin.inputs.len() + output, bytes)
            },
        )
    }

    fn with(&self, tensor: usize, bytes: u64) -> Addresses {
        let mut changed = self.clone();
        if let Some(place) = changed.0.get_mut(tensor) {
            *place = bytes;
        }
        changed
    }
}

/// The addresses that are tried with a node whose tensors' elements have these sizes. Where a person says the alignments, they are these;
/// else they are aligned, and as guards ask for it just enough and not enough, for all tensors and for one after the other.
pub(super) fn choices(plugin: &Plugin, elements: &[u64], said: &[(String, u64)]) -> Vec<Addresses> {
    let aligned = Addresses(vec![DEFAULT_ALIGNMENT; plugin.tensor_count()]);
    if !said.is_empty() {
        let of = |index| said.iter().find(|(name, _)| plugin.tensor_name(index) == Some(name.as_str()));
        let each =
            (0..plugin.tensor_count()).map(|index| of(index).map_or(DEFAULT_ALIGNMENT, |(_, bytes)| *bytes));
        return vec![Addresses(each.collect()).with_aliases(plugin)];
    }
    let asked = asked(plugin);
    let mut all = vec![aligned.clone()];
    let mut add = |choice: Addresses| {
        let choice = choice.with_aliases(plugin);
        if !all.contains(&choice) {
            all.push(choice);
        }
    };
    // An address is never worse than the elements ask for.
    let least = |tensor: usize, bytes: u64| bytes.max(elements.get(tensor).copied().unwrap_or(1));
    let mut steps: Vec<u64> = asked.iter().flat_map(|(_, bytes)| [*bytes, (*bytes / 2).max(1)]).collect();
    steps.sort_unstable_by(|one, other| other.cmp(one));
    steps.dedup();
    for bytes in &steps {
        let tensors = asked.iter().map(|(tensor, _)| *tensor);
        add(tensors.fold(aligned.clone(), |choice, tensor| choice.with(tensor, least(tensor, *bytes))));
    }
    for (tensor, bytes) in &asked {
        for bytes in [*bytes, (*bytes / 2).max(1), 1] {
            add(aligned.with(*tensor, least(*tensor, bytes)));
        }
    }
    all
}

/// What guards ask about addresses: tensors and powers of two.
fn asked(plugin: &Plugin) -> Vec<(usize, u64)> {
    let mut all = Vec::new();
    let guards = plugin.variants.iter().filter_map(|variant| variant.guard.as_ref());
    for node in guards.flat_map(|guard| &guard.expr.nodes) {
        if let Node::Aligned { tensor, bytes } = node
            && !all.contains(&(*tensor as usize, u64::from(*bytes)))
        {
            all.push((*tensor as usize, u64::from(*bytes)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use cubinder_compiler::{eval, source};

    use super::*;

    fn plugin(name: &str) -> Plugin {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests").join(name);
        eval::manifest(&source::text(&path).unwrap()).unwrap().list.remove(0).plugin
    }

    #[test]
    fn guards_decide_which_addresses_are_tried() {
        let pad = plugin("circ_pad_plugin.toml");
        let texts: Vec<Option<String>> =
            choices(&pad, &[4, 4], &[]).iter().map(|choice| choice.text(&pad)).collect();
        assert!(texts.contains(&None), "{texts:?}");
        assert!(texts.len() > 1, "{texts:?}");
        assert!(texts.iter().flatten().all(|text| !text.ends_with(" to 1")), "{texts:?}");
        let said = choices(&pad, &[4, 4], &[(pad.inputs[0].name.clone(), 8)]);
        assert_eq!(said, [Addresses(vec![8, DEFAULT_ALIGNMENT])]);
    }

    #[test]
    fn outputs_in_place_have_their_inputs_addresses() {
        let add = plugin("elemwise_add_plugin_.toml");
        for choice in choices(&add, &[4, 4], &[(add.inputs[0].name.clone(), 8)]) {
            assert_eq!(choice.0[0], choice.0[1], "{choice:?}");
        }
    }
}
