//! Work that no client waits in a worker for: indexes that are being filled, sweeps that the configuration asks for. Knows
//! when there is something to do; refuses to know how it is done.

use crate::clients::ClientHandle;
use crate::clients::ticket::Ticket;
use keyspace::index::Index;
use locks::{Condvar, Mutex, rank};
use resp::Protocol;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// An index to be filled, and who waits for it.
pub(crate) struct IndexBackfill {
    pub(crate) index: Arc<Index>,
    pub(crate) ticket: Arc<Ticket>,
    pub(crate) handle: Arc<ClientHandle>,
    pub(crate) protocol: Protocol,
}

/// What waits to be done.
#[derive(Default)]
pub struct BackgroundTasks {
    backfills: Mutex<VecDeque<IndexBackfill>, { rank::BACKGROUND_QUEUE }>,
    arrived: Condvar,
    /// There is a thread that does them.
    served: AtomicBool,
}

impl BackgroundTasks {
    /// From here on there is a thread that does them.
    pub(crate) fn set_served(&self) {
        self.served.store(true, Relaxed);
    }

    /// True when something can be sent here.
    pub(crate) fn is_served(&self) -> bool {
        self.served.load(Relaxed)
    }

    pub(crate) fn send(&self, backfill: IndexBackfill) {
        self.backfills.lock().push_back(backfill);
        self.arrived.notify_one();
    }

    /// The next index to be filled; `None` when none has come within that time.
    pub(crate) fn next(&self, within: Duration) -> Option<IndexBackfill> {
        let mut backfills = self.backfills.lock();
        if backfills.is_empty() {
            self.arrived.wait_for(&mut backfills, within);
        }
        backfills.pop_front()
    }
}
