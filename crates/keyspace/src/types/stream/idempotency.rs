//! What producers have added with ids of their own, so that an entry that is sent again is not added again. Knows for how
//! long and how many of these ids are kept; refuses to know how they are chosen.
//!
//! Ids that have expired are not found. They are removed little by little, when ids are added: nothing here visits all
//! producers or all ids, but an image.

use super::id::StreamId;
use crate::storage::size_class::size_class;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
    kept: Kept,
    /// How many ids were ever added.
    pub added: u64,
    /// How often an id was used again.
    pub duplicates: u64,
}

/// All ids that have not been removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// None without ids.
    producers: BTreeMap<Arc<[u8]>, Producer>,
    /// The producers by the time of their first id.
    by_first: BTreeSet<(u64, Arc<[u8]>)>,
    ids: usize,
    heap_bytes: usize,
}

/// The ids of a producer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Producer {
    /// The entry of each id, and when it was added in unix milliseconds.
    entries: BTreeMap<Arc<[u8]>, (StreamId, u64)>,
    /// The ids in the order in which they were added, and when that was.
    order: VecDeque<(Arc<[u8]>, u64)>,
}

/// An id of a producer, the entry that was added with it, and when that was, in unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remembered<'a> {
    pub producer: &'a [u8],
    pub id: &'a [u8],
    pub entry: StreamId,
    pub at_ms: u64,
}

/// The most expired ids that are removed when one is added. More than one, so that there are ever fewer.
const REMOVED_AT_ONCE: usize = 64;

/// The most producers whose expired ids are left out of a count.
const COUNTED_MAX: usize = 500;

impl Retention {
    fn has_expired(&self, at_ms: u64, now_ms: u64) -> bool {
        at_ms.saturating_add(self.duration_ms) <= now_ms
    }
}

impl Idempotency {
    pub(super) fn new(retention: Retention) -> Idempotency {
        Idempotency { retention, kept: Kept::default(), added: 0, duplicates: 0 }
    }

    /// The entry that a producer has added with this id, unless that is forgotten by now.
    pub fn find(&self, producer: &[u8], id: &[u8], now_ms: u64) -> Option<StreamId> {
        let (entry, at_ms) = *self.kept.producers.get(producer)?.entries.get(id)?;
        (!self.retention.has_expired(at_ms, now_ms)).then_some(entry)
    }

    /// How many producers have ids that are not forgotten by now, and how many ids these are. Where very many producers
    /// have expired ids, some of these still count.
    pub fn tracked(&self, now_ms: u64) -> (usize, usize) {
        let has_expired = |at_ms: u64| self.retention.has_expired(at_ms, now_ms);
        let (mut producers, mut ids) = (self.kept.producers.len(), self.kept.ids);
        for (_, name) in self.kept.by_first.iter().take(COUNTED_MAX).take_while(|(first_ms, _)| has_expired(*first_ms))
        {
            let Some(producer) = self.kept.producers.get(name) else { continue };
            let expired = producer.order.partition_point(|(_, at_ms)| has_expired(*at_ms));
            producers -= usize::from(expired == producer.order.len());
            ids -= expired;
        }
        (producers, ids)
    }

    /// Sets how long and how many ids are kept. If that differs, all are forgotten, and returned to be freed.
    pub(super) fn configure(&mut self, retention: Retention) -> Option<Kept> {
        (retention != self.retention).then(|| {
            self.retention = retention;
            std::mem::take(&mut self.kept)
        })
    }

    /// Remembers an id, and removes some that have expired.
    pub(super) fn remember(&mut self, new: Remembered<'_>) {
        self.added += 1;
        self.keep(new);
        let mut left = REMOVED_AT_ONCE;
        while let Some((first_ms, name)) = self.kept.by_first.first().filter(|_| left > 0) {
            if !self.retention.has_expired(*first_ms, new.at_ms) {
                break;
            }
            let (name, retention) = (name.clone(), self.retention);
            self.kept.remove_first_while(&name, |_, at_ms| {
                let is_removed = left > 0 && retention.has_expired(at_ms, new.at_ms);
                left -= usize::from(is_removed);
                is_removed
            });
        }
    }

    /// Keeps an id that may have been kept before, as an image has it.
    pub(super) fn keep(&mut self, new: Remembered<'_>) {
        let ids_max = self.retention.ids_max;
        self.kept.add(new);
        self.kept.remove_first_while(new.producer, |len, _| len as u64 > ids_max);
    }

    /// All that is kept, of each producer in the order in which it was added.
    pub(super) fn remembered(&self) -> impl Iterator<Item = Remembered<'_>> {
        self.kept.producers.iter().flat_map(|(name, producer)| {
            producer.order.iter().filter_map(move |(id, at_ms)| {
                let (entry, _) = *producer.entries.get(id)?;
                Some(Remembered { producer: name, id, entry, at_ms: *at_ms })
            })
        })
    }

    /// How many ids are kept, expired ones included.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Idempotency>() + self.kept.heap_bytes
    }
}

impl Kept {
    pub(super) fn len(&self) -> usize {
        self.ids
    }

    /// Adds an id behind those of its producer, or moves it there.
    fn add(&mut self, new: Remembered<'_>) {
        let name: Arc<[u8]> = match self.producers.get_key_value(new.producer) {
            Some((name, _)) => name.clone(),
            None => {
                self.heap_bytes += producer_bytes(new.producer);
                new.producer.into()
            }
        };
        let producer = self.producers.entry(name.clone()).or_default();
        let first_ms = producer.first_ms();
        let id: Arc<[u8]> = new.id.into();
        if producer.entries.insert(id.clone(), (new.entry, new.at_ms)).is_none() {
            self.ids += 1;
            self.heap_bytes += id_bytes(&id);
        } else if let Some(place) = producer.order.iter().position(|(other, _)| *other == id) {
            producer.order.remove(place);
        }
        producer.order.push_back((id, new.at_ms));
        let after_ms = producer.first_ms();
        self.list(name, first_ms, after_ms);
    }

    /// Removes the first ids of a producer as long as the condition holds for how many it has and for the time of the
    /// first one.
    fn remove_first_while(&mut self, name: &[u8], mut condition: impl FnMut(usize, u64) -> bool) {
        let Some(name) = self.producers.get_key_value(name).map(|(name, _)| name.clone()) else { return };
        let Some(producer) = self.producers.get_mut(&name) else { return };
        let first_ms = producer.first_ms();
        while producer.first_ms().is_some_and(|at_ms| condition(producer.order.len(), at_ms))
            && let Some((id, _)) = producer.order.pop_front()
        {
            producer.entries.remove(&id);
            self.ids -= 1;
            self.heap_bytes -= id_bytes(&id);
        }
        let after_ms = producer.first_ms();
        if after_ms.is_none() {
            self.producers.remove(&name);
            self.heap_bytes -= producer_bytes(&name);
        }
        self.list(name, first_ms, after_ms);
    }

    /// Lists a producer by the time of its first id, which was another one before.
    fn list(&mut self, name: Arc<[u8]>, before_ms: Option<u64>, after_ms: Option<u64>) {
        if before_ms == after_ms {
            return;
        }
        if let Some(before_ms) = before_ms {
            self.by_first.remove(&(before_ms, name.clone()));
        }
        self.by_first.extend(after_ms.map(|after_ms| (after_ms, name)));
    }
}

impl Producer {
    fn first_ms(&self) -> Option<u64> {
        self.order.front().map(|(_, at_ms)| *at_ms)
    }
}

/// What a producer takes beside its ids.
fn producer_bytes(name: &[u8]) -> usize {
    size_class(name.len() + 16) + size_of::<(Arc<[u8]>, Producer)>() + size_of::<(u64, Arc<[u8]>)>()
}

/// What an id takes: its bytes, a place in the tree, and one in the queue.
fn id_bytes(id: &[u8]) -> usize {
    size_class(id.len() + 16) + 2 * size_of::<(Arc<[u8]>, (StreamId, u64))>() + size_of::<(Arc<[u8]>, u64)>()
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
        assert_eq!((ids.kept.producers.len(), ids.tracked(5)), (50, (50, 50)));
        for at_ms in 100..200 {
            ids.remember(remembered(&at_ms.to_string(), at_ms));
        }
        assert_eq!(ids.kept.producers.len(), 1, "only the one that adds entries is left");
    }

    /// Each addition removes some expired ids, not all at once; a count leaves out those of some producers.
    #[test]
    fn what_has_expired_is_removed_little_by_little() {
        const PRODUCERS: usize = 4 * COUNTED_MAX;
        let mut ids = Idempotency::new(Retention { duration_ms: 10, ids_max: 9 });
        for number in 0..PRODUCERS {
            let name = format!("p{number}");
            ids.remember(Remembered { producer: name.as_bytes(), ..remembered("a", 1) });
            ids.remember(Remembered { producer: name.as_bytes(), ..remembered("b", 2) });
        }
        assert_eq!(ids.tracked(11), (PRODUCERS, 2 * PRODUCERS - COUNTED_MAX));
        assert_eq!(ids.tracked(12), (PRODUCERS - COUNTED_MAX, 2 * (PRODUCERS - COUNTED_MAX)));
        assert_eq!(ids.find(b"p1999", b"b", 12), None, "counted or not, it is not found");
        let mut left = ids.len();
        for number in 0.. {
            ids.remember(Remembered { producer: b"q", ..remembered("a", 100 + number) });
            assert!(left - ids.len() < REMOVED_AT_ONCE + 1, "{} of {left}", ids.len());
            left = ids.len();
            if left == 1 {
                break;
            }
        }
        assert_eq!((ids.kept.producers.len(), ids.tracked(100), ids.kept.by_first.len()), (1, (1, 1), 1));
        let forgotten = ids.configure(Retention { duration_ms: 11, ids_max: 9 }).map(|kept| kept.len());
        assert_eq!((forgotten, ids.kept), (Some(1), Kept::default()), "nothing is counted that is not there");
    }

    /// Random additions against a plain list.
    #[test]
    fn ids_agree_with_a_plain_list() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..50 {
            let retention = Retention { duration_ms: random.u64(1..60), ids_max: random.u64(1..6) };
            let (mut ids, mut now_ms) = (Idempotency::new(retention), 100);
            let mut plain: Vec<(u8, u8, StreamId, u64)> = Vec::new();
            for number in 0..300 {
                now_ms += random.u64(..8);
                let (producer, id) = (random.u8(b'a'..b'e'), random.u8(b'a'..b'j'));
                let entry = StreamId::new(number, 0);
                let found = ids.find(&[producer], &[id], now_ms);
                let is_kept = |(_, _, _, at_ms): &&(u8, u8, StreamId, u64)| now_ms < at_ms + retention.duration_ms;
                let of_producer = plain.iter().rev().filter(|(other, ..)| *other == producer);
                let kept: Vec<_> = of_producer.take(retention.ids_max as usize).filter(is_kept).collect();
                let expected = kept.iter().find(|(_, other, ..)| *other == id).map(|(_, _, entry, _)| *entry);
                assert_eq!(found, expected, "seed {seed}");
                if found.is_none() {
                    ids.remember(Remembered { producer: &[producer], id: &[id], entry, at_ms: now_ms });
                    plain.retain(|(a, b, ..)| (*a, *b) != (producer, id));
                    plain.push((producer, id, entry, now_ms));
                }
                let mut again = Idempotency::new(retention);
                ids.remembered().for_each(|remembered| again.keep(remembered));
                (again.added, again.duplicates) = (ids.added, ids.duplicates);
                assert_eq!(again, ids, "seed {seed}: as an image has it");
            }
        }
    }
}
