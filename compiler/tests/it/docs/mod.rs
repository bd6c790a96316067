//! Compares documentation tables with the program, and compiles examples. `cargo xtask docs` writes the tables.

mod architecture;
mod plugins;
mod promises;
mod releases;

use std::path::PathBuf;
use std::process::Command;

use cubinder_expr as expr;
use cubinder_expr::{BinaryOp, Builtin, Environment, Scope, SyntaxKind};
use cubinder_expr::{DataType, Value};
use cubinder_manifest::config::{LIBRARY, REMOTE, WORKERS};
use cubinder_manifest::manifest::keys::{Key, Nested, Presence, ROOT, Table};
use cubinder_manifest::resolve::compile;
use cubinder_model::{AttributeElement, AttributeType};
use cubinder_source::diagnostic::{Colour, Source, render};
use cubinder_source::rules;

const END: &str = "<!-- end -->";

/// Tables of `cargo xtask bench kernels --publish`.
const OTHERS: [&str; 1] = ["<!-- times -->"];

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/manifest.md")
}

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

fn generated() -> Vec<(String, String)> {
    let mut parts: Vec<(String, String)> =
        tables().into_iter().map(|table| (format!("<!-- keys: {} -->", name(table)), keys(table))).collect();
    parts.push(("<!-- attribute types -->".to_owned(), attribute_types()));
    parts.push(("<!-- element types -->".to_owned(), element_types()));
    parts
}

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
    let expressions =
        [("<!-- operators -->".to_owned(), operators()), ("<!-- functions -->".to_owned(), functions())];
    hold("expressions.md", &expressions);
    hold("rules.md", &[("<!-- rules -->".to_owned(), rules_table())]);
    hold("cli.md", &[("<!-- commands -->".to_owned(), head(&["command", "options"]) + &command_rows(&[]))]);
    let config = [
        ("<!-- keys: library -->".to_owned(), keys(&LIBRARY)),
        ("<!-- keys: remote -->".to_owned(), keys(&REMOTE)),
        ("<!-- keys: remote.workers -->".to_owned(), keys(&WORKERS)),
    ];
    hold("cubinder-toml.md", &config);
}

fn hold(page: &str, generated: &[(String, String)]) {
    let path = path().with_file_name(page);
    let before = std::fs::read_to_string(&path).expect("the page exists");
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

/// Kinds, such as `[[launches]] with code`, omit keys equal to the table's.
fn keys(table: &Table) -> String {
    let header = table.title.split_once(" with ").map(|(header, _)| header);
    let base = tables().into_iter().find(|base| Some(base.title) == header);
    let is_in_base = |key: &Key| {
        let same = base.and_then(|base| base.key(key.name));
        same.is_some_and(|same| same.value == key.value && same.doc == key.doc)
    };
    let rows = table.keys.iter().filter(|key| !is_in_base(key)).map(|key| {
        let value = match key.presence {
            Presence::Required => format!("{}, required", key.value),
            Presence::Optional => key.value.to_owned(),
            Presence::Default(default) => format!("{}, default `{default}`", key.value),
        };
        row(&[&format!("`{}`", key.name), &value, key.doc, &example(key)])
    });
    head(&["key", "value", "meaning", "example"]) + &rows.collect::<String>()
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
        row(&[&format!("`{}`", ty.name()), &lists, &ty.kind().to_string(), &onnx, conversion(element)])
    });
    head(&["type", "list", "in expressions", "ONNX kind", "from ONNX"]) + &rows.collect::<String>()
}

/// Describes conversions by TensorRT's parser (TensorRT-RTX 1.7).
fn conversion(element: AttributeElement) -> &'static str {
    match element {
        AttributeElement::I8 | AttributeElement::I16 => "wrapped to 32 bits, then checked",
        AttributeElement::I32 => "wrapped to 32 bits",
        AttributeElement::I64 => "wrapped to 32 bits: 4294967297 becomes 1",
        AttributeElement::F16 => "rounded; above 65504 is rejected",
        AttributeElement::F32 => "",
        AttributeElement::F64 => "single precision: 0.1 becomes 0.10000000149",
        AttributeElement::Bool => "only 0 and 1",
        AttributeElement::String => "must be UTF-8; ends at a NUL",
        AttributeElement::Bytes => "may lose a final NUL",
    }
}

fn element_types() -> String {
    let rows = DataType::ALL.into_iter().map(|ty| {
        row(&[
            &format!("`{}`", ty.name()),
            &format!("`{}`", ty.cuda_name()),
            &ty.size().map_or_else(|| "1 for 2".to_owned(), |size| size.to_string()),
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

fn described(op: BinaryOp) -> (usize, &'static str) {
    match op {
        BinaryOp::Or => (1, "booleans; evaluates `b` only if `a` is false"),
        BinaryOp::And => (2, "booleans; evaluates `b` only if `a` is true"),
        BinaryOp::Eq | BinaryOp::Ne => (4, "two values of one kind, including arrays"),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => (4, "numbers"),
        BinaryOp::Add | BinaryOp::Sub => (5, "numbers; overflow is an error"),
        BinaryOp::Mul => (6, "numbers; overflow is an error"),
        BinaryOp::FloorDiv => (6, "integers, rounded down: `-7 // 2` is -4; division by 0 is an error"),
        BinaryOp::Mod => (
            6,
            "integers; the remainder of `//`, with the sign of `b`: `-7 % 4` is 1; division by 0 is an error",
        ),
        BinaryOp::Div => (6, "numbers, at least one of them a float; division by 0 is an error"),
    }
}

fn operators() -> String {
    let mut rows: Vec<(usize, &str, String)> = vec![
        (0, "`c` is a boolean; evaluates only the selected side", "`a if c else b`".to_owned()),
        (3, "a boolean", "`not a`".to_owned()),
        (7, "a number", "`-a`".to_owned()),
        (
            8,
            "element, field, call; negative indices count from the end",
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
    head(&["level", "operator", "operands"]) + &rows.collect::<String>()
}

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

fn function(builtin: Builtin) -> (&'static str, &'static str, &'static str) {
    match builtin {
        Builtin::Min => (
            "`min(a, b, ...)`, `min(array)`",
            "the smallest number; an error for an empty array",
            "min(3, 1, 2)",
        ),
        Builtin::Max => (
            "`max(a, b, ...)`, `max(array)`",
            "the largest number; an error for an empty array",
            "max([3, 1])",
        ),
        Builtin::Abs => ("`abs(a)`", "the absolute value", "abs(-3)"),
        Builtin::CeilDiv => (
            "`ceil_div(a, b)`",
            "the quotient of two integers, rounded up; division by 0 is an error",
            "ceil_div(7, 2)",
        ),
        Builtin::Len => ("`len(array)`", "the number of elements", "len([4, 5])"),
        Builtin::Get => (
            "`get(array, i, default)`",
            "the element, or the default if `i` is negative or out of range",
            "get([4, 5], 2, 1)",
        ),
        Builtin::Range => (
            "`range(n)`, `range(a, b)`",
            "the integers from 0 or `a` up to, but not including, the last argument",
            "range(1, 4)",
        ),
        Builtin::Sum => ("`sum(array)`", "the sum of numbers; 0 for an empty array", "sum([1, 2, 3])"),
        Builtin::Prod => ("`prod(array)`", "the product of numbers; 1 for an empty array", "prod([2, 3])"),
        Builtin::Sqrt => ("`sqrt(a)`", "the square root, a float; an error for negative numbers", "sqrt(2)"),
        Builtin::Rsqrt => (
            "`rsqrt(a)`",
            "the reciprocal square root, a float; an error for numbers that are not positive",
            "rsqrt(4)",
        ),
        Builtin::Exp => ("`exp(a)`", "e to the power of `a`, a float; overflow is an error", "exp(0)"),
        Builtin::Log => (
            "`log(a)`",
            "the natural logarithm, a float; an error for numbers that are not positive",
            "log(1)",
        ),
        Builtin::Float => ("`float(a)`", "the nearest float", "float(3)"),
        Builtin::Int => {
            ("`int(a)`", "the number without its fraction; an error if it exceeds 64 bits", "int(-2.5)")
        }
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
    let mut text = head(&["function", "returns", "example"]);
    for builtin in Builtin::ALL {
        let (call, doc, example) = function(builtin);
        assert!(call.contains(builtin.name()) && example.contains(builtin.name()));
        text.push_str(&row(&[call, doc, &format!("`{example}` is `{}`", value(example))]));
    }
    let size = format!("`sizeof(f16)` is `{}`", value("sizeof(f16)"));
    let forms = [
        ("`numel(x)`", "the number of elements of a tensor; an error if it exceeds 64 bits", ""),
        ("`sizeof(T)`", "the size of an element type or type parameter in bytes", size.as_str()),
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
    let rows =
        rules::CATALOGUE.iter().map(|rule| row(&[&format!("[{0}](rules/{0}.md)", rule.code), rule.title()]));
    head(&["code", "rule"]) + &rows.collect::<String>()
}

fn command_rows(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_cubinder")).args(command).arg("-h").output();
    let help = String::from_utf8_lossy(&output.expect("the program runs").stdout).into_owned();
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return command_row(&help) };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let names = names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help");
    names.map(|name| command_rows(&[command, &[name.to_owned()]].concat())).collect()
}

fn command_row(help: &str) -> String {
    let usage = help.lines().find_map(|line| line.strip_prefix("Usage: cubinder ")).expect("a usage");
    let is_option = |line: &&str| {
        let text = line.trim_start();
        text.starts_with('-') && [2, 6].contains(&(line.len() - text.len()))
    };
    let names = help.lines().filter(is_option);
    let names = names.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
    let options: Vec<String> =
        names.filter(|name| !["--help", "--color"].contains(name)).map(|name| format!("`{name}`")).collect();
    row(&[&format!("`{}`", usage.replace(" [OPTIONS]", "")), &options.join(", ")])
}

#[test]
fn the_examples_compile() {
    let pages = [("manifest.md", 1), ("from-python-plugins.md", 1)];
    for (name, least) in pages {
        let document = std::fs::read_to_string(path().with_file_name(name)).expect("the page exists");
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
