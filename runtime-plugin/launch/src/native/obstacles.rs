use crate::Role;
use cubinder_expr::data_type::ScalarType;
use cubinder_expr::{BindingTime, Expr, binding_time};
use cubinder_model::model::{ArgValue, Launch, Plugin, Variant, Work};

/// A feature that the ahead-of-time interface lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// An output with a data-dependent shape.
    #[error("the shape of the output `{0}` depends on what kernels write")]
    SizeOfOutput(String),
    /// A shape input.
    #[error("`{0}` is a shape input")]
    ShapeInput(String),
    /// Not exactly one step.
    #[error("it has {0} steps, but TensorRT launches only one kernel")]
    Steps(usize),
    /// The only step fills memory.
    #[error("it fills memory, but TensorRT only launches kernels")]
    Fill,
    /// A scratch buffer.
    #[error("it has the scratch buffer `{0}`, but TensorRT provides none")]
    Scratch(String),
    /// The kernel runs in clusters.
    #[error("its kernel runs in clusters")]
    Clusters,
    /// The launch is cooperative.
    #[error("its launch is cooperative")]
    Cooperative,
    /// The guard depends on addresses or the device.
    #[error("its guard `{0}` depends on addresses or the device, which are unknown when TensorRT chooses")]
    Guard(String),
    /// This part depends on addresses or the device.
    #[error("{0} depends on addresses or the device")]
    RunTime(Role),
    /// A float that depends on shapes.
    #[error("{0} is a float that depends on shapes, but TensorRT evaluates only integers")]
    Float(Role),
}

/// Returns all obstacles of a possibly uncompiled `variant`, except missing arguments.
#[must_use]
pub fn obstacles(plugin: &Plugin, variant: &Variant) -> Vec<Obstacle> {
    let sized = plugin.outputs.iter().filter(|output| output.size.is_some() || output.depends_on_data());
    let mut found: Vec<Obstacle> = sized.map(|output| Obstacle::SizeOfOutput(output.name.clone())).collect();
    let shape_inputs = plugin.inputs.iter().filter(|input| input.values.is_some());
    found.extend(shape_inputs.map(|input| Obstacle::ShapeInput(input.name.clone())));
    found.extend(variant.scratch.iter().map(|scratch| Obstacle::Scratch(scratch.name.clone())));
    if let Some(guard) = variant.guard.as_ref().filter(|guard| is_of_run_time(&guard.expr)) {
        found.push(Obstacle::Guard(guard.text.clone()));
    }
    match variant.steps.as_slice() {
        [step] => match &step.work {
            Work::Launch(launch) => of_launch(launch, &mut found),
            Work::Fill(_) => found.push(Obstacle::Fill),
        },
        steps => found.push(Obstacle::Steps(steps.len())),
    }
    found
}

fn of_launch(launch: &Launch, found: &mut Vec<Obstacle>) {
    let flags = [(launch.cluster.is_some(), Obstacle::Clusters), (launch.cooperative, Obstacle::Cooperative)];
    found.extend(flags.into_iter().filter_map(|(is_set, obstacle)| is_set.then_some(obstacle)));
    let axes = ['x', 'y', 'z'];
    let grid = launch.grid.iter().zip(axes).map(|(expr, axis)| (expr, Role::Grid(axis)));
    let block = launch.block.iter().zip(axes).map(|(expr, axis)| (expr, Role::Block(axis)));
    let args =
        launch.args.iter().filter_map(|arg| Some((arg.value.expr()?, Role::Argument(arg.name.clone()))));
    let parts = grid.chain(block).chain([(&launch.shared_bytes, Role::SharedBytes)]).chain(args);
    found.extend(parts.filter(|(expr, _)| is_of_run_time(expr)).map(|(_, role)| Obstacle::RunTime(role)));
    let floats = launch.args.iter().filter(|arg| match &arg.value {
        ArgValue::Scalar { ty: ScalarType::F32 | ScalarType::F64, expr }
        | ArgValue::Array { ty: ScalarType::F32 | ScalarType::F64, expr, .. } => {
            binding_time(expr) == BindingTime::Shape
        }
        _ => false,
    });
    found.extend(floats.map(|arg| Obstacle::Float(Role::Argument(arg.name.clone()))));
}

fn is_of_run_time(expr: &Expr) -> bool {
    binding_time(expr) >= BindingTime::Launch
}
