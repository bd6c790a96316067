//! What is told of pointers: of real kernels, and of lines that are made for it.

use std::path::Path;

use super::function;
use crate::loaded::{Answer, Usage};

/// `read`, `written`, both or `-`, with `?` where it is not known.
pub(super) fn shown(usage: Usage) -> String {
    let one = |answer: Answer, word: &str| match answer {
        Answer::No => None,
        Answer::Unknown => Some(format!("{word}?")),
        Answer::Yes => Some(word.to_owned()),
    };
    let all: Vec<String> =
        [one(usage.read, "read"), one(usage.written, "written")].into_iter().flatten().collect();
    if all.is_empty() { "-".to_owned() } else { all.join(" ") }
}

fn of_text(text: &str) -> Vec<String> {
    function(text).unwrap().arguments.iter().map(|argument| shown(argument.usage)).collect()
}

/// Of a kernel of `tests/data/ttir/kernels.py`, as Triton 3.9 wrote it.
fn of_kernel(name: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ttir");
    of_text(&std::fs::read_to_string(folder.join(name).with_extension("ttir")).unwrap())
}

/// Of a kernel of two pointers and a number with these lines.
fn of_lines(lines: &str) -> Vec<String> {
    of_text(&format!(
        "module {{\n tt.func public @k(%x: !tt.ptr<f32> loc(\"x\"), %y: !tt.ptr<f32> loc(\"y\"), %n: i32 loc(\"n\")) \
         attributes {{noinline = false}} {{\n{lines}\n tt.return\n }}\n}}\n"
    ))
}

const NOTHING_IS_KNOWN: [&str; 3] = ["read? written?", "read? written?", "-"];

#[test]
fn kernels_of_triton_are_understood() {
    for (kernel, expected) in [
        ("gelu", vec!["read", "written", "-"]),
        ("persist", vec!["read", "written", "-"]),
        ("moving", vec!["read", "written", "-"]),
        ("total", vec!["read", "read written", "-"]),
        ("add_to", vec!["read", "read written", "-"]),
        // It reads what it wrote.
        ("softmax", vec!["read", "read? written", "-"]),
        // One program writes what another one reads.
        ("locked", vec!["read", "read? written", "read written", "-"]),
        ("described", vec!["read", "written", "read written", "-"]),
        ("assembled", vec!["read", "written", "read? written?", "-"]),
        ("called", vec!["read", "written", "read? written?", "-"]),
        ("best", vec!["read", "written", "written", "-"]),
        ("either", vec!["read", "written", "read written", "-"]),
        ("matmul", vec!["read", "read", "written", "-"]),
        ("fetched", vec!["read", "read? written", "-"]),
    ] {
        assert_eq!(of_kernel(kernel), expected, "{kernel}");
    }
}

#[test]
fn pointers_are_followed_through_branches_and_loops() {
    let branch = "%c = arith.cmpi sgt, %n, %n : i32\n %1 = scf.if %c -> (!tt.ptr<f32>) {\n \
        %5 = tt.addptr %y, %n : !tt.ptr<f32>, i32\n scf.yield %5 : !tt.ptr<f32>\n } else {\n \
        scf.yield %y : !tt.ptr<f32>\n }\n tt.store %1, %n : !tt.ptr<f32>";
    assert_eq!(of_lines(branch), ["-", "written", "-"]);
    let other = branch.replace("else {\n scf.yield %y", "else {\n scf.yield %x");
    assert_eq!(of_lines(&other), ["written", "written", "-"]);
    let turn = "%0 = scf.for %i = %n to %n step %n iter_args(%p = %x) -> (!tt.ptr<f32>) : i32 {\n \
        scf.yield %y : !tt.ptr<f32>\n }\n tt.store %0, %n : !tt.ptr<f32>";
    assert_eq!(of_lines(turn), ["written", "written", "-"]);
    // Pointers that a loop exchanges.
    let exchanged = "%0:2 = scf.for %i = %n to %n step %n iter_args(%p = %x, %q = %y) -> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {\n \
        tt.store %p, %n : !tt.ptr<f32>\n scf.yield %q, %p : !tt.ptr<f32>, !tt.ptr<f32>\n }";
    assert_eq!(of_lines(exchanged), ["written", "written", "-"]);
    let kept = exchanged.replace("yield %q, %p", "yield %p, %q");
    assert_eq!(of_lines(&format!("{kept}\n %1 = tt.load %0#1 : f32")), ["written", "read", "-"]);
    let jump = "cf.cond_br %n, ^bb1(%x : !tt.ptr<f32>), ^bb2\n ^bb1(%p: !tt.ptr<f32>):  // pred: ^bb0\n \
        tt.store %p, %n : !tt.ptr<f32>\n tt.return\n ^bb2:\n tt.return";
    assert_eq!(of_lines(jump), ["written", "-", "-"]);
    let chosen = "%c = arith.cmpi sgt, %n, %n : i32\n %0 = arith.select %c, %x, %y : !tt.ptr<f32>\n \
        tt.store %0, %n : !tt.ptr<f32>";
    assert_eq!(of_lines(chosen), ["written", "written", "-"]);
}

#[test]
fn a_name_that_is_given_again_is_another_value() {
    let twice = "scf.if %n {\n %0 = tt.addptr %x, %n : !tt.ptr<f32>, i32\n %1 = tt.load %0 : !tt.ptr<f32>\n } else {\n \
        %0 = tt.addptr %y, %n : !tt.ptr<f32>, i32\n tt.store %0, %n : !tt.ptr<f32>\n }";
    assert_eq!(of_lines(twice), ["read", "written", "-"]);
    let within = "%0 = tt.load %x : f32\n %0 = tt.load %y : f32";
    assert_eq!(of_lines(within), NOTHING_IS_KNOWN);
}

#[test]
fn where_it_leads_to_nothing_that_is_known_everything_may_be() {
    for lines in [
        "%0 = strange.of %x\n %1 = tt.load %0 : f32\n tt.store %0, %n : f32",
        "tt.store %n, %n : !tt.ptr<f32>\n %0 = tt.load %n : f32",
        "tt.store %nowhere, %n : !tt.ptr<f32>\n %0 = tt.load %nowhere : f32",
        "%0 = tt.load %x : i64\n %1 = tt.atomic_rmw fadd, acq_rel, gpu, %0, %n : f32",
        "^bb1(%p: !tt.ptr<f32>):\n tt.store %p, %n : !tt.ptr<f32>\n %0 = tt.load %p : f32",
        "cf.br ^bb1(%x, %y : f32, f32)\n ^bb1(%p: !tt.ptr<f32>):",
        "cf.br ^nowhere",
        "scf.if %n {\n scf.if %n {",
        "scf.for %i = %n to %n {\n }",
        "%0:2 = scf.for %i = %n to %n step %n iter_args(%p = %x) -> (f32, f32) {\n }",
        "%0 = scf.while (%p = %x) : (f32) -> f32 {\n scf.condition(%n) %p, %p : f32\n } do {\n ^bb0(%p: f32):\n scf.yield %p\n }",
        "%0:4000000000 = arith.select %x, %y : f32",
        "scf.yield \"%x",
    ] {
        let found = of_lines(lines);
        assert!(found.iter().take(2).all(|usage| usage.contains('?')), "{lines}: {found:?}");
    }
    let nothing = of_lines("strange.thing\n %0 = strange.number : i32\n tt.store %y, %0 : !tt.ptr<f32>");
    assert_eq!(nothing, ["-", "written", "-"]);
    assert_eq!(of_lines("strange.thing %x {\n }"), ["read? written?", "-", "-"]);
}

#[test]
fn what_is_read_before_it_is_written_was_there_before() {
    let (load, store) = ("%0 = tt.load %y : f32", "tt.store %y, %n : f32");
    let behind = |lines: &str| format!("scf.if %n {{\n {lines}\n }}");
    let around = |lines: &str| format!("scf.for %i = %n to %n step %n : i32 {{\n {lines}\n }}");
    let wait = "%9 = tt.atomic_cas acq_rel, gpu, %x, %n, %n : i32\n %8 = arith.addi %9, %9 : i32";
    for (lines, expected) in [
        (format!("{load}\n {store}"), "read written"),
        (format!("{store}\n {load}"), "read? written"),
        (format!("{}\n {store}", behind(load)), "read written"),
        (around(&format!("{load}\n {store}")), "read written"),
        (around(&format!("{store}\n {load}")), "read? written"),
        // An earlier turn may have written it.
        (around(&format!("{}\n {store}", behind(load))), "read? written"),
        // So may another program.
        (format!("{wait}\n {}\n {store}", behind(load)), "read? written"),
        (format!("{wait}\n {load}\n {store}"), "read written"),
        ("%0 = tt.atomic_rmw exch, acq_rel, gpu, %y, %n, %n : i32".to_owned(), "written"),
        (
            "%0 = tt.atomic_rmw exch, acq_rel, gpu, %y, %n, %n : i32\n %1 = arith.addi %0, %0 : i32"
                .to_owned(),
            "read written",
        ),
    ] {
        assert_eq!(of_lines(&lines)[1], expected, "{lines}");
    }
}

#[test]
fn descriptors_that_the_host_makes_are_addresses() {
    let text = "tt.func public @k(%x: !tt.ptr<f32>, %d: !tt.tensordesc<8xf32>, %n: i32) attributes {noinline = false} {\n \
        tt.descriptor_store %d[%n], %n : f32\n %0 = tt.load %x : f32\n tt.return\n }";
    assert_eq!(of_text(text), ["read", "written", "-"]);
}

/// A text of many lines, and one line of many values.
#[test]
fn long_texts_are_read_in_time() {
    let parameters: Vec<String> = (0..200).map(|at| format!("%x{at}: !tt.ptr<f32> loc(\"x{at}\")")).collect();
    let mut text = format!("module {{\n tt.func public @k({}) {{\n", parameters.join(", "));
    let all: Vec<String> = (0..200).map(|at| format!("%x{at}")).collect();
    text.push_str(&format!("%0 = arith.addi {} : f32\n", all.join(", ")));
    let mut at = 0;
    while text.len() < 1 << 20 {
        text.push_str(&format!("%{} = arith.addi %{at}, %{at} : f32\n", at + 1));
        at += 1;
    }
    text.push_str(&format!("tt.store %{at}, %0 : f32\n}}\n}}\n"));
    let many = |name: &str| (0..12_000).map(|at| format!("%{name}{at}")).collect::<Vec<_>>().join(", ");
    let wide = format!("{} = arith.addi %y, {} : f32\n tt.store %r7, %n : f32", many("r"), many("o"));
    let carried = (0..12_000).map(|at| format!("%p{at} = %x")).collect::<Vec<_>>().join(", ");
    let looped = format!(
        "%r:12000 = scf.for %i = %n to %n step %n iter_args({carried}) -> ({}) {{\n scf.yield {} : f32\n }}\n tt.store %r#7, %n : f32",
        "f32, ".repeat(12_000),
        many("p")
    );
    let folded = format!(
        "{} = \"tt.reduce\"({}) <{{axis = 0 : i32}}> ({{\n ^bb0({}):\n tt.reduce.return {} : f32\n }}) : f32",
        many("r"),
        many("o"),
        many("a"),
        many("a")
    );
    let start = std::time::Instant::now();
    assert!(of_text(&text).iter().all(|usage| usage == "written"));
    assert_eq!(of_lines(&wide), NOTHING_IS_KNOWN.map(|usage| usage.replace("read? ", "")));
    assert_eq!(of_lines(&looped), ["written", "-", "-"]);
    assert_eq!(of_lines(&folded), ["-", "-", "-"]);
    // It is a tenth of that with optimizations.
    assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
}
