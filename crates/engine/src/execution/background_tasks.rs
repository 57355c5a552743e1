//! Queue of background work: index backfills, commands on copies of indexes, work in slices, and configured sweeps. Knows when a task is
//! due; refuses to know how it is done.

use crate::clients::ClientHandle;
use crate::clients::ticket::Ticket;
use crate::clients::tracking::Tracker;
use crate::error::CommandError;
use crate::execution::command::CommandRow;
use crate::execution::engine::Engine;
use crate::execution::worker::Worker;
use keyspace::index::Index;
use locks::{Condvar, Mutex, rank};
use resp::{OwnedRequest, Protocol, Reply};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// An index to backfill, and the client that waits for it.
pub(crate) struct IndexBackfill {
    pub(crate) index: Arc<Index>,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) handle: Arc<ClientHandle>,
    pub(crate) protocol: Protocol,
}

/// A command that would walk over many records of an index: it runs on a copy, while its client waits.
pub(crate) struct CommandOnCopy {
    pub(crate) row: &'static CommandRow,
    pub(crate) request: OwnedRequest,
    pub(crate) db: usize,
    pub(crate) protocol: Protocol,
    pub(crate) output_bytes_max: usize,
    pub(crate) no_touch: bool,
    pub(crate) tracker: Option<Arc<Tracker>>,
    pub(crate) caching: bool,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) handle: Arc<ClientHandle>,
}

/// A command whose work is done in slices, while its client waits. Between two slices other tasks are run.
pub(crate) struct SlicedWork {
    pub(crate) step: Step,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) handle: Arc<ClientHandle>,
    pub(crate) protocol: Protocol,
}

/// Does a slice of the work; what to reply, if that was the last.
pub(crate) type Step = Box<dyn FnMut(&Engine, &mut Worker) -> Option<Result<Answer, CommandError>> + Send>;
/// Writes the reply.
pub(crate) type Answer = Box<dyn FnOnce(&mut Reply<'_>) + Send>;

pub(crate) enum Task {
    Backfill(IndexBackfill),
    OnCopy(CommandOnCopy),
    InSlices(SlicedWork),
}

/// The queue of background work.
#[derive(Default)]
pub struct BackgroundTasks {
    tasks: Mutex<VecDeque<Task>, { rank::BACKGROUND_QUEUE }>,
    arrived: Condvar,
    /// A thread serves the queue.
    served: AtomicBool,
}

impl BackgroundTasks {
    /// Notes that a thread serves the queue from now on.
    pub(crate) fn set_served(&self) {
        self.served.store(true, Relaxed);
    }

    /// True when a thread serves the queue, so that work can be sent.
    pub(crate) fn is_served(&self) -> bool {
        self.served.load(Relaxed)
    }

    pub(crate) fn send(&self, task: Task) {
        self.tasks.lock().push_back(task);
        self.arrived.notify_one();
    }

    /// The next task; `None` when none was queued within that time.
    pub(crate) fn next(&self, within: Duration) -> Option<Task> {
        let mut tasks = self.tasks.lock();
        if tasks.is_empty() {
            self.arrived.wait_for(&mut tasks, within);
        }
        tasks.pop_front()
    }
}
