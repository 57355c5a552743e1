//! The signature of values that DEBUG DIGEST shows, equal to Redis's: the same data has the same signature in both,
//! whatever order it was written in.

use keyspace::db::Db;
use keyspace::entry::Entry;
use keyspace::shard::DATABASES;
use keyspace::{Locked, Value};
use numbers::{F64_CHARS_MAX, format_f64_in_17_digits};
use sha1_smol::Sha1;

/// Twenty bytes that take in data in order (`mix`) or in any order (`add`).
#[derive(Clone, Copy, Default)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    /// The signature of everything in all databases.
    pub(super) fn of_all(locked: &Locked<'_>, now_ms: u64) -> Digest {
        let mut all = Digest::default();
        for index in 0..DATABASES {
            let dbs = || locked.shards().map(|(_, shard)| shard.db(index));
            if dbs().all(Db::is_empty) {
                continue;
            }
            all.mix(&(index as u32).to_be_bytes());
            for db in dbs() {
                for entry in db.iter(now_ms) {
                    let mut digest = Digest::default();
                    digest.mix(entry.name());
                    digest.mix_value(entry, db.value(entry, now_ms));
                    all.add(&digest.0);
                }
            }
        }
        all
    }

    /// The signature of one value, whatever its name.
    pub(super) fn of_value(entry: &Entry, value: Value<'_>) -> Digest {
        let mut digest = Digest::default();
        digest.mix_value(entry, value);
        digest
    }

    fn mix_value(&mut self, entry: &Entry, value: Value<'_>) {
        // Redis's numbers for the types.
        let kind: u32 = match value {
            Value::String(_) => 0,
            Value::SortedSet(_) => 3,
            Value::Hash(_) => 4,
        };
        self.mix(&kind.to_be_bytes());
        match value {
            Value::String(string) => string.with_bytes(|bytes| self.mix(bytes)),
            Value::Hash(hash) => {
                for (field, value) in hash.iter() {
                    let name = field.scalar().bytes();
                    let mut pair = Digest::default();
                    pair.mix(&name);
                    value.with_bytes(|bytes| pair.mix(bytes));
                    if hash.deadline(&name).flatten().is_some() {
                        pair.add(b"!!hexpire!!");
                    }
                    self.add(&pair.0);
                }
            }
            Value::SortedSet(set) => {
                for member in set.iter() {
                    let mut pair = Digest::default();
                    member.name.with_bytes(|name| pair.mix(name));
                    pair.mix(format_f64_in_17_digits(member.score, &mut [0; F64_CHARS_MAX]));
                    self.add(&pair.0);
                }
            }
        }
        if entry.deadline().is_some() {
            self.add(b"!!expire!!");
        }
    }

    /// Takes in data whose order does not matter.
    fn add(&mut self, bytes: &[u8]) {
        let hash = Sha1::from(bytes).digest().bytes();
        self.0.iter_mut().zip(hash).for_each(|(byte, other)| *byte ^= other);
    }

    /// Takes in data whose order matters.
    fn mix(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.0 = Sha1::from(self.0).digest().bytes();
    }

    /// Forty hexadecimal digits.
    pub(super) fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_redis() {
        let mut digest = Digest::default();
        digest.mix(&0u32.to_be_bytes());
        digest.mix(b"v");
        assert_eq!(digest.hex(), "d79ee9fe5d5ad902d7f6620efc3b07b75ddd742f");
        assert_eq!(Digest::default().hex(), "0".repeat(40));
    }
}
