//! Runs: append-only logs of events, each with a number and an idempotency key, and a snapshot that every append
//! updates. Knows events and the snapshot; refuses to know commands.
//!
//! The events of a run have the numbers 1, 2, 3… without a gap, times that do not decrease, and unique keys.

mod change;
mod event;
mod image;
mod keys;
mod log;
mod pages;
mod snapshot;

pub use change::Change;
pub use event::{
    EVENT_FIELDS, Event, EventField, EventId, KnownType, NewEvent, PackedKey, Text, put_attributes, uuid_text,
};
pub use log::Numbered;
pub use snapshot::{RunStatus, SnapshotRef, StepRef, StepStatus};

use super::{Entry, Object, ValueType};
use keys::Keys;
use log::{At, EventLog};
use snapshot::Snapshot;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The row of runs.
pub static TYPE: ValueType = ValueType {
    tag: 6,
    name: "run",
    redis_number: 106,
    event_letter: 'd',
    is_own: true,
    is_bound: false,
    name_error: |_| None,
    encoding: |_| "run",
    elements: |entry, _| run(entry).len() as usize,
    heap_bytes: |object, samples| run_of(object).map_or(0, |run| run.heap_bytes(samples)),
    is_freed_later: |object| {
        run_of(object)
            .is_some_and(|run| run.log.chunks() > FREED_AT_ONCE_CHUNKS_MAX || run.log.bytes() > FREED_AT_ONCE_BYTES_MAX)
    },
    write_image: image::write,
    check_image: image::check,
    read_image: image::read,
    release: None,
    element_expiry: None,
    to_redis: image::to_redis,
    digest: image::digest,
};

/// A run with more chunks is freed in the background.
const FREED_AT_ONCE_CHUNKS_MAX: usize = 64;
const FREED_AT_ONCE_BYTES_MAX: u64 = 1024 * 1024;

/// The most events of a run.
pub const EVENTS_MAX: u64 = u32::MAX as u64;
/// The latest time that a reply can show as an integer.
pub const TIME_MAX_MS: u64 = i64::MAX as u64;

/// The run in an entry.
#[inline]
pub fn run(entry: &Entry) -> &Run {
    entry.object().and_then(run_of).expect("the entry holds a run")
}

#[inline]
fn run_of(object: &Object) -> Option<&Run> {
    match object {
        Object::Run(run) => Some(run),
        _ => None,
    }
}

/// A run, with at least one event.
pub struct Run {
    /// Unique among the runs of this process.
    birth: u64,
    log: EventLog,
    keys: Keys<At>,
    snapshot: Snapshot,
}

impl Clone for Run {
    fn clone(&self) -> Run {
        let Run { birth: _, log, keys, snapshot } = self;
        Run { birth: next_birth(), log: log.clone(), keys: keys.clone(), snapshot: snapshot.clone() }
    }
}

fn next_birth() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl Run {
    fn new() -> Run {
        Run { birth: next_birth(), log: EventLog::new(), keys: Keys::default(), snapshot: Snapshot::default() }
    }

    /// Distinguishes it from every other run that was or will be at its key.
    #[inline]
    pub fn birth(&self) -> u64 {
        self.birth
    }

    /// The number of events, which is the number of the last one.
    #[inline]
    pub fn len(&self) -> u64 {
        self.log.count().into()
    }

    /// Always false: a run has at least one event.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The time of the last event.
    #[inline]
    pub fn last_ms(&self) -> u64 {
        self.log.last_ms()
    }

    /// The bytes of its events.
    pub fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    #[inline]
    pub fn status(&self) -> RunStatus {
        self.snapshot.status()
    }

    /// The event with this key.
    #[inline]
    pub fn with_key(&self, key: &PackedKey<'_>) -> Option<Numbered<'_>> {
        let has_key = |number, at| self.numbered(number, at).is_some_and(|found| found.event.has_key(key));
        self.keys.find(key.hash(), has_key).and_then(|(number, at)| self.numbered(number, at))
    }

    /// The event with this number, from 0 on, at a position if that is known.
    #[inline]
    fn numbered(&self, number: u32, at: Option<At>) -> Option<Numbered<'_>> {
        let number = u64::from(number) + 1;
        match at {
            None => self.log.get(number),
            Some(at) => {
                let (time_ms, event) = self.log.at(at);
                Some(Numbered { number, time_ms, event })
            }
        }
    }

    /// The event with this number.
    pub fn get(&self, number: u64) -> Option<Numbered<'_>> {
        self.log.get(number)
    }

    /// The events after this number, in order.
    pub fn after(&self, number: u64) -> impl Iterator<Item = Numbered<'_>> {
        self.log.after(number).map(|(_, event)| event)
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> SnapshotRef<'_> {
        SnapshotRef { log: &self.log, snapshot: &self.snapshot }
    }

    /// The current snapshot as a replay of all events. It can be read but not continued.
    pub fn kept(&self) -> Replay {
        Replay(self.snapshot.without_names())
    }

    /// Continues a replay of this run: replays at most `count` of the next events, none after `upto`.
    pub fn replay(&self, replay: &mut Replay, upto: u64, count: usize) {
        let known = replay.0.last.into();
        let events = self.log.after(known).take(count);
        for (at, event) in events.take_while(|(_, event)| event.number <= upto) {
            replay.0.add(&self.log, at, &event);
        }
    }

    /// The result of a replay.
    pub fn replayed<'a>(&'a self, replay: &'a Replay) -> SnapshotRef<'a> {
        SnapshotRef { log: &self.log, snapshot: &replay.0 }
    }

    /// Prefetches what an append will touch behind the run itself.
    #[inline]
    pub fn prefetch_append(&self) {
        self.log.prefetch_end();
        self.keys.prefetch();
    }

    fn heap_bytes(&self, samples: usize) -> usize {
        self.log.heap_bytes(samples) + self.keys.heap_bytes() + self.snapshot.heap_bytes()
    }

    /// Appends an event; returns false, with nothing changed, when its key exists.
    fn push(&mut self, time_ms: u64, bytes: &[u8]) -> bool {
        let event = Event::read(bytes);
        let hash = event.key_hash();
        let has_key = |number, at| self.numbered(number, at).is_some_and(|found| found.event.has_key_of(&event));
        if self.keys.find(hash, has_key).is_some() {
            return false;
        }
        let at = self.log.push(time_ms, bytes);
        self.keys.push(hash, at, self.log.after(0).map(|(at, _)| at));
        self.snapshot.add(&self.log, at, &Numbered { number: self.log.count().into(), time_ms, event });
        true
    }
}

/// A snapshot that is recomputed from the first event on, some events at a time.
#[derive(Default)]
pub struct Replay(Snapshot);

impl Replay {
    /// The number of the last event in it.
    pub fn last(&self) -> u64 {
        self.0.last.into()
    }
}

#[cfg(test)]
mod tests;
