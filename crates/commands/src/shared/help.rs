//! The HELP subcommand of a container: its row, and the reply of containers with hand-written lines. `manual` generates
//! lines from the documentation.

use execution::command::{Command, Flags, exactly, server};
use execution::context::ServerCx;
use execution::error::CommandResult;
use resp::Reply;

/// The row of a HELP subcommand.
pub(crate) const fn help(handler: fn(&mut ServerCx<'_>) -> CommandResult) -> Command {
    server("help", exactly(2), handler).flag(Flags::LOADING.union(Flags::STALE))
}

/// Replies with the line that introduces a container, its lines, and those about HELP itself.
pub(crate) fn reply(reply: &mut Reply<'_>, container: &str, lines: &[&str]) {
    reply.array(lines.len() + 3);
    reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| reply.simple(line));
    reply.simple("HELP");
    reply.simple("    Print this help.");
}
