use std::path::{Path, PathBuf};

use clap::Args;
use cubinder_compiler::new::{self, Plan, Template};
use cubinder_manifest::config::FILE_NAME;
use cubinder_source::diagnostic::Diagnostic;

use super::output::{MessageFormat, current_folder, print, show};

/// Create a working plugin project: a manifest, a kernel and a test.
///
/// In a project (a cubinder.toml is in the current folder or above it), adds the files to it; otherwise creates a project in the folder NAME. --path
/// overrides the project's folder. Existing files are never overwritten.
#[derive(Args)]
pub(super) struct Arguments {
    /// Plugin name: an identifier
    name: String,
    /// What the plugin computes
    #[arg(long, value_enum, default_value_t)]
    template: Template,
    /// Folder of a new or existing project [default: the enclosing project, else NAME]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, command: &clap::Command) -> Result<bool, Vec<Diagnostic>> {
    let plan = new::plan(&arguments.name, arguments.template, arguments.path.as_deref(), &current_folder()?)?;
    new::write(&plan)?;
    if !new::is_named(&plan, &arguments.name) {
        let warning = Diagnostic::warning(format!("`{FILE_NAME}` does not list the new manifest"))
            .help(format!("add `manifests/{}.toml` to its `manifests`", arguments.name));
        show(&mut [warning], MessageFormat::Human);
    }
    print(&next(&plan, arguments, command));
    Ok(true)
}

fn next(plan: &Plan, arguments: &Arguments, command: &clap::Command) -> String {
    let Arguments { name, template, .. } = arguments;
    let mut text = String::new();
    for (path, _) in &plan.files {
        text.push_str(&format!("wrote {}\n", path.display()));
    }
    let folder = &plan.folder;
    text.push_str("\nnext:\n");
    if !folder.as_os_str().is_empty() && folder != Path::new(".") {
        text.push_str(&format!("  cd {}\n", quoted(&folder.display().to_string())));
    }
    if command.find_subcommand("check").is_some() {
        text.push_str("  cubinder check\n");
    }
    let attribute = template.attribute().map(|attribute| format!(" --attr {attribute}")).unwrap_or_default();
    text.push_str(&format!(
        "  cubinder eval manifests/{name}.toml --shape x=4x1024{attribute}\n  \
           cubinder eval --cases tests/{name}.toml\n  \
           cubinder test tests/{name}.toml --allow-no-gpu\n  \
           cubinder compile\n\
         then, for a model with nodes of op type `{name}` in the domain `custom`:\n  \
           cubinder build model.onnx -o model.plan --plugins {}\n",
        library(plan)
    ));
    text
}

fn library(plan: &Plan) -> String {
    let config = cubinder_manifest::config::load(&plan.folder.join(FILE_NAME)).ok();
    match config {
        Some(config) => {
            let folder = config.output.strip_prefix(&config.folder).unwrap_or(&config.output);
            folder.join(format!("lib{}.so", config.library)).display().to_string()
        }
        None => "build/lib<name>.so".to_owned(),
    }
}

fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:=~,".contains(c);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}
