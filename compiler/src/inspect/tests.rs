use cubinder_model::{Bundle, CodeBytes, CodeRef, Digest, KernelFacts, Node, NodeReference};

use super::*;

fn reference(bundle: Digest, plugin: u32) -> Vec<u8> {
    let bundle = bundle.shortened();
    container::write_node_reference(&NodeReference {
        workspace_bytes: None,
        bundle,
        plugin,
        attributes: vec![],
        row: None,
        input_ranks: None,
    })
}

#[test]
fn a_reference_without_its_bundle_says_where_its_code_is() {
    let report = inspect("node", &reference(Digest::compute(b"elsewhere"), 0)).unwrap();
    assert_eq!(report.containers[0].plugins, []);
    assert!(report.damaged.is_empty());
    let line =
        format!("its code is in bundle {}, which is not in this file", Digest::compute(b"elsewhere").short());
    let shown = table(&report, Verbosity::Short);
    assert!(shown.contains(&line), "{shown}");
    let asked = format!("Kernel-{}", Digest::compute(b"elsewhere").short());
    let line =
        format!("requires `{asked}`: load the `lib<name>-code.so` that registers `{asked}`, unless the plan");
    assert!(shown.contains(&line), "{shown}");
    assert_eq!(report.containers[0].asks_for, Some(asked));
}

#[test]
fn a_node_with_its_code_says_that_the_generic_library_has_to_be_loaded() {
    let plugin = bundle_plugin(PAD);
    let node = Node {
        producer: "this test".to_owned(),
        attributes: vec![],
        input_ranks: None,
        workspace_bytes: None,
        code: vec![],
        plugin,
    };
    let mut found = container::read(&container::write_bundle(&Bundle {
        producer: String::new(),
        plugins: vec![],
        code: vec![],
    }))
    .unwrap();
    found.container = Container::Node(node);
    let mut report = inspect("node", &reference(Digest::compute(b"elsewhere"), 0)).unwrap();
    report.containers = vec![container_report(&found)];
    let shown = table(&report, Verbosity::Short);
    assert!(shown.contains("\n  requires `Kernel2`: load `libcubinder.so` before the engine\n"), "{shown}");
    assert!(!shown.contains("ONNX node"), "an engine is built: {shown}");
    assert!(shown.contains("\n    with a data-dependent shape: found; the application must set"), "{shown}");
}

fn bundle_plugin(manifest: &str) -> Plugin {
    cubinder_manifest::resolve::compile(&cubinder_source::diagnostic::Source::new("m.toml", manifest))
        .unwrap()
        .draft
        .plugin
}

fn bundle_of(manifest: &str) -> Report {
    let mut bundle = Bundle { producer: "this test".to_owned(), plugins: vec![], code: vec![] };
    let mut found = container::read(&container::write_bundle(&bundle)).unwrap();
    bundle.plugins.push(bundle_plugin(manifest));
    found.container = Container::Bundle(bundle);
    let mut report = inspect("node", &reference(Digest::compute(b"elsewhere"), 0)).unwrap();
    report.kind = FileKind::Bundle;
    report.containers = vec![container_report(&found)];
    report
}

const PAD: &str = r#"schema = 1
    attributes.pads = { type = "i32[]", default = [1, 1], doc = "before and after", length = "2..", range = "0..=9" }
    attributes.mode = { type = "string", one_of = ["wrap", "clamp"], length = "..=8" }
    attributes.size = { type = "i32", specialize = [3, 5] }
    attributes.scale = { type = "f32", default = 2.0, range = "..=4.0" }
    inputs = [{ name = "x", type = "T", doc = "what is padded", format = "F", rank = 4, limits = { dims = [1, "0..", "1..=8", 7] } },
        { name = "z", type = "i64", limits = { dims = "1..", numel = "..=99" } },
        { name = "target", type = "i64", shape_input = true, values = "0..=9" },
        { name = "any", type = "i64", shape_input = true, limits = { dims = 1 } }]
    outputs = [{ name = "y", type = "T", format = "F", shape = "x.shape" }, { name = "w", alias = "z", doc = "in place" },
        { name = "n", type = "i64", size = { upper = "numel(x)", opt = "numel(x) // 2" } },
        { name = "found", type = "i32", shape = "[n, x.rank]" }]
    types = { T = ["f32", "f16"] }
    formats = { F = ["linear", "hwc8"] }
    functions.few = { params = [], body = "numel(x) < 4 * V" }
    launches = [{ source = "k.cu", kernel = "k<T, V>", grid = ["numel(x)"], block = ["V"], args = { x = "x", n = "len(pads)" } }]
    [plugin]
    name = "pad"
    namespace = "com.example"
    summary = "Pads."
    timing = ["pads", "size"]
    require = [{ expr = "len(pads) % 2 == 0", message = "pads come in pairs" }]
    [[combinations]]
    types = { T = ["f32"] }
    formats = { F = ["linear"] }
    [[combinations]]
    types = { T = ["f16"] }
    [[variants]]
    id = 1
    guard = "few() and x.format == 'hwc8' and size == 3"
    constants = { V = 8 }
    [[variants]]
    id = 2
    types = { T = ["f32"] }
    constants = { V = 1 }
"#;

#[test]
fn a_bundle_shows_what_its_plugins_take() {
    let mut report = bundle_of(PAD);
    let of = |name: &str, points| TuningReport {
        name: name.to_owned(),
        capability: "9.0".to_owned(),
        sms: 132,
        points,
    };
    report.containers[0].plugins[0].tuning = vec![of("NVIDIA H200", 12), of("", 1)];
    let lines = |detail| {
        let shown = table(&report, detail);
        let lines = shown.lines().skip_while(|line| !line.contains(" plugin "));
        lines.take_while(|line| !line.contains("digest")).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("short", lines(Verbosity::Short));
    insta::assert_snapshot!("full", lines(Verbosity::Full));
    let json = serde_json::to_value(&report.containers[0].plugins).unwrap();
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&json).unwrap());
}

#[test]
fn of_the_kernels_in_a_code_object_those_that_are_launched_are_listed() {
    let mut report = bundle_of(PAD);
    let facts = |symbol: &str| KernelFacts {
        symbol: symbol.to_owned(),
        registers: None,
        shared_bytes: None,
        local_bytes: None,
        max_threads: None,
        params: Vec::new(),
    };
    let object = |bytes: &str, symbols: &[&str]| CodeObject {
        target: "sm_90".parse().unwrap(),
        digest: Digest::compute(bytes.as_bytes()),
        kernels: symbols.iter().map(|symbol| facts(symbol)).collect(),
        bytes: CodeBytes::pack(bytes.into()),
    };
    let code = [object("one", &["_Z1kIf", "plain"]), object("two", &["plain", "_Z1kId"])];
    let mut plugin =
        cubinder_manifest::resolve::compile(&cubinder_source::diagnostic::Source::new("m.toml", PAD))
            .unwrap()
            .draft
            .plugin;
    plugin.variants.truncate(2);
    let places = [(0, "_Z1kIf", "k<float>"), (1, "plain", "plain")];
    for (variant, (code, symbol, kernel)) in plugin.variants.iter_mut().zip(places) {
        let launch = variant.launches_mut().next().unwrap();
        launch.kernel = kernel.to_owned();
        launch.code = vec![CodeRef { target: "sm_90".parse().unwrap(), code, symbol: symbol.to_owned() }];
    }
    report.containers[0].code = code::of_container(&code, &[plugin]);
    let shown = table(&report, Verbosity::Short);
    let (_, rows) = shown.split_once("digest\n").unwrap();
    let names: Vec<_> = rows.lines().map(|row| row.trim_start().split("  ").next().unwrap()).collect();
    let other = |symbol: &str| format!("`{symbol}` is in 1 code object but never launched");
    assert_eq!(names, ["k<float>", "plain", &other("_Z1kId"), &other("plain")]);
    let shown = table(&report, Verbosity::Full);
    let (_, rows) = shown.split_once("digest\n").unwrap();
    let names: Vec<_> = rows.lines().map(|row| row.trim_start().split("  ").next().unwrap()).collect();
    assert_eq!(names, ["k<float>", "(not launched) plain", "plain", "(not launched) _Z1kId"]);
}

#[test]
fn a_reference_to_a_plugin_that_the_bundle_lacks_is_damage() {
    let empty = Bundle { producer: String::new(), plugins: vec![], code: vec![] };
    let bundle = container::write_bundle(&empty);
    let digest = container::read(&bundle).unwrap().digest;
    let report = inspect("plan", &[b"plan".as_slice(), &reference(digest, 7), &bundle].concat()).unwrap();
    assert_eq!(report.containers.len(), 1);
    let error = "malformed: it refers to plugin 7, but the bundle has 0".to_owned();
    assert_eq!(report.damaged, [Damaged { offset: 4, error }]);
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let producer = "\u{1b}[2Jred\0\u{9b}31m".to_owned();
    let bundle = container::write_bundle(&Bundle { producer, plugins: vec![], code: vec![] });
    let text = table(&inspect("bundle", &bundle).unwrap(), Verbosity::Full);
    assert!(text.contains("compiled by \\u{1b}[2Jred\\u{0}\\u{9b}31m\n"), "{text:?}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
}

#[test]
fn files_of_other_commands_are_sent_there() {
    for (name, bytes, expected) in [
        ("a.onnx", b"\x08\x08".as_slice(), "cubinder onnx list"),
        ("a.toml", b"schema = 1", "cubinder check"),
        ("a.cu", b"__global__", "cubinder check"),
        ("a.bin", b"\x50\xed\x55\xba\x01\x00", "cuobjdump"),
    ] {
        assert!(help(Path::new(name), bytes).is_some_and(|help| help.contains(expected)), "{name}");
    }
    assert_eq!(help(Path::new("a.plan"), b"ptrt"), None);
}
