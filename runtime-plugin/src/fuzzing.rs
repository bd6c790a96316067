//! Operators of the C interface, for fuzz targets.

use std::sync::Arc;

use cubinder_model::{Node, Plugin};
use trt_abi::{Field, Result};

use crate::attributes;
use crate::definition::Definition;
use crate::plugin::{InputShapes, Operator};

/// Arguments of the C interface (`include/cubinder_runtime.h`).
#[derive(Debug)]
pub struct Arguments<'a> {
    /// Attributes.
    pub fields: Vec<Field<'a>>,
    /// Numbers of `nvinfer1::DataType`, for each input.
    pub types: Vec<i32>,
    /// Rank of each input.
    pub ranks: Vec<i32>,
    /// Extents of all inputs.
    pub extents: Vec<i64>,
    /// Values of size outputs, by output.
    pub sizes: Vec<i64>,
}

/// Creates an operator; returns output shapes and their program.
pub fn call(plugin: &Plugin, arguments: &Arguments<'_>) -> Result<(Vec<Vec<i64>>, Vec<i64>)> {
    let node = Node {
        producer: String::new(),
        plugin: plugin.clone(),
        attributes: Vec::new(),
        input_ranks: None,
        workspace_bytes: None,
        code: Vec::new(),
    };
    let values = attributes::from_fields(plugin, &arguments.fields)?;
    let operator = Operator::from_definition(Definition::bare(Arc::new(node)), values, &arguments.types)?;
    let given = InputShapes { ranks: &arguments.ranks, extents: &arguments.extents };
    let program = operator.shape_program(&arguments.ranks);
    let _bounds = operator.output_shapes(given, None);
    Ok((operator.output_shapes(given, Some(&arguments.sizes))?, program?))
}
