//! The end of a wait: the reply to a client that was served, has timed out or was unblocked.

use super::blocked::Event;
use super::waiter::{BlockedCommand, WaitPhase, bytes_of};
use crate::acl::Context;
use crate::client::Client;
use crate::clients::Unblock;
use crate::engine::Engine;
use crate::persistence::journal_state::JournalState;
use crate::ticket::Ticket;
use crate::worker::Worker;

use crate::error::{CommandResult, DEMOTED};
use crate::gates;
use crate::metrics;
use crate::reply_limit;
use resp::Reply;

/// The error of WAITAOF without a journal.
pub const WAITAOF_WITHOUT_JOURNAL: &str = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

impl Client {
    /// Takes the reply from a ticket, if there is one. From then on the client depends on the batches of that reply.
    pub fn take_outcome(&mut self, ticket: &Ticket) -> Option<Vec<u8>> {
        let outcome = ticket.take()?;
        if let Some(client) = outcome.client {
            // Messages that were sent meanwhile may depend on newer batches.
            let (depends_on, last_batch) = (self.depends_on, self.last_batch);
            *self = *client;
            self.depends_on = self.depends_on.max(depends_on);
            self.last_batch = self.last_batch.max(last_batch);
        }
        self.depends_on = self.depends_on.max(outcome.depends_on);
        self.last_batch = self.last_batch.max(outcome.last_batch);
        Some(outcome.reply)
    }
}

/// The reply to a blocked client, once its wait is over; the client is then no longer queued. After the timeout there
/// is always a reply, unless a script still runs or a commit is serving the client.
pub fn outcome(
    engine: &Engine,
    worker: &Worker,
    client: &mut Client,
    event: &Event,
    mut time_is_up: bool,
) -> Option<Vec<u8>> {
    let reply = match client.handle.take_unblock() {
        Unblock::Error => Some(note_unblocked(engine, worker, client, UNBLOCKED)),
        Unblock::LostRight => Some(reply_to_lost_right(engine, worker, client)),
        Unblock::Demotion => Some(note_unblocked(engine, worker, client, DEMOTED)),
        how => {
            let is_unblocked = how == Unblock::Timeout;
            time_is_up |= is_unblocked;
            outcome_of(engine, worker, client, event, time_is_up, is_unblocked)
        }
    };
    if reply.is_some() {
        if let Some((command, text)) = client.wait_phase.failure() {
            metrics::count_call(engine, worker, command, 0);
            worker.metrics.stats.commands[command.index].failed.add(1);
            worker.metrics.stats.count_error(text);
            // The error reveals a batch that may not be appended yet: see `execution::revealed`. While a long script
            // holds the lock, that batch is appended, unless the script itself has dropped the index.
            let first = engine.keyspace.lock_shard_unless_busy(0);
            let changed_by = first.map_or_else(|| engine.persistence.tail(), |first| first.changed_by());
            client.depends_on = client.depends_on.max(changed_by);
        }
        stop_waiting(engine, client);
        client.handle.wait_state.acknowledge();
    }
    reply
}

fn outcome_of(
    engine: &Engine,
    worker: &Worker,
    client: &mut Client,
    event: &Event,
    time_is_up: bool,
    is_unblocked: bool,
) -> Option<Vec<u8>> {
    match event {
        Event::Never(reply) => time_is_up.then(|| reply.to_vec()),
        Event::Background(ticket) => client.take_outcome(ticket),
        Event::Value => value_outcome(engine, worker, client, time_is_up, is_unblocked),
        // It was handed over: the next writer has followers of its own.
        Event::Durable { .. } | Event::Replicated { .. } if engine.restrictions.is_following() => {
            Some(format!("-{DEMOTED}\r\n").into_bytes())
        }
        &Event::Durable { sequence, here, on_replicas } => {
            let state = engine.persistence.state();
            let durable = engine.persistence.durable().is_some_and(|durable| durable >= sequence);
            if here && !state.promises_durability() {
                // The journal was turned off during the wait: the batch will not become durable.
                return Some(format!("-{WAITAOF_WITHOUT_JOURNAL}\r\n").into_bytes());
            }
            if !durable && state.hides_unpersisted() {
                return Some(format!("-{}\r\n", engine.restrictions.refusal()).into_bytes());
            }
            // Followers read the same files: what is durable here is durable for them.
            let followers = if durable { engine.persistence.replicas_at(sequence) } else { 0 };
            let is_done = (durable || !here) && followers >= on_replicas;
            (time_is_up || is_done).then(|| format!("*2\r\n:{}\r\n:{followers}\r\n", u8::from(durable)).into_bytes())
        }
        Event::Journal => journal_outcome(engine, time_is_up),
        Event::Shutdown => (time_is_up || engine.host.shutdown_failed())
            .then(|| b"-ERR Errors trying to SHUTDOWN. Check logs.\r\n".to_vec()),
        &Event::Snapshot(number) => match engine.persistence.snapshot_result(number) {
            Some(Ok(())) => Some(b"+OK\r\n".to_vec()),
            Some(Err(reason)) => Some(format!("-ERR {reason}\r\n").into_bytes()),
            None => time_is_up.then(|| b"-ERR the snapshot is still being written\r\n".to_vec()),
        },
        &Event::Role(number) => match engine.persistence.role_result(number) {
            Some(Ok(())) => Some(b"+OK\r\n".to_vec()),
            Some(Err(reason)) => Some(format!("-ERR {reason}\r\n").into_bytes()),
            None => None,
        },
        &Event::Replicated { sequence, count } => {
            let replicated = engine.persistence.replicas_at(sequence);
            (time_is_up || replicated >= count).then(|| format!(":{replicated}\r\n").into_bytes())
        }
    }
}

/// The reply to CONFIG SET appendonly yes, once the result is known.
fn journal_outcome(engine: &Engine, time_is_up: bool) -> Option<Vec<u8>> {
    let text = match engine.persistence.state() {
        JournalState::Sound | JournalState::Closing => return Some(b"+OK\r\n".to_vec()),
        JournalState::Off => "ERR appendonly was turned off before the journal had begun".to_owned(),
        JournalState::Following => "ERR this server follows another, and has no journal of its own".to_owned(),
        JournalState::StartFailed | JournalState::Failed | JournalState::Fenced => {
            engine.restrictions.refusal().to_string()
        }
        JournalState::Starting | JournalState::Restarting if !time_is_up => return None,
        JournalState::Starting | JournalState::Restarting => {
            "ERR the journal begins with a snapshot that is still being written: INFO persistence tells when it is on"
                .to_owned()
        }
    };
    Some(format!("-{text}\r\n").into_bytes())
}

const UNBLOCKED: &str = "UNBLOCKED client unblocked via CLIENT UNBLOCK";

/// The reply to a client whose wait was ended with an error. Its command counts as failed.
fn note_unblocked(engine: &Engine, worker: &Worker, client: &Client, text: &'static str) -> Vec<u8> {
    let stats = &worker.metrics.stats;
    if let Some(blocked) = client.wait_phase.blocked() {
        metrics::count_call(engine, worker, blocked.command, 0);
    }
    if let Some(command) = client.last_command {
        stats.commands[command.index].failed.add(1);
    }
    stats.count_error(text);
    format!("-{text}\r\n").into_bytes()
}

/// The reply to a client whose user has lost rights: what it waits for is refused, if that is what was lost.
fn reply_to_lost_right(engine: &Engine, worker: &Worker, client: &Client) -> Vec<u8> {
    let refused = client.wait_phase.blocked().and_then(|blocked| {
        let request = blocked.request.as_request();
        gates::pass_user(engine, client, blocked.command, request).err().map(|error| (blocked.command, error))
    });
    match refused {
        None => note_unblocked(engine, worker, client, UNBLOCKED),
        Some((command, error)) => {
            let (stats, text) = (&worker.metrics.stats, error.to_string());
            stats.commands[command.index].rejected.add(1);
            stats.count_error(&text);
            gates::note_if_denied(engine, client, &error, Context::TopLevel);
            format!("-{text}\r\n").into_bytes()
        }
    }
}

/// The reply to a queued client: that of the served command, or the timeout reply. A client whose first search is not
/// finished does not time out, unless CLIENT UNBLOCK has ended its wait.
fn value_outcome(
    engine: &Engine,
    worker: &Worker,
    client: &mut Client,
    time_is_up: bool,
    is_unblocked: bool,
) -> Option<Vec<u8>> {
    let time_is_up = is_unblocked
        || time_is_up
            && !matches!(&client.wait_phase, WaitPhase::RecordsQueued(waiter) if engine.waiting.records.is_first_search(waiter));
    let phase = std::mem::take(&mut client.wait_phase);
    let blocked = phase.blocked().expect("a client that waits for a value is queued");
    let reply = match client.take_outcome(&blocked.ticket) {
        // A thread that has claimed the wait is about to write the reply, and wakes the client then.
        None => (time_is_up && client.handle.wait_state.end()).then(|| {
            metrics::count_call(engine, worker, blocked.command, 0);
            blocked.nothing.clone()
        }),
        reply => reply,
    };
    client.wait_phase = phase;
    reply
}

/// Ends a client's wait: it has its reply, or its connection ends.
pub fn stop_waiting(engine: &Engine, client: &mut Client) {
    client.handle.wait_state.end();
    if let Some(blocked) = client.wait_phase.blocked() {
        client.handle.remove_blocked(bytes_of(blocked.command, blocked.request.as_request()));
    }
    match std::mem::take(&mut client.wait_phase) {
        WaitPhase::Queued(waiter) => super::queueing::leave_queues(engine, &waiter),
        WaitPhase::RecordsQueued(waiter) => engine.waiting.records.leave(&waiter),
        WaitPhase::Idle
        | WaitPhase::Requested(_)
        | WaitPhase::RecordsRequested(_)
        | WaitPhase::Serving(_)
        | WaitPhase::RecordsServing(_) => {}
    }
}

/// Puts the reply for a client whose wait was claimed, and wakes it. Its command counts as a call now.
pub(super) fn deliver(
    engine: &Engine,
    blocked: &BlockedCommand,
    worker: &Worker,
    stand_in: &Client,
    result: CommandResult,
    mut out: Vec<u8>,
    took_ns: u64,
) {
    let stats = &worker.metrics.stats;
    let counters = &stats.commands[blocked.command.index];
    metrics::count_call(engine, worker, blocked.command, took_ns);
    metrics::record_slow(engine, worker, stand_in, blocked.command, blocked.request.as_request(), took_ns);
    let request = blocked.request.as_request();
    metrics::count_keys(engine, worker, stand_in.db, blocked.command, request, (took_ns, out.len()));
    let result = match result {
        Ok(()) if out.len() > stand_in.reply_bytes_max => {
            reply_limit::pass(worker, stand_in, blocked.command, blocked.request.as_request())
        }
        result => result,
    };
    if let Err(error) = result {
        let text = error.to_string();
        counters.failed.add(1);
        stats.count_error(&text);
        out.clear();
        Reply::new(&mut out, blocked.protocol).error(&text);
    }
    blocked.handle.note_active(worker.last_ns);
    blocked.ticket.put(out, stand_in.depends_on, stand_in.last_batch);
    blocked.handle.wake();
}
