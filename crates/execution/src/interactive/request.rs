//! A request of an interactive transaction: its keys, their locks, and why it is not run. Refuses to know how a
//! transaction runs it.

use crate::command::{CommandRow, Locks};
use crate::engine::Engine;
use crate::error::CommandError;
use keyspace::{Key, Locked};
use resp::Request;
use smallvec::SmallVec;

/// Why a command was not run.
pub(super) enum Stop {
    /// It is refused, and the transaction continues.
    Refused(CommandError),
    /// Another client changed a key first, or a key expired; of a read-only transaction, cells could not be kept.
    Conflict,
    /// The transaction has failed for another reason.
    Failed(CommandError),
}

/// The keys of one request, each once.
pub(super) type Keys<'r> = SmallVec<[Key<'r>; 4]>;

/// The keys of a request, each once. For a script, the keys that it declares.
pub(super) fn keys_of<'r>(row: &'static CommandRow, request: Request<'r>) -> Keys<'r> {
    let mut keys: Keys<'r> = match row.command.keys.locks {
        Locks::Key(at) => SmallVec::from_slice(&[Key::new(request.arg(usize::from(at)))]),
        Locks::Declared => {
            let ranges = row.found_keys(request).ranges;
            ranges.into_iter().flat_map(|range| range.positions()).map(|at| Key::new(request.arg(at))).collect()
        }
        _ => row.keys(request).collect(),
    };
    if keys.len() > 1 {
        keys.sort_unstable_by_key(|key| key.name);
        keys.dedup_by_key(|key| key.name);
    }
    keys
}

/// The key and its position, for a command with one key at a fixed position.
pub(super) fn only_key<'r>(row: &'static CommandRow, keys: &[Key<'r>]) -> Option<(usize, Key<'r>)> {
    match (row.command.keys.locks, keys) {
        (Locks::Key(at), [key]) => Some((usize::from(at), *key)),
        _ => None,
    }
}

/// Locks the shards of these keys. `None` when a long script holds one.
pub(super) fn lock_each<'e>(engine: &'e Engine, keys: &[Key<'_>]) -> Option<Locked<'e>> {
    match keys {
        [key] => engine.keyspace.lock_key_unless_busy(*key),
        several => engine.keyspace.lock_keys_unless_busy(several.iter().copied()),
    }
}
