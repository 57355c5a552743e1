//! Who wants to know what happens to a key: side tables beside a shard's keys, so that keys that nobody asks about pay
//! nothing for them. Knows names; refuses to know values and clients.

pub mod readers;
pub mod waiters;
pub mod watchers;
