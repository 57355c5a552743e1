//! Keys of a shard that tracking clients have read (CLIENT TRACKING). A side table: keys that are not tracked pay
//! nothing for it. Knows names and client ids; refuses to know how invalidations are sent.

use super::room_left;
use smallvec::SmallVec;
use std::collections::HashMap;

/// The ids of the clients that have read a key.
pub type Readers = SmallVec<[u64; 2]>;

/// Tracked keys by name. The database is ignored, as in Redis.
#[derive(Default)]
pub struct Tracked {
    keys: HashMap<Box<[u8]>, Readers>,
}

/// What was added to a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gained {
    pub keys: usize,
    pub readers: usize,
}

impl Tracked {
    /// Records that a client has read a key.
    pub fn remember(&mut self, name: &[u8], reader: u64) -> Gained {
        if let Some(readers) = self.keys.get_mut(name) {
            if readers.contains(&reader) {
                return Gained::default();
            }
            readers.push(reader);
            return Gained { keys: 0, readers: 1 };
        }
        self.keys.insert(name.into(), SmallVec::from_slice(&[reader]));
        Gained { keys: 1, readers: 1 }
    }

    /// Forgets a key. Returns its readers.
    pub fn forget(&mut self, name: &[u8]) -> Option<Readers> {
        if self.keys.is_empty() {
            return None;
        }
        let readers = self.keys.remove(name);
        self.shrink();
        readers
    }

    /// Forgets up to `count_max` keys, any of them. Returns their names and their readers.
    pub fn forget_some(&mut self, count_max: usize) -> Vec<(Box<[u8]>, Readers)> {
        let forgotten = self.keys.extract_if(|_, _| true).take(count_max).collect();
        self.shrink();
        forgotten
    }

    fn shrink(&mut self) {
        if let Some(room) = room_left(self.keys.len(), self.keys.capacity()) {
            self.keys.shrink_to(room);
        }
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.keys = HashMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_forgotten_with_all_its_readers() {
        let mut tracked = Tracked::default();
        assert_eq!(tracked.remember(b"a", 1), Gained { keys: 1, readers: 1 });
        assert_eq!(tracked.remember(b"a", 1), Gained::default());
        assert_eq!(tracked.remember(b"a", 2), Gained { keys: 0, readers: 1 });
        assert_eq!(tracked.forget(b"a").as_deref(), Some(&[1, 2][..]));
        assert_eq!(tracked.forget(b"a"), None);
    }

    #[test]
    fn any_key_is_forgotten_until_there_is_none() {
        let mut tracked = Tracked::default();
        tracked.remember(b"a", 1);
        tracked.remember(b"b", 2);
        let mut forgotten = tracked.forget_some(1);
        forgotten.extend(tracked.forget_some(2));
        forgotten.sort();
        assert_eq!(
            forgotten.iter().map(|(name, readers)| (&**name, readers[0])).collect::<Vec<_>>(),
            [(&b"a"[..], 1), (b"b", 2)]
        );
        assert!(tracked.forget_some(1).is_empty());
    }

    #[test]
    fn a_table_gives_its_memory_back() {
        let mut tracked = Tracked::default();
        for number in 0..10_000_u32 {
            tracked.remember(&number.to_le_bytes(), 1);
        }
        for number in 0..9_000_u32 {
            tracked.forget(&number.to_le_bytes());
        }
        assert!(tracked.keys.capacity() < 5_000, "{}", tracked.keys.capacity());
        assert_eq!(tracked.forget_some(990).len(), 990);
        assert!(tracked.keys.capacity() < 100, "{}", tracked.keys.capacity());
    }
}
