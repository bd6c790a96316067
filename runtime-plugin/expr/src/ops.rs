//! Operators and built-in functions. Integers are checked `i64`; sums and products overflow only in total. Floats
//! follow IEEE 754, but nonfinite results of finite operands are errors.

use super::node::{BinaryOp, Builtin, DeviceFact, Node, UnaryOp};
use crate::value::Value;

/// Maximum length of an array.
pub const ARRAY_LIMIT: usize = 65_536;

/// Maximum steps of an evaluation, one per node or element.
pub const STEP_LIMIT: usize = 1_000_000;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A divisor is 0.
    #[error("division by zero: {0}")]
    DivisionByZero(String),
    /// The result does not fit.
    #[error("{kind} overflow: {operation}")]
    Overflow {
        /// `integer` or `float`.
        kind: &'static str,
        /// The operation with its values: `7 // 0`.
        operation: String,
    },
    /// The function is undefined for this argument.
    #[error("{0} is not defined")]
    Undefined(String),
    /// An index out of range.
    #[error("index {index} is out of range for an array of length {len}")]
    IndexOutOfRange {
        /// Index.
        index: i64,
        /// The array's length.
        len: usize,
    },
    /// Operands of the wrong kind.
    #[error("`{operation}` does not accept {found}")]
    Kind {
        /// Operation.
        operation: &'static str,
        /// Kinds of the operands.
        found: String,
    },
    /// Unknown attribute.
    #[error("the value of attribute {0} is unknown")]
    UnknownAttribute(u32),
    /// A tensor's shape or rank is unknown.
    #[error("the shape of tensor {0} is unknown")]
    UnknownTensor(u32),
    /// A tensor's address is unknown.
    #[error("the address of tensor {0} is unknown")]
    UnknownAddress(u32),
    /// No device is known.
    #[error("`{0}` is unknown without a device")]
    UnknownDevice(DeviceFact),
    /// A shape input's values are unknown.
    #[error("the values of tensor {0} are unknown")]
    UnknownValues(u32),
    /// A size that kernels have not written yet.
    #[error("the size in tensor {0} is unknown before the kernels run")]
    UnknownSize(u32),
    /// [`super::Expr::validate`] rejects the tree.
    #[error("the expression is malformed")]
    Malformed,
    /// Above [`ARRAY_LIMIT`].
    #[error("an array of {0} elements exceeds the limit of {ARRAY_LIMIT}")]
    ArrayTooLong(String),
    /// Above [`STEP_LIMIT`].
    #[error("the evaluation exceeds {STEP_LIMIT} steps")]
    TooManySteps,
}

impl EvalError {
    /// Returns whether values are the cause, not tree, environment or steps.
    pub fn is_about_values(&self) -> bool {
        use EvalError::{ArrayTooLong, DivisionByZero, IndexOutOfRange, Overflow, Undefined};
        matches!(
            self,
            DivisionByZero(_) | Overflow { .. } | Undefined(_) | IndexOutOfRange { .. } | ArrayTooLong(_)
        )
    }
}

fn show(values: &[Value]) -> String {
    const SHOWN: usize = 8;
    let text = |value: &Value| match value {
        Value::Array(items) => format!("[{}]", show(items)),
        other => other.to_string(),
    };
    let mut shown = values.iter().take(SHOWN).map(text).collect::<Vec<String>>().join(", ");
    if values.len() > SHOWN {
        shown += &format!(", ... {} more", values.len() - SHOWN);
    }
    shown
}

fn call_text(name: &str, args: &[Value]) -> String {
    format!("{name}({})", show(args))
}

pub(super) fn wrong_kind(operation: &'static str, found: &[&Value]) -> EvalError {
    let kinds: Vec<&str> = found.iter().map(|value| value.kind_name()).collect();
    EvalError::Kind {
        operation,
        found: if kinds.is_empty() { "nothing".into() } else { kinds.join(" and ") },
    }
}

/// Rejects a nonfinite `value` of finite `from`.
fn float(value: f64, from: &[f64], operation: impl FnOnce() -> String) -> Result<Value, EvalError> {
    let from_infinity = !value.is_nan() && from.iter().any(|from| from.is_infinite());
    if value.is_finite() || from_infinity || from.iter().any(|from| from.is_nan()) {
        return Ok(Value::Float(value));
    }
    if value.is_nan() {
        return Err(EvalError::Undefined(operation()));
    }
    Err(EvalError::Overflow { kind: "float", operation: operation() })
}

#[inline]
fn int(value: Option<i64>, operation: impl FnOnce() -> String) -> Result<Value, EvalError> {
    value.map(Value::Int).ok_or_else(|| EvalError::Overflow { kind: "integer", operation: operation() })
}

pub(super) fn unary(op: UnaryOp, value: &Value) -> Result<Value, EvalError> {
    match (op, value) {
        (UnaryOp::Not, Value::Bool(value)) => Ok(Value::Bool(!value)),
        (UnaryOp::Neg, Value::Int(value)) => int(value.checked_neg(), || format!("-({value})")),
        (UnaryOp::Neg, Value::Float(value)) => Ok(Value::Float(-value)),
        _ => Err(wrong_kind(op.symbol(), &[value])),
    }
}

pub(super) fn binary(op: BinaryOp, left: &Value, right: &Value) -> Result<Value, EvalError> {
    match (op, left, right) {
        (BinaryOp::Eq | BinaryOp::Ne, _, _) => match equal(left, right) {
            Some(same) => Ok(Value::Bool(same == (op == BinaryOp::Eq))),
            None => Err(wrong_kind(op.symbol(), &[left, right])),
        },
        (BinaryOp::And, Value::Bool(left), Value::Bool(right)) => Ok(Value::Bool(*left && *right)),
        (BinaryOp::Or, Value::Bool(left), Value::Bool(right)) => Ok(Value::Bool(*left || *right)),
        (_, Value::Int(left), Value::Int(right)) => ints(op, *left, *right),
        (_, Value::Float(left), Value::Float(right)) => floats(op, *left, *right),
        _ => Err(wrong_kind(op.symbol(), &[left, right])),
    }
}

pub(super) fn apply(node: &Node, values: &[Value]) -> Result<Value, EvalError> {
    match (node, values) {
        (Node::Array(_), items) => Ok(Value::Array(items.to_vec())),
        (Node::Unary(op, _), [value]) => unary(*op, value),
        (Node::Binary(op, ..), [left, right]) => binary(*op, left, right),
        (Node::Index { .. }, [Value::Array(items), Value::Int(at)]) => index(items, *at).cloned(),
        (Node::Index { .. }, [array, at]) => Err(wrong_kind("[]", &[array, at])),
        (Node::Call(builtin, _), args) => call(*builtin, args),
        _ => Err(EvalError::Malformed),
    }
}

fn equal(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left == right),
        (Value::Float(left), Value::Float(right)) => Some(left == right),
        (Value::Bool(left), Value::Bool(right)) => Some(left == right),
        (Value::Str(left), Value::Str(right)) => Some(left == right),
        (Value::Array(left), Value::Array(right)) => {
            let mut same = left.len() == right.len();
            for (left, right) in left.iter().zip(right) {
                same &= equal(left, right)?;
            }
            Some(same)
        }
        _ => None,
    }
}

fn ints(op: BinaryOp, left: i64, right: i64) -> Result<Value, EvalError> {
    let text = || format!("{left} {} {right}", op.symbol());
    Ok(match op {
        BinaryOp::Add => return int(left.checked_add(right), text),
        BinaryOp::Sub => return int(left.checked_sub(right), text),
        BinaryOp::Mul => return int(left.checked_mul(right), text),
        BinaryOp::FloorDiv | BinaryOp::Mod if right == 0 => return Err(EvalError::DivisionByZero(text())),
        BinaryOp::FloorDiv => return int(floor_div(left, right), text),
        // The quotient overflows for the minimum integer by -1.
        BinaryOp::Mod => {
            let rest = left.wrapping_rem(right);
            Value::Int(if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest })
        }
        BinaryOp::Lt => Value::Bool(left < right),
        BinaryOp::Le => Value::Bool(left <= right),
        BinaryOp::Gt => Value::Bool(left > right),
        BinaryOp::Ge => Value::Bool(left >= right),
        BinaryOp::Div | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or => {
            return Err(wrong_kind(op.symbol(), &[&Value::Int(left), &Value::Int(right)]));
        }
    })
}

fn floats(op: BinaryOp, left: f64, right: f64) -> Result<Value, EvalError> {
    let text = || format!("{left:?} {} {right:?}", op.symbol());
    let from = [left, right];
    Ok(match op {
        BinaryOp::Add => return float(left + right, &from, text),
        BinaryOp::Sub => return float(left - right, &from, text),
        BinaryOp::Mul => return float(left * right, &from, text),
        BinaryOp::Div if right == 0.0 => return Err(EvalError::DivisionByZero(text())),
        BinaryOp::Div => return float(left / right, &from, text),
        BinaryOp::Lt => Value::Bool(left < right),
        BinaryOp::Le => Value::Bool(left <= right),
        BinaryOp::Gt => Value::Bool(left > right),
        BinaryOp::Ge => Value::Bool(left >= right),
        BinaryOp::FloorDiv | BinaryOp::Mod | BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or => {
            return Err(wrong_kind(op.symbol(), &[&Value::Float(left), &Value::Float(right)]));
        }
    })
}

pub(super) fn floor_div(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let inexact = left.wrapping_rem(right) != 0;
    Some(if inexact && (left < 0) != (right < 0) { quotient - 1 } else { quotient })
}

pub(super) fn ceil_div(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let inexact = left.wrapping_rem(right) != 0;
    Some(if inexact && (left < 0) == (right < 0) { quotient + 1 } else { quotient })
}

pub(super) fn call(builtin: Builtin, args: &[Value]) -> Result<Value, EvalError> {
    let text = || call_text(builtin.name(), args);
    match (builtin, args) {
        (Builtin::Min | Builtin::Max, [Value::Array(items)]) => extreme(builtin, items, args),
        (Builtin::Min | Builtin::Max, [_, _, ..]) => extreme(builtin, args, args),
        (Builtin::Abs, [Value::Int(value)]) => int(value.checked_abs(), text),
        (Builtin::Abs, [Value::Float(value)]) => Ok(Value::Float(value.abs())),
        (Builtin::CeilDiv, [Value::Int(_), Value::Int(0)]) => Err(EvalError::DivisionByZero(text())),
        (Builtin::CeilDiv, [Value::Int(left), Value::Int(right)]) => int(ceil_div(*left, *right), text),
        (Builtin::Len, [Value::Array(items)]) => int(i64::try_from(items.len()).ok(), text),
        (Builtin::Get, [Value::Array(items), Value::Int(index), default]) => {
            let item = usize::try_from(*index).ok().and_then(|index| items.get(index));
            Ok(item.unwrap_or(default).clone())
        }
        (Builtin::Range, [Value::Int(end)]) => range(0, *end),
        (Builtin::Range, [Value::Int(start), Value::Int(end)]) => range(*start, *end),
        (Builtin::Sum | Builtin::Prod, [Value::Array(items)]) => total(builtin, items, args),
        (Builtin::Sqrt, [Value::Float(value)]) => float(value.sqrt(), &[*value], text),
        (Builtin::Rsqrt, [Value::Float(0.0)]) => Err(EvalError::DivisionByZero(text())),
        (Builtin::Rsqrt, [Value::Float(value)]) => float(1.0 / value.sqrt(), &[*value], text),
        (Builtin::Exp, [Value::Float(value)]) => float(value.exp(), &[*value], text),
        (Builtin::Log, [Value::Float(0.0)]) => Err(EvalError::Undefined(text())),
        (Builtin::Log, [Value::Float(value)]) => float(value.ln(), &[*value], text),
        (Builtin::Float, [Value::Float(value)]) => Ok(Value::Float(*value)),
        // Rounds beyond 2^53, as C and Python do.
        (Builtin::Float, [Value::Int(value)]) => Ok(Value::Float(*value as f64)),
        (Builtin::Int, [Value::Int(value)]) => Ok(Value::Int(*value)),
        (Builtin::Int, [Value::Float(value)]) => int(truncate(*value), text),
        _ => Err(wrong_kind(builtin.name(), &args.iter().collect::<Vec<&Value>>())),
    }
}

fn truncate(value: f64) -> Option<i64> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    (-BEYOND..BEYOND).contains(&value).then_some(value as i64)
}

pub(super) fn index<T>(items: &[T], index: i64) -> Result<&T, EvalError> {
    position(items.len(), index)
        .and_then(|at| items.get(at))
        .ok_or(EvalError::IndexOutOfRange { index, len: items.len() })
}

pub(super) fn position(len: usize, index: i64) -> Option<usize> {
    let from_start = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(from_start).ok().filter(|&at| at < len)
}

fn extreme(builtin: Builtin, items: &[Value], args: &[Value]) -> Result<Value, EvalError> {
    let (Some(first), rest) = (items.first(), items.iter().skip(1)) else {
        return Err(EvalError::Undefined(call_text(builtin.name(), args)));
    };
    let mut best = first.clone();
    if !matches!(best, Value::Int(_) | Value::Float(_)) {
        return Err(wrong_kind(builtin.name(), &[&best]));
    }
    for item in rest {
        best = match (builtin, &best, item) {
            (Builtin::Min, Value::Int(best), Value::Int(item)) => Value::Int(*best.min(item)),
            (_, Value::Int(best), Value::Int(item)) => Value::Int(*best.max(item)),
            (Builtin::Min, Value::Float(best), Value::Float(item)) => Value::Float(best.min(*item)),
            (_, Value::Float(best), Value::Float(item)) => Value::Float(best.max(*item)),
            _ => return Err(wrong_kind(builtin.name(), &[&best, item])),
        };
    }
    Ok(best)
}

fn range(start: i64, end: i64) -> Result<Value, EvalError> {
    let len = i128::from(end) - i128::from(start);
    if len > ARRAY_LIMIT as i128 {
        return Err(EvalError::ArrayTooLong(len.to_string()));
    }
    Ok(Value::Array((start..end).map(Value::Int).collect()))
}

fn total(builtin: Builtin, items: &[Value], args: &[Value]) -> Result<Value, EvalError> {
    let (name, is_sum) = (builtin.name(), builtin == Builtin::Sum);
    let text = || call_text(name, args);
    if let Some(Value::Float(_)) = items.first() {
        let float_of = |item: &Value| if let Value::Float(value) = item { Some(*value) } else { None };
        let items = all_of_kind(name, items, float_of)?;
        let total = if is_sum { items.iter().sum() } else { items.iter().product() };
        return float(total, &items, text);
    }
    let items = all_of_kind(name, items, Value::as_int)?;
    if is_sum {
        let total: i128 = items.into_iter().map(i128::from).sum();
        return int(i64::try_from(total).ok(), text);
    }
    int(exact_product(&items), text)
}

fn all_of_kind<T>(
    operation: &'static str,
    items: &[Value],
    of_kind: impl Fn(&Value) -> Option<T>,
) -> Result<Vec<T>, EvalError> {
    items.iter().map(|item| of_kind(item).ok_or_else(|| wrong_kind(operation, &[item]))).collect()
}

/// Returns the product, independent of the factors' order; `None` on overflow.
pub(super) fn exact_product(items: &[i64]) -> Option<i64> {
    if items.contains(&0) {
        return Some(0);
    }
    let mut product = 1_i128;
    for &item in items {
        // Without a 0, the magnitude never shrinks; below 2^63 * 2^63 it fits.
        product *= i128::from(item);
        if product.unsigned_abs() > 1 << 63 {
            return None;
        }
    }
    i64::try_from(product).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int_op(op: BinaryOp, left: i64, right: i64) -> Result<Value, String> {
        binary(op, &Value::Int(left), &Value::Int(right)).map_err(|error| error.to_string())
    }

    fn ints(items: &[i64]) -> Value {
        Value::Array(items.iter().copied().map(Value::Int).collect())
    }

    #[test]
    fn division_is_pythons() {
        for (left, right, quotient, rest, up) in
            [(7, 2, 3, 1, 4), (-7, 2, -4, 1, -3), (7, -2, -4, -1, -3), (-7, -2, 3, -1, 4), (6, 3, 2, 0, 2)]
        {
            assert_eq!(int_op(BinaryOp::FloorDiv, left, right), Ok(Value::Int(quotient)));
            assert_eq!(int_op(BinaryOp::Mod, left, right), Ok(Value::Int(rest)));
            assert_eq!(call(Builtin::CeilDiv, &[Value::Int(left), Value::Int(right)]), Ok(Value::Int(up)));
        }
        assert_eq!(int_op(BinaryOp::Mod, i64::MIN, -1), Ok(Value::Int(0)));
    }

    #[test]
    fn errors_carry_the_values() {
        assert_eq!(int_op(BinaryOp::FloorDiv, 7, 0).unwrap_err(), "division by zero: 7 // 0");
        assert_eq!(int_op(BinaryOp::Mod, -7, 0).unwrap_err(), "division by zero: -7 % 0");
        assert_eq!(
            int_op(BinaryOp::Mul, i64::MAX, 2).unwrap_err(),
            "integer overflow: 9223372036854775807 * 2"
        );
        assert_eq!(
            int_op(BinaryOp::FloorDiv, i64::MIN, -1).unwrap_err(),
            "integer overflow: -9223372036854775808 // -1"
        );
        let message = |builtin, args: &[Value]| call(builtin, args).unwrap_err().to_string();
        assert_eq!(message(Builtin::Sqrt, &[Value::Float(-1.0)]), "sqrt(-1.0) is not defined");
        assert_eq!(message(Builtin::Log, &[Value::Float(0.0)]), "log(0.0) is not defined");
        assert_eq!(message(Builtin::Exp, &[Value::Float(1e6)]), "float overflow: exp(1000000.0)");
        assert_eq!(message(Builtin::Min, &[ints(&[])]), "min([]) is not defined");
        assert_eq!(
            message(Builtin::CeilDiv, &[Value::Int(7), Value::Int(0)]),
            "division by zero: ceil_div(7, 0)"
        );
        assert_eq!(message(Builtin::Int, &[Value::Float(1e30)]), "integer overflow: int(1e30)");
        assert_eq!(
            message(Builtin::Range, &[Value::Int(i64::MAX)]),
            "an array of 9223372036854775807 elements exceeds the limit of 65536"
        );
        assert_eq!(
            message(Builtin::Sum, &[ints(&[i64::MAX; 12])]),
            format!("integer overflow: sum([{}... 4 more])", "9223372036854775807, ".repeat(8))
        );
        assert_eq!(
            binary(BinaryOp::Add, &Value::Int(1), &Value::Str("a".into())).unwrap_err().to_string(),
            "`+` does not accept integer and string"
        );
    }

    #[test]
    fn an_array_has_at_most_65536_elements() {
        let longest = call(Builtin::Range, &[Value::Int(65_536)]);
        assert!(matches!(longest, Ok(Value::Array(items)) if items.len() == 65_536));
        let longer = call(Builtin::Range, &[Value::Int(-1), Value::Int(65_536)]);
        assert_eq!(longer.unwrap_err().to_string(), "an array of 65537 elements exceeds the limit of 65536");
    }

    #[test]
    fn sums_and_products_do_not_depend_on_order() {
        let product = |items: &[i64]| call(Builtin::Prod, &[ints(items)]).ok();
        assert_eq!(product(&[1 << 62, 2, -1]), Some(Value::Int(i64::MIN)));
        assert_eq!(product(&[1 << 62, 2, 1]), None);
        assert_eq!(product(&[1 << 62, 1 << 62, 1 << 62, 0]), Some(Value::Int(0)));
        assert_eq!(product(&[i64::MIN; 3]), None);
        assert_eq!(call(Builtin::Sum, &[ints(&[i64::MAX, 1, -1])]), Ok(Value::Int(i64::MAX)));
        assert_eq!(call(Builtin::Sum, &[ints(&[])]), Ok(Value::Int(0)));
        assert_eq!(product(&[]), Some(Value::Int(1)));
    }

    #[test]
    fn infinity_passes_but_is_not_made() {
        let infinite = Value::Float(f64::INFINITY);
        let one = Value::Float(1.0);
        assert_eq!(binary(BinaryOp::Add, &infinite, &one), Ok(infinite.clone()));
        assert!(binary(BinaryOp::Sub, &infinite, &infinite).is_err());
        assert!(binary(BinaryOp::Mul, &Value::Float(1e308), &Value::Float(1e308)).is_err());
        assert!(binary(BinaryOp::Div, &one, &Value::Float(0.0)).is_err());
    }

    #[test]
    fn get_and_index_differ_below_zero() {
        let get = |index| call(Builtin::Get, &[ints(&[10, 20]), Value::Int(index), Value::Int(7)]);
        assert_eq!([get(-1), get(0), get(1), get(2)], [7, 10, 20, 7].map(|value| Ok(Value::Int(value))));
        assert_eq!(index(&[10, 20], -1), Ok(&20));
        assert_eq!(index(&[10, 20], -3), Err(EvalError::IndexOutOfRange { index: -3, len: 2 }));
        assert_eq!(index(&[10, 20], i64::MIN), Err(EvalError::IndexOutOfRange { index: i64::MIN, len: 2 }));
    }

    #[test]
    fn arrays_are_equal_element_by_element() {
        let same = |left: &Value, right: &Value| binary(BinaryOp::Eq, left, right);
        assert_eq!(same(&ints(&[1, 2]), &ints(&[1, 2])), Ok(Value::Bool(true)));
        assert_eq!(same(&ints(&[1, 2]), &ints(&[1])), Ok(Value::Bool(false)));
        assert!(same(&ints(&[1]), &Value::Array(vec![Value::Bool(true)])).is_err());
    }
}
