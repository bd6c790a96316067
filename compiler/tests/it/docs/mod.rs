//! The tables of `docs/manifest.md` are made from the program: keys, types, operators, functions, rules. This test compares
//! them; `cargo xtask docs` runs it with `CUBINDER_UPDATE_DOCS=1`, which writes them anew. Its examples are compiled. So it is with the tables of
//! `docs/plugins.md` and `docs/plugins/*.md`, which are made from the manifests that ship.

mod architecture;
mod plugins;
mod promises;
mod releases;

use std::path::PathBuf;

use cubinder_expr as expr;
use cubinder_expr::{BinaryOp, Builtin, Environment, Scope, SyntaxKind};
use cubinder_expr::{DataType, Value};
use cubinder_manifest::config::LIBRARY;
use cubinder_manifest::manifest::keys::{Key, Nested, Presence, ROOT, Table};
use cubinder_manifest::resolve::compile;
use cubinder_model::{AttributeElement, AttributeType};
use cubinder_source::diagnostic::{Colour, Source, render};
use cubinder_source::rules;

const END: &str = "<!-- end -->";

/// Markers of what `cargo xtask bench kernels --publish` writes.
const OTHERS: [&str; 1] = ["<!-- times -->"];

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/manifest.md")
}

/// Every table of a manifest once.
fn tables() -> Vec<&'static Table> {
    let mut tables = vec![&ROOT];
    for index in 0.. {
        let Some(table) = tables.get(index) else { break };
        for inner in table.keys.iter().flat_map(|key| key.nested.tables()) {
            if !tables.iter().any(|known| std::ptr::eq(*known, *inner)) {
                tables.push(inner);
            }
        }
    }
    tables
}

/// What stands between a marker and `<!-- end -->`.
fn generated() -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> =
        tables().into_iter().map(|table| (format!("<!-- keys: {} -->", name(table)), keys(table))).collect();
    parts.push(("<!-- attribute types -->".to_owned(), attribute_types()));
    parts.push(("<!-- element types -->".to_owned(), element_types()));
    parts.push(("<!-- operators -->".to_owned(), operators()));
    parts.push(("<!-- functions -->".to_owned(), functions()));
    parts.push(("<!-- rules -->".to_owned(), rules_table()));
    parts
}

/// How a marker calls a table.
fn name(table: &Table) -> &str {
    match table.path {
        "" => "file",
        "plugin.require[]" => "require",
        "inputs[].limits" => "limits",
        "tables.*(file)" => "tables with file",
        "launches[].memset" => "memset",
        "launches[].code" => "launches of code",
        "inputs[].shape_input" => "shape inputs",
        "outputs[].alias" => "outputs in place",
        "outputs[].size_tensor" => "size tensors",
        "outputs[].size" => "size",
        path => path.trim_end_matches("[]").trim_end_matches(".*"),
    }
}

#[test]
fn the_references_tables_are_those_of_the_program() {
    hold("manifest.md", &generated());
    hold("cubinder-toml.md", &[("<!-- keys: library -->".to_owned(), keys(&LIBRARY))]);
}

/// Holds what stands between markers of a page below `docs` against what is to stand there, or writes it.
fn hold(page: &str, generated: &[(String, String)]) {
    let path = path().with_file_name(page);
    let before = std::fs::read_to_string(&path).expect("the page is there");
    let mut after = before.clone();
    for (marker, table) in generated {
        let mut places = after.match_indices(marker);
        let start = places.next().unwrap_or_else(|| panic!("docs/{page} lacks {marker}")).0 + marker.len();
        assert!(places.next().is_none(), "docs/{page} has {marker} twice");
        let end = start + after[start..].find(END).unwrap_or_else(|| panic!("{marker} has no {END}"));
        after.replace_range(start..end, &format!("\n{table}"));
    }
    let others = OTHERS.iter().filter(|marker| after.contains(**marker)).count();
    assert_eq!(
        after.matches("<!--").count(),
        2 * (generated.len() + others),
        "docs/{page}: every marker is known"
    );
    if before == after {
        return;
    }
    if std::env::var_os("CUBINDER_UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(path, after).expect("the page can be written");
        return;
    }
    let (old, new) = before.lines().zip(after.lines()).find(|(old, new)| old != new).unwrap_or_default();
    panic!(
        "the tables of docs/{page} are out of date, run `cargo xtask docs`:\n  is     {old}\n  should {new}"
    );
}

fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn head(cells: &[&str]) -> String {
    format!("{}|{}\n", row(cells), "---|".repeat(cells.len()))
}

fn keys(table: &Table) -> String {
    let rows = table.keys.iter().map(|key| {
        let default = match key.presence {
            Presence::Required => "required".to_owned(),
            Presence::Optional => String::new(),
            Presence::Default(default) => format!("`{default}`"),
        };
        row(&[&format!("`{}`", key.name), key.value, &default, key.doc, &example(key)])
    });
    head(&["key", "value", "default", "meaning", "example"]) + &rows.collect::<String>()
}

fn example(key: &Key) -> String {
    match key.nested {
        Nested::Lines { .. } => format!("`{}`", key.example),
        Nested::None => format!("`{} = {}`", key.name, key.example),
        _ => String::new(),
    }
}

fn attribute_types() -> String {
    let rows = AttributeElement::ALL.into_iter().map(|element| {
        let ty = AttributeType { element, list: false };
        let list = AttributeType { element, list: true };
        let is_list = AttributeType::all().any(|other| other == list);
        let lists = if is_list { format!("`{}`", list.name()) } else { String::new() };
        let kinds = [Some(ty), is_list.then_some(list)].into_iter().flatten();
        let onnx = kinds.map(AttributeType::onnx_kind).collect::<Vec<_>>().join(", ");
        row(&[&format!("`{}`", ty.name()), &lists, &ty.kind().to_string(), &onnx, lost(element)])
    });
    head(&["type", "list", "in expressions", "ONNX attribute", "what does not pass"])
        + &rows.collect::<String>()
}

/// What TensorRT's parser or ONNX itself does not pass exactly (TensorRT-RTX 1.7).
fn lost(element: AttributeElement) -> &'static str {
    match element {
        AttributeElement::I8 | AttributeElement::I16 => {
            "numbers beyond 32 bits are cut to 32 before anyone can see it; others out of range are refused"
        }
        AttributeElement::I32 => "numbers beyond 32 bits are cut to 32 before anyone can see it",
        AttributeElement::I64 => "numbers beyond 32 bits: 4294967297 arrives as 1",
        AttributeElement::F16 => "nothing: the nearest half is meant, and one beyond 65504 is refused",
        AttributeElement::F32 => "",
        AttributeElement::F64 => "digits beyond single precision: 0.1 arrives as 0.10000000149",
        AttributeElement::Bool => "anything but 0 and 1 is refused",
        AttributeElement::String => "text that is no UTF-8 is refused; NUL ends a string",
        AttributeElement::Bytes => "a NUL at the very end may be lost",
    }
}

fn element_types() -> String {
    let rows = DataType::ALL.into_iter().map(|ty| {
        row(&[
            &format!("`{}`", ty.name()),
            &format!("`{}`", ty.cuda_name()),
            &ty.size().map_or_else(|| "two in one".to_owned(), |size| size.to_string()),
        ])
    });
    head(&["element type", "in CUDA C++", "bytes"]) + &rows.collect::<String>()
}

const BINARY: [BinaryOp; 14] = [
    BinaryOp::Or,
    BinaryOp::And,
    BinaryOp::Eq,
    BinaryOp::Ne,
    BinaryOp::Lt,
    BinaryOp::Le,
    BinaryOp::Gt,
    BinaryOp::Ge,
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::FloorDiv,
    BinaryOp::Mod,
    BinaryOp::Div,
];

/// How tightly an operator binds, by its row in the reference, and what it does.
fn described(op: BinaryOp) -> (usize, &'static str) {
    match op {
        BinaryOp::Or => (1, "booleans; the right side is not evaluated where the left is true"),
        BinaryOp::And => (2, "booleans; the right side is not evaluated where the left is false"),
        BinaryOp::Eq | BinaryOp::Ne => (4, "two values of one kind, arrays too"),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => (4, "numbers"),
        BinaryOp::Add | BinaryOp::Sub => (5, "numbers; overflow is an error"),
        BinaryOp::Mul => (6, "numbers; overflow is an error"),
        BinaryOp::FloorDiv => (6, "integers, rounded down: `-7 // 2` is -4; division by 0 is an error"),
        BinaryOp::Mod => (6, "integers; the rest of `//`, with the sign of the right side: `-7 % 4` is 1"),
        BinaryOp::Div => (6, "numbers, of which one at least is a float; division by 0 is an error"),
    }
}

fn operators() -> String {
    let mut rows: Vec<(usize, &str, String)> = vec![
        (0, "`c` is a boolean; only the side that is taken is evaluated", "`a if c else b`".to_owned()),
        (3, "a boolean", "`not a`".to_owned()),
        (7, "a number", "`-a`".to_owned()),
        (
            8,
            "element, field, call; an index below 0 counts from the end",
            "`a[i]`, `x.shape`, `f(a)`".to_owned(),
        ),
    ];
    for op in BINARY {
        let (level, doc) = described(op);
        let written = format!("`a {} b`", op.symbol());
        match rows.iter_mut().find(|(other, what, _)| (*other, *what) == (level, doc)) {
            Some((_, _, operators)) => *operators += &format!(", {written}"),
            None => rows.push((level, doc, written)),
        }
    }
    rows.sort_by_key(|(level, ..)| *level);
    let rows = rows.iter().map(|(level, doc, operators)| row(&[&(level + 1).to_string(), operators, doc]));
    head(&["binds", "operator", "on"]) + &rows.collect::<String>()
}

/// The parser groups as the rows of the table say.
#[test]
fn operators_bind_as_the_reference_says() {
    let root = |text: &str| match expr::parse(text).expect(text).kind {
        SyntaxKind::Binary(op, ..) => op,
        other => panic!("{text}: {other:?}"),
    };
    for left in BINARY {
        for right in BINARY {
            let text = format!("a {} b {} c", left.symbol(), right.symbol());
            let (looser, tighter) = (described(left).0, described(right).0);
            if looser == 4 && tighter == 4 {
                assert!(expr::parse(&text).is_err(), "{text}: comparisons do not chain");
                continue;
            }
            let expected = if looser < tighter { left } else { right };
            assert_eq!(root(&text), expected, "{text}");
        }
    }
    let is_unary = |text: &str| matches!(expr::parse(text).expect(text).kind, SyntaxKind::Unary(..));
    assert!(is_unary("not a == b") && !is_unary("not a and b"));
    assert!(!is_unary("-a * b") && is_unary("-a[0]"));
    assert!(matches!(
        expr::parse("a or b if c else d").expect("it parses").kind,
        SyntaxKind::Conditional { .. }
    ));
}

/// How a function is called, what it gives, and a call without names.
fn function(builtin: Builtin) -> (&'static str, &'static str, &'static str) {
    match builtin {
        Builtin::Min => {
            ("`min(a, b, ...)`, `min(array)`", "the least number; of an empty array an error", "min(3, 1, 2)")
        }
        Builtin::Max => (
            "`max(a, b, ...)`, `max(array)`",
            "the greatest number; of an empty array an error",
            "max([3, 1])",
        ),
        Builtin::Abs => ("`abs(a)`", "the number without its sign", "abs(-3)"),
        Builtin::CeilDiv => {
            ("`ceil_div(a, b)`", "integers, divided and rounded up; by 0 an error", "ceil_div(7, 2)")
        }
        Builtin::Len => ("`len(array)`", "how many elements it has", "len([4, 5])"),
        Builtin::Get => (
            "`get(array, i, default)`",
            "the element, or the default where `i` is below 0 or beyond the end",
            "get([4, 5], 2, 1)",
        ),
        Builtin::Range => {
            ("`range(n)`, `range(a, b)`", "the integers from 0 or `a`, without the end", "range(1, 4)")
        }
        Builtin::Sum => ("`sum(array)`", "the sum of numbers; of none 0", "sum([1, 2, 3])"),
        Builtin::Prod => ("`prod(array)`", "the product of numbers; of none 1", "prod([2, 3])"),
        Builtin::Sqrt => ("`sqrt(a)`", "the square root, a float; of a negative number an error", "sqrt(2)"),
        Builtin::Rsqrt => {
            ("`rsqrt(a)`", "1 by the square root, a float; of 0 and below an error", "rsqrt(4)")
        }
        Builtin::Exp => ("`exp(a)`", "e to the power of `a`, a float; overflow is an error", "exp(0)"),
        Builtin::Log => ("`log(a)`", "the natural logarithm, a float; of 0 and below an error", "log(1)"),
        Builtin::Float => ("`float(a)`", "the number as a float, to the nearest", "float(3)"),
        Builtin::Int => ("`int(a)`", "the number without its fraction; beyond 64 bits an error", "int(-2.5)"),
    }
}

struct Nothing;

impl Environment for Nothing {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        None
    }
}

fn value(text: &str) -> String {
    let typed = expr::compile(text, &Scope::new()).expect(text);
    expr::evaluate(&typed.expr, &Nothing).expect(text).to_string()
}

fn functions() -> String {
    let mut text = head(&["function", "gives", "example"]);
    for builtin in Builtin::ALL {
        let (call, doc, example) = function(builtin);
        assert!(call.contains(builtin.name()) && example.contains(builtin.name()));
        text.push_str(&row(&[call, doc, &format!("`{example}` is `{}`", value(example))]));
    }
    let size = format!("`sizeof(f16)` is `{}`", value("sizeof(f16)"));
    let forms = [
        ("`numel(x)`", "the number of elements of a tensor; beyond 64 bits an error", ""),
        ("`sizeof(T)`", "the bytes of an element type or type parameter", size.as_str()),
        (
            "`aligned(x, n)`",
            "whether a tensor's address is a multiple of `n` bytes, a power of two from 1 to 256; only in guards",
            "",
        ),
    ];
    for (call, doc, example) in forms {
        let name = call.trim_matches('`').split('(').next().unwrap_or_default();
        assert!(expr::is_function_reserved(name), "{name}");
        text.push_str(&row(&[call, doc, example]));
    }
    text
}

fn rules_table() -> String {
    let rows = rules::CATALOGUE.iter().map(|rule| row(&[&rule.code.to_string(), rule.title()]));
    head(&["code", "rule"]) + &rows.collect::<String>()
}

/// The blocks of TOML that are whole manifests, in the reference and in the page for those who come from Python.
#[test]
fn the_examples_compile() {
    let pages = [("manifest.md", 2), ("coming-from-python-plugins.md", 4)];
    for (name, least) in pages {
        let document = std::fs::read_to_string(path().with_file_name(name)).expect("the page is there");
        examples_compile(name, &document, least);
    }
}

fn examples_compile(name: &str, document: &str, least: usize) {
    let blocks = document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole: Vec<&str> = blocks.filter(|block| block.contains("schema = 1\n")).collect();
    assert!(whole.len() >= least, "only {} examples in {name}", whole.len());
    for block in whole {
        match compile(&Source::new(name, block)) {
            Ok(resolved) => assert_eq!(render(&resolved.warnings, Colour::Plain), "", "{block}"),
            Err(errors) => panic!("{}", render(&errors, Colour::Plain)),
        }
    }
}
