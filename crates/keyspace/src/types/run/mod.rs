//! Runs: append-only logs of events, each with a number and an idempotency key, and a snapshot that is kept at every
//! append. Knows events and what they come to; refuses to know commands.
//!
//! The events of a run have the numbers 1, 2, 3… without a gap, times that do not go back, and each key once.

mod change;
mod event;
mod image;
mod keys;
mod log;
mod pages;
mod snapshot;

pub use change::Change;
pub use event::{Event, EventId, KnownType, NewEvent, PARTS, PackedKey, Part, Text, uuid_text};
pub use log::Numbered;
pub use snapshot::{RunStatus, SnapshotRef, StepRef, StepStatus};

use super::{Entry, Object, ValueType};
use keys::Keys;
use log::{At, Log};
use snapshot::Snapshot;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the rest of the server needs to know of runs.
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
    to_redis: image::to_redis,
    digest: image::digest,
};

/// A run of more is freed in the background.
const FREED_AT_ONCE_CHUNKS_MAX: usize = 64;
const FREED_AT_ONCE_BYTES_MAX: u64 = 1024 * 1024;

/// The most events of a run.
pub const EVENTS_MAX: u64 = u32::MAX as u64;
/// The latest time: what a reply can show as an integer.
pub const TIME_MAX_MS: u64 = i64::MAX as u64;

/// The run that an entry of a run holds.
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

/// A run. It has an event.
pub struct Run {
    /// No other run of this process has it.
    birth: u64,
    log: Log,
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
        Run { birth: next_birth(), log: Log::new(), keys: Keys::default(), snapshot: Snapshot::default() }
    }

    /// Tells it from every other run that was at its key before, or will be.
    #[inline]
    pub fn birth(&self) -> u64 {
        self.birth
    }

    /// How many events it has, which is the number of the last.
    #[inline]
    pub fn len(&self) -> u64 {
        self.log.count().into()
    }

    /// Never: a run has an event.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The time of the last event.
    #[inline]
    pub fn last_ms(&self) -> u64 {
        self.log.last_ms()
    }

    /// The bytes that its events take.
    pub fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    #[inline]
    pub fn status(&self) -> RunStatus {
        self.snapshot.status()
    }

    /// The event of that key.
    #[inline]
    pub fn with_key(&self, key: &PackedKey<'_>) -> Option<Numbered<'_>> {
        let has_key = |number, at| self.numbered(number, at).is_some_and(|found| found.event.has_key(key));
        self.keys.find(key.hash(), has_key).and_then(|(number, at)| self.numbered(number, at))
    }

    /// The event of that number, from 0 on, which lies there if that is known.
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

    /// The event of that number.
    pub fn get(&self, number: u64) -> Option<Numbered<'_>> {
        self.log.get(number)
    }

    /// The events behind that number, in order.
    pub fn after(&self, number: u64) -> impl Iterator<Item = Numbered<'_>> {
        self.log.after(number).map(|(_, event)| event)
    }

    /// The snapshot that is kept.
    pub fn snapshot(&self) -> SnapshotRef<'_> {
        SnapshotRef { log: &self.log, snapshot: &self.snapshot }
    }

    /// The snapshot that is kept, as a replay that knows all events. It can be read, and not gone on with.
    pub fn kept(&self) -> Replay {
        Replay(self.snapshot.without_names())
    }

    /// Replays more events into a replay of this run: those behind the ones that a replay knows, no more than `count`, and none behind `upto`.
    pub fn replay(&self, replay: &mut Replay, upto: u64, count: usize) {
        let known = replay.0.last.into();
        let events = self.log.after(known).take(count);
        for (at, event) in events.take_while(|(_, event)| event.number <= upto) {
            replay.0.add(&self.log, at, &event);
        }
    }

    /// What a replay came to.
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

    /// Appends an event; false, and nothing is changed, when its key is known.
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

/// A snapshot that is made anew from the first event on, some events at a time.
#[derive(Default)]
pub struct Replay(Snapshot);

impl Replay {
    /// The number of the last event that it knows.
    pub fn last(&self) -> u64 {
        self.0.last.into()
    }
}

#[cfg(test)]
mod tests;
