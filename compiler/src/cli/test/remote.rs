use std::process::ExitCode;

use cubinder_node::trial::{FunctionRef, Trial};
use cubinder_source::diagnostic::Diagnostic;

use super::{Arguments, Opened, base, listed};
use crate::cli::output::{MessageFormat, fail};
use crate::cli::workers::{Snapshot, Workers, add_data, exit_code, plugin_arguments};

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    perform(arguments).unwrap_or_else(|errors| fail(errors, MessageFormat::new(arguments.json)))
}

fn perform(arguments: &Arguments) -> Result<ExitCode, Vec<Diagnostic>> {
    let mut snapshot = Snapshot::new()?;
    let file = snapshot.relative(&arguments.file);
    let on = arguments.on.as_deref().map(|on| snapshot.relative(on));
    let workers = Workers::open(&arguments.remote, &file)?;
    let tested = Opened::open(&file, on.as_deref(), &arguments.which)?;
    let base = base(arguments, &tested)?;
    let listed = listed(arguments, &tested, &base)?;
    let cases = tested.cases.is_some().then_some(file.as_path());
    let mut sent = vec!["test".to_owned()];
    sent.extend(plugin_arguments(&tested, cases, false, arguments.nvrtc.clone(), &mut snapshot)?);
    sent.extend(options(arguments, base.reference.as_ref(), &mut snapshot)?);
    // An option replaces the references of all cases.
    let trials = listed.into_iter().filter_map(|it| it.trial.ok()).chain([base.clone()]);
    let reference = |trial: &Trial| trial.reference.clone().filter(|_| arguments.reference.is_none());
    let trials: Vec<Trial> = trials.map(|trial| Trial { reference: reference(&trial), ..trial }).collect();
    add_data(&trials, &mut snapshot)?;
    let results = workers.run(sent, snapshot, arguments.json)?;
    let codes: Vec<u8> =
        results.iter().map(|result| result.show(arguments.json, Vec::new(), "", |_| {})).collect();
    Ok(exit_code(&codes))
}

fn options(
    arguments: &Arguments,
    reference: Option<&FunctionRef>,
    snapshot: &mut Snapshot,
) -> Result<Vec<String>, Diagnostic> {
    let mut all = arguments.like.arguments();
    all.extend(arguments.aligned.iter().map(|aligned| format!("--aligned={aligned}")));
    if let Some(FunctionRef { path, function }) = reference.filter(|_| arguments.reference.is_some()) {
        let path = snapshot.relative(path);
        let path = snapshot.add_python(&path)?;
        all.push(format!("--reference={path}:{function}"));
    }
    let python = arguments.python.as_ref().map(|path| path.display().to_string());
    let optional = [
        ("--case", arguments.case.clone()),
        ("--variant", arguments.variant.map(|id| id.to_string())),
        ("--random", arguments.random.map(|count| count.to_string())),
        ("--seed", arguments.seed.map(|seed| seed.to_string())),
        ("--python", python),
        ("--device", Some(arguments.device.to_string())),
        ("--timeout", Some(arguments.timeout.to_string())),
    ];
    let given = optional.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    all.extend(given.chain(arguments.json.then(|| "--json".to_owned())));
    Ok(all)
}
