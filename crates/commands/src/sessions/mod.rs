//! Sessions: requests that take effect once, however often they are sent, and requests from the server to a client.
//! Holdfast's own commands.

mod attach;
mod call;
mod hooks;
mod info;
mod open;
mod requests;
mod retry;
mod table;

use execution::command::Table;
use execution::error::CommandError;

pub(super) const TABLES: &[Table] = &[Table { group: "session", category: "session", commands: table::COMMANDS }];

/// The error for a session that does not exist, or has expired.
const NO_SESSION: CommandError = CommandError::fixed(
    "NOSESSION there is no such session: it was never opened, has expired or was closed; a new one begins with SESSION.OPEN",
);
