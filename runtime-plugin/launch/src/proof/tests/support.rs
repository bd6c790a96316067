use crate::proof::frame::{Finding, Frame};
use crate::proof::pool::{Meter, Pool};
use crate::proof::{Case, Claim, Domain, Verdict};
use cubinder_expr::{Expr, ExprError, Extent, Function, Ints, Node, Scope, Stop, TensorKind, compile, parse};
use cubinder_model::model::{
    Attribute, AttributeType, Input, Interval, Output, Plugin, Requirement, ShapeLimits, SizeBound,
};

pub(super) struct Maker {
    pub(super) plugin: Plugin,
    functions: Vec<(&'static str, Function)>,
}

impl Maker {
    pub(super) fn new() -> Maker {
        let plugin = Plugin {
            name: "p".into(),
            namespace: String::new(),
            version: "1".into(),
            summary: String::new(),
            attributes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            require: Vec::new(),
            timing: None,
            tuning: Vec::new(),
            variants: Vec::new(),
        };
        Maker { plugin, functions: Vec::new() }
    }

    pub(super) fn attribute(mut self, name: &str, ty: &str, change: impl FnOnce(&mut Attribute)) -> Maker {
        let mut attribute = Attribute::new(name, AttributeType::from_name(ty).unwrap());
        change(&mut attribute);
        self.plugin.attributes.push(attribute);
        self
    }

    pub(super) fn input(
        mut self,
        name: &str,
        ranks: (u8, u8),
        change: impl FnOnce(&mut ShapeLimits),
    ) -> Maker {
        let mut limits = ShapeLimits::default();
        change(&mut limits);
        self.plugin.inputs.push(Input {
            values: None,
            doc: String::new(),
            name: name.into(),
            rank_min: ranks.0,
            rank_max: ranks.1,
            limits,
        });
        self
    }

    pub(super) fn shape_input(mut self, name: &str, count: Interval, values: Interval) -> Maker {
        let limits = ShapeLimits { every: count, dims: vec![count], ..ShapeLimits::default() };
        self = self.input(name, (1, 1), |of| *of = limits);
        if let Some(input) = self.plugin.inputs.last_mut() {
            input.values = Some(values);
        }
        self
    }

    pub(super) fn counted(mut self, name: &str, upper: &str, rows: &str) -> Maker {
        let bound = SizeBound { upper: self.expr(upper), opt: self.expr(upper) };
        let size = self.plugin.tensor_count() as u32;
        self = self.output(name, "[]", |_| ());
        if let Some(output) = self.plugin.outputs.last_mut() {
            output.size = Some(bound);
        }
        self = self.output(rows, "[]", |_| ());
        if let Some(output) = self.plugin.outputs.last_mut() {
            output.shape = Expr { nodes: vec![Node::Size(size), Node::Int(2), Node::Array(vec![0, 1])] };
        }
        self
    }

    pub(super) fn function(mut self, name: &'static str, params: &[&str], body: &str) -> Maker {
        let params = params.iter().map(|&param| param.to_owned()).collect();
        self.functions.push((name, Function { params, body: parse(body).unwrap() }));
        self
    }

    pub(super) fn require(mut self, text: &str) -> Maker {
        let expr = self.expr(text);
        self.plugin.require.push(Requirement { expr, text: text.into(), message: String::new() });
        self
    }

    pub(super) fn output(mut self, name: &str, shape: &str, change: impl FnOnce(&mut ShapeLimits)) -> Maker {
        let mut limits = ShapeLimits::default();
        change(&mut limits);
        let shape = self.expr(shape);
        self.plugin.outputs.push(Output {
            alias: None,
            size: None,
            doc: String::new(),
            name: name.into(),
            shape,
            limits,
        });
        self
    }

    pub(super) fn expr(&self, text: &str) -> Expr {
        self.compile(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"))
    }

    pub(super) fn try_expr(&self, text: &str) -> Option<Expr> {
        self.compile(text).ok()
    }

    pub(super) fn compiles(&self, text: &str) -> bool {
        self.compile(text).is_ok()
    }

    fn compile(&self, text: &str) -> Result<Expr, Vec<ExprError>> {
        let mut scope = Scope::new();
        for (index, attribute) in (0..).zip(&self.plugin.attributes) {
            scope = scope.attribute(&attribute.name, index, attribute.ty.kind());
        }
        for (index, input) in (0..).zip(&self.plugin.inputs) {
            let kind = if input.values.is_some() { TensorKind::ShapeInput } else { TensorKind::Plain };
            scope = scope.tensor_of_kind(&input.name, index, (input.rank_min, input.rank_max), kind);
        }
        let first = self.plugin.inputs.len() as u32;
        for (index, output) in (first..).zip(&self.plugin.outputs) {
            scope = scope.tensor(&output.name, index, 0, 8);
        }
        for (name, function) in &self.functions {
            scope = scope.function(*name, function.clone());
        }
        compile(text, &scope).map(|typed| typed.expr)
    }

    pub(super) fn domain(&self) -> Domain<'_> {
        Domain::new(&self.plugin)
    }

    fn tell(&self, verdict: Verdict) -> String {
        match verdict {
            Verdict::Proved => "proved".into(),
            Verdict::Open => "open".into(),
            Verdict::Refuted(case) => self.describe(&case),
        }
    }

    pub(super) fn describe(&self, case: &Case) -> String {
        case.describe(&self.plugin)
    }

    pub(super) fn always(&self, text: &str) -> String {
        self.tell(self.domain().always(&self.expr(text)))
    }

    pub(super) fn never(&self, text: &str) -> String {
        self.tell(self.domain().never(&self.expr(text)))
    }

    pub(super) fn has_value(&self, text: &str) -> String {
        self.tell(self.domain().has_value(&self.expr(text)))
    }

    pub(super) fn within(&self, text: &str, min: i64, max: i64) -> String {
        self.tell(self.domain().within(&self.expr(text), Interval { min, max }))
    }

    pub(super) fn always_where(&self, assumed: &str, text: &str) -> String {
        let assumed = self.expr(assumed);
        self.tell(self.domain().assuming(&assumed).always(&self.expr(text)))
    }

    pub(super) fn steps(&self, work: impl FnOnce(&Domain<'_>, &mut Meter<'_>)) -> usize {
        const ALL: usize = 100_000_000;
        let pool = Pool::new(ALL);
        let domain = self.domain().sharing(&pool);
        work(&domain, &mut Meter::new(Some(&pool)));
        ALL - pool.left()
    }

    /// Bounds where `assumed` is true; whether it may fail.
    pub(super) fn bounded(&self, assumed: &str, text: &str) -> String {
        let (assumed, value) = (self.expr(assumed), self.expr(text));
        let domain = self.domain().assuming(&assumed);
        let fixed = |input: &Input| (input.rank_min == input.rank_max).then_some(input.rank_min.into());
        let ranks: Vec<Option<usize>> = self.plugin.inputs.iter().map(fixed).collect();
        let mut meter = Meter::new(None);
        let Some(frame) = Frame::new(&domain, &ranks, &mut meter) else { return "no case".into() };
        let bounds = match frame.extent(&value, &mut meter) {
            Ok(extent) => shown(&extent),
            Err(Stop::Contradiction) => "no case".into(),
            Err(Stop::Error(_)) => "no value".into(),
        };
        match frame.look_at(Claim::HasValue(&value), &mut meter) {
            Finding::Proved => bounds,
            Finding::Within(_) => format!("{bounds}, or it fails"),
        }
    }
}

fn shown(extent: &Extent) -> String {
    match extent {
        Extent::Known(value) => value.to_string(),
        Extent::Int(Ints { low, high, modulus, rest, nonzero }) => {
            let end =
                |end: i64| if [i64::MIN, i64::MAX].contains(&end) { String::new() } else { end.to_string() };
            let grid = if *modulus > 1 { format!(" of {modulus}k + {rest}") } else { String::new() };
            format!("{}..={}{grid}{}", end(*low), end(*high), if *nonzero { " but 0" } else { "" })
        }
        Extent::Bool => "a bool".into(),
        Extent::Float(low, high) => format!("{low:?}..={high:?}"),
        Extent::Texts(texts) => texts.join(" or "),
        Extent::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Extent::List(element, length) => {
            format!("[{}; {}]", shown(element), shown(&Extent::Int(*length)))
        }
        Extent::Any => "anything".into(),
    }
}

pub(super) fn circ_pad() -> Maker {
    Maker::new()
        .attribute("pads", "i32[]", |_| ())
        .input("x", (1, 8), |_| ())
        .function("before", &["i"], "get(pads, 2 * (x.rank - 1 - i), 0)")
        .function("shift", &["i"], "-before(i) % max(get(x.shape, i, 1), 1)")
        .function("after", &["i"], "get(pads, 2 * (x.rank - 1 - i) + 1, 0)")
        .require("len(pads) % 2 == 0")
        .require("len(pads) <= 2 * x.rank")
        .require("len([p for p in pads if p < 0]) == 0")
        .require("len([i for i in range(x.rank) if x.shape[i] == 0 and before(i) + after(i) > 0]) == 0")
        .output("y", "[x.shape[i] + before(i) + after(i) for i in range(x.rank)]", |_| ())
}

pub(super) fn elemwise_add() -> Maker {
    Maker::new()
        .attribute("block_size", "i32", |_| ())
        .input("inp0", (0, 8), |_| ())
        .require("1 <= block_size and block_size <= 1024")
        .output("out0", "inp0.shape", |_| ())
}
