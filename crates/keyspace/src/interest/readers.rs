//! Keys of a shard that tracking clients have read (CLIENT TRACKING). A side table: keys that are not tracked pay
//! nothing for it. Knows names and client ids; refuses to know how invalidations are sent.

use smallvec::SmallVec;
use std::collections::HashMap;

/// Numbers of the clients that have read a key.
pub type Readers = SmallVec<[u64; 2]>;

/// Keys by their name. The database makes no difference, as in Redis.
#[derive(Default)]
pub struct Tracked {
    keys: HashMap<Box<[u8]>, Readers>,
}

/// What a table has gained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gained {
    pub keys: usize,
    pub readers: usize,
}

impl Tracked {
    /// Remembers that a client has read a key.
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
        if self.keys.is_empty() {
            // The memory of a table that was large once.
            self.keys.shrink_to_fit();
        }
        readers
    }

    /// Forgets any key; the key `but` only if there is no other. Returns its name and its readers.
    pub fn forget_any(&mut self, but: &[u8]) -> Option<(Box<[u8]>, Readers)> {
        let other = self.keys.keys().find(|name| ***name != *but).or_else(|| self.keys.keys().next());
        let name = other?.clone();
        let readers = self.forget(&name)?;
        Some((name, readers))
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
    fn another_key_goes_before_this_one() {
        let mut tracked = Tracked::default();
        tracked.remember(b"a", 1);
        tracked.remember(b"b", 1);
        let name = |forgotten: Option<(Box<[u8]>, Readers)>| forgotten.map(|(name, _)| name.to_vec());
        assert_eq!(name(tracked.forget_any(b"b")), Some(b"a".to_vec()));
        assert_eq!(name(tracked.forget_any(b"b")), Some(b"b".to_vec()));
        assert_eq!(name(tracked.forget_any(b"b")), None);
    }
}
