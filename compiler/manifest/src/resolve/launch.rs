//! The launch of one row: kernel, grid, block, shared memory, arguments.

use std::ops::Range;
use std::sync::Arc;

use cubinder_expr::DataType;
use cubinder_expr::{Expr, Kind, Node};
use cubinder_model::Launch;
use cubinder_model::cuda_limits::{MAX_BLOCK, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS};

use super::expression::{Compiler, Expected, Place};
use super::rows::{self, Row, known_type};
use super::steps::scratch_buffer;
use super::{ArgDraft, ArgDraftValue, Unit, beside, foreign, kernel};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::form::is_identifier;
use crate::manifest::{ArgDecl, LaunchDecl, Text};
use crate::rules;

/// The launch of a row with what has to be compiled for it.
pub(super) struct RowLaunch {
    pub(super) launch: Launch,
    pub(super) unit: Unit,
    /// Whether nothing in it is wrong. What stands for a wrong part keeps to every rule.
    pub(super) is_right: bool,
}

/// The most blocks of a cluster.
const MAX_CLUSTER: i64 = cubinder_model::cuda_limits::MAX_CLUSTER as i64;

const AXES: [&str; 3] = ["x", "y", "z"];

/// Compiles a launch's expressions for a row. The unit's places among the steps and its tables are the caller's to say.
pub(super) fn resolve(
    compiler: &mut Compiler<'_>,
    decl: &LaunchDecl,
    row: &Row,
    plugin_types: &[DataType],
    place: &Place,
    index: usize,
) -> RowLaunch {
    let foreign = if decl.is_of_code { foreign::resolve(compiler, decl, row, index) } else { None };
    let kernel = match &foreign {
        Some(code) => Some(code.signature.kernel.clone()),
        None => decl.kernel.as_ref().and_then(|text| kernel_name(compiler, text, row, index)),
    };
    let grid = dimensions(compiler, &decl.grid, "grid", place, index);
    let block = dimensions(compiler, &decl.block, "block", place, index);
    let block_is_right = block.1 && threads_of_block(compiler, decl, &block.0, index);
    let shared_bytes = match &decl.shared_bytes {
        None => Some(constant(0)),
        Some(text) => {
            let limits = (0, MAX_SHARED_BYTES, rules::SHARED_MEMORY_LIMIT);
            integer(compiler, text, "shared_bytes", limits, place, index)
        }
    };
    let cluster = decl.cluster.as_ref().map(|texts| dimensions(compiler, texts, "cluster", place, index));
    let cluster_is_right = match &cluster {
        Some((sizes, is_right)) => *is_right && blocks_of_cluster(compiler, decl, sizes, index),
        None => true,
    };
    let declared = decl.args.as_deref().unwrap_or_default();
    // What is no identifier was told, and may have been meant as any parameter.
    let named: Vec<&ArgDecl> = declared.iter().filter(|arg| is_identifier(&arg.name.value)).collect();
    let args_are_known = decl.args.is_some() && named.len() == declared.len();
    let args: Vec<ArgDraft> = named.into_iter().map(|arg| argument(compiler, arg, row, place)).collect();
    let are_right = args.iter().all(|arg| arg.broken.is_none());
    let args = if decl.is_of_code { foreign::passed(compiler.manifest, decl, row, args) } else { args };
    let is_right = kernel.is_some()
        && (decl.source.is_some() || foreign.is_some())
        && grid.1
        && block_is_right
        && shared_bytes.is_some()
        && cluster_is_right
        && args_are_known
        && are_right;
    let launch = Launch {
        kernel: kernel.clone().unwrap_or_default(),
        grid: grid.0,
        block: block.0,
        shared_bytes: shared_bytes.unwrap_or_else(|| constant(0)),
        cluster: cluster.map(|(sizes, _)| sizes),
        cooperative: decl.cooperative.as_ref().is_some_and(|said| said.value),
        programmatic: decl.programmatic.as_ref().is_some_and(|said| said.value),
        args: Vec::new(),
        code: Vec::new(),
    };
    let source = decl.source.as_ref();
    let span_of = |text: Option<&Text>| compiler.span(text.map_or(0..0, |text| text.range.clone()));
    let unit = Unit {
        variant: index,
        step: 0,
        decl: 0,
        source: source.map(|source| beside(compiler.source, &source.value)).unwrap_or_default(),
        source_span: span_of(source),
        kernel: kernel.unwrap_or_default(),
        kernel_span: match &decl.code {
            Some(code) => compiler.span(code.range.clone()),
            None => span_of(decl.kernel.as_ref()),
        },
        foreign,
        block_span: decl
            .block
            .first()
            .zip(decl.block.last())
            .map(|(first, last)| compiler.span(first.range.start..last.range.end)),
        grid_spans: decl.grid.iter().map(|text| compiler.span(text.range.clone())).collect(),
        types: row.types.clone(),
        formats: row.formats.clone(),
        has_formats: rows::has_formats(compiler.manifest),
        plugin_types: plugin_types.to_vec(),
        constants: row.values().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        tables: Arc::new([]),
        args,
        args_span: compiler.span(decl.args_range.clone()),
        shared_outputs: Vec::new(),
        args_are_known,
    };
    RowLaunch { launch, unit, is_right }
}

/// The kernel as C++ names it; nothing where it is wrong, and where it depends on a name that is: then that was told.
fn kernel_name(compiler: &mut Compiler<'_>, text: &Text, row: &Row, index: usize) -> Option<String> {
    match kernel::instantiate(&text.value, row) {
        Ok(kernel) => {
            for name in &kernel.used {
                compiler.use_name(name);
            }
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let arguments = text.value.split_once('<').map_or("", |(_, arguments)| arguments);
            let is_unclear = arguments.split(|c| !is_part(c)).any(|name| compiler.is_unclear(name));
            (!is_unclear).then_some(kernel.name)
        }
        Err(error) => {
            let span = compiler.span(text.locate(error.range));
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

/// Grid or block, and whether it is right: what is not given is 1, and what is wrong too.
fn dimensions(
    compiler: &mut Compiler<'_>,
    texts: &[Text],
    key: &str,
    place: &Place,
    index: usize,
) -> ([Expr; 3], bool) {
    let (limits, code) = match key {
        "grid" => (MAX_GRID, rules::GRID_LIMIT),
        "cluster" => ([MAX_CLUSTER; 3], rules::CLUSTER_LIMIT),
        _ => (MAX_BLOCK, rules::BLOCK_LIMIT),
    };
    let mut whole = true;
    let mut result = [constant(1), constant(1), constant(1)];
    for (axis, text) in texts.iter().enumerate().take(3) {
        let key = format!("{key}.{}", AXES[axis]);
        match integer(compiler, text, &key, (1, limits[axis], code), place, index) {
            Some(expr) => result[axis] = expr,
            None => whole = false,
        }
    }
    (result, whole)
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

/// Whether a block of constants has no more threads than it can have.
fn threads_of_block(compiler: &mut Compiler<'_>, decl: &LaunchDecl, block: &[Expr; 3], index: usize) -> bool {
    let Some(sizes) = block.iter().map(value_of).collect::<Option<Vec<i64>>>() else { return true };
    // Each is at most 1024, so the product fits.
    let threads: i64 = sizes.iter().product();
    let (Some(first), Some(last)) = (decl.block.first(), decl.block.last()) else { return true };
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
    threads <= MAX_THREADS
}

/// Whether a cluster of constants has no more blocks than it can have.
fn blocks_of_cluster(
    compiler: &mut Compiler<'_>,
    decl: &LaunchDecl,
    sizes: &[Expr; 3],
    index: usize,
) -> bool {
    let Some(sizes) = sizes.iter().map(value_of).collect::<Option<Vec<i64>>>() else { return true };
    // Each is at most 8.
    let blocks: i64 = sizes.iter().product();
    let texts = decl.cluster.as_deref().unwrap_or_default();
    let (Some(first), Some(last)) = (texts.first(), texts.last()) else { return true };
    if blocks > MAX_CLUSTER {
        let span = compiler.span(first.range.start..last.range.end);
        let sizes = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        let diagnostic = Diagnostic::error(format!("a cluster has at most {MAX_CLUSTER} blocks"))
            .code(rules::CLUSTER_LIMIT)
            .at(span, format!("these are {sizes} = {blocks}"));
        let with_values = |diagnostic, text| compiler.with_values(diagnostic, text, Some(index));
        let diagnostic = texts.iter().fold(diagnostic, with_values);
        compiler.report(diagnostic, Some(index));
    }
    blocks <= MAX_CLUSTER
}

fn argument(compiler: &mut Compiler<'_>, arg: &ArgDecl, row: &Row, place: &Place) -> ArgDraft {
    let value = value(compiler, arg, row, place);
    let broken = value.as_ref().err().cloned();
    let stand_in = |_| ArgDraftValue::Expr { expr: constant(0), kind: Kind::Int };
    let value_range = arg.value.as_ref().map_or(arg.name.range.clone(), |value| value.range.clone());
    ArgDraft {
        name: arg.name.value.clone(),
        name_span: compiler.span(arg.name.range.clone()),
        value: value.unwrap_or_else(stand_in),
        value_span: compiler.span(value_range),
        broken,
    }
}

/// What is passed; where that is wrong, the tensors that may have been meant.
fn value(
    compiler: &mut Compiler<'_>,
    arg: &ArgDecl,
    row: &Row,
    place: &Place,
) -> Result<ArgDraftValue, Range<u32>> {
    let Some(text) = &arg.value else { return Err(0..u32::MAX) };
    if let Some(tensor) = tensor(compiler, text) {
        compiler.use_name(text.value.trim());
        let ty = known_type(compiler.manifest, row, tensor as usize);
        let is_clear =
            ty.is_some_and(|ty| !compiler.is_unclear(ty)) && !compiler.is_unclear(text.value.trim());
        if is_clear && let Some(diagnostic) = host_memory(compiler, text, tensor) {
            compiler.report(diagnostic, None);
            return Err(0..0);
        }
        return if is_clear { Ok(ArgDraftValue::Tensor(tensor)) } else { Err(tensor..tensor + 1) };
    }
    if let Some(buffer) = scratch_buffer(compiler.manifest, text) {
        let name = text.value.trim();
        compiler.use_name(name);
        return if compiler.is_unclear(name) { Err(0..u32::MAX) } else { Ok(ArgDraftValue::Scratch(buffer)) };
    }
    match compiler.expression(text, &arg.name.value, Expected::Argument, place) {
        Some(typed) => Ok(ArgDraftValue::Expr { expr: typed.expr, kind: typed.kind }),
        None if is_identifier(text.value.trim()) => Err(0..u32::MAX),
        None => Err(0..0),
    }
}

/// The error for a shape input that is passed as memory.
fn host_memory(compiler: &Compiler<'_>, text: &Text, tensor: u32) -> Option<Diagnostic> {
    let input = compiler.manifest.inputs.get(tensor as usize).filter(|input| input.values.is_some())?;
    let name = &input.name.value;
    Some(
        Diagnostic::error(format!("`{name}` is a shape input: its memory is the host's"))
            .code(rules::SHAPE_INPUT)
            .at(compiler.span_of(text), "a kernel cannot read it there")
            .related(compiler.span(input.name.range.clone()), "declared here")
            .help("TensorRT uses it for the shapes of outputs and keeps it from kernels: pass an extent that follows from it, such as `y.shape[0]`"),
    )
}

/// The index of the tensor that the text names, over inputs, then outputs.
fn tensor(compiler: &Compiler<'_>, text: &Text) -> Option<u32> {
    let manifest = compiler.manifest;
    let inputs = manifest.inputs.iter().map(|input| &input.name);
    let mut names = inputs.chain(manifest.outputs.iter().map(|output| &output.name));
    let position = names.position(|name| name.value == text.value.trim())?;
    u32::try_from(position).ok()
}

pub(super) fn constant(value: i64) -> Expr {
    Expr { nodes: vec![Node::Int(value)] }
}

fn value_of(expr: &Expr) -> Option<i64> {
    match expr.nodes.as_slice() {
        [Node::Int(value)] => Some(*value),
        _ => None,
    }
}
