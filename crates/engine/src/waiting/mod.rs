//! Clients that wait: for what, for how long, and what they hear when it is over. Knows events; refuses to know sockets
//! and timers.

pub(crate) mod keys;

use crate::client::Client;
use crate::clients::Unblock;
use crate::engine::{Engine, Worker};
use crate::journal_state::JournalState;
use locks::{Mutex, rank};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

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
    /// A batch is durable, as far as asked for here and on replicas, of which there are none.
    Durable { sequence: u64, here: bool, on_replicas: bool },
    /// A snapshot is written.
    Snapshot(u64),
    /// The journal that was asked for keeps what is written, or has failed to.
    Journal,
    /// The server stops.
    Shutdown,
    /// A script that runs apart has ended.
    Apart(Arc<Ticket>),
    /// A key has something for its command, which somebody runs on its behalf: see `blocking`.
    Value,
}

/// Where a client that waits finds an outcome that was made elsewhere.
#[derive(Default)]
pub struct Ticket(Mutex<Option<Outcome>, { rank::TICKET }>);

struct Outcome {
    reply: Vec<u8>,
    depends_on: u64,
    last_batch: u64,
}

impl Ticket {
    /// Leaves the reply, with what `client`, on whose behalf something was done, has seen and changed.
    pub(crate) fn put(&self, reply: Vec<u8>, client: &Client) {
        let (depends_on, last_batch) = (client.depends_on, client.last_batch);
        *self.0.lock() = Some(Outcome { reply, depends_on, last_batch });
    }

    /// Leaves the reply to something that the batch of that number has done.
    pub(crate) fn put_done(&self, reply: Vec<u8>, sequence: u64) {
        *self.0.lock() = Some(Outcome { reply, depends_on: sequence, last_batch: sequence });
    }

    /// The reply, once there is one. What it tells of is noted with the client.
    pub fn take(&self, client: &mut Client) -> Option<Vec<u8>> {
        let outcome = self.0.lock().take()?;
        client.depends_on = client.depends_on.max(outcome.depends_on);
        client.last_batch = client.last_batch.max(outcome.last_batch);
        Some(outcome.reply)
    }
}

/// How a client's wait stands: the wait's number and one of the states below. Whoever ends a wait changes this first, in
/// one step, so that exactly one does.
#[derive(Default)]
pub(crate) struct WaitState(AtomicU64);

/// It does not wait.
const IDLE: u64 = 0;
const WAITING: u64 = 1;
/// Somebody runs its command on its behalf, or has.
const CLAIMED: u64 = 2;
/// CLIENT UNBLOCK has ended the wait, as if the time were up or with an error; its connection has yet to see that.
const UNBLOCKED: u64 = 3;
const UNBLOCKED_BY_ERROR: u64 = 4;
const STATE_BITS: u32 = 3;

impl WaitState {
    /// A wait begins. Its number is 0 when nobody can serve it.
    pub(crate) fn begin(&self, number: u64) {
        self.0.store(number << STATE_BITS | WAITING, SeqCst);
    }

    /// True while the client waits.
    pub(crate) fn is_waiting(&self) -> bool {
        state_of(self.0.load(SeqCst)) == WAITING
    }

    /// The wait of that number is about to be served. False when it has ended.
    pub(crate) fn claim(&self, number: u64) -> bool {
        self.step(number << STATE_BITS | WAITING, CLAIMED)
    }

    /// There was nothing for it after all.
    pub(crate) fn give_back(&self, number: u64) {
        self.step(number << STATE_BITS | CLAIMED, WAITING);
    }

    /// The wait is over. False when somebody serves it, or has.
    pub(crate) fn end(&self) -> bool {
        let mut now = self.0.load(SeqCst);
        while state_of(now) != CLAIMED {
            match self.0.compare_exchange(now, IDLE, SeqCst, SeqCst) {
                Ok(_) => return true,
                Err(other) => now = other,
            }
        }
        false
    }

    /// The client has what it was served with.
    fn settle(&self) {
        self.0.store(IDLE, SeqCst);
    }

    /// Ends a wait that nobody serves; false when there is none.
    pub(crate) fn unblock(&self, how: Unblock) -> bool {
        let state = if how == Unblock::Error { UNBLOCKED_BY_ERROR } else { UNBLOCKED };
        let now = self.0.load(SeqCst);
        // When it changes meanwhile, the wait has just ended.
        state_of(now) == WAITING && self.step(now, state)
    }

    /// How the wait was ended since the last call.
    pub(crate) fn take_unblock(&self) -> Unblock {
        let now = self.0.load(SeqCst);
        let how = match state_of(now) {
            UNBLOCKED => Unblock::Timeout,
            UNBLOCKED_BY_ERROR => Unblock::Error,
            _ => return Unblock::No,
        };
        self.step(now, IDLE);
        how
    }

    fn step(&self, from: u64, state: u64) -> bool {
        let to = from >> STATE_BITS << STATE_BITS | state;
        self.0.compare_exchange(from, to, SeqCst, SeqCst).is_ok()
    }
}

fn state_of(word: u64) -> u64 {
    word & ((1 << STATE_BITS) - 1)
}

impl Engine {
    /// The reply to a client that waits, once it need not wait any longer: it then waits for nothing. When its time is
    /// up there is one, unless a script or somebody who serves it is still at work.
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
            self.stop_waiting(client);
            client.handle.wait_state.settle();
        }
        reply
    }

    fn outcome_of(&self, client: &mut Client, event: &Event, time_is_up: bool) -> Option<Vec<u8>> {
        match event {
            Event::Never(reply) => time_is_up.then(|| reply.to_vec()),
            Event::Apart(ticket) => ticket.take(client),
            Event::Value => self.value_outcome(client, time_is_up),
            &Event::Durable { sequence, here, on_replicas } => {
                let state = self.persistence.state();
                let durable = self.persistence.durable().is_some_and(|durable| durable >= sequence);
                if here && !state.is_promising() {
                    // It was turned off meanwhile, and nothing will ever be durable.
                    return Some(format!("-{WAITAOF_WITHOUT_JOURNAL}\r\n").into_bytes());
                }
                if !durable && state.hides_what_is_not_kept() {
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

/// What a client hears whose wait CLIENT UNBLOCK has ended with an error. Its command has failed.
fn note_unblocked(worker: &Worker, client: &Client) -> Vec<u8> {
    const TEXT: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";
    let stats = &worker.books.stats;
    if let Some(command) = client.last_command {
        stats.commands[command.index].failed.add(1);
    }
    stats.count_error(TEXT);
    format!("-{TEXT}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_ends_a_wait() {
        let state = WaitState::default();
        assert!(!state.claim(1) && !state.unblock(Unblock::Timeout) && !state.is_waiting());
        state.begin(1);
        assert!(!state.claim(2), "that is another wait");
        assert!(state.claim(1) && !state.is_waiting());
        assert!(!state.claim(1) && !state.end() && !state.unblock(Unblock::Error));
        state.give_back(1);
        assert!(state.is_waiting() && state.end());
        assert!(!state.claim(1));
        state.begin(3);
        assert!(state.unblock(Unblock::Error) && !state.claim(3) && !state.unblock(Unblock::Timeout));
        assert_eq!((state.take_unblock(), state.take_unblock()), (Unblock::Error, Unblock::No));
    }

    #[test]
    fn what_ended_one_wait_does_not_end_the_next() {
        let state = WaitState::default();
        state.begin(1);
        assert!(state.unblock(Unblock::Timeout));
        state.begin(2);
        assert_eq!(state.take_unblock(), Unblock::No);
        assert!(!state.claim(1) && state.claim(2));
    }
}
