use std::fmt;

use cubinder_expr::Expr;
use cubinder_expr::{DataType, Format, ScalarType};
use cubinder_model::{
    Arg, ArgValue, CodeRef, Fill, Guard, Launch, Memory, Plugin, Scratch, Step, Variant, Work,
};
use cubinder_tests::handmade::Draft;
use fastrand::Rng;

pub(crate) const MOST_ELEMENTS: usize = 9;
pub(crate) const MOST_ARRAYS: usize = 4;

#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    /// Whether an output aliases each input. Aliasing outputs come first, in the inputs' order.
    pub(crate) inputs: Vec<bool>,
    pub(crate) outputs: usize,
    pub(crate) variants: Vec<Row>,
}

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) guard: Option<Condition>,
    pub(crate) scratch: usize,
    pub(crate) steps: Vec<Task>,
}

#[derive(Debug, Clone)]
pub(crate) enum Condition {
    Aligned(Tensor, u64),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// Runs above this number of elements.
    pub(crate) above: Option<usize>,
    pub(crate) action: Action,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// Each array, and whether it is written.
    Blend {
        arrays: Vec<(Array, bool)>,
        salt: u32,
    },
    Fill {
        array: Array,
        byte: u8,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Array {
    Tensor(Tensor),
    Scratch(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tensor {
    Input(usize),
    Output(usize),
}

impl Manifest {
    pub(crate) fn random(rng: &mut Rng, size: usize) -> Manifest {
        let inputs: Vec<bool> = (0..rng.usize(1..=3)).map(|_| rng.u8(..3) > 0).collect();
        let is_without_output = !inputs.contains(&true);
        let outputs = rng.usize(usize::from(is_without_output)..=2);
        let mut manifest = Manifest { inputs, outputs, variants: Vec::new() };
        let rows = rng.usize(1..=3);
        for row in 0..rows {
            let is_last = row + 1 == rows;
            let guard = (!is_last || rng.u8(..4) == 0).then(|| manifest.condition(rng, 2));
            let row = manifest.row(rng, guard, size);
            manifest.variants.push(row);
        }
        manifest
    }

    pub(crate) fn output_count(&self) -> usize {
        self.aliased().count() + self.outputs
    }

    pub(crate) fn aliased(&self) -> impl Iterator<Item = usize> + '_ {
        self.inputs.iter().enumerate().filter(|(_, is_aliased)| **is_aliased).map(|(input, _)| input)
    }

    fn tensor(&self, rng: &mut Rng) -> Tensor {
        match rng.usize(..self.inputs.len() + self.output_count()) {
            index if index < self.inputs.len() => Tensor::Input(index),
            index => Tensor::Output(index - self.inputs.len()),
        }
    }

    fn condition(&self, rng: &mut Rng, depth: usize) -> Condition {
        match rng.u8(..if depth == 0 { 4 } else { 8 }) {
            0..=4 => Condition::Aligned(self.tensor(rng), 1 << rng.u32(3..=6)),
            5 => Condition::Not(Box::new(self.condition(rng, depth - 1))),
            6 => Condition::And(
                Box::new(self.condition(rng, depth - 1)),
                Box::new(self.condition(rng, depth - 1)),
            ),
            _ => Condition::Or(
                Box::new(self.condition(rng, depth - 1)),
                Box::new(self.condition(rng, depth - 1)),
            ),
        }
    }

    /// Draws a variant that writes scratch and unaliased outputs before reading them.
    fn row(&self, rng: &mut Rng, guard: Option<Condition>, size: usize) -> Row {
        let own = self.aliased().count()..self.output_count();
        let scratch = rng.usize(..=2);
        let always = |action| Task { above: None, action };
        let filled = |array, rng: &mut Rng| always(Action::Fill { array, byte: rng.u8(..) });
        let mut steps: Vec<Task> = (0..scratch).map(|index| filled(Array::Scratch(index), rng)).collect();
        let mut written: Vec<usize> = Vec::new();
        for output in own.clone().filter(|_| rng.bool()).collect::<Vec<_>>() {
            steps.push(filled(Array::Tensor(Tensor::Output(output)), rng));
            written.push(output);
        }
        for _ in 0..rng.usize(1..=size) {
            let above = (rng.u8(..4) == 0).then(|| rng.usize(..MOST_ELEMENTS));
            let is_unwritten = |array: Array, written: &[usize]| match array {
                Array::Tensor(Tensor::Output(output)) => own.contains(&output) && !written.contains(&output),
                _ => false,
            };
            let arrays = (0..rng.usize(1..=MOST_ARRAYS)).filter_map(|_| {
                let array = match rng.usize(..4) {
                    0 if scratch > 0 => Array::Scratch(rng.usize(..scratch)),
                    _ => Array::Tensor(self.tensor(rng)),
                };
                let is_input = matches!(array, Array::Tensor(Tensor::Input(input)) if !self.inputs[input]);
                (!is_unwritten(array, &written)).then(|| (array, !is_input && rng.bool()))
            });
            let arrays: Vec<(Array, bool)> = arrays.collect();
            let action = match rng.u8(..6) {
                0 => {
                    let output = rng.usize(..self.output_count());
                    if above.is_none() {
                        written.push(output);
                    }
                    Action::Fill { array: Array::Tensor(Tensor::Output(output)), byte: rng.u8(..) }
                }
                _ if arrays.is_empty() => continue,
                _ => Action::Blend { arrays, salt: rng.u32(..) },
            };
            steps.push(Task { above, action });
        }
        for output in own {
            if !written.contains(&output) {
                steps.push(filled(Array::Tensor(Tensor::Output(output)), rng));
            }
        }
        if !steps.iter().any(|step| matches!(step.action, Action::Blend { .. })) {
            let arrays = vec![(Array::Tensor(Tensor::Input(0)), self.inputs[0])];
            steps.push(always(Action::Blend { arrays, salt: rng.u32(..) }));
        }
        Row { guard, scratch, steps }
    }

    pub(crate) fn plugin(&self, name: &str) -> Plugin {
        let mut draft = Draft::new(name, &[]);
        for input in 0..self.inputs.len() {
            draft = draft.input(&format!("x{input}"), (1, 1));
        }
        for (output, input) in self.aliased().enumerate() {
            draft = draft.alias(&format!("y{output}"), input).unwrap();
        }
        for output in self.aliased().count()..self.output_count() {
            draft = draft.output(&format!("y{output}"), "x0.shape").unwrap();
        }
        let variants = (1..).zip(&self.variants).map(|(id, row)| self.variant(&draft, id, row)).collect();
        Plugin { variants, ..draft.plugin() }
    }

    fn variant(&self, draft: &Draft, id: i32, row: &Row) -> Variant {
        let count = self.inputs.len() + self.output_count();
        let guard = |text: String| Guard { expr: draft.expr(&text).unwrap(), text };
        let scratch =
            |index| Scratch { name: format!("s{index}"), bytes: draft.expr("numel(x0) * 4").unwrap() };
        let step = |task: &Task| Step {
            when: task.above.map(|above| guard(format!("numel(x0) > {above}"))),
            work: self.work(draft, &task.action),
        };
        Variant {
            id,
            label: String::new(),
            types: vec![DataType::I32; count],
            formats: vec![Format::Linear; count],
            specialized: Vec::new(),
            guard: row.guard.as_ref().map(|condition| guard(condition.to_string())),
            scratch: (0..row.scratch).map(scratch).collect(),
            steps: row.steps.iter().map(step).collect(),
        }
    }

    fn work(&self, draft: &Draft, action: &Action) -> Work {
        let number = |tensor: &Tensor| match *tensor {
            Tensor::Input(input) => u32::try_from(input).unwrap(),
            Tensor::Output(output) => u32::try_from(self.inputs.len() + output).unwrap(),
        };
        let index = |index: usize| u32::try_from(index).unwrap();
        let (arrays, salt) = match action {
            Action::Fill { array: Array::Tensor(Tensor::Output(output)), byte } => {
                return Work::Fill(Fill { memory: Memory::Output(index(*output)), byte: *byte });
            }
            Action::Fill { array: Array::Scratch(scratch), byte } => {
                return Work::Fill(Fill { memory: Memory::Scratch(index(*scratch)), byte: *byte });
            }
            Action::Fill { array, .. } => panic!("cannot fill {array}"),
            Action::Blend { arrays, salt } => (arrays, salt),
        };
        let expr = |text: &str| draft.expr(text).unwrap();
        let int = |value: u32| expr(&value.to_string());
        let array = |(place, (array, writes)): (usize, &(Array, bool))| Arg {
            name: format!("a{place}"),
            value: match array {
                Array::Scratch(scratch) => ArgValue::Scratch(index(*scratch)),
                Array::Tensor(tensor) if *writes => ArgValue::Tensor(number(tensor)),
                Array::Tensor(tensor) => ArgValue::ReadTensor(number(tensor)),
            },
        };
        let scalar =
            |name: &str, ty, expr: Expr| Arg { name: name.to_owned(), value: ArgValue::Scalar { ty, expr } };
        let bits = arrays.iter().enumerate().map(|(place, (_, writes))| u32::from(*writes) << place).sum();
        let mut args: Vec<Arg> = arrays.iter().enumerate().map(array).collect();
        args.push(scalar("count", ScalarType::Int { bytes: 8 }, expr("numel(x0)")));
        args.push(scalar("salt", ScalarType::UInt { bytes: 4 }, int(*salt)));
        args.push(scalar("written", ScalarType::UInt { bytes: 4 }, int(bits)));
        let kernel = format!("blend{}", arrays.len());
        Work::Launch(Box::new(Launch {
            grid: [expr("ceil_div(numel(x0), 32)"), int(1), int(1)],
            block: [int(32), int(1), int(1)],
            shared_bytes: int(0),
            cluster: None,
            cooperative: false,
            programmatic: false,
            args,
            code: vec![CodeRef { target: "compute_80".parse().unwrap(), code: 0, symbol: kernel.clone() }],
            kernel,
        }))
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tensor::Input(input) => write!(f, "x{input}"),
            Tensor::Output(output) => write!(f, "y{output}"),
        }
    }
}

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Array::Tensor(tensor) => write!(f, "{tensor}"),
            Array::Scratch(scratch) => write!(f, "s{scratch}"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Aligned(tensor, bytes) => write!(f, "aligned({tensor}, {bytes})"),
            Condition::Not(of) => write!(f, "(not {of})"),
            Condition::And(one, other) => write!(f, "({one} and {other})"),
            Condition::Or(one, other) => write!(f, "({one} or {other})"),
        }
    }
}

impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs: Vec<String> = (0..self.inputs.len()).map(|input| format!("x{input}")).collect();
        writeln!(f, "inputs {}", inputs.join(", "))?;
        for (output, input) in self.aliased().enumerate() {
            writeln!(f, "output y{output}, alias = x{input}")?;
        }
        for output in self.aliased().count()..self.output_count() {
            writeln!(f, "output y{output}")?;
        }
        for (id, row) in (1..).zip(&self.variants) {
            let guard = row.guard.as_ref().map(|guard| format!(", when = {guard}")).unwrap_or_default();
            writeln!(f, "variant {id}{guard}")?;
            for Task { above, action } in &row.steps {
                let when = above.map(|above| format!("if numel(x0) > {above}: ")).unwrap_or_default();
                match action {
                    Action::Fill { array, byte } => writeln!(f, "  {when}memset {array} to {byte}")?,
                    Action::Blend { arrays, salt } => {
                        let name = |(array, writes): &(Array, bool)| {
                            format!("{}{array}", if *writes { "" } else { "const " })
                        };
                        let arrays: Vec<String> = arrays.iter().map(name).collect();
                        writeln!(f, "  {when}blend({}; {salt})", arrays.join(", "))?;
                    }
                }
            }
        }
        Ok(())
    }
}
