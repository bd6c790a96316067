//! Expressions over attributes and shapes, for manifests and engines.
//!
//! [`parse`] reads text to [`Syntax`], [`compile`] resolves it to [`Expr`], [`evaluate`] computes it, [`bind()`] folds
//! known parts, [`lower()`] builds TensorRT's shape operations, [`bounds()`] proves limits, [`print()`] writes it.
//!
//! Like Python with checked 64-bit integers, without chained comparisons, slices, and `/` of integers. Never recurses
//! deeper than [`Expr::DEPTH_LIMIT`].

#[macro_use]
mod named;

mod bind;
mod bounds;
pub mod data_type;
mod error;
mod eval;
mod foreign;
pub mod format;
mod formula;
pub mod interval;
mod lexer;
mod lower;
mod node;
mod ops;
mod parser;
mod print;
mod resolve;
mod scope;
mod sizes;
mod sorting;
mod syntax;
mod validate;
pub mod value;

pub use bind::{bind, bind_within};
pub use bounds::{AttributeRange, Bounds, RangeEnvironment, bounds, bounds_each, bounds_each_within};
pub use bounds::{Extent, Facts, Ints, Stop, TermId, Terms, Walk};
pub use data_type::{DataType, ScalarType};
pub use error::{ErrorClass, ExprError};
pub use eval::{Environment, evaluate, evaluate_within};
pub use format::Format;
pub use formula::{Formula, is_within, joined};
pub use interval::Interval;
pub use lower::{LowerError, ShapeBuilder, ShapeOp, Symbol, lower, lower_scalar, lower_value};
pub use node::{BinaryOp, Builtin, DeviceFact, Expr, Node, NodeId, UnaryOp};
pub use ops::{ARRAY_LIMIT, EvalError, STEP_LIMIT};
pub use parser::parse;
pub use print::{Names, print, print_node};
pub use resolve::{Typed, binding_time, check_function, compile, compile_syntax};
pub use scope::{
    BindingTime, DEVICE, Function, Kind, Scope, TensorKind, is_function_reserved, is_name_reserved,
};
pub use sizes::{sizes_are_dimensions, sizes_of};
pub use sorting::{sorted, sorted_set};
pub use syntax::{KEYWORDS, Syntax, SyntaxKind};
pub use validate::InvalidExpr;
pub use value::Value;

#[cfg(test)]
mod tests;
