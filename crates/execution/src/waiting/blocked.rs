//! What a client waits for, and for how long. Refuses to know how the wait ends.

use crate::ticket::Ticket;
use std::sync::Arc;

/// A blocked client: what it waits for, and for how long.
pub struct Blocked {
    /// Unix milliseconds; `None` = for ever.
    pub until_ms: Option<u64>,
    /// What it waits for.
    pub event: Event,
    /// It wants no reply (CLIENT REPLY).
    pub silent: bool,
}

/// What a client waits for, besides its timeout.
pub enum Event {
    /// Nothing: at the timeout, this is the reply.
    Never(&'static [u8]),
    /// WAITAOF: a batch is durable here, or so many followers have it and it is.
    Durable { sequence: u64, here: bool, on_replicas: usize },
    /// WAIT: so many followers have a batch.
    Replicated { sequence: u64, count: usize },
    /// REPLICAOF: the change of role of that number is done.
    Role(u64),
    /// A snapshot is written.
    Snapshot(u64),
    /// The journal that CONFIG SET appendonly yes has started is on, or has failed.
    Journal,
    /// The server stops.
    Shutdown,
    /// The request on the script thread or the background thread has ended.
    Background(Arc<Ticket>),
    /// A key has a value for its command, which a commit runs on its behalf: see `keys`.
    Value,
}
