use cubinder_launch as launch;
use cubinder_launch::{Facts, Signature, shape_text};
use cubinder_model::{Plugin, TunedDevice, TunedPoint};

/// Times that order variants, or options to select them.
pub(super) fn note(plugin: &Plugin, node: &Signature<'_>, facts: &Facts<'_>) -> Option<String> {
    let serving = launch::serving(plugin, node);
    if facts.device.is_none() {
        let serves = |point: &TunedPoint| launch::is_served(point, &serving);
        let device = plugin.tuning.iter().find(|device| device.points.iter().any(serves))?;
        return Some(format!(
            "the variants were measured on {}: use `--device capability={} --device sms={}` to show the choice there",
            called(device),
            device.capability,
            device.sms
        ));
    }
    let device = launch::tuned_device(plugin, facts)?;
    let point = launch::nearest_point(plugin, node, &serving, facts)?;
    let shape = |(index, shape): (usize, &Vec<i64>)| {
        Some(format!("{} {}", plugin.tensor_name(index)?, shape_text(shape)))
    };
    let shapes = point.shapes.iter().enumerate().take(plugin.inputs.len()).filter_map(shape);
    let shapes = shapes.collect::<Vec<_>>().join(", ");
    Some(format!("the variants are ordered by their times on {} for {shapes}", called(device)))
}

/// Names a device; engines store no names.
fn called(device: &TunedDevice) -> String {
    let kind = format!(
        "compute capability {}.{}, {} multiprocessors",
        device.capability / 10,
        device.capability % 10,
        device.sms
    );
    if device.name.is_empty() { format!("a GPU ({kind})") } else { format!("{} ({kind})", device.name) }
}
