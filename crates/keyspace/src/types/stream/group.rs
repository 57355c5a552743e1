//! A consumer group: how far it has read, and the pending entries of its consumers. Refuses to know the entries
//! themselves.

use super::id::StreamId;
use super::order::{ByTime, Released};
use crate::storage::size_class::size_class;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// A consumer group.
#[derive(Clone, Default)]
pub struct Group {
    /// The last entry that was delivered.
    pub last: StreamId,
    /// The number of entries that were read, if it is known.
    pub entries_read: Option<u64>,
    pending: BTreeMap<StreamId, Pending>,
    /// The number of each consumer, by name.
    names: BTreeMap<Arc<[u8]>, u32>,
    /// Consumers by their number.
    consumers: Vec<Option<Consumer>>,
    /// Pending entries without a consumer; `None` when there was none yet.
    released: Option<Box<Released>>,
    /// The others by time, once one was claimed by its age.
    by_time: Option<Box<ByTime>>,
}

/// A pending entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Unix milliseconds of its last delivery.
    pub delivered_ms: i64,
    /// The number of deliveries, saturating. Many entries may be pending, so it is 32 bits.
    deliveries: u32,
    /// The number of its consumer, or [`NO_CONSUMER`].
    consumer: u32,
}

/// In place of the number of a consumer: the entry was released.
const NO_CONSUMER: u32 = u32::MAX;

/// The largest number of deliveries, which says that an entry cannot be processed.
pub const DELIVERIES_MAX: u64 = i64::MAX as u64;

impl Pending {
    /// How often it was delivered. More than fit are [`DELIVERIES_MAX`].
    pub fn deliveries(&self) -> u64 {
        match self.deliveries {
            u32::MAX => DELIVERIES_MAX,
            deliveries => deliveries.into(),
        }
    }

    /// True when its consumer has released it.
    pub fn is_released(&self) -> bool {
        self.consumer == NO_CONSUMER
    }
}

/// An entry, its last delivery time, and the number of its deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub id: StreamId,
    pub delivered_ms: i64,
    pub deliveries: u64,
}

/// A consumer of a group.
#[derive(Clone)]
pub struct Consumer {
    name: Arc<[u8]>,
    seen: Seen,
    /// Unix milliseconds at which it last got some; [`NEVER_ACTIVE`] if it never has.
    active_ms: i64,
    pending: BTreeSet<StreamId>,
}

/// Unix milliseconds at which a consumer last asked for entries. A consumer that asks again and again and gets none must
/// not make the journal grow each time. So the latest time is kept beside the one in the journal, which follows it at a
/// distance of less than [`SEEN_LAG_MAX_MS`].
struct Seen {
    journalled_ms: i64,
    latest_ms: AtomicI64,
}

/// How much later than its journal says a consumer may have asked for entries. After a start its idle time may be that
/// much too long.
pub const SEEN_LAG_MAX_MS: u64 = 10_000;

impl Seen {
    fn at(ms: i64) -> Seen {
        Seen { journalled_ms: ms, latest_ms: AtomicI64::new(ms) }
    }
}

impl Clone for Seen {
    fn clone(&self) -> Seen {
        Seen { journalled_ms: self.journalled_ms, latest_ms: AtomicI64::new(self.latest_ms.load(Relaxed)) }
    }
}

/// When a consumer was active that never got an entry.
pub const NEVER_ACTIVE: i64 = -1;

impl Consumer {
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Unix milliseconds at which it last asked for entries.
    pub fn seen_ms(&self) -> i64 {
        self.seen.latest_ms.load(Relaxed)
    }

    /// The time at which it last asked for entries, as the journal and images have it.
    pub fn journalled_seen_ms(&self) -> i64 {
        self.seen.journalled_ms
    }

    /// Notes that it has asked for entries. False, with nothing noted, when the time must be journalled: see
    /// [`Change::See`].
    ///
    /// [`Change::See`]: super::Change::See
    pub fn note_seen(&self, at_ms: i64) -> bool {
        let is_near = at_ms.abs_diff(self.seen.journalled_ms) < SEEN_LAG_MAX_MS;
        if is_near {
            self.seen.latest_ms.store(at_ms, Relaxed);
        }
        is_near
    }

    /// Unix milliseconds at which it last got entries that are pending for it; [`NEVER_ACTIVE`] if it never has.
    pub fn active_ms(&self) -> i64 {
        self.active_ms
    }

    /// How many entries are pending.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// True when no entry is pending.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The entries that are pending, in order.
    pub fn pending(&self, ids: impl RangeBounds<StreamId>) -> impl Iterator<Item = StreamId> {
        self.pending.range(ids).copied()
    }
}

impl Group {
    pub(super) fn new(last: StreamId, entries_read: Option<u64>) -> Group {
        Group { last, entries_read, ..Group::default() }
    }

    /// How many entries are pending.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// True when no entry is pending.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The pending state of an entry.
    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// The entries that are pending, in order.
    pub fn pending(&self, ids: impl RangeBounds<StreamId>) -> impl DoubleEndedIterator<Item = (StreamId, &Pending)> {
        self.pending.range(ids).map(|(id, pending)| (*id, pending))
    }

    /// The name of the consumer that an entry was delivered to; empty when it has released it.
    pub fn owner_of(&self, pending: &Pending) -> &[u8] {
        match pending.is_released() {
            true => b"",
            false => self.consumers[pending.consumer as usize].as_ref().expect("a pending entry has a consumer").name(),
        }
    }

    /// How many pending entries were released.
    pub fn released_len(&self) -> usize {
        self.released.as_ref().map_or(0, |released| released.len())
    }

    /// The pending entries that were released, in the order in which they were.
    pub fn released(&self) -> impl Iterator<Item = StreamId> {
        self.released.iter().flat_map(|released| released.ids())
    }

    /// True when the group knows in which order its pending entries can be claimed: see [`Change::Order`].
    ///
    /// [`Change::Order`]: super::Change::Order
    pub fn is_ordered(&self) -> bool {
        self.by_time.is_some()
    }

    /// The pending entries that were delivered up to that time, in the order in which they are claimed: those that were
    /// released first. The group is ordered.
    pub fn claimable(&self, upto_ms: i64) -> impl Iterator<Item = (StreamId, &Pending)> {
        let by_time = self.by_time.iter().flat_map(move |by_time| by_time.upto(upto_ms));
        self.released().chain(by_time).filter_map(|id| Some((id, self.get(id)?)))
    }

    /// The consumer of that name.
    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.names.get(name).and_then(|number| self.consumers[*number as usize].as_ref())
    }

    /// The consumers in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.names.values().map(|number| self.consumers[*number as usize].as_ref().expect("a name has a consumer"))
    }

    /// Creates a consumer; false when it exists.
    pub(super) fn create_consumer(&mut self, name: &[u8], seen_ms: i64, active_ms: i64) -> bool {
        if self.names.contains_key(name) {
            return false;
        }
        let name: Arc<[u8]> = name.into();
        let consumer = Consumer { name: name.clone(), seen: Seen::at(seen_ms), active_ms, pending: BTreeSet::new() };
        let number =
            match self.consumers.iter().position(Option::is_none).filter(|_| self.names.len() < self.consumers.len()) {
                Some(free) => free,
                None => {
                    self.consumers.push(None);
                    self.consumers.len() - 1
                }
            };
        self.consumers[number] = Some(consumer);
        self.names.insert(name, number as u32);
        true
    }

    /// Removes a consumer and its pending entries; false when it does not exist.
    pub(super) fn delete_consumer(&mut self, name: &[u8]) -> bool {
        let Some(number) = self.names.remove(name) else { return false };
        if let Some(consumer) = self.consumers[number as usize].take() {
            for id in &consumer.pending {
                let before = self.pending.remove(id);
                if let (Some(by_time), Some(before)) = (&mut self.by_time, before) {
                    by_time.remove(before.delivered_ms, *id);
                }
            }
        }
        true
    }

    /// Records when a consumer was seen; returns its number, if it exists.
    pub(super) fn see(&mut self, name: &[u8], seen_ms: i64) -> Option<u32> {
        let number = *self.names.get(name)?;
        if let Some(consumer) = &mut self.consumers[number as usize] {
            consumer.seen = Seen::at(seen_ms);
        }
        Some(number)
    }

    /// Records when a consumer got entries.
    pub(super) fn note_active(&mut self, consumer: u32, active_ms: i64) {
        if let Some(consumer) = &mut self.consumers[consumer as usize] {
            consumer.active_ms = active_ms;
        }
    }

    /// Makes an entry pending for that consumer only.
    pub(super) fn deliver(&mut self, consumer: u32, delivery: Delivery) {
        let Delivery { id, delivered_ms, deliveries } = delivery;
        let deliveries = u32::try_from(deliveries).unwrap_or(u32::MAX);
        let before = self.pending.insert(id, Pending { delivered_ms, deliveries, consumer });
        let is_the_same = before.is_some_and(|before| before.consumer == consumer);
        if let Some(before) = before {
            self.forget(id, before, !is_the_same);
        }
        if !is_the_same {
            self.pending_of(consumer).insert(id);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.insert(delivered_ms, id);
        }
    }

    /// Makes an entry pending for no consumer, behind those that were released before.
    pub(super) fn release(&mut self, id: StreamId, deliveries: u64) {
        let deliveries = u32::try_from(deliveries).unwrap_or(u32::MAX);
        let released = Pending { delivered_ms: 0, deliveries, consumer: NO_CONSUMER };
        if let Some(before) = self.pending.insert(id, released) {
            self.forget(id, before, true);
        }
        self.released.get_or_insert_default().push(id);
    }

    /// Removes what leads to a pending entry, as it was; what leads from its consumer only if it `leaves` it.
    fn forget(&mut self, id: StreamId, before: Pending, leaves: bool) {
        if before.is_released() {
            if let Some(released) = &mut self.released {
                released.remove(id);
            }
            return;
        }
        if leaves {
            self.pending_of(before.consumer).remove(&id);
        }
        if let Some(by_time) = &mut self.by_time {
            by_time.remove(before.delivered_ms, id);
        }
    }

    /// Prepares the order in which pending entries can be claimed. From then on it is kept.
    pub(super) fn order(&mut self) {
        if self.by_time.is_none() {
            let owned = self.pending.iter().filter(|(_, pending)| !pending.is_released());
            self.by_time = Some(Box::new(ByTime::of(owned.map(|(id, pending)| (pending.delivered_ms, *id)))));
        }
    }

    /// Removes a pending entry; false when it was not pending.
    pub(super) fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        self.forget(id, pending, true);
        true
    }

    fn pending_of(&mut self, consumer: u32) -> &mut BTreeSet<StreamId> {
        &mut self.consumers[consumer as usize].as_mut().expect("a pending entry has a consumer").pending
    }

    pub(super) fn heap_bytes(&self) -> usize {
        /// A tree in which entries are mostly added at the end is about half full.
        const FILL: usize = 2;
        let names: usize =
            self.names.keys().map(|name| size_class(name.len() + 16) + size_of::<(Arc<[u8]>, u32)>()).sum();
        names
            + self.consumers.capacity() * size_of::<Option<Consumer>>()
            + self.released_len() * FILL * 2 * size_of::<(StreamId, u64)>()
            + self.by_time.as_ref().map_or(0, |by_time| by_time.len() * FILL * size_of::<(i64, StreamId)>())
            + self.pending.len() * FILL * (size_of::<(StreamId, Pending)>() + size_of::<StreamId>())
    }
}
