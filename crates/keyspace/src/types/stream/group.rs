//! A consumer group: how far it has read, and the pending entries of its consumers. Refuses to know the entries
//! themselves.

use super::id::StreamId;
use crate::storage::size_class::size_class;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeBounds;
use std::sync::Arc;

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
}

/// A pending entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Unix milliseconds of its last delivery.
    pub delivered_ms: i64,
    /// The number of deliveries, saturating. Many entries may be pending, so it is 32 bits.
    deliveries: u32,
    /// The number of its consumer.
    consumer: u32,
}

impl Pending {
    /// How often it was delivered.
    pub fn deliveries(&self) -> u64 {
        self.deliveries.into()
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
    /// Unix milliseconds at which it was last seen.
    seen_ms: i64,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    pub fn seen_ms(&self) -> i64 {
        self.seen_ms
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

    /// The consumer that an entry was delivered to.
    pub fn consumer_of(&self, pending: &Pending) -> &Consumer {
        self.consumers[pending.consumer as usize].as_ref().expect("a pending entry has a consumer")
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
    pub(super) fn create_consumer(&mut self, name: &[u8], seen_ms: i64) -> bool {
        if self.names.contains_key(name) {
            return false;
        }
        let name: Arc<[u8]> = name.into();
        let consumer = Consumer { name: name.clone(), seen_ms, pending: BTreeSet::new() };
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
            consumer.pending.iter().for_each(|id| _ = self.pending.remove(id));
        }
        true
    }

    /// Records when a consumer was seen; returns its number, if it exists.
    pub(super) fn see(&mut self, name: &[u8], seen_ms: i64) -> Option<u32> {
        let number = *self.names.get(name)?;
        if let Some(consumer) = &mut self.consumers[number as usize] {
            consumer.seen_ms = seen_ms;
        }
        Some(number)
    }

    /// Makes an entry pending for that consumer only.
    pub(super) fn deliver(&mut self, consumer: u32, delivery: Delivery) {
        let Delivery { id, delivered_ms, deliveries } = delivery;
        let deliveries = u32::try_from(deliveries).unwrap_or(u32::MAX);
        let before = self.pending.insert(id, Pending { delivered_ms, deliveries, consumer });
        match before {
            Some(before) if before.consumer == consumer => return,
            Some(before) => _ = self.pending_of(before.consumer).remove(&id),
            None => {}
        }
        self.pending_of(consumer).insert(id);
    }

    /// Removes a pending entry; false when it was not pending.
    pub(super) fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        self.pending_of(pending.consumer).remove(&id)
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
            + self.pending.len() * FILL * (size_of::<(StreamId, Pending)>() + size_of::<StreamId>())
    }
}
