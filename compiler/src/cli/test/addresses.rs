//! Addresses for test runs: aligned, and minimally aligned for a variant's guard.

use cubinder_expr::Node;
use cubinder_model::Plugin;
use cubinder_node::eval::stated_alignment;
use cubinder_node::query::DEFAULT_ALIGNMENT;

/// Exact power-of-two alignments of inputs, then outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addresses(pub(super) Vec<u64>);

impl Addresses {
    /// `None` if all have TensorRT's usual alignment.
    pub(super) fn text(&self, plugin: &Plugin) -> Option<String> {
        let tensors = self.0.iter().enumerate().filter(|(_, bytes)| **bytes < DEFAULT_ALIGNMENT);
        let words: Vec<String> = tensors
            .filter_map(|(index, bytes)| Some(format!("`{}` aligned to {bytes}", plugin.tensor_name(index)?)))
            .collect();
        (!words.is_empty()).then(|| format!("with {}", words.join(", ")))
    }

    /// Also changes the tensor's alias, which shares the memory.
    fn with(&self, plugin: &Plugin, tensor: usize, bytes: u64) -> Addresses {
        let storage = plugin.storage_of(tensor);
        let each = self.0.iter().enumerate();
        let each = each.map(|(other, old)| if plugin.storage_of(other) == storage { bytes } else { *old });
        Addresses(each.collect())
    }
}

/// Returns `given` alignments, else full alignment and those at and just below guards' requirements. `elements` has
/// element sizes.
pub(super) fn choices(plugin: &Plugin, elements: &[u64], given: &[(String, u64)]) -> Vec<Addresses> {
    let aligned = Addresses(vec![DEFAULT_ALIGNMENT; plugin.tensor_count()]);
    if !given.is_empty() {
        let alignment = |index| stated_alignment(plugin, given, index).unwrap_or(DEFAULT_ALIGNMENT);
        return vec![Addresses((0..plugin.tensor_count()).map(alignment).collect())];
    }
    let alignments = asked_alignments(plugin);
    let mut all = vec![aligned.clone()];
    let mut add = |choice: Addresses| {
        if !all.contains(&choice) {
            all.push(choice);
        }
    };
    // Addresses are always multiples of the element size.
    let least = |tensor: usize, bytes: u64| bytes.max(elements.get(tensor).copied().unwrap_or(1));
    let mut steps: Vec<u64> =
        alignments.iter().flat_map(|(_, bytes)| [*bytes, (*bytes / 2).max(1)]).collect();
    steps.sort_unstable_by(|one, other| other.cmp(one));
    steps.dedup();
    for bytes in &steps {
        let tensors = alignments.iter().map(|(tensor, _)| *tensor);
        add(tensors
            .fold(aligned.clone(), |choice, tensor| choice.with(plugin, tensor, least(tensor, *bytes))));
    }
    for (tensor, bytes) in &alignments {
        for bytes in [*bytes, (*bytes / 2).max(1), 1] {
            add(aligned.with(plugin, *tensor, least(*tensor, bytes)));
        }
    }
    all
}

fn asked_alignments(plugin: &Plugin) -> Vec<(usize, u64)> {
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
    use cubinder_expr::Expr;
    use cubinder_model::Guard;
    use cubinder_node::eval;
    use cubinder_source::source;

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

    /// `x` and `y` need 8 bytes.
    #[test]
    fn each_choice_that_guards_tell_apart_is_tried() {
        let planted = plugin("../tests/data/testing/planted.toml");
        let found = choices(&planted, &[4, 4], &[]);
        let expected = [(256, 256), (8, 8), (4, 4), (8, 256), (4, 256), (256, 8), (256, 4)];
        assert_eq!(found, expected.map(|(x, y)| Addresses(vec![x, y])));
    }

    #[test]
    fn both_names_of_an_alias_have_one_address() {
        let mut add = plugin("elemwise_add_plugin_.toml");
        let names = [add.inputs[0].name.clone(), add.outputs[0].name.clone()];
        for (tensor, name) in (0..).zip(&names) {
            assert_eq!(choices(&add, &[4, 4], &[(name.clone(), 8)]), [Addresses(vec![8, 8])]);
            let (expr, text) = (Expr { nodes: vec![Node::Aligned { tensor, bytes: 16 }] }, String::new());
            add.variants[0].guard = Some(Guard { expr, text });
            let tried = choices(&add, &[4, 4], &[]);
            for bytes in [16, 8, DEFAULT_ALIGNMENT] {
                assert!(tried.contains(&Addresses(vec![bytes; 2])), "{bytes}, `{name}`: {tried:?}");
            }
            assert!(tried.iter().all(|choice| choice.0[0] == choice.0[1]), "{tried:?}");
        }
    }
}
