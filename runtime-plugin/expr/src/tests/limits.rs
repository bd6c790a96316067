use super::support::{World, scope};
use crate::value::Value;
use crate::{Bounds, Environment, RangeEnvironment, bounds, bounds_each, compile};

/// x is 1..16 x 3 x 32..64 x 32..64, y is unknown.
struct Profile(World);

impl RangeEnvironment for Profile {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.0.attribute(index)
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        self.0.rank(tensor).filter(|_| tensor != 2)
    }

    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)> {
        [(1, 16), (3, 3), (32, 64), (32, 64)].get(axis).copied().filter(|_| tensor == 0)
    }
}

fn limits(text: &str) -> Result<(i64, i64, bool), String> {
    let expr = compile(text, &scope()).unwrap().expr;
    bounds(&expr, &Profile(World::example()))
        .map(|Bounds { min, max, total }| (min, max, total))
        .map_err(|error| error.to_string())
}

#[test]
fn intervals_of_integers() {
    assert_eq!(limits("numel(x)"), Ok((3072, 196_608, true)));
    assert_eq!(limits("ceil_div(numel(x), BLOCK)"), Ok((12, 768, true)));
    assert_eq!(limits("x.shape[0] - x.shape[2]"), Ok((-63, -16, true)));
    assert_eq!(limits("(x.shape[0] - 8) * (x.shape[2] - 40)"), Ok((-168, 192, true)));
    assert_eq!(limits("abs(x.shape[0] - 8)"), Ok((0, 8, true)));
    assert_eq!(limits("-(x.shape[0]) // 3"), Ok((-6, -1, true)));
    assert_eq!(limits("x.shape[0] % 5"), Ok((0, 4, true)));
    assert_eq!(limits("(x.shape[2] + 1000) % 2000"), Ok((1032, 1064, true)));
    assert_eq!(limits("x.shape[0] % -5"), Ok((-4, 0, true)));
    assert_eq!(limits("max(x.shape) + min(x.shape) + len(x.shape)"), Ok((37, 71, true)));
    assert_eq!(limits("1 if x.shape[0] > 20 else 2"), Ok((2, 2, true)));
    assert_eq!(limits("1 if x.shape[0] > 8 else n"), Ok((1, 3, true)));
    assert_eq!(limits("sum([d * 2 for d in x.shape])"), Ok((136, 294, true)));
    assert_eq!(limits("sum([d for d in x.shape if d > 2])"), Ok((9, 256, true)));
    assert_eq!(limits("x.shape[x.shape[0] % 2]"), Ok((1, 16, true)));
    assert_eq!(limits("get(x.shape, x.shape[0] % 2, 99)"), Ok((1, 16, true)));
}

#[test]
fn truth_of_guards() {
    assert_eq!(limits("x.shape[2] >= 32 and x.shape[1] == 3"), Ok((1, 1, true)));
    assert_eq!(limits("x.shape[2] < 32"), Ok((0, 0, true)));
    assert_eq!(limits("x.shape[2] % 4 == 0"), Ok((0, 1, true)));
    assert_eq!(limits("x.shape == y.shape"), Ok((0, 0, true)));
    assert_eq!(limits("x.shape[0] == 17 or x.shape[0] * scale > 3"), Ok((0, 1, true)));
    assert_eq!(limits("x.shape[0] == 17 or x.shape[0] * scale > 8"), Ok((0, 0, true)));
    assert_eq!(limits("x.shape[0] == 17 or x.shape[0] / (scale - 0.5) > 3"), Ok((0, 1, false)));
}

#[test]
fn what_may_fail_is_not_total() {
    assert_eq!(limits("100 // (x.shape[0] - 8)"), Ok((-100, 100, false)));
    assert_eq!(limits("100 // (x.shape[0] - 1)"), Ok((6, 100, false)));
    assert_eq!(limits("numel(y)"), Ok((0, i64::MAX, false)));
    assert_eq!(
        limits("prod([-y.shape[0], -9223372036854775808, -9223372036854775808])"),
        Ok((i64::MIN, 0, false))
    );
    assert_eq!(limits("x.shape[x.shape[0]]"), Ok((3, 64, false)));
    assert_eq!(limits("z.rank + numel(z)").map(|(_, _, total)| total), Ok(false));
    assert_eq!(limits("int(x.shape[0] * scale)"), Ok((0, 8, true)));
    assert_eq!(limits("int(x.shape[0] / scale * 1e300)"), Ok((i64::MIN, i64::MAX, false)));
    assert_eq!(limits("100 // (x.shape[1] - 3)"), Err("division by zero: 100 // 0".into()));
    assert_eq!(limits("x.shape[0] // (n - 3)"), Err("division by zero: (1 to 16) // 0".into()));
    assert_eq!(
        limits("x.shape[0] * 9223372036854775807 + 9223372036854775807"),
        Err("integer overflow: 9223372036854775807 + 9223372036854775807".into())
    );
}

#[test]
fn each_dimension_of_a_shape() {
    let each = |text: &str| {
        let expr = compile(text, &scope()).unwrap().expr;
        let each = bounds_each(&expr, &Profile(World::example())).unwrap();
        each.map(|each| each.into_iter().map(|bounds| (bounds.min, bounds.max)).collect::<Vec<_>>())
    };
    assert_eq!(each("[d + n for d in x.shape]"), Some(vec![(4, 19), (6, 6), (35, 67), (35, 67)]));
    assert_eq!(each("[d for d in x.shape if d > 2]"), None);
    assert_eq!(each("z.shape"), None);
}

struct Attributes;

impl RangeEnvironment for Attributes {
    fn attribute(&self, _: u32) -> Option<&Value> {
        None
    }

    fn rank(&self, tensor: u32) -> Option<usize> {
        Profile(World::example()).rank(tensor)
    }

    fn dim(&self, tensor: u32, axis: usize) -> Option<(i64, i64)> {
        Profile(World::example()).dim(tensor, axis)
    }
}

#[test]
fn integers_of_which_nothing_is_known_are_compared() {
    let limits = |text: &str| {
        let expr = compile(text, &scope()).unwrap().expr;
        bounds(&expr, &Attributes).map(|Bounds { min, max, .. }| (min, max)).unwrap()
    };
    assert_eq!(limits("n if n > 2 else 3"), (3, i64::MAX));
    assert_eq!(limits("x.shape[0] - n if n == x.shape[0] else 0"), (0, 0));
}
