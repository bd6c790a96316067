//! `[tables]`: the data of tables whose elements are computed.

use std::sync::Arc;

use cubinder_expr as expr;
use cubinder_expr::Value;
use cubinder_expr::{BindingTime, DeviceFact, Environment};

use super::expression::{Compiler, Expected};
use super::{Table, TableFile, beside};
use crate::diagnostic::Diagnostic;
use crate::manifest::{TableData, TableDecl, TableType, TableValues, Text, table_size_error};
use crate::rules;

/// Knows nothing: what is computed when the manifest is compiled depends on no node.
struct Nothing;

impl Environment for Nothing {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn shape(&self, _: u32) -> Option<&[i64]> {
        None
    }

    fn device(&self, _: DeviceFact) -> Option<i64> {
        None
    }
}

/// The tables, and whether all are right. What is wrong is left out.
pub(super) fn resolve(compiler: &mut Compiler<'_>) -> (Arc<[Table]>, bool) {
    let manifest = compiler.manifest;
    let tables: Vec<Table> = manifest.tables.iter().filter_map(|decl| table(compiler, decl)).collect();
    let are_right = tables.len() == manifest.tables.len();
    (tables.into(), are_right)
}

fn table(compiler: &mut Compiler<'_>, decl: &TableDecl) -> Option<Table> {
    let (data, file) = match &decl.values {
        TableValues::Listed(data) => (data.clone(), None),
        TableValues::Computed(text) => (computed(compiler, decl, text)?, None),
        TableValues::File(name) => {
            let path = beside(compiler.source, &name.value);
            (TableData::default(), Some(TableFile { path, span: compiler.span(name.range.clone()) }))
        }
    };
    Some(Table { name: decl.name.value.clone(), ty: decl.ty.value, data, file })
}

fn computed(compiler: &mut Compiler<'_>, decl: &TableDecl, text: &Text) -> Option<TableData> {
    let place = compiler.outside();
    let typed = compiler.expression(text, "values", Expected::Elements, &place)?;
    let found = if typed.time > BindingTime::Compile {
        Err(Diagnostic::error("the elements of a table must be known when the manifest is compiled")
            .code(rules::OUT_OF_PLACE)
            .at(compiler.span_of(text), "this depends on attributes or tensors")
            .help("use constants and functions only; what depends on a node, compute in the kernel"))
    } else {
        evaluated(compiler, decl.ty.value, text, &typed.expr)
    };
    match found {
        Ok(data) => Some(data),
        Err(diagnostic) => {
            let diagnostic = diagnostic.related(
                compiler.span(decl.ty.range.clone()),
                format!("the elements of `{}`", decl.name.value),
            );
            let diagnostic = compiler.with_values(diagnostic, text, None);
            compiler.report(diagnostic, None);
            None
        }
    }
}

fn evaluated(
    compiler: &Compiler<'_>,
    ty: TableType,
    text: &Text,
    expr: &expr::Expr,
) -> Result<TableData, Diagnostic> {
    let wrong = |message: &str, code, label: String| {
        Diagnostic::error(message).code(code).at(compiler.span_of(text), label)
    };
    let value = expr::evaluate(expr, &Nothing)
        .map_err(|error| wrong("this expression has no value", rules::NO_VALUE, error.to_string()))?;
    let Value::Array(items) = value else {
        return Err(wrong("the elements of a table are an array", rules::WRONG_KIND, value.to_string()));
    };
    if let Some(error) = table_size_error(ty, items.len()) {
        return Err(wrong(&error.message, rules::WRONG_VALUE, error.label));
    }
    let mut data = TableData::default();
    for (index, item) in items.iter().enumerate() {
        let bytes = ty.bytes(item).map_err(|why| {
            let message = format!("an element of the table is not of type `{}`", ty.name());
            wrong(&message, rules::WRONG_VALUE, format!("element {index} is {item}{why}"))
        })?;
        data.push(&bytes);
    }
    Ok(data)
}
