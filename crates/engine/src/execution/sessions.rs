//! What all sessions have in common: hooks, and the delivery of requests to the clients that are attached. Knows names of functions
//! and clients; refuses to know what sessions hold and how functions run.

use crate::clients::ClientHandle;
use crate::execution::client::Client;
use crate::execution::engine::Engine;
use crate::settings::ClientClass;
use keyspace::definitions::Definitions;
use keyspace::types::Object;
use keyspace::types::session::Session;
use keyspace::{Entry, Key};
use locks::{RwLock, rank};
use resp::{Protocol, Reply};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What a function can be called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// A session is opened.
    Created,
    /// A session has expired, or is closed.
    Expired,
}

impl HookEvent {
    pub const ALL: [HookEvent; 2] = [HookEvent::Created, HookEvent::Expired];

    /// What SESSION.HOOK and the journal call it.
    pub fn name(self) -> &'static str {
        match self {
            HookEvent::Created => "created",
            HookEvent::Expired => "expired",
        }
    }
}

/// What all sessions have in common.
#[derive(Default)]
pub struct Sessions {
    hooks: RwLock<Hooks, { rank::SESSION_HOOKS }>,
    /// One of them is set.
    has_hooks: AtomicBool,
    /// A client has been attached to a session since the start.
    attached: AtomicBool,
    /// Functions that failed when a session expired.
    hook_failures: AtomicU64,
    /// A thread removes sessions that have expired, with the function that is called for them.
    is_expiring: AtomicBool,
}

/// The turn of one thread to remove sessions.
pub(crate) struct ExpiryTurn<'a>(&'a AtomicBool);

impl Drop for ExpiryTurn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

/// The names of the functions.
type Hooks = [Option<Arc<[u8]>>; HookEvent::ALL.len()];

impl Sessions {
    /// True when a function is called for something.
    #[inline]
    pub(crate) fn has_hooks(&self) -> bool {
        self.has_hooks.load(Relaxed)
    }

    /// The function that is called for that.
    pub fn hook(&self, event: HookEvent) -> Option<Arc<[u8]>> {
        match self.has_hooks() {
            true => self.hooks.read()[event as usize].clone(),
            false => None,
        }
    }

    /// Applies the definition of a hook.
    pub(crate) fn set_hook(&self, name: &[u8], function: Option<&[u8]>) {
        let Some(event) = HookEvent::ALL.into_iter().find(|event| event.name().as_bytes() == name) else { return };
        let mut hooks = self.hooks.write();
        hooks[event as usize] = function.map(Arc::from);
        self.has_hooks.store(hooks.iter().any(Option::is_some), Relaxed);
    }

    /// Applies all definitions of hooks.
    pub(crate) fn take_hooks(&self, definitions: &Definitions) {
        for event in HookEvent::ALL {
            self.set_hook(event.name().as_bytes(), definitions.hook(event.name().as_bytes()));
        }
    }

    /// The turn to remove sessions with the function that is called for them, if no other thread has it. Each removal takes all
    /// locks: two threads would mostly wait for each other, and their clients with them.
    pub(crate) fn expiry_turn(&self) -> Option<ExpiryTurn<'_>> {
        (!self.is_expiring.swap(true, Acquire)).then(|| ExpiryTurn(&self.is_expiring))
    }

    /// Counts a function that failed when a session expired.
    pub(crate) fn count_hook_failure(&self) {
        self.hook_failures.fetch_add(1, Relaxed);
    }

    /// How many there were.
    pub fn hook_failures(&self) -> u64 {
        self.hook_failures.load(Relaxed)
    }

    /// CONFIG RESETSTAT.
    pub(crate) fn reset_failures(&self) {
        self.hook_failures.store(0, Relaxed);
    }

    /// True when a client may be attached to a session.
    #[inline]
    pub(crate) fn any_attached(&self) -> bool {
        self.attached.load(Relaxed)
    }

    /// Notes that a client is attached.
    pub(crate) fn note_attached(&self) {
        self.attached.store(true, Relaxed);
    }
}

impl Engine {
    /// Sends a request of a session to the client that is attached to it, once the batch `sequence` is persisted.
    #[cold]
    pub(crate) fn deliver_request(&self, client: u64, session: &[u8], id: u64, payload: &[u8], sequence: u64) {
        let Some(handle) = self.clients.get(client).filter(|handle| speaks_resp3(handle)) else { return };
        let mut frame = Vec::with_capacity(payload.len() + session.len() + 64);
        let mut message = Reply::new(&mut frame, Protocol::Resp3);
        message.push(4);
        message.bulk(b"session");
        message.bulk(session);
        message.integer(id as i64);
        message.bulk(payload);
        let class = if handle.is_subscriber() { ClientClass::Pubsub } else { ClientClass::Normal };
        handle.send_after(sequence, &frame, self.settings.client_output_buffer_limit(class).hard_bytes);
    }

    /// The client that a session's requests are sent to, if it is still there.
    pub(crate) fn attached_client(&self, session: &Session) -> Option<u64> {
        let client = session.attached();
        (client != 0 && self.clients.get(client).is_some_and(|handle| speaks_resp3(&handle))).then_some(client)
    }

    /// Detaches a client from all sessions. IMPORTANT: the caller holds no locks. A session whose lock a long script holds keeps
    /// the client's number; the client is sent nothing in RESP2.
    pub(crate) fn detach_all(&self, client: &mut Client) {
        let Some(attached) = client.attached.take() else { return };
        for (db, name) in *attached {
            client.handle.remove_names(1, name.len());
            let key = Key::new(&name);
            let Some(locked) = self.keyspace.lock_key_unless_busy(key) else { continue };
            let entry = locked.db(db, key).entry(key);
            if let Some(Object::Session(session)) = entry.and_then(Entry::object)
                && session.attached() == client.id()
            {
                session.detach();
            }
        }
    }
}

fn speaks_resp3(handle: &ClientHandle) -> bool {
    handle.resp.load(Relaxed) == 3
}
