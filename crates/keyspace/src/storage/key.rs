//! A key's name with its hash and shard, computed once. Knows hash tags; refuses to know values.

use super::table::{NameHash, NameHasher};

/// A key's name with its hashes.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    pub name: &'a [u8],
    pub hash: NameHash,
    /// Bits that pick the shard; the keyspace masks them.
    shard_bits: u16,
}

/// The hashes of a name, to be stored with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHashes {
    pub hash: NameHash,
    shard_bits: u16,
}

impl KeyHashes {
    /// Which of a power-of-two number of shards the key lives in.
    #[inline]
    pub fn shard(&self, shard_count: usize) -> usize {
        usize::from(self.shard_bits) & (shard_count - 1)
    }
}

impl<'a> Key<'a> {
    /// Hashes `name`.
    #[inline]
    pub fn new(name: &'a [u8]) -> Key<'a> {
        Key::hashed_by(NameHasher::of_process(), name)
    }

    /// Hashes a name with the function of another process, to find where that process placed it.
    #[inline]
    pub fn hashed_by(hasher: &NameHasher, name: &'a [u8]) -> Key<'a> {
        let hash = hasher.hash(name);
        let shard_bits = match hash_tag(name) {
            None => hash.shard_bits(),
            Some(tag) => hasher.hash(tag).shard_bits(),
        };
        Key { name, hash, shard_bits: shard_bits as u16 }
    }

    /// The hashes of its name.
    #[inline]
    pub fn hashes(&self) -> KeyHashes {
        KeyHashes { hash: self.hash, shard_bits: self.shard_bits }
    }

    /// A key with hashes that were computed before.
    #[inline]
    pub fn with_hashes(name: &'a [u8], hashes: KeyHashes) -> Key<'a> {
        debug_assert_eq!(Key::new(name).hashes(), hashes, "the hashes of another name");
        Key { name, hash: hashes.hash, shard_bits: hashes.shard_bits }
    }

    /// Which of a power-of-two number of shards the key lives in.
    #[inline]
    pub fn shard(&self, shard_count: usize) -> usize {
        self.hashes().shard(shard_count)
    }
}

/// The part between the first `{` and the next `}`, if there is anything between them: keys that share it share
/// a shard, as they share a slot in Redis Cluster.
#[inline]
fn hash_tag(name: &[u8]) -> Option<&[u8]> {
    let open = memchr::memchr(b'{', name)?;
    let rest = &name[open + 1..];
    let close = memchr::memchr(b'}', rest)?;
    (close > 0).then(|| &rest[..close])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_what_stands_between_the_first_braces() {
        for (name, tag) in [
            ("user:{42}:name", Some("42")),
            ("{a}{b}", Some("a")),
            ("{}x", None),
            ("x}{", None),
            ("{x", None),
            ("plain", None),
            ("{{x}}", Some("{x")),
        ] {
            assert_eq!(hash_tag(name.as_bytes()), tag.map(str::as_bytes), "{name}");
        }
        assert_eq!(Key::new(b"a:{42}").shard(64), Key::new(b"b:{42}:c").shard(64));
    }
}
