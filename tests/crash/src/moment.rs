//! The moment at which a round ends: when so much has been sent and answered, counted over all clients. Never a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) struct Moment<'a> {
    /// Batches sent and replies received so far.
    ticks: AtomicU64,
    at: u64,
    action: Mutex<Option<Action<'a>>>,
    has_come: AtomicBool,
    /// The action asked clients to stop after the batch they are at.
    quiet: AtomicBool,
    trouble: Mutex<Option<String>>,
}

/// What happens then, in the thread of the client that counted last. The others go on meanwhile.
pub(crate) type Action<'a> = Box<dyn FnOnce(&Moment<'_>) -> Result<(), String> + Send + 'a>;

impl<'a> Moment<'a> {
    pub(crate) fn new(at: u64, action: Action<'a>) -> Moment<'a> {
        Moment {
            ticks: AtomicU64::new(0),
            at,
            action: Mutex::new(Some(action)),
            has_come: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            trouble: Mutex::new(None),
        }
    }

    pub(crate) fn tick(&self) {
        if self.ticks.fetch_add(1, Ordering::Relaxed) + 1 != self.at {
            return;
        }
        // IMPORTANT: before the action; once it kills the server, clients ask whether they may find it gone.
        self.has_come.store(true, Ordering::SeqCst);
        let action = self.action.lock().expect("no thread panicked with it").take().expect("it comes once");
        if let Err(trouble) = action(self) {
            *self.trouble.lock().expect("no thread panicked with it") = Some(trouble);
            self.stop_quietly();
        }
    }

    pub(crate) fn has_come(&self) -> bool {
        self.has_come.load(Ordering::SeqCst)
    }

    pub(crate) fn stop_quietly(&self) {
        self.quiet.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    pub(crate) fn into_trouble(self) -> Option<String> {
        self.trouble.into_inner().expect("no thread panicked with it")
    }
}
