//! A blocked client, with all that is needed to run its command on its behalf, and the phases of its wait. Refuses to
//! know what it waits for (`keys`, `records`).

use super::keys::{Offer, Wait, Waiter};
use super::records::{RecordOffer, RecordWait, RecordWaiter};
use crate::acl::Acl;
use crate::acl::user::no_user;
use crate::client::Client;
use crate::clients::ClientHandle;
use crate::clients::tracking::Tracking;
use crate::command::CommandRow;
use crate::ticket::Ticket;
use keyspace::storage::size_class::size_class;
use resp::{OwnedRequest, Protocol, Reply, Request};
use std::sync::{Arc, OnceLock};

/// The command of a blocked client.
pub struct BlockedCommand {
    /// Later waits have higher numbers.
    pub(super) number: u64,
    pub(super) command: &'static CommandRow,
    pub(super) request: OwnedRequest,
    pub(super) db: usize,
    pub(super) handle: Arc<ClientHandle>,
    pub(super) protocol: Protocol,
    no_touch: bool,
    caching: bool,
    output_bytes_max: usize,
    reply_bytes_max: usize,
    /// The timeout reply.
    pub(super) nothing: Vec<u8>,
    pub(super) ticket: Ticket,
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
        client.handle.add_blocked(bytes_of(command, request));
        BlockedCommand {
            number,
            command,
            request: OwnedRequest::copy_of(request),
            db: client.db,
            handle: client.handle.clone(),
            protocol: client.protocol,
            no_touch: client.no_touch,
            caching: client.caching,
            output_bytes_max: client.output_bytes_max,
            reply_bytes_max: client.reply_bytes_max,
            nothing,
            ticket: Ticket::default(),
            failure: OnceLock::new(),
        }
    }

    /// Claims the wait, in order to serve it. False when it has ended.
    pub(super) fn claim(&self) -> bool {
        self.handle.claim(self.number)
    }

    /// Returns the claim: there was nothing for the client.
    pub(super) fn give_back(&self) {
        self.handle.wait_state.give_back(self.number);
        // Its timeout may have passed since it was claimed.
        self.handle.wake();
    }

    /// Makes the client check whether its wait is over.
    pub(super) fn wake(&self) {
        self.handle.wake();
    }

    /// A client that runs the command on behalf of the blocked one.
    pub(super) fn stand_in(&self, acl: &Acl, tracking: &Tracking, phase: WaitPhase) -> Client {
        let mut client = Client::new(self.handle.clone(), true);
        if acl.has_changed() {
            // A user that was removed meanwhile has no rights.
            let user = self.handle.labels().user;
            client.user = (!user.is_empty()).then(|| acl.find(&user).unwrap_or_else(no_user));
        }
        client.db = self.db;
        client.protocol = self.protocol;
        client.no_touch = self.no_touch;
        // The client may cache what it reads now.
        client.tracker = if tracking.any() { tracking.of(self.handle.id) } else { None };
        client.caching = self.caching;
        client.output_bytes_max = self.output_bytes_max;
        client.reply_bytes_max = self.reply_bytes_max;
        client.wait_phase = phase;
        client
    }

    /// Where the reply is written.
    pub(super) fn reply_to<'o>(&self, out: &'o mut Vec<u8>) -> Reply<'o> {
        Reply::new(out, self.protocol).limited(self.output_bytes_max)
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

/// About how much memory a waiting command takes: its arguments, and its keys in the tables of waiters.
pub(super) fn bytes_of(row: &'static CommandRow, request: Request<'_>) -> usize {
    /// An entry in such a table, without the name. Measured.
    const KEY_BYTES: usize = 400;
    let args: usize = request.iter().map(<[u8]>::len).sum();
    let keys = row.keys(request).map(|key| size_class(key.name.len()) + KEY_BYTES).sum::<usize>();
    size_class(args) + size_class(request.len() * size_of::<usize>()) + keys
}

/// The phase of a client's wait.
#[derive(Default)]
pub enum WaitPhase {
    #[default]
    Idle,
    /// Its command has found nothing and requests a wait.
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
    pub fn is_queued(&self) -> bool {
        self.blocked().is_some()
    }

    /// The error that has ended a wait, if the command was not run, and the command.
    pub(super) fn failure(&self) -> Option<(&'static CommandRow, &str)> {
        let blocked = self.blocked()?;
        blocked.failure.get().map(|text| (blocked.command, text.as_str()))
    }

    pub(super) fn blocked(&self) -> Option<&BlockedCommand> {
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
