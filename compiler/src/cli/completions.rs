//! `cubinder completions`.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use super::output::print_bytes;

pub(super) const LONG_ABOUT: &str = "\
Print completions for a shell. They go where the shell looks for them:

  bash        cubinder completions bash > ~/.local/share/bash-completion/completions/cubinder
  zsh         cubinder completions zsh > <a folder of $fpath>/_cubinder
  fish        cubinder completions fish > ~/.config/fish/completions/cubinder.fish
  elvish      cubinder completions elvish >> ~/.config/elvish/rc.elv
  powershell  cubinder completions powershell >> $PROFILE";

#[derive(Args)]
pub(super) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, mut command: clap::Command) -> ExitCode {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    print_bytes(&text);
    ExitCode::SUCCESS
}
