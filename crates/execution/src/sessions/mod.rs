//! State that all sessions share: hooks, and whether clients are attached. Knows names of functions and clients;
//! refuses to know the contents of sessions and how functions run.

pub mod attachments;
pub mod ending;
pub mod expiry;
pub mod lookup;
pub mod undo;

use keyspace::definitions::Definitions;
use locks::{RwLock, rank};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use undo::Undo;

/// An event for which a function can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// A session is opened.
    Created,
    /// A session has expired, or is closed.
    Expired,
}

impl HookEvent {
    pub const ALL: [HookEvent; 2] = [HookEvent::Created, HookEvent::Expired];

    /// Its name in SESSION.HOOK and in the journal.
    pub fn name(self) -> &'static str {
        match self {
            HookEvent::Created => "created",
            HookEvent::Expired => "expired",
        }
    }
}

/// State that all sessions share.
#[derive(Default)]
pub struct Sessions {
    hooks: RwLock<Hooks, { rank::SESSION_HOOKS }>,
    /// At least one hook is set.
    has_hooks: AtomicBool,
    /// A client has been attached to a session since the start.
    attached: AtomicBool,
    /// Hooks that failed when a session expired.
    hook_failures: AtomicU64,
    /// What undoes the changes of a hook that fails.
    pub undo: Undo,
    /// A thread is removing expired sessions with a hook.
    is_expiring: AtomicBool,
}

/// The exclusive right of one thread to remove sessions with a hook.
pub struct ExpiryGuard<'a>(&'a AtomicBool);

impl Drop for ExpiryGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

/// The function of each event.
type Hooks = [Option<Arc<[u8]>>; HookEvent::ALL.len()];

impl Sessions {
    /// True when there is a hook.
    #[inline]
    pub fn has_hooks(&self) -> bool {
        self.has_hooks.load(Relaxed)
    }

    /// The function for that event.
    pub fn hook(&self, event: HookEvent) -> Option<Arc<[u8]>> {
        match self.has_hooks() {
            true => self.hooks.read()[event as usize].clone(),
            false => None,
        }
    }

    /// Applies the definition of a hook.
    pub fn set_hook(&self, name: &[u8], function: Option<&[u8]>) {
        let Some(event) = HookEvent::ALL.into_iter().find(|event| event.name().as_bytes() == name) else { return };
        let mut hooks = self.hooks.write();
        hooks[event as usize] = function.map(Arc::from);
        self.has_hooks.store(hooks.iter().any(Option::is_some), Relaxed);
    }

    /// Applies all definitions of hooks.
    pub fn take_hooks(&self, definitions: &Definitions) {
        for event in HookEvent::ALL {
            self.set_hook(event.name().as_bytes(), definitions.hook(event.name().as_bytes()));
        }
    }

    /// Takes the exclusive right to remove sessions with a hook; `None` when another thread has it. Each removal takes
    /// all locks: two threads would mostly wait for each other, and their clients with them.
    pub fn lock_expiry(&self) -> Option<ExpiryGuard<'_>> {
        (!self.is_expiring.swap(true, Acquire)).then(|| ExpiryGuard(&self.is_expiring))
    }

    /// Counts a hook that failed when a session expired.
    pub fn count_hook_failure(&self) {
        self.hook_failures.fetch_add(1, Relaxed);
    }

    /// How many hooks have failed.
    pub fn hook_failures(&self) -> u64 {
        self.hook_failures.load(Relaxed)
    }

    /// Resets the counter (CONFIG RESETSTAT).
    pub fn reset_failures(&self) {
        self.hook_failures.store(0, Relaxed);
    }

    /// True when a client may be attached to a session.
    #[inline]
    pub fn any_attached(&self) -> bool {
        self.attached.load(Relaxed)
    }

    /// Notes that a client is attached.
    pub fn note_attached(&self) {
        self.attached.store(true, Relaxed);
    }
}
