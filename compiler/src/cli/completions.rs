use clap::Args;
use clap_complete::Shell;
use cubinder_source::diagnostic::Diagnostic;

use super::output::print_bytes;

/// Print completions for a shell. Install them as follows:
///
///   bash        cubinder completions bash > ~/.local/share/bash-completion/completions/cubinder
///   zsh         cubinder completions zsh > <a folder of $fpath>/_cubinder
///   fish        cubinder completions fish > ~/.config/fish/completions/cubinder.fish
///   elvish      cubinder completions elvish >> ~/.config/elvish/rc.elv
///   powershell  cubinder completions powershell >> $PROFILE
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &Arguments, mut command: clap::Command) -> Result<bool, Vec<Diagnostic>> {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut text);
    print_bytes(&text);
    Ok(true)
}
