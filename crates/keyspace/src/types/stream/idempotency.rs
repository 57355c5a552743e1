//! What producers have added with ids of their own, so that an entry that is sent again is not added again. Knows for how
//! long and how many of these ids are kept; refuses to know how they are chosen.

use super::id::StreamId;
use crate::storage::size_class::size_class;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// How long ids of producers are kept, and how many of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub duration_ms: u64,
    pub ids_max: u64,
}

/// The ids that producers have used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub retention: Retention,
    producers: BTreeMap<Arc<[u8]>, Producer>,
    /// How many ids were ever added.
    pub added: u64,
    /// How often an id was used again.
    pub duplicates: u64,
}

/// The ids of a producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Producer {
    /// The entry of each id, and when it was added in unix milliseconds.
    entries: BTreeMap<Arc<[u8]>, (StreamId, u64)>,
    /// In the order in which they were added.
    order: VecDeque<Arc<[u8]>>,
}

/// An id of a producer, the entry that was added with it, and when that was, in unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered<'a> {
    pub producer: &'a [u8],
    pub id: &'a [u8],
    pub entry: StreamId,
    pub at_ms: u64,
}

impl Idempotency {
    pub(super) fn new(retention: Retention) -> Idempotency {
        Idempotency { retention, producers: BTreeMap::new(), added: 0, duplicates: 0 }
    }

    /// The entry that a producer has added with this id, unless that is forgotten by now.
    pub fn find(&self, producer: &[u8], id: &[u8], now_ms: u64) -> Option<StreamId> {
        let (entry, at_ms) = *self.producers.get(producer)?.entries.get(id)?;
        (!self.has_expired(at_ms, now_ms)).then_some(entry)
    }

    /// How many producers have ids that are not forgotten by now, and how many ids these are.
    pub fn tracked(&self, now_ms: u64) -> (usize, usize) {
        let left = |producer: &Producer| {
            producer.order.len() - producer.order.partition_point(|id| self.has_expired(producer.added_at(id), now_ms))
        };
        let left = self.producers.values().map(left).filter(|left| *left > 0);
        left.fold((0, 0), |(producers, ids), left| (producers + 1, ids + left))
    }

    fn has_expired(&self, at_ms: u64, now_ms: u64) -> bool {
        at_ms.saturating_add(self.retention.duration_ms) <= now_ms
    }

    /// Sets how long and how many ids are kept. If that differs, all are forgotten.
    pub(super) fn configure(&mut self, retention: Retention) {
        if retention != self.retention {
            self.retention = retention;
            self.producers.clear();
        }
    }

    /// Remembers an id; forgets those of that producer and of the next one that have expired or are too many.
    pub(super) fn remember(&mut self, new: Remembered<'_>) {
        self.added += 1;
        self.keep(new);
        // Where the next producer has been idle for long it goes, and the one behind it becomes the next.
        let behind = (Bound::Excluded(new.producer), Bound::Unbounded);
        let next = self.producers.range::<[u8], _>(behind).chain(&self.producers).next();
        if let Some(name) = next.map(|(name, _)| name.clone()) {
            self.forget_expired(&name, new.at_ms);
        }
    }

    /// Keeps an id that may have been kept before, as an image has it.
    pub(super) fn keep(&mut self, new: Remembered<'_>) {
        let ids_max = self.retention.ids_max;
        let id: Arc<[u8]> = new.id.into();
        if !self.producers.contains_key(new.producer) {
            self.producers.insert(new.producer.into(), Producer::default());
        }
        let Some(producer) = self.producers.get_mut(new.producer) else { return };
        if producer.entries.insert(id.clone(), (new.entry, new.at_ms)).is_some() {
            producer.order.retain(|other| *other != id);
        }
        producer.order.push_back(id);
        while producer.order.len() as u64 > ids_max {
            producer.forget_first();
        }
        self.forget_expired(new.producer, new.at_ms);
    }

    fn forget_expired(&mut self, name: &[u8], now_ms: u64) {
        let duration_ms = self.retention.duration_ms;
        let Some(producer) = self.producers.get_mut(name) else { return };
        let has_expired = |producer: &Producer| {
            producer.order.front().is_some_and(|id| producer.added_at(id).saturating_add(duration_ms) <= now_ms)
        };
        while has_expired(producer) {
            producer.forget_first();
        }
        if producer.order.is_empty() {
            self.producers.remove(name);
        }
    }

    /// All that is remembered, of each producer in the order in which it was added.
    pub(super) fn remembered(&self) -> impl Iterator<Item = Remembered<'_>> {
        self.producers.iter().flat_map(|(name, producer)| {
            producer.order.iter().filter_map(move |id| {
                let (entry, at_ms) = *producer.entries.get(id)?;
                Some(Remembered { producer: name, id, entry, at_ms })
            })
        })
    }

    pub(super) fn heap_bytes(&self) -> usize {
        /// What an id takes beside its bytes: a place in the tree, and one in the queue.
        const ID_BYTES: usize = 2 * size_of::<(Arc<[u8]>, (StreamId, u64))>() + size_of::<Arc<[u8]>>();
        let of = |(name, producer): (&Arc<[u8]>, &Producer)| {
            let ids: usize = producer.entries.keys().map(|id| size_class(id.len() + 16) + ID_BYTES).sum();
            size_class(name.len() + 16) + size_of::<Producer>() + ids
        };
        size_of::<Idempotency>() + self.producers.iter().map(of).sum::<usize>()
    }
}

impl Producer {
    fn added_at(&self, id: &[u8]) -> u64 {
        self.entries.get(id).map_or(0, |(_, at_ms)| *at_ms)
    }

    fn forget_first(&mut self) {
        if let Some(id) = self.order.pop_front() {
            self.entries.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(id: &str, at_ms: u64) -> Remembered<'_> {
        Remembered { producer: b"p", id: id.as_bytes(), entry: StreamId::new(at_ms, 0), at_ms }
    }

    #[test]
    fn ids_are_kept_for_a_while_and_so_many_of_them() {
        let retention = Retention { duration_ms: 100, ids_max: 2 };
        let mut ids = Idempotency::new(retention);
        let find = |ids: &Idempotency, id: &str, now_ms| ids.find(b"p", id.as_bytes(), now_ms).map(|entry| entry.ms);
        ids.remember(remembered("a", 1));
        ids.remember(remembered("b", 2));
        assert_eq!((find(&ids, "a", 50), find(&ids, "a", 101), find(&ids, "b", 101)), (Some(1), None, Some(2)));
        assert_eq!((ids.tracked(100), ids.tracked(101), ids.tracked(102)), ((1, 2), (1, 1), (0, 0)));
        ids.remember(remembered("c", 3));
        assert_eq!((find(&ids, "a", 50), find(&ids, "b", 50), ids.tracked(50)), (None, Some(2), (1, 2)));
        assert_eq!(ids.find(b"q", b"b", 50), None, "each producer has ids of its own");
        ids.configure(retention);
        assert_eq!(find(&ids, "b", 50), Some(2), "nothing differs");
        ids.configure(Retention { ids_max: 3, ..retention });
        assert_eq!((find(&ids, "b", 50), ids.tracked(50), ids.added), (None, (0, 0), 3));
    }

    #[test]
    fn producers_that_are_gone_are_forgotten() {
        let mut ids = Idempotency::new(Retention { duration_ms: 10, ids_max: 9 });
        let names: Vec<String> = (0..50).map(|number| format!("p{number}")).collect();
        for name in &names {
            ids.remember(Remembered { producer: name.as_bytes(), ..remembered("a", 1) });
        }
        assert_eq!((ids.producers.len(), ids.tracked(5)), (50, (50, 50)));
        for at_ms in 100..200 {
            ids.remember(remembered(&at_ms.to_string(), at_ms));
        }
        assert_eq!(ids.producers.len(), 1, "only the one that adds entries is left");
    }
}
