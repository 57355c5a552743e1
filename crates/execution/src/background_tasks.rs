//! Queue of background work: index backfills, commands on copies of indexes, work in slices, and configured sweeps.
//! Knows when a task is due; refuses to know how it is done.

use crate::clients::ClientHandle;
use crate::clients::tracking::Tracker;
use crate::command::CommandRow;
use crate::database_tokens::DatabaseToken;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::ticket::Ticket;
use crate::worker::Worker;
use keyspace::index::Index;
use locks::{Condvar, Mutex, rank};
use resp::{OwnedRequest, Protocol, Reply};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// An index to backfill, and the client that waits for it.
pub struct IndexBackfill {
    pub index: Arc<Index>,
    pub ticket: Arc<Ticket>,
    pub handle: Arc<ClientHandle>,
    pub protocol: Protocol,
    /// Writes the reply once the index is complete.
    pub reply: fn(&mut Reply<'_>),
}

/// A command that would visit many records of an index. It runs on a copy of the index while its client waits.
pub struct CommandOnCopy {
    pub row: &'static CommandRow,
    pub request: OwnedRequest,
    pub db: usize,
    pub token: DatabaseToken,
    pub protocol: Protocol,
    pub output_bytes_max: usize,
    pub reply_bytes_max: usize,
    pub no_touch: bool,
    pub tracker: Option<Arc<Tracker>>,
    pub caching: bool,
    pub ticket: Arc<Ticket>,
    pub handle: Arc<ClientHandle>,
}

/// A command that works in slices while its client waits. Other tasks run between two slices.
pub struct SlicedWork {
    pub step: Step,
    pub ticket: Arc<Ticket>,
    pub handle: Arc<ClientHandle>,
    pub protocol: Protocol,
    /// The longest reply that the client's user may have.
    pub reply_bytes_max: usize,
}

/// Does one slice of the work. Returns the reply after the last slice.
pub type Step = Box<dyn FnMut(&Engine, &mut Worker) -> Option<Result<Answer, CommandError>> + Send>;
/// Writes the reply.
pub type Answer = Box<dyn FnOnce(&mut Reply<'_>) + Send>;

/// Does one slice of a task's remaining work. True when there is more.
pub type Rest = Box<dyn FnMut(&Engine, &mut Worker) -> bool + Send>;

pub enum BackgroundTask {
    Backfill(IndexBackfill),
    OnCopy(CommandOnCopy),
    InSlices(SlicedWork),
    /// A task that has begun.
    Continued(Rest),
}

/// The queue of background work.
#[derive(Default)]
pub struct BackgroundTasks {
    tasks: Mutex<VecDeque<BackgroundTask>, { rank::BACKGROUND_QUEUE }>,
    arrived: Condvar,
    /// A thread serves the queue.
    served: AtomicBool,
}

impl BackgroundTasks {
    /// Notes that a thread serves the queue from now on.
    pub fn set_served(&self) {
        self.served.store(true, Relaxed);
    }

    /// True when a thread serves the queue, so that work can be sent.
    pub fn is_served(&self) -> bool {
        self.served.load(Relaxed)
    }

    pub fn send(&self, task: BackgroundTask) {
        self.tasks.lock().push_back(task);
        self.arrived.notify_one();
    }

    /// The next task; `None` when none was queued within that time.
    pub fn next(&self, within: Duration) -> Option<BackgroundTask> {
        let mut tasks = self.tasks.lock();
        if tasks.is_empty() {
            self.arrived.wait_for(&mut tasks, within);
        }
        tasks.pop_front()
    }
}
