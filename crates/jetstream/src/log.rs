//! The writer of the log: batches to frames, one frame at a time, and the lease by which it may answer. Knows what is
//! stored; refuses to know what a batch means and how a frame travels.

use crate::context::Context;
use crate::delivery::{Delivery, Outcome, Stored};
use crate::follower::StreamFollower;
use crate::frame::{self, Contents, Kind, Link};
use crate::lease::{Timing, has_passed};
use crate::mutation::{Mutation, is_broken};
use crate::stream::Tick;
use journal::{Buffers, Epoch, Failure, Follower, Log, Maintenance, Sequence, SyncHistogram, SyncTimes};
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// While more than this waits to be sent, the log has no room.
const PENDING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How many places are remembered at which a snapshot may begin to be followed. If there are more, every second one is
/// forgotten.
const BOUNDARIES_MAX: usize = 4096;
/// How long the time of a writer goes on that gives the log up.
pub(crate) const STOPS_AFTER_MS: u64 = 50;
/// How long the end of the log may take.
const CLOSES_WITHIN_NS: u64 = 10_000_000_000;

/// A log that is written by this process.
pub(crate) struct StreamLog {
    context: Arc<Context>,
    epoch: Epoch,
    state: Mutex<State>,
    delivery: OnceLock<Arc<Delivery>>,
    tail: AtomicU64,
    /// All batches up to here are stored.
    stored: AtomicU64,
    /// Until when this process may answer.
    lease_until_ns: AtomicU64,
    has_failed: AtomicBool,
    has_room: AtomicBool,
    /// From the first attempt to send a frame until it is known to be stored.
    frame_times: SyncHistogram,
    watchers: Mutex<Vec<Arc<dyn Fn() + Send + Sync>>>,
    itself: Weak<StreamLog>,
}

struct State {
    /// The last frame that is stored.
    link: Link,
    /// The time of the last batch.
    time_ms: u64,
    /// Batches that are in no frame yet, as in a payload. The first may have begun in the frame before.
    pending: Vec<u8>,
    /// Where in `pending` each batch ends, counted from the beginning of the epoch.
    ends: VecDeque<u64>,
    /// How many bytes of batches are in frames, and how many of them are of batches that are complete there.
    framed: u64,
    whole: u64,
    is_sending: bool,
    /// When the last frame was first sent.
    sent_ns: u64,
    gathering: Gathering,
    phase: Phase,
    /// Something was appended after the end.
    has_lost: bool,
    /// Frames after which no batch is incomplete: a snapshot is followed from one of them.
    boundaries: VecDeque<Link>,
    bytes_since_forget: u64,
}

/// When a frame is stored, all clients that waited for it send their next request at about the same time. The next frame
/// waits a moment for as many batches as there were, so that they share it: otherwise the first one has a frame of its own,
/// and the others wait for two. The more there are, the longer it waits: a few would gain little.
#[derive(Default)]
struct Gathering {
    /// How many batches are expected.
    expected: usize,
    /// When the last frame was stored, and how long a frame takes, on average.
    stored_ns: u64,
    took_ns: u64,
    /// A wait has begun.
    waits: bool,
}

impl Gathering {
    /// A frame was stored that had `count` batches, while others were pending.
    fn note_stored(&mut self, now_ns: u64, sent_ns: u64, count: usize, pending: usize) {
        let took_ns = now_ns.saturating_sub(sent_ns);
        self.took_ns = if self.took_ns == 0 { took_ns } else { (7 * self.took_ns + took_ns) / 8 };
        (self.expected, self.stored_ns, self.waits) = (count + pending, now_ns, false);
    }

    /// How long to wait for more, if so many are pending.
    fn wait(&self, now_ns: u64, pending: usize) -> Option<Duration> {
        let part = self.expected.min(GATHERING_MANY) as u64;
        let limit_ns = (self.took_ns / GATHERING_MANY as u64 * part).min(GATHERING_NS_MAX);
        let left_ns = (self.stored_ns + limit_ns).saturating_sub(now_ns);
        (pending < self.expected && left_ns > 0).then_some(Duration::from_nanos(left_ns))
    }
}

/// For so many batches, a frame waits as long as frames take; for fewer, that part of it. No frame waits longer than this.
const GATHERING_MANY: usize = 64;
const GATHERING_NS_MAX: u64 = 1_250_000;

enum Phase {
    Open,
    /// When all is stored, the log is given up, for this member if it is named.
    Closing {
        successor: String,
    },
    Releasing,
    Failed(Failure),
}

impl StreamLog {
    /// Writes on behind the frame with which this process has taken the log over.
    pub(crate) fn new(context: Arc<Context>, claimed: Stored, time_ms: u64, bytes_since_forget: u64) -> Arc<StreamLog> {
        let Stored { link, first_sent_ns } = claimed;
        context.seen.note(&link, context.stream.now_ns());
        let state = State {
            link,
            time_ms,
            pending: Vec::new(),
            ends: VecDeque::new(),
            framed: 0,
            whole: 0,
            is_sending: false,
            sent_ns: first_sent_ns,
            gathering: Gathering::default(),
            phase: Phase::Open,
            has_lost: false,
            boundaries: VecDeque::from([link]),
            bytes_since_forget,
        };
        let log = Arc::new_cyclic(|itself: &Weak<StreamLog>| StreamLog {
            epoch: link.epoch,
            state: Mutex::new(state),
            delivery: OnceLock::new(),
            tail: AtomicU64::new(link.sequence.0),
            stored: AtomicU64::new(link.sequence.0),
            lease_until_ns: AtomicU64::new(first_sent_ns + context.timing.lease_ns()),
            has_failed: AtomicBool::new(false),
            has_room: AtomicBool::new(true),
            frame_times: SyncHistogram::default(),
            watchers: Mutex::default(),
            itself: itself.clone(),
            context,
        });
        let itself = log.itself.clone();
        let done = move |outcome| {
            if let Some(log) = itself.upgrade() {
                log.on_outcome(outcome);
            }
        };
        let Context { stream, log: id, timing, .. } = &*log.context;
        let _ = log.delivery.set(Delivery::new(stream.clone(), *id, *timing, done));
        let ticking: Arc<dyn Tick> = log.clone();
        stream.tick(Arc::downgrade(&ticking));
        log
    }

    fn timing(&self) -> &Timing {
        &self.context.timing
    }

    /// Sends the next frame, if none is on the way and there is a reason to.
    fn send_next(&self, state: &mut State) {
        if state.is_sending {
            return;
        }
        let now_ns = self.context.stream.now_ns();
        match &state.phase {
            Phase::Failed(_) | Phase::Releasing => {}
            Phase::Closing { successor } if state.pending.is_empty() => {
                let successor = successor.clone();
                // IMPORTANT: before the frame is sent. Whoever reads it takes over at once.
                self.lease_until_ns.store(0, Ordering::SeqCst);
                state.phase = Phase::Releasing;
                self.send_frame(state, now_ns, Kind::Release, 0, successor.into_bytes());
            }
            Phase::Open | Phase::Closing { .. } => {
                if state.pending.is_empty() && !has_passed(now_ns, state.sent_ns, self.timing().beat) {
                    return;
                }
                let payload_max = self.context.stream.message_max() - frame::OVERHEAD;
                let may_wait = !state.pending.is_empty() && state.pending.len() < payload_max;
                if let Some(wait) = state.gathering.wait(now_ns, state.ends.len()).filter(|_| may_wait) {
                    if !std::mem::replace(&mut state.gathering.waits, true) {
                        let ticking: Arc<dyn Tick> = self.itself.upgrade().expect("it is in use");
                        self.context.stream.tick_after(wait, Arc::downgrade(&ticking));
                    }
                    return;
                }
                let (count, payload) = next_payload(state, payload_max);
                self.send_frame(state, now_ns, Kind::Batches, count, payload);
            }
        }
    }

    fn send_frame(&self, state: &mut State, now_ns: u64, kind: Kind, count: u32, payload: Vec<u8>) {
        let Context { log, partition, time, timing, .. } = &*self.context;
        let time_ms = time.now_ms().max(state.link.time_ms);
        let ceiling_ms = match kind {
            Kind::Release => self.stop_time(state.link.ceiling_ms).max(time_ms),
            // From the machine's own time on: after a while in which nothing was stored, the log's is behind it, and catches up
            // with this frame. From the log's on, it would by one lease with each.
            Kind::Batches | Kind::Epoch => (time_ms.max(time.own_ms()) + timing.lease_ms()).max(state.link.ceiling_ms),
        };
        let contents = Contents {
            kind,
            epoch: self.epoch,
            nonce: state.link.nonce,
            count,
            time_ms,
            ceiling_ms,
            payload: &payload,
        };
        let (message, link) = frame::encode(*log, *partition, &state.link, &contents);
        (state.is_sending, state.sent_ns) = (true, now_ns);
        state.bytes_since_forget += message.len() as u64;
        self.delivery.get().expect("it is set at the beginning").send(message, link);
    }

    /// Lets the time of this process go on for a moment only, and returns when it stops. With a whole lease, each hand-over
    /// would take the time of the log further ahead.
    ///
    /// IMPORTANT: it has to stop. What is read here until this process knows that the log is given up is still answered, and
    /// what has expired by then must not come back with the next writer.
    fn stop_time(&self, ceiling_ms: u64) -> u64 {
        let time = &self.context.time;
        loop {
            let stop_ms = (time.now_ms() + STOPS_AFTER_MS).min(ceiling_ms);
            time.allow(stop_ms);
            // If it is there already, another thread may have seen a later time just before.
            if stop_ms == ceiling_ms || time.now_ms() < stop_ms {
                return stop_ms;
            }
        }
    }

    fn on_outcome(&self, outcome: Outcome) {
        {
            let mut state = self.state.lock();
            state.is_sending = false;
            match outcome {
                Outcome::Stored(stored) => self.on_stored(&mut state, stored),
                Outcome::Fenced(by) => {
                    let by = by.unwrap_or(self.epoch.next());
                    self.fail(&mut state, Failure::Fenced { own: self.epoch, by });
                }
                Outcome::Damaged(damage) => {
                    self.fail(&mut state, Failure::Damaged { detail: damage.to_string().into() });
                }
            }
        }
        self.notify();
    }

    fn on_stored(&self, state: &mut State, Stored { link, first_sent_ns }: Stored) {
        let count = link.sequence.0 - state.link.sequence.0;
        let now_ns = self.context.stream.now_ns();
        self.frame_times.add(Duration::from_nanos(now_ns.saturating_sub(first_sent_ns)));
        state.gathering.note_stored(now_ns, first_sent_ns, count as usize, state.ends.len());
        state.link = link;
        self.context.seen.note(&link, self.context.stream.now_ns());
        self.context.time.allow(link.ceiling_ms);
        if state.is_at_boundary() {
            state.boundaries.push_back(link);
            if state.boundaries.len() > BOUNDARIES_MAX {
                let mut number = 0;
                state.boundaries.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
            }
        }
        match state.phase {
            Phase::Releasing => self.fail(state, Failure::Closed),
            _ => {
                let until_ns = first_sent_ns + self.timing().lease_ns();
                self.lease_until_ns.fetch_max(until_ns, Ordering::SeqCst);
                let begun = u64::from(is_broken(Mutation::FirstPieceCounts) && !state.is_at_boundary());
                self.stored.store(link.sequence.0 + begun, Ordering::SeqCst);
                self.send_next(state);
                self.note_room(state);
            }
        }
        // IMPORTANT: after the lease was given up it must not come back.
        if matches!(state.phase, Phase::Releasing | Phase::Failed(_)) {
            self.lease_until_ns.store(0, Ordering::SeqCst);
        }
    }

    fn fail(&self, state: &mut State, failure: Failure) {
        if matches!(failure, Failure::Closed) {
            self.stored.store(state.link.sequence.0, Ordering::SeqCst);
        }
        state.phase = Phase::Failed(failure);
        state.pending = Vec::new();
        state.ends.clear();
        self.lease_until_ns.store(0, Ordering::SeqCst);
        self.has_failed.store(true, Ordering::SeqCst);
    }

    fn note_room(&self, state: &State) {
        self.has_room.store(state.pending.len() < PENDING_BYTES_MAX, Ordering::SeqCst);
    }

    fn notify(&self) {
        let watchers = self.watchers.lock().clone();
        watchers.iter().for_each(|notify| notify());
    }

    fn failure_of(state: &State) -> Option<&Failure> {
        match &state.phase {
            Phase::Failed(failure) => Some(failure),
            Phase::Open | Phase::Closing { .. } | Phase::Releasing => None,
        }
    }

    /// Waits until `is_done`, or the log has failed.
    fn wait_until(&self, is_done: impl Fn(&State) -> bool) -> Result<(), Failure> {
        loop {
            {
                let state = self.state.lock();
                if is_done(&state) {
                    return Ok(());
                }
                if let Some(failure) = StreamLog::failure_of(&state) {
                    return Err(failure.clone());
                }
            }
            self.context.stream.pause();
        }
    }

    /// The newest frame that a reader may begin after, which has all batches up to `min` and no others before it.
    pub(crate) fn boundary(&self, min: Sequence) -> Option<Link> {
        let state = self.state.lock();
        state.boundaries.iter().rev().find(|link| link.sequence <= min).copied()
    }

    /// Forgets where snapshots older than `min` would have begun.
    fn forget_boundaries(state: &mut MutexGuard<'_, State>, min: Sequence) {
        let keep_from = state.boundaries.iter().rposition(|link| link.sequence <= min).unwrap_or(0);
        state.boundaries.drain(..keep_from);
    }

    /// Reads on behind the end, if the log was given up and nothing was appended since.
    pub(crate) fn follow_on(&self) -> Option<Box<dyn Follower>> {
        let state = self.state.lock();
        let is_closed = matches!(state.phase, Phase::Failed(Failure::Closed)) && !state.has_lost;
        let (link, time_ms) = (state.link, state.time_ms);
        drop(state);
        is_closed.then(|| Box::new(StreamFollower::after_release(&self.context, link, time_ms)) as Box<dyn Follower>)
    }

    pub(crate) fn link(&self) -> Link {
        self.state.lock().link
    }
}

impl State {
    /// True when no batch is spread over the last frame and the next.
    fn is_at_boundary(&self) -> bool {
        self.framed == self.whole
    }
}

/// As much of what is pending as fits into a frame, and how many batches end there.
fn next_payload(state: &mut State, bytes_max: usize) -> (u32, Vec<u8>) {
    let payload = if state.pending.len() <= bytes_max {
        std::mem::take(&mut state.pending)
    } else {
        let rest = state.pending.split_off(bytes_max);
        std::mem::replace(&mut state.pending, rest)
    };
    state.framed += payload.len() as u64;
    let framed = state.framed;
    let count = state.ends.iter().take_while(|end| **end <= framed).count();
    state.whole = state.ends.drain(..count).next_back().unwrap_or(state.whole);
    (count as u32, payload)
}

impl Log for StreamLog {
    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn append(&self, batch: &[u8], time_ms: u64) -> Sequence {
        let mut state = self.state.lock();
        match &state.phase {
            Phase::Releasing | Phase::Failed(Failure::Closed) => {
                state.has_lost = true;
                return Sequence::LOST;
            }
            // It never becomes durable.
            Phase::Failed(_) => {}
            Phase::Open | Phase::Closing { .. } => {
                state.time_ms = state.time_ms.max(time_ms);
                let time_ms = state.time_ms;
                frame::encode_batch(&mut state.pending, time_ms, batch);
                let end = state.framed + state.pending.len() as u64;
                state.ends.push_back(end);
                if state.pending.len() >= PENDING_BYTES_MAX {
                    self.note_room(&state);
                }
            }
        }
        Sequence(self.tail.fetch_add(1, Ordering::SeqCst) + 1)
    }

    fn tail(&self) -> Sequence {
        Sequence(self.tail.load(Ordering::SeqCst))
    }

    fn written(&self) -> Sequence {
        Sequence(self.stored.load(Ordering::SeqCst))
    }

    fn durable(&self) -> Sequence {
        self.written()
    }

    fn write(&self, upto: Sequence) -> Result<(), Failure> {
        if self.written() >= upto && !self.has_failed() {
            return Ok(());
        }
        let mut state = self.state.lock();
        if let Some(failure) = StreamLog::failure_of(&state) {
            return Err(failure.clone());
        }
        self.send_next(&mut state);
        Ok(())
    }

    fn request_sync(&self) {}

    fn wait_durable(&self, upto: Sequence) -> Result<(), Failure> {
        self.write(upto)?;
        self.wait_until(|state| state.link.sequence >= upto)
    }

    fn watch(&self, notify: Box<dyn Fn() + Send + Sync>) {
        self.watchers.lock().push(notify.into());
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    fn failure(&self) -> Option<Failure> {
        StreamLog::failure_of(&self.state.lock()).cloned()
    }

    fn is_fenced_now(&self) -> bool {
        self.has_failed() && self.fenced_by().is_some()
    }

    fn may_answer(&self) -> bool {
        self.context.stream.now_ns() < self.lease_until_ns.load(Ordering::SeqCst)
    }

    fn lease_left(&self) -> Option<Duration> {
        let until_ns = self.lease_until_ns.load(Ordering::SeqCst);
        Some(Duration::from_nanos(until_ns.saturating_sub(self.context.stream.now_ns())))
    }

    fn has_room(&self) -> bool {
        self.has_room.load(Ordering::Relaxed)
    }

    fn close(&self) -> Result<(), Failure> {
        {
            let mut state = self.state.lock();
            if let Some(failure) = StreamLog::failure_of(&state) {
                return Err(failure.clone());
            }
            if let Phase::Open = state.phase {
                let successor = std::mem::take(&mut *self.context.successor.lock());
                state.phase = Phase::Closing { successor };
            }
            self.send_next(&mut state);
        }
        let began_ns = self.context.stream.now_ns();
        let is_late = |stream: &dyn crate::stream::Stream| stream.now_ns() > began_ns + CLOSES_WITHIN_NS;
        let is_over = |state: &State| StreamLog::failure_of(state).is_some() || is_late(&*self.context.stream);
        self.wait_until(is_over)?;
        match self.failure() {
            Some(Failure::Closed) => Ok(()),
            Some(failure) => Err(failure),
            None => {
                let late = io::Error::new(io::ErrorKind::TimedOut, "the stream does not answer");
                let failure = Failure::io(journal::Operation::Write, &self.context.name, &late);
                self.fail(&mut self.state.lock(), failure.clone());
                Err(failure)
            }
        }
    }
}

impl Maintenance for StreamLog {
    /// A log that has failed belongs to another writer, or is damaged: neither is mended by a new beginning here.
    fn restart(&self) -> Result<(), Failure> {
        match self.failure() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn accept(&self, _snapshot_min: Sequence) -> Result<(), Failure> {
        self.restart()
    }

    fn forget(&self, upto: Sequence) -> Result<(), Failure> {
        let kept = self.context.kept_from.load(Ordering::SeqCst);
        let mut state = self.state.lock();
        if let Some(failure) = StreamLog::failure_of(&state) {
            return Err(failure.clone());
        }
        StreamLog::forget_boundaries(&mut state, upto);
        state.bytes_since_forget = 0;
        drop(state);
        if kept > 0 {
            // If it is not done, the next one does it.
            self.context.stream.purge(kept, Box::new(|_| {}));
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.state.lock().bytes_since_forget
    }

    fn bytes_since_forget(&self) -> u64 {
        self.state.lock().bytes_since_forget
    }

    fn buffers(&self) -> Buffers {
        let state = self.state.lock();
        Buffers { unwritten_bytes: state.pending.len() as u64, memory_bytes: state.pending.capacity() as u64 }
    }

    fn sync_times(&self) -> Option<SyncTimes> {
        Some(self.frame_times.read())
    }
}

impl Tick for StreamLog {
    fn tick(&self) {
        let mut state = self.state.lock();
        state.gathering.waits = false;
        self.send_next(&mut state);
        drop(state);
        // Replies that wait for a lease, and a lease that has ended, are looked at.
        self.notify();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::World;
    use crate::testing::{OWN_MS, Process, ToldTime, next, store, take_snapshot};
    use journal::Sequence;

    #[test]
    fn a_frame_waits_for_those_that_come_together() {
        let mut gathering = Gathering::default();
        let wait_us = |gathering: &Gathering, after_us: u64, pending| {
            gathering.wait(2_000_000 + after_us * 1000, pending).map(|wait| wait.as_micros())
        };
        assert_eq!(wait_us(&gathering, 0, 1), None, "nothing is known");
        // A frame that has taken a millisecond, of 40 batches, while 24 others were pending.
        gathering.note_stored(2_000_000, 1_000_000, 40, 24);
        assert_eq!(wait_us(&gathering, 0, 24), Some(1000));
        assert_eq!(wait_us(&gathering, 700, 63), Some(300));
        assert_eq!(wait_us(&gathering, 700, 64), None, "all are there");
        assert_eq!(wait_us(&gathering, 1000, 63), None, "long enough");
        gathering.note_stored(2_000_000, 1_000_000, 8, 0);
        assert_eq!(wait_us(&gathering, 0, 7), Some(125));
        gathering.note_stored(2_000_000, 1_000_000, 1, 0);
        assert_eq!(wait_us(&gathering, 0, 1), None, "one does not wait for itself");
        // A log that is slow for a while.
        for _ in 0..100 {
            gathering.note_stored(2_000_000_000, 1_000_000_000, 100, 0);
        }
        assert_eq!(gathering.wait(2_000_000_000, 1), Some(Duration::from_nanos(GATHERING_NS_MAX)));
    }

    #[test]
    fn each_frame_is_timed_until_it_is_stored() {
        let world = World::new(1, 2, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        let times = || opened.maintenance.sync_times().expect("it has some");
        let before = times();
        store(&opened, b"one");
        let after = times();
        assert_eq!(after.count, before.count + 1);
        assert!(after.sum_ns > before.sum_ns, "{before:?}, {after:?}");
    }

    #[test]
    fn a_log_that_is_closed_takes_no_more_and_gives_up_its_lease() {
        let world = World::new(1, 2, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        store(&opened, b"one");
        assert!(opened.log.may_answer());
        let last = opened.log.append(b"two", OWN_MS);
        opened.log.close().unwrap();
        assert!(!opened.log.may_answer() && opened.log.durable() == last);
        assert!((opened.follow_on)().is_some());
        assert_eq!(opened.log.append(b"three", OWN_MS), Sequence::LOST);
        assert!((opened.follow_on)().is_none(), "it has a change that is nowhere");
        world.advance(Duration::from_secs(5));
        assert!(!opened.log.may_answer(), "it does not come back");
    }

    /// Regression: it went on while the release was on its way, and what it had seen expire came back with the next writer.
    #[test]
    fn the_time_of_a_writer_stops_before_it_gives_the_log_up() {
        let world = World::new(7, 1, 1000);
        let process = Process::begin(&world, 0, "a");
        let opened = process.write();
        let ceiling_ms = || match *process.time.0.lock() {
            ToldTime::Writes { ceiling_ms, .. } => ceiling_ms,
            other => panic!("{other:?}"),
        };
        assert_eq!(ceiling_ms(), OWN_MS + Timing::DEFAULT.lease_ms());
        opened.log.close().unwrap();
        assert_eq!(ceiling_ms(), OWN_MS + STOPS_AFTER_MS);
    }

    /// Regression: after a while in which nothing was stored, the time of the log was behind for one frame for each lease in it.
    #[test]
    fn the_time_of_the_log_catches_up_with_one_frame() {
        let world = World::new(8, 1, 1000);
        let process = Process::begin(&world, 0, "a");
        let _opened = process.write();
        process.time.1.store(60_000, Ordering::SeqCst);
        world.advance(Timing::DEFAULT.beat * 2);
        let ToldTime::Writes { ceiling_ms, .. } = *process.time.0.lock() else { panic!("it writes") };
        assert_eq!(ceiling_ms, OWN_MS + 60_000 + Timing::DEFAULT.lease_ms());
    }

    #[test]
    fn a_lease_ends_when_nothing_is_stored_and_comes_back_when_something_is() {
        let world = World::new(2, 1, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        world.advance(Duration::from_secs(10));
        assert!(opened.log.may_answer(), "beats renew it");
        world.cut_off(0, Duration::from_secs(4), false);
        world.advance(Duration::from_millis(3900));
        assert!(!opened.log.may_answer() && !opened.log.has_failed());
        world.advance(Duration::from_secs(3));
        assert!(opened.log.may_answer());
    }

    #[test]
    fn a_batch_that_is_larger_than_a_message_counts_when_its_last_piece_is_stored() {
        let world = World::new(3, 2, 300);
        let (writer, reader) = (Process::begin(&world, 0, "a"), Process::begin(&world, 1, "b"));
        let opened = writer.write();
        let mut follower = reader.follow();
        let large: Vec<u8> = (0..5000u32).map(|number| number as u8).collect();
        let number = opened.log.append(&large, OWN_MS);
        opened.log.write(number).unwrap();
        let mut waited = 0;
        while opened.log.durable() < number {
            assert!(world.epoch(1).unwrap().last <= number.0);
            world.advance(Duration::from_millis(1));
            waited += 1;
        }
        assert!(waited > 5 && world.extent().last > 20, "it has many pieces");
        assert_eq!(world.epoch(1).unwrap().last, number.0);
        assert_eq!(next(&mut *follower), large);
    }

    #[test]
    fn a_snapshot_begins_behind_a_frame_that_ends_with_a_whole_batch() {
        let world = World::new(4, 2, 300);
        let opened = Process::begin(&world, 0, "a").write();
        store(&opened, b"small");
        let log = opened.log.clone();
        let before = log.durable();
        let number = log.append(&[7; 2000], OWN_MS);
        log.write(number).unwrap();
        while world.extent().last < 5 {
            world.advance(Duration::from_millis(1));
        }
        assert_eq!(log.durable(), before, "in the middle of a batch");
        let info = take_snapshot(&opened, b"both");
        assert_eq!((info.min, info.max), (number, number));
        store(&opened, b"later");
        let reader = Process::begin(&world, 1, "b");
        let mut reading = journal::LogPlace::read_live(&reader.place).unwrap();
        assert_eq!(reading.next_part().unwrap().unwrap().payload, b"both");
        assert!(reading.next_part().unwrap().is_none());
        let mut found = Vec::new();
        while let Some(batch) = reading.next_batch().unwrap() {
            found.push((batch.sequence.0, batch.payload.to_vec()));
        }
        // What the snapshot has may be read again, but only whole.
        assert_eq!(found.last().unwrap(), &(number.0 + 1, b"later".to_vec()));
    }

    #[test]
    fn a_log_has_no_room_while_too_much_waits() {
        let world = World::new(5, 1, 16 * 1024 * 1024);
        let opened = Process::begin(&world, 0, "a").write();
        opened.log.append(&vec![1; PENDING_BYTES_MAX - 100], OWN_MS);
        assert!(opened.log.has_room());
        let last = opened.log.append(&[2; 200], OWN_MS);
        assert!(!opened.log.has_room());
        opened.log.wait_durable(last).unwrap();
        assert!(opened.log.has_room());
    }

    #[test]
    fn a_writer_that_was_fenced_stores_nothing_more() {
        let world = World::new(6, 2, 1000);
        let (first, second) = (Process::begin(&world, 0, "a"), Process::begin(&world, 1, "b"));
        let old = first.write();
        store(&old, b"one");
        let new = second.write();
        let number = old.log.append(b"two", OWN_MS);
        let failure = old.log.wait_durable(number).unwrap_err();
        assert!(matches!(failure, Failure::Fenced { own: Epoch(1), by: Epoch(2) }), "{failure}");
        assert!(!old.log.may_answer() && old.log.durable() == Sequence(1));
        store(&new, b"three");
        assert_eq!(world.last_batch(), 2);
    }
}
