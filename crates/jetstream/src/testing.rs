//! What unit tests use in place of a stream and a clock. [`Script`] answers when a test says so; [`Process`] is a process of
//! a simulated world. Refuses to know what is tested.

use crate::frame::{LogId, Position};
use crate::lease::Timing;
use crate::mark::Mark;
use crate::objects::Objects;
use crate::place::{Membership, StreamPlace};
use crate::simulation::{SimulatedObjects, SimulatedStream, World};
use crate::stream::{Answer, Appended, Extent, Found, Receive, Stream, Tick, Time};
use bytes::Bytes;
use journal::{Follow, Followed, Follower, LogPlace, OpenedLog, RecoveryError, SnapshotInfo, Stamp};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub(crate) const LOG: LogId = LogId(7);

/// A stream whose answers a test gives.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) now_ns: AtomicU64,
    pub(crate) appends: Mutex<VecDeque<(Position, Bytes, Answer<Appended>)>>,
    pub(crate) reads: Mutex<VecDeque<(Position, Answer<Found>)>>,
    ticking: Mutex<Vec<Weak<dyn Tick>>>,
}

impl Script {
    /// Lets time pass, with one tick at its end.
    pub(crate) fn pass(&self, time: Duration) {
        self.now_ns.fetch_add(time.as_nanos() as u64, Ordering::SeqCst);
        let ticking = self.ticking.lock().clone();
        ticking.iter().filter_map(Weak::upgrade).for_each(|ticking| ticking.tick());
    }

    /// The oldest append without an answer.
    pub(crate) fn append(&self) -> (Position, Bytes, Answer<Appended>) {
        self.appends.lock().pop_front().expect("a frame was sent")
    }

    /// Answers the oldest append that has none.
    pub(crate) fn answer(&self, appended: Appended) {
        let (_, _, answer) = self.append();
        answer(Ok(appended));
    }

    /// Answers the oldest read that has no answer.
    pub(crate) fn find(&self, found: Found) {
        let (_, answer) = self.reads.lock().pop_front().expect("a position was read");
        answer(Ok(found));
    }
}

impl Stream for Script {
    fn append(&self, last: Position, message: Bytes, answer: Answer<Appended>) {
        self.appends.lock().push_back((last, message, answer));
    }

    fn read(&self, position: Position, answer: Answer<Found>) {
        self.reads.lock().push_back((position, answer));
    }

    fn extent(&self, _: Answer<Extent>) {}

    fn purge(&self, _: Position, _: Answer<()>) {}

    fn follow(&self, _: Position, _: Weak<dyn Receive>) -> Box<dyn Send> {
        Box::new(())
    }

    fn message_max(&self) -> usize {
        1000
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }

    fn tick(&self, ticking: Weak<dyn Tick>) {
        self.ticking.lock().push(ticking);
    }

    fn pause(&self) {
        panic!("nothing waits here");
    }
}

/// A clock that says what it was last told, and how far the machine's own is ahead of [`OWN_MS`].
#[derive(Default)]
pub(crate) struct Told(pub(crate) Mutex<ToldTime>, pub(crate) AtomicU64);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ToldTime {
    #[default]
    Nothing,
    Follows(u64),
    Writes {
        floor_ms: u64,
        ceiling_ms: u64,
    },
}

/// What the calendar of every machine says.
pub(crate) const OWN_MS: u64 = 1_000_000;

impl Time for Told {
    fn now_ms(&self) -> u64 {
        match *self.0.lock() {
            ToldTime::Nothing => OWN_MS,
            ToldTime::Follows(time_ms) => time_ms,
            ToldTime::Writes { floor_ms, .. } => floor_ms,
        }
    }

    fn own_ms(&self) -> u64 {
        OWN_MS + self.1.load(Ordering::SeqCst)
    }

    fn follow(&self, time_ms: u64) {
        *self.0.lock() = ToldTime::Follows(time_ms);
    }

    fn begin(&self, floor_ms: u64, ceiling_ms: u64) {
        *self.0.lock() = ToldTime::Writes { floor_ms, ceiling_ms };
    }

    fn allow(&self, ceiling_ms: u64) {
        if let ToldTime::Writes { ceiling_ms: known, .. } = &mut *self.0.lock() {
            *known = ceiling_ms;
        }
    }
}

/// A process that uses a log on a simulated stream.
pub(crate) struct Process {
    pub(crate) world: Arc<World>,
    pub(crate) place: StreamPlace,
    pub(crate) time: Arc<Told>,
}

impl Process {
    /// Begins on a machine, as the member of that name.
    pub(crate) fn begin(world: &Arc<World>, machine: usize, member: &str) -> Process {
        Process::begin_with(world, machine, member, &[], None, |objects| objects)
    }

    /// Like `begin`, and passes over these messages, but not where it remembers a frame.
    pub(crate) fn begin_skipping(
        world: &Arc<World>,
        machine: usize,
        member: &str,
        skip: &[Position],
        known: Option<Mark>,
    ) -> Process {
        Process::begin_with(world, machine, member, skip, known, |objects| objects)
    }

    /// Like `begin`, with another way to reach the objects.
    pub(crate) fn begin_with(
        world: &Arc<World>,
        machine: usize,
        member: &str,
        skip: &[Position],
        known: Option<Mark>,
        objects: impl FnOnce(Arc<dyn Objects>) -> Arc<dyn Objects>,
    ) -> Process {
        let (stream, time) = (SimulatedStream::begin(world, machine), Arc::new(Told::default()));
        let membership = Membership {
            known,
            skip: skip.iter().copied().collect(),
            name: "test".into(),
            log: LOG,
            partition: 0,
            member: member.into(),
            address: "127.0.0.1 1".into(),
            timing: Timing::DEFAULT,
        };
        let place = StreamPlace::new(membership, stream.clone(), objects(SimulatedObjects::of(&stream)), time.clone());
        Process { world: world.clone(), place, time }
    }

    /// Writes from now on.
    pub(crate) fn write(&self) -> OpenedLog {
        self.place.read_live().and_then(|reading| reading.into_log()).expect("it can be written")
    }

    /// Follows from now on, behind all that is stored.
    pub(crate) fn follow(&self) -> Box<dyn Follower> {
        self.try_follow().expect("it can be followed")
    }

    pub(crate) fn try_follow(&self) -> Result<Box<dyn Follower>, RecoveryError> {
        let mut reading = self.place.read_live()?;
        while reading.next_batch()?.is_some() {}
        reading.into_follower()
    }

    /// Lets time pass while a follower looks for more. Returns what it finds.
    pub(crate) fn pass(&self, follower: &mut dyn Follower, time: Duration) -> Vec<Vec<u8>> {
        let until = self.world.now() + time;
        let mut found = Vec::new();
        while self.world.now() < until {
            self.world.advance(Duration::from_millis(5));
            while let Some(batch) = follower.try_next().expect("it can be followed") {
                found.push(batch.payload);
            }
        }
        found
    }
}

/// Appends a batch, and waits until it is stored.
pub(crate) fn store(opened: &OpenedLog, batch: &[u8]) {
    let number = opened.log.append(batch, OWN_MS);
    opened.log.wait_durable(number).expect("it is stored");
}

/// Takes a snapshot that has all batches so far, and removes what it replaces.
pub(crate) fn take_snapshot(opened: &OpenedLog, payload: &[u8]) -> SnapshotInfo {
    let mut writer = opened.snapshots.create(b"meta", OWN_MS).expect("it can be begun");
    let stamp = Stamp { shard: 0, end: 1, sequence: opened.log.tail() };
    writer.part(stamp, payload, 1).expect("it can be written");
    let info = writer.finish(&*opened.log).expect("it can be finished");
    opened.snapshots.remove_older(&info).expect("others can be removed");
    opened.maintenance.forget(info.min).expect("the log can be purged");
    info
}

/// The next batch; waits for it.
pub(crate) fn next(follower: &mut dyn Follow) -> Vec<u8> {
    match follower.next().expect("it can be followed") {
        Followed::Batch(batch) => batch.payload,
        other => panic!("{other:?}"),
    }
}
