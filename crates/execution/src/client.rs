//! One network peer as commands see it: its choices and its state. Refuses to know its socket.

use crate::acl::{Acl, Rights, User};
use crate::clients::account::usage::Counts;
use crate::clients::pubsub::Subscriptions;
use crate::clients::tracking::Tracker;
use crate::clients::{Account, CLIENT_BYTES, ClientHandle};
use crate::command::CommandRow;
use crate::database_tokens::DatabaseToken;
use crate::error::{CommandResult, TOO_MANY_CLIENTS};
use crate::interactive::InteractiveTransaction;
use crate::queued::Transaction;
use crate::settings::{AppendFsync, Settings};
use crate::ticket::Ticket;
use crate::waiting::waiter::WaitPhase;
use crate::watches::Watches;
use resp::{OwnedRequest, Protocol, Reply};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Which replies a client wants (CLIENT REPLY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    On,
    Off,
    /// Suppress the reply to the next command.
    SkipNext,
    /// The command after SKIP is running.
    Skipping,
}

/// Sessions that a client has attached to. Removed sessions are dropped from the list when it is used, or when it is
/// long.
#[derive(Default)]
pub struct AttachedSessions {
    /// Databases and names.
    pub names: BTreeSet<(usize, Box<[u8]>)>,
    /// The length of the list when removed sessions were last dropped from it.
    pub checked: usize,
}

/// The progress of a command that works in slices, and the token of the database that it works in.
pub struct Unfinished {
    /// Only the command's handler knows the type.
    progress: Box<dyn Any + Send>,
    token: DatabaseToken,
}

impl Unfinished {
    pub fn new(progress: impl Any + Send, token: DatabaseToken) -> Unfinished {
        Unfinished { progress: Box::new(progress), token }
    }

    /// The progress, if it is of that type.
    pub fn into_progress<P: Any>(self) -> Option<(P, DatabaseToken)> {
        Some((*self.progress.downcast().ok()?, self.token))
    }
}

/// Commands that a client has run, and the time that they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub operations: u64,
    pub busy_ns: u64,
}

impl Tally {
    /// With what its connection has received and is to send.
    pub fn with_bytes(self, bytes_in: u64, bytes_out: u64) -> Counts {
        Counts { operations: self.operations, busy_ns: self.busy_ns, bytes_in, bytes_out }
    }
}

/// State of a connection that only its own commands change. State that other clients may see or change is in its
/// handle.
pub struct Client {
    pub handle: Arc<ClientHandle>,
    pub db: usize,
    pub protocol: Protocol,
    /// Who it is; the default user if none is set.
    pub user: Option<Arc<User>>,
    /// It has proved who it is, or did not have to when it connected.
    pub authenticated: bool,
    /// Until when it may not try another password in a transaction.
    pub no_guess_until_ms: u64,
    /// The generation of users in which it was found to have all rights: while that lasts, nothing is checked.
    pub free_pass: AtomicU64,
    /// The rights of its user, and the generation of the users in which they were read: while that lasts, they are its rights.
    pub seen_rights: RefCell<Option<(u64, Arc<Rights>)>>,
    pub reply_mode: ReplyMode,
    /// CLIENT NO-TOUCH: its reads do not count as use of a key.
    pub no_touch: bool,
    /// CLIENT IMPORT-SOURCE: with `import-mode`, nothing has expired for it.
    pub is_import_source: bool,
    pub no_evict: bool,
    /// MONITOR was called.
    pub monitoring: bool,
    /// The limit of its output; a reply that would exceed it is cut, and the connection is closed.
    pub output_bytes_max: usize,
    /// The longest reply that its user may have (`limit:reply`).
    pub reply_bytes_max: usize,
    /// Its user has a limit by the second: what it owes is looked at after each request.
    pub has_rates: bool,
    /// What its commands have taken and its connection has not counted yet.
    pub tally: Tally,
    /// Its subscriptions.
    pub subscriptions: Subscriptions,
    /// Commands queued since MULTI.
    pub transaction: Option<Box<Transaction>>,
    /// Its open interactive transaction (TXN.BEGIN). `None` while it queues commands for EXEC.
    pub interactive: Option<Box<InteractiveTransaction>>,
    /// Keys that must not change before EXEC.
    pub watches: Watches,
    /// Sessions whose requests are sent to this client, unless another client has attached since. Most clients have
    /// none.
    pub attached: Option<Box<AttachedSessions>>,
    /// CLIENT TRACKING: how it tracks what it reads, if it does.
    pub tracker: Option<Arc<Tracker>>,
    /// CLIENT CACHING was called right before.
    pub caching: bool,
    /// CLIENT DURABILITY: what its replies wait for, where that differs from `appendfsync`.
    pub durability: Option<AppendFsync>,
    /// The newest journal batch that its replies depend on: they are sent once it is persisted.
    pub depends_on: u64,
    /// The newest batch that it has committed itself.
    pub last_batch: u64,
    /// Whether it waits for a key.
    pub wait_phase: WaitPhase,
    /// On timeout the reply is a null array, whatever the command has written as its timeout reply.
    pub times_out_with_array: bool,
    /// A wait runs its command again from time to time: see [`Client::wait_and_look`].
    pub looks_again: bool,
    /// The request to run when it is served, where that differs from the request it sent: see [`Client::wait_as`].
    pub wait_request: Option<OwnedRequest>,
    /// The progress of its command in slices, for the next slice.
    pub unfinished: Option<Box<Unfinished>>,
    /// It closed its end a while ago: nobody waits for a reply. Its changes are still made.
    pub is_gone: bool,
    /// Its command would visit more of an index than one slice allows: it is to run on a copy.
    pub wants_index_copies: bool,
    /// How long its slices have taken so far.
    pub slices_ns: u64,
    /// The client runs a request on another thread and will come back with the reply. Meanwhile this value stands in
    /// for it.
    pub away: Option<Arc<Ticket>>,
    /// Its connection is to be closed after the reply.
    pub closes: bool,
    /// A request that was sent to another thread and came back before it began.
    pub given_back: Option<Box<OwnedRequest>>,
    /// The row of the last command: pipelines often repeat a command.
    pub last_command: Option<&'static CommandRow>,
    /// The row of the last command that was called in a session.
    pub last_called: Option<&'static CommandRow>,
}

impl Client {
    /// A client that has just connected.
    pub fn new(handle: Arc<ClientHandle>, authenticated: bool) -> Client {
        Client {
            handle,
            db: 0,
            protocol: Protocol::Resp2,
            user: None,
            authenticated,
            no_guess_until_ms: 0,
            free_pass: AtomicU64::new(0),
            seen_rights: RefCell::new(None),
            reply_mode: ReplyMode::On,
            no_touch: false,
            is_import_source: false,
            no_evict: false,
            monitoring: false,
            output_bytes_max: usize::MAX,
            reply_bytes_max: usize::MAX,
            has_rates: false,
            tally: Tally::default(),
            subscriptions: Subscriptions::default(),
            transaction: None,
            interactive: None,
            watches: Watches::default(),
            attached: None,
            tracker: None,
            caching: false,
            durability: None,
            depends_on: 0,
            last_batch: 0,
            wait_phase: WaitPhase::Idle,
            times_out_with_array: false,
            looks_again: false,
            wait_request: None,
            unfinished: None,
            is_gone: false,
            wants_index_copies: false,
            slices_ns: 0,
            away: None,
            closes: false,
            given_back: None,
            last_command: None,
            last_called: None,
        }
    }

    /// Makes it that user from now on. An error if the user has as many clients as it may have: then nothing changes.
    pub fn become_user(&mut self, user: Arc<User>) -> CommandResult {
        if !self.handle.enter(&user.account) {
            return Err(TOO_MANY_CLIENTS);
        }
        self.handle.set_user(&user.name);
        (self.reply_bytes_max, self.has_rates) = (user.account.reply_bytes_max(), user.account.has_rates());
        self.user = Some(user);
        self.authenticated = true;
        self.free_pass = AtomicU64::new(0);
        self.seen_rights = RefCell::new(None);
        Ok(())
    }

    /// Counts it among the clients of the default user, if it is one without a password. An error if that user has as many
    /// clients as it may have.
    pub fn begin_as_default(&self, acl: &Acl) -> CommandResult {
        match !acl.default_needs_no_password() || self.handle.enter(&acl.default_user().account) {
            true => Ok(()),
            false => Err(TOO_MANY_CLIENTS),
        }
    }

    /// Takes over the limits of its user that are looked at for each command.
    #[inline]
    pub fn follow_limits(&mut self, acl: &Acl) {
        let account = self.account(acl);
        (self.reply_bytes_max, self.has_rates) = (account.reply_bytes_max(), account.has_rates());
    }

    /// The account of its user. Before it has authenticated, it is nobody's.
    #[inline]
    pub fn account<'a>(&'a self, acl: &'a Acl) -> &'a Arc<Account> {
        match &self.user {
            Some(user) => &user.account,
            None if self.authenticated || acl.default_needs_no_password() => &acl.default_user().account,
            None => acl.nobody(),
        }
    }

    /// Takes the client out of its connection and leaves a stand-in there.
    pub fn leave_stand_in(&mut self) -> Client {
        let stand_in = Client {
            user: self.user.clone(),
            db: self.db,
            protocol: self.protocol,
            no_evict: self.no_evict,
            monitoring: self.monitoring,
            output_bytes_max: self.output_bytes_max,
            reply_bytes_max: self.reply_bytes_max,
            has_rates: self.has_rates,
            durability: self.durability,
            depends_on: self.depends_on,
            last_batch: self.last_batch,
            last_command: self.last_command,
            ..Client::new(self.handle.clone(), self.authenticated)
        };
        std::mem::replace(self, stand_in)
    }

    /// Marks this client as a stand-in. The client comes back in the ticket.
    pub fn wait_for_return(&mut self) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket::default());
        self.away = Some(ticket.clone());
        ticket
    }

    /// Takes the request that came back and is to be executed again. It has no reply yet.
    pub fn take_given_back(&mut self) -> Option<Box<OwnedRequest>> {
        self.given_back.take()
    }

    /// Returns true, once, if its connection is to be closed after the reply.
    pub fn take_closes(&mut self) -> bool {
        std::mem::take(&mut self.closes)
    }

    /// The client's number, never used again.
    pub fn id(&self) -> u64 {
        self.handle.id
    }

    /// Keeps the progress of a command for its next slice.
    pub fn leave(&mut self, progress: impl Any + Send, token: DatabaseToken) {
        self.unfinished = Some(Box::new(Unfinished::new(progress, token)));
    }

    /// Takes the progress of the last slice. IMPORTANT: the command checks the token under the locks of the slice.
    pub fn resume<P: Any>(&mut self) -> Option<(P, DatabaseToken)> {
        self.unfinished.take()?.into_progress()
    }

    /// True when its replies wait until the batches they depend on are durable.
    #[inline]
    pub fn waits_for_disk(&self, settings: &Settings) -> bool {
        self.durability.unwrap_or_else(|| settings.appendfsync()) == AppendFsync::Always
    }

    /// True when it has subscribed and speaks RESP2, where messages look like replies.
    #[inline]
    pub fn is_only_listening(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.subscriptions.is_empty()
    }

    /// Appends the messages that were sent to the client to `reply`, after a change of its protocol or of what it
    /// listens to. So they come before the reply, and nothing that belongs to the former state comes after it.
    pub fn settle_messages(&mut self, reply: &mut Reply<'_>) {
        let mut messages = Vec::new();
        self.depends_on = self.depends_on.max(self.handle.settle_outbox(&mut messages));
        reply.raw(&messages);
    }

    /// Resets to the state of a new connection (RESET). A SKIP that has begun still suppresses its reply.
    pub fn reset(&mut self, authenticated: bool) {
        let fresh = Client::new(self.handle.clone(), authenticated);
        let reply_mode = if self.reply_mode == ReplyMode::Skipping { ReplyMode::Skipping } else { ReplyMode::On };
        let (depends_on, last_batch, tally) = (self.depends_on, self.last_batch, self.tally);
        let (last_command, no_guess_until_ms) = (self.last_command, self.no_guess_until_ms);
        *self = Client { last_command, no_guess_until_ms, reply_mode, depends_on, last_batch, tally, ..fresh };
        self.handle.reset();
    }
}

const _: () = assert!(size_of::<Client>() <= CLIENT_BYTES, "what a handle says of its memory is true");
