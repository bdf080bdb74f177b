//! `enginelab completions SHELL`: what a shell needs to complete commands and flags.

use clap::Args;
use clap_complete::Shell;

/// Which shell.
#[derive(Debug, Clone, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    pub(super) shell: Shell,
}

pub(super) const HELP: &str = "\
Examples:
  enginelab completions bash > ~/.local/share/bash-completion/completions/enginelab
  enginelab completions zsh > ~/.zfunc/_enginelab          with ~/.zfunc in fpath
  enginelab completions fish > ~/.config/fish/completions/enginelab.fish";

/// The script for `shell`, which completes the program that `command` describes.
pub(super) fn script(shell: Shell, mut command: clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "enginelab", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
