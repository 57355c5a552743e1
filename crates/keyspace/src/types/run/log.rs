//! The events of a run, first to last. Knows their layout; refuses to know what they mean.
//!
//! Events are appended to *chunks* of a few kilobytes, so that an append costs the same however long the run is and
//! little memory is unused. In a chunk, each event is
//!
//! ```text
//! number   milliseconds since the first event of the chunk
//! bytes    the event: see `event`
//! ```

use super::event::Event;
use super::pages::Pages;
use crate::encoding::{Reader, put_bytes, put_number};
use crate::storage::prefetch::prefetch_at;
use crate::storage::size_class::size_class;
use std::num::NonZeroU16;

/// The most bytes of a chunk, unless it has one event: events in it are searched one by one.
const CHUNK_BYTES: usize = 4096;
/// The most bytes of an event in addition to its own.
const HEAD_BYTES_MAX: usize = 20;
/// How much of the next event is prefetched.
const NEXT_BYTES_LIKELY: usize = 128;

/// The events of a run, at least one.
#[derive(Clone)]
pub(super) struct EventLog {
    last: Chunk,
    /// The chunks before the last.
    full: Pages<Chunk>,
    count: u32,
    last_ms: u64,
    /// The bytes of all chunks.
    bytes: u64,
}

#[derive(Clone, Default)]
struct Chunk {
    /// The number of events before it.
    before: u32,
    /// The time of its first event.
    first_ms: u64,
    events: Vec<u8>,
}

/// The position of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    chunk: u32,
    /// Its offset plus one; the offset is below `CHUNK_BYTES`, because a chunk that has reached that is full. Never 0,
    /// so that an [`Option`] of it takes no more space.
    behind: NonZeroU16,
}

impl At {
    #[inline]
    fn new(chunk: usize, offset: usize) -> At {
        At { chunk: chunk as u32, behind: NonZeroU16::MIN.saturating_add(offset as u16) }
    }

    #[inline]
    fn offset(self) -> usize {
        usize::from(self.behind.get() - 1)
    }
}

/// An event with its number and its time.
#[derive(Clone, Copy, Debug)]
pub struct Numbered<'a> {
    /// From 1 on.
    pub number: u64,
    /// When it was appended, in unix milliseconds.
    pub time_ms: u64,
    pub event: Event<'a>,
}

impl EventLog {
    pub(super) fn new() -> EventLog {
        EventLog { last: Chunk::default(), full: Pages::default(), count: 0, last_ms: 0, bytes: 0 }
    }

    /// The number of events, which is the number of the last one.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The time of the last event.
    #[inline]
    pub(super) fn last_ms(&self) -> u64 {
        self.last_ms
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends an event, which is not earlier than the last one. Returns its position.
    pub(super) fn push(&mut self, time_ms: u64, event: &[u8]) -> At {
        let needed = event.len() + HEAD_BYTES_MAX;
        let events = &self.last.events;
        if !events.is_empty() && events.len() + needed > CHUNK_BYTES {
            let next = Chunk { before: self.count, first_ms: time_ms, events: Vec::new() };
            let mut full = std::mem::replace(&mut self.last, next);
            full.events.shrink_to_fit();
            self.full.push(full);
        }
        if self.count == 0 {
            self.last.first_ms = time_ms;
        }
        let at = At::new(self.full.len(), self.last.events.len());
        self.last.make_room(needed);
        let events = &mut self.last.events;
        let before = events.len();
        put_number(time_ms - self.last.first_ms, events);
        put_bytes(event, events);
        self.bytes += (events.len() - before) as u64;
        self.count += 1;
        self.last_ms = time_ms;
        at
    }

    /// Prefetches where the next event will be written.
    #[inline]
    pub(super) fn prefetch_end(&self) {
        let events = &self.last.events;
        prefetch_at(events.as_ptr().wrapping_add(events.len()), NEXT_BYTES_LIKELY);
    }

    fn chunk(&self, at: usize) -> Option<&Chunk> {
        match at == self.full.len() {
            true => Some(&self.last),
            false => self.full.get(at),
        }
    }

    /// The event at a position, and its time.
    #[inline]
    pub(super) fn at(&self, at: At) -> (u64, Event<'_>) {
        let chunk = self.chunk(at.chunk as usize).expect("an event lies in a chunk");
        let mut rest = Reader::new(&chunk.events[at.offset()..]);
        let (since_ms, event) = next_event(&mut rest);
        (chunk.first_ms + since_ms, Event::read(event))
    }

    /// The event with this number.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<Numbered<'_>> {
        self.after(number.checked_sub(1)?).next().map(|(_, event)| event)
    }

    /// The events after this number, in order, with their positions.
    pub(super) fn after(&self, number: u64) -> Events<'_> {
        if number >= u64::from(self.count) {
            return Events { log: self, chunk: self.full.len() + 1, rest: Reader::default(), number: 0, first_ms: 0 };
        }
        let chunk = match u64::from(self.last.before) <= number {
            true => self.full.len(),
            false => self.full.partition_point(|chunk| u64::from(chunk.before) <= number) - 1,
        };
        let mut events = Events::from_chunk(self, chunk);
        while events.number < number {
            next_event(&mut events.rest);
            events.number += 1;
        }
        events
    }

    /// Heap bytes, estimated from `samples` chunks.
    pub(super) fn heap_bytes(&self, samples: usize) -> usize {
        let bytes_of = |chunk: &Chunk| size_class(chunk.events.capacity());
        let looked_at = self.full.len().min(samples.max(1));
        let bytes: usize = self.full.iter().take(looked_at).map(bytes_of).sum();
        bytes_of(&self.last) + self.full.heap_bytes() + bytes * self.full.len() / looked_at.max(1)
    }

    pub(super) fn chunks(&self) -> usize {
        self.full.len() + 1
    }
}

impl Chunk {
    /// Makes room for `needed` more bytes. It grows by a quarter at a time: there are many runs, and most are short.
    #[inline]
    fn make_room(&mut self, needed: usize) {
        let len = self.events.len();
        if self.events.capacity() - len < needed {
            let wanted = size_class(len + needed + len / 4).min(CHUNK_BYTES.max(len + needed));
            self.events.reserve_exact(wanted - len);
        }
    }
}

/// Reads an event from a chunk: the time since the first one, and its bytes.
#[inline]
fn next_event<'a>(reader: &mut Reader<'a>) -> (u64, &'a [u8]) {
    const WRITTEN_HERE: &str = "a chunk holds whole events";
    (reader.number().expect(WRITTEN_HERE), reader.bytes().expect(WRITTEN_HERE))
}

/// Events of a run in their order.
#[derive(Clone)]
pub(super) struct Events<'a> {
    log: &'a EventLog,
    chunk: usize,
    /// The rest of the chunk.
    rest: Reader<'a>,
    /// The number of the previous event.
    number: u64,
    /// The time of the chunk's first event.
    first_ms: u64,
}

impl<'a> Events<'a> {
    fn from_chunk(log: &'a EventLog, chunk: usize) -> Events<'a> {
        match log.chunk(chunk) {
            Some(found) => Events {
                log,
                chunk,
                rest: Reader::new(&found.events),
                number: found.before.into(),
                first_ms: found.first_ms,
            },
            None => Events { log, chunk, rest: Reader::default(), number: 0, first_ms: 0 },
        }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = (At, Numbered<'a>);

    #[inline]
    fn next(&mut self) -> Option<(At, Numbered<'a>)> {
        if self.rest.is_empty() {
            *self = Events::from_chunk(self.log, self.chunk + 1);
            if self.rest.is_empty() {
                return None;
            }
        }
        let whole = self.log.chunk(self.chunk)?.events.len();
        let at = At::new(self.chunk, whole - self.rest.rest().len());
        let (since_ms, event) = next_event(&mut self.rest);
        self.number += 1;
        let time_ms = self.first_ms + since_ms;
        Some((at, Numbered { number: self.number, time_ms, event: Event::read(event) }))
    }
}
