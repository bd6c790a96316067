use std::path::PathBuf;

use clap::Args;
use clap_mangen::Man;
use cubinder_source::atomic_file::{self, AtomicFile};
use cubinder_source::diagnostic::Diagnostic;

use super::output::{print, print_bytes};

/// Print the manual page of cubinder, or write the pages of cubinder and all its commands into a folder.
///
///   cubinder man | man -l -
///   cubinder man ~/.local/share/man/man1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// Folder for all pages; created if it does not exist
    folder: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, mut command: clap::Command) -> Result<bool, Vec<Diagnostic>> {
    // Sets the full names: `cubinder-compile`.
    command.build();
    let Some(folder) = arguments.folder.as_deref() else {
        print_bytes(&page(&command)?);
        return Ok(true);
    };
    std::fs::create_dir_all(folder)
        .map_err(|error| atomic_file::file_error("create the folder", folder, &error))?;
    let mut commands = Vec::new();
    collect(&command, &mut commands);
    let place = |command: &clap::Command| {
        folder.join(format!("{}.1", command.get_display_name().unwrap_or_else(|| command.get_name())))
    };
    let pages: Vec<(PathBuf, &clap::Command)> =
        commands.into_iter().map(|command| (place(command), command)).collect();
    let mut drafts = Vec::new();
    for (place, command) in &pages {
        atomic_file::check_replaceable(place, place, "the folder")?;
        let draft = AtomicFile::with_bytes(place, &page(command)?)
            .map_err(|error| atomic_file::file_error("write", place, &error))?;
        drafts.push((draft, place));
    }
    atomic_file::persist_all(drafts).map_err(Diagnostic::from)?;
    pages.iter().for_each(|(place, _)| print(&format!("wrote {}\n", place.display())));
    Ok(true)
}

fn collect<'c>(command: &'c clap::Command, commands: &mut Vec<&'c clap::Command>) {
    commands.push(command);
    let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help" && !inner.is_hide_set());
    inner.for_each(|inner| collect(inner, commands));
}

fn page(command: &clap::Command) -> Result<Vec<u8>, Diagnostic> {
    let mut text = Vec::new();
    Man::new(command.clone())
        .render(&mut text)
        .map_err(|error| Diagnostic::error(format!("cannot create the manual page: {error}")))?;
    Ok(text)
}
