//! From a request of the Sentinel port to its reply: finds the row, checks what is to be checked, calls the handler. Refuses
//! to know what a command does.

use super::command::{Access, After, Cx, Row, named};
use super::room::Room;
use super::session::Session;
use super::table::COMMANDS;
use engine::acl::{User, check};
use engine::command::registry;
use engine::error::{CommandError, CommandResult};
use engine::execution::denied::Denied;
use engine::execution::run::unknown_command;
use resp::{OwnedRequest, Protocol, Reply, Request};
use std::sync::Arc;

/// Writes the reply to a request.
pub(super) fn run(room: &Room, session: &mut Session, request: Request<'_>, out: &mut Vec<u8>) -> After {
    let (position, protocol) = (out.len(), session.protocol);
    let reply = Reply::new(out, protocol);
    let mut cx = Cx { room, session, commands: COMMANDS, request, reply, after: After::GoOn };
    let result = pass(&cx).and_then(|row| (row.handler)(&mut cx));
    if let Err(error) = result {
        cx.reply.truncate(position);
        cx.reply.error(&error.to_string());
    }
    cx.after
}

/// The row of a request.
struct Found {
    row: &'static Row,
    /// `sentinel|masters` for a subcommand.
    full_name: String,
}

enum Unknown {
    Command,
    /// Of this container.
    Subcommand(&'static str),
}

fn find(request: Request<'_>) -> Result<Found, Unknown> {
    let command = named(COMMANDS, request.arg(0)).ok_or(Unknown::Command)?;
    if command.subcommands.is_empty() || request.len() < 2 {
        return Ok(Found { row: command, full_name: command.name.to_owned() });
    }
    let row = named(command.subcommands, request.arg(1)).ok_or(Unknown::Subcommand(command.name))?;
    Ok(Found { row, full_name: format!("{}|{}", command.name, row.name) })
}

/// Finds the row of a request, and checks all that is to be checked before its handler, in Redis's order.
fn pass(cx: &Cx<'_>) -> Result<&'static Row, CommandError> {
    let found = find(cx.request).map_err(|unknown| match unknown {
        Unknown::Command => unknown_command(cx.request),
        Unknown::Subcommand(container) => CommandError::unknown_subcommand(container, cx.request.arg(1)),
    })?;
    let (row, full_name) = (found.row, found.full_name);
    if !row.arity_fits(cx.request.len()) {
        return Err(CommandError::WrongArity(full_name.into()));
    }
    if row.access == Access::Anyone {
        return Ok(row);
    }
    let user = cx.session.current_user(cx.room).ok_or(CommandError::NoAuth)?;
    if let Access::UserWhoMay(command) = row.access {
        may_run(cx.room, &user, command)?;
    }
    if cx.session.is_listening() && cx.session.protocol == Protocol::Resp2 && row.access != Access::Listener {
        return Err(CommandError::said(format!(
            "ERR Can't execute '{full_name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
             this context"
        )));
    }
    Ok(row)
}

/// Checks that a user may run a command of the port for clients.
fn may_run(room: &Room, user: &Arc<User>, command: &'static str) -> CommandResult {
    let Some(row) = registry().find(command.as_bytes()) else { return Ok(()) };
    let request: OwnedRequest = std::iter::once(command.as_bytes()).collect();
    let rights = user.rights();
    match check::check(&room.engine, &rights, row, request.as_request(), 0) {
        _ if rights.is_everything => Ok(()),
        Ok(()) => Ok(()),
        Err(object) => Err(CommandError::Denied(Box::new(Denied { object, user: user.shown_name() }))),
    }
}
