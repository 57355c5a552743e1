//! Passes the reply of a command that ran on another thread to its waiting client. Refuses to know what was run.

use crate::client::Client;
use locks::{Mutex, rank};

/// The slot in which another thread leaves the reply for a blocked client.
#[derive(Default)]
pub struct Ticket(Mutex<Slot, { rank::TICKET }>);

#[derive(Default)]
enum Slot {
    #[default]
    Empty,
    Ready(ServedReply),
    /// The connection has ended.
    Abandoned,
}

/// The reply, and the journal batches it depends on.
pub struct ServedReply {
    pub reply: Vec<u8>,
    pub depends_on: u64,
    pub last_batch: u64,
    /// The client itself, if it was moved to the other thread.
    pub client: Option<Box<Client>>,
}

impl Ticket {
    /// Puts the reply, with the newest batch that it depends on and the last batch that its command has written.
    pub fn put(&self, reply: Vec<u8>, depends_on: u64, last_batch: u64) {
        self.fill(ServedReply { reply, depends_on, last_batch, client: None });
    }

    /// Puts the reply of a command whose changes are the batch of that number.
    pub fn put_done(&self, reply: Vec<u8>, sequence: u64) {
        self.put(reply, sequence, sequence);
    }

    /// Puts the reply and the client. Returns the client as an error when its connection has ended.
    pub fn put_with_client(&self, reply: Vec<u8>, client: Box<Client>) -> Result<(), Box<Client>> {
        let (depends_on, last_batch) = (client.depends_on, client.last_batch);
        let served = ServedReply { reply, depends_on, last_batch, client: Some(client) };
        match self.fill(served).and_then(|refused| refused.client) {
            Some(client) => Err(client),
            None => Ok(()),
        }
    }

    /// Puts the reply. Returns it when the connection has ended.
    fn fill(&self, served: ServedReply) -> Option<ServedReply> {
        let mut slot = self.0.lock();
        if matches!(*slot, Slot::Abandoned) {
            return Some(served);
        }
        *slot = Slot::Ready(served);
        None
    }

    /// Takes the reply, if there is one.
    pub fn take(&self) -> Option<ServedReply> {
        let mut slot = self.0.lock();
        match std::mem::take(&mut *slot) {
            Slot::Ready(served) => Some(served),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Notes that the connection has ended. Takes the reply, or leaves it to the other thread.
    pub fn abandon(&self) -> Option<ServedReply> {
        match std::mem::replace(&mut *self.0.lock(), Slot::Abandoned) {
            Slot::Ready(served) => Some(served),
            Slot::Empty | Slot::Abandoned => None,
        }
    }
}
