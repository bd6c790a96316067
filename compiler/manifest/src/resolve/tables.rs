use std::sync::Arc;

use cubinder_expr as expr;
use cubinder_expr::{BindingTime, Value};

use super::errors::{
    ElementOfWrongType, TableDependsOnNode, TableIsNoArray, TableOfWrongSize, TableWithoutValue,
};
use super::excluded_rows::SpecializedValues;
use super::expression::{Compiler, Expected};
use super::{Table, TableFile, beside};
use crate::diagnostic::Diagnostic;
use crate::manifest::{TableDecl, TableValues, Text, table_size_error};

pub(super) fn resolve(compiler: &mut Compiler<'_>) -> (Arc<[Table]>, bool) {
    let decls = &compiler.declared.manifest.tables;
    let tables: Vec<Table> = decls.iter().filter_map(|decl| table(compiler, decl)).collect();
    let are_right = tables.len() == decls.len();
    (tables.into(), are_right)
}

fn table(compiler: &mut Compiler<'_>, decl: &TableDecl) -> Option<Table> {
    let (data, file) = match &decl.values {
        TableValues::Listed(data) => (data.clone(), None),
        TableValues::Computed(text) => (computed(compiler, decl, text)?, None),
        TableValues::File(name) => {
            let path = beside(compiler.declared.source, &name.value);
            (Vec::new(), Some(TableFile { path, span: compiler.span(&name.range) }))
        }
    };
    Some(Table { name: decl.name.value.clone(), ty: decl.ty.value, data, file })
}

fn computed(compiler: &mut Compiler<'_>, decl: &TableDecl, text: &Text) -> Option<Vec<u8>> {
    let scope = compiler.shared_scope();
    let typed = compiler.expression(text, "values", Expected::Elements, &scope)?;
    match evaluated(compiler, decl, text, &typed) {
        Ok(data) => Some(data),
        Err(error) => {
            let label = format!("the elements of `{}`", decl.name.value);
            let error = error.related(compiler.span(&decl.ty.range), label);
            compiler.report(compiler.with_values(error, text, None), None);
            None
        }
    }
}

fn evaluated(
    compiler: &Compiler<'_>,
    decl: &TableDecl,
    text: &Text,
    typed: &expr::Typed,
) -> Result<Vec<u8>, Diagnostic> {
    let (ty, span) = (decl.ty.value, compiler.span(&text.range));
    if typed.time > BindingTime::Compile {
        return Err(TableDependsOnNode { span }.into());
    }
    let value = match expr::evaluate(&typed.expr, &SpecializedValues(&[])) {
        Ok(value) => value,
        Err(error) => return Err(TableWithoutValue { span, problem: error.to_string() }.into()),
    };
    let Value::Array(items) = value else { return Err(TableIsNoArray { span, value }.into()) };
    if let Some(error) = table_size_error(ty, items.len()) {
        return Err(TableOfWrongSize { span, message: error.message, label: error.label }.into());
    }
    let mut data = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match ty.bytes(item) {
            Ok(bytes) => data.extend(bytes),
            Err(reason) => {
                return Err(ElementOfWrongType { ty: ty.name(), span, index, item, reason }.into());
            }
        }
    }
    Ok(data)
}
