//! Keys of a shard that clients wait for, each with its queue of waiters. Knows names and numbers; refuses to know what
//! a waiter is and what it waits for.

use super::room_left;
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// Queues of waiters, by database and name.
#[derive(Default)]
pub struct Awaited {
    dbs: BTreeMap<usize, HashMap<Box<[u8]>, Queue>>,
    /// How many queues there are.
    len: usize,
}

/// The waiters of one key by number: later waiters have higher numbers. A map, since a waiter that leaves may be
/// anywhere in a long queue.
type Queue = BTreeMap<u64, Waiting>;

/// A waiter. Only the crate that enqueues it knows its type.
pub type Waiting = Arc<dyn Any + Send + Sync>;

impl Awaited {
    /// Enqueues a waiter for a key. Returns false when it is queued already.
    pub fn enqueue(&mut self, db: usize, name: &[u8], number: u64, waiter: Waiting) -> bool {
        let queue = self.dbs.entry(db).or_default().entry(name.into()).or_default();
        self.len += usize::from(queue.is_empty());
        queue.insert(number, waiter).is_none()
    }

    /// Removes a waiter from a key's queue. Returns false when it is not in it.
    pub fn leave(&mut self, db: usize, name: &[u8], number: u64) -> bool {
        let Some(queues) = self.dbs.get_mut(&db) else { return false };
        let Some(queue) = queues.get_mut(name) else { return false };
        let was_queued = queue.remove(&number).is_some();
        if queue.is_empty() {
            queues.remove(name);
            self.len -= 1;
            if let Some(room) = room_left(queues.len(), queues.capacity()) {
                queues.shrink_to(room);
            }
        }
        if queues.is_empty() {
            self.dbs.remove(&db);
        }
        was_queued
    }

    /// The number of keys with waiters.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when no client waits for a key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True when a waiter is queued for a key.
    #[inline]
    pub fn has(&self, db: usize, name: &[u8]) -> bool {
        self.len > 0 && self.dbs.get(&db).is_some_and(|queues| queues.contains_key(name))
    }

    /// The waiters in a key's queue after `number`, in order.
    pub fn after(&self, db: usize, name: &[u8], number: u64) -> impl Iterator<Item = &Waiting> {
        let queue = self.dbs.get(&db).and_then(|queues| queues.get(name));
        queue.into_iter().flat_map(move |queue| queue.range((Excluded(number), Unbounded))).map(|(_, waiter)| waiter)
    }

    /// The keys of a database that have waiters.
    pub fn names(&self, db: usize) -> impl Iterator<Item = &[u8]> {
        self.dbs.get(&db).into_iter().flat_map(HashMap::keys).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first() {
        let mut awaited = Awaited::default();
        for number in [3_u64, 5, 9] {
            assert!(awaited.enqueue(0, b"a", number, Arc::new(number)));
        }
        assert!(!awaited.enqueue(0, b"a", 9, Arc::new(9_u64)), "nothing is queued twice");
        assert!(awaited.enqueue(1, b"a", 7, Arc::new(7_u64)));
        let after = |awaited: &Awaited, number| {
            awaited.after(0, b"a", number).map(|of| *of.downcast_ref::<u64>().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!((after(&awaited, 0), after(&awaited, 3)), (vec![3, 5, 9], vec![5, 9]));
        assert!(awaited.leave(0, b"a", 5) && !awaited.leave(0, b"a", 5));
        assert_eq!(after(&awaited, 0), [3, 9]);
    }

    #[test]
    fn empty_queues_leave_nothing_behind() {
        let mut awaited = Awaited::default();
        for number in 1..100 {
            awaited.enqueue(0, format!("key{}", number % 7).as_bytes(), number, Arc::new(()));
        }
        assert_eq!((awaited.names(0).count(), awaited.len()), (7, 7));
        for number in 1..100 {
            assert!(awaited.leave(0, format!("key{}", number % 7).as_bytes(), number));
        }
        for number in 0..10_000_u64 {
            awaited.enqueue(0, &number.to_le_bytes(), number, Arc::new(()));
        }
        for number in 1..10_000_u64 {
            assert!(awaited.leave(0, &number.to_le_bytes(), number));
        }
        assert!(awaited.dbs[&0].capacity() < 100);
        assert!(awaited.leave(0, &0_u64.to_le_bytes(), 0));
        assert!(awaited.dbs.is_empty() && awaited.is_empty() && !awaited.has(0, b"key1"));
    }
}
