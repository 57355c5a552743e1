//! Sessions: requests that take effect once, however often they are sent, and requests from the server to a client. Holdfast's own
//! commands.

mod attach;
mod call;
mod expiry;
mod hooks;
mod info;
mod open;
mod requests;
mod retry;
mod table;

use crate::error::CommandError;
use crate::execution::command::Table;
use keyspace::db::Db;
use keyspace::types::Object;
use keyspace::types::session::Session;
use keyspace::{DATABASES, Entry, Key, Locked};

pub(super) const TABLES: &[Table] = &[Table { group: "session", category: "", commands: table::COMMANDS }];

/// The error for a session that is not there, or no longer.
const NO_SESSION: CommandError =
    CommandError::fixed("NOSESSION there is no such session: it was never opened, has expired or was closed");

/// What is under the name of a session.
enum Found<'a> {
    Nothing,
    /// A session whose time is up: it is absent, and goes with the next expiry cycle.
    Expired,
    Alive(&'a Session),
}

/// Looks for the session of a key, whose shard is locked.
#[inline]
fn find<'a>(locked: &'a Locked<'_>, db: usize, key: Key<'_>, now_ms: u64) -> Result<Found<'a>, CommandError> {
    let Some(entry) = locked.db(db, key).entry(key) else { return Ok(Found::Nothing) };
    match entry.object() {
        Some(Object::Session(session)) if session.is_expired(now_ms) => Ok(Found::Expired),
        Some(Object::Session(session)) => Ok(Found::Alive(session)),
        _ if Db::is_expired(entry, now_ms) => Ok(Found::Nothing),
        _ => Err(CommandError::WrongType),
    }
}

/// The database in which the key still holds that very session, after something ran that could change anything. It is the one in which
/// it was, unless databases were swapped.
fn still_in(locked: &Locked<'_>, db: usize, key: Key<'_>, birth: u64) -> Option<usize> {
    let holds = |db: usize| {
        let entry = locked.db(db, key).entry(key);
        matches!(entry.and_then(Entry::object), Some(Object::Session(session)) if session.birth() == birth)
    };
    if holds(db) { Some(db) } else { (0..DATABASES).find(|other| holds(*other)) }
}
