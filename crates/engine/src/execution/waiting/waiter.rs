//! A blocked client, with all that is needed to run its command on its behalf, and the phases of its wait. Refuses to know
//! what it waits for (`keys`, `records`).

use super::keys::{Offer, Wait, Waiter};
use super::records::{RecordOffer, RecordWait, RecordWaiter};
use crate::clients::ClientHandle;
use crate::clients::ticket::Ticket;
use crate::error::CommandResult;
use crate::execution::client::Client;
use crate::execution::command::CommandRow;
use crate::execution::engine::Engine;
use crate::execution::worker::Worker;
use resp::{OwnedRequest, Protocol, Reply, Request};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// The command of a blocked client.
pub(crate) struct BlockedCommand {
    /// Later waits have higher numbers.
    pub(super) number: u64,
    pub(super) command: &'static CommandRow,
    pub(super) request: OwnedRequest,
    pub(super) db: usize,
    handle: Arc<ClientHandle>,
    protocol: Protocol,
    no_touch: bool,
    caching: bool,
    output_bytes_max: usize,
    /// The timeout reply.
    nothing: Vec<u8>,
    ticket: Ticket,
    /// The error that has ended the wait, if the command was not run.
    failure: OnceLock<String>,
}

impl BlockedCommand {
    pub(super) fn new(
        number: u64,
        client: &Client,
        command: &'static CommandRow,
        request: Request<'_>,
        nothing: Vec<u8>,
    ) -> BlockedCommand {
        client.handle.add_blocked(bytes_of(request));
        BlockedCommand {
            number,
            command,
            request: request.iter().collect(),
            db: client.db,
            handle: client.handle.clone(),
            protocol: client.protocol,
            no_touch: client.no_touch,
            caching: client.caching,
            output_bytes_max: client.output_bytes_max,
            nothing,
            ticket: Ticket::default(),
            failure: OnceLock::new(),
        }
    }

    /// Claims the wait, to serve it. False when it has ended.
    pub(super) fn claim(&self) -> bool {
        self.handle.claim(self.number)
    }

    /// Takes the claim back: there was nothing for the client after all.
    pub(super) fn give_back(&self) {
        self.handle.wait_state.give_back(self.number);
        // Its timeout may have passed since it was claimed.
        self.handle.wake();
    }

    /// A client that runs the command on behalf of the blocked one.
    pub(super) fn stand_in(&self, engine: &Engine, phase: WaitPhase) -> Client {
        let mut client = Client::new(self.handle.clone(), true);
        client.db = self.db;
        client.protocol = self.protocol;
        client.no_touch = self.no_touch;
        // What it reads now is what its client may keep.
        client.tracker = if engine.tracking.any() { engine.tracking.of(self.handle.id) } else { None };
        client.caching = self.caching;
        client.output_bytes_max = self.output_bytes_max;
        client.wait_phase = phase;
        client
    }

    /// Where the reply is written.
    pub(super) fn reply_to<'o>(&self, out: &'o mut Vec<u8>) -> Reply<'o> {
        Reply::new(out, self.protocol).limited(self.output_bytes_max)
    }

    /// Leaves the reply for the client, whose wait was claimed, and wakes it. The command was counted as a call when it
    /// began to wait.
    pub(super) fn deliver(
        &self,
        engine: &Engine,
        worker: &Worker,
        stand_in: &Client,
        result: CommandResult,
        mut out: Vec<u8>,
        took_ns: u64,
    ) {
        let stats = &worker.books.stats;
        let counters = &stats.commands[self.command.index];
        counters.ns.add(took_ns);
        engine.note_slow(worker, stand_in, self.command, self.request.as_request(), took_ns);
        if let Err(error) = result {
            let text = error.to_string();
            counters.failed.add(1);
            stats.count_error(&text);
            out.clear();
            Reply::new(&mut out, self.protocol).error(&text);
        }
        self.handle.note_active(worker.last_ns);
        self.ticket.put(out, stand_in.depends_on, stand_in.last_batch);
        self.handle.wake();
    }

    /// Ends the wait with an error, unless it has ended.
    pub(super) fn fail(&self, text: String) {
        if self.claim() {
            let mut out = Vec::new();
            Reply::new(&mut out, self.protocol).error(&text);
            let _ = self.failure.set(text);
            self.ticket.put(out, 0, 0);
            self.handle.wake();
        }
    }
}

/// The bytes of a command that waits: its arguments, and what is kept of them in the tables of those that wait.
fn bytes_of(request: Request<'_>) -> usize {
    2 * request.iter().map(<[u8]>::len).sum::<usize>()
}

/// The phase of a client's wait.
#[derive(Default)]
pub(crate) enum WaitPhase {
    #[default]
    Idle,
    /// Its command has found nothing and asks to wait.
    Requested(Wait),
    RecordsRequested(RecordWait),
    /// It is queued.
    Queued(Arc<Waiter>),
    RecordsQueued(Arc<RecordWaiter>),
    /// Its command runs on its behalf, since a key may have something for it.
    Serving(Arc<Offer>),
    RecordsServing(Arc<RecordOffer>),
}

impl WaitPhase {
    /// True when the client waits.
    pub(crate) fn is_queued(&self) -> bool {
        self.blocked().is_some()
    }

    /// The error that has ended a wait, if the command was not run, and the command.
    pub(super) fn failure(&self) -> Option<(&'static CommandRow, &str)> {
        let blocked = self.blocked()?;
        blocked.failure.get().map(|text| (blocked.command, text.as_str()))
    }

    fn blocked(&self) -> Option<&BlockedCommand> {
        match self {
            WaitPhase::Queued(waiter) => Some(waiter.blocked()),
            WaitPhase::RecordsQueued(waiter) => Some(waiter.blocked()),
            WaitPhase::Idle
            | WaitPhase::Requested(_)
            | WaitPhase::RecordsRequested(_)
            | WaitPhase::Serving(_)
            | WaitPhase::RecordsServing(_) => None,
        }
    }
}

impl Engine {
    /// The number of the next wait.
    pub(super) fn next_wait_number(&self) -> u64 {
        self.last_wait.fetch_add(1, Relaxed) + 1
    }

    /// The reply to a queued client: what it was served with, or the timeout reply.
    pub(crate) fn value_outcome(&self, client: &mut Client, time_is_up: bool) -> Option<Vec<u8>> {
        let phase = std::mem::take(&mut client.wait_phase);
        let blocked = phase.blocked().expect("a client that waits for a value is queued");
        let reply = match client.take_outcome(&blocked.ticket) {
            // A thread that has claimed it is about to write the reply, and wakes the client then.
            None => (time_is_up && client.handle.wait_state.end()).then(|| blocked.nothing.clone()),
            reply => reply,
        };
        client.wait_phase = phase;
        reply
    }

    /// A client waits no longer: it has its reply, or its connection ends.
    pub fn stop_waiting(&self, client: &mut Client) {
        client.handle.wait_state.end();
        if let Some(blocked) = client.wait_phase.blocked() {
            client.handle.remove_blocked(bytes_of(blocked.request.as_request()));
        }
        match std::mem::take(&mut client.wait_phase) {
            WaitPhase::Queued(waiter) => self.leave_queues(&waiter),
            WaitPhase::RecordsQueued(waiter) => self.record_waiters.leave(&waiter),
            WaitPhase::Idle
            | WaitPhase::Requested(_)
            | WaitPhase::RecordsRequested(_)
            | WaitPhase::Serving(_)
            | WaitPhase::RecordsServing(_) => {}
        }
    }
}
