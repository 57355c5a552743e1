//! The catalogue of indexes. Knows their definitions; refuses to know how an index is filled and read.

use crate::error::{CommandError, CommandResult, shown};
use keyspace::db::Db;
use keyspace::index::{INDEXES_MAX, Indexes};
use keyspace::{DATABASES, Key, Locked};
use locks::{RwLock, rank};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// All indexes of records.
#[derive(Default)]
pub struct IndexCatalogue {
    indexes: RwLock<Indexes, { rank::INDEXES }>,
    /// Names of the indexes that the configuration asks for.
    configured: RwLock<BTreeSet<Vec<u8>>, { rank::CONFIGURED_INDEXES }>,
    /// The lengths of their names, one bit for each modulo 64: most keys are no index.
    lengths: AtomicU64,
    /// At least one index stamps records.
    stamps: AtomicBool,
    /// Counts the shards in which states of rates were looked for that are over.
    tidied: AtomicUsize,
}

#[inline]
fn length_bit(name: &[u8]) -> u64 {
    1 << (name.len() % 64)
}

impl IndexCatalogue {
    /// All indexes.
    pub fn list(&self) -> Indexes {
        self.indexes.read().clone()
    }

    /// Locks the list of indexes for reading.
    pub fn read(&self) -> impl Deref<Target = Indexes> + '_ {
        self.indexes.read()
    }

    /// True when there is no index.
    pub fn is_empty(&self) -> bool {
        self.indexes.read().is_empty()
    }

    /// True when one of these names is an index.
    pub fn has_any_of<'n>(&self, mut names: impl Iterator<Item = &'n [u8]>) -> bool {
        let indexes = self.indexes.read();
        !indexes.is_empty() && names.any(|name| indexes.position(name).is_some())
    }

    /// The prefixes of an index; none if there is no index of that name.
    #[inline]
    pub fn prefixes_of(&self, name: &[u8]) -> Vec<Vec<u8>> {
        match self.may_have(name) {
            true => self.indexes.read().find(name).map_or_else(Vec::new, |index| index.definition.prefixes.clone()),
            false => Vec::new(),
        }
    }

    /// False when there is no index of that name, known without a look at the names.
    #[inline]
    pub fn may_have(&self, name: &[u8]) -> bool {
        self.lengths.load(Relaxed) & length_bit(name) != 0
    }

    /// True when an index stamps records: writes have to find the records to stamp.
    #[inline]
    pub fn stamps_records(&self) -> bool {
        self.stamps.load(Relaxed)
    }

    /// Counts on from one shard to the next, for what is done in one of them with each tick.
    pub(super) fn next_tidied(&self) -> usize {
        self.tidied.fetch_add(1, Relaxed)
    }

    /// Replaces all indexes. The shards have them already.
    pub(super) fn set(&self, indexes: Indexes) {
        self.lengths.store(indexes.iter().fold(0, |bits, index| bits | length_bit(&index.name)), Relaxed);
        self.stamps.store(indexes.iter().any(|index| index.definition.stamp), Relaxed);
        *self.indexes.write() = indexes;
    }

    /// Notes which indexes the configuration asks for.
    pub(super) fn set_configured(&self, names: impl Iterator<Item = Vec<u8>>) {
        *self.configured.write() = names.collect();
    }

    pub(super) fn is_configured(&self, name: &[u8]) -> bool {
        self.configured.read().contains(name)
    }

    /// Checks that an index of that name can be created. Everything is locked.
    pub fn pass_limits(&self, locked: &Locked<'_>, name: &[u8], now_ms: u64) -> CommandResult {
        let indexes = self.list();
        let taken = match indexes.position(name).is_some() {
            true => Some("an index"),
            false => is_key(locked, name, now_ms).then_some("a key"),
        };
        if let Some(taken) = taken {
            return Err(CommandError::said(format!("ERR the name {} is taken by {taken}", shown(name))));
        }
        if indexes.iter().len() >= INDEXES_MAX {
            let text = format!("ERR there are {INDEXES_MAX} indexes, and every write looks at each: drop one first");
            return Err(CommandError::said(text));
        }
        Ok(())
    }
}

/// True when a key of that name exists in any database. Everything is locked.
pub(super) fn is_key(locked: &Locked<'_>, name: &[u8], now_ms: u64) -> bool {
    let key = Key::new(name);
    (0..DATABASES).any(|db| locked.db(db, key).entry(key).is_some_and(|entry| !Db::is_expired(entry, now_ms)))
}

/// The error for commands that would change an index.
pub fn is_index(name: &[u8]) -> CommandError {
    let name = name.escape_ascii();
    CommandError::said(format!(
        "ERR '{name}' is an index: it changes with its records, and no command changes or watches it"
    ))
}
