use std::ops::Range;
use std::sync::Arc;

use cubinder_expr::DataType;
use cubinder_expr::{Expr, Kind};
use cubinder_model::Launch;
use cubinder_model::cuda_limits::{MAX_BLOCK, MAX_CLUSTER, MAX_GRID, MAX_SHARED_BYTES, MAX_THREADS};

use super::declarations::tensors;
use super::errors::{BlockTooLarge, ClusterTooLarge, LaunchLimitExceeded, ShapeInputPassed};
use super::expression::{Compiler, Expected, RowScope, constant};
use super::rows::{self, Row, known_type};
use super::{ArgDraft, ArgDraftValue, Unit, beside, foreign, kernel};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::manifest::toml_reader::is_identifier;
use crate::manifest::{ArgDecl, LaunchDecl, Text};
use crate::rules;

pub(super) struct RowLaunch {
    pub(super) launch: Launch,
    pub(super) unit: Unit,
    /// Whether valid; placeholders for invalid parts satisfy every rule.
    pub(super) is_right: bool,
}

const AXES: [&str; 3] = ["x", "y", "z"];

pub(super) fn resolve(
    compiler: &mut Compiler<'_>,
    decl: &LaunchDecl,
    row: &Row,
    plugin_types: &[DataType],
    scope: &RowScope,
) -> RowLaunch {
    let manifest = compiler.declared.manifest;
    let foreign = if decl.is_of_code { foreign::resolve(compiler, decl, row) } else { None };
    let kernel = match &foreign {
        Some(code) => Some(code.signature.kernel.clone()),
        None => decl.kernel.as_ref().and_then(|text| kernel_name(compiler, text, row)),
    };
    let mut launch = LaunchExpressions { compiler, row, scope, is_right: true };
    let grid = launch.dimensions(&decl.grid, "grid", MAX_GRID, rules::GRID_LIMIT);
    let block = launch.dimensions(&decl.block, "block", MAX_BLOCK, rules::BLOCK_LIMIT);
    launch.check_product(&decl.block, &block, MAX_THREADS, |span, sizes, threads| {
        BlockTooLarge { most: MAX_THREADS, span, sizes, threads }.into()
    });
    let shared_bytes = decl.shared_bytes.as_ref().map_or_else(
        || constant(0),
        |text| {
            let most = MAX_SHARED_BYTES;
            let bytes = launch.integer(text, "shared_bytes", 0, most, rules::SHARED_MEMORY_LIMIT);
            bytes.unwrap_or_else(|| constant(0))
        },
    );
    let cluster = decl.cluster.as_ref().map(|texts| {
        let most = i64::from(MAX_CLUSTER);
        let cluster = launch.dimensions(texts, "cluster", [most; 3], rules::CLUSTER_LIMIT);
        launch.check_product(texts, &cluster, most, |span, sizes, blocks| {
            ClusterTooLarge { most, span, sizes, blocks }.into()
        });
        cluster
    });
    let sizes_are_right = launch.is_right;
    let declared = decl.args.as_deref().unwrap_or_default();
    // An invalid name may mean any parameter.
    let named: Vec<&ArgDecl> = declared.iter().filter(|arg| is_identifier(&arg.name.value)).collect();
    let args_are_known = decl.args.is_some() && named.len() == declared.len();
    let args: Vec<ArgDraft> = named.into_iter().map(|arg| argument(compiler, arg, row, scope)).collect();
    let is_right = sizes_are_right
        && kernel.is_some()
        && (decl.source.is_some() || foreign.is_some())
        && args_are_known
        && args.iter().all(|arg| arg.broken.is_none());
    let args = if decl.is_of_code { foreign::passed(manifest, decl, row, args) } else { args };
    let launch = Launch {
        kernel: kernel.clone().unwrap_or_default(),
        grid: replaced(grid),
        block: replaced(block),
        shared_bytes,
        cluster: cluster.map(replaced),
        cooperative: decl.cooperative.as_ref().is_some_and(|cooperative| cooperative.value),
        programmatic: decl.programmatic.as_ref().is_some_and(|programmatic| programmatic.value),
        args: Vec::new(),
        code: Vec::new(),
    };
    let source = decl.source.as_ref();
    let code_span = decl.code.as_ref().map(|code| &code.range);
    let kernel_range = code_span.or(decl.kernel.as_ref().map(|text| &text.range));
    let unit = Unit {
        variant: row.index,
        step: 0,
        decl: 0,
        source: source.map(|it| beside(compiler.declared.source, &it.value)).unwrap_or_default(),
        source_span: compiler.span(source.map_or(&(0..0), |text| &text.range)),
        kernel: kernel.unwrap_or_default(),
        kernel_span: compiler.span(kernel_range.unwrap_or(&(0..0))),
        foreign,
        block_span: span_of_all(compiler, &decl.block),
        grid_spans: compiler.declared.spans(decl.grid.iter().map(|text| &text.range)),
        types: row.types.clone(),
        formats: row.formats.clone(),
        has_formats: rows::has_formats(manifest),
        plugin_types: plugin_types.to_vec(),
        constants: row.values().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        tables: Arc::new([]),
        args,
        args_span: compiler.span(&decl.args_range),
        shared_outputs: Vec::new(),
        args_are_known,
    };
    RowLaunch { launch, unit, is_right }
}

fn kernel_name(compiler: &mut Compiler<'_>, text: &Text, row: &Row) -> Option<String> {
    let span = |range| compiler.span(&text.locate(range));
    match kernel::instantiate(&text.value, row, &span) {
        Ok(kernel) => {
            kernel.used.iter().for_each(|name| compiler.use_name(name));
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let arguments = text.value.split_once('<').map_or("", |(_, arguments)| arguments);
            let is_unclear = arguments.split(|c| !is_part(c)).any(|name| compiler.is_unclear(name));
            (!is_unclear).then_some(kernel.name)
        }
        Err(error) => {
            compiler.report(*error, Some(row.index));
            None
        }
    }
}

struct LaunchExpressions<'c, 'm> {
    compiler: &'c mut Compiler<'m>,
    row: &'c Row,
    scope: &'c RowScope,
    is_right: bool,
}

impl LaunchExpressions<'_, '_> {
    /// 1 if missing, `None` if invalid.
    fn dimensions(&mut self, texts: &[Text], key: &str, most: [i64; 3], code: Code) -> [Option<Expr>; 3] {
        std::array::from_fn(|axis| match texts.get(axis) {
            Some(text) => self.integer(text, &format!("{key}.{}", AXES[axis]), 1, most[axis], code),
            None => Some(constant(1)),
        })
    }

    /// Constants must be from `least` to `most`.
    fn integer(&mut self, text: &Text, key: &str, least: i64, most: i64, code: Code) -> Option<Expr> {
        let expr = self.compiler.expression(text, key, Expected::Int, self.scope).map(|typed| typed.expr);
        let value = expr.as_ref().and_then(Expr::constant).filter(|value| !(least..=most).contains(value));
        if let Some(value) = value {
            let span = self.compiler.span(&text.range);
            let error = Diagnostic::from(LaunchLimitExceeded { key, least, most, span, value }).code(code);
            self.report(error, std::slice::from_ref(text));
        }
        self.is_right &= expr.is_some() && value.is_none();
        expr.filter(|_| value.is_none())
    }

    fn check_product(
        &mut self,
        texts: &[Text],
        sizes: &[Option<Expr>; 3],
        most: i64,
        error: impl FnOnce(Span, String, i64) -> Diagnostic,
    ) {
        let sizes = sizes.iter().map(|size| size.as_ref()?.constant());
        let Some(sizes) = sizes.collect::<Option<Vec<i64>>>() else { return };
        let product: i64 = sizes.iter().product();
        let Some(span) = span_of_all(self.compiler, texts).filter(|_| product > most) else { return };
        let sizes = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
        self.report(error(span, sizes, product), texts);
        self.is_right = false;
    }

    fn report(&mut self, error: Diagnostic, texts: &[Text]) {
        let row = Some(self.row.index);
        let error = texts.iter().fold(error, |error, text| self.compiler.with_values(error, text, row));
        self.compiler.report(error, row);
    }
}

fn replaced(sizes: [Option<Expr>; 3]) -> [Expr; 3] {
    sizes.map(|size| size.unwrap_or_else(|| constant(1)))
}

fn span_of_all(compiler: &Compiler<'_>, texts: &[Text]) -> Option<Span> {
    let (first, last) = (texts.first()?, texts.last()?);
    Some(compiler.span(&(first.range.start..last.range.end)))
}

fn argument(compiler: &mut Compiler<'_>, arg: &ArgDecl, row: &Row, scope: &RowScope) -> ArgDraft {
    let value = value(compiler, arg, row, scope);
    let broken = value.as_ref().err().cloned();
    ArgDraft {
        name: arg.name.value.clone(),
        name_span: compiler.span(&arg.name.range),
        value: value.unwrap_or_else(|_| ArgDraftValue::Expr { expr: constant(0), kind: Kind::Int }),
        value_span: compiler.span(arg.value.as_ref().map_or(&arg.name.range, |value| &value.range)),
        broken,
    }
}

/// Falls back to the possibly intended tensors.
fn value(
    compiler: &mut Compiler<'_>,
    arg: &ArgDecl,
    row: &Row,
    scope: &RowScope,
) -> Result<ArgDraftValue, Range<u32>> {
    let Some(text) = &arg.value else { return Err(0..u32::MAX) };
    let (manifest, name) = (compiler.declared.manifest, text.value.trim());
    if let Some((tensor, _)) = (0..).zip(tensors(manifest)).find(|(_, tensor)| tensor.name.value == name) {
        compiler.use_name(name);
        let ty = known_type(manifest, row, tensor as usize);
        if ty.is_none_or(|ty| compiler.is_unclear(ty)) || compiler.is_unclear(name) {
            return Err(tensor..tensor + 1);
        }
        if let Some(input) = compiler.declared.input(name).filter(|input| input.values.is_some()) {
            let (span, input) = (compiler.span(&text.range), compiler.span(&input.name.range));
            compiler.report(ShapeInputPassed { name, span, input }, None);
            return Err(0..0);
        }
        return Ok(ArgDraftValue::Tensor(tensor));
    }
    if let Some(buffer) = compiler.declared.scratch_buffer(name) {
        compiler.use_name(name);
        return if compiler.is_unclear(name) { Err(0..u32::MAX) } else { Ok(ArgDraftValue::Scratch(buffer)) };
    }
    match compiler.expression(text, &arg.name.value, Expected::Argument, scope) {
        Some(typed) => Ok(ArgDraftValue::Expr { expr: typed.expr, kind: typed.kind }),
        None if is_identifier(name) => Err(0..u32::MAX),
        None => Err(0..0),
    }
}
