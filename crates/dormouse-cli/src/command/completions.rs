//! `dormouse completions`: a script that lets a shell complete arguments.

use clap_complete::Shell;

use crate::exit::Failure;
use crate::output;

/// Print a script that makes a shell complete dormouse's arguments
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  dormouse completions bash > ~/.local/share/bash-completion/completions/dormouse
  dormouse completions zsh > ~/.zfunc/_dormouse
  dormouse completions fish > ~/.config/fish/completions/dormouse.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::tree(), "dormouse", &mut script);
        output::print(&script)
    }
}
