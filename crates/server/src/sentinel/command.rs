//! A command of the Sentinel port, and what its handler is given. Refuses to know which commands there are.

use super::room::Room;
use super::session::Session;
use engine::error::CommandResult;
use resp::{Reply, Request};
use std::time::Duration;

/// A command, or a subcommand.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// How many words a request has, its name included; at least so many if it is negative.
    pub(super) arity: i64,
    pub(super) access: Access,
    pub(super) handler: fn(&mut Cx<'_>) -> CommandResult,
    pub(super) subcommands: &'static [Row],
}

/// Who may run a command, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Clients that have not authenticated, too, and those that listen.
    Anyone,
    /// A user that listens, too.
    Listener,
    User,
    /// A user that may run this command on the port for clients.
    UserWhoMay(&'static str),
}

pub(super) const fn row(
    name: &'static str,
    arity: i64,
    access: Access,
    handler: fn(&mut Cx<'_>) -> CommandResult,
) -> Row {
    Row { name, arity, access, handler, subcommands: &[] }
}

impl Row {
    pub(super) const fn with(mut self, subcommands: &'static [Row]) -> Row {
        self.subcommands = subcommands;
        self
    }

    pub(super) fn arity_fits(&self, words: usize) -> bool {
        let words = words as i64;
        if self.arity < 0 { words >= -self.arity } else { words == self.arity }
    }
}

/// The row of that name among these, in any case.
pub(super) fn named(rows: &'static [Row], name: &[u8]) -> Option<&'static Row> {
    rows.iter().find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
}

/// What follows a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    GoOn,
    /// The reply is sent after this time, and no request is read until then.
    Pause(Duration),
    Close,
}

/// What a handler is given.
pub(super) struct Cx<'a> {
    pub(super) room: &'a Room,
    pub(super) session: &'a mut Session,
    /// The table of commands.
    pub(super) commands: &'static [Row],
    pub(super) request: Request<'a>,
    pub(super) reply: Reply<'a>,
    pub(super) after: After,
}

impl<'a> Cx<'a> {
    /// The arguments after the command's name, and after that of a subcommand if `skipped` is 2.
    pub(super) fn args(&self, skipped: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.request.iter().skip(skipped)
    }
}
