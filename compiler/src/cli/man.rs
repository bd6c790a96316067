//! `cubinder man`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap_mangen::Man;
use cubinder_source::diagnostic::Diagnostic;
use cubinder_source::whole::{self, Draft, Placing};

use super::output::{MessageFormat, print, print_bytes, show};

pub(super) const LONG_ABOUT: &str = "\
Print the manual page of cubinder, or write the pages of cubinder and of all its commands into a folder.

  cubinder man | man -l -
  cubinder man ~/.local/share/man/man1";

#[derive(Args)]
pub(super) struct Arguments {
    /// The folder for all pages; it is made where it is missing
    folder: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, command: clap::Command) -> ExitCode {
    match pages(arguments.folder.as_deref(), command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            show(&mut [error], MessageFormat::Human);
            ExitCode::FAILURE
        }
    }
}

fn pages(folder: Option<&Path>, mut command: clap::Command) -> Result<(), Diagnostic> {
    // Makes the full names of the commands: `cubinder-compile`.
    command.build();
    let Some(folder) = folder else {
        print_bytes(&page(&command)?);
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(|error| whole::cannot("make the folder", folder, &error))?;
    let commands =
        command.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set());
    let commands = std::iter::once(&command).chain(commands);
    let place = |command: &clap::Command| {
        folder.join(format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name())))
    };
    let pages: Vec<(PathBuf, &clap::Command)> = commands.map(|command| (place(command), command)).collect();
    let mut placings = Vec::new();
    for (place, command) in &pages {
        whole::replaceable(place, place, "another folder")?;
        let draft =
            Draft::with(place, &page(command)?).map_err(|error| whole::cannot("write", place, &error))?;
        placings.push(Placing { draft, place });
    }
    whole::place_all(placings).map_err(|refused| refused.told())?;
    pages.iter().for_each(|(place, _)| print(&format!("wrote {}\n", place.display())));
    Ok(())
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Diagnostic> {
    let mut text = Vec::new();
    Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| Diagnostic::error(format!("the manual page cannot be made: {error}")))?;
    Ok(text)
}
