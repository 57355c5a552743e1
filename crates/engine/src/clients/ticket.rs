//! Where a client that waits finds its reply, made elsewhere on its behalf. Refuses to know what was done.

use locks::{Mutex, rank};

/// Where a client that waits finds an outcome that was made elsewhere.
#[derive(Default)]
pub struct Ticket(Mutex<Option<Outcome>, { rank::TICKET }>);

/// What was made elsewhere on behalf of a client.
pub(crate) struct Outcome {
    pub(crate) reply: Vec<u8>,
    pub(crate) depends_on: u64,
    pub(crate) last_batch: u64,
}

impl Ticket {
    /// Leaves the reply, with the newest batch that it depends on and the last one that was made for it.
    pub(crate) fn put(&self, reply: Vec<u8>, depends_on: u64, last_batch: u64) {
        *self.0.lock() = Some(Outcome { reply, depends_on, last_batch });
    }

    /// Leaves the reply to something that the batch of that number has done.
    pub(crate) fn put_done(&self, reply: Vec<u8>, sequence: u64) {
        self.put(reply, sequence, sequence);
    }

    /// The outcome, once there is one.
    pub(crate) fn take(&self) -> Option<Outcome> {
        self.0.lock().take()
    }
}
