//! Clients that wait: for what, for how long, and what they hear when it is over. Knows events; refuses to know sockets
//! and timers.

use crate::client::Client;
use crate::engine::Engine;
use crate::script::Ticket;
use std::sync::Arc;

/// A client that waits for something.
pub struct Blocked {
    /// Unix milliseconds; `None` = for ever.
    pub until_ms: Option<u64>,
    /// What it waits for.
    pub event: Event,
    /// It wants no reply (CLIENT REPLY).
    pub silent: bool,
}

/// What a client waits for, beside its time.
pub enum Event {
    /// Nothing that can happen: when the time is up, this is the reply.
    Never(&'static [u8]),
    /// A batch is durable here and, as far as asked for, on replicas, of which there are none.
    Durable { sequence: u64, on_replicas: bool },
    /// A snapshot is written.
    Snapshot(u64),
    /// The server stops.
    Shutdown,
    /// A script that runs apart has ended.
    Apart(Arc<Ticket>),
}

impl Engine {
    /// The reply to a client that waits, once it need not wait any longer. When its time is up there always is one.
    pub fn outcome(&self, client: &mut Client, event: &Event, time_is_up: bool) -> Option<Vec<u8>> {
        match event {
            Event::Never(reply) => time_is_up.then(|| reply.to_vec()),
            Event::Apart(ticket) => ticket.take(client),
            &Event::Durable { sequence, on_replicas } => {
                let durable = self.persistence.durable().is_some_and(|durable| durable >= sequence);
                (time_is_up || durable && !on_replicas)
                    .then(|| format!("*2\r\n:{}\r\n:0\r\n", u8::from(durable)).into_bytes())
            }
            Event::Shutdown => (time_is_up || self.host.shutdown_failed())
                .then(|| b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n".to_vec()),
            &Event::Snapshot(number) => match self.persistence.snapshot_outcome(number) {
                Some(Ok(())) => Some(b"+OK\r\n".to_vec()),
                Some(Err(reason)) => Some(format!("-ERR {reason}\r\n").into_bytes()),
                None => time_is_up.then(|| b"-ERR the snapshot is still being written\r\n".to_vec()),
            },
        }
    }
}
