//! Finds the session of a key, whose shard is locked. Refuses to know what is done with it.

use crate::error::CommandError;
use keyspace::db::Db;
use keyspace::types::session::Session;
use keyspace::types::{Object, ValueType};
use keyspace::{DATABASES, Entry, Key, Locked};

/// What the name of a session holds.
pub enum Found<'a> {
    Nothing,
    /// An expired session: it counts as absent, and the next expiry cycle removes it.
    Expired,
    Alive(&'a Session),
}

/// Finds the session of a key, whose shard is locked.
#[inline]
pub fn find<'a>(locked: &'a Locked<'_>, db: usize, key: Key<'_>, now_ms: u64) -> Result<Found<'a>, CommandError> {
    let Some(entry) = locked.db(db, key).entry(key) else { return Ok(Found::Nothing) };
    match entry.object() {
        Some(Object::Session(session)) if session.is_expired(now_ms) => Ok(Found::Expired),
        Some(Object::Session(session)) => Ok(Found::Alive(session)),
        _ if Db::is_expired(entry, now_ms) => Ok(Found::Nothing),
        _ => Err(CommandError::wrong_type(ValueType::of(entry))),
    }
}

/// Finds the database in which the key still holds that very session, after code ran that could change anything. It is
/// the same database, unless databases were swapped.
pub fn still_in(locked: &Locked<'_>, db: usize, key: Key<'_>, birth: u64) -> Option<usize> {
    let holds = |db: usize| {
        let entry = locked.db(db, key).entry(key);
        matches!(entry.and_then(Entry::object), Some(Object::Session(session)) if session.birth() == birth)
    };
    if holds(db) { Some(db) } else { (0..DATABASES).find(|other| holds(*other)) }
}
