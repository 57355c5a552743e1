//! One network peer as commands see it: its choices and its state. Refuses to know its socket.

use crate::clients::CLIENT_BYTES;
use crate::clients::ClientHandle;
use crate::clients::pubsub::Subscriptions;
use crate::clients::tracking::Tracker;
use crate::execution::command::CommandRow;
use crate::execution::interactive::InteractiveTransaction;
use crate::execution::transaction::{Transaction, Watches};
use crate::execution::waiting::waiter::WaitPhase;
use crate::settings::{AppendFsync, Settings};
use resp::{OwnedRequest, Protocol};
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which replies a client wants (CLIENT REPLY).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    On,
    Off,
    /// Not the reply to the next command.
    SkipNext,
    /// The command after SKIP is running.
    Skipping,
}

/// Databases and names of sessions.
pub(crate) type AttachedSessions = BTreeSet<(usize, Box<[u8]>)>;

/// State of a connection that only its own commands change. What others may see or do is in its handle.
pub struct Client {
    pub handle: Arc<ClientHandle>,
    pub db: usize,
    pub protocol: Protocol,
    pub authenticated: bool,
    pub reply_mode: ReplyMode,
    /// CLIENT NO-TOUCH: its reads do not count as use of a key.
    pub no_touch: bool,
    pub no_evict: bool,
    /// MONITOR was called.
    pub monitoring: bool,
    /// The limit of its output; a reply that would exceed it is cut, and the connection is closed.
    pub output_bytes_max: usize,
    /// What it listens to.
    pub subscriptions: Subscriptions,
    /// Commands queued since MULTI.
    pub transaction: Option<Box<Transaction>>,
    /// The transaction that it has begun with TXN.BEGIN. It has none while it queues commands.
    pub interactive: Option<Box<InteractiveTransaction>>,
    /// Keys that must not change before EXEC.
    pub watches: Watches,
    /// Sessions whose requests it is sent, by database and name; another client may have taken its place. Most have none.
    pub(crate) attached: Option<Box<AttachedSessions>>,
    /// CLIENT TRACKING: how it tracks what it reads, if it does.
    pub tracker: Option<Arc<Tracker>>,
    /// CLIENT CACHING was called right before.
    pub caching: bool,
    /// CLIENT DURABILITY: what its replies wait for, where that is not what `appendfsync` says.
    pub durability: Option<AppendFsync>,
    /// The newest journal batch that its replies depend on: they are sent once it is persisted.
    pub depends_on: u64,
    /// The newest batch of its own.
    pub last_batch: u64,
    /// Whether it waits for a key.
    pub(crate) wait_phase: WaitPhase,
    /// The wait that it asks for times out with a null array, whatever its command has replied.
    pub(crate) times_out_with_array: bool,
    /// What its command is when it is served, if that is not what was sent: see [`Client::wait_as`].
    pub(crate) wait_request: Option<OwnedRequest>,
    /// The progress of a command that works in slices; only its handler knows the type.
    pub(crate) unfinished: Option<Box<dyn Any + Send>>,
    /// What its slices so far took.
    pub(crate) slices_ns: u64,
    /// The row of the last command: pipelines often repeat a command.
    pub(crate) last_command: Option<&'static CommandRow>,
    /// That of the last command in a session.
    pub(crate) last_called: Option<&'static CommandRow>,
}

impl Client {
    /// A client that has just connected.
    pub fn new(handle: Arc<ClientHandle>, authenticated: bool) -> Client {
        Client {
            handle,
            db: 0,
            protocol: Protocol::Resp2,
            authenticated,
            reply_mode: ReplyMode::On,
            no_touch: false,
            no_evict: false,
            monitoring: false,
            output_bytes_max: usize::MAX,
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
            wait_request: None,
            unfinished: None,
            slices_ns: 0,
            last_command: None,
            last_called: None,
        }
    }

    /// The client's number, never used again.
    pub fn id(&self) -> u64 {
        self.handle.id
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

    /// Back to the state of a new connection (RESET). A SKIP that has begun still takes its reply.
    pub fn reset(&mut self, authenticated: bool) {
        let fresh = Client::new(self.handle.clone(), authenticated);
        let reply_mode = if self.reply_mode == ReplyMode::Skipping { ReplyMode::Skipping } else { ReplyMode::On };
        let (depends_on, last_batch) = (self.depends_on, self.last_batch);
        *self = Client { last_command: self.last_command, reply_mode, depends_on, last_batch, ..fresh };
        self.handle.reset();
    }
}

const _: () = assert!(size_of::<Client>() <= CLIENT_BYTES, "what a handle says of its memory is true");
