//! A log in memory, for tests: it writes, syncs, fails and is fenced as the test demands. Knows nothing of files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::epoch::Epoch;
use crate::failure::Failure;
use crate::log::{Batch, Follow, FollowUpTo, Followed, Log, ReadError, Stopper};
use crate::sequence::Sequence;

/// A [`Log`] in memory. Clones share one log.
#[derive(Clone)]
pub struct MemoryLog {
    epoch: Epoch,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Wakes readers and threads that wait for a sequence.
    moved: Condvar,
}

#[derive(Default)]
struct State {
    batches: Vec<Batch>,
    tail: Sequence,
    written: Sequence,
    durable: Sequence,
    /// Syncs succeed as soon as they are requested.
    syncs: bool,
    failure: Option<Failure>,
    watchers: Vec<Arc<dyn Fn() + Send + Sync>>,
}

impl State {
    fn mark(&self, upto: FollowUpTo) -> Sequence {
        match upto {
            FollowUpTo::Written => self.written,
            FollowUpTo::Durable => self.durable,
        }
    }
}

impl MemoryLog {
    /// Creates an empty log in which syncs succeed as soon as they are requested.
    pub fn new(epoch: Epoch) -> MemoryLog {
        let state = State { syncs: true, ..State::default() };
        MemoryLog { epoch, shared: Arc::new(Shared { state: Mutex::new(state), moved: Condvar::new() }) }
    }

    /// Sets whether syncs succeed. While off, written batches do not become durable.
    pub fn set_syncs(&self, syncs: bool) {
        self.shared.state.lock().syncs = syncs;
        self.request_sync();
    }

    /// Fails the log: its marks stop moving.
    pub fn fail(&self, failure: Failure) {
        self.change(|state| {
            state.failure.get_or_insert(failure);
        });
    }

    /// Simulates another writer that begins a later epoch.
    pub fn fence(&self, by: Epoch) {
        assert!(by > self.epoch, "only a later epoch fences");
        self.change(|state| state.failure = Some(Failure::Fenced { own: self.epoch, by }));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let watchers = {
            let mut state = self.shared.state.lock();
            change(&mut state);
            state.watchers.clone()
        };
        self.shared.moved.notify_all();
        watchers.iter().for_each(|notify| notify());
    }
}

impl Log for MemoryLog {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn append(&self, batch: &[u8], time_ms: u64) -> Sequence {
        let mut state = self.shared.state.lock();
        state.tail = state.tail.next();
        if state.failure.is_none() {
            let time_ms = state.batches.last().map_or(0, |last| last.time_ms).max(time_ms);
            let batch = Batch { epoch: self.epoch, sequence: state.tail, time_ms, payload: batch.to_vec() };
            state.batches.push(batch);
        }
        state.tail
    }

    fn tail(&self) -> Sequence {
        self.shared.state.lock().tail
    }

    fn written(&self) -> Sequence {
        self.shared.state.lock().written
    }

    fn durable(&self) -> Sequence {
        self.shared.state.lock().durable
    }

    fn write(&self, upto: Sequence) -> Result<(), Failure> {
        let mut state = self.shared.state.lock();
        if state.written >= upto {
            return Ok(());
        }
        match &state.failure {
            Some(failure) => Err(failure.clone()),
            None => {
                state.written = state.tail;
                self.shared.moved.notify_all();
                Ok(())
            }
        }
    }

    fn request_sync(&self) {
        self.change(|state| {
            if state.syncs && state.failure.is_none() {
                state.durable = state.written;
            }
        });
    }

    fn wait_durable(&self, upto: Sequence) -> Result<(), Failure> {
        self.write(upto)?;
        self.request_sync();
        let mut state = self.shared.state.lock();
        while state.durable < upto {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            self.shared.moved.wait(&mut state);
        }
        Ok(())
    }

    fn watch(&self, notify: Box<dyn Fn() + Send + Sync>) {
        self.shared.state.lock().watchers.push(notify.into());
    }

    fn follow(&self, from: Sequence, upto: FollowUpTo) -> Box<dyn Follow> {
        let next = from.max(Sequence::NONE.next());
        Box::new(MemoryFollower { shared: self.shared.clone(), upto, next, is_stopped: Arc::default() })
    }

    fn has_failed(&self) -> bool {
        self.shared.state.lock().failure.is_some()
    }

    fn failure(&self) -> Option<Failure> {
        self.shared.state.lock().failure.clone()
    }

    fn has_room(&self) -> bool {
        true
    }

    fn close(&self) -> Result<(), Failure> {
        let closed = self.wait_durable(self.tail());
        self.fail(Failure::Closed);
        closed
    }
}

struct MemoryFollower {
    shared: Arc<Shared>,
    upto: FollowUpTo,
    next: Sequence,
    is_stopped: Arc<AtomicBool>,
}

impl MemoryFollower {
    fn advance(&mut self, waits: bool) -> Result<Followed, ReadError> {
        let mut state = self.shared.state.lock();
        loop {
            if waits && self.is_stopped.load(Ordering::Acquire) {
                return Ok(Followed::Stopped);
            }
            if let Some(Failure::Fenced { by, .. }) = state.failure {
                return Err(ReadError::Fenced { by });
            }
            while self.next <= state.mark(self.upto) {
                let batch = &state.batches[self.next.0 as usize - 1];
                self.next = self.next.next();
                if !batch.payload.is_empty() {
                    return Ok(Followed::Batch(batch.clone()));
                }
            }
            match state.failure {
                Some(Failure::Closed) => return Ok(Followed::Closed),
                _ if !waits => return Ok(Followed::Stopped),
                _ => self.shared.moved.wait(&mut state),
            }
        }
    }
}

impl Follow for MemoryFollower {
    fn next(&mut self) -> Result<Followed, ReadError> {
        self.advance(true)
    }

    fn try_next(&mut self) -> Result<Option<Batch>, ReadError> {
        self.advance(false).map(|followed| match followed {
            Followed::Batch(batch) => Some(batch),
            Followed::Stopped | Followed::Closed => None,
        })
    }

    fn stopper(&self) -> Stopper {
        let (shared, is_stopped) = (Arc::downgrade(&self.shared), self.is_stopped.clone());
        Stopper::new(move || {
            is_stopped.store(true, Ordering::Release);
            if let Some(shared) = shared.upgrade() {
                let _state = shared.state.lock();
                shared.moved.notify_all();
            }
        })
    }
}
