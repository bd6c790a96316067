use cubinder_expr::{Expr, print};
use cubinder_model::{Arg, ArgValue, Guard, Launch, Memory, Plugin, Step, Variant, Work};
use cubinder_node::eval::arg_type;
use serde::Serialize;

report! {
    /// A scratch buffer.
    ScratchReport {
        /// Its name.
        name: String,
        /// Size expression, bytes.
        bytes: String,
    }

    /// A condition.
    ConditionReport {
        /// As written by the author.
        text: String,
        /// Expanded for one variant.
        means: String,
    }

    /// A step.
    StepReport {
        /// Its condition.
        [optional] when: Option<ConditionReport>,
        /// Its work.
        #[serde(flatten)]
        work: WorkReport,
    }
}

/// A step's work.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum WorkReport {
    /// A kernel launch.
    Launch(Box<LaunchReport>),
    /// A memory fill.
    Fill {
        /// Output or scratch buffer.
        memory: String,
        /// Value of every byte.
        byte: u8,
    },
}

report! {
    /// A launch, in expressions.
    LaunchReport {
        /// Kernel's source name.
        kernel: String,
        /// Blocks in x, y and z.
        grid: [String; 3],
        /// Threads per block in x, y and z.
        block: [String; 3],
        /// Dynamic shared memory, bytes.
        shared_bytes: String,
        /// Blocks per cluster in x, y and z.
        [optional] cluster: Option<[String; 3]>,
        /// Whether all blocks run at once.
        cooperative: bool,
        /// Whether it may start early.
        programmatic: bool,
        /// Arguments in order.
        args: Vec<ArgReport>,
    }

    /// A kernel argument.
    ArgReport {
        /// Parameter name.
        name: String,
        /// `tensor`, `scratch`, or the kernel's type: `i32`, `i64[4]`.
        #[serde(rename = "type")]
        ty: String,
        /// Tensor, scratch buffer, or expression.
        value: String,
    }
}

pub(super) fn scratch(plugin: &Plugin, variant: &Variant) -> Vec<ScratchReport> {
    let report = |scratch: &cubinder_model::Scratch| ScratchReport {
        name: scratch.name.clone(),
        bytes: print(&scratch.bytes, plugin),
    };
    variant.scratch.iter().map(report).collect()
}

pub(super) fn steps(plugin: &Plugin, variant: &Variant) -> Vec<StepReport> {
    variant.steps.iter().map(|step| step_report(plugin, variant, step)).collect()
}

pub(super) fn condition(plugin: &Plugin, condition: &Guard) -> ConditionReport {
    ConditionReport { text: one_line(&condition.text), means: print(&condition.expr, plugin) }
}

pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn step_report(plugin: &Plugin, variant: &Variant, step: &Step) -> StepReport {
    let work = match &step.work {
        Work::Launch(it) => WorkReport::Launch(Box::new(launch(plugin, variant, it))),
        Work::Fill(fill) => {
            WorkReport::Fill { memory: memory(plugin, variant, fill.memory), byte: fill.byte }
        }
    };
    StepReport { when: step.when.as_ref().map(|when| condition(plugin, when)), work }
}

fn launch(plugin: &Plugin, variant: &Variant, launch: &Launch) -> LaunchReport {
    let printed = |axes: &[Expr; 3]| axes.each_ref().map(|expr| print(expr, plugin));
    LaunchReport {
        kernel: launch.kernel.clone(),
        grid: printed(&launch.grid),
        block: printed(&launch.block),
        shared_bytes: print(&launch.shared_bytes, plugin),
        cluster: launch.cluster.as_ref().map(printed),
        cooperative: launch.cooperative,
        programmatic: launch.programmatic,
        args: launch.args.iter().map(|it| arg(plugin, variant, it)).collect(),
    }
}

fn arg(plugin: &Plugin, variant: &Variant, arg: &Arg) -> ArgReport {
    let value = match &arg.value {
        ArgValue::Tensor(tensor) | ArgValue::ReadTensor(tensor) => {
            plugin.tensor_name(*tensor as usize).unwrap_or("?").to_owned()
        }
        ArgValue::Scratch(index) => scratch_name(variant, *index),
        ArgValue::Scalar { expr, .. } | ArgValue::Array { expr, .. } => print(expr, plugin),
    };
    ArgReport { name: arg.name.clone(), ty: arg_type(&arg.value), value }
}

fn memory(plugin: &Plugin, variant: &Variant, memory: Memory) -> String {
    match memory {
        Memory::Output(index) => {
            plugin.tensor_name(plugin.inputs.len() + index as usize).unwrap_or("?").to_owned()
        }
        Memory::Scratch(index) => scratch_name(variant, index),
    }
}

fn scratch_name(variant: &Variant, index: u32) -> String {
    variant.scratch.get(index as usize).map_or_else(|| "?".to_owned(), |scratch| scratch.name.clone())
}

pub(super) fn is_plain(steps: &[StepReport]) -> bool {
    let plain =
        |launch: &LaunchReport| launch.cluster.is_none() && !launch.cooperative && !launch.programmatic;
    matches!(steps, [StepReport { when: None, work: WorkReport::Launch(launch) }] if plain(launch))
}

pub(super) fn line(step: &StepReport) -> String {
    let condition: String = step.when.iter().map(|when| format!(", when {}", when.text)).collect();
    match &step.work {
        WorkReport::Launch(launch) => {
            let cluster = launch.cluster.iter().map(|axes| format!(", in clusters of {}", axes.join(" x ")));
            let modes = [(launch.cooperative, ", cooperative"), (launch.programmatic, ", programmatic")];
            let modes = modes.into_iter().filter(|(is, _)| *is).map(|(_, word)| word.to_owned());
            let rest: String = cluster.chain(modes).collect();
            format!("launch {}{rest}{condition}", launch.kernel)
        }
        WorkReport::Fill { memory, byte } => format!("fill {memory} with {byte}{condition}"),
    }
}

pub(super) fn details(step: &StepReport) -> Vec<String> {
    let when = step.when.iter().filter(|when| when.means != when.text);
    let mut facts: Vec<String> = when.map(|when| format!("expanded: when {}", when.means)).collect();
    if let WorkReport::Launch(launch) = &step.work {
        facts.push(format!("grid [{}]", launch.grid.join(", ")));
        facts.push(format!("block [{}]", launch.block.join(", ")));
        if launch.shared_bytes != "0" {
            facts.push(format!("shared_bytes {}", launch.shared_bytes));
        }
        facts.extend(launch.args.iter().map(|arg| format!("{}: {} = {}", arg.name, arg.ty, arg.value)));
    }
    facts
}
