//! Queue of background work: index backfills and configured sweeps. Knows when a task is due; refuses to know how it is
//! done.

use crate::clients::ClientHandle;
use crate::clients::ticket::Ticket;
use keyspace::index::Index;
use locks::{Condvar, Mutex, rank};
use resp::Protocol;
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

/// The queue of background work.
#[derive(Default)]
pub struct BackgroundTasks {
    backfills: Mutex<VecDeque<IndexBackfill>, { rank::BACKGROUND_QUEUE }>,
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

    pub(crate) fn send(&self, backfill: IndexBackfill) {
        self.backfills.lock().push_back(backfill);
        self.arrived.notify_one();
    }

    /// The next index to backfill; `None` when none was queued within that time.
    pub(crate) fn next(&self, within: Duration) -> Option<IndexBackfill> {
        let mut backfills = self.backfills.lock();
        if backfills.is_empty() {
            self.arrived.wait_for(&mut backfills, within);
        }
        backfills.pop_front()
    }
}
