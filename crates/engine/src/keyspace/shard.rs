//! One shard of the keyspace: the part of every database that one lock guards.

use super::db::Db;

/// How many databases there are, as in Redis.
pub const DATABASES: usize = 16;

/// The databases of one shard.
pub struct Shard {
    pub(super) dbs: [Db; DATABASES],
}

impl Default for Shard {
    fn default() -> Shard {
        Shard { dbs: std::array::from_fn(|_| Db::default()) }
    }
}

impl Shard {
    /// The database of that number.
    #[inline]
    pub fn db(&self, index: usize) -> &Db {
        &self.dbs[index]
    }
}
