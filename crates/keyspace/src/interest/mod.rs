//! Watchers, tracking readers and waiters of keys: side tables of a shard, so that all other keys pay nothing for them.
//! Knows names; refuses to know values and clients.

pub mod readers;
pub mod waiters;
pub mod watchers;

/// A table with less room than this is never shrunk: it takes some kilobytes.
const ROOM_KEPT: usize = 64;

/// How much room to leave in a table that has so many entries and room for `capacity`, if that is far too much. A table
/// is halved at least twice each time, so an entry that is removed pays for the move of less than one other.
fn room_left(len: usize, capacity: usize) -> Option<usize> {
    (capacity > ROOM_KEPT && len <= capacity / 8).then_some(2 * len)
}
