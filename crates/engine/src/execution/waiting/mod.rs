//! Blocked clients: what they wait for, for how long, and the reply that ends the wait. Knows events; refuses to know
//! sockets and timers.

pub(crate) mod keys;
pub(crate) mod records;
pub(crate) mod waiter;

use crate::clients::Unblock;
use crate::clients::ticket::Ticket;
use crate::execution::client::Client;
use crate::execution::engine::Engine;
use crate::execution::worker::Worker;
use crate::persistence::journal_state::JournalState;
use std::sync::Arc;

/// What WAITAOF says while there is no journal to wait for.
pub(crate) const WAITAOF_WITHOUT_JOURNAL: &str =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

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
    /// WAITAOF: a batch is durable here, or on replicas, of which there are none.
    Durable { sequence: u64, here: bool, on_replicas: bool },
    /// A snapshot is written.
    Snapshot(u64),
    /// The journal that CONFIG SET appendonly yes has begun is on, or has failed.
    Journal,
    /// The server stops.
    Shutdown,
    /// What runs on the script thread or the background thread has ended.
    Background(Arc<Ticket>),
    /// A key has something for its command, which a commit runs on its behalf: see `keys`.
    Value,
}

impl Client {
    /// The reply in a ticket, once there is one. The client then depends on the batches that the reply does.
    pub(crate) fn take_outcome(&mut self, ticket: &Ticket) -> Option<Vec<u8>> {
        let outcome = ticket.take()?;
        self.depends_on = self.depends_on.max(outcome.depends_on);
        self.last_batch = self.last_batch.max(outcome.last_batch);
        Some(outcome.reply)
    }
}

impl Engine {
    /// The reply to a blocked client, once its wait is over; the client is then no longer queued. After the timeout
    /// there is always one, unless a script still runs or a commit is serving the client.
    pub fn outcome(
        &self,
        worker: &Worker,
        client: &mut Client,
        event: &Event,
        mut time_is_up: bool,
    ) -> Option<Vec<u8>> {
        let reply = match client.handle.take_unblock() {
            Unblock::Error => Some(note_unblocked(worker, client)),
            how => {
                time_is_up |= how == Unblock::Timeout;
                self.outcome_of(client, event, time_is_up)
            }
        };
        if reply.is_some() {
            if let Some((command, text)) = client.wait_phase.failure() {
                worker.books.stats.commands[command.index].failed.add(1);
                worker.books.stats.count_error(text);
            }
            self.stop_waiting(client);
            client.handle.wait_state.acknowledge();
        }
        reply
    }

    fn outcome_of(&self, client: &mut Client, event: &Event, time_is_up: bool) -> Option<Vec<u8>> {
        match event {
            Event::Never(reply) => time_is_up.then(|| reply.to_vec()),
            Event::Background(ticket) => client.take_outcome(ticket),
            Event::Value => self.value_outcome(client, time_is_up),
            &Event::Durable { sequence, here, on_replicas } => {
                let state = self.persistence.state();
                let durable = self.persistence.durable().is_some_and(|durable| durable >= sequence);
                if here && !state.promises_durability() {
                    // The journal was turned off during the wait: nothing will become durable.
                    return Some(format!("-{WAITAOF_WITHOUT_JOURNAL}\r\n").into_bytes());
                }
                if !durable && state.hides_unpersisted() {
                    return Some(format!("-{}\r\n", self.refusal()).into_bytes());
                }
                (time_is_up || durable && !on_replicas)
                    .then(|| format!("*2\r\n:{}\r\n:0\r\n", u8::from(durable)).into_bytes())
            }
            Event::Journal => self.journal_outcome(time_is_up),
            Event::Shutdown => (time_is_up || self.host.shutdown_failed())
                .then(|| b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n".to_vec()),
            &Event::Snapshot(number) => match self.persistence.snapshot_result(number) {
                Some(Ok(())) => Some(b"+OK\r\n".to_vec()),
                Some(Err(reason)) => Some(format!("-ERR {reason}\r\n").into_bytes()),
                None => time_is_up.then(|| b"-ERR the snapshot is still being written\r\n".to_vec()),
            },
        }
    }
}

impl Engine {
    /// What CONFIG SET appendonly yes is answered, once that is known.
    fn journal_outcome(&self, time_is_up: bool) -> Option<Vec<u8>> {
        let text = match self.persistence.state() {
            JournalState::Sound | JournalState::Closing => return Some(b"+OK\r\n".to_vec()),
            JournalState::Off => "ERR appendonly was turned off before the journal had begun".to_owned(),
            JournalState::StartFailed | JournalState::Failed | JournalState::Fenced => self.refusal().to_string(),
            JournalState::Starting | JournalState::Restarting if !time_is_up => return None,
            JournalState::Starting | JournalState::Restarting => {
                "ERR the journal begins with a snapshot that is still being written: INFO persistence tells when it is on"
                    .to_owned()
            }
        };
        Some(format!("-{text}\r\n").into_bytes())
    }
}

/// The reply to a client whose wait CLIENT UNBLOCK has ended with an error. Its command counts as failed.
fn note_unblocked(worker: &Worker, client: &Client) -> Vec<u8> {
    const TEXT: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
    let stats = &worker.books.stats;
    if let Some(command) = client.last_command {
        stats.commands[command.index].failed.add(1);
    }
    stats.count_error(TEXT);
    format!("-{TEXT}\r\n").into_bytes()
}
