//! The part of a model that an engine keeps: all checks of launches, no descriptions and settled choices.

use cubinder_expr::Value;
use cubinder_launch::{Facts, Rule, Steps};
use cubinder_model::model::tuning;
use cubinder_model::{Attribute, Input, Output, Plugin, Requirement, TunedDevice, TunedPoint, Variant};

/// Returns the model for an engine. `variants` have their indices in the plugin. Drops requirements decided by
/// attributes and ranks.
pub(crate) fn of_node(
    plugin: &Plugin,
    variants: Vec<(usize, Variant)>,
    attributes: &[Value],
    input_ranks: Option<&[u8]>,
) -> Plugin {
    let ranks: Vec<usize> = input_ranks.unwrap_or_default().iter().copied().map(usize::from).collect();
    let facts = Facts { attributes, ranks: &ranks, ..Facts::default() };
    let mut steps = Steps::default();
    let mut is_open =
        |require: &&Requirement| Rule::Require(require).check(plugin, &facts, &mut steps) != Ok(Some(()));
    let rows: Vec<usize> = variants.iter().map(|(row, _)| *row).collect();
    let rank = |index: usize| input_ranks.and_then(|ranks| ranks.get(index).copied());
    Plugin {
        name: plugin.name.clone(),
        namespace: plugin.namespace.clone(),
        version: plugin.version.clone(),
        summary: String::new(),
        attributes: plugin.attributes.iter().map(attribute).collect(),
        inputs: plugin.inputs.iter().enumerate().map(|(index, it)| input(it, rank(index))).collect(),
        outputs: plugin.outputs.iter().map(|it| Output { doc: String::new(), ..it.clone() }).collect(),
        require: plugin.require.iter().filter(&mut is_open).cloned().collect(),
        timing: None,
        tuning: measured(plugin, &rows, input_ranks),
        variants: variants.into_iter().map(|(_, variant)| variant).collect(),
    }
}

/// Drops the GPUs' names.
fn measured(plugin: &Plugin, rows: &[usize], input_ranks: Option<&[u8]>) -> Vec<TunedDevice> {
    let row = |old: u32| u32::try_from(rows.binary_search(&(old as usize)).ok()?).ok();
    let is_of_ranks = |point: &TunedPoint| {
        let mut pairs = input_ranks.unwrap_or_default().iter().zip(&point.shapes);
        pairs.all(|(rank, shape)| usize::from(*rank) == shape.len())
    };
    let kept = tuning::of_rows(&plugin.tuning, row, is_of_ranks);
    kept.into_iter().map(|device| TunedDevice { name: String::new(), ..device }).collect()
}

fn attribute(attribute: &Attribute) -> Attribute {
    Attribute { default: None, doc: String::new(), ..attribute.clone() }
}

fn input(input: &Input, rank: Option<u8>) -> Input {
    let taken = |rank: &u8| (input.rank_min..=input.rank_max).contains(rank);
    let (rank_min, rank_max) = match rank.filter(taken) {
        Some(rank) => (rank, rank),
        None => (input.rank_min, input.rank_max),
    };
    Input { rank_min, rank_max, doc: String::new(), ..input.clone() }
}

#[cfg(test)]
mod tests {
    use cubinder_expr::{BinaryOp, Expr, Node as Part};
    use cubinder_expr::{DataType, Format, Interval};
    use cubinder_model::{AttributeType, Guard, ShapeLimits};

    use super::*;

    fn expr(left: Part, op: BinaryOp, right: Part) -> Expr {
        Expr { nodes: vec![left, right, Part::Binary(op, 0, 1)] }
    }

    fn plugin() -> Plugin {
        let require = |left, text: &str| Requirement {
            expr: expr(left, BinaryOp::Le, Part::Attribute(0)),
            text: text.to_owned(),
            message: "m".to_owned(),
        };
        let limits = ShapeLimits { dims: vec![Interval { min: 1, max: 9 }], ..ShapeLimits::default() };
        let x = Input {
            name: "x".to_owned(),
            rank_min: 1,
            rank_max: 3,
            limits: limits.clone(),
            values: None,
            doc: "d".to_owned(),
        };
        let y = Output {
            name: "y".to_owned(),
            shape: Expr { nodes: vec![Part::Shape(0)] },
            limits,
            alias: None,
            size: None,
            doc: "d".to_owned(),
        };
        let least = Attribute {
            minimum: Some(Value::Int(1)),
            default: Some(Value::Int(3)),
            ..Attribute::new("n", AttributeType::I32)
        };
        Plugin {
            name: "op".to_owned(),
            namespace: String::new(),
            version: "1".to_owned(),
            summary: "s".to_owned(),
            attributes: vec![least],
            inputs: vec![x],
            outputs: vec![y],
            require: vec![require(Part::Rank(0), "rank"), require(Part::Numel(0), "numel")],
            timing: None,
            tuning: Vec::new(),
            variants: vec![Variant {
                id: 1,
                label: String::new(),
                types: vec![DataType::F32; 2],
                formats: vec![Format::Linear; 2],
                specialized: Vec::new(),
                guard: Some(Guard {
                    expr: expr(Part::Numel(0), BinaryOp::Gt, Part::Int(4)),
                    text: "numel(x) > 4".to_owned(),
                }),
                scratch: Vec::new(),
                steps: Vec::new(),
            }],
        }
    }

    fn kept(ranks: Option<&[u8]>) -> Plugin {
        let plugin = plugin();
        let rows = plugin.variants.iter().cloned().enumerate().collect();
        of_node(&plugin, rows, &[Value::Int(2)], ranks)
    }

    #[test]
    fn a_node_takes_the_ranks_for_which_its_requirements_are_decided() {
        for (ranks, expected, require) in [
            (Some(&[2_u8][..]), (2, 2), vec!["numel"]),
            (Some(&[3]), (3, 3), vec!["rank", "numel"]),
            (None, (1, 3), vec!["rank", "numel"]),
        ] {
            let kept = kept(ranks);
            let found = &kept.inputs[0];
            assert_eq!((found.rank_min, found.rank_max), expected, "{ranks:?}");
            let texts: Vec<&str> = kept.require.iter().map(|rule| rule.text.as_str()).collect();
            assert_eq!(texts, require, "{ranks:?}");
        }
    }

    #[test]
    fn everything_that_keeps_a_launch_right_stays() {
        let (whole, kept) = (plugin(), kept(Some(&[2])));
        assert_eq!(kept.inputs[0].limits, whole.inputs[0].limits);
        assert_eq!(kept.outputs[0], Output { doc: String::new(), ..whole.outputs[0].clone() });
        assert_eq!(kept.attributes[0].minimum, whole.attributes[0].minimum);
        assert_eq!(kept.variants, whole.variants);
    }
}
