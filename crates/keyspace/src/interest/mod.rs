//! Watchers, tracking readers and waiters of keys: side tables of a shard, so that all other keys pay nothing for them.
//! Knows names; refuses to know values and clients.

pub mod readers;
pub mod waiters;
pub mod watchers;
