//! Hands the reply of a command that another thread has run to the client that waits for it. Refuses to know what was
//! run.

use locks::{Mutex, rank};

/// The slot in which a blocked client finds the reply that another thread has made for it.
#[derive(Default)]
pub struct Ticket(Mutex<Option<Outcome>, { rank::TICKET }>);

/// The reply, and the journal batches it depends on.
pub(crate) struct Outcome {
    pub(crate) reply: Vec<u8>,
    pub(crate) depends_on: u64,
    pub(crate) last_batch: u64,
}

impl Ticket {
    /// Leaves the reply, with the newest batch that it depends on and the last one that its command has written.
    pub(crate) fn put(&self, reply: Vec<u8>, depends_on: u64, last_batch: u64) {
        *self.0.lock() = Some(Outcome { reply, depends_on, last_batch });
    }

    /// Leaves the reply of a command whose changes are the batch of that number.
    pub(crate) fn put_done(&self, reply: Vec<u8>, sequence: u64) {
        self.put(reply, sequence, sequence);
    }

    /// Takes the reply, once there is one.
    pub(crate) fn take(&self) -> Option<Outcome> {
        self.0.lock().take()
    }
}
