//! The commands that a client has queued since MULTI. Refuses to know how they are executed.

use crate::command::CommandRow;
use crate::error::CommandError;
use keyspace::storage::size_class::size_class;
use resp::{OwnedRequest, Request};

/// Commands queued since MULTI.
#[derive(Default)]
pub struct Transaction {
    queue: Vec<(&'static CommandRow, OwnedRequest)>,
    /// The size of the requests.
    request_bytes: usize,
    /// A command could not be queued: EXEC will fail.
    pub failed: bool,
}

impl Transaction {
    /// Queues a command, unless the queue would exceed `bytes_max`.
    pub fn push(&mut self, row: &'static CommandRow, request: Request<'_>, bytes_max: u64) -> Result<(), CommandError> {
        let bytes: usize = request.iter().map(|arg| arg.len() + size_of::<usize>()).sum();
        if (self.bytes() + bytes) as u64 > bytes_max {
            return Err(CommandError::fixed("ERR the transaction is longer than client-query-buffer-limit allows"));
        }
        let owned = OwnedRequest::copy_of(request);
        self.request_bytes += owned.allocations().into_iter().map(size_class).sum::<usize>();
        self.queue.push((row, owned));
        Ok(())
    }

    /// The memory of the queue.
    pub fn bytes(&self) -> usize {
        self.request_bytes + size_class(self.queue.capacity() * size_of::<(&CommandRow, OwnedRequest)>())
    }

    /// How many commands are queued.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// True when no command is queued.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The commands in their order.
    pub fn commands(&self) -> impl Iterator<Item = (&'static CommandRow, Request<'_>)> {
        self.queue.iter().map(|(row, request)| (*row, request.as_request()))
    }
}
