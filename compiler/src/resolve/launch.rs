//! The launch of one row: kernel, grid, block, shared memory, arguments.

use cubinder_bundle::expr::{Expr, Node};
use cubinder_bundle::{DataType, Launch};

use super::expression::{Compiler, Expected, Place};
use super::rows::Row;
use super::{ArgDraft, ArgDraftValue, Unit, beside, kernel};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::{ArgDecl, LaunchDecl, Text};
use crate::rules;

/// The launch of a row with what has to be compiled for it.
pub(super) struct RowLaunch {
    pub(super) launch: Launch,
    pub(super) unit: Unit,
}

/// The most blocks in x, y and z, for every architecture since 3.0 (CUDA C++ Programming Guide 13.0, table of technical
/// specifications).
const MAX_GRID: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];
/// The most threads of a block in x, y and z, and altogether (the same table).
const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];
const MAX_THREADS: i64 = 1024;
const AXES: [&str; 3] = ["x", "y", "z"];

/// Compiles the launch's expressions for a row; nothing where one is wrong.
pub(super) fn resolve(
    compiler: &mut Compiler<'_>,
    row: &Row,
    plugin_types: &[DataType],
    index: usize,
) -> Option<RowLaunch> {
    let manifest = compiler.manifest;
    let place = compiler.in_row(row, index);
    // Without exactly one launch the reader has reported so; each is looked at for more mistakes.
    let mut launches: Vec<Option<RowLaunch>> =
        manifest.launches.iter().map(|decl| one(compiler, decl, row, plugin_types, &place, index)).collect();
    launches.pop().flatten()
}

fn one(
    compiler: &mut Compiler<'_>,
    decl: &LaunchDecl,
    row: &Row,
    plugin_types: &[DataType],
    place: &Place,
    index: usize,
) -> Option<RowLaunch> {
    let kernel = kernel_name(compiler, decl, row, index);
    let grid = dimensions(compiler, &decl.grid, "grid", place, index);
    let block = dimensions(compiler, &decl.block, "block", place, index);
    threads_of_block(compiler, decl, block.as_ref(), index);
    let shared_bytes = match &decl.shared_bytes {
        None => Some(constant(0)),
        Some(text) => {
            let limits = (0, i64::from(i32::MAX), rules::SHARED_MEMORY_LIMIT);
            integer(compiler, text, "shared_bytes", limits, place, index)
        }
    };
    let args: Vec<Option<ArgDraft>> = decl.args.iter().map(|arg| argument(compiler, arg, place)).collect();
    let args: Option<Vec<ArgDraft>> = args.into_iter().collect();
    let (kernel, args) = (kernel?, args?);
    let launch = Launch {
        kernel: kernel.clone(),
        grid: grid?,
        block: block?,
        shared_bytes: shared_bytes?,
        args: Vec::new(),
        code: Vec::new(),
    };
    let unit = Unit {
        variant: index,
        launch: 0,
        source: beside(compiler.source, &decl.source.value),
        source_span: compiler.span_of(&decl.source),
        kernel,
        kernel_span: compiler.span_of(&decl.kernel),
        types: row.types.clone(),
        plugin_types: plugin_types.to_vec(),
        constants: row.constants.clone(),
        args,
        args_span: compiler.span(decl.args_range.clone()),
    };
    Some(RowLaunch { launch, unit })
}

fn kernel_name(compiler: &mut Compiler<'_>, decl: &LaunchDecl, row: &Row, index: usize) -> Option<String> {
    match kernel::instantiate(&decl.kernel.value, row) {
        Ok(kernel) => {
            for name in &kernel.used {
                compiler.use_name(name);
            }
            Some(kernel.name)
        }
        Err(error) => {
            let span = compiler.span(decl.kernel.locate(error.range));
            let diagnostic =
                Diagnostic::error(error.message).code(rules::BAD_KERNEL_NAME).at(span, error.label);
            let diagnostic = match error.help {
                Some(help) => diagnostic.help(help),
                None => diagnostic,
            };
            compiler.report(diagnostic, Some(index));
            None
        }
    }
}

/// Grid or block: what is not given is 1.
fn dimensions(
    compiler: &mut Compiler<'_>,
    texts: &[Text],
    key: &str,
    place: &Place,
    index: usize,
) -> Option<[Expr; 3]> {
    let (limits, code) =
        if key == "grid" { (MAX_GRID, rules::GRID_LIMIT) } else { (MAX_BLOCK, rules::BLOCK_LIMIT) };
    let mut whole = true;
    let mut result = [constant(1), constant(1), constant(1)];
    for (axis, text) in texts.iter().enumerate().take(3) {
        let key = format!("{key}.{}", AXES[axis]);
        match integer(compiler, text, &key, (1, limits[axis], code), place, index) {
            Some(expr) => result[axis] = expr,
            None => whole = false,
        }
    }
    whole.then_some(result)
}

/// An integer; where it is a constant, within the limits: the least, the greatest, the rule that says so.
fn integer(
    compiler: &mut Compiler<'_>,
    text: &Text,
    key: &str,
    limits: (i64, i64, Code),
    place: &Place,
    index: usize,
) -> Option<Expr> {
    let typed = compiler.expression(text, key, Expected::Int, place)?;
    let (least, most, code) = limits;
    match value_of(&typed.expr) {
        Some(value) if value < least || value > most => {
            let diagnostic = Diagnostic::error(format!("`{key}` must be from {least} to {most}"))
                .code(code)
                .at(compiler.span_of(text), format!("this is {value}"));
            let diagnostic = compiler.with_values(diagnostic, text, Some(index));
            compiler.report(diagnostic, Some(index));
            None
        }
        _ => Some(typed.expr),
    }
}

fn threads_of_block(compiler: &mut Compiler<'_>, decl: &LaunchDecl, block: Option<&[Expr; 3]>, index: usize) {
    let Some(sizes) = block.and_then(|block| block.iter().map(value_of).collect::<Option<Vec<i64>>>()) else {
        return;
    };
    // Each is at most 1024, so the product fits.
    let threads: i64 = sizes.iter().product();
    let (Some(first), Some(last)) = (decl.block.first(), decl.block.last()) else { return };
    if threads > MAX_THREADS {
        let span = compiler.span(first.range.start..last.range.end);
        let sizes = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        let diagnostic = Diagnostic::error(format!("a block has at most {MAX_THREADS} threads"))
            .code(rules::BLOCK_LIMIT)
            .at(span, format!("these are {sizes} = {threads}"));
        let with_values = |diagnostic, text| compiler.with_values(diagnostic, text, Some(index));
        let diagnostic = decl.block.iter().fold(diagnostic, with_values);
        compiler.report(diagnostic, Some(index));
    }
}

fn argument(compiler: &mut Compiler<'_>, arg: &ArgDecl, place: &Place) -> Option<ArgDraft> {
    let value = match tensor(compiler, &arg.value) {
        Some(tensor) => {
            compiler.use_name(arg.value.value.trim());
            ArgDraftValue::Tensor(tensor)
        }
        None => {
            let key = &arg.name.value;
            let typed = compiler.expression(&arg.value, key, Expected::Argument, place)?;
            ArgDraftValue::Expr { expr: typed.expr, kind: typed.kind }
        }
    };
    Some(ArgDraft {
        name: arg.name.value.clone(),
        name_span: compiler.span(arg.name.range.clone()),
        value,
        value_span: compiler.span_of(&arg.value),
    })
}

/// The index of the tensor that the text names, over inputs, then outputs.
fn tensor(compiler: &Compiler<'_>, text: &Text) -> Option<u32> {
    let manifest = compiler.manifest;
    let inputs = manifest.inputs.iter().map(|input| &input.name);
    let mut names = inputs.chain(manifest.outputs.iter().map(|output| &output.name));
    let position = names.position(|name| name.value == text.value.trim())?;
    u32::try_from(position).ok()
}

fn constant(value: i64) -> Expr {
    Expr { nodes: vec![Node::Int(value)] }
}

fn value_of(expr: &Expr) -> Option<i64> {
    match expr.nodes.as_slice() {
        [Node::Int(value)] => Some(*value),
        _ => None,
    }
}
