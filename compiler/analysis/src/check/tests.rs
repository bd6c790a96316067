use std::sync::Arc;

use cubinder_expr::ScalarType;
use cubinder_model::{Arg, ArgValue, KernelFacts, Target};

use super::draft_view::{DraftView, Pools};
use super::{CheckedDraft, Obligation, UnitCode, Verdict, check_arguments, check_compiled, scratch};
use crate::diagnostic::{Colour, Source, render};
use crate::manifest::Route;
use crate::resolve::Resolved;
use crate::rules;
use crate::test_support::{Sample, resolved};

fn manifest(launch: &str, input: &str) -> Resolved {
    let sample = Sample { launch, ..Sample::PLAIN };
    let grid = "grid = [\"ceil_div(numel(y), 256)\"]\n";
    resolved("m.toml", &of_input(&sample, input).replacen(grid, "", 1))
}

fn check(resolved: &Resolved) -> CheckedDraft {
    super::check(resolved, &[], resolved.manifest.compile.route())
}

fn of_input(sample: &Sample<'_>, input: &str) -> String {
    sample.text().replace("rank = \"1..=8\"", if input.is_empty() { "rank = \"1..=8\"" } else { input })
}

fn shown(checked: &CheckedDraft) -> String {
    let verdict = |obligation: &Obligation| match (&obligation.verdict, obligation.is_beyond) {
        (Verdict::Proved, _) => "proved",
        (Verdict::Open, _) => "open",
        (Verdict::Refuted(_), false) => "refuted",
        (Verdict::Refuted(_), true) => "beyond TensorRT",
    };
    let line = |obligation: &Obligation| {
        let found = obligation.found.as_ref().map(|found| format!(": {found}")).unwrap_or_default();
        format!("{}: {}{found}\n", verdict(obligation), obligation.statement)
    };
    let obligations: String = checked.obligations.iter().map(line).collect();
    format!("{obligations}{}", render(&checked.diagnostics, Colour::Plain))
}

#[test]
fn limits_of_launches() {
    let launches = [
        // Fails only for tensors that TensorRT rejects.
        ("grid = [\"ceil_div(numel(y), 256)\"]\nblock = [256]", ""),
        ("grid = [\"ceil_div(numel(y), 256)\"]\nblock = [256]", "limits = { numel = \"..=2147483647\" }"),
        ("grid = [1, \"x.shape[0]\"]\nblock = [256]", "rank = 2"),
        ("grid = [1, \"x.shape[0]\"]\nblock = [256]", "rank = 2\nlimits = { dims = \"..=65536\" }"),
        ("grid = [1, \"x.shape[0]\"]\nblock = [256]", "rank = 2\nlimits = { dims = \"..=65535\" }"),
        (
            "grid = [1]\nblock = [\"x.shape[0]\", \"x.shape[1]\"]",
            "rank = 2\nlimits = { dims = [\"1..=64\", \"1..=32\"] }",
        ),
        (
            "grid = [1]\nblock = [\"x.shape[0]\", \"x.shape[1]\"]",
            "rank = 2\nlimits = { dims = [\"1..=32\", \"1..=32\"] }",
        ),
        ("grid = [1]\nblock = [\"x.shape[0] + 1025\"]", "rank = 1"),
        ("grid = [1]\nblock = [32]\nshared_bytes = \"x.shape[0] * 1024\"", "rank = 1"),
        (
            "grid = [1]\nblock = [32]\nshared_bytes = \"x.shape[0] * 1024\"",
            "rank = 1\nlimits = { dims = \"..=227\" }",
        ),
        ("grid = [\"1000 // x.shape[0]\"]\nblock = [32]", "rank = 1"),
        ("grid = [\"1000 // x.shape[0]\"]\nblock = [32]", "rank = 1\nlimits = { dims = \"1..\" }"),
        ("grid = [\"ceil_div(numel(y), 256)\"]\nblock = [\"min(numel(y), 256)\"]", ""),
        (
            "grid = [\"ceil_div(numel(y), 256)\", \"x.shape[0]\"]\nblock = [256]",
            "rank = 2\nlimits = { numel = \"..=65535\" }",
        ),
        ("grid = [\"numel(y) // 256\"]\nblock = [256]", ""),
        ("grid = [\"(numel(y) + 255) // 256\"]\nblock = [256]", ""),
        ("grid = [\"numel(y) // 256\"]\nblock = [256]", "limits = { numel = \"256..\" }"),
        ("grid = [\"x.shape[0] - 1\"]\nblock = [256]", "rank = 1\nlimits = { dims = \"1..\" }"),
        ("grid = [\"0 * x.rank\"]\nblock = [256]", ""),
    ];
    let text: Vec<String> = launches
        .iter()
        .map(|(launch, input)| {
            format!(
                "# {}\n# {}\n{}",
                launch.replace('\n', "; "),
                input.replace('\n', "; "),
                shown(&check(&manifest(launch, input)))
            )
        })
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

fn code(max_threads: Option<u32>, registers: u32, shared: u32) -> KernelFacts {
    KernelFacts {
        symbol: "k".to_owned(),
        registers: Some(registers),
        shared_bytes: Some(shared),
        local_bytes: Some(0),
        max_threads,
        params: Vec::new(),
    }
}

fn of_code(launch: &str, codes: &[(&str, KernelFacts)]) -> String {
    let resolved = manifest(launch, "rank = 1");
    let codes: Vec<(Target, &KernelFacts)> =
        codes.iter().map(|(target, facts)| (target.parse().unwrap(), facts)).collect();
    format!(
        "# {}\n{}",
        launch.replace('\n', "; "),
        shown(&check_compiled(
            &resolved,
            &[],
            Route::Plugin,
            &[UnitCode { args: &[], read_only: &[], number_bytes: &[], cluster: None, codes }]
        ))
    )
}

#[test]
fn limits_of_compiled_kernels() {
    let bounds = [("sm_86", code(Some(256), 32, 0)), ("sm_90", code(Some(256), 32, 0))];
    let registers = [("sm_86", code(Some(1024), 32, 0)), ("sm_90", code(None, 100, 0))];
    let shared = [("sm_86", code(None, 32, 1024)), ("sm_90", code(None, 32, 1024))];
    let text = [
        of_code("grid = [1]\nblock = [\"x.shape[0]\"]", &bounds),
        of_code("grid = [1]\nblock = [\"min(x.shape[0], 256)\"]", &bounds),
        of_code("grid = [1]\nblock = [\"x.shape[0] + 256\"]", &bounds),
        of_code("grid = [1]\nblock = [\"x.shape[0]\", 4]", &bounds),
        of_code("grid = [1]\nblock = [\"x.shape[0]\", \"x.rank\"]", &bounds),
        of_code("grid = [1]\nblock = [\"x.shape[0]\"]", &registers),
        of_code("grid = [1]\nblock = [32]\nshared_bytes = \"x.shape[0] * 1024\"", &shared),
        of_code("grid = [1]\nblock = [256]\nshared_bytes = 1024", &bounds),
        of_code("grid = [1]\nblock = [32]\nshared_bytes = \"device.shared_bytes - 1024\"", &shared),
        of_code("grid = [1]\nblock = [32]\nshared_bytes = \"device.shared_bytes - 512\"", &shared),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn numbers_that_do_not_fit_their_parameters() {
    let of = |ty: ScalarType, value: &str, input: &str| {
        let sample = Sample { args: &format!("x = \"x\"\ny = \"y\"\nn = \"{value}\""), ..Sample::PLAIN };
        let resolved = resolved("m.toml", &of_input(&sample, input));
        let expr = resolved.draft.units[0].args.iter().find(|arg| arg.name == "n").unwrap();
        let crate::resolve::ArgDraftValue::Expr { expr, .. } = &expr.value else { panic!("not a number") };
        let args = [Arg { name: "n".to_owned(), value: ArgValue::Scalar { ty, expr: expr.clone() } }];
        let checked = check_compiled(
            &resolved,
            &[],
            Route::Plugin,
            &[UnitCode { args: &args, read_only: &[], number_bytes: &[], cluster: None, codes: Vec::new() }],
        );
        format!("# {value} as {ty:?}; {input}\n{}", shown(&checked))
    };
    let text = [
        of(ScalarType::Int { bytes: 4 }, "numel(x)", ""),
        of(ScalarType::Int { bytes: 4 }, "2 * numel(x)", ""),
        of(ScalarType::Int { bytes: 4 }, "2 * numel(x)", "limits = { numel = \"..=1073741823\" }"),
        of(ScalarType::UInt { bytes: 4 }, "x.rank - 1", ""),
        of(ScalarType::UInt { bytes: 4 }, "x.rank - 1", "rank = \"0..=8\""),
        of(ScalarType::Int { bytes: 1 }, "x.rank * 16", ""),
        of(ScalarType::Natural { bits: 7 }, "x.rank * 15", ""),
        of(ScalarType::Natural { bits: 7 }, "x.rank * 16", ""),
        of(ScalarType::F32, "numel(x)", ""),
        of(ScalarType::Int { bytes: 8 }, "numel(x)", ""),
        of(ScalarType::F32, "1e300", ""),
        of(ScalarType::F64, "1e300", ""),
        of(ScalarType::F32, "inf", ""),
        of(ScalarType::F32, "16777217", ""),
        of(ScalarType::F32, "16777218", ""),
        of(ScalarType::F64, "9007199254740993", ""),
        of(ScalarType::F64, "9007199254740994", ""),
        of(ScalarType::F32, "-1e30 * 1e30", ""),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn what_would_mend_an_index() {
    let of = |change: &[(&str, &str)], input: &str| {
        let mut text = of_input(&Sample::PLAIN, input);
        for (what, by) in change {
            assert!(text.contains(what), "{text}");
            text = text.replacen(what, by, 1);
        }
        shown(&check(&resolved("m.toml", &text)))
    };
    let pads = "[[outputs]]";
    let with_pads = "[attributes.pads]\ntype = \"i32[]\"\n\n[[outputs]]";
    let text = [
        of(&[("numel(y), 256", "x.shape[1], 256")], ""),
        of(&[("numel(y), 256", "x.shape[1], 256")], "rank = \"1..=2\""),
        of(&[("numel(y), 256", "numel(x) + pads[1], 256"), (pads, with_pads)], "rank = 1"),
        of(&[("numel(y), 256", "numel(x) + pads[x.rank], 256"), (pads, with_pads)], ""),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn a_shape_that_no_tensor_has_is_the_only_mistake() {
    let text =
        of_input(&Sample::PLAIN, "rank = 2").replacen("shape = \"x.shape\"", "shape = \"[-1, 256]\"", 1);
    let rules =
        "[[plugin.require]]\nexpr = \"x.shape[1] == 256\"\nmessage = \"the rows have 256 elements\"\n";
    let guarded = "[[variants]]\nid = 1\nguard = \"x.shape[0] > 4\"\n\n[[variants]]\nid = 2\n\n[[launches]]";
    let text = text.replacen("[[inputs]]", &format!("{rules}\n[[inputs]]"), 1);
    let text = text.replacen("[[launches]]", guarded, 1);
    insta::assert_snapshot!(render(&check(&resolved("m.toml", &text)).diagnostics, Colour::Plain));
}

#[test]
fn a_guard_without_a_value_does_not_hold() {
    let guarded = "[[variants]]\nid = 1\nguard = \"numel(y) % x.shape[0] == 0\"\n\n[[variants]]\nid = 2\n\n[[launches]]";
    let text = of_input(&Sample::PLAIN, "rank = 1").replacen("[[launches]]", guarded, 1);
    insta::assert_snapshot!(render(&check(&resolved("m.toml", &text)).diagnostics, Colour::Plain));
}

#[test]
fn rows_that_are_always_wrong_take_precedence() {
    let of = |first: i64, second: i64| {
        let variants = format!(
            "[[variants]]\nid = 1\nguard = \"x.shape[0] != 4\"\nconstants = {{ D = {first} }}\n\n\
             [[variants]]\nid = 2\nconstants = {{ D = {second} }}\n\n[[launches]]"
        );
        let sample = Sample {
            launch: "block = [256]",
            args: "x = \"x\"\ny = \"y\"\nn = \"1 // (x.shape[0] * (D - 1) - (D - 1))\"",
            ..Sample::PLAIN
        };
        let text = of_input(&sample, "rank = 2").replacen("[[launches]]", &variants, 1);
        render(&check(&resolved("m.toml", &text)).diagnostics, Colour::Plain)
    };
    for (text, row) in [(of(1, 2), "in variant 1 (D=1)"), (of(2, 1), "in variant 2 (D=1)")] {
        assert!(text.contains("error[C0104]: the argument `n` never has a value"), "{text}");
        assert!(text.contains(&format!("= note: {row}\n")), "{text}");
        assert_eq!(text.matches("[C0").count(), 1, "{text}");
    }
    let of_both = of(1, 1);
    assert!(of_both.contains("never has a value") && !of_both.contains("in variant"), "{of_both}");
}

#[test]
fn a_grid_may_be_empty_where_a_scratch_buffer_is() {
    let of = |bytes: &str| {
        let scratch = format!("[scratch.s]\nbytes = \"{bytes}\"\n\n[[launches]]");
        let launch = "grid = [\"numel(x) // 256\"]\nblock = [256]";
        let sample = Sample { launch, args: "x = \"x\"\ny = \"y\"\ns = \"s\"", ..Sample::PLAIN };
        let text = of_input(&sample, "rank = 2").replacen("[[launches]]", &scratch, 1);
        let text = text.replacen("grid = [\"ceil_div(numel(y), 256)\"]\n", "", 1);
        render(&check(&resolved("m.toml", &text)).diagnostics, Colour::Plain)
    };
    for (bytes, is_told) in [("0", false), ("4 * 0", false), ("0 * numel(x)", false), ("4", true)] {
        let text = of(bytes);
        assert_eq!(
            text.contains("is not always at least 1 for nonempty outputs"),
            is_told,
            "{bytes}: {text}"
        );
    }
}

#[test]
fn the_text_of_a_kernel_tells_what_its_parameters_hold() {
    let of = |kernel: &str, value: &str| {
        let sample = Sample { args: &format!("x = \"x\"\ny = \"y\"\nn = \"{value}\""), ..Sample::PLAIN };
        let resolved = resolved("m.toml", &sample.text());
        let source = Source::new("k.cu", kernel);
        let kernels = crate::kernel_text::check(&resolved, &[], &[], &|_| Ok(Arc::clone(&source)));
        assert!(kernels.diagnostics.is_empty(), "{}", render(&kernels.diagnostics, Colour::Plain));
        format!(
            "# {kernel}, {value}\n{}",
            shown(&check_arguments(&resolved, &[], Route::Plugin, &kernels.args))
        )
    };
    let plain = |ty: &str| format!("__global__ void k(const float* x, float* y, {ty} n) {{}}");
    let text = [
        of(&plain("int"), "5000000000"),
        of(&plain("int"), "2 * numel(x)"),
        of(&plain("long long"), "2 * numel(x)"),
        of(&plain("cubinder::array<int, 2>"), "[1, 3000000000]"),
        of(&plain("cubinder::array<int, 2>"), "x.shape"),
        // Only a compile knows `count_t`.
        of(&format!("#include \"count.h\"\n{}", plain("count_t")), "2 * numel(x)"),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn manifests_that_no_node_can_meet() {
    let of = |output: &str, input: &str| {
        let sample = Sample { launch: "block = [\"x.shape[0] - 1\"]", ..Sample::PLAIN };
        let text = of_input(&sample, input);
        shown(&check(&resolved("m.toml", &text.replace("shape = \"x.shape\"", output))))
    };
    let text = [
        of("shape = \"x.shape\"\nlimits = { numel = \"100..\" }", "rank = 2\nlimits = { dims = \"1..=4\" }"),
        of("shape = \"[-1, x.shape[0]]\"", "rank = 2"),
        of("shape = \"[1, x.shape[0], 1, 1, 1, 1, 1, 1, 1]\"", "rank = 2"),
        of("shape = \"[x.shape[i // 2] for i in range(2 * x.rank)]\"", ""),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn devices_are_those_of_the_targets() {
    let told = |launch: &str, tables: &str, targets: &[&str]| {
        let resolved = resolved("m.toml", &Sample { launch, tables, ..Sample::PLAIN }.text());
        let targets: Vec<Target> = targets.iter().map(|target| target.parse().unwrap()).collect();
        let codes = super::check(&resolved, &targets, Route::Plugin).diagnostics;
        codes.iter().filter_map(|one| one.code.map(|code| code.0)).collect::<Vec<_>>()
    };
    let shared = "block = [256]\nshared_bytes = \"device.shared_bytes\"";
    for targets in [&["sm_90"][..], &["sm_80", "sm_90"], &["compute_80"], &[]] {
        assert_eq!(told(shared, "", targets), [""; 0], "{targets:?}");
    }
    let more = "block = [256]\nshared_bytes = \"device.shared_bytes + 4\"";
    assert_eq!(told(more, "", &["sm_90"]), ["C0303"]);
    let bytes = "block = [256]\nshared_bytes = \"65536 if device.capability >= 120 else 131072\"";
    assert_eq!(told(bytes, "", &["sm_80", "sm_90", "sm_120"]), [""; 0]);
    assert_eq!(told(bytes, "", &["sm_80", "sm_86"]), ["C0303"]);
    assert_eq!(told(bytes, "", &[]), [""; 0]);
    // The only variant's guard must accept all targets' GPUs.
    let guard = "[[variants]]\nid = 1\nguard = \"device.capability >= 90\"";
    let plain = "block = [256]";
    assert_eq!(told(plain, guard, &["sm_90"]), [""; 0]);
    for targets in [&["sm_80", "sm_90"][..], &["compute_80"], &[]] {
        assert_eq!(told(plain, guard, targets), ["C0203"], "{targets:?}");
    }
    let whole = "block = [256]\ncluster = [\"2 if device.capability >= 90 else 1\"]";
    let grid = |launch: &str| format!("{launch}\ngrid = [32]");
    let clusters = |launch: &str| {
        let text = Sample { launch: &grid(launch), ..Sample::PLAIN }.text();
        let text = text.replacen("grid = [\"ceil_div(numel(y), 256)\"]\n", "", 1);
        let targets = ["sm_80", "sm_90"].map(|target| target.parse::<Target>().unwrap());
        let found = super::check(&resolved("m.toml", &text), &targets, Route::Plugin).diagnostics;
        found.iter().filter_map(|one| one.code.map(|code| code.0)).collect::<Vec<_>>()
    };
    assert_eq!(clusters(whole), [""; 0]);
    assert_eq!(clusters("block = [256]\ncluster = [2]"), ["C0605"]);
}

#[test]
fn nothing_is_claimed_of_sizes_that_kernels_write() {
    let text =
        |shape: &str| include_str!("../../../../tests/data/ok/sizes.toml").replace("[count, x.rank]", shape);
    let claimed = |shape: &str| -> Vec<String> {
        let resolved = resolved("m.toml", &text(shape));
        let obligations = check(&resolved).obligations;
        let of_shape =
            obligations.into_iter().filter(|one| one.statement.starts_with("the shape of `indices`"));
        of_shape.map(|one| format!("{:?}: {}", one.verdict, one.statement)).collect()
    };
    assert_eq!(claimed("[count, 4]"), [""; 0]);
    let told = "Proved: the shape of `indices` except `count` has no negative dimension";
    assert_eq!(claimed("[count, x.rank]"), [told]);
}

#[test]
fn what_comes_of_it_where_tensorrt_launches_itself() {
    let grid = "grid = [\"ceil_div(numel(y), 256)\"]\n";
    let of = |input: &str, change: &[(&str, &str)]| {
        let mut text = of_input(&Sample::PLAIN, input);
        for (what, by) in change {
            assert!(text.contains(what), "{text}");
            text = text.replacen(what, by, 1);
        }
        let found = super::check(&resolved("m.toml", &text), &[], Route::Native);
        let told = render(&found.diagnostics, Colour::Plain);
        assert!(!found.diagnostics.is_empty() && !told.contains("run time"), "{told}");
        assert!(found.obligations.iter().all(|one| one.route == Route::Native));
        told
    };
    let guarded = |guard: &str, last: &str| {
        format!("[[variants]]\nid = 1\nguard = \"{guard}\"\n\n[[variants]]\nid = 2\n{last}\n[[launches]]")
    };
    let shape = "shape = \"x.shape\"";
    let text = [
        of("rank = 2", &[(grid, "grid = [1, \"x.shape[0]\"]\n")]),
        of("rank = 1", &[("block = [256]", "block = [\"1 + x.shape[0]\"]")]),
        of("rank = 1", &[("block = [256]", "block = [256]\nshared_bytes = \"x.shape[0] * 1024\"")]),
        of(
            "rank = 1\nlimits = { dims = \"..=100\" }",
            &[("block = [256]", "block = [256]\nshared_bytes = \"x.shape[0] * 512\"")],
        ),
        of("rank = 1", &[("block = [256]", "block = [256]\nshared_bytes = 49156")]),
        of("rank = 1", &[("block = [256]", "block = [256]\nshared_bytes = \"49156 + x.shape[0]\"")]),
        of("rank = 1", &[("[[launches]]\n", "[[launches]]\nwhen = \"x.shape[0] > 4\"\n")]),
        of("rank = 1", &[(shape, "shape = \"[x.shape[0] - 3]\"")]),
        of("rank = 1", &[(shape, "shape = \"[840 // x.shape[0]]\"")]),
        of("rank = 1", &[("[[launches]]", &guarded("numel(y) % x.shape[0] == 0", ""))]),
        of("rank = 1", &[("[[launches]]", &guarded("numel(y) > 9", "guard = \"numel(y) < 5\"\n"))]),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn nothing_is_said_of_clusters_and_cooperative_launches_where_there_are_none() {
    let launch = "block = [256]\ncooperative = true\ncluster = [2]";
    let resolved = resolved("m.toml", &Sample { launch, ..Sample::PLAIN }.text());
    let targets = ["sm_80".parse::<Target>().unwrap()];
    let codes = |route| {
        let found = super::check(&resolved, &targets, route).diagnostics;
        found.iter().filter_map(|one| one.code.map(|code| code.0)).collect::<Vec<_>>()
    };
    assert_eq!(codes(Route::Plugin), ["C0314", "C0313", "C0605"]);
    assert_eq!(codes(Route::Native), [""; 0]);
}

#[test]
fn shared_memory_that_nobody_asks_for_is_less() {
    let told = |bytes: &str, fixed: u32, route| {
        let launch = format!("grid = [1]\nblock = [32]\nshared_bytes = {bytes}");
        let resolved = manifest(&launch, "rank = 1\nlimits = { dims = \"..=40\" }");
        let facts = code(None, 32, fixed);
        let codes = vec![("sm_90".parse::<Target>().unwrap(), &facts)];
        let compiled = UnitCode { args: &[], read_only: &[], number_bytes: &[], cluster: None, codes };
        shown(&check_compiled(&resolved, &[], route, &[compiled]))
    };
    for bytes in ["40960", "\"x.shape[0] * 1024\""] {
        assert!(!told(bytes, 16384, Route::Plugin).contains("C0303"));
        assert!(!told(bytes, 8192, Route::Native).contains("C0303"));
        let found = told(bytes, 16384, Route::Native);
        assert!(found.contains("C0303") && found.contains("32768"), "{found}");
    }
}

#[test]
fn an_unwritten_output_is_blamed_on_a_division_only_if_it_leaves_blocks_out() {
    let rounds_up = |launch: &str| {
        let sample = Sample { launch, ..Sample::PLAIN };
        let text = of_input(&sample, "rank = 1").replacen("grid = [\"ceil_div(numel(y), 256)\"]\n", "", 1);
        let text = text.replacen("shape = \"x.shape\"", "shape = \"[x.shape[0] + 1]\"", 1);
        let found = check(&resolved("m.toml", &text)).diagnostics;
        let found: Vec<String> = found
            .iter()
            .filter(|one| one.code == Some(rules::UNWRITTEN_OUTPUT))
            .map(|one| render(std::slice::from_ref(one), Colour::Plain))
            .collect();
        let [text] = found.as_slice() else { panic!("{launch}: {found:?}") };
        assert!(text.contains("may stay unwritten"), "{text}");
        text.contains("use `ceil_div(n, d)` instead of `n // d`")
    };
    for (launch, expected) in [
        ("grid = [\"x.shape[0] // 256\"]\nblock = [256]", true),
        ("grid = [\"(x.shape[0] + 255) // 256\"]\nblock = [256]", false),
        ("grid = [\"x.shape[0] % 256\"]\nblock = [256]", false),
        ("when = \"x.shape[0] // 256 > 0\"\ngrid = [1]\nblock = [256]", false),
    ] {
        assert_eq!(rounds_up(launch), expected, "{launch}");
    }
}

#[test]
fn scratch_memory_that_is_no_whole_number_of_elements_is_claimed_once() {
    let claimed = |args: &str, bytes: &[(&str, u32)], variants: &str| {
        let tables = format!("[scratch.s]\nbytes = \"2 * numel(x)\"\n[scratch.t]\nbytes = 6\n{variants}");
        let args = format!("x = \"x\"\ny = \"y\"\n{args}");
        let resolved = resolved("m.toml", &Sample { tables: &tables, args: &args, ..Sample::PLAIN }.text());
        let number_bytes: Vec<(String, u32)> =
            bytes.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        let compiled = UnitCode {
            args: &[],
            read_only: &[],
            number_bytes: &number_bytes,
            cluster: None,
            codes: Vec::new(),
        };
        let pools = Pools::new();
        let view = DraftView::new(&resolved, &[], Route::Plugin, &pools);
        let found = scratch::whole_numbers(&view, &vec![compiled; resolved.draft.units.len()]);
        let name = |subject: &str| subject.split('`').nth(1).unwrap_or_default().to_owned();
        let must = |must: &str| must.split(',').next().unwrap_or_default().to_owned();
        found
            .iter()
            .map(|claim| {
                format!("{:?}: {} {}", claim.row(), name(&claim.term.subject), must(&claim.must.to_string()))
            })
            .collect::<Vec<_>>()
    };
    let s = "Some(0): s is a multiple of 4";
    assert_eq!(claimed("a = \"s\"", &[("a", 2), ("x", 64), ("t", 64)], ""), [""; 0]);
    assert_eq!(claimed("a = \"s\"\nb = \"s\"", &[("a", 4), ("b", 4)], ""), [s]);
    let both = [s, "Some(0): t is a multiple of 4"];
    assert_eq!(claimed("a = \"s\"\nb = \"t\"", &[("a", 4), ("b", 4)], ""), both);
    let targets = [s, "Some(0): s is a multiple of 8"];
    assert_eq!(claimed("a = \"s\"", &[("a", 4), ("a", 8)], ""), targets);
    let variants = "[[variants]]\nid = 1\nguard = \"numel(x) > 9\"\n[[variants]]\nid = 2\n";
    let rows = [s, "Some(1): s is a multiple of 4"];
    assert_eq!(claimed("a = \"s\"", &[("a", 4)], variants), rows);
}
