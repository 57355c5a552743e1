//! Which keys of a shard clients wait for, and who waits, in the order in which they came. A side table: keys that nobody
//! waits for pay nothing for it. Knows names and turns; refuses to know who waits and for what.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

/// Lines of those who wait, by database and name.
#[derive(Default)]
pub struct Awaited {
    dbs: BTreeMap<usize, HashMap<Box<[u8]>, Line>>,
    /// How many lines there are.
    len: usize,
}

/// Those who wait for one key, by their numbers: who came later has a higher one. A map, since who gives up may stand
/// anywhere in a long line.
type Line = BTreeMap<u64, Waiting>;

/// A client that waits, as whoever put it here knows it.
pub type Waiting = Arc<dyn Any + Send + Sync>;

impl Awaited {
    /// Puts somebody at the end of a key's line. False when it stands there already.
    pub fn line_up(&mut self, db: usize, name: &[u8], number: u64, waiter: Waiting) -> bool {
        let line = self.dbs.entry(db).or_default().entry(name.into()).or_default();
        self.len += usize::from(line.is_empty());
        line.insert(number, waiter).is_none()
    }

    /// Takes somebody out of a key's line. False when it does not stand there any more.
    pub fn leave(&mut self, db: usize, name: &[u8], number: u64) -> bool {
        let Some(lines) = self.dbs.get_mut(&db) else { return false };
        let Some(line) = lines.get_mut(name) else { return false };
        let stood = line.remove(&number).is_some();
        if line.is_empty() {
            lines.remove(name);
            self.len -= 1;
        }
        if lines.is_empty() {
            self.dbs.remove(&db);
        }
        stood
    }

    /// How many keys somebody waits for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when nobody waits for any.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True when somebody stands in a key's line.
    #[inline]
    pub fn has(&self, db: usize, name: &[u8]) -> bool {
        self.len > 0 && self.dbs.get(&db).is_some_and(|lines| lines.contains_key(name))
    }

    /// Those in a key's line who came after the one of that number, first come first.
    pub fn after(&self, db: usize, name: &[u8], number: u64) -> impl Iterator<Item = &Waiting> {
        let line = self.dbs.get(&db).and_then(|lines| lines.get(name));
        line.into_iter().flat_map(move |line| line.range((Excluded(number), Unbounded))).map(|(_, waiter)| waiter)
    }

    /// The keys of a database that somebody waits for.
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
            assert!(awaited.line_up(0, b"a", number, Arc::new(number)));
        }
        assert!(!awaited.line_up(0, b"a", 9, Arc::new(9_u64)), "nobody stands in a line twice");
        assert!(awaited.line_up(1, b"a", 7, Arc::new(7_u64)));
        let after = |awaited: &Awaited, number| {
            awaited.after(0, b"a", number).map(|of| *of.downcast_ref::<u64>().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!((after(&awaited, 0), after(&awaited, 3)), (vec![3, 5, 9], vec![5, 9]));
        assert!(awaited.leave(0, b"a", 5) && !awaited.leave(0, b"a", 5));
        assert_eq!(after(&awaited, 0), [3, 9]);
    }

    #[test]
    fn empty_lines_leave_nothing_behind() {
        let mut awaited = Awaited::default();
        for number in 1..100 {
            awaited.line_up(0, format!("key{}", number % 7).as_bytes(), number, Arc::new(()));
        }
        assert_eq!((awaited.names(0).count(), awaited.len()), (7, 7));
        for number in 1..100 {
            assert!(awaited.leave(0, format!("key{}", number % 7).as_bytes(), number));
        }
        assert!(awaited.dbs.is_empty() && awaited.is_empty() && !awaited.has(0, b"key1"));
    }
}
