use cubinder_expr::Interval;
use cubinder_manifest::resolve;
use cubinder_source::diagnostic::Source;
use proptest::prelude::*;

use super::*;
use crate::identity;

fn manifest(parts: &Parts) -> String {
    let Parts { timing, require, shape, limits, guards } = parts;
    let require: Vec<String> =
        require.iter().map(|rule| format!("{{ expr = \"{rule}\", message = \"m\" }}")).collect();
    let variants: Vec<String> = guards
        .iter()
        .zip(1..)
        .map(|(guard, id)| format!("[[variants]]\nid = {id}\nguard = \"{guard}\"\n"))
        .collect();
    format!(
        "schema = 1\n[plugin]\nname = \"p\"\nnamespace = \"test\"\nversion = \"1\"\ntiming = {timing:?}\n\
         require = [{}]\n[attributes.a]\ntype = \"i32\"\nrange = \"1..=8\"\n[attributes.b]\ntype = \"i32\"\n\
         range = \"0..=8\"\n[[inputs]]\nname = \"x\"\ntype = \"f32\"\nrank = 2\n[[outputs]]\nname = \"y\"\ntype = \"f32\"\n\
         shape = \"{shape}\"\nlimits = {{ {limits} }}\n{}[[variants]]\nid = 3\n[[launches]]\nsource = \"k.cu\"\n\
         kernel = \"k\"\ngrid = [1]\nblock = [32]\nargs = {{ x = \"x\", y = \"y\" }}\n",
        require.join(", "),
        variants.concat(),
    )
}

#[derive(Debug, Clone)]
struct Parts {
    timing: Vec<&'static str>,
    require: Vec<&'static str>,
    shape: &'static str,
    limits: &'static str,
    guards: Vec<&'static str>,
}

fn parts() -> impl Strategy<Value = Parts> {
    const RULES: [&str; 7] = [
        "x.shape[0] % a == 0",
        "x.shape[1] % (b + 1) == 0",
        "numel(x) % a == 0",
        "x.shape[0] >= b",
        "x.shape[1] == 4 or b != 2",
        "a > 0",
        "b > 1 or x.rank == 2",
    ];
    const SHAPES: [&str; 6] = [
        "x.shape",
        "[x.shape[0] * a, x.shape[1]]",
        "[x.shape[0] - b, x.shape[1]]",
        "[x.shape[0], x.shape[1] // a]",
        "[numel(x) // (b + 1), 4]",
        "[x.shape[0], 4 * a]",
    ];
    const LIMITS: [&str; 4] = ["", "dims = \"..=16\"", "dims = \"4..\"", "numel = \"..=64\""];
    const GUARDS: [&str; 9] = [
        "y.shape[0] % 4 == 0",
        "y.shape[1] % 4 == 0",
        "x.shape[0] % 4 == 0",
        "numel(x) % 4 == 0",
        "numel(y) <= 64",
        "x.shape[0] >= 4",
        "a <= 4",
        "x.shape[1] % (b + 1) == 0",
        "x.shape[1] <= 8",
    ];
    (
        prop::sample::subsequence(vec!["a", "b"], 0..=2),
        prop::sample::subsequence(RULES.to_vec(), 0..=2),
        prop::sample::select(SHAPES.to_vec()),
        prop::sample::select(LIMITS.to_vec()),
        prop::sample::subsequence(GUARDS.to_vec(), 0..=2),
    )
        .prop_map(|(timing, require, shape, limits, guards)| Parts {
            timing,
            require,
            shape,
            limits,
            guards,
        })
}

fn made(plugin: &cubinder_model::Plugin, attributes: [i64; 2]) -> Option<KernelPlugin> {
    let attributes = attributes.map(Value::Int).to_vec();
    let node = cubinder_model::Node {
        workspace_bytes: None,
        producer: String::new(),
        plugin: plugin.clone(),
        attributes: attributes.clone(),
        input_ranks: None,
        code: Vec::new(),
    };
    let definition = Definition::bare(Arc::new(node));
    let phase = TensorRTPhase::BUILD;
    KernelPlugin::new(definition, attributes, "n", phase, Form::Fields, identity::generic()).ok()
}

fn tactics(made: &KernelPlugin, profile: &[Interval]) -> Vec<i32> {
    let profile = profile::Profile { inputs: vec![profile.to_vec()] };
    variants::tactics(&made.state.node, made.state.node.reachable(None), Some(&profile))
}

fn ranges() -> impl Strategy<Value = Vec<Interval>> {
    let range = (prop::sample::select(vec![0, 1, 4, 6, 8]), prop::sample::select(vec![0, 0, 1, 4, 24]));
    prop::collection::vec(range.prop_map(|(min, more)| Interval { min, max: min + more }), 2)
}

fn resolved(parts: &Parts) -> cubinder_model::Plugin {
    let text = manifest(parts);
    let source = Source::new(std::path::Path::new("p.toml"), text.clone());
    let resolved = resolve::compile(&source);
    resolved.unwrap_or_else(|errors| panic!("{errors:#?}\n{text}")).draft.plugin
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]
    #[test]
    fn nodes_of_one_timing_cache_id_have_the_same_tactics(
        parts in parts(),
        nodes in prop::collection::vec([1..=8_i64, 0..=8_i64], 2..6),
        profile in ranges(),
    ) {
        let plugin = resolved(&parts);
        let nodes: Vec<([i64; 2], KernelPlugin)> =
            nodes.into_iter().filter_map(|node| Some((node, made(&plugin, node)?))).collect();
        let seen: Vec<_> = nodes
            .iter()
            .map(|(node, made)| (node, made.timing_cache_id().unwrap().to_owned(), tactics(made, &profile)))
            .collect();
        for (node, id, offered) in &seen {
            for (other, other_id, other_offered) in &seen {
                if id == other_id {
                    prop_assert_eq!(offered, other_offered, "{:?} and {:?} of {}", node, other, manifest(&parts));
                }
            }
        }
    }
}

#[test]
fn attributes_that_no_guard_reads_decide_tactics() {
    let of = |require: &[&'static str], shape, limits, guard| {
        let parts =
            Parts { timing: vec!["a"], require: require.to_vec(), shape, limits, guards: vec![guard] };
        resolved(&parts)
    };
    let profile = [4, 4].map(|min| Interval { min, max: 8 });
    let by_rule = of(&["numel(x) % (b + 1) == 0"], "x.shape", "", "numel(x) % 4 == 0");
    let by_shape = of(&[], "[x.shape[0] * (b + 1), x.shape[1]]", "", "y.shape[0] % 4 == 0");
    let by_limit = of(&[], "[x.shape[0] - b, x.shape[1]]", "dims = \"4..\"", "x.shape[0] >= 7");
    let open = of(&["b == 3 or x.rank == 2"], "x.shape", "", "x.shape[0] >= 4");
    for (plugin, differ) in [(by_rule, true), (by_shape, true), (by_limit, true), (open, false)] {
        let [one, other] = [0, 3].map(|b| made(&plugin, [1, b]).unwrap());
        let ids = [&one, &other].map(|made| made.timing_cache_id().unwrap().to_owned());
        let offered = [&one, &other].map(|made| tactics(made, &profile));
        assert_eq!(offered[0] != offered[1], differ, "{offered:?}");
        assert!(!differ || ids[0] != ids[1]);
    }
    let shared = of(&["b >= 0"], "x.shape", "", "x.shape[0] >= 5");
    let ids = [0, 3].map(|b| made(&shared, [1, b]).unwrap().timing_cache_id().unwrap().to_owned());
    assert_eq!(ids[0], ids[1]);
}
