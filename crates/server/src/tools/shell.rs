//! `holdfast completions` and `holdfast man`: the command line, told to shells and to people. Made from the command line
//! itself, so neither is written by hand.

use crate::config;
use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use std::io::Write;
use std::path::Path;

/// Prints what a shell needs to complete the command line.
pub(super) fn completions(shell: Shell) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut config::command_line(), "holdfast", &mut text);
    print(&text)
}

/// Prints the man page, or writes one for each subcommand into a directory.
pub(super) fn man(output: Option<&Path>) -> Result<()> {
    let commands = commands(config::command_line());
    let Some(dir) = output else { return print(&page(commands[0].clone())?) };
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create the directory {}", dir.display()))?;
    for command in commands {
        let path = dir.join(format!("{}.1", command.get_display_name().unwrap_or(command.get_name())));
        std::fs::write(&path, page(command)?).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The command and all below it, each under its full name, such as `holdfast-cluster-status`.
fn commands(mut command: Command) -> Vec<Command> {
    command = command.disable_help_subcommand(true);
    // It gives the subcommands their full names.
    command.build();
    let mut found = vec![command];
    let mut next = 0;
    while let Some(one) = found.get(next) {
        let below: Vec<Command> = one.get_subcommands().cloned().collect();
        found.extend(below);
        next += 1;
    }
    found
}

fn page(command: Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let source = concat!("Holdfast ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command).source(source).manual("Holdfast").render(&mut text)?;
    Ok(text)
}

/// A reader that has seen enough, such as `head`, is no error.
fn print(text: &[u8]) -> Result<()> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
