//! Laws over random plugins: proofs hold, refuting cases refute, few cases are decided.

use proptest::prelude::*;

use super::support::Maker;
use crate::proof::{Case, Domain, Verdict};
use cubinder_expr::value::Value;
use cubinder_expr::{Environment, EvalError, Expr, Node, evaluate};
use cubinder_model::model::{Interval, Plugin, ShapeLimits};

struct Tape<'a>(std::slice::Iter<'a, u8>);

impl Tape<'_> {
    fn pick(&mut self, limit: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % limit
    }

    fn pick_from<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.pick(items.len())]
    }

    fn int(&mut self, outputs: bool, local: Option<&str>, depth: usize) -> String {
        if depth == 0 {
            return match self.pick(10) {
                0..=2 => self.pick_from(&["0", "1", "2", "3", "4", "7", "256", "-1", "(-4)"]).to_owned(),
                3 => "n".into(),
                4 => "x.shape[-1]".into(),
                5 => {
                    self.pick_from(&["x.shape[0]", "numel(x)", "w.shape[0]", "numel(w)", "x.rank"]).to_owned()
                }
                6 => "len(pads)".into(),
                7 => self
                    .pick_from(&["get(pads, 0, 0)", "get(pads, 1, 1)", "sum(pads)", "k.values[0]"])
                    .to_owned(),
                8 if outputs => {
                    self.pick_from(&["numel(y)", "y.shape[-1]", "y.rank", "y.shape[0]"]).to_owned()
                }
                _ => local.unwrap_or("x.shape[-1]").to_owned(),
            };
        }
        let depth = depth - 1;
        match self.pick(15) {
            0..=4 => {
                let op = self.pick_from(&["+", "-", "*", "//", "%"]);
                format!("({} {op} {})", self.int(outputs, local, depth), self.int(outputs, local, depth))
            }
            5 => format!(
                "({} if {} else {})",
                self.int(outputs, local, depth),
                self.bool(outputs, local, depth),
                self.int(outputs, local, depth)
            ),
            6 => {
                let function = self.pick_from(&["min", "max", "ceil_div"]);
                format!(
                    "{function}({}, {})",
                    self.int(outputs, local, depth),
                    self.int(outputs, local, depth)
                )
            }
            7 => format!("{}({})", self.pick_from(&["sum", "len", "prod", "max"]), self.ints(outputs, depth)),
            8 => format!("{}[{}]", self.ints(outputs, depth), self.int(outputs, local, depth)),
            9 => format!("get({}, {}, 1)", self.ints(outputs, depth), self.int(outputs, local, depth)),
            10 => format!("abs({})", self.int(outputs, local, depth)),
            11..=13 => {
                let (index, other) = (self.int(outputs, local, 0), self.int(outputs, local, depth));
                match self.pick(3) {
                    0 => format!("(pads[{index}] if {index} < len(pads) else {other})"),
                    1 => format!("(x.shape[{index}] if {index} < x.rank and {index} >= 0 else {other})"),
                    _ => format!("({other} if {index} == 0 else {other} // {index})"),
                }
            }
            _ => self.int(outputs, local, 0),
        }
    }

    fn ints(&mut self, outputs: bool, depth: usize) -> String {
        if depth == 0 {
            let most = if outputs { 5 } else { 4 };
            return ["pads", "x.shape", "w.shape", "k.values", "y.shape"][self.pick(most)].to_owned();
        }
        let depth = depth - 1;
        match self.pick(4) {
            0 => format!("[{}, {}]", self.int(outputs, None, depth), self.int(outputs, None, depth)),
            1 => format!("range({})", self.pick_from(&["3", "x.rank", "min(max(n, 0), 9)", "len(pads)"])),
            2 => {
                let (over, body) = (self.ints(outputs, depth), self.int(outputs, Some("v"), depth));
                format!("[{body} for v in {over}]")
            }
            _ => {
                let (over, body) = (self.ints(outputs, depth), self.int(outputs, Some("v"), depth));
                format!("[{body} for v in {over} if {}]", self.bool(outputs, Some("v"), depth))
            }
        }
    }

    fn bool(&mut self, outputs: bool, local: Option<&str>, depth: usize) -> String {
        let below = depth.saturating_sub(1);
        if depth > 0 {
            match self.pick(8) {
                0 => return format!("(not {})", self.bool(outputs, local, below)),
                1 | 2 => {
                    let op = self.pick_from(&["and", "or"]);
                    return format!(
                        "({} {op} {})",
                        self.bool(outputs, local, below),
                        self.bool(outputs, local, below)
                    );
                }
                3 => return format!("({} == {})", self.ints(outputs, below), self.ints(outputs, below)),
                4 => return "flag".into(),
                5 => {
                    return format!(
                        "mode {} {}",
                        self.pick_from(&["==", "!="]),
                        self.pick_from(&["\"a\"", "\"b\"", "\"c\""])
                    );
                }
                _ => {}
            }
        }
        let op = self.pick_from(&["==", "!=", "<", "<=", ">", ">="]);
        format!("({} {op} {})", self.int(outputs, local, below), self.int(outputs, local, below))
    }

    fn condition(&mut self, outputs: bool) -> String {
        match self.pick(13) {
            11 => format!(
                "k.values[0] {} {}",
                self.pick_from(&["<", ">=", "!=", "=="]),
                self.int(outputs, None, 1)
            ),
            12 => "len([v for v in k.values if v <= 0]) == 0".into(),
            0 => "len(pads) % 2 == 0".into(),
            1 => "len([p for p in pads if p < 0]) == 0".into(),
            2 => format!(
                "x.shape[-1] % {} == {}",
                self.pick_from(&["2", "3", "4"]),
                self.pick_from(&["0", "1"])
            ),
            3 => format!(
                "n {} {}",
                self.pick_from(&["<", "<=", ">", ">=", "!=", "=="]),
                self.int(outputs, None, 1)
            ),
            4 => "x.shape == w.shape".into(),
            5 => "x.rank == w.rank".into(),
            6 => format!(
                "numel(x) {} {}",
                self.pick_from(&["<", ">", "=="]),
                self.pick_from(&["1", "2", "6", "300"])
            ),
            7 => "len(pads) <= x.rank".into(),
            _ => {
                let depth = self.pick(3);
                self.bool(outputs, None, depth)
            }
        }
    }

    fn limits(&mut self, tiny: bool) -> Interval {
        let min = self.pick_from(&[0, 0, 1, 2]);
        let most: &[i64] = if tiny { &[2, 3] } else { &[3, 8, 300, i64::MAX, i64::MAX] };
        Interval { min, max: self.pick_from(most) }
    }

    fn plugin(&mut self, tiny: bool) -> Maker {
        let [every, other, small] = [self.limits(tiny), self.limits(tiny), self.limits(true)];
        let most_rank = if tiny { 2 } else { 3 };
        let number: &[(i64, i64)] =
            if tiny { &[(-2, 2), (0, 3)] } else { &[(-5, 5), (0, 1024), (i64::MIN, i64::MAX)] };
        let range = self.pick_from(number);
        let length = if tiny { 2 } else { self.pick_from(&[2, 3, 4]) };
        let ranks = (self.pick(2) as u8 + 1, most_rank);
        let maker = Maker::new()
            .attribute("n", "i64", |a| {
                (a.minimum, a.maximum) = (Some(Value::Int(range.0)), Some(Value::Int(range.1)));
            })
            .attribute("pads", "i32[]", |a| {
                a.length = Some(Interval { min: 0, max: length });
                if tiny {
                    a.one_of = vec![Value::Int(-1), Value::Int(0), Value::Int(2)];
                } else {
                    (a.minimum, a.maximum) = (Some(Value::Int(-3)), Some(Value::Int(small.max * 40)));
                }
            })
            .attribute("flag", "bool", |a| a.default = Some(Value::Bool(true)))
            .attribute("mode", "string", |a| {
                a.one_of = ["a", "b"].map(|text| Value::Str(text.into())).to_vec();
            })
            .input("x", ranks, |limits| limits.every = every)
            .input("w", (1, 1), |limits| {
                *limits = ShapeLimits { every: other, dims: vec![small], ..ShapeLimits::default() }
            });
        let held = if tiny { (0, 1) } else { self.pick_from(&[(-5, 5), (1, 64), (i64::MIN, i64::MAX)]) };
        let count = if tiny { (1, 1) } else { self.pick_from(&[(0, 3), (1, 1), (2, 2)]) };
        let maker = maker.shape_input(
            "k",
            Interval { min: count.0, max: count.1 },
            Interval { min: held.0, max: held.1 },
        );
        let maker = (0..self.pick(3)).fold(maker, |maker, _| {
            let text = self.condition(false);
            if maker.compiles(&text) { maker.require(&text) } else { maker }
        });
        let shape = match self.pick(7) {
            6 => "[x.shape[0], max(k.values[0], 0)]".to_owned(),
            0 | 1 => "x.shape".to_owned(),
            2 => "[d + get(pads, 0, 0) for d in x.shape]".to_owned(),
            3 => "[x.shape[i] + get(pads, i, 0) + w.shape[0] for i in range(x.rank)]".to_owned(),
            4 => "[d for d in x.shape if d != n]".to_owned(),
            _ => format!("[{}, x.shape[-1]]", self.int(false, None, 2)),
        };
        let shape = if maker.compiles(&shape) { shape } else { "x.shape".into() };
        let most = self.pick_from(&[i64::MAX, i64::MAX, 4, 600]);
        maker.output("y", &shape, |limits| limits.every.max = most)
    }

    fn values(&mut self, plugin: &Plugin, tiny: bool) -> Vec<Value> {
        let number = |tape: &mut Self| {
            let any = [0, 1, 2, 3, -1, -2, 4, 5, 7, 256, 1024, 1 << 40, i64::MAX, i64::MIN];
            tape.pick_from(&any[..if tiny { 6 } else { any.len() }])
        };
        let n = number(self);
        let count = self.pick(5);
        let pads = (0..count).map(|_| Value::Int(self.pick_from(&[-1, 0, 2, 1, 3, 40, 300]))).collect();
        let mode = self.pick_from(&["a", "b"]);
        let _ = plugin;
        vec![Value::Int(n), Value::Array(pads), Value::Bool(self.pick(2) == 0), Value::Str(mode.into())]
    }

    fn shapes(&mut self) -> Vec<Vec<i64>> {
        let shape = |tape: &mut Self, rank: usize| -> Vec<i64> {
            (0..rank)
                .map(|_| tape.pick_from(&[1, 2, 3, 0, 4, 5, 6, 8, 12, 300, 1 << 31, 1 << 40, i64::MAX]))
                .collect()
        };
        let rank = 1 + self.pick(3);
        let x = shape(self, rank);
        let w = if self.pick(2) == 0 { vec![x[0]] } else { shape(self, 1) };
        vec![x, w]
    }

    fn held(&mut self) -> Vec<i64> {
        (0..self.pick(4)).map(|_| self.pick_from(&[1, 0, 2, 3, -1, 5, 32, 64, i64::MAX, i64::MIN])).collect()
    }
}

struct World<'a>(&'a [Value], &'a [Vec<i64>], &'a [i64]);

const HELD: u32 = 2;

impl Environment for World<'_> {
    fn attribute(&self, index: u32) -> Option<&Value> {
        self.0.get(index as usize)
    }

    fn shape(&self, tensor: u32) -> Option<&[i64]> {
        self.1.get(tensor as usize).map(Vec::as_slice)
    }

    fn values(&self, tensor: u32) -> Option<&[i64]> {
        (tensor == HELD).then_some(self.2)
    }
}

fn within(shape: &[i64], limits: &ShapeLimits) -> bool {
    let count = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1_i64, |count, dim| count.checked_mul(*dim))
    };
    shape.len() <= 8
        && shape.iter().enumerate().all(|(axis, &dim)| dim >= 0 && limits.dim(axis).contains(dim))
        && count.is_some_and(|count| limits.numel.contains(count))
}

fn case(
    plugin: &Plugin,
    attributes: &[Value],
    inputs: &[Vec<i64>],
    held: &[i64],
    assumed: Option<&Expr>,
) -> Option<Case> {
    let inputs = &[inputs[0].clone(), inputs[1].clone(), vec![held.len() as i64]];
    let allowed = plugin.inputs[HELD as usize].values.unwrap();
    if !held.iter().all(|value| allowed.contains(*value)) {
        return None;
    }
    for (attribute, value) in plugin.attributes.iter().zip(attributes) {
        let single = |value: &Value| {
            let number = value.as_int();
            let at_least = attribute.minimum.as_ref().and_then(Value::as_int);
            let at_most = attribute.maximum.as_ref().and_then(Value::as_int);
            at_least.is_none_or(|least| number.unwrap() >= least)
                && at_most.is_none_or(|most| number.unwrap() <= most)
                && (attribute.one_of.is_empty() || attribute.one_of.contains(value))
        };
        let fits = match value {
            Value::Array(items) => {
                attribute.length.unwrap().contains(items.len() as i64) && items.iter().all(single)
            }
            value => single(value),
        };
        if !fits {
            return None;
        }
    }
    for (input, shape) in plugin.inputs.iter().zip(inputs) {
        let rank = shape.len() as u8;
        if rank < input.rank_min || rank > input.rank_max || !within(shape, &input.limits) {
            return None;
        }
    }
    let world = World(attributes, inputs, held);
    let holds = |expr: &Expr, world: &World<'_>| evaluate(expr, world) == Ok(Value::Bool(true));
    if !plugin.require.iter().all(|rule| holds(&rule.expr, &world)) {
        return None;
    }
    let mut shapes = inputs.to_vec();
    for output in &plugin.outputs {
        let shape = evaluate(&output.shape, &world).ok()?.as_ints()?;
        if !within(&shape, &output.limits) {
            return None;
        }
        shapes.push(shape);
    }
    let values = if held.is_empty() { vec![] } else { vec![vec![], vec![], held.to_vec()] };
    let all = Case { attributes: attributes.to_vec(), shapes, values, ..Case::default() };
    assumed.is_none_or(|assumed| holds(assumed, &World(&all.attributes, &all.shapes, held))).then_some(all)
}

#[derive(Clone, Copy, Debug)]
enum Claim {
    Always,
    Never,
    Within(Interval),
    HasValue,
}

impl Claim {
    fn verdict(self, domain: &Domain<'_>, expr: &Expr) -> Verdict {
        match self {
            Claim::Always => domain.always(expr),
            Claim::Never => domain.never(expr),
            Claim::Within(allowed) => domain.within(expr, allowed),
            Claim::HasValue => domain.has_value(expr),
        }
    }

    fn is_refuted(self, value: &Result<Value, EvalError>) -> bool {
        match (self, value) {
            (Claim::Always, value) => *value != Ok(Value::Bool(true)),
            (Claim::Never, value) => *value == Ok(Value::Bool(true)),
            (Claim::Within(allowed), Ok(Value::Int(value))) => !allowed.contains(*value),
            (Claim::Within(allowed), Ok(Value::Array(items))) => {
                items.iter().any(|item| !allowed.contains(item.as_int().unwrap()))
            }
            (Claim::Within(_), _) => false,
            (Claim::HasValue, value) => value.is_err(),
        }
    }
}

struct GeneratedClaim {
    maker: Maker,
    assumed: Option<Expr>,
    expr: Expr,
    claim: Claim,
    description: String,
}

fn generate_claim(tape: &mut Tape<'_>, tiny: bool) -> Option<GeneratedClaim> {
    let maker = tape.plugin(tiny);
    let assumed = match tape.pick(3) {
        0 => Some(tape.condition(true)),
        _ => None,
    };
    let (claim, text) = match tape.pick(5) {
        0 | 1 => (Claim::Always, tape.condition(true)),
        2 => (Claim::Never, tape.condition(true)),
        3 => {
            let allowed = Interval {
                min: tape.pick_from(&[0, 1, i64::MIN]),
                max: tape.pick_from(&[8, 2, 1024, i64::MAX]),
            };
            let depth = tape.pick(3);
            let text = if tape.pick(3) == 0 { tape.ints(true, depth) } else { tape.int(true, None, depth) };
            (Claim::Within(allowed), text)
        }
        _ => {
            let depth = 1 + tape.pick(2);
            (Claim::HasValue, tape.int(true, None, depth))
        }
    };
    if !maker.compiles(&text) || assumed.as_ref().is_some_and(|text| !maker.compiles(text)) {
        return None;
    }
    let rules: Vec<&str> = maker.plugin.require.iter().map(|rule| rule.text.as_str()).collect();
    let shape = cubinder_expr::print(&maker.plugin.outputs[0].shape, &maker.plugin);
    let description = format!(
        "{claim:?} {text} assuming {assumed:?} requiring {rules:?} with y {shape} {:?} and inputs {:?} {:?}",
        maker.plugin.outputs[0].limits, maker.plugin.inputs, maker.plugin.attributes
    );
    let assumed = assumed.map(|text| maker.expr(&text));
    let expr = maker.expr(&text);
    Some(GeneratedClaim { maker, assumed, expr, claim, description })
}

impl GeneratedClaim {
    fn domain(&self) -> Domain<'_> {
        match &self.assumed {
            Some(assumed) => self.maker.domain().assuming(assumed),
            None => self.maker.domain(),
        }
    }

    fn case(&self, attributes: &[Value], inputs: &[Vec<i64>], held: &[i64]) -> Option<Case> {
        case(&self.maker.plugin, attributes, inputs, held, self.assumed.as_ref())
    }

    fn has_few_cases(&self) -> bool {
        const FEW: i64 = 4096;
        let plugin = &self.maker.plugin;
        let rules = plugin.require.iter().map(|rule| &rule.expr);
        let all = rules.chain(plugin.outputs.iter().map(|output| &output.shape)).chain(&self.assumed);
        let nodes: Vec<&Node> = all.chain([&self.expr]).flat_map(|expr| &expr.nodes).collect();
        let is_read = |index: u32| nodes.contains(&&Node::Attribute(index));
        let length = |interval: Interval| interval.max - interval.min + 1;
        let number = &plugin.attributes[0];
        let end = |value: &Option<Value>| value.as_ref().unwrap().as_int().unwrap();
        let counts = [end(&number.maximum) - end(&number.minimum) + 1, 13, 2, 2];
        let of_attributes = (0..).zip(counts).filter(|(index, _)| is_read(*index));
        let of_attributes: i64 = of_attributes.map(|(_, count)| count).product();
        let [x, w] = [&plugin.inputs[0], &plugin.inputs[1]];
        let of_shapes = length(x.limits.every).pow(x.rank_max.into()) * length(w.limits.dims[0]);
        let held = 2;
        of_attributes * of_shapes * held * 2 <= FEW
    }

    fn refutes(&self, case: &Case) -> bool {
        self.claim.is_refuted(&evaluate(&self.expr, &World(&case.attributes, &case.shapes, held_in(case))))
    }

    fn check_verdict(&self, verdict: &Verdict) {
        if let Verdict::Refuted(found) = verdict {
            let inputs = &found.shapes[..2];
            let again = self.case(&found.attributes, inputs, held_in(found));
            assert_eq!(again.as_ref(), Some(found), "not in the domain: {}", self.description);
            assert!(
                self.refutes(found),
                "{} does not refute {}",
                self.maker.describe(found),
                self.description
            );
        }
    }
}

fn held_in(case: &Case) -> &[i64] {
    case.values.get(HELD as usize).map_or(&[], Vec::as_slice)
}

fn all_cases(generated: &GeneratedClaim, mut visit: impl FnMut(&Case)) {
    let element = [-1, 0, 2].map(Value::Int);
    let mut lists = vec![Value::Array(vec![])];
    for first in &element {
        lists.push(Value::Array(vec![first.clone()]));
        for second in &element {
            lists.push(Value::Array(vec![first.clone(), second.clone()]));
        }
    }
    let mut shapes = Vec::new();
    for a in 0..=3 {
        shapes.push(vec![a]);
        shapes.extend((0..=3).map(|b| vec![a, b]));
    }
    for (n, x, w) in (-2..=3).flat_map(|n| shapes.iter().flat_map(move |x| (0..=3).map(move |w| (n, x, w)))) {
        for list in &lists {
            for (flag, mode) in [(true, "a"), (false, "a"), (true, "b"), (false, "b")] {
                let attributes = [Value::Int(n), list.clone(), Value::Bool(flag), Value::Str(mode.into())];
                for held in [0, 1] {
                    if let Some(case) = generated.case(&attributes, &[x.clone(), vec![w]], &[held]) {
                        visit(&case);
                    }
                }
            }
        }
    }
}

fn elements(case: &Case) -> i64 {
    case.shapes[..2].iter().map(|shape| shape.iter().product::<i64>()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, max_shrink_iters: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_case_contradicts_a_verdict(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        worlds in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let Some(generated) = generate_claim(&mut Tape(bytes.iter()), false) else { return Ok(()) };
        let domain = generated.domain();
        let verdict = generated.claim.verdict(&domain, &generated.expr);
        generated.check_verdict(&verdict);
        let proved = verdict == Verdict::Proved;
        let quick = matches!(generated.claim, Claim::Always) && domain.proves(&generated.expr);
        prop_assert!(proved || !quick, "{}", generated.description);
        let mut tape = Tape(worlds.iter());
        for _ in 0..40 {
            let attributes = tape.values(&generated.maker.plugin, false);
            let inputs = tape.shapes();
            let held = tape.held();
            let Some(case) = generated.case(&attributes, &inputs, &held) else { continue };
            prop_assert!(!(proved && generated.refutes(&case)), "{} refutes {}", generated.maker.describe(&case), generated.description);
            let profile: Vec<Vec<Interval>> =
                case.shapes[..3].iter().map(|shape| shape.iter().map(|&dim| Interval { min: dim / 2, max: dim }).collect()).collect();
            let near = generated.domain().with_attributes(&attributes).with_profile(&profile);
            let verdict = generated.claim.verdict(&near, &generated.expr);
            generated.check_verdict(&verdict);
            prop_assert!(!(verdict == Verdict::Proved && generated.refutes(&case)), "{} refutes {}", generated.maker.describe(&case), generated.description);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn over_few_cases_the_answer_is_exact(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let Some(generated) = generate_claim(&mut Tape(bytes.iter()), true) else { return Ok(()) };
        let verdict = generated.claim.verdict(&generated.domain(), &generated.expr);
        generated.check_verdict(&verdict);
        let mut least: Option<Case> = None;
        all_cases(&generated, |case| {
            if generated.refutes(case) && least.as_ref().is_none_or(|least| elements(case) < elements(least)) {
                least = Some(case.clone());
            }
        });
        match (&verdict, &least) {
            (Verdict::Proved, None) | (Verdict::Open, _) => {}
            (Verdict::Refuted(found), Some(least)) => {
                prop_assert!(elements(found) >= elements(least), "{}", generated.description);
            }
            _ => prop_assert!(false, "{:?} but {:?}: {}", verdict, least, generated.description),
        }
        let is_known = verdict != Verdict::Open || !generated.has_few_cases();
        prop_assert!(is_known || least.is_none(), "{:?} was not found: {}", least, generated.description);
    }
}
