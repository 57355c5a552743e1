//! The writer of a place in memory: it sends batches, and learns from acknowledgements how far they are. Knows nothing of
//! files.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::faults::Fate;
use super::state::{Shared, Ticking};
use crate::epoch::Epoch;
use crate::failure::{Failure, Operation};
use crate::log::{Batch, Follow, FollowUpTo, Followed, Log, LogReader, ReadError, Stopper};
use crate::maintenance::{Buffers, Maintenance};
use crate::sequence::Sequence;

/// How many ticks a wait lasts before it fails, in a place where things go wrong.
const TICKS_MAX: usize = 1000;

/// A [`Log`] in memory. Clones are the same writer.
#[derive(Clone)]
pub struct MemoryLog {
    pub(super) writer: Arc<Writer>,
}

pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) epoch: Epoch,
    state: Mutex<WriterState>,
    /// Wakes readers and threads that wait for a sequence.
    moved: Condvar,
}

#[derive(Default)]
struct WriterState {
    tail: Sequence,
    time_ms: u64,
    /// Batches that were appended and not acknowledged, or not even sent.
    unacknowledged: VecDeque<Batch>,
    /// All up to here are known to be stored.
    acknowledged: Sequence,
    /// Acknowledgements that come later, and when.
    underway: Vec<(u64, Sequence)>,
    written: Sequence,
    durable: Sequence,
    /// Syncs succeed as soon as they are requested.
    syncs: bool,
    sync_requested: Sequence,
    phase: Phase,
    has_lost: bool,
    bytes_since_forget: u64,
    watchers: Vec<Arc<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
enum Phase {
    #[default]
    Sound,
    Failed(Failure),
    /// Nothing counts until a snapshot is accepted that has all before `first`.
    Restarted {
        first: Sequence,
    },
}

impl WriterState {
    fn failure(&self) -> Option<&Failure> {
        match &self.phase {
            Phase::Failed(failure) => Some(failure),
            Phase::Sound | Phase::Restarted { .. } => None,
        }
    }

    fn mark(&self, upto: FollowUpTo) -> Sequence {
        match upto {
            FollowUpTo::Written => self.written,
            FollowUpTo::Durable => self.durable,
        }
    }

    fn acknowledge(&mut self, upto: Sequence) {
        self.acknowledged = self.acknowledged.max(upto);
        let acknowledged = self.acknowledged;
        self.unacknowledged.retain(|batch| batch.sequence > acknowledged);
        self.move_marks();
    }

    fn move_marks(&mut self) {
        if !matches!(self.phase, Phase::Sound) {
            return;
        }
        self.written = self.written.max(self.acknowledged);
        if self.syncs {
            self.durable = self.durable.max(self.written.min(self.sync_requested));
        }
    }

    fn fail(&mut self, failure: Failure) -> Failure {
        if !matches!(self.phase, Phase::Failed(Failure::Fenced { .. } | Failure::Closed)) {
            self.phase = Phase::Failed(failure.clone());
            self.unacknowledged.clear();
        }
        failure
    }
}

impl Writer {
    /// Changes the state, and tells everybody.
    fn change<T>(&self, change: impl FnOnce(&mut WriterState) -> T) -> T {
        let (result, watchers) = {
            let mut state = self.state.lock();
            let result = change(&mut state);
            (result, state.watchers.clone())
        };
        self.moved.notify_all();
        watchers.iter().for_each(|notify| notify());
        result
    }

    /// Sends what is not acknowledged.
    fn send(&self, state: &mut WriterState) -> Result<(), Failure> {
        let mut place = self.shared.state.lock();
        match place.check(self.epoch) {
            Err(failure @ Failure::Fenced { .. }) => return Err(state.fail(failure)),
            // It is sent again when the place is back.
            Err(_) => return Ok(()),
            Ok(()) => {}
        }
        let Some(last) = state.unacknowledged.back().map(|batch| batch.sequence) else { return Ok(()) };
        let fate = place.chance.of_batches();
        if fate == Fate::Refused {
            let refused = io::Error::other("it was refused");
            return Err(state.fail(Failure::io(Operation::Write, "the place in memory", &refused)));
        }
        for batch in &state.unacknowledged {
            // What is sent again is there already.
            if batch.sequence > place.reached {
                (place.reached, place.time_ms) = (batch.sequence, batch.time_ms);
                place.batches.push_back(batch.clone());
            }
        }
        self.shared.stored.notify_all();
        let now = place.ticks;
        drop(place);
        match fate {
            Fate::Acknowledged => state.acknowledge(last),
            Fate::Repeated(ticks) => {
                state.underway.push((now + ticks, last));
                state.acknowledge(last);
            }
            Fate::Delayed(ticks) => state.underway.push((now + ticks, last)),
            Fate::Lost | Fate::Refused => {}
        }
        Ok(())
    }

    fn check_fence(&self) -> Result<(), Failure> {
        let by = self.shared.state.lock().epoch;
        if by <= self.epoch {
            return Ok(());
        }
        let mut state = self.state.lock();
        Err(state.fail(Failure::Fenced { own: self.epoch, by }))
    }

    /// Lets time pass, or waits for another thread, until something has moved.
    fn wait(&self, state: &mut MutexGuard<'_, WriterState>, ticks: &mut usize) -> Result<(), Failure> {
        if state.syncs {
            *ticks += 1;
            if *ticks > TICKS_MAX {
                let late = io::Error::from(io::ErrorKind::TimedOut);
                return Err(Failure::io(Operation::Sync, "the place in memory", &late));
            }
            MutexGuard::unlocked(state, || {
                self.shared.state.lock().ticks += 1;
                self.tick();
            });
        } else {
            self.moved.wait(state);
        }
        Ok(())
    }

    /// Waits until `is_done`, or the log has failed.
    fn wait_until(&self, is_done: impl Fn(&WriterState) -> bool) -> Result<(), Failure> {
        let mut ticks = 0;
        let mut state = self.state.lock();
        loop {
            if is_done(&state) {
                return Ok(());
            }
            if let Some(failure) = state.failure() {
                return Err(failure.clone());
            }
            self.wait(&mut state, &mut ticks)?;
        }
    }
}

impl Ticking for Writer {
    fn tick(&self) {
        let now = self.shared.state.lock().ticks;
        self.change(|state| {
            let due: Vec<Sequence> =
                state.underway.extract_if(.., |(at, _)| *at <= now).map(|(_, sequence)| sequence).collect();
            due.into_iter().for_each(|sequence| state.acknowledge(sequence));
            if state.failure().is_none() && state.underway.is_empty() {
                // The failure is in the state.
                let _ = self.send(state);
            }
        });
    }
}

impl MemoryLog {
    /// Creates an empty log in a place of its own.
    pub fn new(epoch: Epoch) -> MemoryLog {
        let shared = Arc::new(Shared::default());
        shared.state.lock().epoch = epoch;
        MemoryLog::begin(&shared, epoch).expect("it is the newest epoch")
    }

    /// Begins an epoch behind the last batch that counts.
    pub(super) fn begin(shared: &Arc<Shared>, epoch: Epoch) -> Result<MemoryLog, Failure> {
        let mut place = shared.state.lock();
        place.check(epoch)?;
        place.drop_unaccepted();
        let reached = place.reached;
        let state = WriterState {
            tail: reached,
            time_ms: place.time_ms,
            acknowledged: reached,
            written: reached,
            durable: reached,
            sync_requested: reached,
            syncs: true,
            bytes_since_forget: place.batches.iter().map(|batch| batch.payload.len() as u64).sum(),
            ..WriterState::default()
        };
        let writer = Writer { shared: shared.clone(), epoch, state: Mutex::new(state), moved: Condvar::new() };
        let writer = Arc::new(writer);
        let ticking: Arc<dyn Ticking> = writer.clone();
        place.writers.push(Arc::downgrade(&ticking));
        Ok(MemoryLog { writer })
    }

    /// Sets whether syncs succeed. While off, written batches do not become durable.
    pub fn set_syncs(&self, syncs: bool) {
        self.writer.state.lock().syncs = syncs;
        self.request_sync();
    }

    /// Fails the log: its marks stop moving.
    pub fn fail(&self, failure: Failure) {
        self.writer.change(|state| {
            if state.failure().is_none() {
                state.fail(failure);
            }
        });
    }

    /// Simulates another writer that begins a later epoch.
    pub fn fence(&self, by: Epoch) {
        let own = self.writer.epoch;
        assert!(by > own, "only a later epoch fences");
        self.writer.shared.state.lock().epoch = by;
        self.writer.change(|state| state.phase = Phase::Failed(Failure::Fenced { own, by }));
    }
}

impl Writer {
    /// The batch behind the end, if the log was closed without failure and nothing was appended since.
    pub(super) fn behind_end(&self) -> Option<Sequence> {
        let state = self.state.lock();
        let is_closed = matches!(state.phase, Phase::Failed(Failure::Closed)) && !state.has_lost;
        is_closed.then(|| state.tail.next())
    }
}

impl Log for MemoryLog {
    fn epoch(&self) -> Epoch {
        self.writer.epoch
    }

    fn append(&self, batch: &[u8], time_ms: u64) -> Sequence {
        let mut state = self.writer.state.lock();
        if let Some(Failure::Closed) = state.failure() {
            state.has_lost = true;
            return Sequence::LOST;
        }
        state.tail = state.tail.next();
        if state.failure().is_none() {
            state.time_ms = state.time_ms.max(time_ms);
            state.bytes_since_forget += batch.len() as u64;
            let (sequence, time_ms) = (state.tail, state.time_ms);
            let batch = Batch { epoch: self.writer.epoch, sequence, time_ms, payload: batch.to_vec() };
            state.unacknowledged.push_back(batch);
        }
        state.tail
    }

    fn tail(&self) -> Sequence {
        self.writer.state.lock().tail
    }

    fn written(&self) -> Sequence {
        self.writer.state.lock().written
    }

    fn durable(&self) -> Sequence {
        self.writer.state.lock().durable
    }

    fn write(&self, upto: Sequence) -> Result<(), Failure> {
        {
            let mut state = self.writer.state.lock();
            if state.written < upto {
                if let Some(failure) = state.failure() {
                    return Err(failure.clone());
                }
                self.writer.send(&mut state)?;
            }
        }
        self.writer.moved.notify_all();
        self.writer.check_fence()
    }

    fn request_sync(&self) {
        self.writer.change(|state| {
            state.sync_requested = state.tail;
            state.move_marks();
        });
    }

    fn wait_durable(&self, upto: Sequence) -> Result<(), Failure> {
        self.write(upto)?;
        self.request_sync();
        self.writer.wait_until(|state| state.durable >= upto || matches!(state.phase, Phase::Restarted { .. }))?;
        match self.durable() >= upto {
            true => Ok(()),
            false => Err(Failure::AwaitingSnapshot),
        }
    }

    fn wait_durable_for_snapshot(&self, min: Sequence, max: Sequence) -> Result<(), Failure> {
        if let Phase::Restarted { first } = self.writer.state.lock().phase
            && min < first.previous()
        {
            return Err(too_old(min, first.previous()));
        }
        // A restart skips a number, so nothing may be there to be stored.
        self.write(max)?;
        self.request_sync();
        self.writer.wait_until(|state| state.acknowledged >= max || state.unacknowledged.is_empty())
    }

    fn watch(&self, notify: Box<dyn Fn() + Send + Sync>) {
        self.writer.state.lock().watchers.push(notify.into());
    }

    fn has_failed(&self) -> bool {
        self.writer.state.lock().failure().is_some()
    }

    fn failure(&self) -> Option<Failure> {
        self.writer.state.lock().failure().cloned()
    }

    fn is_fenced_now(&self) -> bool {
        self.writer.check_fence().is_err()
    }

    fn has_room(&self) -> bool {
        true
    }

    fn close(&self) -> Result<(), Failure> {
        let closed = self.wait_durable(self.tail());
        self.writer.change(|state| {
            if closed.is_ok() || state.failure().is_none() {
                state.fail(Failure::Closed);
            }
        });
        closed
    }
}

impl Maintenance for MemoryLog {
    fn restart(&self) -> Result<(), Failure> {
        let writer = &*self.writer;
        writer.check_fence()?;
        writer.change(|state| {
            if let Some(failure @ (Failure::Fenced { .. } | Failure::Closed)) = state.failure() {
                return Err(failure.clone());
            }
            let mut place = writer.shared.state.lock();
            if let Err(failure) = place.check(writer.epoch) {
                drop(place);
                return Err(state.fail(failure));
            }
            // An earlier restart that got no snapshot.
            place.drop_unaccepted();
            state.tail = state.tail.next();
            let first = state.tail.next();
            place.reached = state.tail;
            place.restarts.push(first);
            drop(place);
            state.unacknowledged.clear();
            state.underway.clear();
            state.acknowledged = state.tail;
            state.phase = Phase::Restarted { first };
            Ok(())
        })
    }

    fn accept(&self, snapshot_min: Sequence) -> Result<(), Failure> {
        self.writer.check_fence()?;
        self.writer.change(|state| match &state.phase {
            Phase::Sound => Ok(()),
            Phase::Failed(failure) => Err(failure.clone()),
            Phase::Restarted { first } if snapshot_min < first.previous() => {
                Err(too_old(snapshot_min, first.previous()))
            }
            Phase::Restarted { .. } => {
                state.phase = Phase::Sound;
                state.sync_requested = state.tail;
                state.move_marks();
                Ok(())
            }
        })
    }

    fn forget(&self, upto: Sequence) -> Result<(), Failure> {
        let mut place = self.writer.shared.state.lock();
        place.check(self.writer.epoch)?;
        place.batches.retain(|batch| batch.sequence > upto);
        place.restarts.retain(|first| *first > upto.next());
        place.forgotten = place.forgotten.max(upto);
        drop(place);
        self.writer.state.lock().bytes_since_forget = 0;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.writer.shared.state.lock().batches.iter().map(|batch| batch.payload.len() as u64).sum()
    }

    fn bytes_since_forget(&self) -> u64 {
        self.writer.state.lock().bytes_since_forget
    }

    /// What is appended is stored.
    fn buffers(&self) -> Buffers {
        Buffers::default()
    }
}

impl LogReader for MemoryLog {
    fn follow(&self, from: Sequence, upto: FollowUpTo) -> Box<dyn Follow> {
        let next = from.max(Sequence::NONE.next());
        Box::new(MemoryReader { writer: self.writer.clone(), upto, next, is_stopped: Arc::default() })
    }
}

/// Reads what a writer has written, as far as it knows.
struct MemoryReader {
    writer: Arc<Writer>,
    upto: FollowUpTo,
    next: Sequence,
    is_stopped: Arc<AtomicBool>,
}

impl MemoryReader {
    fn advance(&mut self, waits: bool) -> Result<Followed, ReadError> {
        let writer = self.writer.clone();
        let mut state = writer.state.lock();
        loop {
            if waits && self.is_stopped.load(Ordering::Acquire) {
                return Ok(Followed::Stopped);
            }
            if let Some(error) = fenced(state.failure()) {
                return Err(error);
            }
            if let Some(batch) = self.read(state.mark(self.upto))? {
                return Ok(Followed::Batch(batch));
            }
            match state.failure() {
                Some(Failure::Closed) => return Ok(Followed::Closed),
                _ if !waits => return Ok(Followed::Stopped),
                _ => writer.moved.wait(&mut state),
            }
        }
    }

    /// The next batch up to a mark that is shown to readers.
    fn read(&mut self, mark: Sequence) -> Result<Option<Batch>, ReadError> {
        let place = self.writer.shared.state.lock();
        while self.next <= mark {
            if self.next <= place.forgotten {
                return Err(ReadError::Forgotten { oldest: place.forgotten.next() });
            }
            let at = place.batches.partition_point(|batch| batch.sequence < self.next);
            let Some(batch) = place.batches.get(at) else { return Ok(None) };
            if batch.sequence > self.next {
                return Err(ReadError::Restarted { first: batch.sequence });
            }
            self.next = self.next.next();
            if !batch.payload.is_empty() {
                return Ok(Some(batch.clone()));
            }
        }
        Ok(None)
    }
}

impl Follow for MemoryReader {
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
        let (writer, is_stopped) = (Arc::downgrade(&self.writer), self.is_stopped.clone());
        Stopper::new(move || {
            is_stopped.store(true, Ordering::Release);
            if let Some(writer) = writer.upgrade() {
                let _state = writer.state.lock();
                writer.moved.notify_all();
            }
        })
    }
}

/// The error of a reader of a log whose writer was fenced.
fn fenced(failure: Option<&Failure>) -> Option<ReadError> {
    match failure {
        Some(Failure::Fenced { by, .. }) => Some(ReadError::Fenced { by: *by }),
        _ => None,
    }
}

/// The error of a snapshot that is older than the restart of its log.
fn too_old(stamped: Sequence, needed: Sequence) -> Failure {
    Failure::SnapshotTooOld { stamped, needed }
}
